//! The commands of an agent session. Each is recorded as an event, and acted on once.

use serde::{Deserialize, Serialize};

use super::approval::{Answers, ApprovalId};
use super::config::Settings;
use super::event::RunId;

/// The longest command in bytes, as JSON; a longer one gets `too_large`.
pub const MAX_COMMAND: usize = 256 << 10;
/// Prompts that may wait behind the one in the agent; another one gets `too_many`.
pub const MAX_WAITING: usize = 16;

/// A command to an agent session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentCommand {
    /// Start a run, or queue it behind those that wait.
    Prompt {
        text: String,
        /// The ids of uploads.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<String>,
    },
    /// Allow what an approval asks, with this option; without one, the option that allows it once.
    Approve {
        approval: ApprovalId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    },
    /// Refuse what an approval asks: with this option or, without one, for this once.
    Deny {
        approval: ApprovalId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
        /// For the agent, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Answer the questions of an approval.
    Answer { approval: ApprovalId, answers: Answers },
    /// End a run.
    Abort {
        run: RunId,
        /// End every later run, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        queue: bool,
    },
    /// Give more instructions to the run that is in the agent.
    Steer { run: RunId, text: String },
    /// Change how the agent works from now on.
    Set(Settings),
}

/// Checks the name of a model. Agents get it as one argument, which they must not take for an option.
pub fn check_model(model: &str) -> Result<(), &'static str> {
    let is_word = (1..=128).contains(&model.len()) && !model.contains(|c: char| c.is_control() || c.is_whitespace());
    match is_word && !model.starts_with('-') {
        true => Ok(()),
        false => Err("a model's name must have 1 to 128 bytes without spaces, and not start with -"),
    }
}

/// The first prompt of a new session.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FirstPrompt {
    /// The id of the command, chosen by the caller.
    pub id: String,
    pub text: String,
}
