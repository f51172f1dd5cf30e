//! Signals, deadlines, and the end of a session.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bowline_host::alive::replace_lock;
use bowline_host::meta::Meta;
use bowline_host::remove::default_grace;
use bowline_proto::session::{ExitStatus, State};
use rustix::process::{Signal, WaitOptions};

use super::conn::{Conn, Role};
use super::end_checks::EndChecks;
use super::poll::Interest;
use super::session::{LISTENER, Phase, Session};
use crate::process_tree;

/// How long viewers may take to read the rest after the program's exit.
const SERVE_AFTER_EXIT: Duration = Duration::from_secs(60);
/// How often to check whether the socket, the lock and `meta.json` still exist, if no watcher reports it.
const PATH_CHECK: Duration = Duration::from_secs(10);

/// How often to check, once all processes have exited, whether all of their output was read.
const DRAIN_CHECK: Duration = Duration::from_millis(20);

impl Session {
    pub(super) fn handle_signals(&mut self) {
        let mut drain = [0; 64];
        while io::Read::read(&mut self.signals, &mut drain).is_ok_and(|n| n > 0) {}
        self.reap();
        if self.terminate.swap(false, Ordering::Relaxed) {
            self.end(default_grace(self.core.meta.kind));
        }
    }

    /// Reaps every child that has exited: the program, and orphaned descendants.
    pub(super) fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            self.body.handle_reaped(&mut self.core, pid, status);
            if let Phase::Ending(checks) = &mut self.phase {
                checks.handle_reaped(Instant::now());
            }
        }
    }

    pub(super) fn handle_watcher(&mut self) {
        if let Some(watcher) = &self.watcher {
            let _ = watcher.take(); // everything is checked in any case
        }
        self.check_paths(Instant::now());
    }

    /// Binds the socket again, takes the lock again, and writes `meta.json` again, if their files were removed; existing
    /// connections are not affected. If that fails, or without a watcher, they are checked again later.
    fn check_paths(&mut self, now: Instant) {
        let is_serving = matches!(self.phase, Phase::Serving { .. }); // `accept_pending` may have removed the socket
        let mut restored = is_serving || self.rebind_socket().is_ok();
        if !self.lock.is_at(&self.core.dir.lock()) {
            match replace_lock(&self.core.dir) {
                Ok(Some(lock)) => self.lock = lock,
                Ok(None) | Err(_) => restored = false,
            }
        }
        // A failed write removes its temporary file, which the watcher reports: it must not be tried again at once.
        let later = self.path_check.filter(|at| now < *at);
        restored &= later.is_none() && self.restore_meta().is_ok();
        self.path_check = (!restored || self.watcher.is_none()).then(|| later.unwrap_or(now + PATH_CHECK));
    }

    /// Writes `meta.json` again if it is missing or damaged: after the exit, only the file says what the session was.
    fn restore_meta(&self) -> io::Result<()> {
        let path = self.core.dir.meta();
        match Meta::read(&path) {
            Ok(meta) if meta.id == self.core.meta.id => Ok(()),
            Ok(_) | Err(_) => self.core.meta.write(&path),
        }
    }

    fn rebind_socket(&mut self) -> io::Result<()> {
        let old = self.socket.listener.try_clone()?;
        if self.socket.rebind()? {
            self.core.poll.remove(&old);
            self.core.poll.add(&self.socket.listener, LISTENER, Interest::READ)?;
            if let Some(watcher) = &self.watcher {
                self.socket.watch_with(watcher); // the directory may have been replaced
            }
        }
        Ok(())
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => None,
            Phase::Ending(checks) => Some(checks.next().unwrap_or_else(|| Instant::now() + DRAIN_CHECK)),
            Phase::Serving { until } => Some(until),
        };
        let times = [phase, self.body.poll_timeout(&self.core), self.serve_due, self.path_check, self.ttl_deadline()];
        let closes = self.conns.values().filter_map(|conn| conn.close_deadline);
        times.into_iter().flatten().chain(closes).min()
    }

    /// When the session is ended for lack of viewers.
    fn ttl_deadline(&self) -> Option<Instant> {
        let ttl = Duration::from_secs(self.core.meta.detached_ttl);
        let since = (!ttl.is_zero() && self.phase == Phase::Running).then_some(self.unattended_since?)?;
        since.checked_add(ttl)
    }

    pub(super) fn handle_time(&mut self) {
        let now = Instant::now();
        self.body.handle_time(&mut self.core, now);
        self.close_overdue(now);
        if self.ttl_deadline().is_some_and(|at| now >= at) {
            self.end(default_grace(self.core.meta.kind));
        }
        if self.path_check.is_some_and(|at| now >= at) {
            self.check_paths(now);
        }
        let may_finish = match self.phase {
            Phase::Ending(checks) if checks.next().is_some_and(|at| now < at) => false,
            Phase::Ending(mut checks) if checks.next().is_some() => {
                let all_exited = self.continue_ending(checks.kills(now));
                checks.handle_checked(now, all_exited);
                self.phase = Phase::Ending(checks);
                all_exited
            }
            Phase::Ending(_) => true,
            Phase::Running | Phase::Serving { .. } => true,
        };
        if may_finish {
            self.finish_if_done(now);
        }
    }

    /// Begins to end every process that the session started, or shortens the grace if that has begun.
    pub(super) fn end(&mut self, grace: Duration) {
        match self.phase {
            Phase::Running => {
                let now = Instant::now();
                self.phase = Phase::Ending(EndChecks::new(now, now + grace));
                self.body.handle_ending(&mut self.core, grace);
            }
            Phase::Ending(ref mut checks) => {
                checks.kill_by(Instant::now() + grace);
                self.body.handle_shorter_grace(&mut self.core, grace);
            }
            // The program has ended already: stop serving its viewers.
            Phase::Serving { .. } => self.phase = Phase::Serving { until: Instant::now() },
        }
    }

    /// Kills what is left of the tree if `kill` is set. Returns whether everything that may be signalled
    /// has exited, and the program was reaped. If the list of processes cannot be read, the next check
    /// tries again.
    fn continue_ending(&mut self, kill: bool) -> bool {
        let program = self.body.program();
        let Ok(left) = process_tree::members(program) else { return false };
        // Another user's processes cannot be killed. They lose their terminal when the session ends.
        let unkillable: Vec<_> = left.iter().filter(|member| kill && !member.signal(Signal::KILL)).collect();
        let program_stays = unkillable.iter().any(|member| Some(member.pid) == program);
        if left.len() > unkillable.len() || (!self.body.is_reaped() && !program_stays) {
            return false;
        }
        self.body.handle_tree_ended(&mut self.core);
        true
    }

    /// Records the exit once the program was reaped and all of its output was read.
    fn finish_if_done(&mut self, now: Instant) {
        // Another user's program may still run and then cannot be reaped; its session ends anyway.
        let ending = matches!(self.phase, Phase::Ending(_));
        let status = self.body.exit_status().cloned().or_else(|| ending.then(ExitStatus::default));
        let Some(status) = status else { return };
        if matches!(self.phase, Phase::Serving { .. }) || !self.body.is_drained(now) {
            return;
        }
        self.core.info.state = State::Exited;
        self.core.info.exit = Some(status.clone());
        self.core.info_changed = true;
        self.body.finish(&mut self.core, status, now);
        let _ = self.restore_meta(); // on a full disk, what `finish` freed makes room for it
        self.phase = Phase::Serving { until: now + SERVE_AFTER_EXIT };
    }

    /// Removes the socket and accepts connections that are already pending, so that they are served; later
    /// clients read the session's files. Returns whether the session is still over.
    pub(super) fn accept_pending(&mut self) -> bool {
        self.socket.unlink();
        self.accept();
        self.is_over()
    }

    /// Whether the program has ended, and either all viewers have left and all replies are sent, or the
    /// time for that is up.
    pub(super) fn is_over(&self) -> bool {
        let Phase::Serving { until } = self.phase else { return false };
        let unserved = |conn: &Conn| !conn.is_drained() || matches!(conn.role, Role::New | Role::Viewer);
        !self.conns.values().any(unserved) || Instant::now() >= until
    }
}
