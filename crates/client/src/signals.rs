//! Makes signals pollable: a pipe that becomes readable, and a flag for each signal.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

/// The signals that end an attach, after the terminal is restored.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Registered signal handlers; dropping this unregisters them.
#[derive(Debug)]
pub struct Signals {
    pipe: UnixStream,
    resized: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
    /// The last of [`ENDING`] that was received, or 0.
    ending: Arc<AtomicUsize>,
    registered: Vec<SigId>,
}

impl Signals {
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
        // Register flags before pipes: when the pipe is readable, the flag must be set already.
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

    /// The descriptor to poll.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Empties the pipe. The flags stay set.
    pub fn drain(&mut self) {
        let mut bytes = [0; 64];
        while self.pipe.read(&mut bytes).is_ok_and(|n| n > 0) {}
    }

    /// Whether the window was resized since the last call.
    pub fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::Relaxed)
    }

    /// Whether this process was continued after a stop since the last call.
    pub fn take_continued(&self) -> bool {
        self.continued.swap(false, Ordering::Relaxed)
    }

    /// The signal that ends this process, if one was received.
    pub fn ending(&self) -> Option<i32> {
        as_signal(self.ending.load(Ordering::Relaxed))
    }

    /// The same, and forgets it, so that the next one is noticed.
    pub fn take_ending(&self) -> Option<i32> {
        as_signal(self.ending.swap(0, Ordering::Relaxed))
    }
}

fn as_signal(number: usize) -> Option<i32> {
    i32::try_from(number).ok().filter(|signal| *signal != 0)
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
