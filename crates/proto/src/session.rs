//! The description of a session, as used in lists, over HTTP and in `attached`.

use serde::{Deserialize, Serialize};

use crate::Offset;
use crate::ids::{Epoch, SessionId, SessionName};
use crate::size::Size;

/// A session as `ls`, `GET /v1/sessions` and `attached` describe it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SessionInfo {
    pub id: SessionId,
    /// Null if the session was not given a name.
    pub name: Option<SessionName>,
    pub kind: Kind,
    pub state: State,
    /// Only in the state `exited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub exit: Option<ExitStatus>,
    /// When the session was created, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created: String,
    /// When the program last printed, RFC 3339 UTC; up to ten seconds out of date while it is printing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub active: Option<String>,
    /// The last time the program called for the user in this epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub call: Option<Call>,
    /// The machine that owns the session, if it is not the machine that sends this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub host: Option<String>,
    /// The directory that the shell last reported (OSC 7), or else the one the session was started in.
    pub cwd: String,
    /// Empty if the program has not set one.
    #[serde(default)]
    pub title: String,
    /// The number of attached clients.
    #[serde(default)]
    pub clients: u32,
    pub epoch: Epoch,
    /// The newest position that a cursor can have; for a terminal, the end of its log.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub offset: Offset,
    /// The log could not be written to disk and continues in memory only.
    #[serde(default)]
    pub degraded: bool,
    /// The version of the session process.
    pub version: String,
    /// Only for a terminal. In JSON, its fields are at the same level as the others.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = OptionalTerminalInfo, inline))]
    #[cfg_attr(test, ts(skip))]
    pub terminal: Option<TerminalInfo>,
}

/// The fields of a [`SessionInfo`] that only a terminal has.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TerminalInfo {
    /// The program and its arguments.
    pub argv: Vec<String>,
    pub size: Size,
}

/// The OpenAPI schema of [`TerminalInfo`], with optional fields because other kinds of sessions do not have them.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct OptionalTerminalInfo {
    /// Only for a terminal: the program and its arguments.
    argv: Option<Vec<String>>,
    /// Only for a terminal.
    size: Option<Size>,
}

impl SessionInfo {
    /// The command line of a terminal, joined with spaces; empty for other kinds of sessions.
    pub fn command_line(&self) -> String {
        self.terminal.as_ref().map(|terminal| terminal.argv.join(" ")).unwrap_or_default()
    }
}

/// A request by the program for the user's attention.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Call {
    /// RFC 3339 UTC; unique among the calls of a session.
    pub at: String,
    pub kind: CallKind,
    /// The text of the notification; empty for the bell.
    pub text: String,
}

/// How a program calls for the user.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    Bell,
    /// A notification (OSC 9, 99 or 777).
    Notify,
    /// A value added by a newer version.
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
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// Whether a session is running.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The session process holds the lock.
    Running,
    /// The program ended, and its exit status is known.
    Exited,
    /// The session process ended without recording an exit status: it was killed, or the machine went down.
    Lost,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// How a program ended: with a code or by a signal. Both are null if the status is not known.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ExitStatus {
    pub code: Option<i32>,
    /// Such as `SIGKILL`.
    pub signal: Option<String>,
}
