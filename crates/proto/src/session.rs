//! How a session is described: in lists, over HTTP and when a viewer attaches.

use serde::{Deserialize, Serialize};

use crate::Offset;
use crate::ids::{Epoch, SessionId, SessionName};
use crate::size::Size;

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
