//! The session and time: signals, deadlines, and how it comes to its end.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bowline_proto::message::{ExitStatus, State};
use rustix::process::{Signal, WaitOptions};

use super::conn::{Conn, Role};
use super::poll::Interest;
use super::serve::{LISTENER, Phase, Session, Terminal};
use crate::tree;
use bowline_host::events::Event;
use bowline_host::remove::DEFAULT_GRACE;

/// After the program's end, output that others still hold the terminal for is waited for until it pauses this long.
const TAIL_QUIET: Duration = Duration::from_millis(500);
/// How long the last viewers may take after the end.
const SERVE_AFTER_EXIT: Duration = Duration::from_secs(60);
/// How often to look whether the socket is still there, where nothing tells.
const SOCKET_LOOK: Duration = Duration::from_secs(10);
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
                // It may have opened its terminal again and written its last words just now.
                if let Terminal::Parked { .. } = self.terminal {
                    self.watch_pty_again();
                }
            }
        }
    }

    pub(super) fn handle_watch(&mut self) {
        let mut drain = [0; 4096];
        if let Some(watch) = &self.watch {
            while rustix::io::read(watch, &mut drain).is_ok_and(|n| n > 0) {}
        }
        self.mind_socket(Instant::now());
    }

    /// Binds the socket again where somebody removed it; the connections through the old one live on. Where that fails, or
    /// where the kernel has no watch to spare, it is looked at again by and by.
    fn mind_socket(&mut self, now: Instant) {
        if let Phase::Serving { .. } = self.phase {
            self.socket_look = None;
            return; // it may have been us, at the last call
        }
        let old = self.socket.listener.try_clone();
        let rebound = self.socket.rebind();
        self.socket_look = (rebound.is_err() || self.watch.is_none()).then(|| now + SOCKET_LOOK);
        if rebound.is_ok_and(|rebound| rebound) {
            if let Ok(old) = old {
                self.poll.remove(&old);
            }
            let _ = self.poll.add(&self.socket.listener, LISTENER, Interest::READ);
            if let Some(watch) = &self.watch {
                self.socket.watch_by(watch); // the folder may be another one now
            }
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
            self.serve_due,
            self.rest_due,
            self.socket_look,
        ];
        let cuts = self.conns.values().filter_map(|conn| conn.cut_at);
        times.into_iter().flatten().chain(self.ttl_at()).chain(cuts).min()
    }

    fn ttl_at(&self) -> Option<Instant> {
        let ttl = Duration::from_secs(self.meta.detached_ttl);
        let since = (!ttl.is_zero() && self.phase == Phase::Running).then_some(self.unattended_since?)?;
        since.checked_add(ttl)
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
        {
            self.watch_pty_again();
        }
        if self.socket_look.is_some_and(|at| now >= at) {
            self.mind_socket(now);
        }
        let gone = match self.phase {
            Phase::Ending { kill_at } => self.go_on_ending(now >= kill_at),
            Phase::Running | Phase::Serving { .. } => true,
        };
        if gone {
            self.finish_if_done(now);
        }
    }

    /// Begins to end everything that the session started.
    pub(super) fn end(&mut self, grace: Duration) {
        match self.phase {
            Phase::Running => {
                self.phase = Phase::Ending { kill_at: Instant::now() + grace };
                for member in tree::members(self.pty.child()).unwrap_or_default() {
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

    /// Kills what is left when the grace is over; the rest is reaped by and by. Whether everything has gone that can be
    /// made to go. A list that could not be read says nothing, and is looked at again.
    fn go_on_ending(&mut self, kill: bool) -> bool {
        let program = self.pty.child();
        let Ok(left) = tree::members(program) else { return false };
        // What belongs to another user is out of reach, and loses its terminal like everything else.
        let beyond: Vec<_> = left.iter().filter(|member| kill && !member.signal(Signal::KILL)).collect();
        let program_stays = beyond.iter().any(|member| member.pid == program);
        if left.len() > beyond.len() || (self.status.is_none() && !program_stays) {
            return false;
        }
        // Nobody is left to write: what the terminal still holds is read, and that is all.
        self.last_output = self.last_output.min(Instant::now() - TAIL_QUIET);
        self.read_pty(false);
        true
    }

    /// The program was reaped and the terminal read to its end, or until it fell silent while others hold it open.
    fn finish_if_done(&mut self, now: Instant) {
        // A program of another user is not reaped while it lives; its session ends all the same when it is told to.
        let ending = matches!(self.phase, Phase::Ending { .. });
        let status = self.status.clone().or_else(|| ending.then(ExitStatus::default));
        let Some(status) = status else { return };
        if let Phase::Serving { .. } = self.phase {
            return;
        }
        let over = match self.terminal {
            Terminal::Watched(interest) => interest.read && now >= self.last_output + TAIL_QUIET,
            Terminal::Parked { .. } | Terminal::Finished => true,
        };
        if over {
            self.finish(status, now);
        }
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
        if let Err(error) = self.events.record(exit).and_then(|_| self.events.sync()) {
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
