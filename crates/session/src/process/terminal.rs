//! The session and its terminal: output into the log, keys to the program, sizes.

use std::time::{Duration, Instant};

use bowline_proto::size::Size;

use super::poll::Interest;
use super::serve::{PTY, Session, Terminal};
use crate::pty::PtyRead;
use bowline_host::events::Event;

/// What a read of a terminal that has more to give brings at least.
const FULL_READ: usize = 1024;
/// How old the description of a session that prints may get.
const DESCRIBE_EVERY: Duration = Duration::from_secs(10);
/// How often to look again at a terminal that everybody closed while the program lives.
const REOPEN_LOOK: Duration = Duration::from_millis(250);

impl Session {
    /// Reads what the program wrote, up to a slice. It is appended to the log when the viewers have it, before the loop
    /// waits again: see [`Session::log_newest`].
    pub(super) fn read_pty(&mut self, hung_up: bool) {
        self.log_newest();
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
            self.info_changed |= self.last_output.duration_since(self.described) >= DESCRIBE_EVERY;
            self.newest.filled(self.log.end(), filled);
            let end = self.newest.end();
            self.link.handle_log(self.log.start_for(end).max(self.life_start), end);
        }
        if closed || (hung_up && filled == 0) {
            self.handle_closed_pty();
        }
    }

    /// Appends the newest output to the log, if that has not been done. A key's echo is not kept waiting for the file
    /// system; a viewer that wants more than the newest output is, since it reads the log.
    pub(super) fn log_newest(&mut self) {
        if self.log.end() >= self.newest.end() {
            return;
        }
        if let Err(error) = self.log.append(self.newest.bytes()) {
            self.degrade(&error);
        }
    }

    /// Nobody holds the terminal's other side: its end, unless the program lives and may open it again.
    fn handle_closed_pty(&mut self) {
        let next = match self.status {
            Some(_) => Terminal::Finished,
            None => Terminal::Parked { look: Instant::now() + REOPEN_LOOK },
        };
        if matches!(self.terminal, Terminal::Watched(_)) {
            self.poll.remove(&self.pty);
        }
        self.terminal = next;
    }

    /// Looks at a parked terminal again: somebody may hold its other side.
    pub(super) fn watch_pty_again(&mut self) {
        let added = self.poll.add(&self.pty, PTY, Interest::READ);
        self.terminal = match added {
            Ok(()) => Terminal::Watched(Interest::READ),
            Err(_) => Terminal::Finished,
        };
    }

    /// Waits at the PTY for what is useful now: not for output while the screen is far behind or a flood rests, for room only
    /// when something waits to be typed.
    pub(super) fn watch_pty(&mut self) {
        // What a program left behind at its end has an end, too, and does not rest.
        self.rest_due = self.status.is_none().then(|| self.pace.rest(Instant::now())).flatten();
        let Terminal::Watched(before) = self.terminal else { return };
        let write = !self.typed.is_empty() || !self.link.input().is_empty();
        let read = self.rest_due.is_none() && !self.emulator.must_wait();
        let wanted = Interest { read, write };
        if wanted != before && self.poll.modify(&self.pty, PTY, wanted).is_ok() {
            self.terminal = Terminal::Watched(wanted);
        }
    }

    /// Types what waits: the terminal's answers, since a program waits for them, then keys and commands as they came.
    pub(super) fn write_pty(&mut self) {
        if self.status.is_some() {
            // Nobody will read it. It is taken all the same, so that no viewer waits for ever.
            let waiting = self.link.input().len();
            let now = self.now();
            self.link.handle_input_written(waiting, now);
            return;
        }
        if self.typed.write_to(&self.pty).is_err() || !self.typed.is_empty() {
            return;
        }
        loop {
            let input = self.link.input();
            if input.is_empty() {
                return;
            }
            match self.pty.write(input) {
                Ok(0) | Err(_) => return,
                Ok(n) => {
                    let now = self.now();
                    self.link.handle_input_written(n, now);
                }
            }
        }
    }

    pub(super) fn resize(&mut self, size: Size) {
        let at = self.log.end();
        if self.pty.resize(size).is_err() {
            return;
        }
        self.record(Event::Resized { offset: at, size });
        self.emulator.resize(at, size);
        self.link.handle_resized(at, size);
        if let Some(terminal) = &mut self.info.terminal {
            terminal.size = size;
        }
        self.info_changed = true;
    }
}
