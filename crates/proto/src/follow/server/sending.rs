//! Chooses what to send on a connection next: pongs and errors first, then answers, then events in order.

use std::time::Duration;

use super::{ConnId, Server, Transmit};
use crate::close;
use crate::follow::{FollowAttached, FollowMessage, FollowPermissions};

impl Server {
    /// The next thing to send on a connection. Call it only while the connection's buffer has room.
    pub fn poll_transmit(&mut self, id: ConnId, now: Duration) -> Option<Transmit> {
        self.tick(now);
        let conn = self.conns.get_mut(&id)?;
        if let Some(message) = conn.next_urgent() {
            return Some(Transmit::Text(message.into()));
        }
        if let Some((code, reason)) = conn.next_close() {
            return Some(Transmit::Close { code, reason });
        }
        if !conn.is_open() || conn.viewer.is_none() {
            return None;
        }
        if let Some(ping) = conn.next_ping(self.config.heartbeat, self.now) {
            return Some(Transmit::Text(ping.into()));
        }
        if let Some(attached) = self.next_attached(id) {
            return Some(Transmit::Text(attached));
        }
        let end = self.end;
        let follower = self.follower(id)?;
        if let Some(answer) = follower.next_answer() {
            return Some(Transmit::Text(answer));
        }
        if follower.next < end {
            return Some(Transmit::Events { from: follower.next, to: end });
        }
        let exit = self.exit.clone()?;
        self.close(id, close::NORMAL, "the session exited");
        Some(Transmit::Text(FollowMessage::Exit { code: exit.code, signal: exit.signal, offset: end }))
    }

    /// The answer to a hello. The verdict is made only now, so that the description is true at `offset`, and so that
    /// the cursor is compared with the journal as it is.
    fn next_attached(&mut self, id: ConnId) -> Option<FollowMessage> {
        let cursor = self.follower(id)?.unanswered_hello.take()?;
        let resume = self.epochs.resume(cursor.as_ref(), self.end);
        let session = self.info();
        let heartbeat = self.config.heartbeat.as_millis() as u64;
        let follower = self.follower(id)?;
        follower.next = resume.offset;
        Some(FollowMessage::Attached(Box::new(FollowAttached {
            epoch: session.epoch.clone(),
            session,
            offset: resume.offset,
            verdict: resume.verdict,
            reason: resume.reason,
            you: FollowPermissions { write: follower.write },
            heartbeat,
        })))
    }
}
