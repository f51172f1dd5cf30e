//! Handles frames from clients: each is validated before it has an effect.

use std::time::Duration;

use serde::Deserialize;

use super::input_queue::InputResult;
use super::viewer::Viewer;
use super::{ConnId, Server, ServerEvent};
use crate::Offset;
use crate::close;
use crate::config::{COMMAND_ID, COMMANDS, INPUT_FRAME, INPUT_WINDOW, TEXT};
use crate::frame::{Binary, Frame};
use crate::hello::BadHello;
use crate::message::{ClientMessage, Reason, ServerMessage};
use crate::problem::Code;
use crate::size::Size;

/// The most frequent message, which is parsed without the cost of a tagged enum.
#[derive(Deserialize)]
struct Ack {
    output: Offset,
}

const ACK_START: &str = r#"{"type":"ack","#;

impl Server {
    /// A frame arrived. An invalid one affects only its own connection.
    pub fn handle_frame(&mut self, id: ConnId, frame: Frame<'_>, now: Duration) {
        self.tick(now);
        let Some(conn) = self.conns.get_mut(&id).filter(|conn| conn.is_open()) else { return };
        conn.handle_received(now);
        let attached = conn.viewer.is_some();
        match frame {
            Frame::Text(text) if !attached => self.read_hello(id, text),
            Frame::Text(text) => self.read_text(id, text),
            Frame::Binary(_) if !attached => self.refuse_hello(id, &BadHello::NotHello),
            Frame::Binary(payload) => match Binary::decode(payload) {
                Ok(Binary::Input(offset, bytes)) => self.read_input(id, offset, bytes),
                Ok(Binary::Output(..) | Binary::Snapshot(_)) => {
                    self.refuse_invalid(
                        id,
                        Code::BadRequest,
                        "a client may send only input as a binary message".to_owned(),
                    );
                }
                Err(error) => self.refuse_invalid(id, Code::BadRequest, error.to_string()),
            },
        }
    }

    fn read_text(&mut self, id: ConnId, text: &str) {
        if text.len() > TEXT {
            return self.refuse_invalid(
                id,
                Code::TooLarge,
                format!("a message of {} bytes is over the limit of {TEXT}", text.len()),
            );
        }
        if text.starts_with(ACK_START)
            && let Ok(Ack { output }) = serde_json::from_str(text)
        {
            return self.read_ack(id, output);
        }
        match serde_json::from_str(text) {
            Ok(message) => self.read_message(id, message),
            Err(error) => self.refuse_invalid(id, Code::BadRequest, format!("malformed message: {error}")),
        }
    }

    fn read_message(&mut self, id: ConnId, message: ClientMessage) {
        match message {
            ClientMessage::Hello(_) => {
                self.refuse_invalid(id, Code::BadRequest, "this connection has sent a hello already".to_owned())
            }
            ClientMessage::Ack { output } => self.read_ack(id, output),
            ClientMessage::Resize(size) => self.read_resize(id, size, false),
            ClientMessage::ClaimSize(size) => self.read_resize(id, size, true),
            ClientMessage::Repaint => {
                if let Some(viewer) = self.viewer(id) {
                    viewer.stream.request_repaint(Reason::Repaint);
                }
            }
            ClientMessage::Leave => self.leave(id),
            ClientMessage::Command { id: command_id, command } => {
                let Some(viewer) = self.viewer(id) else { return };
                let refusal = match () {
                    () if command_id.len() > COMMAND_ID => {
                        return self.refuse_invalid(
                            id,
                            Code::BadRequest,
                            format!("a command id may have at most {COMMAND_ID} bytes"),
                        );
                    }
                    () if !viewer.write => Some((Code::NotAllowed, "this viewer is read-only")),
                    () if viewer.unanswered_commands >= COMMANDS => {
                        Some((Code::TooMany, "too many unanswered commands"))
                    }
                    () => None,
                };
                match refusal {
                    Some((code, message)) => viewer.pending.push_notice(ServerMessage::Rejected {
                        id: command_id,
                        code,
                        message: message.to_owned(),
                    }),
                    None => {
                        viewer.unanswered_commands += 1;
                        self.events.push_back(ServerEvent::Command { conn: id, id: command_id, command });
                    }
                }
            }
            ClientMessage::Ping { n } => {
                if let Some(conn) = self.conns.get_mut(&id) {
                    conn.pending_pong = Some(n);
                }
            }
            ClientMessage::Pong { .. } | ClientMessage::Unknown => {}
        }
    }

    fn read_ack(&mut self, id: ConnId, output: Offset) {
        let now = self.now;
        let Some(viewer) = self.viewer(id) else { return };
        if !viewer.announced || !viewer.stream.handle_ack(output, now) {
            return self.refuse_invalid(
                id,
                Code::BadRequest,
                format!("output {output} was acknowledged before it was sent"),
            );
        }
        let serial = viewer.serial;
        if let Some(record) = self.input.get_mut(serial) {
            // The client has read `attached`, and so `input: null`.
            record.forgotten = false;
        }
    }

    /// A viewer's window changed. It applies if the viewer owns the size, and is kept in case it becomes the owner.
    fn read_resize(&mut self, id: ConnId, size: Size, claim: bool) {
        let Some(viewer) = self.viewer(id) else { return };
        viewer.window = Some(size);
        let (write, client) = (viewer.write, viewer.client.clone());
        if !write && claim {
            return self.send_error(id, Code::NotAllowed, "this viewer is read-only and cannot own the size");
        }
        if !write {
            return;
        }
        let was_owner = self.owner.is(&client);
        if claim {
            self.owner.claim(&client);
        }
        if self.owner.attach(&client, None) {
            self.apply_owner_size();
            if !was_owner {
                self.presence_changed();
            }
        }
    }

    fn read_input(&mut self, id: ConnId, offset: Offset, bytes: &[u8]) {
        let Some(viewer) = self.viewer(id) else { return };
        let (serial, announced, write) = (viewer.serial, viewer.announced, viewer.write);
        if !write {
            return self.send_error(id, Code::NotAllowed, "this viewer is read-only");
        }
        if !announced {
            return self.refuse_invalid(id, Code::BadRequest, "input before attached".to_owned());
        }
        if self.output.exit.is_some() {
            return;
        }
        let result = self.input.receive(serial, offset, bytes);
        // One error per hole, not one for each frame after it.
        let reported = match self.viewer(id) {
            Some(viewer) => std::mem::replace(&mut viewer.gap_reported, matches!(result, InputResult::Gap { .. })),
            None => false,
        };
        match result {
            InputResult::Accepted => {}
            InputResult::Gap { .. } if reported => {}
            InputResult::Gap { expected } => {
                self.send_error(id, Code::InputHole, &format!("expected input from offset {expected}, not {offset}"));
            }
            InputResult::TooLong => {
                let message = format!("an input frame may have at most {INPUT_FRAME} bytes");
                self.refuse(id, close::TOO_BIG, Code::TooLarge, message);
            }
            InputResult::OverWindow => {
                let message = format!("at most {INPUT_WINDOW} bytes of input may be unacknowledged");
                self.refuse(id, close::POLICY, Code::TooLarge, message);
            }
            InputResult::QueueFull => {
                self.refuse(
                    id,
                    close::TRY_AGAIN_LATER,
                    Code::TooMany,
                    "the program does not read its input, and the queue is full".to_owned(),
                );
            }
        }
    }

    fn viewer(&mut self, id: ConnId) -> Option<&mut Viewer> {
        self.conns.get_mut(&id).and_then(|conn| conn.viewer.as_mut())
    }

    fn send_error(&mut self, id: ConnId, code: Code, message: &str) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.push_error(code, message.to_owned(), false);
        }
    }

    /// Reports an invalid message to the client, and closes the connection after too many of them.
    fn refuse_invalid(&mut self, id: ConnId, code: Code, message: String) {
        if self.conns.get_mut(&id).is_some_and(|conn| !conn.record_invalid(code, message)) {
            self.close(id, close::MALFORMED, "too many invalid messages");
        }
    }
}
