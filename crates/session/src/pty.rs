//! The terminal's own end: a PTY and the program on it.

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

/// A running program and the master side of its PTY, which never blocks.
#[derive(Debug)]
pub struct Pty {
    master: OwnedFd,
    child: Pid,
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The directory is not one.
    #[error("{path}: {reason}")]
    Cwd {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The program is not there or cannot be run.
    #[error("{program}: {reason}")]
    Program {
        /// Which.
        program: String,
        /// Why.
        reason: String,
    },
    /// No PTY, no process: the machine is out of something.
    #[error("cannot start a terminal: {0}")]
    System(#[source] io::Error),
}

/// What a read of the PTY brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtyRead {
    /// This many bytes.
    Data(usize),
    /// Nothing now.
    Empty,
    /// Nobody holds the other side.
    Closed,
}

impl Pty {
    /// Whether what `meta` and `terminal` ask for can be started, as far as can be told without doing it.
    pub fn check(meta: &Meta, terminal: &TerminalMeta) -> Result<(), SpawnError> {
        let cwd = Path::new(meta.cwd.as_os());
        check_cwd(cwd)?;
        let program = terminal.argv.first().ok_or_else(no_program)?;
        let path = terminal.env.iter().rfind(|(name, _)| name.as_os() == "PATH").map(|(_, path)| path.as_os());
        check_program(program.as_os(), cwd, path)
    }

    /// Starts what `meta` and `terminal` ask for, with this umask.
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

    /// The program's process.
    pub fn child(&self) -> Pid {
        self.child
    }

    /// Reads what the program wrote.
    pub fn read(&self, buf: &mut [u8]) -> io::Result<PtyRead> {
        match rustix::io::read(&self.master, buf) {
            Ok(0) | Err(Errno::IO) => Ok(PtyRead::Closed),
            Ok(n) => Ok(PtyRead::Data(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(PtyRead::Empty),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes what the user typed: as much as the terminal takes now.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.master, bytes) {
            Ok(n) => Ok(n),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Tells the program its new size.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        set_size(self.master.as_fd(), size)
    }

    /// The process group that the terminal's keys reach.
    pub fn foreground(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.master).ok()
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

/// What every program in a session finds in its environment.
fn own_environment(id: &SessionId) -> [(&'static str, String); 3] {
    [("TERM", "xterm-256color".into()), ("COLORTERM", "truecolor".into()), ("BOWLINE_SESSION", id.to_string())]
}

/// A missing directory and a missing program look the same to `exec`, so the directory is looked at first.
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
    SpawnError::Program { program: String::new(), reason: "no program was named".into() }
}

/// Looks for a program where `exec` will.
fn check_program(program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<(), SpawnError> {
    let places: Vec<_> = if program.as_bytes().contains(&b'/') {
        vec![cwd.join(program)]
    } else {
        let path = path.unwrap_or(OsStr::new("/usr/local/bin:/bin:/usr/bin"));
        std::env::split_paths(path).map(|dir| cwd.join(dir).join(program)).collect()
    };
    let runs = |place: &PathBuf| place.is_file() && rustix::fs::access(place, rustix::fs::Access::EXEC_OK).is_ok();
    if places.iter().any(runs) {
        return Ok(());
    }
    let hidden = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let is_there = places.iter().any(|place| place.metadata().map_or_else(hidden, |_| true));
    let reason = if is_there { "not executable" } else { "no such program" };
    Err(SpawnError::Program { program: program.display().to_string(), reason: reason.into() })
}

/// The session process keeps its files to itself; its program makes them as its owner does elsewhere.
fn with_umask<T>(umask: Mode, spawn: impl FnOnce() -> T) -> T {
    let own = rustix::process::umask(umask);
    let spawned = spawn();
    rustix::process::umask(own);
    spawned
}

/// The session process may need many descriptors; its program gets the limit that its owner had.
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
