//! What a viewer is told and what its connection is given: the vocabulary between the client machine and its driver.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::Offset;
#[cfg(doc)]
use crate::link::Client;
use crate::link::outbox::Unsent;
use crate::message::{Attached, ClientMessage, Missed, Reason, Scope, ServerMessage};
use crate::session::ExitStatus;
use crate::size::Size;

/// What a viewer's connection is to carry.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientTransmit {
    /// A text message.
    Text(ClientMessage),
    /// A 0x03 payload.
    Input {
        /// Its place in this client's input.
        offset: Offset,
        /// What was typed.
        bytes: Bytes,
    },
    /// Give this connection up: close it, then call [`Client::handle_disconnected`] and dial again.
    Close {
        /// The close code.
        code: u16,
        /// For people and logs.
        reason: &'static str,
    },
}

/// What the viewer is to show or to know, in the order in which it is to be applied.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The server answered the hello. The terminal has `size` from here on; for a snapshot, its parts follow.
    Attached(Box<Attached>),
    /// A snapshot begins. Give the terminal this size; with [`Scope::All`], reset it first.
    SnapshotBegin {
        /// Why.
        reason: Reason,
        /// How much of the terminal.
        scope: Scope,
        /// What is never seen as bytes.
        missed: Option<Missed>,
        /// Where output goes on.
        offset: Offset,
        /// The size in force there.
        size: Size,
        /// Its length.
        bytes: u64,
    },
    /// Bytes of a snapshot, for the terminal.
    SnapshotPart(Bytes),
    /// A snapshot is whole. Call [`Client::handle_rendered`] with the offset once the terminal took it.
    SnapshotEnd {
        /// Where output goes on.
        offset: Offset,
    },
    /// Output, for the terminal.
    Output {
        /// The place of its first byte.
        offset: Offset,
        /// The bytes.
        bytes: Bytes,
    },
    /// The terminal has this size from here on.
    Resize(Size),
    /// The program ended; there is no more output.
    Exit {
        /// How.
        status: ExitStatus,
        /// The end of the output.
        offset: Offset,
    },
    /// The server said, on a transport without close codes, with which one it closes this connection.
    Closing {
        /// The close code.
        code: u16,
        /// For people and logs.
        reason: String,
    },
    /// Titles, notifications, presence, answers to commands, errors.
    Message(ServerMessage),
    /// Typed bytes that were not sent: the session is another, or too much time has passed. Nothing is done with
    /// them until [`Client::send_unsent`] or [`Client::discard_unsent`]. Comes again, with all of them, when there are
    /// more.
    Unsent(Unsent),
    /// A command that was not resent, for the same reasons. It may have been taken.
    CommandUnsent {
        /// The command's id.
        id: String,
    },
    /// The state changed.
    StateChanged(ClientState),
}

/// Where a viewer's link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// No connection.
    Detached,
    /// Connected, waiting for `attached`.
    Greeting,
    /// Attached.
    Attached,
    /// The session ended, or the user left: no more connections.
    Ended,
}

/// Events that the caller has not polled, oldest first.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<ClientEvent>,
    /// The output and snapshot bytes in them.
    bytes: usize,
}

impl Events {
    pub(super) fn push(&mut self, event: ClientEvent) {
        self.bytes += event.bytes();
        self.queue.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<ClientEvent> {
        let event = self.queue.pop_front()?;
        self.bytes -= event.bytes();
        Some(event)
    }

    /// Drops what belongs to one connection's stream, and comes again on the next.
    pub(super) fn drop_stream(&mut self) {
        self.queue.retain(|event| !event.is_stream());
        self.bytes = 0;
    }

    /// The output and snapshot bytes that were not polled.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl ClientEvent {
    fn is_stream(&self) -> bool {
        matches!(
            self,
            ClientEvent::Attached(_)
                | ClientEvent::SnapshotBegin { .. }
                | ClientEvent::SnapshotPart(_)
                | ClientEvent::SnapshotEnd { .. }
                | ClientEvent::Output { .. }
                | ClientEvent::Resize(_)
        )
    }

    fn bytes(&self) -> usize {
        if let ClientEvent::SnapshotPart(bytes) | ClientEvent::Output { bytes, .. } = self { bytes.len() } else { 0 }
    }
}
