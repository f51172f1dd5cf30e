//! Tool calls of ACP agents: what is kept of them while they run, because later messages refer to it.

use std::collections::{BTreeMap, VecDeque};

use super::messages::{Tool, ToolMeta};
use super::permission::content_diff;
use crate::agent::details::{MAX_SHORT, cut_diff};
use crate::agent::output::{Output, Shown, room};

/// Tool calls of which something is kept; of older ones it is dropped.
const MAX_CALLS: usize = 64;
/// Tool calls that are known; of an older one, missing fields would be filled in again.
const MAX_KNOWN: usize = 256;

/// What is kept of the tool calls of one agent.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: BTreeMap<String, Kept>,
    /// Their ids, oldest first.
    order: VecDeque<String>,
    /// The ids of the latest calls, oldest first.
    known: VecDeque<String>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The changes of files that the agent announced, as a diff.
    changes: Option<String>,
    output: Output,
}

impl ToolCalls {
    /// Completes a message about a tool call: with the output that the agent sends in pieces and beside the content.
    pub(super) fn handle_tool(&mut self, tool: &mut Tool, meta: ToolMeta) {
        if tool.tool_call_id.len() > MAX_SHORT {
            return; // nothing with such an id is kept
        }
        if let Some(diff) = content_diff(tool.content.as_ref()) {
            self.call(&tool.tool_call_id).changes = Some(cut_diff(diff));
        }
        if let Some(delta) = meta.terminal_output_delta {
            let room = room(self.calls.values().map(|kept| &kept.output));
            self.call(&tool.tool_call_id).output.push(&delta.data, room);
        }
        let has_ended = meta.terminal_exit.is_some() || matches!(tool.status.as_deref(), Some("completed" | "failed"));
        let kept = self.calls.get_mut(&tool.tool_call_id);
        if let Some(shown) = kept.and_then(|kept| kept.output.take_due(has_ended)) {
            tool.output = Some(shown.into_content());
        }
    }

    /// Fills in what every new call has, whatever the agent leaves out: most have no names for their tools. A call that is
    /// known, also from an update, keeps the fields that it has.
    pub(super) fn complete_new(&mut self, tool: &mut Tool, is_call: bool) {
        let is_known = self.known.contains(&tool.tool_call_id);
        if !is_known && tool.tool_call_id.len() <= MAX_SHORT {
            self.known.push_back(tool.tool_call_id.clone());
            self.known.drain(..self.known.len().saturating_sub(MAX_KNOWN));
        }
        if is_known || !is_call {
            return;
        }
        let kind = tool.kind.get_or_insert_with(|| "other".to_owned());
        let name = tool.name.get_or_insert_with(|| kind.clone());
        tool.title.get_or_insert_with(|| name.clone());
        tool.status.get_or_insert_with(|| "pending".to_owned());
    }

    /// Takes what the calls that have not ended printed, and what was not shown yet. Nothing more of it is kept.
    pub(super) fn take_open_outputs(&mut self) -> Vec<(String, Shown)> {
        let due = |(id, kept): (&String, &mut Kept)| kept.output.take_due(true).map(|shown| (id.clone(), shown));
        self.calls.iter_mut().filter_map(due).collect()
    }

    /// The changes of files that a permission request is about, which some agents only send with the tool call.
    pub(super) fn changes(&self, call: &str) -> Option<&str> {
        self.calls.get(call).and_then(|kept| kept.changes.as_deref())
    }

    fn call(&mut self, id: &str) -> &mut Kept {
        if !self.calls.contains_key(id) {
            self.order.push_back(id.to_owned());
            if self.order.len() > MAX_CALLS
                && let Some(oldest) = self.order.pop_front()
            {
                self.calls.remove(&oldest);
            }
        }
        self.calls.entry(id.to_owned()).or_default()
    }
}
