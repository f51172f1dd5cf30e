//! What the server says: output by its place, snapshots whole, and everything else passed on.

use crate::problem::Code;
use std::time::Duration;

use bytes::Bytes;

use super::rendered::Rendered;
use super::{Client, ClientEvent, ClientState};
use crate::Offset;
use crate::close;
use crate::config::UNPOLLED;
use crate::frame::{Binary, Frame};
use crate::message::{Attached, Reason, Scope, ServerMessage};
use crate::session::ExitStatus;

impl Client {
    /// A frame came in. One that makes no sense ends the connection; the cursor resumes on the next.
    pub fn handle_frame(&mut self, frame: Frame<'_>, now: Duration) {
        self.tick(now);
        if self.deaf {
            return;
        }
        self.pulse.handle_heard(self.now);
        let read = match frame {
            Frame::Text(text) => match serde_json::from_str(text) {
                Ok(message) => self.read_message(message),
                Err(_) => Err("a malformed message"),
            },
            Frame::Binary(payload) => match Binary::decode(payload) {
                Ok(Binary::Output(offset, bytes)) => self.read_output(offset, bytes),
                Ok(Binary::Snapshot(bytes)) => self.read_part(bytes),
                Ok(Binary::Input(..)) | Err(_) => Err("a malformed payload"),
            },
        };
        let bounded = if self.events.bytes() > UNPOLLED { Err("more than the window") } else { Ok(()) };
        if let Err(reason) = read.and(bounded) {
            self.give_up(close::MALFORMED, reason);
        }
    }

    fn read_message(&mut self, message: ServerMessage) -> Result<(), &'static str> {
        let attached = self.state == ClientState::Attached;
        let in_order = attached && !self.place.is_painting();
        match message {
            ServerMessage::Attached(attached) => return self.read_attached(attached),
            ServerMessage::Ping { n } => self.pulse.handle_ping(n),
            ServerMessage::Pong { .. } | ServerMessage::Unknown => {}
            ServerMessage::Resize(size) if in_order => self.events.push(ClientEvent::Resize(size)),
            ServerMessage::Snapshot { reason, scope, missed, offset, size, bytes } if attached => {
                self.place.handle_snapshot(offset, bytes)?;
                self.events.push(ClientEvent::SnapshotBegin { reason, scope, missed, offset, size, bytes });
                self.end_snapshot();
            }
            ServerMessage::Ack { input } => {
                if attached && !self.outbox.ack(input, self.now) {
                    return Err("an ack of what was never sent");
                }
            }
            ServerMessage::Exit { code, signal, offset } if in_order => {
                if offset != self.place.next() {
                    return Err("an exit before the last byte");
                }
                self.events.push(ClientEvent::Exit { status: ExitStatus { code, signal }, offset });
                self.end();
            }
            ServerMessage::Resize(_) | ServerMessage::Snapshot { .. } | ServerMessage::Exit { .. } => {
                return Err("out of order");
            }
            ServerMessage::Accepted { ref id, .. } | ServerMessage::Rejected { ref id, .. } => {
                self.commands.handle_answer(id);
                self.events.push(ClientEvent::Message(message));
            }
            ServerMessage::Presence { ref clients } => {
                if let Some(me) = clients.iter().find(|present| present.client == self.config.client) {
                    self.you.size = me.size;
                }
                self.events.push(ClientEvent::Message(message));
            }
            ServerMessage::Error { code, .. } => {
                // The server lost track of this stream; `attached` on the next connection says where it is.
                let hole = code == Code::InputHole;
                self.events.push(ClientEvent::Message(message));
                if hole {
                    return Err("a hole in the input");
                }
            }
            ServerMessage::Close { code, reason } => {
                self.deaf = true;
                self.events.push(ClientEvent::Closing { code, reason });
            }
            ServerMessage::Title { .. }
            | ServerMessage::Cwd { .. }
            | ServerMessage::Notify { .. }
            | ServerMessage::Url { .. }
            | ServerMessage::Bell
            | ServerMessage::Event { .. } => self.events.push(ClientEvent::Message(message)),
        }
        Ok(())
    }

    fn read_attached(&mut self, attached: Box<Attached>) -> Result<(), &'static str> {
        if self.state != ClientState::Greeting {
            return Err("attached twice");
        }
        let another = self.place.handle_attached(&attached)?;
        let late = self.away.take().is_some_and(|since| self.now.saturating_sub(since) > self.config.unsent_after);
        // What was meant for another life is not typed into this one.
        if another {
            self.outbox.take_all();
        }
        self.outbox.resume(attached.input, late);
        self.you = attached.you;
        self.pulse.handle_heartbeat(Duration::from_millis(attached.heartbeat));
        self.rendered = Rendered::new(self.config.rendered_every, attached.offset);
        self.become_state(ClientState::Attached);
        let (offset, size, missed) = (attached.offset, attached.size, attached.missed);
        let (reason, snapshot) = (attached.reason.unwrap_or(Reason::Fresh), attached.snapshot);
        self.events.push(ClientEvent::Attached(attached));
        if let Some(length) = snapshot {
            self.place.handle_snapshot(offset, length.bytes)?;
            let (scope, bytes) = (Scope::All, length.bytes);
            self.events.push(ClientEvent::SnapshotBegin { reason, scope, missed, offset, size, bytes });
            self.end_snapshot();
        }
        if another || late {
            self.drop_commands();
        }
        Ok(())
    }

    fn read_part(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.place.handle_part(bytes.len())?;
        self.events.push(ClientEvent::SnapshotPart(Bytes::copy_from_slice(bytes)));
        self.end_snapshot();
        Ok(())
    }

    fn end_snapshot(&mut self) {
        if let Some(offset) = self.place.poll_painted() {
            self.rendered.handle_snapshot(offset);
            self.events.push(ClientEvent::SnapshotEnd { offset });
        }
    }

    fn read_output(&mut self, offset: Offset, bytes: &[u8]) -> Result<(), &'static str> {
        if self.state != ClientState::Attached {
            return Err("a hole in the output");
        }
        if let Some((offset, fresh)) = self.place.handle_output(offset, bytes)? {
            self.events.push(ClientEvent::Output { offset, bytes: Bytes::copy_from_slice(fresh) });
        }
        Ok(())
    }
}
