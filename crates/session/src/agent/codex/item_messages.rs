//! The messages about the items of a turn, as far as Bowline reads them.

use std::borrow::Cow;

use serde::Deserialize;

use crate::agent::bounded_list::BoundedList;
use crate::agent::output_text::OutputText;

/// The parts of a text; more are left out.
type Parts = BoundedList<String, 1024>;

/// The parameters of the notifications that carry a part of a text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextDelta {
    pub(super) item_id: String,
    #[serde(default)]
    pub(super) delta: String,
    /// Counts the parts of a summary.
    #[serde(default)]
    pub(super) summary_index: u64,
    #[serde(default)]
    pub(super) thread_id: Option<String>,
}

/// The parameters of `item/started` and `item/completed`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemMessage<T> {
    pub(super) item: T,
    #[serde(default)]
    pub(super) thread_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ItemHead<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    pub(super) id: String,
    #[serde(default)]
    pub(super) status: Option<String>,
}

/// An `agentMessage` or a `plan`.
#[derive(Debug, Deserialize)]
pub(super) struct TextItem {
    #[serde(default)]
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReasoningItem {
    #[serde(default)]
    pub(super) summary: Parts,
    #[serde(default)]
    pub(super) content: Parts,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandItem {
    #[serde(default)]
    pub(super) command: String,
    #[serde(default)]
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) aggregated_output: Option<String>,
    #[serde(default)]
    pub(super) exit_code: Option<i64>,
}

/// Which tool an `mcpToolCall` or a `dynamicToolCall` is of.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ToolNames {
    #[serde(default)]
    pub(super) server: Option<String>,
    #[serde(default)]
    pub(super) tool: Option<String>,
}

/// Why such a call failed.
#[derive(Debug, Deserialize)]
pub(super) struct ToolError {
    pub(super) error: ErrorMessage,
}

#[derive(Debug, Deserialize)]
pub(super) struct ErrorMessage {
    pub(super) message: String,
}

/// The same as a plain text.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorText {
    pub(super) error: String,
}

/// The text of such a call's output.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolOutput {
    /// Of an `mcpToolCall`.
    #[serde(default)]
    result: Option<ToolResult>,
    /// Of a `dynamicToolCall`.
    #[serde(default)]
    content_items: Option<OutputText>,
}

#[derive(Debug, Default, Deserialize)]
struct ToolResult {
    #[serde(default)]
    content: OutputText,
}

impl ToolOutput {
    pub(super) fn into_text(self) -> Option<String> {
        self.result.map(|result| result.content).or(self.content_items).map(|output| output.0)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileChanges {
    #[serde(default)]
    pub(super) changes: Vec<FileChange>,
    /// Only in `item/fileChange/patchUpdated`.
    #[serde(default)]
    pub(super) item_id: Option<String>,
}

/// A changed file. For one that is added or deleted, `diff` is its plain content; otherwise hunks without a header.
#[derive(Debug, Deserialize)]
pub(super) struct FileChange {
    #[serde(default)]
    pub(super) path: String,
    #[serde(default)]
    pub(super) kind: ChangeKind,
    #[serde(default)]
    pub(super) diff: String,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ChangeKind {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    /// Not in camel case, unlike the rest.
    #[serde(default)]
    pub(super) move_path: Option<String>,
}

/// The parameters of `turn/plan/updated`.
#[derive(Debug, Deserialize)]
pub(super) struct PlanMessage {
    #[serde(default)]
    pub(super) plan: Vec<PlanStep>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PlanStep {
    #[serde(default)]
    pub(super) step: String,
    #[serde(default)]
    pub(super) status: String,
}
