//! The session and time: signals, deadlines, and how it comes to its end.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bowline_proto::message::{ExitStatus, State};
use rustix::process::{Signal, WaitOptions};

use super::conn::{Conn, Role};
use super::poll::Interest;
use super::serve::{LISTENER, PTY, Phase, Session, Terminal};
use crate::events::Event;
use crate::remove::DEFAULT_GRACE;
use crate::tree;

/// After the program's end, output that others still hold the terminal for is waited for until it pauses this long.
const TAIL_QUIET: Duration = Duration::from_millis(500);
/// How long the last viewers may take after the end.
const SERVE_AFTER_EXIT: Duration = Duration::from_secs(60);
/// How often ending looks whether everything has gone.
const END_LOOK: Duration = Duration::from_millis(20);

impl Session {
    pub(super) fn handle_signals(&mut self) {
        let mut drain = [0; 64];
        while io::Read::read(&mut self.signals, &mut drain).is_ok_and(|n| n > 0) {}
        self.reap();
        if self.terminate.swap(false, Ordering::Relaxed) {
            self.end(DEFAULT_GRACE);
        }
    }

    /// Collects every child that ended: the program, and what it left to this process.
    pub(super) fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == self.pty.child() {
                let signal = status.terminating_signal().map(signal_name);
                self.status = Some(ExitStatus { code: status.exit_status(), signal });
                self.last_output = Instant::now();
                if let Terminal::Parked { .. } = self.terminal {
                    self.terminal = Terminal::Finished;
                }
            }
        }
    }

    pub(super) fn handle_watch(&mut self) {
        let mut drain = [0; 4096];
        while rustix::io::read(&self.watch, &mut drain).is_ok_and(|n| n > 0) {}
        if let Phase::Serving { .. } = self.phase {
            return; // it may have been us, at the last call
        }
        // In place of the socket that somebody removed; the connections through it live on.
        let old = self.socket.listener.try_clone();
        if self.socket.rebind().is_ok_and(|rebound| rebound) {
            if let Ok(old) = old {
                self.poll.remove(&old);
            }
            let _ = self.poll.add(&self.socket.listener, LISTENER, Interest::READ);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => None,
            Phase::Ending { .. } => Some(Instant::now() + END_LOOK),
            Phase::Serving { until } => Some(until),
        };
        let parked = match self.terminal {
            Terminal::Parked { look } => Some(look),
            Terminal::Watched(Interest { read: true, .. }) if self.status.is_some() => {
                Some(self.last_output + TAIL_QUIET)
            }
            Terminal::Watched(_) | Terminal::Finished => None,
        };
        let times = [
            phase,
            parked,
            self.link.poll_timeout().map(|at| self.origin + at),
            self.notices.poll_timeout(),
            self.screen_due,
        ];
        let cuts = self.conns.values().filter_map(|conn| conn.cut_at);
        times.into_iter().flatten().chain(self.ttl_at()).chain(cuts).min()
    }

    fn ttl_at(&self) -> Option<Instant> {
        let ttl = Duration::from_secs(self.meta.detached_ttl);
        (!ttl.is_zero() && self.phase == Phase::Running).then_some(self.unattended_since?).map(|since| since + ttl)
    }

    pub(super) fn handle_time(&mut self) {
        let (now, time) = (Instant::now(), self.now());
        self.link.handle_timeout(time);
        for event in self.notices.due(now, false) {
            self.record(event);
        }
        self.cut_overdue(now);
        let left_out = self.notices.left_out(now);
        self.note(left_out);
        if self.ttl_at().is_some_and(|at| now >= at) {
            self.end(DEFAULT_GRACE);
        }
        if let Terminal::Parked { look } = self.terminal
            && now >= look
            && self.poll.add(&self.pty, PTY, Interest::READ).is_ok()
        {
            self.terminal = Terminal::Watched(Interest::READ);
        }
        if let Phase::Ending { kill_at } = self.phase {
            self.go_on_ending(now >= kill_at);
        }
        self.finish_if_done(now);
    }

    /// Begins to end everything that the session started.
    pub(super) fn end(&mut self, grace: Duration) {
        match self.phase {
            Phase::Running => {
                self.phase = Phase::Ending { kill_at: Instant::now() + grace };
                for member in tree::members().unwrap_or_default() {
                    member.signal(Signal::HUP);
                    member.signal(Signal::CONT); // a stopped process would not hear it
                }
            }
            Phase::Ending { kill_at } => {
                self.phase = Phase::Ending { kill_at: kill_at.min(Instant::now() + grace) };
            }
            // Whoever is still being served has had its chance.
            Phase::Serving { .. } => self.phase = Phase::Serving { until: Instant::now() },
        }
    }

    /// Kills what is left when the grace is over; the rest is reaped by and by.
    fn go_on_ending(&mut self, kill: bool) {
        let left = tree::members().unwrap_or_default();
        if kill {
            left.iter().for_each(|member| member.signal(Signal::KILL));
        }
        if left.is_empty() && self.status.is_some() {
            // Nobody is left to write: what the terminal still holds is read below, and that is all.
            self.last_output = self.last_output.min(Instant::now() - TAIL_QUIET);
            self.read_pty(false);
        }
    }

    /// The program was reaped and the terminal read to its end, or until it fell silent while others hold it open.
    fn finish_if_done(&mut self, now: Instant) {
        let Some(status) = self.status.clone() else { return };
        if let Phase::Serving { .. } = self.phase {
            return;
        }
        let reading = matches!(self.terminal, Terminal::Watched(Interest { read: true, .. }));
        let silent = reading && now >= self.last_output + TAIL_QUIET;
        let ending = matches!(self.phase, Phase::Ending { .. });
        if ending && tree::members().is_ok_and(|left| !left.is_empty()) {
            return;
        }
        if self.terminal != Terminal::Finished && !silent {
            return;
        }
        self.finish(status, now);
    }

    fn finish(&mut self, status: ExitStatus, now: Instant) {
        if let Terminal::Watched(_) = self.terminal {
            self.poll.remove(&self.pty);
        }
        self.terminal = Terminal::Finished;
        self.log_newest();
        self.emulator.advance(self.log.end());
        self.emulator.flush();
        self.handle_screen();
        for event in self.notices.due(now, true) {
            self.record(event);
        }
        let ExitStatus { code, signal } = status.clone();
        let exit = Event::Exit { code, signal, offset: self.log.end() };
        if let Err(error) = self.events.record_durably(exit) {
            self.degrade(&error);
        }
        let _ = self.log.shrink();
        self.info.state = State::Exited;
        self.info.exit = Some(status.clone());
        self.info_changed = true;
        self.link.handle_screen(self.emulator.offset());
        self.link.handle_exit(status);
        self.phase = Phase::Serving { until: now + SERVE_AFTER_EXIT };
    }

    /// Takes the socket away and looks whether somebody knocked before: who connected is served, who comes now finds
    /// the files. Whether nobody did.
    pub(super) fn last_call(&mut self) -> bool {
        self.socket.unlink();
        self.accept();
        self.is_over()
    }

    pub(super) fn is_over(&self) -> bool {
        let Phase::Serving { until } = self.phase else { return false };
        let unserved = |conn: &Conn| !conn.is_drained() || matches!(conn.role, Role::New | Role::Viewer);
        !self.conns.values().any(unserved) || Instant::now() >= until
    }
}

fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number).map_or_else(|_| format!("SIG{number}"), |signal| signal.as_str().into())
}
