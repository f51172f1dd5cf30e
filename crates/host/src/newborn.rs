//! A session process that was just run: it is told its order and heard within a deadline, or ended.

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

/// The longest report.
const MAX_REPORT: usize = 64 << 10;
/// How long a killed process is waited for; one that hangs in the kernel may take longer, and is left to it.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

/// What a session process reports, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// Everything but the program is there. It waits for a word before it starts that.
    Prepared,
    /// The session lives.
    Ready,
    /// It does not, and nothing is left of it.
    Failed {
        /// A problem code of the protocol.
        code: Code,
        /// For people.
        message: String,
    },
}

/// The process, its pipes, and how long it may be silent.
#[derive(Debug)]
pub(crate) struct Newborn {
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    heard: Vec<u8>,
    within: Duration,
}

impl Newborn {
    /// Runs the process of a session.
    pub(crate) fn run(launcher: &Launcher, id: &SessionId) -> io::Result<Newborn> {
        let mut child = launcher.spawn(id)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        rustix::io::ioctl_fionbio(&to, true)?;
        rustix::io::ioctl_fionbio(&from, true)?;
        Ok(Newborn { child, to: Some(to), from, heard: Vec::new(), within: launcher.silence() })
    }

    /// Tells it a line. `TimedOut` when it does not take it. One that is gone says why by its report, or by its end.
    pub(crate) fn tell(&mut self, mut line: &[u8]) -> io::Result<()> {
        let until = Instant::now() + self.within;
        while let (Some(to), false) = (&mut self.to, line.is_empty()) {
            match to.write(line) {
                Ok(taken) => line = &line[taken..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(to, PollFlags::OUT, until)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.to = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for its next report. `TimedOut` when it says nothing, `UnexpectedEof` when it ended without a word.
    pub(crate) fn hear(&mut self) -> io::Result<Report> {
        let until = Instant::now() + self.within;
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                return Ok(serde_json::from_slice(&line)?);
            }
            let mut chunk = [0; 4096];
            match self.from.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) if self.heard.len() + n > MAX_REPORT => return Err(io::ErrorKind::InvalidData.into()),
                Ok(n) => self.heard.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&self.from, PollFlags::IN, until)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets it live. A starter that lives longer (a gateway) reaps it one day.
    pub(crate) fn let_live(self) {
        reap(self.child);
    }

    /// Takes back the word that it waits for, so that it removes what it made, and waits for its end. How it ended.
    pub(crate) fn dismiss(mut self) -> String {
        self.to = None;
        if !self.has_ended(self.within) {
            return self.kill();
        }
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Ends it. How it ended.
    pub(crate) fn kill(mut self) -> String {
        let _ = self.child.kill();
        if self.has_ended(ENDED_WITHIN) {
            return self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        }
        reap(self.child);
        "it does not even die".to_owned()
    }

    fn has_ended(&self, within: Duration) -> bool {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let Some(process) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return false };
        wait(&process, PollFlags::IN, Instant::now() + within).is_ok()
    }
}

/// Waits until it can be read or written, but no longer than that.
fn wait(fd: &impl AsFd, what: PollFlags, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut [PollFd::new(fd, what)], left.try_into().ok().as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Waits for a child beside everything else. Without a thread to spare it stays a zombie until this process ends.
fn reap(mut child: Child) {
    let _ = std::thread::Builder::new().stack_size(64 << 10).spawn(move || child.wait());
}
