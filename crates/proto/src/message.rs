//! The text messages of an attach, in both directions.
//!
//! The protocol only grows: unknown fields are ignored, and a message with an unknown `type` is read as `Unknown` and
//! ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Offset;
use crate::ids::{ClientId, Epoch};
use crate::problem::Code;
use crate::session::SessionInfo;
use crate::size::Size;

/// The protocol version that this crate implements.
pub const VERSION: u32 = 1;

/// A position in the output of one epoch of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Cursor {
    pub epoch: Epoch,
    /// The first byte that the client does not have.
    pub offset: Offset,
}

/// What the server does when a viewer cannot keep up with the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Lag {
    /// Skip ahead with a snapshot.
    #[default]
    Skip,
    /// Send every byte; skip only output that the log no longer has.
    Wait,
}

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Hello {
    /// The protocol version.
    pub version: u32,
    /// Stays the same across reconnects.
    pub client: ClientId,
    /// The number of this connection attempt, counted by the client from 1.
    pub conn: u64,
    /// The client's id before a page reload; the new client inherits ownership of the size, nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub was: Option<ClientId>,
    /// Where to resume; null to start with a snapshot.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// The size of the client's window, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub size: Option<Size>,
    /// What to do when the client cannot keep up.
    #[serde(default)]
    pub lag: Lag,
    /// Lines of scrollback to include in a snapshot of scope `all`.
    #[serde(default = "default_scrollback")]
    pub scrollback: u32,
    /// Attach read-only: the client never types and never owns the size.
    #[serde(default)]
    pub observe: bool,
    /// The colours to report to programs that query them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub theme: Option<Theme>,
    /// A browser's origin key; the gateway removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub key: Option<String>,
    /// Set by the gateway from the caller's scope; absent on a local socket, whose clients may do everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub grant: Option<Grant>,
}

fn default_scrollback() -> u32 {
    1000
}

/// What the gateway allows a viewer to do, and for whom it connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Grant {
    /// May type, send commands and own the size.
    pub write: bool,
    /// Names the token, login or user; absent from older gateways. Only compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub caller: Option<String>,
    /// The name of the token, login or user, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
}

/// The viewer's colours as `#rrggbb`, for replies to OSC 10 and 11 queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Theme {
    pub fg: String,
    pub bg: String,
}

/// A text message from a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    Hello(Hello),
    /// The client has rendered output.
    Ack {
        /// The first byte that is not rendered.
        output: Offset,
    },
    /// The client's window changed. The terminal follows if the client owns the size.
    Resize(Size),
    /// Make this client the size owner, with this size.
    ClaimSize(Size),
    /// Send the visible screen again, because something local covered it.
    Repaint,
    /// The client detaches for good and gives up the size at once, as with a WebSocket close of 1000.
    Leave,
    /// Do something exactly once.
    Command {
        /// Chosen by the client.
        id: String,
        #[cfg_attr(test, ts(type = "unknown"))]
        command: Value,
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

/// A command to a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TerminalCommand {
    /// Type this text.
    Input { text: String },
    /// Send a signal to the foreground process group.
    Signal {
        /// Such as `INT` or `SIGINT`.
        name: String,
    },
}

/// The server's answer to a hello.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Attached {
    pub session: SessionInfo,
    pub epoch: Epoch,
    /// Where output continues.
    pub offset: Offset,
    pub verdict: Verdict,
    /// Only with the verdict `snapshot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub reason: Option<Reason>,
    /// Output that the viewer does not get as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub missed: Option<Missed>,
    /// Only with the verdict `snapshot`; its parts follow this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub snapshot: Option<SnapshotLength>,
    /// The terminal's size at `offset`.
    pub size: Size,
    /// The offset of the next input byte that the server expects; null if it does not remember this client.
    pub input: Option<Offset>,
    /// What this viewer may do, and whether it owns the size.
    pub you: Permissions,
    /// Milliseconds of silence after which either side sends a ping.
    pub heartbeat: u64,
    /// The most bytes of output that may be unacknowledged.
    pub window: u64,
}

/// The outcome of a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every byte after the cursor follows.
    Exact,
    /// A snapshot at `offset` follows, then the bytes after it.
    Snapshot,
}

/// Why a snapshot is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The client had no cursor.
    Fresh,
    /// The log no longer has the bytes.
    Trimmed,
    /// The cursor belongs to another epoch.
    Epoch,
    /// The cursor is past the end of the log.
    Ahead,
    /// The viewer could not keep up.
    Lagging,
    /// The width changed, and emulators reflow differently.
    Resize,
    /// The client requested it.
    Repaint,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// How much of the terminal a snapshot describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The visible screen; the viewer keeps its scrollback.
    Screen,
    /// Everything; the viewer resets its terminal first.
    All,
}

/// A range of output that a viewer does not get as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Missed {
    pub from: Offset,
    /// Exclusive.
    pub to: Offset,
}

/// The length of the snapshot that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SnapshotLength {
    /// The sum over all parts.
    pub bytes: u64,
}

/// What a viewer may do, and whether it owns the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Permissions {
    /// May type, send commands and own the size.
    pub write: bool,
    /// Owns the size.
    pub size: bool,
}

/// One attached client, as shown to the other clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PresenceEntry {
    /// The viewer's own id where the entry is the viewer itself. For others, an id that only presence uses.
    pub client: ClientId,
    /// May type, send commands and own the size.
    pub write: bool,
    /// Owns the size.
    pub size: bool,
}

/// A text message to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The answer to a hello. (Boxed because it is far larger than the others.)
    Attached(Box<Attached>),
    /// The terminal has this size for all output that follows.
    Resize(Size),
    /// Input of this client was written to the terminal.
    Ack {
        /// The first byte of this client's input that is not written.
        input: Offset,
    },
    /// A snapshot follows.
    Snapshot {
        reason: Reason,
        scope: Scope,
        /// Output that the snapshot skips.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        missed: Option<Missed>,
        /// Where output continues after the snapshot.
        offset: Offset,
        /// The terminal's size at `offset`.
        size: Size,
        /// The length of the snapshot, over all parts.
        bytes: u64,
    },
    /// The terminal's title changed (OSC 0 or 2).
    Title { title: String },
    /// The shell's directory changed (OSC 7).
    Cwd { cwd: String },
    /// The program sent a notification (OSC 9, 99 or 777).
    Notify {
        /// May be empty.
        title: String,
        body: String,
    },
    /// The program printed a link.
    Url {
        /// Normalised.
        url: String,
        /// The link looks like a login that the program is waiting for.
        open: bool,
    },
    /// The program rang the bell.
    Bell,
    /// The attached clients changed.
    Presence {
        /// All attached clients, in the order in which they attached.
        clients: Vec<PresenceEntry>,
    },
    /// The program ended. Sent after the last byte of output.
    Exit {
        /// Null if a signal ended the program, or if the session was lost.
        code: Option<i32>,
        /// The signal's name, such as `SIGKILL`.
        signal: Option<String>,
        /// The end of the log.
        offset: Offset,
    },
    /// The session accepted a command.
    Accepted {
        /// The command's id.
        id: String,
        /// The number of the command in the session's journal.
        seq: u64,
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
    #[cfg_attr(test, ts(skip))]
    Unknown,
}
