//! The minimal way to serve a terminal over a socket: a process that copies between a PTY and one connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};

use crate::cleanup::{Process, TempDir};
use crate::pty::{PtyChild, READ};

/// Copies between a program's PTY and one connection to `socket`, until either ends.
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

/// Copies between one TCP connection and a unix socket, until either ends.
pub(crate) fn forward(socket: &Path) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    let (mut outer, _) = listener.accept()?;
    outer.set_nodelay(true)?;
    let mut inner = connect(socket)?;
    let mut buf = vec![0; READ];
    loop {
        let mut ready = [
            PollFd::from_borrowed_fd(inner.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(outer.as_fd(), PollFlags::IN),
        ];
        poll(&mut ready, None)?;
        let [from_inner, from_outer] = ready.map(|fd| !fd.revents().is_empty());
        if from_inner {
            match inner.read(&mut buf)? {
                0 => return Ok(()),
                n => outer.write_all(&buf[..n])?,
            }
        }
        if from_outer {
            match outer.read(&mut buf)? {
                0 => return Ok(()),
                n => inner.write_all(&buf[..n])?,
            }
        }
    }
}

/// A running relay and the connection to it.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) stream: Stream,
    children: Vec<(Child, Process)>,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(crate) fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buf),
            Stream::Tcp(stream) => stream.read(buf),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

impl Relay {
    /// A PTY over a unix socket.
    pub(crate) fn start(dir: &TempDir, program: &[&str]) -> Result<Relay> {
        let (socket, child) = serve(dir, program)?;
        let stream = Stream::Unix(connect(&socket).context("the relay did not start listening within 5 s")?);
        std::fs::remove_file(&socket)?;
        Ok(Relay { stream, children: vec![child] })
    }

    /// A PTY over a unix socket over TCP: two processes, like a session and its gateway.
    pub(crate) fn start_over_tcp(dir: &TempDir, program: &[&str]) -> Result<Relay> {
        let (socket, child) = serve(dir, program)?;
        let (mut forward, process) = spawn(|command| command.arg("forward").arg(&socket).stdout(Stdio::piped()))?;
        let mut port = String::new();
        BufReader::new(forward.stdout.take().context("the forwarder has no stdout")?).read_line(&mut port)?;
        let stream = TcpStream::connect(("127.0.0.1", port.trim().parse::<u16>()?))?;
        stream.set_nodelay(true)?;
        Ok(Relay { stream: Stream::Tcp(stream), children: vec![child, (forward, process)] })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = match &self.stream {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
        for (mut child, _) in self.children.drain(..).rev() {
            let _ = child.wait();
        }
    }
}

/// Starts the process that owns the PTY.
fn serve(dir: &TempDir, program: &[&str]) -> Result<(PathBuf, (Child, Process))> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let socket = dir.path().join(format!("relay{}.sock", COUNT.fetch_add(1, Ordering::Relaxed)));
    let child = spawn(|command| command.arg("relay").arg(&socket).arg("--").args(program))?;
    Ok((socket, child))
}

/// Starts this program again with other arguments.
fn spawn(arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<(Child, Process)> {
    let mut command = Command::new(std::env::current_exe()?);
    let child = arguments(&mut command).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let process = Process::adopt(child.id())?;
    Ok((child, process))
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
