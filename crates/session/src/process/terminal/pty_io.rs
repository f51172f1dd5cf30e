//! Reads output from the PTY and appends it to the log, writes input to the PTY, and resizes it.

use std::time::{Duration, Instant};

use bowline_proto::size::Size;

use super::super::core::Core;
use super::super::poll::Interest;
use super::ending::TAIL_QUIET;
use super::{PTY, Terminal};
use crate::pty::PtyRead;
use bowline_host::events::Event;

/// A read that returns less than this has emptied the PTY.
const FULL_READ: usize = 1024;
/// While a session prints, its description is updated this often.
const INFO_EVERY: Duration = Duration::from_secs(10);
/// How often to check whether a program reopened the terminal that all of its processes had closed.
const REOPEN_CHECK: Duration = Duration::from_millis(250);

/// How the poll watches the PTY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PtyWatch {
    Polled(Interest),
    /// Not at all until `check`: no process holds the other side open, and the poll would report that over
    /// and over.
    Parked {
        check: Instant,
    },
    /// Not any more: all output was read.
    Finished,
}

impl Terminal {
    /// Reads the program's output, up to the size of the buffer, and reports its end to the link. The
    /// viewers are sent it next; then [`Terminal::after_serving`] appends it to the log, before the loop
    /// waits again.
    pub(super) fn read_pty(&mut self, core: &mut Core, hung_up: bool) {
        self.log_latest(core);
        let buf = self.latest.clear();
        let (mut filled, mut closed) = (0, false);
        while filled < buf.len() {
            match self.pty.read(&mut buf[filled..]) {
                Ok(PtyRead::Data(n)) => {
                    filled += n;
                    if n < FULL_READ {
                        break; // the PTY is empty; another read would delay a key's echo by one more system call
                    }
                }
                Ok(PtyRead::Empty) => break,
                Ok(PtyRead::Closed) | Err(_) => {
                    closed = true;
                    break;
                }
            }
        }
        if filled > 0 {
            self.last_output = Instant::now();
            self.throttle.handle_output(filled, self.last_output);
            core.info_changed |= self.last_output.duration_since(self.info_updated) >= INFO_EVERY;
            self.latest.set_filled(self.log.end(), filled);
            let end = self.latest.end();
            self.link.handle_log(self.log.start_for(end).max(self.epoch_start), end);
        }
        if closed || (hung_up && filled == 0) {
            self.handle_closed_pty(core);
        }
    }

    /// Appends the latest output to the log, if the log does not have it yet. Normally
    /// viewers are sent it first, so that a key's echo does not wait for the file system. Code that reads
    /// the log calls this before.
    pub(super) fn log_latest(&mut self, core: &mut Core) {
        if self.log.end() >= self.latest.end() {
            return;
        }
        if let Err(error) = self.log.append(self.latest.bytes()) {
            self.degrade(core, &error);
        }
    }

    /// No process holds the other side open: the end of output, unless the program still runs and may reopen it.
    fn handle_closed_pty(&mut self, core: &Core) {
        let next = match self.exit_status {
            Some(_) => PtyWatch::Finished,
            None => PtyWatch::Parked { check: Instant::now() + REOPEN_CHECK },
        };
        if matches!(self.watch, PtyWatch::Polled(_)) {
            core.poll.remove(&self.pty);
        }
        self.watch = next;
    }

    /// Watches a parked PTY again, since a process may have opened its other side.
    pub(super) fn unpark_pty(&mut self, core: &Core) {
        let added = core.poll.add(&self.pty, PTY, Interest::READ);
        self.watch = match added {
            Ok(()) => PtyWatch::Polled(Interest::READ),
            Err(_) => PtyWatch::Finished,
        };
    }

    /// Watches a parked PTY again if `check` has passed.
    pub(super) fn check_parked_pty(&mut self, core: &Core, now: Instant) {
        if matches!(self.watch, PtyWatch::Parked { check } if now >= check) {
            self.unpark_pty(core);
        }
    }

    /// When the PTY must be handled even if the poll does not report it.
    pub(super) fn pty_timeout(&self) -> Option<Instant> {
        match self.watch {
            PtyWatch::Parked { check } => Some(check),
            PtyWatch::Polled(Interest { read: true, .. }) if self.exit_status.is_some() => {
                Some(self.last_output + TAIL_QUIET)
            }
            PtyWatch::Polled(_) | PtyWatch::Finished => None,
        }
    }

    /// Updates what the poll waits for on the PTY: output, unless the screen is far behind or reading
    /// pauses; room to write, only if there is something to write.
    pub(in super::super) fn update_pty_interest(&mut self, core: &Core) {
        // After the program's exit the rest of its output is bounded, and is not throttled.
        self.pause_end = self.exit_status.is_none().then(|| self.throttle.paused_until(Instant::now())).flatten();
        let PtyWatch::Polled(before) = self.watch else { return };
        let write = !self.query_replies.is_empty() || !self.link.input().is_empty();
        let read = self.pause_end.is_none() && !self.emulator.reader_must_wait();
        let wanted = Interest { read, write };
        if wanted != before && core.poll.modify(&self.pty, PTY, wanted).is_ok() {
            self.watch = PtyWatch::Polled(wanted);
        }
    }

    /// Writes queued input to the PTY: first query replies, since the program waits for them, then keys and
    /// commands in the order in which they arrived.
    pub(super) fn write_pty(&mut self, core: &Core) {
        if self.exit_status.is_some() {
            // No program will read it. Report it as written, so that no viewer waits for its acknowledgement.
            let queued = self.link.input().len();
            self.link.handle_input_written(queued, core.now());
            return;
        }
        if self.query_replies.write_to(&self.pty).is_err() || !self.query_replies.is_empty() {
            return;
        }
        loop {
            let input = self.link.input();
            if input.is_empty() {
                return;
            }
            match self.pty.write(input) {
                Ok(0) | Err(_) => return,
                Ok(n) => self.link.handle_input_written(n, core.now()),
            }
        }
    }

    pub(super) fn resize(&mut self, core: &mut Core, size: Size) {
        if core.info.terminal.as_ref().is_some_and(|terminal| terminal.size == size) {
            return; // it changed and changed back
        }
        // Output read so far was printed at the old size.
        self.log_latest(core);
        let at = self.log.end();
        if self.pty.resize(size).is_err() {
            return;
        }
        self.record(core, Event::Resized { offset: at, size });
        self.emulator.resize(at, size);
        self.link.handle_resized(at, size);
        if let Some(terminal) = &mut core.info.terminal {
            terminal.size = size;
        }
        core.info_changed = true;
    }
}
