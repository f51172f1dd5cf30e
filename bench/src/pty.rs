//! The least that can run a program on a terminal: a PTY, read and written directly.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pty_process::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::place::Process;

/// The terminal's size everywhere in the benchmark.
pub(crate) const COLS: u16 = 80;
/// See [`COLS`].
pub(crate) const ROWS: u16 = 24;
/// What one read may bring: as much as the session process asks for.
pub(crate) const READ: usize = 64 << 10;
/// Silence after which a measurement is given up.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// A program on a PTY; both end with this value.
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

    /// Reads once, waiting for something to come.
    pub(crate) fn read(&self, buf: &mut [u8]) -> Result<usize> {
        match rustix::io::read(&self.master, buf) {
            Ok(0) | Err(rustix::io::Errno::IO) => bail!("the program ended"),
            Ok(n) => Ok(n),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Reads until `mark` came, and says how many bytes came.
    pub(crate) fn read_until(&self, mark: &[u8]) -> Result<u64> {
        let (mut buf, mut seen, mut total) = (vec![0; READ], Seen::default(), 0);
        loop {
            if !is_readable(self.master.as_fd(), SILENCE) {
                bail!("nothing came for {SILENCE:?}, and not {:?}", String::from_utf8_lossy(mark));
            }
            let n = self.read(&mut buf)?;
            total += n as u64;
            if seen.find(mark, &buf[..n]) {
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
        // What the program started and left in its group goes with it.
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Whether something can be read within a time.
pub(crate) fn is_readable(fd: BorrowedFd<'_>, within: Duration) -> bool {
    let within = Timespec::try_from(within).ok();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], within.as_ref()).is_ok_and(|n| n > 0)
}

/// Looks for a mark in a stream, also where it falls between two reads.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    tail: Vec<u8>,
}

impl Seen {
    /// Whether `mark` came, now that `bytes` came.
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
    fn a_mark_is_found_wherever_it_is_cut() {
        let stream = b"some text@END1@more";
        for first in 0..stream.len() {
            for second in first..stream.len() {
                let mut seen = Seen::default();
                let parts = [&stream[..first], &stream[first..second], &stream[second..]];
                let found = parts.map(|part| seen.find(b"@END1@", part));
                assert!(found.contains(&true), "cut at {first} and {second}");
            }
        }
        let mut seen = Seen::default();
        assert!(!seen.find(b"@END1@", b"@END2@") && !seen.find(b"@END1@", b"@EN") && seen.find(b"@END1@", b"D1@"));
    }
}
