//! A PTY and the program that runs on it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bowline_proto::ids::SessionId;
use bowline_proto::size::Size;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::termios::Winsize;

use bowline_host::meta::{Meta, TerminalMeta};

/// A running program and the master side of its PTY, which is non-blocking.
#[derive(Debug)]
pub struct Pty {
    master: OwnedFd,
    child: Pid,
}

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The working directory is missing or not usable.
    #[error("{path}: {reason}")]
    Cwd { path: String, reason: String },
    /// The program is missing or not executable.
    #[error("{program}: {reason}")]
    Program { program: String, reason: String },
    /// The system could not provide a PTY or a process.
    #[error("cannot start a terminal: {0}")]
    System(#[source] io::Error),
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
                pty_process::Error::Io(error) => match error.kind() {
                    io::ErrorKind::NotFound => SpawnError::Program { program, reason: "no such program".into() },
                    io::ErrorKind::PermissionDenied => SpawnError::Program { program, reason: "not executable".into() },
                    io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => SpawnError::System(error),
                    _ => SpawnError::Program { program, reason: error.to_string() },
                },
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

/// Checks the directory before `exec`, whose error is the same for a missing directory and a missing program.
fn check_cwd(cwd: &Path) -> Result<(), SpawnError> {
    let bad = |reason: String| SpawnError::Cwd { path: cwd.display().to_string(), reason };
    if !cwd.is_absolute() {
        return Err(bad("not an absolute path".into()));
    }
    let found = std::fs::metadata(cwd).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => bad("no such directory".into()),
        _ => bad(error.to_string()),
    })?;
    if !found.is_dir() {
        return Err(bad("not a directory".into()));
    }
    rustix::fs::access(cwd, rustix::fs::Access::EXEC_OK).map_err(|errno| bad(io::Error::from(errno).to_string()))
}

fn no_program() -> SpawnError {
    SpawnError::Program { program: String::new(), reason: "no program was given".into() }
}

/// Looks for the program in the places where `exec` looks.
fn check_program(program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<(), SpawnError> {
    let candidates: Vec<_> = if program.as_bytes().contains(&b'/') {
        vec![cwd.join(program)]
    } else {
        let path = path.unwrap_or(OsStr::new("/usr/local/bin:/bin:/usr/bin"));
        std::env::split_paths(path).map(|dir| cwd.join(dir).join(program)).collect()
    };
    let can_run = |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if candidates.iter().any(can_run) {
        return Ok(());
    }
    let hidden = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let exists = candidates.iter().any(|path| path.metadata().map_or_else(hidden, |_| true));
    let reason = match exists {
        true if candidates.iter().any(|path| path.is_dir()) => "is a directory",
        true => "not executable",
        false => "no such program",
    };
    Err(SpawnError::Program { program: program.display().to_string(), reason: reason.into() })
}

/// Runs `spawn` with the user's umask. The session process itself uses a stricter one, for its own files.
fn with_umask<T>(umask: Mode, spawn: impl FnOnce() -> T) -> T {
    let own = rustix::process::umask(umask);
    let spawned = spawn();
    rustix::process::umask(own);
    spawned
}

/// Runs `spawn` with the user's soft limit of open files. The session process raises its own limit to the maximum.
fn with_open_files<T>(soft: Option<u64>, spawn: impl FnOnce() -> T) -> T {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: soft.or(before.current), maximum: before.maximum });
    let spawned = spawn();
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    spawned
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
