//! Output from the PTY into the log, keys to the program, sizes.

use std::time::{Duration, Instant};

use bowline_proto::size::Size;

use super::super::core::Core;
use super::super::poll::Interest;
use super::ending::TAIL_QUIET;
use super::{PTY, Terminal};
use crate::pty::PtyRead;
use bowline_host::events::Event;

/// What a read of a terminal that has more to give brings at least.
const FULL_READ: usize = 1024;
/// How old the description of a session that prints may get.
const DESCRIBE_EVERY: Duration = Duration::from_secs(10);
/// How often to check a terminal that every process closed while the program lives.
const REOPEN_CHECK: Duration = Duration::from_millis(250);

/// What the poll waits for at the PTY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PtyWatch {
    For(Interest),
    /// Nothing until `check`: no process holds the other side now, and the poll would report that without end.
    Parked {
        check: Instant,
    },
    /// Nothing ever again.
    Finished,
}

impl Terminal {
    /// Reads what the program wrote, up to a slice. It is appended to the log when the viewers have it, before the loop
    /// waits again: see [`Terminal::log_newest`].
    pub(super) fn read_pty(&mut self, core: &mut Core, hung_up: bool) {
        self.log_newest(core);
        let buf = self.newest.room();
        let (mut filled, mut closed) = (0, false);
        while filled < buf.len() {
            match self.pty.read(&mut buf[filled..]) {
                Ok(PtyRead::Data(n)) => {
                    filled += n;
                    if n < FULL_READ {
                        break; // the terminal had no more; asking again would cost a key's echo one more call
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
            self.pace.handle_output(filled, self.last_output);
            core.info_changed |= self.last_output.duration_since(self.described) >= DESCRIBE_EVERY;
            self.newest.filled(self.log.end(), filled);
            let end = self.newest.end();
            self.link.handle_log(self.log.start_for(end).max(self.life_start), end);
        }
        if closed || (hung_up && filled == 0) {
            self.handle_closed_pty(core);
        }
    }

    /// Appends the newest output to the log, if that has not been done. A key's echo is not kept waiting for the file
    /// system; a viewer that wants more than the newest output is, since it reads the log.
    pub(super) fn log_newest(&mut self, core: &mut Core) {
        if self.log.end() >= self.newest.end() {
            return;
        }
        if let Err(error) = self.log.append(self.newest.bytes()) {
            self.degrade(core, &error);
        }
    }

    /// No process holds the terminal's other side: its end, unless the program lives and may open it again.
    fn handle_closed_pty(&mut self, core: &Core) {
        let next = match self.status {
            Some(_) => PtyWatch::Finished,
            None => PtyWatch::Parked { check: Instant::now() + REOPEN_CHECK },
        };
        if matches!(self.watch, PtyWatch::For(_)) {
            core.poll.remove(&self.pty);
        }
        self.watch = next;
    }

    /// Waits at a parked terminal again: a process may hold its other side.
    pub(super) fn watch_pty_again(&mut self, core: &Core) {
        let added = core.poll.add(&self.pty, PTY, Interest::READ);
        self.watch = match added {
            Ok(()) => PtyWatch::For(Interest::READ),
            Err(_) => PtyWatch::Finished,
        };
    }

    /// Checks a parked terminal when it is time.
    pub(super) fn watch_parked_pty(&mut self, core: &Core, now: Instant) {
        if matches!(self.watch, PtyWatch::Parked { check } if now >= check) {
            self.watch_pty_again(core);
        }
    }

    /// When the PTY needs attention without being ready.
    pub(super) fn pty_timeout(&self) -> Option<Instant> {
        match self.watch {
            PtyWatch::Parked { check } => Some(check),
            PtyWatch::For(Interest { read: true, .. }) if self.status.is_some() => Some(self.last_output + TAIL_QUIET),
            PtyWatch::For(_) | PtyWatch::Finished => None,
        }
    }

    /// Waits at the PTY for what is useful now: not for output while the screen is far behind or a flood rests, for room only
    /// when something waits to be typed.
    pub(in super::super) fn watch_pty(&mut self, core: &Core) {
        // What a program left behind at its end has an end, too, and does not rest.
        self.rest_due = self.status.is_none().then(|| self.pace.rest(Instant::now())).flatten();
        let PtyWatch::For(before) = self.watch else { return };
        let write = !self.replies.is_empty() || !self.link.input().is_empty();
        let read = self.rest_due.is_none() && !self.emulator.must_wait();
        let wanted = Interest { read, write };
        if wanted != before && core.poll.modify(&self.pty, PTY, wanted).is_ok() {
            self.watch = PtyWatch::For(wanted);
        }
    }

    /// Types what waits: the terminal's answers, since a program waits for them, then keys and commands as they came.
    pub(super) fn write_pty(&mut self, core: &Core) {
        if self.status.is_some() {
            // No program will read it. It is taken all the same, so that no viewer waits for ever.
            let waiting = self.link.input().len();
            self.link.handle_input_written(waiting, core.now());
            return;
        }
        if self.replies.write_to(&self.pty).is_err() || !self.replies.is_empty() {
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
