//! The state of a conversation as clients get it with a page of its history, and go on folding events into it.

use serde::{Deserialize, Serialize};

use super::approval::Approval;
use super::config::Config;
use super::event::RunId;
use super::usage::Used;
use crate::session::{Activity, ExitStatus};

/// What clients need to show a conversation, and to fold its further events.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ConversationState {
    pub title: String,
    /// The agent's name for the conversation; null until the agent has told it.
    pub conversation: Option<String>,
    /// What the agent does now; null while no run is open. It follows from the fields below.
    pub activity: Option<Activity>,
    /// Prompts that wait behind the run in `activity`.
    pub queued: u32,
    /// The runs that have not ended. The first is in the agent, if it has started.
    pub runs: Vec<OpenRun>,
    /// The tool calls of the run in the agent that have not ended, oldest first; at most 64.
    pub tools: Vec<OpenTool>,
    /// What the agent did last in this run, besides using tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub step: Option<Step>,
    /// What the agent asks and waits for, oldest first; at most 64.
    pub approvals: Vec<Approval>,
    /// What the agent has used since the session was created, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub usage: Option<Used>,
    /// What can be set in the agent, as it last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub config: Option<Config>,
    /// How the session ended, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub exit: Option<ExitStatus>,
    /// The journal could not be written for a while.
    pub degraded: bool,
}

/// A run that has not ended.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OpenRun {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    #[cfg_attr(test, ts(type = "string"))]
    pub run: RunId,
    /// When it was accepted, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// The agent has its prompt.
    pub started: bool,
    /// A client has aborted it.
    pub aborted: bool,
}

/// A tool call that has not ended.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OpenTool {
    pub call: String,
    /// Cut to 200 characters.
    pub title: String,
}

/// What an agent does while it uses no tool.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Step {
    Thinking,
    Writing,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}
