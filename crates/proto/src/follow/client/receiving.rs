//! Handles frames from the server: checks that events continue the position, and queues them for the caller.

use std::time::Duration;

use super::{Client, ClientEvent, ClientState};
use crate::close;
use crate::follow::{FollowAttached, FollowMessage};
use crate::frame::Frame;
use crate::journal::Record;
use crate::message::Verdict;
use crate::session::ExitStatus;

impl Client {
    /// A frame arrived. An invalid one ends the connection; the next connection resumes from the cursor.
    pub fn handle_frame(&mut self, frame: Frame<'_>, now: Duration) {
        self.tick(now);
        if self.inactive {
            return;
        }
        self.liveness.handle_received(self.now);
        let result = match frame {
            Frame::Text(text) => match serde_json::from_str(text) {
                Ok(message) => self.read_message(message),
                Err(_) => Err("a malformed message"),
            },
            Frame::Binary(_) => Err("a binary message"),
        };
        if let Err(reason) = result {
            self.lose(close::MALFORMED, reason);
        }
    }

    fn read_message(&mut self, message: FollowMessage) -> Result<(), &'static str> {
        let attached = self.state == ClientState::Attached;
        match message {
            FollowMessage::Attached(attached) => return self.read_attached(attached),
            FollowMessage::Event { seq, from, at, event } if attached => {
                let record = Record { seq, from, at, event };
                self.expected = next_after(&record, self.expected)?;
                self.events.push_back(ClientEvent::Event(record));
            }
            FollowMessage::Exit { code, signal, offset } if attached => {
                if offset != self.expected {
                    return Err("an exit before the last event");
                }
                self.events.push_back(ClientEvent::Exit { status: ExitStatus { code, signal }, offset });
                self.end();
            }
            FollowMessage::Event { .. } | FollowMessage::Exit { .. } => return Err("a message before attached"),
            FollowMessage::Ping { n } => self.liveness.handle_ping(n),
            FollowMessage::Pong { .. } | FollowMessage::Unknown => {}
            FollowMessage::Accepted { .. } | FollowMessage::Rejected { .. } | FollowMessage::Error { .. } => {
                self.events.push_back(ClientEvent::Message(message));
            }
            FollowMessage::Close { code, reason } => {
                self.inactive = true;
                self.events.push_back(ClientEvent::Closing { code, reason });
            }
        }
        Ok(())
    }

    fn read_attached(&mut self, attached: Box<FollowAttached>) -> Result<(), &'static str> {
        if self.state != ClientState::Greeting || self.hello_pending {
            return Err("attached without a hello, or twice");
        }
        let resumed = self.cursor.as_ref().is_some_and(|cursor| cursor.offset == attached.offset);
        if attached.verdict == Verdict::Exact && !resumed {
            return Err("an exact resume from another event than the next one");
        }
        self.liveness.handle_heartbeat(Duration::from_millis(attached.heartbeat));
        self.expected = attached.offset;
        self.state = ClientState::Attached;
        self.events.push_back(ClientEvent::Attached(attached));
        Ok(())
    }
}

/// The number after those that this record stands for, if it begins with the expected one.
fn next_after<E>(record: &Record<E>, expected: u64) -> Result<u64, &'static str> {
    let first = record.first();
    if first > expected {
        return Err("events are missing");
    }
    if first < expected {
        return Err("an event that was received before");
    }
    record.seq.checked_add(1).filter(|next| *next > first).ok_or("an event with an invalid range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_must_tile() {
        let next = |from, seq, expected| next_after(&Record { seq, from, at: String::new(), event: () }, expected);
        assert_eq!(next(None, 5, 5), Ok(6));
        assert_eq!(next(Some(5), 5, 5), Ok(6));
        assert_eq!(next(Some(5), 9, 5), Ok(10));
        for (from, seq, expected, error) in [
            (None, 6, 5, "events are missing"),
            (Some(6), 9, 5, "events are missing"),
            (None, 4, 5, "an event that was received before"),
            (Some(3), 4, 5, "an event that was received before"),
            (Some(4), 6, 5, "an event that was received before"),
            (Some(5), 4, 5, "an event with an invalid range"),
            (None, u64::MAX, u64::MAX, "an event with an invalid range"),
        ] {
            assert_eq!(next(from, seq, expected), Err(error), "{from:?}..{seq}, expected {expected}");
        }
    }
}
