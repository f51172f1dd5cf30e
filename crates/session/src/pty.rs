//! A PTY and the program that runs on it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use bowline_proto::ids::SessionId;
use bowline_proto::size::Size;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::termios::Winsize;

use bowline_host::meta::{Meta, TerminalMeta};

use crate::spawn::{SpawnError, check_cwd, check_program, no_program, with_open_files, with_umask};

/// A running program and the master side of its PTY, which is non-blocking.
#[derive(Debug)]
pub struct Pty {
    master: OwnedFd,
    child: Pid,
}

/// The outcome of one read of the PTY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtyRead {
    /// This many bytes were read.
    Data(usize),
    /// There is nothing to read now.
    Empty,
    /// No process holds the other side open.
    Closed,
}

impl Pty {
    /// Checks the directory and the program, without starting anything. [`Pty::spawn`] may still fail.
    pub fn check(meta: &Meta, terminal: &TerminalMeta) -> Result<(), SpawnError> {
        let cwd = Path::new(meta.cwd.as_os());
        check_cwd(cwd)?;
        let program = terminal.argv.first().ok_or_else(no_program)?;
        let path = terminal.env.iter().rfind(|(name, _)| name.as_os() == "PATH").map(|(_, path)| path.as_os());
        check_program(program.as_os(), cwd, path)
    }

    /// Starts the program that `meta` and `terminal` describe, with this umask.
    pub fn spawn(meta: &Meta, terminal: &TerminalMeta, umask: Mode) -> Result<Pty, SpawnError> {
        let cwd = Path::new(meta.cwd.as_os());
        check_cwd(cwd)?;
        let [program, args @ ..] = terminal.argv.as_slice() else {
            return Err(no_program());
        };
        let (master, slave) = pty_process::blocking::open().map_err(system)?;
        set_size(master.as_fd(), terminal.size).map_err(SpawnError::System)?;
        let mut command = pty_process::blocking::Command::new(program.as_os())
            .args(args.iter().map(|arg| arg.as_os()))
            .current_dir(cwd)
            .env_clear()
            .envs(terminal.env.iter().map(|(name, value)| (name.as_os(), value.as_os())))
            .envs(own_environment(&meta.id).iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value))));
        if let Some(arg0) = &terminal.arg0 {
            command = command.arg0(arg0.as_os());
        }
        let spawned = with_open_files(meta.open_files, || with_umask(umask, || command.spawn(slave)));
        let child = spawned.map_err(|error| {
            let program = program.lossy();
            match error {
                pty_process::Error::Io(error) => SpawnError::of_program(program, error),
                other => system(other),
            }
        })?;
        let master = OwnedFd::from(master);
        rustix::io::ioctl_fionbio(&master, true).map_err(|errno| SpawnError::System(errno.into()))?;
        let child = Pid::from_raw(child.id() as i32).ok_or_else(|| SpawnError::System(io::ErrorKind::Other.into()))?;
        Ok(Pty { master, child })
    }

    pub fn child(&self) -> Pid {
        self.child
    }

    pub fn read(&self, buf: &mut [u8]) -> io::Result<PtyRead> {
        match rustix::io::read(&self.master, buf) {
            Ok(0) | Err(Errno::IO) => Ok(PtyRead::Closed),
            Ok(n) => Ok(PtyRead::Data(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(PtyRead::Empty),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes input for the program. Returns how many bytes the PTY accepted, 0 if its buffer is full.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.master, bytes) {
            Ok(n) => Ok(n),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sets the terminal's size; the kernel sends the program SIGWINCH.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        set_size(self.master.as_fd(), size)
    }

    /// The foreground process group, which Ctrl-C and the like signal.
    pub fn foreground(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.master).ok()
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

/// Environment variables that override the user's in every session.
fn own_environment(id: &SessionId) -> [(&'static str, String); 3] {
    [("TERM", "xterm-256color".into()), ("COLORTERM", "truecolor".into()), ("BOWLINE_SESSION", id.to_string())]
}

fn set_size(fd: BorrowedFd<'_>, size: Size) -> io::Result<()> {
    let winsize = Winsize { ws_row: size.rows(), ws_col: size.cols(), ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(fd, winsize).map_err(io::Error::from)
}

fn system(error: pty_process::Error) -> SpawnError {
    SpawnError::System(match error {
        pty_process::Error::Io(error) => error,
        other => io::Error::other(other.to_string()),
    })
}
