//! The messages of ACP, version 1, as far as Bowline reads them.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::agent::output::{Shown, shown};
use crate::agent::output_text::{OutputText, read_content};
use crate::agent::rpc::Id;

#[derive(Debug, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) data: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialized {
    #[serde(default)]
    pub(super) protocol_version: u64,
    #[serde(default)]
    pub(super) agent_capabilities: Capabilities,
    #[serde(default)]
    pub(super) agent_info: AgentInfo,
    #[serde(default, rename = "_meta")]
    pub(super) meta: InitializedMeta,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct AgentInfo {
    #[serde(default)]
    pub(super) name: String,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct InitializedMeta {
    #[serde(default)]
    pub(super) steering: Steering,
}

/// Whether a run can be given more instructions.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Steering {
    #[serde(default)]
    pub(super) supported: bool,
}

/// The answer to `_session/steering`.
#[derive(Debug, Deserialize)]
pub(super) struct Steered {
    #[serde(default)]
    pub(super) outcome: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Capabilities {
    #[serde(default)]
    pub(super) load_session: bool,
    #[serde(default)]
    pub(super) prompt_capabilities: PromptCapabilities,
}

/// What a prompt may have beside texts and links.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptCapabilities {
    #[serde(default)]
    pub(super) image: bool,
    #[serde(default)]
    pub(super) embedded_context: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSession {
    pub(super) session_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompted {
    #[serde(default)]
    pub(super) stop_reason: String,
}

/// The parameters of `session/update`.
#[derive(Debug, Deserialize)]
pub(super) struct Update<T> {
    pub(super) update: T,
}

/// The kind of an update.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateKind<'a> {
    #[serde(borrow)]
    pub(super) session_update: Cow<'a, str>,
}

/// A part of a text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk {
    #[serde(default)]
    pub(super) content: Content,
    #[serde(default)]
    pub(super) message_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Content {
    #[serde(default)]
    pub(super) text: Option<String>,
}

/// A tool call, or the fields of one that changed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool {
    pub(super) tool_call_id: String,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) raw_input: Option<Value>,
    #[serde(default)]
    pub(super) content: Option<Value>,
    #[serde(default)]
    pub(super) locations: Option<Value>,
    /// Details were left out.
    #[serde(skip)]
    pub(super) truncated: bool,
    /// What is shown in place of `content`.
    #[serde(skip)]
    pub(super) output: Option<Shown>,
}

impl Tool {
    /// Whether there is anything but the id.
    pub(super) fn says_something(&self) -> bool {
        let Tool { tool_call_id: _, title, name, kind, status, raw_input, content, locations, truncated, output } =
            self;
        let texts = [title, name, kind, status].into_iter().any(Option::is_some);
        texts || [raw_input, content, locations].into_iter().any(Option::is_some) || output.is_some() || *truncated
    }
}

/// The fields of agents beside those of the protocol.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WithMeta<T> {
    #[serde(rename = "_meta")]
    pub(super) meta: T,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolMeta {
    /// More output of the tool.
    pub(super) terminal_output_delta: Option<OutputDelta>,
    /// There is no more output.
    pub(super) terminal_exit: Option<IgnoredAny>,
    #[serde(rename = "claudeCode")]
    claude_code: Option<ClaudeMeta>,
}

impl ToolMeta {
    /// The tool call of the sub-agent that made this one.
    pub(super) fn parent(&self) -> Option<String> {
        self.claude_code.as_ref().and_then(|claude| claude.parent_tool_use_id.clone())
    }
}

/// The fields of agents in a permission request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionMeta {
    pub(super) tool_call: WithMeta<ToolMeta>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OutputDelta {
    pub(super) data: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaudeMeta {
    parent_tool_use_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InfoMeta {
    pub(super) codex: Option<CodexMeta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CodexMeta {
    pub(super) thread_status: Option<ThreadStatus>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ThreadStatus {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// A tool call without its details.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolHead {
    tool_call_id: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    status: Option<String>,
}

impl ToolHead {
    /// The tool call with this output, and without other details.
    pub(super) fn with_output(self, output: OutputText) -> Tool {
        let ToolHead { tool_call_id, title, name, kind, status } = self;
        let (raw_input, content, locations, truncated) = (None, None, None, true);
        let output = Some(output.0).filter(|text| !text.is_empty()).map(|text| shown(text).into_content());
        Tool { tool_call_id, title, name, kind, status, raw_input, content, locations, truncated, output }
    }
}

/// The output of a tool call, without other details.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ToolOutput {
    #[serde(default, deserialize_with = "read_content")]
    pub(super) content: OutputText,
}

#[derive(Debug, Deserialize)]
pub(super) struct Plan {
    #[serde(default)]
    pub(super) entries: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct SessionTitle {
    #[serde(default)]
    pub(super) title: Option<String>,
}

/// The parameters of `session/request_permission`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Permission {
    #[serde(default)]
    pub(super) options: Vec<PermissionOption>,
    pub(super) tool_call: Tool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) name: String,
}

/// The parameters of `$/cancel_request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelRequest {
    pub(super) request_id: Id,
}
