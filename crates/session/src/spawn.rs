//! Checks a directory and a program before it is started, and sets what a new process inherits.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use bowline_host::program::{self, Unusable};
use rustix::fs::Mode;

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The working directory is missing or not usable.
    #[error("{path}: {reason}")]
    Cwd { path: String, reason: String },
    /// The program is missing or not executable.
    #[error("{program}: {reason}")]
    Program { program: String, reason: String },
    /// The same of an agent's program, as a sentence.
    #[error("{0}")]
    Agent(String),
    /// The system could not provide a PTY, a pipe or a process.
    #[error("cannot start the program: {0}")]
    System(#[source] io::Error),
}

impl SpawnError {
    /// The error of a failed `exec`.
    pub(crate) fn of_program(program: String, error: io::Error) -> SpawnError {
        match error.kind() {
            io::ErrorKind::NotFound => SpawnError::Program { program, reason: "no such program".into() },
            io::ErrorKind::PermissionDenied => SpawnError::Program { program, reason: "not executable".into() },
            io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => SpawnError::System(error),
            _ => SpawnError::Program { program, reason: error.to_string() },
        }
    }

    /// The same of an agent's program that [`check_agent`] finds. Without its path: those of the server are not for
    /// every caller.
    pub(crate) fn of_agent(program: &OsStr, error: io::Error) -> SpawnError {
        let name = Path::new(program).file_name().unwrap_or(program).display();
        match (Unusable::of_exec(error.kind()), error.kind()) {
            (Some(why), _) => SpawnError::Agent(why.explain(program)),
            (None, io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock) => SpawnError::System(error),
            (None, _) => SpawnError::Agent(format!("`{name}` could not be started: {error}")),
        }
    }
}

/// Checks the directory before `exec`, whose error is the same for a missing directory and a missing program.
pub(crate) fn check_cwd(cwd: &Path) -> Result<(), SpawnError> {
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

pub(crate) fn no_program() -> SpawnError {
    SpawnError::Program { program: String::new(), reason: "no program was given".into() }
}

/// Looks for the program in the places where `exec` looks.
pub(crate) fn check_program(program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<(), SpawnError> {
    let unusable =
        |why: Unusable| SpawnError::Program { program: program.display().to_string(), reason: why.reason().into() };
    program::find(program, cwd, path).map(drop).map_err(unusable)
}

/// The same for the program of an agent, whose errors are sentences for users.
pub(crate) fn check_agent(program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<(), SpawnError> {
    program::find(program, cwd, path).map(drop).map_err(|why| SpawnError::Agent(why.explain(program)))
}

/// Runs `spawn` with the user's umask. The session process itself uses a stricter one, for its own files.
pub(crate) fn with_umask<T>(umask: Mode, spawn: impl FnOnce() -> T) -> T {
    let own = rustix::process::umask(umask);
    let spawned = spawn();
    rustix::process::umask(own);
    spawned
}

/// Runs `spawn` with the user's soft limit of open files. The session process raises its own limit to the maximum.
pub(crate) fn with_open_files<T>(soft: Option<u64>, spawn: impl FnOnce() -> T) -> T {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: soft.or(before.current), maximum: before.maximum });
    let spawned = spawn();
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    spawned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_exec_of_an_agent_shows_no_path_of_the_server() {
        for (errno, words) in [
            (rustix::io::Errno::NOENT, "`qwen` cannot be run: the program that should interpret it does not exist"),
            (rustix::io::Errno::ACCESS, "`qwen` cannot be run: it may not be executed"),
            (rustix::io::Errno::NOEXEC, "`qwen` could not be started: Exec format error (os error 8)"),
        ] {
            assert_eq!(SpawnError::of_agent("/opt/secret/qwen".as_ref(), errno.into()).to_string(), words);
        }
        let busy = SpawnError::of_agent("qwen".as_ref(), rustix::io::Errno::AGAIN.into());
        assert!(matches!(busy, SpawnError::System(_)), "another attempt may succeed");
    }
}
