//! Waits for keys, frames, signals and timers, and handles them.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::SIGHUP;

use crate::attach::Outcome;
use crate::viewer::Viewer;

/// The most bytes of keys that are read from the terminal at once.
pub(crate) const MAX_READ: usize = 4096;

impl Viewer<'_> {
    /// Waits for the next event or timer, and handles it.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        let mirror = self.mirror.as_ref().and_then(|mirror| mirror.poll_timeout(self.reconnector.status()));
        // While a closed connection is drained, the link's timers do not run.
        let link = self.link.poll_timeout().filter(|_| !self.is_draining());
        let timers = [link, self.reconnector.poll_timeout(), self.status_line.poll_timeout(), mirror];
        let now = self.clock.now();
        let timeout = timers.into_iter().flatten().min().map(|at| {
            let left = at.saturating_sub(now) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        let on = |wanted: bool, flags: PollFlags| if wanted { flags } else { PollFlags::empty() };
        let (input, output, signals) = (self.display.tty().input(), self.display.tty().output(), self.signals.fd());
        let link_flags = self.live().map_or(PollFlags::empty(), |connection| {
            PollFlags::IN | on(connection.transport.wants_write(), PollFlags::OUT)
        });
        let mut fds = vec![
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(&input, on(self.wants_keys(), PollFlags::IN)),
            PollFd::new(&output, on(self.display.is_waiting(), PollFlags::OUT)),
        ];
        let link_fd = self.live().map(|connection| connection.transport.fd());
        if let Some(fd) = link_fd.as_ref().filter(|_| !link_flags.is_empty()) {
            fds.push(PollFd::new(fd, link_flags));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        drop(fds);
        self.handle_signals();
        if !ready[1].is_empty() {
            self.read_keys();
        }
        if ready[2].intersects(PollFlags::HUP | PollFlags::ERR) {
            self.outcome.get_or_insert(Outcome::Signalled(SIGHUP));
        }
        if ready.get(3).is_some_and(|flags| flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)) {
            self.receive();
        }
        self.handle_time();
        Ok(())
    }

    fn handle_time(&mut self) {
        let now = self.clock.now();
        if self.clock.take_slept() {
            self.link.handle_wake(now);
            self.reconnector.handle_wake(now);
        }
        self.open();
        if !self.is_draining() {
            self.link.handle_timeout(now);
        }
        self.reconnector.handle_timeout(self.clock.jitter(), now);
    }

    pub(crate) fn receive(&mut self) {
        let now = self.clock.now();
        let Some(connection) = &mut self.connection else { return };
        let link = &mut self.link;
        connection.ended = connection.transport.receive(&mut |frame| link.handle_frame(frame, now)).err();
    }

    /// Whether the connection has ended, but the terminal has not accepted all of its output yet.
    fn is_draining(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.ended.is_some())
    }

    fn handle_signals(&mut self) {
        self.signals.drain();
        if let Some(signal) = self.signals.ending() {
            self.outcome.get_or_insert(Outcome::Signalled(signal));
        }
        if self.signals.take_continued() {
            // A shell may have changed the terminal's settings while this process was stopped.
            let _ = self.display.tty().make_raw();
            self.link.repaint();
        }
        if self.signals.take_resized()
            && let Some(size) = self.display.update_size()
        {
            self.link.handle_resize(size);
            if let Some(mirror) = &mut self.mirror {
                mirror.dirty = true;
            }
        }
    }

    fn read_keys(&mut self) {
        let mut bytes = [0; MAX_READ];
        match rustix::io::read(self.display.tty().input(), &mut bytes) {
            Ok(0) => drop(self.outcome.get_or_insert(Outcome::Signalled(SIGHUP))),
            Ok(n) => self.handle_keys(&bytes[..n]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => drop(self.outcome.get_or_insert(Outcome::Signalled(SIGHUP))),
        }
    }
}
