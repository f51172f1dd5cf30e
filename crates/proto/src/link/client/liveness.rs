//! Detects dead connections: pings after silence, and probes when input is unacknowledged.

use std::time::Duration;

use crate::config::{ATTACHED_WITHIN, HEARTBEAT, LONG_SLEEP, PROBE_AFTER, PROBE_WITHIN, silence_limit};
use crate::message::ClientMessage;

/// What was last received and pinged on the current connection.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// After this much silence, either side sends a ping.
    heartbeat: Duration,
    last_received: Duration,
    connected: Duration,
    last_ping: Option<Duration>,
    pings: u64,
    pending_ping: Option<u64>,
    pending_pong: Option<u64>,
    /// A probe is under way, and something must be received by this time.
    probe_deadline: Option<Duration>,
}

/// The state of the link that affects its timeouts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// `attached` has not arrived yet on this connection.
    pub(crate) greeting: bool,
    /// Since when the oldest input in flight has been unacknowledged.
    pub(crate) unacked_since: Option<Duration>,
}

impl Liveness {
    pub(crate) fn new() -> Liveness {
        Liveness {
            heartbeat: HEARTBEAT,
            last_received: Duration::ZERO,
            connected: Duration::ZERO,
            last_ping: None,
            pings: 0,
            pending_ping: None,
            pending_pong: None,
            probe_deadline: None,
        }
    }

    pub(crate) fn handle_connected(&mut self, now: Duration) {
        self.handle_disconnected();
        (self.last_received, self.connected, self.last_ping) = (now, now, None);
    }

    pub(crate) fn handle_disconnected(&mut self) {
        (self.pending_ping, self.pending_pong, self.probe_deadline) = (None, None, None);
    }

    /// The server announced the heartbeat interval.
    pub(crate) fn handle_heartbeat(&mut self, heartbeat: Duration) {
        self.heartbeat = heartbeat.max(Duration::from_millis(1));
    }

    /// A frame arrived; any frame answers a probe.
    pub(crate) fn handle_received(&mut self, now: Duration) {
        (self.last_received, self.probe_deadline) = (now, None);
    }

    pub(crate) fn handle_ping(&mut self, n: u64) {
        self.pending_pong = Some(n);
    }

    /// The machine slept. Returns the reason to close the connection, if there is one.
    pub(crate) fn handle_wake(&mut self, slept: Duration, now: Duration) -> Option<&'static str> {
        if slept >= LONG_SLEEP {
            return Some("the machine slept for too long");
        }
        self.start_probe(now);
        None
    }

    /// Time has passed. Returns the reason to close the connection, if there is one.
    pub(crate) fn handle_timeout(&mut self, now: Duration, context: Context) -> Option<&'static str> {
        let late = context.greeting && self.connected + ATTACHED_WITHIN <= now;
        if self.probe_deadline.is_some_and(|at| at <= now) {
            return Some("no answer to a probe");
        }
        if late || self.last_received + silence_limit(self.heartbeat) <= now {
            return Some("no message for too long");
        }
        if self.probe_at(context).is_some_and(|at| at <= now) {
            self.start_probe(now);
        } else if self.ping_at() <= now {
            self.send_ping(now);
        }
        None
    }

    /// When to call [`handle_timeout`](Liveness::handle_timeout), at the latest.
    pub(crate) fn poll_timeout(&self, context: Context) -> Duration {
        let silence = self.ping_at().min(self.last_received + silence_limit(self.heartbeat));
        let late = context.greeting.then(|| self.connected + ATTACHED_WITHIN);
        [late, self.probe_deadline, self.probe_at(context)].into_iter().flatten().fold(silence, Duration::min)
    }

    /// The latest time at which a connection that is now known to be lost can have been lost.
    ///
    /// A working connection would have been probed or pinged by then. While the machine sleeps it is neither, so the
    /// loss may be noticed much later.
    pub(crate) fn loss_bound(&self, unacked_since: Option<Duration>) -> Duration {
        let probe = unacked_since.map(|since| since.max(self.last_received) + PROBE_AFTER);
        probe.unwrap_or(Duration::MAX).min(self.last_received + self.heartbeat)
    }

    /// The next ping or pong to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<ClientMessage> {
        let pong = self.pending_pong.take().map(|n| ClientMessage::Pong { n });
        pong.or_else(|| self.pending_ping.take().map(|n| ClientMessage::Ping { n }))
    }

    fn ping_at(&self) -> Duration {
        self.last_ping.map_or(self.last_received, |ping| ping.max(self.last_received)) + self.heartbeat
    }

    /// When to send a probe, because input is unacknowledged and nothing is received.
    fn probe_at(&self, context: Context) -> Option<Duration> {
        let since = context.unacked_since.filter(|_| self.probe_deadline.is_none())?;
        Some(since.max(self.last_received) + PROBE_AFTER)
    }

    fn start_probe(&mut self, now: Duration) {
        if self.probe_deadline.is_none() {
            self.probe_deadline = Some(now + PROBE_WITHIN);
            self.send_ping(now);
        }
    }

    fn send_ping(&mut self, now: Duration) {
        self.last_ping = Some(now);
        self.pings += 1;
        self.pending_ping = Some(self.pings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECS: fn(u64) -> Duration = Duration::from_secs;
    const IDLE: Context = Context { greeting: false, unacked_since: None };

    #[test]
    fn r10_silence_leads_to_a_ping_and_then_to_a_close() {
        let mut liveness = Liveness::new();
        liveness.handle_connected(SECS(1));
        assert_eq!(liveness.poll_timeout(IDLE), SECS(21));
        assert_eq!(liveness.handle_timeout(SECS(21), IDLE), None);
        assert_eq!(liveness.poll_transmit(), Some(ClientMessage::Ping { n: 1 }));
        assert_eq!(liveness.handle_timeout(SECS(46), IDLE), Some("no message for too long"));
        liveness.handle_received(SECS(45));
        assert_eq!(liveness.handle_timeout(SECS(46), IDLE), None);
    }

    #[test]
    fn r12_unacknowledged_input_starts_a_probe_and_any_frame_answers_it() {
        let mut liveness = Liveness::new();
        liveness.handle_connected(SECS(0));
        let typed = Context { greeting: false, unacked_since: Some(SECS(1)) };
        assert_eq!((liveness.poll_timeout(typed), liveness.loss_bound(typed.unacked_since)), (SECS(4), SECS(4)));
        assert_eq!(liveness.handle_timeout(SECS(4), typed), None);
        assert_eq!(liveness.poll_transmit(), Some(ClientMessage::Ping { n: 1 }));
        assert_eq!(liveness.poll_timeout(typed), SECS(6));
        liveness.handle_received(SECS(5));
        assert_eq!(liveness.handle_timeout(SECS(6), typed), None);
        assert_eq!(liveness.handle_timeout(SECS(8), typed), None);
        assert_eq!(liveness.handle_timeout(SECS(10), typed), Some("no answer to a probe"));
    }

    #[test]
    fn a_pong_precedes_a_ping_and_neither_outlives_its_connection() {
        let mut liveness = Liveness::new();
        liveness.handle_ping(7);
        assert_eq!(liveness.handle_wake(SECS(1), SECS(1)), None);
        assert_eq!(liveness.poll_transmit(), Some(ClientMessage::Pong { n: 7 }));
        liveness.handle_disconnected();
        assert_eq!(liveness.poll_transmit(), None);
        assert_eq!(liveness.handle_wake(LONG_SLEEP, LONG_SLEEP), Some("the machine slept for too long"));
    }
}
