//! What a connection says, once it is open: text and input, each checked before it has an effect.

use crate::problem::Code;
use std::time::Duration;

use serde::Deserialize;

use super::typing::Typed;
use super::{ConnId, Server, ServerEvent};
use crate::Offset;
use crate::close;
use crate::config::{COMMAND_ID, COMMANDS, INPUT_FRAME, INPUT_WINDOW, TEXT};
use crate::frame::{Binary, Frame};
use crate::hello::BadHello;
use crate::message::{ClientMessage, Reason, ServerMessage};
use crate::size::Size;

/// The most frequent message, read without the detour over a tagged enum.
#[derive(Deserialize)]
struct Ack {
    output: Offset,
}

const ACK_START: &str = r#"{"type":"ack","#;

impl Server {
    /// A frame came in. Whatever it holds, the worst is that its own connection is closed.
    pub fn handle_frame(&mut self, id: ConnId, frame: Frame<'_>, now: Duration) {
        self.tick(now);
        let Some(conn) = self.conns.get_mut(&id).filter(|conn| conn.is_open()) else { return };
        conn.heard(now);
        let greeted = conn.viewer.is_some();
        match frame {
            Frame::Text(text) if !greeted => self.greet(id, text),
            Frame::Text(text) => self.read_text(id, text),
            Frame::Binary(_) if !greeted => self.refuse_hello(id, &BadHello::NotHello),
            Frame::Binary(payload) => match Binary::decode(payload) {
                Ok(Binary::Input(offset, bytes)) => self.read_input(id, offset, bytes),
                Ok(Binary::Output(..) | Binary::Snapshot(_)) => {
                    self.mistake(id, Code::BadRequest, "only input comes from a client".to_owned());
                }
                Err(why) => self.mistake(id, Code::BadRequest, why.to_string()),
            },
        }
    }

    fn read_text(&mut self, id: ConnId, text: &str) {
        if text.len() > TEXT {
            return self.mistake(id, Code::TooLarge, format!("a message of {} bytes is too long", text.len()));
        }
        if text.starts_with(ACK_START)
            && let Ok(Ack { output }) = serde_json::from_str(text)
        {
            return self.read_ack(id, output);
        }
        match serde_json::from_str(text) {
            Ok(message) => self.read_message(id, message),
            Err(why) => self.mistake(id, Code::BadRequest, format!("malformed message: {why}")),
        }
    }

    fn read_message(&mut self, id: ConnId, message: ClientMessage) {
        match message {
            ClientMessage::Hello(_) => self.mistake(id, Code::BadRequest, "hello was said already".to_owned()),
            ClientMessage::Ack { output } => self.read_ack(id, output),
            ClientMessage::Resize(size) => self.read_resize(id, size, false),
            ClientMessage::ClaimSize(size) => self.read_resize(id, size, true),
            ClientMessage::Repaint => {
                if let Some(viewer) = self.viewer(id) {
                    viewer.stream.want_repaint(Reason::Repaint);
                }
            }
            ClientMessage::Leave => self.leave(id),
            ClientMessage::Command { id: command_id, command } => {
                let Some(viewer) = self.viewer(id) else { return };
                let refusal = match () {
                    () if command_id.len() > COMMAND_ID => {
                        return self.mistake(id, Code::BadRequest, "a command's id is too long".to_owned());
                    }
                    () if !viewer.write => Some((Code::NotAllowed, "this viewer may not write")),
                    () if viewer.commands >= COMMANDS => Some((Code::TooMany, "too many commands wait for an answer")),
                    () => None,
                };
                match refusal {
                    Some((code, message)) => viewer.owed.notice(ServerMessage::Rejected {
                        id: command_id,
                        code,
                        message: message.to_owned(),
                    }),
                    None => {
                        viewer.commands += 1;
                        self.events.push_back(ServerEvent::Command { conn: id, id: command_id, command });
                    }
                }
            }
            ClientMessage::Ping { n } => {
                if let Some(conn) = self.conns.get_mut(&id) {
                    conn.pong = Some(n);
                }
            }
            ClientMessage::Pong { .. } | ClientMessage::Unknown => {}
        }
    }

    fn read_ack(&mut self, id: ConnId, output: Offset) {
        let now = self.now;
        let Some(viewer) = self.viewer(id) else { return };
        if !viewer.announced || !viewer.stream.ack(output, now) {
            return self.mistake(id, Code::BadRequest, format!("output {output} was acknowledged before it was sent"));
        }
        let serial = viewer.serial;
        if let Some(known) = self.typing.get_mut(serial) {
            // It has read `attached`, and so it knows.
            known.forgotten = false;
        }
    }

    /// A viewer's window changed. Only the owner's matters now, but another may become the owner.
    fn read_resize(&mut self, id: ConnId, size: Size, claim: bool) {
        let Some(viewer) = self.viewer(id) else { return };
        viewer.window = Some(size);
        let (write, client) = (viewer.write, viewer.client.clone());
        if !write && claim {
            return self.complain(id, Code::NotAllowed, "this viewer may not own the size");
        }
        if !write {
            return;
        }
        let was_owner = self.owner.is(&client);
        if claim {
            self.owner.claim(&client);
        }
        if self.owner.arrive(&client, None) {
            self.follow_owner();
            if !was_owner {
                self.changed();
            }
        }
    }

    fn read_input(&mut self, id: ConnId, offset: Offset, bytes: &[u8]) {
        let Some(viewer) = self.viewer(id) else { return };
        let (serial, announced, write) = (viewer.serial, viewer.announced, viewer.write);
        if !write {
            return self.complain(id, Code::NotAllowed, "this viewer may not type");
        }
        if !announced {
            return self.mistake(id, Code::BadRequest, "input before attached".to_owned());
        }
        if self.tape.exit.is_some() {
            return;
        }
        let typed = self.typing.take(serial, offset, bytes);
        // One error for a hole, not one for each frame after it.
        let told = match self.viewer(id) {
            Some(viewer) => std::mem::replace(&mut viewer.hole_told, matches!(typed, Typed::Hole { .. })),
            None => false,
        };
        match typed {
            Typed::Taken => {}
            Typed::Hole { .. } if told => {}
            Typed::Hole { expected } => {
                self.complain(id, Code::InputHole, &format!("expected input from offset {expected}, not {offset}"));
            }
            Typed::TooLong => {
                let message = format!("an input frame holds at most {INPUT_FRAME} bytes");
                self.refuse(id, close::TOO_BIG, Code::TooLarge, message);
            }
            Typed::OverWindow => {
                let message = format!("at most {INPUT_WINDOW} bytes of input may be unacknowledged");
                self.refuse(id, close::POLICY, Code::TooLarge, message);
            }
            Typed::QueueFull => {
                self.refuse(id, close::LATER, Code::TooMany, "the terminal does not read its input".to_owned());
            }
        }
    }

    fn viewer(&mut self, id: ConnId) -> Option<&mut super::conn::Viewer> {
        self.conns.get_mut(&id).and_then(|conn| conn.viewer.as_mut())
    }

    fn complain(&mut self, id: ConnId, code: Code, message: &str) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.complain(code, message.to_owned(), false);
        }
    }

    /// Says what was wrong; after too many, closes.
    fn mistake(&mut self, id: ConnId, code: Code, message: String) {
        if self.conns.get_mut(&id).is_some_and(|conn| !conn.forgive(code, message)) {
            self.close(id, close::MALFORMED, "too many mistakes");
        }
    }
}
