//! The text messages of an attach, both ways.
//!
//! The protocol only grows: unknown fields are ignored, an unknown `type` becomes `Unknown` and is ignored too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Offset;
use crate::ids::{ClientId, Epoch};
use crate::problem::Code;
use crate::session::SessionInfo;
use crate::size::Size;

/// The protocol version that this code speaks.
pub const VERSION: u32 = 1;

/// A place in one life of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Cursor {
    /// The life.
    pub epoch: Epoch,
    /// The next byte wanted.
    pub offset: Offset,
}

/// What a viewer wants when it cannot keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Lag {
    /// Skip ahead by a snapshot.
    #[default]
    Skip,
    /// Stay behind in the log; a snapshot only when the log overtakes it.
    Wait,
}

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// This run of this client.
    pub client: ClientId,
    /// Counts this client's dials, from 1.
    pub conn: u64,
    /// The client's id before a page reload: inherits size ownership, nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub was: Option<ClientId>,
    /// Where to go on; none for a fresh start.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// The size of the client's own window, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub size: Option<Size>,
    /// What to do when it cannot keep up.
    #[serde(default)]
    pub lag: Lag,
    /// Lines of scrollback wanted in a whole snapshot.
    #[serde(default = "default_scrollback")]
    pub scrollback: u32,
    /// Look only: never owns the size, never types.
    #[serde(default)]
    pub observe: bool,
    /// Answers for colour queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub theme: Option<Theme>,
    /// A browser's origin key; the gateway takes it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub key: Option<String>,
    /// What the gateway says the token allows; none on a local socket, which may do everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub grant: Option<Grant>,
}

fn default_scrollback() -> u32 {
    1000
}

/// What a viewer may do, in the gateway's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Grant {
    /// May type, send commands and own the size.
    pub write: bool,
}

/// The viewer's colours, `#rrggbb`: what OSC 10 and 11 queries answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Theme {
    /// Text.
    pub fg: String,
    /// Background.
    pub bg: String,
}

/// Text from a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// Who it is and where it goes on.
    Hello(Hello),
    /// Output rendered up to this offset.
    Ack {
        /// The next byte that is not rendered.
        output: Offset,
    },
    /// The size owner's window changed.
    Resize(Size),
    /// Become the size owner, with this size.
    ClaimSize(Size),
    /// Paint the visible screen again: something local covered it.
    Repaint,
    /// The client leaves for good, and gives up the size that it owns at once: what a WebSocket's close 1000 says.
    Leave,
    /// Do something once.
    Command {
        /// The command's id, chosen by the client.
        id: String,
        /// What to do.
        #[cfg_attr(test, ts(type = "unknown"))]
        command: Value,
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

/// A command to a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TerminalCommand {
    /// Type this.
    Input {
        /// The text.
        text: String,
    },
    /// Send a signal to the program in the foreground.
    Signal {
        /// Such as `INT`, also with `SIG` in front.
        name: String,
    },
}

/// The server's answer to a hello.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Attached {
    /// The session as it is now.
    pub session: SessionInfo,
    /// Its current life.
    pub epoch: Epoch,
    /// Where output goes on.
    pub offset: Offset,
    /// How the resume went.
    pub verdict: Verdict,
    /// Why a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub reason: Option<Reason>,
    /// What the viewer will never see as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub missed: Option<Missed>,
    /// The snapshot that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub snapshot: Option<SnapshotLength>,
    /// The size in force at `offset`.
    pub size: Size,
    /// The number of this client's next input byte; none when it is not remembered.
    pub input: Option<Offset>,
    /// What this viewer may do and is.
    pub you: You,
    /// Milliseconds of silence after which a side pings.
    pub heartbeat: u64,
    /// The most output in flight.
    pub window: u64,
}

/// How a resume went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The missed bytes follow.
    Exact,
    /// The state at `offset` follows, then bytes.
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
    /// The cursor is of another life.
    Epoch,
    /// The cursor is past the end of the log.
    Ahead,
    /// The viewer could not keep up.
    Lagging,
    /// The width changed, and emulators reflow differently.
    Resize,
    /// The client asked for it.
    Repaint,
    /// A word of a later time.
    #[serde(other)]
    Unknown,
}

/// How much of the terminal a snapshot describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The visible screen; scrollback is left alone.
    Screen,
    /// Everything; the terminal is reset before it.
    All,
}

/// A range of output that a viewer does not get as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Missed {
    /// The first byte.
    pub from: Offset,
    /// One past the last.
    pub to: Offset,
}

/// How long the snapshot is that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SnapshotLength {
    /// Bytes, over all its parts.
    pub bytes: u64,
}

/// What a viewer may do and is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct You {
    /// May type.
    pub write: bool,
    /// Owns the size.
    pub size: bool,
}

/// One attached client, as the others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Present {
    /// Who.
    pub client: ClientId,
    /// May type.
    pub write: bool,
    /// Owns the size.
    pub size: bool,
}

/// Text to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The answer to a hello. (Boxed: it is far larger than the rest.)
    Attached(Box<Attached>),
    /// The terminal has this size from here on.
    Resize(Size),
    /// Input taken from this client.
    Ack {
        /// The number of its next input byte.
        input: Offset,
    },
    /// A snapshot follows.
    Snapshot {
        /// Why.
        reason: Reason,
        /// How much of the terminal.
        scope: Scope,
        /// What is skipped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        missed: Option<Missed>,
        /// Where output goes on.
        offset: Offset,
        /// The size in force at `offset`.
        size: Size,
        /// The snapshot's length.
        bytes: u64,
    },
    /// The terminal's title (OSC 0, 2).
    Title {
        /// The new title.
        title: String,
    },
    /// The shell's directory (OSC 7).
    Cwd {
        /// A path.
        cwd: String,
    },
    /// A notification (OSC 9, 99, 777).
    Notify {
        /// Its title, which may be empty.
        title: String,
        /// Its text.
        body: String,
    },
    /// A link was printed.
    Url {
        /// Normalised.
        url: String,
        /// It looks like a login that waits for the user.
        open: bool,
    },
    /// The bell rang.
    Bell,
    /// Who is here.
    Presence {
        /// Everybody attached.
        clients: Vec<Present>,
    },
    /// The program ended; this comes after the last byte.
    Exit {
        /// Its code, unless a signal ended it.
        code: Option<i32>,
        /// The signal's name.
        signal: Option<String>,
        /// The end of the log.
        offset: Offset,
    },
    /// An agent event.
    Event {
        /// Its number.
        seq: u64,
        /// When, RFC 3339 UTC.
        at: String,
        /// What.
        #[cfg_attr(test, ts(type = "unknown"))]
        event: Value,
    },
    /// A command was taken.
    Accepted {
        /// The command.
        id: String,
        /// Its place in the session's events.
        seq: u64,
        /// It had been taken before.
        duplicate: bool,
    },
    /// A command was refused, for good.
    Rejected {
        /// The command.
        id: String,
        /// A problem code.
        code: Code,
        /// For people.
        message: String,
    },
    /// Something was wrong with what the client sent.
    Error {
        /// A problem code.
        code: Code,
        /// For people.
        message: String,
        /// A close follows.
        fatal: bool,
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
    /// The last message on a transport without close codes (the unix socket): what a WebSocket's close would say.
    Close {
        /// The close code.
        code: u16,
        /// For people.
        reason: String,
    },
    /// Something newer than this code.
    #[serde(other)]
    #[cfg_attr(test, ts(skip))]
    Unknown,
}
