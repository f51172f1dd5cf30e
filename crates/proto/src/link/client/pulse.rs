//! Is the other end there: pings when it is silent, probes when it matters now.

use std::time::Duration;

use super::{Client, ClientState};
use crate::close;
use crate::config::{ATTACHED_WITHIN, LONG_SLEEP, PROBE_AFTER, PROBE_WITHIN, death};

impl Client {
    /// The machine slept, or the page was hidden: a connection that seems open is not believed.
    pub fn handle_wake(&mut self, now: Duration) {
        let slept = now.saturating_sub(self.now);
        self.tick(now);
        if self.deaf {
            return;
        }
        if slept >= LONG_SLEEP {
            self.give_up(close::SILENT, "asleep for too long");
        } else {
            self.start_probe();
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.tick(now);
        if self.deaf {
            return;
        }
        let late = self.state == ClientState::Greeting && self.connected + ATTACHED_WITHIN <= now;
        if self.probe.is_some_and(|at| at <= now) {
            self.give_up(close::SILENT, "no answer to a probe");
        } else if late || self.heard + death(self.heartbeat) <= now {
            self.give_up(close::SILENT, "silence");
        } else if self.probe_at().is_some_and(|at| at <= now) {
            self.start_probe();
        } else if self.ping_at() <= now {
            self.send_ping();
        }
    }

    /// When [`handle_timeout`](Client::handle_timeout) is to be called, at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.deaf {
            return None;
        }
        let late = (self.state == ClientState::Greeting).then(|| self.connected + ATTACHED_WITHIN);
        let due = self.rendered.due.filter(|at| *at > self.now);
        let hard = [Some(self.heard + death(self.heartbeat)), Some(self.ping_at()), late, self.probe, self.probe_at()];
        hard.into_iter().flatten().chain(due).min()
    }

    fn ping_at(&self) -> Duration {
        self.pinged.map_or(self.heard, |pinged| pinged.max(self.heard)) + self.heartbeat
    }

    /// When input without an ack, and nothing heard, calls for a probe.
    fn probe_at(&self) -> Option<Duration> {
        let waiting = self.outbox.waiting().filter(|_| self.probe.is_none())?;
        Some(waiting.max(self.heard) + PROBE_AFTER)
    }

    /// A live line is heard of until then, for it would be asked. One that is gone was so by then, whenever that is
    /// found out: nobody asks while the machine sleeps.
    pub(super) fn answer_due(&self) -> Duration {
        let typed = self.outbox.waiting().map(|waiting| waiting.max(self.heard) + PROBE_AFTER);
        typed.unwrap_or(Duration::MAX).min(self.heard + self.heartbeat)
    }

    fn start_probe(&mut self) {
        if self.probe.is_none() {
            self.probe = Some(self.now + PROBE_WITHIN);
            self.send_ping();
        }
    }

    fn send_ping(&mut self) {
        self.pinged = Some(self.now);
        self.pings += 1;
        self.ping = Some(self.pings);
    }
}
