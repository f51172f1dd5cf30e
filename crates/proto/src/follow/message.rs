//! The messages of an attach to an agent session. Clients send the same ones as to a terminal.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Offset;
use crate::agent::approval::Answered;
use crate::ids::Epoch;
use crate::link::server::conn::ConnMessage;
use crate::message::{Reason, Verdict};
use crate::problem::Code;
use crate::session::SessionInfo;

/// A message to a client that follows an agent session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FollowMessage {
    /// The answer to a hello. (Boxed because it is far larger than the others.)
    Attached(Box<FollowAttached>),
    /// An event, or several that are sent as one.
    Event {
        seq: u64,
        /// The first number that it stands for, if it stands for several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<u64>,
        /// RFC 3339 UTC.
        at: String,
        event: Value,
    },
    /// The session ended. Sent after its last event.
    Exit {
        code: Option<i32>,
        signal: Option<String>,
        /// The end of the journal.
        offset: Offset,
    },
    /// The session accepted a command.
    Accepted {
        /// The command's id.
        id: String,
        /// The number of the event that records it.
        seq: u64,
        /// The run that it started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// The command had been accepted before and was not run again.
        duplicate: bool,
    },
    /// The session refused a command; sending it again would not help.
    Rejected {
        /// The command's id.
        id: String,
        code: Code,
        /// An explanation for people.
        message: String,
        /// Only with `already_answered`.
        #[serde(flatten)]
        answered: Option<Answered>,
    },
    /// The client sent something invalid.
    Error {
        code: Code,
        /// An explanation for people.
        message: String,
        /// The server closes the connection after this message.
        fatal: bool,
    },
    Ping {
        /// Returned in the pong.
        n: u64,
    },
    Pong {
        /// Copied from the ping.
        n: u64,
    },
    /// The last message on a transport without close codes, such as the unix socket.
    Close {
        /// The code that a WebSocket would be closed with.
        code: u16,
        /// An explanation for people.
        reason: String,
    },
    /// A message type added by a newer version.
    #[serde(other)]
    Unknown,
}

/// The answer to the hello of a client that follows an agent session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FollowAttached {
    pub session: SessionInfo,
    pub epoch: Epoch,
    /// The number of the next event that is sent.
    pub offset: Offset,
    /// `snapshot`: the cursor is of no use. Read the history by HTTP; events follow from `offset` on.
    pub verdict: Verdict,
    /// Only with the verdict `snapshot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    pub you: FollowPermissions,
    /// Milliseconds of silence after which either side sends a ping.
    pub heartbeat: u64,
}

/// What a client that follows an agent session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowPermissions {
    /// May send commands.
    pub write: bool,
}

impl From<ConnMessage> for FollowMessage {
    fn from(message: ConnMessage) -> FollowMessage {
        match message {
            ConnMessage::Ping { n } => FollowMessage::Ping { n },
            ConnMessage::Pong { n } => FollowMessage::Pong { n },
            ConnMessage::Error { code, message, fatal } => FollowMessage::Error { code, message, fatal },
        }
    }
}
