//! The events of an agent session, as its journal records them and viewers get them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::{Approval, ApprovalId, Outcome};
use super::config::{Config, Settings};
use super::usage::Usage;
use crate::ids::Epoch;

/// A run: one prompt and what the agent does about it. Written as `r3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(pub u64);

/// A text is not the id of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a run's id is r and a number, such as r3")]
pub struct BadRunId;

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl FromStr for RunId {
    type Err = BadRunId;
    fn from_str(text: &str) -> Result<RunId, BadRunId> {
        let run = text.strip_prefix('r').and_then(|number| number.parse().ok()).map(RunId);
        // Only one spelling: no sign and no leading zeros.
        run.filter(|run| run.to_string() == text).ok_or(BadRunId)
    }
}

impl TryFrom<String> for RunId {
    type Error = BadRunId;
    fn try_from(text: String) -> Result<RunId, BadRunId> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> String {
        run.to_string()
    }
}

/// What happened in an agent session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// A session process started. A new epoch begins.
    Started {
        epoch: Epoch,
        /// The id of the session process.
        pid: u32,
        /// The version of the session process.
        version: String,
    },
    /// The end of the journal was damaged or may be lost, so that numbers are used again. A new epoch begins.
    Repaired {
        epoch: Epoch,
    },
    /// A prompt was accepted. It is a run, which ends with one `complete`.
    Prompt {
        #[cfg_attr(test, ts(type = "string"))]
        run: RunId,
        #[serde(flatten)]
        source: CommandSource,
        text: String,
        #[serde(default)]
        attachments: Vec<String>,
    },
    /// The prompt of a run was given to the agent, or the agent began a run by itself.
    RunStarted {
        #[cfg_attr(test, ts(type = "string"))]
        run: RunId,
        cause: Cause,
    },
    /// More text of the agent.
    Text(Delta),
    /// More of the agent's thinking.
    Thinking(Delta),
    /// The agent uses a tool. Later events with the same `call` replace the fields that they have.
    ToolCall(ToolCall),
    /// A tool call changed, or is new.
    ToolUpdate(ToolCall),
    /// The agent's list of steps.
    Plan {
        #[cfg_attr(test, ts(type = "string | null"))]
        run: Option<RunId>,
        #[cfg_attr(test, ts(type = "unknown"))]
        entries: Value,
        /// Entries were cut or left out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        truncated: bool,
    },
    /// The agent asks something, and waits for the answer.
    ApprovalRequested {
        approval: Approval,
    },
    /// An approval was answered, or needs no answer any more. Each has exactly one.
    ApprovalResolved {
        #[cfg_attr(test, ts(type = "string"))]
        approval: ApprovalId,
        outcome: Outcome,
        /// The option that was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        option: Option<String>,
        /// Why it was denied, in the client's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        reason: Option<String>,
        /// Only if a client answered it.
        #[serde(flatten)]
        #[cfg_attr(test, ts(skip))]
        source: Option<CommandSource>,
    },
    /// A client wants a run to end.
    AbortRequested {
        #[cfg_attr(test, ts(type = "string"))]
        run: RunId,
        #[serde(flatten)]
        source: CommandSource,
        /// Every later run ends, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        queue: bool,
    },
    /// A client gave more instructions to a run.
    Steered {
        #[cfg_attr(test, ts(type = "string"))]
        run: RunId,
        #[serde(flatten)]
        source: CommandSource,
        text: String,
    },
    /// A client changed how the agent works. The agent's answer is a `config` or a notice.
    Set {
        #[serde(flatten)]
        settings: Settings,
        #[serde(flatten)]
        source: CommandSource,
    },
    /// What the agent has used since the last such event.
    Usage(Usage),
    /// What can be set, and the commands that the agent knows. Replaces the one before.
    Config(Config),
    /// The agent's name for the conversation, by which another process can resume it.
    Conversation {
        id: String,
    },
    Title {
        title: String,
    },
    /// Information for people. It ends nothing.
    Notice {
        level: Level,
        text: String,
    },
    /// A message of the agent that this version does not understand.
    Raw {
        /// The agent's protocol.
        source: String,
        #[cfg_attr(test, ts(type = "unknown"))]
        message: Value,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        truncated: bool,
    },
    /// A run ended. Each run has exactly one.
    Complete(Complete),
    /// The journal could not be written for a while.
    Degraded {
        /// The operating system's error.
        error: String,
    },
    /// The session was ended.
    Exit {
        code: Option<i32>,
        signal: Option<String>,
    },
    /// An event added by a newer version.
    #[serde(other)]
    Unknown,
}

/// The command that an event records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommandSource {
    /// The id that the client chose.
    pub command: String,
    /// Tells a repeat of the command from another with the same id: 16 hexadecimal digits.
    pub digest: String,
    /// The name of the token or login that sent it, or `local`.
    pub by: String,
}

/// Why a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    Prompt,
    /// The agent began it by itself, for example when its background work ended.
    Agent,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// How important a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// More of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Delta {
    /// Null for text that belongs to no run.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub run: Option<RunId>,
    /// Texts with the same block are one text.
    pub block: String,
    /// The tool call of the sub-agent that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub parent: Option<String>,
    pub delta: String,
}

/// A tool call, or the fields of one that changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ToolCall {
    #[cfg_attr(test, ts(type = "string | null"))]
    pub run: Option<RunId>,
    pub call: String,
    /// The tool call of the sub-agent that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub parent: Option<String>,
    /// The tool, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// The kind of tool: `read`, `edit`, `execute` and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub title: Option<String>,
    /// `pending`, `in_progress`, `completed` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub content: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub locations: Option<Value>,
    /// Where the whole output is, if `content` has only its beginning and its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub blob: Option<Blob>,
    /// A field was too large, and was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub truncated: bool,
}

/// The output of a tool, in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ToolBlob"))]
pub struct Blob {
    /// The number of the event that has the beginning and the end.
    pub seq: u64,
    pub bytes: u64,
    /// The file does not have everything either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub truncated: bool,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Complete {
    #[cfg_attr(test, ts(type = "string"))]
    pub run: RunId,
    /// The prompt was given to the agent. If not, it is safe to send it again.
    pub started: bool,
    /// The agent reported a normal end.
    pub success: bool,
    /// A client ended the run.
    pub aborted: bool,
    /// The session ended, or its process died.
    pub interrupted: bool,
    /// The exit code of the agent's program, if its exit ended the run.
    pub exit_code: Option<i32>,
    /// The signal that ended the agent's program, if that ended the run.
    pub signal: Option<String>,
    /// Why the agent stopped, in its words.
    pub stop_reason: Option<String>,
    pub conversation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub error: Option<RunError>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunError {
    /// Such as `agent_exited` or `usage_limit`.
    pub code: String,
    /// An explanation for people.
    pub message: String,
    /// When it is worth trying again, RFC 3339 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub retry_at: Option<String>,
}

impl RunError {
    pub fn new(code: &str, message: impl Into<String>) -> RunError {
        RunError { code: code.to_owned(), message: message.into(), retry_at: None }
    }
}

impl AgentEvent {
    /// Whether the event must survive a power cut before anything follows from it.
    pub fn is_synced(&self) -> bool {
        use AgentEvent::{
            AbortRequested, ApprovalRequested, ApprovalResolved, Complete, Exit, Prompt, Repaired, RunStarted, Set,
            Started, Steered,
        };
        matches!(
            self,
            Started { .. }
                | ApprovalRequested { .. }
                | ApprovalResolved { .. }
                | Repaired { .. }
                | Prompt { .. }
                | RunStarted { .. }
                | AbortRequested { .. }
                | Steered { .. }
                | Set { .. }
                | Complete(_)
                | Exit { .. }
        )
    }

    /// The command that this event records.
    pub fn command(&self) -> Option<&CommandSource> {
        match self {
            AgentEvent::Prompt { source, .. }
            | AgentEvent::AbortRequested { source, .. }
            | AgentEvent::Steered { source, .. }
            | AgentEvent::Set { source, .. } => Some(source),
            AgentEvent::ApprovalResolved { source, .. } => source.as_ref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_has_one_spelling() {
        assert_eq!("r3".parse(), Ok(RunId(3)));
        for bad in ["", "r", "3", "r-1", "r+1", "r03", "R3", "r3 ", "r99999999999999999999"] {
            assert_eq!(bad.parse::<RunId>(), Err(BadRunId), "{bad:?}");
        }
        assert_eq!(json!(RunId(0)), "r0");
    }

    /// Clients outside of this repository rely on these shapes.
    #[test]
    fn events_have_the_shapes_of_the_contract() {
        let source = CommandSource { command: "c".into(), digest: "0".repeat(16), by: "phone".into() };
        let (run, text) = (RunId(3), "hi".to_owned());
        let written = |event: AgentEvent| {
            let json = json!(event);
            assert_eq!(serde_json::from_value::<AgentEvent>(json.clone()).unwrap(), event);
            json
        };
        assert_eq!(
            written(AgentEvent::Prompt { run, source: source.clone(), text, attachments: vec![] }),
            json!({"type": "prompt", "run": "r3", "command": "c", "digest": "0000000000000000", "by": "phone",
                "text": "hi", "attachments": []})
        );
        assert_eq!(
            written(AgentEvent::RunStarted { run, cause: Cause::Prompt }),
            json!({"type": "run_started", "run": "r3", "cause": "prompt"})
        );
        let delta = Delta { run: None, block: "b".into(), parent: None, delta: "x".into() };
        assert_eq!(
            written(AgentEvent::Text(delta)),
            json!({"type": "text", "run": null, "block": "b", "delta": "x"}),
            "late text has no run"
        );
        assert_eq!(
            written(AgentEvent::AbortRequested { run, source, queue: false }),
            json!({"type": "abort_requested", "run": "r3", "command": "c", "digest": "0000000000000000", "by": "phone"})
        );
        let complete = Complete { run, started: true, success: true, ..Complete::default() };
        assert_eq!(
            written(AgentEvent::Complete(complete)),
            json!({"type": "complete", "run": "r3", "started": true, "success": true, "aborted": false,
                "interrupted": false, "exit_code": null, "signal": null, "stop_reason": null, "conversation": null})
        );
        let resolved = AgentEvent::ApprovalResolved {
            approval: ApprovalId(7),
            outcome: Outcome::Withdrawn,
            option: None,
            reason: None,
            source: None,
        };
        assert_eq!(
            written(resolved),
            json!({"type": "approval_resolved", "approval": "a7", "outcome": "withdrawn"}),
            "no client answered it"
        );
        let blob = Some(Blob { seq: 187, bytes: 123_456, truncated: false });
        assert_eq!(
            written(AgentEvent::ToolUpdate(ToolCall {
                call: "c1".into(),
                blob,
                truncated: true,
                ..ToolCall::default()
            })),
            json!({"type": "tool_update", "run": null, "call": "c1", "blob": {"seq": 187, "bytes": 123_456},
                "truncated": true})
        );
        let newer: AgentEvent = serde_json::from_value(json!({"type": "hologram", "beams": 2})).unwrap();
        assert_eq!(newer, AgentEvent::Unknown);
    }
}
