//! Runs a program that prints its version: within a time, with bounded output, and leaving no process behind.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Command;
use tokio::time::Instant;

/// How long a program may take to print its version. After that it is killed.
pub(super) const RUN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a program that was killed may take to end. One that waits for a dead network mount may never end; it is
/// left to the system.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// The most output in bytes. A program that prints more is killed.
const MAX_OUTPUT: usize = 8 << 10;

/// Why a program did not print its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It cannot be executed, for example because its interpreter is missing.
    NotStarted(io::ErrorKind),
    /// It ended with an error: with this code, or with a signal.
    Exit(Option<i32>),
    TimedOut,
    /// It printed more than [`MAX_OUTPUT`].
    Flood,
}

/// Runs `program --version`, and returns what it printed on its standard output. Its whole process group is killed
/// when it has ended, also if this future is dropped.
pub(super) async fn version(
    program: &Path,
    env: &[(OsString, OsString)],
    cwd: &Path,
    deadline: Instant,
) -> Result<String, Failure> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let not_started = |error: io::Error| Failure::NotStarted(error.kind());
    let mut child = command.spawn().map_err(not_started)?;
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or(Failure::Exit(None))?;
    // Dropped before `child`, which is not reaped until then: so the id of the group is not another's.
    let group = Group(pid);
    let exited = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| not_started(errno.into()))?;
    let exited = watch(exited).map_err(not_started)?;
    let stdout = child.stdout.take().ok_or(Failure::Exit(None))?.into_owned_fd().map_err(not_started)?;
    let stdout = Stdout::new(stdout).map_err(not_started)?;
    let output = tokio::time::timeout_at(deadline, stdout.read_until_exit(&exited)).await;
    drop(group);
    let ended = tokio::time::timeout(END_TIMEOUT, child.wait()).await;
    let output = output.map_err(|_| Failure::TimedOut)?.ok_or(Failure::Flood)?;
    let status = ended.map_err(|_| Failure::TimedOut)?.map_err(not_started)?;
    if !status.success() {
        return Err(Failure::Exit(status.code()));
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// The pipe of a program's standard output, and what was read from it.
struct Stdout {
    pipe: AsyncFd<OwnedFd>,
    output: Vec<u8>,
}

/// The outcome of reading all that a pipe has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drained {
    Empty,
    Closed,
    /// The output is too long.
    Flood,
}

impl Stdout {
    fn new(pipe: OwnedFd) -> io::Result<Stdout> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Stdout { pipe: watch(pipe)?, output: Vec::new() })
    }

    /// Reads what a program prints before it exits. Its descendants may keep the pipe open. `None` if it is too much.
    async fn read_until_exit(mut self, exited: &AsyncFd<OwnedFd>) -> Option<Vec<u8>> {
        let mut is_open = true;
        loop {
            let drained = tokio::select! {
                readable = self.pipe.readable(), if is_open => {
                    readable.ok()?.clear_ready();
                    self.drain()
                }
                _ = exited.readable() => match self.drain() {
                    Drained::Flood => return None,
                    Drained::Empty | Drained::Closed => return Some(self.output),
                },
            };
            match drained {
                Drained::Empty => {}
                Drained::Closed => is_open = false,
                Drained::Flood => return None,
            }
        }
    }

    fn drain(&mut self) -> Drained {
        let mut buffer = [0; 4096];
        while self.output.len() <= MAX_OUTPUT {
            match rustix::io::read(&self.pipe, &mut buffer) {
                Ok(n @ 1..) => self.output.extend(buffer.iter().take(n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Drained::Empty,
                Ok(0) | Err(_) => return Drained::Closed,
            }
        }
        Drained::Flood
    }
}

fn watch(file: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[allow(deprecated, reason = "its replacement is unsafe, for descriptors that may change; an OwnedFd's never does")]
    AsyncFd::with_interest(file, Interest::READABLE)
}

/// The process group of a program. Killed on drop.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Programs, wait_until};
    use super::*;

    async fn run(programs: &Programs, script: &str, within: Duration) -> Result<String, Failure> {
        let program = programs.script("program", &format!("#!/bin/sh\n{script}\n"));
        version(&program, &programs.env(), programs.path(), Instant::now() + within).await
    }

    /// A time that no test takes.
    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn what_a_program_prints_on_its_standard_output_is_returned() {
        let programs = Programs::new();
        let script =
            r#"echo "$1 in $(pwd -P)"; echo noise 9.9.9 >&2; cat; env | grep -c SECRET_OF_THE_GATEWAY; exit 0"#;
        let cwd = programs.path().canonicalize().unwrap();
        let expected = format!("--version in {}\n0\n", cwd.display());
        assert_eq!(run(&programs, script, LONG).await, Ok(expected));
    }

    #[tokio::test]
    async fn a_program_that_fails_is_reported_with_its_exit() {
        let programs = Programs::new();
        assert_eq!(run(&programs, "echo 1.2.3; exit 7", LONG).await, Err(Failure::Exit(Some(7))));
        assert_eq!(run(&programs, "kill -KILL $$", LONG).await, Err(Failure::Exit(None)));
        let bad = programs.script("bad", "#!/no/such/interpreter\n");
        let refused = version(&bad, &programs.env(), programs.path(), Instant::now() + LONG).await;
        assert_eq!(refused, Err(Failure::NotStarted(io::ErrorKind::NotFound)));
    }

    /// Only its process group is waited for and ended: neither the pipe nor the children keep it.
    #[tokio::test]
    async fn r52_a_child_that_keeps_the_pipe_open_is_not_waited_for_and_is_killed() {
        let programs = Programs::new();
        let script = "sleep 600 & echo $! >child; echo 1.2.3";
        assert_eq!(run(&programs, script, LONG).await, Ok("1.2.3\n".to_owned()));
        wait_until("the child is killed", || !programs.is_running("child"));
    }

    #[tokio::test]
    async fn r52_a_program_that_hangs_is_killed_with_its_children() {
        let programs = Programs::new();
        let script = "trap '' TERM HUP; echo $$ >program.pid; sleep 600 & echo $! >child; wait; sleep 600";
        // On a busy machine, it may not have come far enough by its first deadline.
        for within in [Duration::from_millis(200), Duration::from_secs(5), Duration::from_secs(60)] {
            assert_eq!(run(&programs, script, within).await, Err(Failure::TimedOut));
            wait_until("all is killed", || !programs.is_running("program.pid") && !programs.is_running("child"));
            if programs.path().join("child").exists() {
                return;
            }
        }
        panic!("the program was never started");
    }

    #[tokio::test]
    async fn r52_a_program_that_prints_without_end_is_killed() {
        let programs = Programs::new();
        assert_eq!(run(&programs, "echo $$ >program.pid; yes", LONG).await, Err(Failure::Flood));
        wait_until("it is killed", || !programs.is_running("program.pid"));
        // Also if a child prints, and the program itself has ended.
        let flood = run(&programs, "yes & echo $! >child; sleep 600", LONG).await;
        assert_eq!(flood, Err(Failure::Flood));
        wait_until("the child is killed", || !programs.is_running("child"));
    }

    #[tokio::test]
    async fn a_program_that_closes_its_output_is_waited_for() {
        let programs = Programs::new();
        assert_eq!(run(&programs, "echo 1.2; exec >&-; exit 3", LONG).await, Err(Failure::Exit(Some(3))));
    }

    #[tokio::test]
    async fn r52_a_program_is_killed_when_nobody_waits_for_it_any_more() {
        let programs = Programs::new();
        let script = "#!/bin/sh\nsleep 600 & echo $! >child; echo $$ >program.pid; wait\n";
        let program = programs.script("hangs", script);
        let (env, cwd) = (programs.env(), programs.path().to_owned());
        let task = tokio::spawn(async move { version(&program, &env, &cwd, Instant::now() + LONG).await });
        while !programs.is_running("program.pid") {
            tokio::task::yield_now().await;
        }
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        wait_until("all is killed", || !programs.is_running("program.pid") && !programs.is_running("child"));
    }
}
