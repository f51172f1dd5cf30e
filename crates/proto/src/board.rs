//! The messages of the event stream: the list of sessions, sent whole once and then as changes.
//!
//! The same messages travel as JSON over a WebSocket and as the data of SSE events. Unknown ones are ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ClientId, SessionId};
use crate::problem::Code;
use crate::session::SessionInfo;

/// A message of the event stream to the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BoardMessage {
    /// The first message on a stream.
    Welcome {
        /// The client id from the request, or a new one.
        client: ClientId,
        /// Changes when the gateway restarts.
        epoch: String,
        /// The gateway's version.
        version: String,
        /// Milliseconds of silence after which either side sends a ping.
        heartbeat: u64,
    },
    /// All sessions; replaces everything received before.
    Board {
        sessions: Vec<SessionInfo>,
        /// Approvals that are waiting for an answer.
        #[serde(default)]
        #[cfg_attr(test, ts(type = "Array<unknown>"))]
        approvals: Vec<Value>,
    },
    /// A session is new or has changed. (Boxed because it is far larger than the others.)
    Session { session: Box<SessionInfo> },
    /// A session was forgotten.
    SessionGone { id: SessionId },
    /// The client sent something invalid.
    Error {
        code: Code,
        /// An explanation for people.
        message: String,
    },
    Ping {
        /// Returned in the pong.
        n: u64,
    },
    Pong {
        /// Copied from the ping.
        n: u64,
    },
    /// A message type added by a newer version.
    #[serde(other)]
    #[cfg_attr(test, ts(skip))]
    Unknown,
}

/// A message of the event stream to the server; only over a WebSocket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BoardClientMessage {
    /// The first message of a browser that authenticates with its cookie.
    Hello {
        /// The browser's origin key.
        key: String,
    },
    Ping {
        /// Returned in the pong.
        n: u64,
    },
    Pong {
        /// Copied from the ping.
        n: u64,
    },
    /// A message type added by a newer version.
    #[serde(other)]
    #[cfg_attr(test, ts(skip))]
    Unknown,
}
