//! Signals as something to poll: a pipe that becomes readable, and a flag for each.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

/// The signals that end an attach: the terminal is restored first.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Signals of interest, until dropped.
#[derive(Debug)]
pub struct Signals {
    pipe: UnixStream,
    resized: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
    /// The signal that asks to end, or 0.
    ending: Arc<AtomicUsize>,
    registered: Vec<SigId>,
}

impl Signals {
    /// Starts to listen.
    pub fn listen() -> io::Result<Signals> {
        let (pipe, wake) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let mut signals = Signals {
            pipe,
            resized: Arc::default(),
            continued: Arc::default(),
            ending: Arc::default(),
            registered: Vec::new(),
        };
        // The flag first: whoever sees the pipe readable must find it set.
        for signal in ENDING {
            let flag = signal_hook::flag::register_usize(signal, Arc::clone(&signals.ending), signal as usize)?;
            signals.registered.push(flag);
        }
        for (signal, flag) in [(SIGWINCH, &signals.resized), (SIGCONT, &signals.continued)] {
            signals.registered.push(signal_hook::flag::register(signal, Arc::clone(flag))?);
        }
        for signal in ENDING.into_iter().chain([SIGWINCH, SIGCONT]) {
            signals.registered.push(signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?);
        }
        Ok(signals)
    }

    /// What to wait on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Takes the wake-ups off the pipe; the flags stay.
    pub fn drain(&mut self) {
        let mut bytes = [0; 64];
        while self.pipe.read(&mut bytes).is_ok_and(|n| n > 0) {}
    }

    /// Whether the window changed since the last call.
    pub fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::Relaxed)
    }

    /// Whether the program was continued since the last call.
    pub fn take_continued(&self) -> bool {
        self.continued.swap(false, Ordering::Relaxed)
    }

    /// The signal that asks to end, if one came.
    pub fn ending(&self) -> Option<i32> {
        i32::try_from(self.ending.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
