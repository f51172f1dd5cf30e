//! Handles frames from the server: checks that output and snapshots continue the position, and queues events.

use std::time::Duration;

use bytes::Bytes;

use super::output_acks::OutputAcks;
use super::{Client, ClientEvent, ClientState};
use crate::Offset;
use crate::close;
use crate::config::UNPOLLED;
use crate::frame::{Binary, Frame};
use crate::message::{Attached, Reason, Scope, ServerMessage};
use crate::problem::Code;
use crate::session::ExitStatus;

impl Client {
    /// A frame arrived. An invalid one closes the connection; the next connection resumes from the cursor.
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
            Frame::Binary(payload) => match Binary::decode(payload) {
                Ok(Binary::Output(offset, bytes)) => self.read_output(offset, bytes),
                Ok(Binary::Snapshot(bytes)) => self.read_part(bytes),
                Ok(Binary::Input(..)) | Err(_) => Err("a malformed payload"),
            },
        };
        let bounded = if self.events.bytes() > UNPOLLED { Err("more output than the window allows") } else { Ok(()) };
        if let Err(reason) = result.and(bounded) {
            self.close_connection(close::MALFORMED, reason);
        }
    }

    fn read_message(&mut self, message: ServerMessage) -> Result<(), &'static str> {
        let attached = self.state == ClientState::Attached;
        let in_order = attached && !self.position.in_snapshot();
        match message {
            ServerMessage::Attached(attached) => return self.read_attached(attached),
            ServerMessage::Ping { n } => self.liveness.handle_ping(n),
            ServerMessage::Pong { .. } | ServerMessage::Unknown => {}
            ServerMessage::Resize(size) if in_order => self.events.push(ClientEvent::Resize(size)),
            ServerMessage::Snapshot { reason, scope, missed, offset, size, bytes } if attached => {
                self.position.handle_snapshot(offset, bytes)?;
                self.events.push(ClientEvent::SnapshotBegin { reason, scope, missed, offset, size, bytes });
                self.finish_snapshot();
            }
            ServerMessage::Ack { input } => {
                if attached && !self.outbox.handle_ack(input, self.now) {
                    return Err("an acknowledgement of input that was never sent");
                }
            }
            ServerMessage::Exit { code, signal, offset } if in_order => {
                if offset != self.position.next() {
                    return Err("an exit before the last byte");
                }
                self.events.push(ClientEvent::Exit { status: ExitStatus { code, signal }, offset });
                self.end();
            }
            ServerMessage::Resize(_) | ServerMessage::Snapshot { .. } | ServerMessage::Exit { .. } => {
                return Err("a message out of order");
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
                // The next `attached` says which offset the server expects.
                let hole = code == Code::InputHole;
                self.events.push(ClientEvent::Message(message));
                if hole {
                    return Err("a hole in the input");
                }
            }
            ServerMessage::Close { code, reason } => {
                self.inactive = true;
                self.events.push(ClientEvent::Closing { code, reason });
            }
            ServerMessage::Title { .. }
            | ServerMessage::Cwd { .. }
            | ServerMessage::Notify { .. }
            | ServerMessage::Url { .. }
            | ServerMessage::Bell => self.events.push(ClientEvent::Message(message)),
        }
        Ok(())
    }

    fn read_attached(&mut self, attached: Box<Attached>) -> Result<(), &'static str> {
        if self.state != ClientState::Greeting {
            return Err("attached twice");
        }
        let epoch_changed = self.position.handle_attached(&attached)?;
        let offline = self.offline_since.take().map_or(Duration::ZERO, |since| self.now.saturating_sub(since));
        let late = offline > self.config.unsent_after;
        // Input meant for one epoch must not be typed into another.
        if epoch_changed {
            self.outbox.withdraw_all();
        }
        self.outbox.resume(attached.input, late);
        self.you = attached.you;
        self.liveness.handle_heartbeat(Duration::from_millis(attached.heartbeat));
        self.acks = OutputAcks::new(self.config.rendered_every, attached.offset);
        self.set_state(ClientState::Attached);
        let (offset, size, missed) = (attached.offset, attached.size, attached.missed);
        let (reason, snapshot) = (attached.reason.unwrap_or(Reason::Fresh), attached.snapshot);
        self.events.push(ClientEvent::Attached(attached));
        if let Some(length) = snapshot {
            self.position.handle_snapshot(offset, length.bytes)?;
            let (scope, bytes) = (Scope::All, length.bytes);
            self.events.push(ClientEvent::SnapshotBegin { reason, scope, missed, offset, size, bytes });
            self.finish_snapshot();
        }
        if epoch_changed || late {
            self.drop_commands();
        }
        Ok(())
    }

    fn read_part(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.position.handle_part(bytes.len())?;
        self.events.push(ClientEvent::SnapshotPart(Bytes::copy_from_slice(bytes)));
        self.finish_snapshot();
        Ok(())
    }

    fn finish_snapshot(&mut self) {
        if let Some(offset) = self.position.poll_snapshot() {
            self.acks.handle_snapshot(offset);
            self.events.push(ClientEvent::SnapshotEnd { offset });
        }
    }

    fn read_output(&mut self, offset: Offset, bytes: &[u8]) -> Result<(), &'static str> {
        if self.state != ClientState::Attached {
            return Err("output before attached");
        }
        if let Some((offset, new)) = self.position.handle_output(offset, bytes)? {
            self.events.push(ClientEvent::Output { offset, bytes: Bytes::copy_from_slice(new) });
        }
        Ok(())
    }
}
