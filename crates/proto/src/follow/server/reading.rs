//! Handles frames from clients: each is validated before it has an effect.

use std::time::Duration;

use serde_json::Value;

use super::{ConnId, Server, ServerEvent};
use crate::close;
use crate::config::{COMMAND_ID, COMMANDS, TEXT};
use crate::follow::FollowMessage;
use crate::frame::Frame;
use crate::hello::BadHello;
use crate::message::ClientMessage;
use crate::problem::Code;

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
            Frame::Binary(_) => {
                let message = "an agent session takes no binary messages".to_owned();
                self.refuse_invalid(id, Code::BadRequest, message);
            }
        }
    }

    fn read_text(&mut self, id: ConnId, text: &str) {
        if text.len() > TEXT {
            let message = format!("a message of {} bytes is over the limit of {TEXT}", text.len());
            return self.refuse_invalid(id, Code::TooLarge, message);
        }
        match serde_json::from_str(text) {
            Ok(message) => self.read_message(id, message),
            Err(error) => self.refuse_invalid(id, Code::BadRequest, format!("malformed message: {error}")),
        }
    }

    fn read_message(&mut self, id: ConnId, message: ClientMessage) {
        match message {
            ClientMessage::Hello(_) => {
                self.refuse_invalid(id, Code::BadRequest, "this connection has sent a hello already".to_owned());
            }
            ClientMessage::Leave => self.close(id, close::NORMAL, "the client detached"),
            ClientMessage::Command { id: command_id, command } => self.read_command(id, command_id, command),
            ClientMessage::Ping { n } => {
                if let Some(conn) = self.conns.get_mut(&id) {
                    conn.pending_pong = Some(n);
                }
            }
            // An agent session has no size and no screen, and needs no acknowledgements.
            ClientMessage::Ack { .. }
            | ClientMessage::Resize(_)
            | ClientMessage::ClaimSize(_)
            | ClientMessage::Repaint
            | ClientMessage::Pong { .. }
            | ClientMessage::Unknown => {}
        }
    }

    fn read_command(&mut self, conn: ConnId, id: String, command: Value) {
        let Some(follower) = self.follower(conn) else { return };
        if id.len() > COMMAND_ID {
            let message = format!("a command id may have at most {COMMAND_ID} bytes");
            return self.refuse_invalid(conn, Code::BadRequest, message);
        }
        if follower.answers_are_full() {
            let message = "too many commands whose answers were not read".to_owned();
            return self.refuse_invalid(conn, Code::TooMany, message);
        }
        let refusal = match () {
            () if !follower.write => Some((Code::NotAllowed, "this viewer is read-only")),
            () if follower.unanswered_commands() >= COMMANDS => Some((Code::TooMany, "too many unanswered commands")),
            () => None,
        };
        if let Some((code, message)) = refusal {
            return follower.reject(FollowMessage::Rejected { id, code, message: message.to_owned(), answered: None });
        }
        follower.handle_command();
        let by = follower.by.clone();
        self.events.push_back(ServerEvent::Command { conn, id, command, by });
    }

    /// Reports an invalid message to the client, and closes the connection after too many of them.
    fn refuse_invalid(&mut self, id: ConnId, code: Code, message: String) {
        if self.conns.get_mut(&id).is_some_and(|conn| !conn.record_invalid(code, message)) {
            self.close(id, close::MALFORMED, "too many invalid messages");
        }
    }
}
