//! The messages of the event stream: the list of sessions, sent whole once and then as changes.
//!
//! The same messages travel as JSON over a WebSocket and as the data of SSE events. Unknown ones are ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ClientId, Epoch, SessionId};
use crate::message::{Cursor, Reason, Verdict};
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
    Board { sessions: Vec<SessionInfo> },
    /// A session is new or has changed. (Boxed because it is far larger than the others.)
    Session { session: Box<SessionInfo> },
    /// A session was forgotten.
    SessionGone { id: SessionId },
    /// The events of a watched agent session follow, from `seq` on.
    Watched {
        session: SessionId,
        epoch: Epoch,
        /// The number of the next event.
        seq: u64,
        /// `snapshot`: the cursor is of no use, or there was none. The events before `seq` are not sent.
        verdict: Verdict,
        /// Only with the verdict `snapshot`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        reason: Option<Reason>,
    },
    /// An event of a watched agent session, or several that are sent as one.
    Event {
        session: SessionId,
        seq: u64,
        /// The first number that it stands for, if it stands for several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        from: Option<u64>,
        /// RFC 3339 UTC.
        at: String,
        #[cfg_attr(test, ts(type = "unknown"))]
        event: Value,
    },
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
    /// Sends the events of these agent sessions, too. One that is watched already starts again from its new cursor.
    Watch { sessions: Vec<WatchedSession> },
    /// Sends no more events of these sessions.
    Unwatch { sessions: Vec<SessionId> },
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

/// A session to watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WatchedSession {
    pub id: SessionId,
    /// The next event to send; without it, those from now on are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub cursor: Option<Cursor>,
}
