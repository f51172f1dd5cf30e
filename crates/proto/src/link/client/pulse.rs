//! Is the other end there: pings when it is silent, probes when it matters now.

use std::time::Duration;

use crate::config::{ATTACHED_WITHIN, HEARTBEAT, LONG_SLEEP, PROBE_AFTER, PROBE_WITHIN, death};
use crate::message::ClientMessage;

/// The signs of life of one connection after the other.
#[derive(Debug)]
pub(super) struct Pulse {
    /// Silence after which a side pings.
    heartbeat: Duration,
    heard: Duration,
    connected: Duration,
    pinged: Option<Duration>,
    pings: u64,
    ping: Option<u64>,
    pong: Option<u64>,
    /// Something must have come by then.
    probe: Option<Duration>,
}

/// What a pulse must know of the link that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// `attached` has not come yet on this connection.
    pub(super) greeting: bool,
    /// Since when input in flight waits for its acknowledgement.
    pub(super) waiting: Option<Duration>,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        Pulse {
            heartbeat: HEARTBEAT,
            heard: Duration::ZERO,
            connected: Duration::ZERO,
            pinged: None,
            pings: 0,
            ping: None,
            pong: None,
            probe: None,
        }
    }

    /// A new connection.
    pub(super) fn handle_connected(&mut self, now: Duration) {
        self.handle_disconnected();
        (self.heard, self.connected, self.pinged) = (now, now, None);
    }

    /// The connection is gone.
    pub(super) fn handle_disconnected(&mut self) {
        (self.ping, self.pong, self.probe) = (None, None, None);
    }

    /// The server said how often a side pings.
    pub(super) fn handle_heartbeat(&mut self, heartbeat: Duration) {
        self.heartbeat = heartbeat.max(Duration::from_millis(1));
    }

    /// Something came in.
    pub(super) fn handle_heard(&mut self, now: Duration) {
        (self.heard, self.probe) = (now, None);
    }

    /// A ping came in.
    pub(super) fn handle_ping(&mut self, n: u64) {
        self.pong = Some(n);
    }

    /// The machine slept. Returns why the connection is to be given up, if it is.
    pub(super) fn handle_wake(&mut self, slept: Duration, now: Duration) -> Option<&'static str> {
        if slept >= LONG_SLEEP {
            return Some("asleep for too long");
        }
        self.start_probe(now);
        None
    }

    /// Time has passed. Returns why the connection is to be given up, if it is.
    pub(super) fn handle_timeout(&mut self, now: Duration, context: Context) -> Option<&'static str> {
        let late = context.greeting && self.connected + ATTACHED_WITHIN <= now;
        if self.probe.is_some_and(|at| at <= now) {
            return Some("no answer to a probe");
        }
        if late || self.heard + death(self.heartbeat) <= now {
            return Some("silence");
        }
        if self.probe_at(context).is_some_and(|at| at <= now) {
            self.start_probe(now);
        } else if self.ping_at() <= now {
            self.send_ping(now);
        }
        None
    }

    /// When [`handle_timeout`](Pulse::handle_timeout) is to be called, at the latest.
    pub(super) fn poll_timeout(&self, context: Context) -> Duration {
        let silence = self.ping_at().min(self.heard + death(self.heartbeat));
        let late = context.greeting.then(|| self.connected + ATTACHED_WITHIN);
        [late, self.probe, self.probe_at(context)].into_iter().flatten().fold(silence, Duration::min)
    }

    /// A live line is heard of until then, for it would be asked. One that is gone was so by then, whenever that is
    /// found out: nobody asks while the machine sleeps.
    pub(super) fn answer_due(&self, waiting: Option<Duration>) -> Duration {
        let typed = waiting.map(|waiting| waiting.max(self.heard) + PROBE_AFTER);
        typed.unwrap_or(Duration::MAX).min(self.heard + self.heartbeat)
    }

    /// The next ping or pong to send.
    pub(super) fn poll_transmit(&mut self) -> Option<ClientMessage> {
        let pong = self.pong.take().map(|n| ClientMessage::Pong { n });
        pong.or_else(|| self.ping.take().map(|n| ClientMessage::Ping { n }))
    }

    fn ping_at(&self) -> Duration {
        self.pinged.map_or(self.heard, |pinged| pinged.max(self.heard)) + self.heartbeat
    }

    /// When input without an acknowledgement, and silence, call for a probe.
    fn probe_at(&self, context: Context) -> Option<Duration> {
        let waiting = context.waiting.filter(|_| self.probe.is_none())?;
        Some(waiting.max(self.heard) + PROBE_AFTER)
    }

    fn start_probe(&mut self, now: Duration) {
        if self.probe.is_none() {
            self.probe = Some(now + PROBE_WITHIN);
            self.send_ping(now);
        }
    }

    fn send_ping(&mut self, now: Duration) {
        self.pinged = Some(now);
        self.pings += 1;
        self.ping = Some(self.pings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECS: fn(u64) -> Duration = Duration::from_secs;
    const IDLE: Context = Context { greeting: false, waiting: None };

    #[test]
    fn r10_silence_is_pinged_then_given_up() {
        let mut pulse = Pulse::new();
        pulse.handle_connected(SECS(1));
        assert_eq!(pulse.poll_timeout(IDLE), SECS(21));
        assert_eq!(pulse.handle_timeout(SECS(21), IDLE), None);
        assert_eq!(pulse.poll_transmit(), Some(ClientMessage::Ping { n: 1 }));
        assert_eq!(pulse.handle_timeout(SECS(46), IDLE), Some("silence"));
        pulse.handle_heard(SECS(45));
        assert_eq!(pulse.handle_timeout(SECS(46), IDLE), None);
    }

    #[test]
    fn r12_input_without_an_answer_is_probed_and_any_word_answers() {
        let mut pulse = Pulse::new();
        pulse.handle_connected(SECS(0));
        let typed = Context { greeting: false, waiting: Some(SECS(1)) };
        assert_eq!((pulse.poll_timeout(typed), pulse.answer_due(typed.waiting)), (SECS(4), SECS(4)));
        assert_eq!(pulse.handle_timeout(SECS(4), typed), None);
        assert_eq!(pulse.poll_transmit(), Some(ClientMessage::Ping { n: 1 }));
        assert_eq!(pulse.poll_timeout(typed), SECS(6));
        pulse.handle_heard(SECS(5));
        assert_eq!(pulse.handle_timeout(SECS(6), typed), None);
        assert_eq!(pulse.handle_timeout(SECS(8), typed), None);
        assert_eq!(pulse.handle_timeout(SECS(10), typed), Some("no answer to a probe"));
    }

    #[test]
    fn a_pong_goes_before_a_ping_and_neither_outlives_its_connection() {
        let mut pulse = Pulse::new();
        pulse.handle_ping(7);
        assert_eq!(pulse.handle_wake(SECS(1), SECS(1)), None);
        assert_eq!(pulse.poll_transmit(), Some(ClientMessage::Pong { n: 7 }));
        pulse.handle_disconnected();
        assert_eq!(pulse.poll_transmit(), None);
        assert_eq!(pulse.handle_wake(LONG_SLEEP, LONG_SLEEP), Some("asleep for too long"));
    }
}
