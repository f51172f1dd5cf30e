//! What the viewer's terminal has taken on this connection, and what the server knows of it.

use std::time::Duration;

use crate::Offset;
use crate::config::RENDERED_IDLE;
use crate::message::ClientMessage;

/// Output from its delivery to its acknowledgement.
#[derive(Debug)]
pub(super) struct Rendered {
    every: u64,
    /// How far the caller was given output, also while a later snapshot is half given.
    polled: Offset,
    offset: Offset,
    acked: Offset,
    /// When to acknowledge what is rendered.
    due: Option<Duration>,
    /// The offset of a snapshot that is to be acknowledged at once.
    snapshot: Option<Offset>,
}

impl Rendered {
    /// Output begins at `offset`, and is acknowledged each time `every` bytes of it are rendered.
    pub(super) fn new(every: u64, offset: Offset) -> Rendered {
        Rendered { every, polled: 0, offset, acked: offset, due: None, snapshot: None }
    }

    /// The caller was given everything up to here.
    pub(super) fn handle_polled(&mut self, offset: Offset) {
        self.polled = offset;
    }

    /// A snapshot is whole.
    pub(super) fn handle_snapshot(&mut self, offset: Offset) {
        self.snapshot = Some(offset);
    }

    /// The terminal took everything up to here.
    pub(super) fn handle_rendered(&mut self, offset: Offset, now: Duration) {
        self.offset = self.offset.max(offset.min(self.polled));
        let snapshot = self.snapshot.is_some_and(|at| at <= self.offset);
        if snapshot || self.offset.saturating_sub(self.acked) >= self.every {
            self.due = Some(now);
        } else if self.offset > self.acked {
            self.due.get_or_insert(now + RENDERED_IDLE);
        }
    }

    /// When an acknowledgement is due, if that is after `now`.
    pub(super) fn poll_timeout(&self, now: Duration) -> Option<Duration> {
        self.due.filter(|at| *at > now)
    }

    /// The acknowledgement that is due.
    pub(super) fn poll_transmit(&mut self, now: Duration) -> Option<ClientMessage> {
        self.due.take_if(|at| *at <= now)?;
        self.snapshot = self.snapshot.filter(|at| *at > self.offset);
        self.acked = self.offset;
        Some(ClientMessage::Ack { output: self.offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn little_is_acknowledged_after_a_moment_and_much_or_a_snapshot_at_once() {
        let ack = |output| Some(ClientMessage::Ack { output });
        let mut rendered = Rendered::new(100, 10);
        rendered.handle_polled(30);
        rendered.handle_rendered(1000, MS(0));
        assert_eq!((rendered.poll_timeout(MS(0)), rendered.poll_transmit(MS(0))), (Some(RENDERED_IDLE), None));
        assert_eq!(rendered.poll_transmit(RENDERED_IDLE), ack(30), "never more than was given");
        rendered.handle_polled(130);
        rendered.handle_rendered(130, MS(50));
        assert_eq!(rendered.poll_transmit(MS(50)), ack(130));
        rendered.handle_snapshot(131);
        rendered.handle_polled(131);
        rendered.handle_rendered(131, MS(60));
        assert_eq!((rendered.poll_transmit(MS(60)), rendered.poll_transmit(MS(90))), (ack(131), None));
    }
}
