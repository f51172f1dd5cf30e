//! The interface between [`Client`] and its driver: events for the viewer, and frames for its connection.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::Offset;
#[cfg(doc)]
use crate::link::Client;
use crate::link::outbox::Unsent;
use crate::message::{Attached, ClientMessage, Missed, Reason, Scope, ServerMessage};
use crate::session::ExitStatus;
use crate::size::Size;

/// Something for the driver to do with a viewer's connection.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientTransmit {
    /// Send a text message.
    Text(ClientMessage),
    /// Send a 0x03 payload.
    Input {
        /// The position of the first byte in this client's input.
        offset: Offset,
        bytes: Bytes,
    },
    /// Close the connection, call [`Client::handle_disconnected`] and dial again.
    Close { code: u16, reason: &'static str },
}

/// Something for the viewer to apply or show. Events must be applied in order.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The server answered the hello. Give the terminal the new size; with the verdict `snapshot`,
    /// [`SnapshotBegin`](ClientEvent::SnapshotBegin) follows.
    Attached(Box<Attached>),
    /// A snapshot begins. Give the terminal this size; with [`Scope::All`], reset it first.
    SnapshotBegin {
        reason: Reason,
        scope: Scope,
        /// Output that the viewer does not get as bytes.
        missed: Option<Missed>,
        /// Where output continues after the snapshot.
        offset: Offset,
        /// The terminal's size at `offset`.
        size: Size,
        /// The length of the snapshot, over all parts.
        bytes: u64,
    },
    /// Bytes of a snapshot to write to the terminal.
    SnapshotPart(Bytes),
    /// The snapshot is complete. Call [`Client::handle_rendered`] with `offset` once the terminal has rendered it.
    SnapshotEnd {
        offset: Offset,
    },
    /// Output to write to the terminal.
    Output {
        /// The offset of the first byte.
        offset: Offset,
        bytes: Bytes,
    },
    /// The terminal has this size for all output that follows.
    Resize(Size),
    /// The program ended; there is no more output.
    Exit {
        status: ExitStatus,
        /// The end of the output.
        offset: Offset,
    },
    /// The server is about to close this connection, with the code that a WebSocket would be closed with.
    Closing {
        code: u16,
        reason: String,
    },
    /// Any other message: a title, a notification, presence, an answer to a command, an error.
    Message(ServerMessage),
    /// Typed bytes are not sent automatically, because the epoch changed or the viewer was offline for too long. They
    /// are kept until [`Client::send_unsent`] or [`Client::discard_unsent`]. If more bytes become unsent, the event is
    /// repeated with all of them.
    Unsent(Unsent),
    /// A command was not resent, for the same reasons. The session may have run it.
    CommandUnsent {
        id: String,
    },
    StateChanged(ClientState),
}

/// The state of a viewer's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// No connection.
    Detached,
    /// Connected, waiting for `attached`.
    Greeting,
    Attached,
    /// The session ended, or the user detached; there are no more connections.
    Ended,
}

/// The queue of events that the caller has not polled.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<ClientEvent>,
    /// The output and snapshot bytes in the queue.
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

    /// Drops the events that belong to one connection; the next connection delivers their content again.
    pub(super) fn drop_stream(&mut self) {
        self.queue.retain(|event| !event.is_stream());
        self.bytes = 0;
    }

    /// The output and snapshot bytes in the queue.
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
