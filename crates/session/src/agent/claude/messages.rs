//! The messages of Claude Code as far as Bowline reads them. Each is parsed in stages, the envelope first, so that a long
//! line costs little unless its content is wanted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::parsing::{List, Texts, count, object, text};
use crate::agent::output_text::OutputText;

/// What every message has.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) subtype: Option<Cow<'a, str>>,
}

/// `stream_event`: a part of a message that the model is writing.
#[derive(Debug, Deserialize)]
pub(super) struct StreamLine {
    pub(super) event: StreamEvent,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StreamEvent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) index: u64,
    #[serde(default)]
    pub(super) delta: StreamDelta,
    #[serde(default, deserialize_with = "object")]
    pub(super) message: StreamMessage,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct StreamDelta {
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) thinking: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct StreamMessage {
    #[serde(default, deserialize_with = "text")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) model: String,
    #[serde(default, deserialize_with = "object")]
    pub(super) usage: MessageUsage,
}

/// The tokens of one request to the model, or of a turn.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageUsage {
    #[serde(deserialize_with = "count")]
    pub(super) input_tokens: u64,
    #[serde(deserialize_with = "count")]
    pub(super) output_tokens: u64,
    #[serde(deserialize_with = "count")]
    pub(super) cache_creation_input_tokens: u64,
    #[serde(deserialize_with = "count")]
    pub(super) cache_read_input_tokens: u64,
}

/// `assistant`: one or more whole blocks. `I` is the input of a tool.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "I: Deserialize<'de> + Default"))]
pub(super) struct AssistantLine<I> {
    pub(super) message: AssistantMessage<I>,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    /// The kind of error that the text reports, such as `authentication_failed`.
    #[serde(default)]
    pub(super) error: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "I: Deserialize<'de> + Default"))]
pub(super) struct AssistantMessage<I> {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) content: List<AssistantBlock<I>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "I: Deserialize<'de> + Default"))]
pub(super) struct AssistantBlock<I> {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) thinking: Option<String>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) input: I,
}

/// `user`: results of tools, and texts that Claude Code wrote in the user's name.
#[derive(Debug, Deserialize)]
pub(super) struct UserLine {
    pub(super) message: UserMessage,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct UserMessage {
    #[serde(default)]
    pub(super) content: List<UserBlock>,
}

#[derive(Debug, Deserialize)]
pub(super) struct UserBlock {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) content: OutputText,
    #[serde(default)]
    pub(super) is_error: Option<bool>,
}

/// The details of the result of `TaskCreate`.
#[derive(Debug, Deserialize)]
pub(super) struct CreatedLine {
    pub(super) tool_use_result: Created,
}

#[derive(Debug, Deserialize)]
pub(super) struct Created {
    pub(super) task: CreatedTask,
}

#[derive(Debug, Deserialize)]
pub(super) struct CreatedTask {
    pub(super) id: String,
}

/// `system`: the fields of every subtype that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SystemLine {
    pub(super) session_id: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) model: Option<String>,
    #[serde(rename = "permissionMode")]
    pub(super) permission_mode: Option<String>,
    pub(super) slash_commands: Texts,
    pub(super) status: Option<String>,
    pub(super) title: Option<String>,
    pub(super) message: Option<String>,
    pub(super) tool_name: Option<String>,
    pub(super) content: Option<String>,
    pub(super) attempt: Option<u64>,
    pub(super) max_retries: Option<u64>,
    pub(super) retry_delay_ms: Option<f64>,
    pub(super) error_status: Option<u64>,
    pub(super) error: Option<String>,
    pub(super) task_id: Option<String>,
    pub(super) tool_use_id: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) is_backgrounded: Option<bool>,
    pub(super) patch: TaskPatch,
    pub(super) tasks: List<TaskEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskPatch {
    pub(super) status: Option<String>,
    pub(super) is_backgrounded: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TaskEntry {
    #[serde(default)]
    pub(super) task_id: String,
}

/// `result`: the end of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultLine {
    pub(super) subtype: Option<String>,
    pub(super) is_error: bool,
    pub(super) terminal_reason: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) result: Option<String>,
    pub(super) errors: Texts,
    pub(super) api_error: Option<String>,
    pub(super) api_error_status: Option<u64>,
    /// Present if Claude Code began the turn by itself.
    pub(super) origin: Option<IgnoredAny>,
    /// The messages that the turn answers. Absent if they had no ids.
    pub(super) user_message_uuids: Option<Texts>,
}

/// What is needed of a `result` that is not understood as a whole: a run must not stay open because of one odd field.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BareResult {
    errors: Texts,
    origin: Option<IgnoredAny>,
    user_message_uuids: Option<Texts>,
}

impl From<BareResult> for ResultLine {
    fn from(bare: BareResult) -> ResultLine {
        let BareResult { mut errors, origin, user_message_uuids } = bare;
        if errors.0.is_empty() {
            errors.0.push("the agent did not report the end of the turn in a way that Bowline understands".to_owned());
        }
        ResultLine { is_error: true, errors, origin, user_message_uuids, ..ResultLine::default() }
    }
}

/// What a turn used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultUsage {
    pub(super) total_cost_usd: Option<f64>,
    #[serde(deserialize_with = "object")]
    pub(super) usage: MessageUsage,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: BTreeMap<String, ModelUsage>,
    pub(super) model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    #[serde(deserialize_with = "count")]
    pub(super) input_tokens: u64,
    #[serde(deserialize_with = "count")]
    pub(super) output_tokens: u64,
    #[serde(deserialize_with = "count")]
    pub(super) cache_read_input_tokens: u64,
    #[serde(deserialize_with = "count")]
    pub(super) cache_creation_input_tokens: u64,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: f64,
    #[serde(deserialize_with = "count")]
    pub(super) context_window: u64,
}

/// `rate_limit_event`.
#[derive(Debug, Deserialize)]
pub(super) struct RateLimitLine {
    pub(super) rate_limit_info: RateLimit,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimit {
    pub(super) status: String,
    /// Seconds after 1970.
    #[serde(rename = "resetsAt")]
    pub(super) resets_at: Option<u64>,
}

/// `command_lifecycle`: what became of a message that was sent.
#[derive(Debug, Deserialize)]
pub(super) struct LifecycleLine {
    pub(super) command_uuid: String,
    pub(super) state: String,
}

/// The id of `control_request` and `control_cancel_request`.
#[derive(Debug, Deserialize)]
pub(super) struct RequestLine {
    pub(super) request_id: String,
    /// Read however odd it is: the agent waits for an answer.
    #[serde(default, deserialize_with = "object")]
    pub(super) request: RequestKind,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct RequestKind {
    #[serde(default, deserialize_with = "text")]
    pub(super) subtype: String,
}

/// `control_request` with the subtype `can_use_tool`.
#[derive(Debug, Deserialize)]
pub(super) struct PermissionLine {
    pub(super) request: Permission,
}

#[derive(Debug, Deserialize)]
pub(super) struct Permission {
    #[serde(default)]
    pub(super) tool_name: String,
    #[serde(default)]
    pub(super) input: Value,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) permission_suggestions: List<Value>,
    #[serde(default)]
    pub(super) tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) agent_id: Option<String>,
}

/// `control_response`, with a result of this type.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de> + Default"))]
pub(super) struct ResponseLine<T> {
    pub(super) response: Response<T>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de> + Default"))]
pub(super) struct Response<T> {
    #[serde(default)]
    pub(super) subtype: String,
    #[serde(default)]
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) response: T,
}

/// The response to `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Initialized {
    pub(super) commands: List<Command>,
    pub(super) models: List<Model>,
    pub(super) current_permission_mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) argument_hint: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Model {
    pub(super) value: String,
    pub(super) resolved_model: Option<String>,
    pub(super) display_name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) supported_effort_levels: Texts,
}
