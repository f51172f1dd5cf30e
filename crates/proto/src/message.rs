//! The text messages of an attach, both ways, and the shape in which a session is described.
//!
//! The protocol only grows: unknown fields are ignored, an unknown `type` becomes `Unknown` and is ignored too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Offset;
use crate::ids::{ClientId, Epoch, SessionId, SessionName};
use crate::size::Size;

/// The protocol version that this code speaks.
pub const VERSION: u32 = 1;

/// A session as `ls`, `GET /v1/sessions` and `attached` describe it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its name, if it was given one.
    pub name: Option<SessionName>,
    /// Terminal or agent.
    pub kind: Kind,
    /// Whether it lives.
    pub state: State,
    /// How it ended; only when `exited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub exit: Option<ExitStatus>,
    /// When it was created, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created: String,
    /// When it last printed something; up to ten seconds old while it prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub active: Option<String>,
    /// The last call for its owner in this life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub call: Option<Call>,
    /// The machine that it belongs to, where that is not the one that describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub host: Option<String>,
    /// Where it was started, or where it is now if its shell tells (OSC 7).
    pub cwd: String,
    /// Its title; empty if it has none.
    #[serde(default)]
    pub title: String,
    /// How many clients are attached.
    #[serde(default)]
    pub clients: u32,
    /// Its current life.
    pub epoch: Epoch,
    /// The next position of a cursor: for a terminal, the end of its log in bytes.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub offset: Offset,
    /// The log could not be written to disk and goes on in memory.
    #[serde(default)]
    pub degraded: bool,
    /// The version of the session process.
    pub version: String,
    /// What only a terminal has; the fields stand beside the others in JSON.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = OptionalTerminalInfo, inline))]
    #[cfg_attr(test, ts(skip))]
    pub terminal: Option<TerminalInfo>,
}

/// The part of a [`SessionInfo`] that only a terminal has.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TerminalInfo {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The terminal's size.
    pub size: Size,
}

/// [`TerminalInfo`] as OpenAPI sees it: fields that other kinds of sessions do not have.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct OptionalTerminalInfo {
    /// A terminal's program and its arguments.
    argv: Option<Vec<String>>,
    /// A terminal's size.
    size: Option<Size>,
}

impl SessionInfo {
    /// The command line of a terminal as text; empty for other kinds.
    pub fn command_line(&self) -> String {
        self.terminal.as_ref().map(|terminal| terminal.argv.join(" ")).unwrap_or_default()
    }
}

/// A program called for its owner.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Call {
    /// When, RFC 3339 UTC. No two calls of a session have the same time.
    pub at: String,
    /// How.
    pub kind: CallKind,
    /// In which words; none for the bell.
    pub text: String,
}

/// How a program calls.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// By the bell.
    Bell,
    /// By a notification (OSC 9, 99 or 777).
    Notify,
    /// A word of a later time.
    #[serde(other)]
    Unknown,
}

/// What runs in a session.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A program on a PTY.
    Terminal,
    /// A conversation with a coding agent.
    Agent,
    /// A word of a later time.
    #[serde(other)]
    Unknown,
}

/// Whether a session lives.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its process holds the lock.
    Running,
    /// It ended, and its exit status is known.
    Exited,
    /// Its process is gone without an exit status: killed, or the machine went down.
    Lost,
    /// A word of a later time.
    #[serde(other)]
    Unknown,
}

/// How a program ended: a code or a signal; neither when nobody saw it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ExitStatus {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal's name, such as `SIGKILL`.
    pub signal: Option<String>,
}

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
        code: String,
        /// For people.
        message: String,
    },
    /// Something was wrong with what the client sent.
    Error {
        /// A problem code.
        code: String,
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
