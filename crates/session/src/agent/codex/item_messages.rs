//! The messages about the items of a turn, as far as Bowline reads them.

use std::borrow::Cow;

use serde::Deserialize;

use crate::agent::bounded_list::BoundedList;

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
