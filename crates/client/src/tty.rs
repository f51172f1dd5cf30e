//! The user's terminal: raw while attached, and put back as it was whatever happens.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use bowline_proto::size::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, isatty, tcflush, tcgetattr, tcgetwinsize, tcsetattr, ttyname,
};

/// How long leaving waits for a terminal that takes nothing of what is written to it, such as one behind an `ssh` that
/// stalls. Past it, the rest is lost, and with it what would have put the terminal's modes back.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no terminal to attach.
#[derive(Debug, thiserror::Error)]
pub enum TtyError {
    /// Standard input or output is something else.
    #[error("standard {0} is not a terminal")]
    NotATerminal(&'static str),
    /// The terminal's settings cannot be read or changed.
    #[error("cannot set up the terminal: {0}")]
    Settings(#[source] io::Error),
}

/// The terminal on standard input and output, in raw mode until dropped.
#[derive(Debug)]
pub struct Tty {
    /// What the settings were.
    saved: Termios,
    /// A description of our own, so that not waiting on it changes nothing for the shell that shares ours.
    output: Option<OwnedFd>,
}

impl Tty {
    /// Makes the terminal raw: keys arrive one by one, and nothing is done to output.
    pub fn open() -> Result<Tty, TtyError> {
        for (fd, name) in [(stdin(), "input"), (stdout(), "output")] {
            if !isatty(fd) {
                return Err(TtyError::NotATerminal(name));
            }
        }
        let saved = tcgetattr(stdin()).map_err(|error| TtyError::Settings(error.into()))?;
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let output = ttyname(stdout(), Vec::new()).and_then(|path| rustix::fs::open(path, flags, Mode::empty())).ok();
        let tty = Tty { saved, output };
        tty.make_raw()?;
        Ok(tty)
    }

    /// Makes it raw again, after somebody else may have changed it.
    pub fn make_raw(&self) -> Result<(), TtyError> {
        let mut raw = self.saved.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(|error| TtyError::Settings(error.into()))
    }

    /// The window's size, within the bounds of a terminal. A terminal that does not know is 80 by 24.
    pub fn size(&self) -> Size {
        match tcgetwinsize(stdout()) {
            Ok(found) if found.ws_col > 0 && found.ws_row > 0 => Size::clamped(found.ws_col, found.ws_row),
            _ => Size::default(),
        }
    }

    /// Where keys come from.
    pub fn input(&self) -> BorrowedFd<'_> {
        stdin()
    }

    /// Where output goes.
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_ref().map_or(stdout(), AsFd::as_fd)
    }

    /// Writes what the terminal takes without waiting; 0 when it takes nothing now.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(self.output(), bytes) {
            Ok(written) => Ok(written),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes all of it, waiting for the terminal as long as it takes a little now and then.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        let mut deadline = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
            if written > 0 {
                deadline = Instant::now() + PATIENCE;
            } else {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
                let output = self.output();
                let _ = poll(&mut [PollFd::new(&output, PollFlags::OUT)], Some(&timeout));
            }
        }
        Ok(())
    }

    /// Drops what was typed and not read: reports that the terminal sent before it was told to stop.
    pub fn discard_input(&self) {
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.saved);
    }
}
