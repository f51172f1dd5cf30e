//! The end of a terminal: its program is reaped, its last output is read, its exit is recorded.

use std::time::{Duration, Instant};

use bowline_host::events::Event;
use bowline_host::signal;
use bowline_proto::session::ExitStatus;
use rustix::process::{Pid, Signal, WaitStatus};

use super::super::core::Core;
use super::Terminal;
use super::pty_io::PtyWatch;
use super::resizes::Resizes;
use crate::process_tree;

/// After the program's exit other processes may hold the PTY open. Their output is read until it pauses for
/// this long.
pub(super) const TAIL_QUIET: Duration = Duration::from_millis(500);

impl Terminal {
    /// Sends SIGHUP to the program and everything that it started.
    pub(in super::super) fn handle_ending(&self) {
        for member in process_tree::members(Some(self.pty.child())).unwrap_or_default() {
            member.signal(Signal::HUP);
            member.signal(Signal::CONT); // a stopped process would not handle SIGHUP
        }
    }

    pub(in super::super) fn handle_reaped(&mut self, core: &mut Core, pid: Pid, status: WaitStatus) {
        if pid != self.pty.child() {
            return;
        }
        let signal = status.terminating_signal().map(signal::name);
        self.exit_status = Some(ExitStatus { code: status.exit_status(), signal });
        self.last_output = Instant::now();
        // The program may have reopened its terminal and written to it just before it exited.
        if let PtyWatch::Parked { .. } = self.watch {
            self.unpark_pty(core);
        }
    }

    pub(in super::super) fn handle_tree_ended(&mut self, core: &mut Core) {
        // No process is left that could write: read what the PTY still holds, and do not wait for more.
        self.last_output = self.last_output.min(Instant::now() - TAIL_QUIET);
        self.read_pty(core, false);
    }

    /// The PTY was read to its end, or was quiet for [`TAIL_QUIET`] while other processes hold it open.
    pub(in super::super) fn is_drained(&self, now: Instant) -> bool {
        match self.watch {
            PtyWatch::Polled(interest) => interest.read && now >= self.last_output + TAIL_QUIET,
            PtyWatch::Parked { .. } | PtyWatch::Finished => true,
        }
    }

    pub(in super::super) fn finish(&mut self, core: &mut Core, status: ExitStatus, now: Instant) {
        if let PtyWatch::Polled(_) = self.watch {
            core.poll.remove(&self.pty);
        }
        self.watch = PtyWatch::Finished;
        self.resizes = Resizes::default(); // the size no longer changes
        self.log_latest(core);
        // First, because on a full disk this makes room for the screen and the exit.
        let _ = self.log.shrink();
        self.emulator.advance(self.log.end());
        self.emulator.flush();
        self.handle_emulator(core);
        for event in self.notices.take_records(now, true) {
            self.record(core, event);
        }
        let ExitStatus { code, signal } = status.clone();
        let exit = Event::Exit { code, signal, offset: self.log.end() };
        if let Err(error) = self.try_record(core, exit).and_then(|_| self.journal.sync()) {
            self.degrade(core, &error);
        }
        self.link.handle_screen(self.emulator.offset());
        self.link.handle_exit(status);
    }
}
