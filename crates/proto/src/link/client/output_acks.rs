//! Decides when to acknowledge output that the viewer's terminal has rendered.

use std::time::Duration;

use crate::Offset;
use crate::config::ACK_IDLE;
use crate::message::ClientMessage;

/// How far output was polled, rendered and acknowledged on the current connection.
#[derive(Debug)]
pub(super) struct OutputAcks {
    every: u64,
    /// The end of the output that the caller has polled; not changed while it polls the parts of a snapshot.
    polled: Offset,
    rendered: Offset,
    acked: Offset,
    /// When to acknowledge.
    due: Option<Duration>,
    /// The offset of a snapshot, which is acknowledged as soon as it is rendered.
    snapshot: Option<Offset>,
}

impl OutputAcks {
    /// Output starts at `offset` and is acknowledged after every `every` rendered bytes, or after a short delay.
    pub(super) fn new(every: u64, offset: Offset) -> OutputAcks {
        OutputAcks { every, polled: 0, rendered: offset, acked: offset, due: None, snapshot: None }
    }

    /// The caller has polled everything before `offset`.
    pub(super) fn handle_polled(&mut self, offset: Offset) {
        self.polled = offset;
    }

    /// A whole snapshot at `offset` was received.
    pub(super) fn handle_snapshot(&mut self, offset: Offset) {
        self.snapshot = Some(offset);
    }

    /// The terminal has rendered everything before `offset`.
    pub(super) fn handle_rendered(&mut self, offset: Offset, now: Duration) {
        self.rendered = self.rendered.max(offset.min(self.polled));
        let snapshot = self.snapshot.is_some_and(|at| at <= self.rendered);
        if snapshot || self.rendered.saturating_sub(self.acked) >= self.every {
            self.due = Some(now);
        } else if self.rendered > self.acked {
            self.due.get_or_insert(now + ACK_IDLE);
        }
    }

    /// When the next acknowledgement is due, if that is after `now`.
    pub(super) fn poll_timeout(&self, now: Duration) -> Option<Duration> {
        self.due.filter(|at| *at > now)
    }

    /// The acknowledgement, if it is due.
    pub(super) fn poll_transmit(&mut self, now: Duration) -> Option<ClientMessage> {
        self.due.take_if(|at| *at <= now)?;
        self.snapshot = self.snapshot.filter(|at| *at > self.rendered);
        self.acked = self.rendered;
        Some(ClientMessage::Ack { output: self.rendered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_little_output_is_acknowledged_after_a_delay_and_much_or_a_snapshot_at_once() {
        let ack = |output| Some(ClientMessage::Ack { output });
        let mut acks = OutputAcks::new(100, 10);
        acks.handle_polled(30);
        acks.handle_rendered(1000, MS(0));
        assert_eq!((acks.poll_timeout(MS(0)), acks.poll_transmit(MS(0))), (Some(ACK_IDLE), None));
        assert_eq!(acks.poll_transmit(ACK_IDLE), ack(30), "never more than was polled");
        acks.handle_polled(130);
        acks.handle_rendered(130, MS(50));
        assert_eq!(acks.poll_transmit(MS(50)), ack(130));
        acks.handle_snapshot(131);
        acks.handle_polled(131);
        acks.handle_rendered(131, MS(60));
        assert_eq!((acks.poll_transmit(MS(60)), acks.poll_transmit(MS(90))), (ack(131), None));
    }
}
