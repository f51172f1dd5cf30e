//! What a viewer's connection carries next: the hello, then what is urgent, then what was typed.

use std::time::Duration;

use super::{Client, ClientState, ClientTransmit};
use crate::message::{ClientMessage, Hello, VERSION};

impl Client {
    /// What the connection is to carry next.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<ClientTransmit> {
        self.tick(now);
        if let Some((code, reason)) = self.giving_up.take() {
            return Some(ClientTransmit::Close { code, reason });
        }
        if self.deaf {
            return None;
        }
        if let Some(text) = self.next_text() {
            return Some(ClientTransmit::Text(text));
        }
        if self.state != ClientState::Attached {
            return None;
        }
        let (offset, bytes) = self.outbox.pop(now)?;
        Some(ClientTransmit::Input { offset, bytes })
    }

    fn next_text(&mut self) -> Option<ClientMessage> {
        if std::mem::take(&mut self.hello) {
            return Some(ClientMessage::Hello(self.make_hello()));
        }
        if let Some(n) = self.pong.take() {
            return Some(ClientMessage::Pong { n });
        }
        if let Some(n) = self.ping.take() {
            return Some(ClientMessage::Ping { n });
        }
        if self.state != ClientState::Attached {
            return None;
        }
        if let Some(size) = self.config.size
            && std::mem::take(&mut self.claim)
        {
            self.resize = None;
            return Some(ClientMessage::ClaimSize(size));
        }
        if let Some(size) = self.resize.take() {
            return Some(ClientMessage::Resize(size));
        }
        if std::mem::take(&mut self.repaint) {
            return Some(ClientMessage::Repaint);
        }
        if self.rendered.due.is_some_and(|at| at <= self.now) {
            let rendered = &mut self.rendered;
            rendered.due = None;
            rendered.snapshot = rendered.snapshot.filter(|at| *at > rendered.offset);
            rendered.acked = rendered.offset;
            return Some(ClientMessage::Ack { output: rendered.offset });
        }
        let (id, command) = self.commands.get(self.commanded)?.clone();
        self.commanded += 1;
        Some(ClientMessage::Command { id, command })
    }

    fn make_hello(&self) -> Hello {
        let config = &self.config;
        Hello {
            version: VERSION,
            client: config.client.clone(),
            conn: self.dials,
            was: config.was.clone(),
            cursor: self.cursor.clone(),
            size: config.size,
            lag: config.lag,
            scrollback: config.scrollback,
            observe: config.observe,
            theme: config.theme.clone(),
            key: config.key.clone(),
            grant: config.grant,
        }
    }
}
