//! The interface between [`Client`] and its driver: events for the follower, and messages for its connection.

use serde_json::Value;

use crate::Offset;
#[cfg(doc)]
use crate::follow::Client;
use crate::follow::{FollowAttached, FollowMessage};
use crate::journal::Record;
use crate::message::ClientMessage;
use crate::session::ExitStatus;

/// Something for the driver to do with a follower's connection.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "one at a time is made, and sent at once")]
pub enum ClientTransmit {
    /// Send a text message.
    Text(ClientMessage),
    /// Close the connection, call [`Client::handle_closed`] and dial again.
    Close { code: u16, reason: &'static str },
}

/// Something for the follower to apply or show. Events must be applied in order.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The server answered the hello. With the verdict `snapshot`, read the history before `offset` by HTTP; what was
    /// received before may be in it in another form, or not at all.
    Attached(Box<FollowAttached>),
    /// The next event of the session.
    Event(Record<Value>),
    /// The session ended; there are no more events.
    Exit {
        status: ExitStatus,
        /// The end of the journal.
        offset: Offset,
    },
    /// Any other message: an error, or an answer to a command.
    Message(FollowMessage),
    /// The server is about to close this connection, with the code that a WebSocket would be closed with.
    Closing { code: u16, reason: String },
    /// The connection is dead, or the server broke the protocol. Drop the connection, call [`Client::handle_closed`]
    /// and dial again. [`ClientTransmit::Close`] says the same, but is not polled while the connection has no room.
    Lost { code: u16, reason: &'static str },
}

impl ClientEvent {
    /// Whether it means nothing on another connection, or is delivered there again.
    pub(super) fn belongs_to_connection(&self) -> bool {
        match self {
            ClientEvent::Attached(_)
            | ClientEvent::Event(_)
            | ClientEvent::Closing { .. }
            | ClientEvent::Lost { .. } => true,
            ClientEvent::Exit { .. } | ClientEvent::Message(_) => false,
        }
    }
}

/// The state of a follower.
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
