//! How a terminal ends: its program is reaped, its last output read, its end recorded.

use std::time::{Duration, Instant};

use bowline_host::events::Event;
use bowline_host::signal;
use bowline_proto::session::ExitStatus;
use rustix::process::{Pid, WaitStatus};

use super::super::core::Core;
use super::Terminal;
use super::pty_io::PtyWatch;

/// After the program's end, output of others that still hold the terminal is waited for until it pauses this long.
pub(super) const TAIL_QUIET: Duration = Duration::from_millis(500);

impl Terminal {
    pub(in super::super) fn handle_reaped(&mut self, core: &mut Core, pid: Pid, status: WaitStatus) {
        if pid != self.pty.child() {
            return;
        }
        let signal = status.terminating_signal().map(signal::name);
        self.status = Some(ExitStatus { code: status.exit_status(), signal });
        self.last_output = Instant::now();
        // It may have opened its terminal again and written its last words just now.
        if let PtyWatch::Parked { .. } = self.watch {
            self.watch_pty_again(core);
        }
    }

    pub(in super::super) fn handle_tree_gone(&mut self, core: &mut Core) {
        // No process is left to write: what the terminal still holds is read, and that is all.
        self.last_output = self.last_output.min(Instant::now() - TAIL_QUIET);
        self.read_pty(core, false);
    }

    /// The terminal was read to its end, or until it fell silent while others hold it open.
    pub(in super::super) fn is_drained(&self, now: Instant) -> bool {
        match self.watch {
            PtyWatch::For(interest) => interest.read && now >= self.last_output + TAIL_QUIET,
            PtyWatch::Parked { .. } | PtyWatch::Finished => true,
        }
    }

    pub(in super::super) fn finish(&mut self, core: &mut Core, status: ExitStatus, now: Instant) {
        if let PtyWatch::For(_) = self.watch {
            core.poll.remove(&self.pty);
        }
        self.watch = PtyWatch::Finished;
        self.log_newest(core);
        self.emulator.advance(self.log.end());
        self.emulator.flush();
        self.handle_screen(core);
        for event in self.notices.due(now, true) {
            self.record(core, event);
        }
        let ExitStatus { code, signal } = status.clone();
        let exit = Event::Exit { code, signal, offset: self.log.end() };
        if let Err(error) = self.try_record(core, exit).and_then(|_| core.journal.sync()) {
            self.degrade(core, &error);
        }
        let _ = self.log.shrink();
        self.link.handle_screen(self.emulator.offset());
        self.link.handle_exit(status);
    }
}
