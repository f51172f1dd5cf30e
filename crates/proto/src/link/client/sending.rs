//! Chooses what a viewer sends next: the hello first, then pings and other messages, then input.

use std::time::Duration;

use super::hello::make_hello;
use super::{Client, ClientState, ClientTransmit};
use crate::message::ClientMessage;

impl Client {
    /// The next frame to send, or the request to close the connection.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<ClientTransmit> {
        self.tick(now);
        if let Some((code, reason)) = self.pending_close.take() {
            return Some(ClientTransmit::Close { code, reason });
        }
        if self.inactive {
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
        if std::mem::take(&mut self.hello_pending) {
            return Some(ClientMessage::Hello(make_hello(&self.config, self.dials, self.position.cursor())));
        }
        if let Some(message) = self.liveness.poll_transmit() {
            return Some(message);
        }
        if self.state != ClientState::Attached {
            return None;
        }
        if let Some(size) = self.config.size
            && std::mem::take(&mut self.claim_pending)
        {
            self.pending_resize = None;
            return Some(ClientMessage::ClaimSize(size));
        }
        if let Some(size) = self.pending_resize.take() {
            return Some(ClientMessage::Resize(size));
        }
        if std::mem::take(&mut self.repaint_pending) {
            return Some(ClientMessage::Repaint);
        }
        self.acks.poll_transmit(self.now).or_else(|| self.commands.poll_transmit())
    }
}
