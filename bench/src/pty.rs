//! The minimal way to run a program on a terminal: a PTY, read and written directly.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pty_process::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cleanup::Process;

/// The size of all terminals in the benchmark.
pub(crate) const COLS: u16 = 80;
pub(crate) const ROWS: u16 = 24;
/// The size of a read buffer: as large as that of the session process.
pub(crate) const READ: usize = 64 << 10;
/// If nothing is received for this long, the measurement fails.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// A program on a PTY. Dropping it closes the PTY and kills the program.
#[derive(Debug)]
pub(crate) struct PtyChild {
    master: OwnedFd,
    child: Child,
    _process: Process,
}

impl PtyChild {
    pub(crate) fn spawn<S: AsRef<str>>(argv: &[S], env: &[(String, String)]) -> Result<PtyChild> {
        let (program, args) = argv.split_first().context("no program")?;
        let (master, slave) = pty_process::blocking::open()?;
        master.resize(Size::new(ROWS, COLS))?;
        let child = pty_process::blocking::Command::new(program.as_ref())
            .args(args.iter().map(AsRef::as_ref))
            .env("TERM", "xterm-256color")
            .envs(env.iter().cloned())
            .spawn(slave)
            .with_context(|| program.as_ref().to_owned())?;
        let process = Process::adopt(child.id())?;
        Ok(PtyChild { master: master.into(), child, _process: process })
    }

    /// Reads once; blocks until there is output.
    pub(crate) fn read(&self, buf: &mut [u8]) -> Result<usize> {
        match rustix::io::read(&self.master, buf) {
            Ok(0) | Err(rustix::io::Errno::IO) => bail!("the program ended"),
            Ok(n) => Ok(n),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Reads up to and including `mark`. Returns the number of bytes read.
    pub(crate) fn read_until(&self, mark: &[u8]) -> Result<u64> {
        let (mut buf, mut finder, mut total) = (vec![0; READ], MarkFinder::default(), 0);
        loop {
            if !is_readable(self.master.as_fd(), SILENCE) {
                bail!("no output for {SILENCE:?} while waiting for {:?}", String::from_utf8_lossy(mark));
            }
            let n = self.read(&mut buf)?;
            total += n as u64;
            if finder.find(mark, &buf[..n]) {
                return Ok(total);
            }
        }
    }

    pub(crate) fn write(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let n = rustix::io::write(&self.master, bytes)?;
            bytes = &bytes[n..];
        }
        Ok(())
    }
}

impl AsFd for PtyChild {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

impl Drop for PtyChild {
    fn drop(&mut self) {
        // Also kills what the program started in its process group.
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Waits for `fd` to be readable, for at most `within`.
pub(crate) fn is_readable(fd: BorrowedFd<'_>, within: Duration) -> bool {
    let within = Timespec::try_from(within).ok();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], within.as_ref()).is_ok_and(|n| n > 0)
}

/// Finds a mark in a stream, also if it is split over several reads.
#[derive(Debug, Default)]
pub(crate) struct MarkFinder {
    tail: Vec<u8>,
}

impl MarkFinder {
    /// Takes the next bytes of the stream, and returns whether `mark` ends or lies in them.
    pub(crate) fn find(&mut self, mark: &[u8], bytes: &[u8]) -> bool {
        let Some((&first, keep)) = mark.split_first().map(|(first, rest)| (first, rest.len())) else { return true };
        let edge = keep.min(bytes.len());
        self.tail.extend_from_slice(&bytes[..edge]);
        let across = self.tail.windows(mark.len()).any(|part| part == mark);
        let within = bytes.contains(&first) && bytes.windows(mark.len()).any(|part| part == mark);
        self.tail.extend_from_slice(&bytes[edge..][(bytes.len() - edge).saturating_sub(keep)..]);
        let old = self.tail.len().saturating_sub(keep);
        self.tail.drain(..old);
        across || within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_wherever_it_is_split() {
        let stream = b"some text@END1@more";
        for first in 0..stream.len() {
            for second in first..stream.len() {
                let mut finder = MarkFinder::default();
                let parts = [&stream[..first], &stream[first..second], &stream[second..]];
                let found = parts.map(|part| finder.find(b"@END1@", part));
                assert!(found.contains(&true), "split at {first} and {second}");
            }
        }
        let mut finder = MarkFinder::default();
        assert!(
            !finder.find(b"@END1@", b"@END2@") && !finder.find(b"@END1@", b"@EN") && finder.find(b"@END1@", b"D1@")
        );
    }
}
