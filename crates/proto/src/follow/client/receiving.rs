//! Handles frames from the server: checks that events continue the position, and queues them for the caller.

use std::time::Duration;

use super::{Client, ClientEvent, ClientState};
use crate::close;
use crate::follow::{FollowAttached, FollowMessage};
use crate::frame::Frame;
use crate::journal::Record;
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
                self.received.handle_record(&record)?;
                self.events.push_back(ClientEvent::Event(record));
            }
            FollowMessage::Exit { code, signal, offset } if attached => {
                if self.received.cursor().is_none_or(|next| next.offset != offset) {
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
        self.received.handle_verdict(attached.verdict, &attached.epoch, attached.offset)?;
        self.liveness.handle_heartbeat(Duration::from_millis(attached.heartbeat));
        self.state = ClientState::Attached;
        self.events.push_back(ClientEvent::Attached(attached));
        Ok(())
    }
}
