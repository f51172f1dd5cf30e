//! What the server says: output by its place, snapshots whole, and everything else passed on.

use crate::problem::Code;
use std::time::Duration;

use bytes::Bytes;

use super::{Client, ClientEvent, ClientState, Painting, Rendered};
use crate::Offset;
use crate::close;
use crate::config::UNPOLLED;
use crate::frame::{Binary, Frame};
use crate::message::{Attached, Reason, Scope, ServerMessage, Verdict};
use crate::session::ExitStatus;

impl Client {
    /// A frame came in. One that makes no sense ends the connection; the cursor resumes on the next.
    pub fn handle_frame(&mut self, frame: Frame<'_>, now: Duration) {
        self.tick(now);
        if self.deaf {
            return;
        }
        (self.heard, self.probe) = (self.now, None);
        match frame {
            Frame::Text(text) => match serde_json::from_str(text) {
                Ok(message) => self.read_message(message),
                Err(_) => self.give_up(close::MALFORMED, "a malformed message"),
            },
            Frame::Binary(payload) => match Binary::decode(payload) {
                Ok(Binary::Output(offset, bytes)) => self.read_output(offset, bytes),
                Ok(Binary::Snapshot(bytes)) => self.read_part(bytes),
                Ok(Binary::Input(..)) | Err(_) => self.give_up(close::MALFORMED, "a malformed payload"),
            },
        }
        if self.unpolled > UNPOLLED {
            self.give_up(close::MALFORMED, "more than the window");
        }
    }

    fn read_message(&mut self, message: ServerMessage) {
        let attached = self.state == ClientState::Attached;
        match message {
            ServerMessage::Attached(attached) => self.read_attached(attached),
            ServerMessage::Ping { n } => self.pong = Some(n),
            ServerMessage::Pong { .. } | ServerMessage::Unknown => {}
            ServerMessage::Resize(size) if attached && self.painting.is_none() => {
                self.events.push_back(ClientEvent::Resize(size));
            }
            ServerMessage::Snapshot { reason, scope, missed, offset, size, bytes } if attached => {
                if self.painting.is_some() || offset < self.next {
                    return self.give_up(close::MALFORMED, "a snapshot of the past");
                }
                let begin = ClientEvent::SnapshotBegin { reason, scope, missed, offset, size, bytes };
                self.begin_snapshot(begin, offset, bytes);
            }
            ServerMessage::Ack { input } => {
                let now = self.now;
                if attached && !self.outbox.ack(input, now) {
                    self.give_up(close::MALFORMED, "an ack of what was never sent");
                }
            }
            ServerMessage::Exit { code, signal, offset } if attached && self.painting.is_none() => {
                if offset != self.next {
                    return self.give_up(close::MALFORMED, "an exit before the last byte");
                }
                self.events.push_back(ClientEvent::Exit { status: ExitStatus { code, signal }, offset });
                self.end();
            }
            ServerMessage::Resize(_) | ServerMessage::Snapshot { .. } | ServerMessage::Exit { .. } => {
                self.give_up(close::MALFORMED, "out of order");
            }
            ServerMessage::Accepted { ref id, .. } | ServerMessage::Rejected { ref id, .. } => {
                if let Some(at) = self.commands.iter().position(|(other, _)| other == id) {
                    self.commands.remove(at);
                    self.commanded -= usize::from(at < self.commanded);
                }
                self.events.push_back(ClientEvent::Message(message));
            }
            ServerMessage::Presence { ref clients } => {
                if let Some(me) = clients.iter().find(|present| present.client == self.config.client) {
                    self.you.size = me.size;
                }
                self.events.push_back(ClientEvent::Message(message));
            }
            ServerMessage::Error { ref code, .. } => {
                // The server lost track of this stream; `attached` on the next connection says where it is.
                let hole = *code == Code::InputHole;
                self.events.push_back(ClientEvent::Message(message));
                if hole {
                    self.give_up(close::MALFORMED, "a hole in the input");
                }
            }
            ServerMessage::Close { code, reason } => {
                self.deaf = true;
                self.events.push_back(ClientEvent::Closing { code, reason });
            }
            ServerMessage::Title { .. }
            | ServerMessage::Cwd { .. }
            | ServerMessage::Notify { .. }
            | ServerMessage::Url { .. }
            | ServerMessage::Bell
            | ServerMessage::Event { .. } => self.events.push_back(ClientEvent::Message(message)),
        }
    }

    fn read_attached(&mut self, attached: Box<Attached>) {
        if self.state != ClientState::Greeting {
            return self.give_up(close::MALFORMED, "attached twice");
        }
        let here = self.cursor.as_ref().map(|cursor| cursor.offset);
        if attached.verdict == Verdict::Exact && here != Some(attached.offset) {
            return self.give_up(close::MALFORMED, "exact, but from another place");
        }
        let another = self.epoch.as_ref().is_some_and(|epoch| *epoch != attached.epoch);
        let late = self.away.take().is_some_and(|since| self.now.saturating_sub(since) > self.config.unsent_after);
        // What was meant for another life is not typed into this one.
        if another {
            self.outbox.take_all();
        }
        self.outbox.resume(attached.input, late);
        self.epoch = Some(attached.epoch.clone());
        self.you = attached.you;
        self.heartbeat = Duration::from_millis(attached.heartbeat.max(1));
        self.next = attached.offset;
        self.rendered = Rendered { offset: attached.offset, acked: attached.offset, ..Rendered::default() };
        self.become_state(ClientState::Attached);
        let (reason, missed) = (attached.reason, attached.missed);
        let (offset, size, snapshot) = (attached.offset, attached.size, attached.snapshot);
        self.events.push_back(ClientEvent::Attached(attached));
        if let Some(length) = snapshot {
            let (reason, bytes) = (reason.unwrap_or(Reason::Fresh), length.bytes);
            let begin = ClientEvent::SnapshotBegin { reason, scope: Scope::All, missed, offset, size, bytes };
            self.begin_snapshot(begin, offset, bytes);
        }
        if another || late {
            self.events.extend(self.commands.drain(..).map(|(id, _)| ClientEvent::CommandUnsent { id }));
        }
    }

    fn begin_snapshot(&mut self, begin: ClientEvent, offset: Offset, bytes: u64) {
        self.events.push_back(begin);
        self.next = offset;
        self.painting = Some(Painting { offset, left: bytes });
        self.end_snapshot();
    }

    fn read_part(&mut self, bytes: &[u8]) {
        let Some(painting) = &mut self.painting else {
            return self.give_up(close::MALFORMED, "a part of no snapshot");
        };
        let Some(left) = painting.left.checked_sub(bytes.len() as u64) else {
            return self.give_up(close::MALFORMED, "a snapshot longer than announced");
        };
        painting.left = left;
        self.unpolled += bytes.len();
        self.events.push_back(ClientEvent::SnapshotPart(Bytes::copy_from_slice(bytes)));
        self.end_snapshot();
    }

    fn end_snapshot(&mut self) {
        if let Some(Painting { offset, left: 0 }) = self.painting {
            self.painting = None;
            self.rendered.snapshot = Some(offset);
            self.events.push_back(ClientEvent::SnapshotEnd { offset });
        }
    }

    /// Overlap is trimmed, a hole ends the connection.
    fn read_output(&mut self, offset: Offset, bytes: &[u8]) {
        if self.state != ClientState::Attached || self.painting.is_some() || offset > self.next {
            return self.give_up(close::MALFORMED, "a hole in the output");
        }
        let seen = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
        let Some(fresh) = bytes.get(seen..).filter(|fresh| !fresh.is_empty()) else { return };
        self.unpolled += fresh.len();
        self.events.push_back(ClientEvent::Output { offset: self.next, bytes: Bytes::copy_from_slice(fresh) });
        self.next += fresh.len() as u64;
    }
}
