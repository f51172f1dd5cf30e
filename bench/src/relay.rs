//! The least that can serve a terminal over a socket: a process that copies between a PTY and one connection.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};

use crate::place::{Place, Process};
use crate::pty::{PtyChild, READ};

/// Serves one connection with a program's terminal, until either ends.
pub(crate) fn run(socket: &Path, program: &[String]) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    let pty = PtyChild::spawn(program, &[])?;
    let (mut stream, _) = listener.accept()?;
    let mut buf = vec![0; READ];
    loop {
        let mut ready = [PollFd::new(&pty, PollFlags::IN), PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)];
        poll(&mut ready, None)?;
        let [from_pty, from_stream] = ready.map(|fd| !fd.revents().is_empty());
        if from_pty {
            let n = pty.read(&mut buf)?;
            stream.write_all(&buf[..n])?;
        }
        if from_stream {
            match stream.read(&mut buf)? {
                0 => return Ok(()),
                n => pty.write(&buf[..n])?,
            }
        }
    }
}

/// A running relay and the connection to it.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) stream: UnixStream,
    child: Child,
    _process: Process,
}

impl Relay {
    pub(crate) fn start(place: &Place, program: &[&str]) -> Result<Relay> {
        let socket = place.path().join("relay.sock");
        let child = Command::new(std::env::current_exe()?)
            .arg("relay")
            .arg(&socket)
            .arg("--")
            .args(program)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let process = Process::adopt(child.id())?;
        let stream = connect(&socket).context("the relay does not listen")?;
        std::fs::remove_file(&socket)?;
        Ok(Relay { stream, child, _process: process })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

fn connect(socket: &Path) -> Result<UnixStream> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => bail!(error),
        }
    }
}
