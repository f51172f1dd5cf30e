//! The starter's side of a new session process: sends the start request and reads its reports, each within a deadline.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use bowline_proto::ids::SessionId;
use bowline_proto::problem::Code;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::launch::Launcher;

/// The longest report in bytes; a longer one is an error.
const MAX_REPORT: usize = 64 << 10;
/// How long to wait for a killed process. One that hangs in the kernel may take longer, and is reaped later.
const KILLED_WITHIN: Duration = Duration::from_secs(2);

/// A report of a session process: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// Everything but the program is ready. The process waits for a line from the starter before it runs the program.
    Prepared,
    /// The session is running.
    Ready,
    /// The session could not be started, and its files are removed.
    Failed { code: Code, message: String },
}

/// A session process that has not reported [`Report::Ready`] yet.
#[derive(Debug)]
pub(crate) struct StartingProcess {
    child: Child,
    /// `None` once the process has closed it.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Bytes read but not parsed yet.
    received: Vec<u8>,
    /// How long each write or report may take.
    timeout: Duration,
}

impl StartingProcess {
    pub(crate) fn spawn(launcher: &Launcher, id: &SessionId) -> io::Result<StartingProcess> {
        let mut child = launcher.spawn(id)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        rustix::io::ioctl_fionbio(&stdin, true)?;
        rustix::io::ioctl_fionbio(&stdout, true)?;
        let timeout = launcher.report_within();
        Ok(StartingProcess { child, stdin: Some(stdin), stdout, received: Vec::new(), timeout })
    }

    /// Sends a line. Fails with `TimedOut` if the process does not read it. If the process has closed the pipe, this
    /// succeeds: its report, or its exit, says why.
    pub(crate) fn send(&mut self, mut line: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + self.timeout;
        while let (Some(stdin), false) = (&mut self.stdin, line.is_empty()) {
            match stdin.write(line) {
                Ok(written) => line = &line[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(stdin, PollFlags::OUT, deadline)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.stdin = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for the next report. Fails with `TimedOut` if there is none, with `UnexpectedEof` if the process ended.
    pub(crate) fn receive(&mut self) -> io::Result<Report> {
        let deadline = Instant::now() + self.timeout;
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Ok(serde_json::from_slice(&line)?);
            }
            let mut chunk = [0; 4096];
            match self.stdout.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) if self.received.len() + n > MAX_REPORT => return Err(io::ErrorKind::InvalidData.into()),
                Ok(n) => self.received.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&self.stdout, PollFlags::IN, deadline)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Leaves the process running. A starter that runs longer, such as a gateway, reaps it when it ends.
    pub(crate) fn detach(self) {
        reap(self.child);
    }

    /// Closes the pipe, upon which the process removes its files and exits. Returns its exit status.
    pub(crate) fn abort(mut self) -> String {
        self.stdin = None;
        if !self.has_ended(self.timeout) {
            return self.kill();
        }
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Kills the process. Returns its exit status.
    pub(crate) fn kill(mut self) -> String {
        let _ = self.child.kill();
        if self.has_ended(KILLED_WITHIN) {
            return self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        }
        reap(self.child);
        "it did not end after SIGKILL".to_owned()
    }

    fn has_ended(&self, timeout: Duration) -> bool {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return false };
        wait(&process, PollFlags::IN, Instant::now() + timeout).is_ok()
    }
}

/// Waits until a descriptor is ready; fails with `TimedOut` at the deadline.
fn wait(fd: &impl AsFd, flags: PollFlags, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut [PollFd::new(fd, flags)], left.try_into().ok().as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Reaps a child on a thread. If no thread can be started, the child stays a zombie until this process ends.
fn reap(mut child: Child) {
    let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(move || child.wait());
}
