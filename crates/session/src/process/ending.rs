//! The session and time: signals, deadlines, and how it comes to its end.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bowline_host::remove::DEFAULT_GRACE;
use bowline_proto::session::{ExitStatus, State};
use rustix::process::{Signal, WaitOptions};

use super::conn::{Conn, Role};
use super::poll::Interest;
use super::session::{LISTENER, Phase, Session};
use crate::tree;

/// How long the last viewers may take after the end.
const SERVE_AFTER_EXIT: Duration = Duration::from_secs(60);
/// How often to check whether the socket is still there, where nothing reports it.
const SOCKET_CHECK: Duration = Duration::from_secs(10);
/// How often ending checks whether everything has gone.
const END_CHECK: Duration = Duration::from_millis(20);

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
            self.body.handle_reaped(&mut self.core, pid, status);
        }
    }

    pub(super) fn handle_watcher(&mut self) {
        if let Some(watcher) = &self.watcher {
            let _ = watcher.take(); // whatever it was, the socket is checked
        }
        self.check_socket(Instant::now());
    }

    /// Binds the socket again where something removed it; the connections through the old one live on. Where that fails, or
    /// where the kernel has no watch to spare, it is checked again later.
    fn check_socket(&mut self, now: Instant) {
        if let Phase::Serving { .. } = self.phase {
            self.socket_check = None;
            return; // it may have been us, at the last call
        }
        let old = self.socket.listener.try_clone();
        let rebound = self.socket.rebind();
        self.socket_check = (rebound.is_err() || self.watcher.is_none()).then(|| now + SOCKET_CHECK);
        if rebound.is_ok_and(|rebound| rebound) {
            if let Ok(old) = old {
                self.core.poll.remove(&old);
            }
            let _ = self.core.poll.add(&self.socket.listener, LISTENER, Interest::READ);
            if let Some(watcher) = &self.watcher {
                self.socket.watch_by(watcher); // the folder may be another one now
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => None,
            Phase::Ending { .. } => Some(Instant::now() + END_CHECK),
            Phase::Serving { until } => Some(until),
        };
        let times = [phase, self.body.poll_timeout(&self.core), self.serve_due, self.socket_check, self.ttl_at()];
        let cuts = self.conns.values().filter_map(|conn| conn.cut_at);
        times.into_iter().flatten().chain(cuts).min()
    }

    fn ttl_at(&self) -> Option<Instant> {
        let ttl = Duration::from_secs(self.core.meta.detached_ttl);
        let since = (!ttl.is_zero() && self.phase == Phase::Running).then_some(self.unattended_since?)?;
        since.checked_add(ttl)
    }

    pub(super) fn handle_time(&mut self) {
        let now = Instant::now();
        self.body.handle_time(&mut self.core, now);
        self.cut_overdue(now);
        if self.ttl_at().is_some_and(|at| now >= at) {
            self.end(DEFAULT_GRACE);
        }
        if self.socket_check.is_some_and(|at| now >= at) {
            self.check_socket(now);
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
                for member in tree::members(self.body.program()).unwrap_or_default() {
                    member.signal(Signal::HUP);
                    member.signal(Signal::CONT); // a stopped process would not hear it
                }
            }
            Phase::Ending { kill_at } => {
                self.phase = Phase::Ending { kill_at: kill_at.min(Instant::now() + grace) };
            }
            // Viewers that are still being served have had their chance.
            Phase::Serving { .. } => self.phase = Phase::Serving { until: Instant::now() },
        }
    }

    /// Kills what is left when the grace is over; children are reaped as they end. Whether everything has gone that can be
    /// made to go. A list that could not be read says nothing, and is read again.
    fn go_on_ending(&mut self, kill: bool) -> bool {
        let program = self.body.program();
        let Ok(left) = tree::members(program) else { return false };
        // What belongs to another user is out of reach, and loses its terminal like everything else.
        let beyond: Vec<_> = left.iter().filter(|member| kill && !member.signal(Signal::KILL)).collect();
        let program_stays = beyond.iter().any(|member| member.pid == program);
        if left.len() > beyond.len() || (self.body.status().is_none() && !program_stays) {
            return false;
        }
        self.body.handle_tree_gone(&mut self.core);
        true
    }

    /// Finishes when the program was reaped and there is nothing left to come from it.
    fn finish_if_done(&mut self, now: Instant) {
        // A program of another user is not reaped while it lives; its session ends all the same when it is told to.
        let ending = matches!(self.phase, Phase::Ending { .. });
        let status = self.body.status().cloned().or_else(|| ending.then(ExitStatus::default));
        let Some(status) = status else { return };
        if matches!(self.phase, Phase::Serving { .. }) || !self.body.is_drained(now) {
            return;
        }
        self.core.info.state = State::Exited;
        self.core.info.exit = Some(status.clone());
        self.core.info_changed = true;
        self.body.finish(&mut self.core, status, now);
        self.phase = Phase::Serving { until: now + SERVE_AFTER_EXIT };
    }

    /// Takes the socket away and accepts connections that were made before: those are served, later ones find the files.
    /// Whether there were none.
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
