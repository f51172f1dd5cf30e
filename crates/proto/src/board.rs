//! The event stream: which sessions there are, told whole once and then by changes.
//!
//! The same messages travel as JSON over a WebSocket and as the data of SSE events. Unknown ones are ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ClientId, SessionId};
use crate::problem::Code;
use crate::session::SessionInfo;

/// A message of the event stream, to the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BoardMessage {
    /// The first message: the stream is open.
    Welcome {
        /// The client id that the stream was opened with, or one that was made for it.
        client: ClientId,
        /// One run of the gateway.
        epoch: String,
        /// The gateway's version.
        version: String,
        /// Milliseconds of silence after which a side pings.
        heartbeat: u64,
    },
    /// Every session there is; what was known before is replaced.
    Board {
        /// The sessions.
        sessions: Vec<SessionInfo>,
        /// Approvals that wait.
        #[serde(default)]
        #[cfg_attr(test, ts(type = "Array<unknown>"))]
        approvals: Vec<Value>,
    },
    /// A session is new, or changed. (Boxed: it is far larger than the rest.)
    Session {
        /// As it is now.
        session: Box<SessionInfo>,
    },
    /// A session was forgotten.
    SessionGone {
        /// Which.
        id: SessionId,
    },
    /// Something was wrong with what the client sent.
    Error {
        /// A problem code.
        code: Code,
        /// For people.
        message: String,
    },
    /// Are you there?
    Ping {
        /// Comes back in the pong.
        n: u64,
    },
    /// I am.
    Pong {
        /// From the ping.
        n: u64,
    },
    /// Something newer than this code.
    #[serde(other)]
    #[cfg_attr(test, ts(skip))]
    Unknown,
}

/// A message of the event stream's WebSocket form, to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BoardClientMessage {
    /// The first message of a browser that is known by its cookie.
    Hello {
        /// Its origin key.
        key: String,
    },
    /// Are you there?
    Ping {
        /// Comes back in the pong.
        n: u64,
    },
    /// I am.
    Pong {
        /// From the ping.
        n: u64,
    },
    /// Something newer than this code.
    #[serde(other)]
    #[cfg_attr(test, ts(skip))]
    Unknown,
}
