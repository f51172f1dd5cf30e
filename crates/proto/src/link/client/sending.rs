//! What a viewer's connection carries next: the hello, then what is urgent, then what was typed.

use std::time::Duration;

use super::hello::make_hello;
use super::{Client, ClientState, ClientTransmit};
use crate::message::ClientMessage;

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
        let (offset, bytes) = self.outbox.pop(self.now)?;
        Some(ClientTransmit::Input { offset, bytes })
    }

    fn next_text(&mut self) -> Option<ClientMessage> {
        if std::mem::take(&mut self.hello) {
            return Some(ClientMessage::Hello(make_hello(&self.config, self.dials, self.place.cursor())));
        }
        if let Some(beat) = self.pulse.poll_transmit() {
            return Some(beat);
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
        self.rendered.poll_transmit(self.now).or_else(|| self.commands.poll_transmit())
    }
}
