//! The agent's program: its pipes, and the lines that travel through them.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use bowline_host::home::SessionDir;
use bowline_host::leftovers::ProcessRecord;
use bowline_host::meta::{AgentMeta, Meta};
use bowline_proto::agent::run::ProgramExit;
use rustix::fs::Mode;
use rustix::process::{Pid, Signal};

use super::super::core::Core;
use super::super::poll::Interest;
use super::super::session::FIRST_OF_BODY;
use super::unwritten::Unwritten;
use crate::agent::LineReader;
use crate::spawn::{SpawnError, check_agent, check_cwd, no_program, with_open_files, with_umask};

// Tokens of the poll.
pub(super) const STDIN: u64 = FIRST_OF_BODY;
pub(super) const STDOUT: u64 = FIRST_OF_BODY + 1;
pub(super) const STDERR: u64 = FIRST_OF_BODY + 2;

const NONE: Interest = Interest { read: false, write: false };

/// A running agent program.
#[derive(Debug)]
pub(in super::super) struct Program {
    pub(super) pid: Pid,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    pub(super) lines: LineReader,
    pub(super) error_lines: LineReader,
    unwritten: Unwritten,
    /// What the poll waits for on standard input.
    stdin_interest: Interest,
    /// Standard output and standard error are in the poll. They are not while nothing is to be read: the poll would report
    /// over and over that the other side has closed them.
    is_read: bool,
    /// Its exit, once it was reaped.
    pub(super) exit: Option<ProgramExit>,
    /// Everything that it printed before its exit was read.
    pub(super) was_read: bool,
    /// The run machine knows that it has closed its standard input or output.
    pub(super) is_reported: bool,
}

/// The outcome of one read of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeRead {
    Data(usize),
    /// There is nothing to read now.
    Empty,
    Closed,
}

impl Program {
    /// Checks the directory and the program, without starting anything. [`Program::spawn`] may still fail.
    pub(super) fn check(meta: &Meta, agent: &AgentMeta) -> Result<(), SpawnError> {
        let cwd = Path::new(meta.cwd.as_os());
        check_cwd(cwd)?;
        let program = agent.command.first().ok_or_else(no_program)?;
        let mut variables = agent.env.iter().chain(&agent.table_env).rev();
        let path = variables.find(|(name, _)| name.as_os() == "PATH").map(|(_, path)| path.as_os());
        check_agent(program.as_os(), cwd, path)
    }

    /// Starts the program in a process group of its own, with this umask, and with these arguments after those of the
    /// table.
    pub(super) fn spawn(
        dir: &SessionDir,
        meta: &Meta,
        agent: &AgentMeta,
        arguments: &[String],
        umask: Mode,
    ) -> Result<Program, SpawnError> {
        let cwd = Path::new(meta.cwd.as_os());
        check_cwd(cwd)?;
        let [program, args @ ..] = agent.command.as_slice() else { return Err(no_program()) };
        let mut command = Command::new(program.as_os());
        command
            .args(args.iter().map(|arg| arg.as_os()))
            .args(arguments)
            .current_dir(cwd)
            .env_clear()
            .envs(agent.env.iter().chain(&agent.table_env).map(|(name, value)| (name.as_os(), value.as_os())))
            .env(OsStr::new("BOWLINE_SESSION"), meta.id.as_str())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let spawned = with_open_files(meta.open_files, || with_umask(umask, || command.spawn()));
        // It may have been removed since it was last checked.
        let failed =
            |error| Program::check(meta, agent).err().unwrap_or_else(|| SpawnError::of_agent(program.as_os(), error));
        let mut child = spawned.map_err(failed)?;
        let system = |error: io::Error| SpawnError::System(error);
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or_else(|| system(io::ErrorKind::Other.into()))?;
        // If this fails, it is still known by its environment, should it outlive this process.
        let _ = ProcessRecord::of(pid).map(|record| record.write(dir));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let nonblocking = || {
            stdin.as_ref().map_or(Ok(()), |pipe| rustix::io::ioctl_fionbio(pipe, true))?;
            stdout.as_ref().map_or(Ok(()), |pipe| rustix::io::ioctl_fionbio(pipe, true))?;
            stderr.as_ref().map_or(Ok(()), |pipe| rustix::io::ioctl_fionbio(pipe, true))
        };
        nonblocking().map_err(|errno| system(errno.into()))?;
        Ok(Program {
            pid,
            stdin,
            stdout,
            stderr,
            lines: LineReader::default(),
            error_lines: LineReader::default(),
            unwritten: Unwritten::default(),
            stdin_interest: NONE,
            is_read: true,
            exit: None,
            was_read: false,
            is_reported: false,
        })
    }

    /// Adds the pipes to the poll.
    pub(super) fn register(&self, core: &Core) -> io::Result<()> {
        self.stdin.as_ref().map_or(Ok(()), |pipe| core.poll.add(pipe, STDIN, self.stdin_interest))?;
        self.register_output(core)
    }

    fn register_output(&self, core: &Core) -> io::Result<()> {
        self.stdout.as_ref().map_or(Ok(()), |pipe| core.poll.add(pipe, STDOUT, Interest::READ))?;
        self.stderr.as_ref().map_or(Ok(()), |pipe| core.poll.add(pipe, STDERR, Interest::READ))
    }

    /// Updates what the poll waits for: to read, unless `paused`; to write, if there is anything.
    pub(super) fn update_interest(&mut self, core: &Core, paused: bool) {
        let stdin = Interest { write: !self.unwritten.rest().is_empty(), ..NONE };
        if let Some(pipe) = &self.stdin
            && stdin != self.stdin_interest
            && core.poll.modify(pipe, STDIN, stdin).is_ok()
        {
            self.stdin_interest = stdin;
        }
        let is_read = !paused && !self.unwritten.is_full();
        if is_read && !self.is_read {
            self.is_read = self.register_output(core).is_ok();
        } else if !is_read && self.is_read {
            self.stdout.iter().for_each(|pipe| core.poll.remove(pipe));
            self.stderr.iter().for_each(|pipe| core.poll.remove(pipe));
            self.is_read = false;
        }
    }

    /// Standard input has room, or the program has closed it.
    pub(super) fn handle_stdin(&mut self, core: &Core, hung_up: bool) {
        self.flush(core);
        if hung_up {
            self.close(core, STDIN);
        }
    }

    /// Reads once from standard output or standard error.
    pub(super) fn read(&mut self, core: &Core, token: u64, buf: &mut [u8]) -> PipeRead {
        let read = match token {
            STDOUT => self.stdout.as_mut().map(|pipe| pipe.read(buf)),
            _ => self.stderr.as_mut().map(|pipe| pipe.read(buf)),
        };
        match read {
            Some(Ok(n)) if n > 0 => PipeRead::Data(n),
            Some(Err(error)) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                PipeRead::Empty
            }
            None => PipeRead::Closed,
            Some(Ok(_) | Err(_)) => {
                self.close(core, token);
                PipeRead::Closed
            }
        }
    }

    /// Queues a line for standard input. What comes after the program closed it is dropped: its exit follows.
    pub(super) fn write_line(&mut self, core: &Core, line: String) {
        self.unwritten.push_line(line);
        self.flush(core);
    }

    /// Writes as much as standard input accepts.
    pub(super) fn flush(&mut self, core: &Core) {
        while let (Some(stdin), rest @ [_, ..]) = (&mut self.stdin, self.unwritten.rest()) {
            match stdin.write(rest) {
                Ok(n) => self.unwritten.handle_written(n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.close(core, STDIN),
            }
        }
        if self.stdin.is_none() {
            self.unwritten = Unwritten::default();
        }
    }

    /// Whether it has closed its standard input or output, or was cut off from it.
    pub(super) fn has_closed_pipes(&self) -> bool {
        self.stdin.is_none() || self.stdout.is_none()
    }

    /// Closes standard input. What was not written is dropped.
    pub(super) fn close_stdin(&mut self, core: &Core) {
        self.close(core, STDIN);
        self.unwritten = Unwritten::default();
    }

    /// Removes the pipes from the poll and closes them.
    pub(super) fn close_all(&mut self, core: &Core) {
        [STDIN, STDOUT, STDERR].into_iter().for_each(|token| self.close(core, token));
    }

    fn close(&mut self, core: &Core, token: u64) {
        match token {
            STDIN => drop(self.stdin.take().inspect(|pipe| core.poll.remove(pipe))),
            STDOUT => drop(self.stdout.take().inspect(|pipe| core.poll.remove(pipe))),
            _ => drop(self.stderr.take().inspect(|pipe| core.poll.remove(pipe))),
        }
    }
}

/// A program that was not reaped must not outlive the session process, as after a start that failed.
impl Drop for Program {
    fn drop(&mut self) {
        if self.exit.is_none() {
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
    }
}
