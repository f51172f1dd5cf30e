//! The user's terminal: in raw mode while attached, and restored on drop.

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

/// How long [`Tty::write_all`] waits for a terminal that accepts no bytes, such as one behind a stalled `ssh`. After
/// that, the rest is lost, including the sequences that restore the terminal's modes.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum TtyError {
    #[error("standard {0} is not a terminal")]
    NotATerminal(&'static str),
    #[error("cannot set up the terminal: {0}")]
    Settings(#[source] io::Error),
}

/// The terminal on standard input and output, in raw mode until dropped.
#[derive(Debug)]
pub struct Tty {
    /// The settings to restore.
    saved: Termios,
    /// A separate open file description, so that making it non-blocking does not affect the shell, which shares the
    /// one of standard output.
    output: Option<OwnedFd>,
}

impl Tty {
    /// Puts the terminal into raw mode: keys arrive one by one, and output is not processed.
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

    /// Sets raw mode again, after another process may have changed it.
    pub fn make_raw(&self) -> Result<(), TtyError> {
        let mut raw = self.saved.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(|error| TtyError::Settings(error.into()))
    }

    /// The window's size, clamped to the allowed range; 80x24 if the terminal does not report one.
    pub fn size(&self) -> Size {
        match tcgetwinsize(stdout()) {
            Ok(found) if found.ws_col > 0 && found.ws_row > 0 => Size::clamped(found.ws_col, found.ws_row),
            _ => Size::default(),
        }
    }

    pub fn input(&self) -> BorrowedFd<'_> {
        stdin()
    }

    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_ref().map_or(stdout(), AsFd::as_fd)
    }

    /// Writes as many bytes as the terminal accepts without blocking; 0 if it accepts none now.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(self.output(), bytes) {
            Ok(written) => Ok(written),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes all bytes. Fails if the terminal accepts none for 10 seconds.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        let mut deadline = Instant::now() + STALL_TIMEOUT;
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
            if written > 0 {
                deadline = Instant::now() + STALL_TIMEOUT;
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

    /// Discards unread input: reports that the terminal sent before its mouse and focus modes were reset.
    pub fn discard_input(&self) {
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.saved);
    }
}
