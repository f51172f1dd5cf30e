//! The description of a session, as used in lists, over HTTP and in `attached`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Offset;
use crate::agent::approval::Approval;
use crate::agent::config::SlashCommand;
use crate::agent::event::RunId;
use crate::agent::usage::Used;
use crate::ids::{Epoch, SessionId, SessionName};
use crate::size::Size;

/// Bytes of the arguments that a list or a board shows of a session, in all; each argument counts one more.
pub const MAX_LISTED_ARGV: usize = 4 << 10;
/// Bytes of any other text that a list or a board shows of a session.
pub const MAX_LISTED_TEXT: usize = 1 << 10;

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
    /// Long texts were cut, as in lists and on the board; `GET /v1/sessions/{id}` has them whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub truncated: bool,
    /// Only for a terminal. In JSON, its fields are at the same level as the others.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = OptionalTerminalInfo, inline))]
    #[cfg_attr(test, ts(skip))]
    pub terminal: Option<TerminalInfo>,
    /// Only for an agent session. In JSON, its fields are at the same level as the others.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = OptionalAgentInfo, inline))]
    #[cfg_attr(test, ts(skip))]
    pub agent: Option<AgentInfo>,
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

/// The fields of a [`SessionInfo`] that only an agent session has.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AgentInfo {
    /// The agent's name in the server's table.
    pub agent: String,
    /// The agent's name for the conversation; null until the agent has told it.
    #[serde(default)]
    pub conversation: Option<String>,
    /// What the agent does now; null while no run is open.
    #[serde(default)]
    pub activity: Option<Activity>,
    /// Prompts that wait behind the run in `activity`.
    #[serde(default)]
    pub queued: u32,
    /// What the agent asks and waits for, oldest first; at most 64.
    #[serde(default)]
    pub approvals: Vec<Approval>,
    /// The mode that the agent is in, if it has modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub mode: Option<String>,
    /// The model that the agent uses, if it has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub model: Option<String>,
    /// What the agent has used since the session was created, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub usage: Option<Used>,
    /// The commands that a prompt may begin with, such as `/compact`. Lists and the board leave them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<SlashCommand>>))]
    #[cfg_attr(test, ts(optional, type = "SlashCommand[]"))]
    pub commands: Option<Arc<Vec<SlashCommand>>>,
}

/// The OpenAPI schema of [`AgentInfo`], with optional fields because other kinds of sessions do not have them.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct OptionalAgentInfo {
    /// Only for an agent session: the agent's name in the server's table.
    agent: Option<String>,
    /// Only for an agent session: the agent's name for the conversation.
    conversation: Option<String>,
    /// Only for an agent session: what the agent does now; null while no run is open.
    activity: Option<Activity>,
    /// Only for an agent session: prompts that wait behind the run in `activity`.
    queued: Option<u32>,
    /// Only for an agent session: what the agent asks and waits for, oldest first; at most 64.
    approvals: Option<Vec<Approval>>,
    /// Only for an agent session: the mode that the agent is in, if it has modes.
    mode: Option<String>,
    /// Only for an agent session: the model that the agent uses, if it has said so.
    model: Option<String>,
    /// Only for an agent session: what the agent has used, if it says so.
    usage: Option<Used>,
    /// Only for an agent session: the commands that a prompt may begin with. Lists and the board leave them out.
    commands: Option<Vec<SlashCommand>>,
}

/// What an agent does.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Activity {
    /// The oldest open run.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    #[cfg_attr(test, ts(type = "string"))]
    pub run: RunId,
    /// One line for people.
    pub text: String,
    /// An `abort` of this run would be accepted and is not under way yet.
    pub can_interrupt: bool,
    /// When the run was accepted, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub started_at: String,
}

impl SessionInfo {
    /// The command line of a terminal, joined with spaces, or the name of an agent; empty for other kinds of sessions.
    pub fn command_line(&self) -> String {
        let terminal = self.terminal.as_ref().map(|terminal| terminal.argv.join(" "));
        terminal.or_else(|| self.agent.as_ref().map(|agent| agent.agent.clone())).unwrap_or_default()
    }

    /// Cuts long texts, so that a list of many sessions stays small whatever they contain.
    pub fn truncate(&mut self) {
        let SessionInfo { exit, created, active, call, host, cwd, title, version, terminal, agent, .. } = self;
        let signal = exit.as_mut().and_then(|exit| exit.signal.as_mut());
        let call = call.iter_mut().flat_map(|call| [&mut call.at, &mut call.text]);
        let mut cut = agent.iter_mut().flat_map(|agent| &mut agent.approvals).fold(false, |cut, approval| {
            approval.truncate(MAX_LISTED_TEXT);
            cut | approval.truncated
        });
        if let Some(agent) = agent {
            agent.commands = None;
        }
        let agent = agent.iter_mut().flat_map(|AgentInfo { agent, conversation, activity, mode, model, .. }| {
            let activity = activity.iter_mut().flat_map(|activity| [&mut activity.text, &mut activity.started_at]);
            [agent].into_iter().chain(conversation).chain(activity).chain(mode).chain(model)
        });
        let texts = [created, cwd, title, version].into_iter().chain(call).chain(signal).chain(active).chain(host);
        let texts = texts.chain(agent);
        for text in texts {
            cut |= truncate_text(text, MAX_LISTED_TEXT);
        }
        if let Some(TerminalInfo { argv, .. }) = terminal {
            let mut left = MAX_LISTED_ARGV;
            let whole = argv.len();
            argv.retain_mut(|argument| {
                let keep = left > 0;
                left = left.saturating_sub(1);
                let longer = truncate_text(argument, left);
                left = if longer { 0 } else { left - argument.len() };
                cut |= longer;
                keep
            });
            cut |= argv.len() < whole;
            argv.shrink_to_fit();
        }
        self.truncated |= cut;
    }
}

/// Cuts a text to at most `max` bytes, between two characters. Returns whether it was longer.
pub(crate) fn truncate_text(text: &mut String, max: usize) -> bool {
    let longer = text.len() > max;
    text.truncate(text.floor_char_boundary(max));
    text.shrink_to_fit();
    longer
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

#[cfg(test)]
mod tests {
    use super::*;

    fn info(argv: &[&str]) -> SessionInfo {
        let info = serde_json::json!({
            "id": "k3v9x0q2m7aa", "name": null, "kind": "terminal", "state": "running", "created": "", "cwd": "/",
            "epoch": "9f3c61d2", "version": "0.1.0", "argv": argv, "size": {"cols": 80, "rows": 24},
        });
        serde_json::from_value(info).unwrap()
    }

    fn truncated(mut info: SessionInfo) -> SessionInfo {
        info.truncate();
        info
    }

    #[test]
    fn r52_a_short_description_is_not_truncated() {
        let exact = "x".repeat(MAX_LISTED_ARGV - 6);
        let whole = SessionInfo { title: "t".repeat(MAX_LISTED_TEXT), ..info(&["make", &exact]) };
        assert_eq!(truncated(whole.clone()), whole);
        assert!(!serde_json::to_string(&whole).unwrap().contains("truncated"), "older clients see no new field");
    }

    #[test]
    fn r52_a_long_description_is_truncated_between_characters() {
        // The limit is in the middle of a character.
        let long = format!("x{}", "\u{e9}".repeat(100_000));
        let cut = truncated(SessionInfo { title: long.clone(), cwd: long.clone(), ..info(&["make", &long, "all"]) });
        assert!(cut.truncated);
        assert_eq!((cut.title.len(), cut.cwd.len()), (MAX_LISTED_TEXT - 1, MAX_LISTED_TEXT - 1));
        let argv = cut.terminal.unwrap().argv;
        assert_eq!((argv.len(), &*argv[0], argv[1].len()), (2, "make", MAX_LISTED_ARGV - 7));
    }

    #[test]
    fn r52_many_empty_arguments_are_truncated_too() {
        let cut = truncated(info(&[""; 100_000]));
        assert_eq!((cut.terminal.unwrap().argv.len(), cut.truncated), (MAX_LISTED_ARGV, true));
    }
}
