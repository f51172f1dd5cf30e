//! What Codex says to people, and what is left out of that.

use bowline_proto::agent::event::{AgentEvent, Level};

use super::messages::{McpStatus, Remark, Rerouted, ThreadName};
use super::{Codex, MAX_WARNINGS};
use crate::agent::details::{read, short};
use crate::agent::rpc::Call;

impl Codex {
    /// A warning, unless it was recorded before: Codex repeats some with each turn.
    pub(super) fn warn(&mut self, line: &[u8]) {
        let Some(text) = remark(line) else { return self.news.raw(line) };
        if self.warnings.contains(&text) {
            return;
        }
        if self.warnings.len() >= MAX_WARNINGS {
            self.warnings.pop_front();
        }
        self.warnings.push_back(text.clone());
        self.news.notice(Level::Warning, text);
    }

    pub(super) fn remark(&mut self, level: Level, line: &[u8]) {
        match remark(line) {
            Some(text) => self.news.notice(level, text),
            None => self.news.raw(line),
        }
    }

    pub(super) fn handle_name(&mut self, line: &[u8]) {
        let Some(Call { params: ThreadName { thread_name, thread_id } }) = read(line) else {
            return self.news.raw(line);
        };
        if let Some(name) = thread_name.filter(|_| self.is_own(thread_id.as_deref())) {
            self.news.record(AgentEvent::Title { title: short(&name) });
        }
    }

    pub(super) fn handle_mcp_status(&mut self, line: &[u8]) {
        let Some(Call { params: McpStatus { name, status, error } }) = read(line) else { return self.news.raw(line) };
        if status == "failed" {
            let why = error.unwrap_or_default();
            self.news.notice(Level::Warning, short(&format!("the MCP server {name} did not start: {why}")));
        }
    }

    pub(super) fn handle_rerouted(&mut self, line: &[u8]) {
        let Some(Call { params: Rerouted { from_model, to_model } }) = read(line) else { return self.news.raw(line) };
        self.news.notice(Level::Warning, short(&format!("Codex uses {to_model} in place of {from_model}")));
    }
}

/// The text of a notification for people.
fn remark(line: &[u8]) -> Option<String> {
    let Call { params: Remark { message, details } } = read(line)?;
    let details = details.map(|details| format!(": {details}")).unwrap_or_default();
    Some(short(&format!("{}{details}", message?)))
}

/// Whether a notification says nothing that Bowline shows: other messages say the same, or it is about what Bowline does
/// not offer.
pub(super) fn is_meaningless(method: &str) -> bool {
    const KNOWN: &[&str] = &[
        "autoApprovalReview/strictReviewRequired",
        "item/commandExecution/terminalInteraction",
        "item/fileChange/outputDelta",
        "item/mcpToolCall/progress",
        "mcpServer/oauthLogin/completed",
        "model/verification",
        "modelProvider/authRecoveryCompleted",
        "project/changed",
        "rawResponse/completed",
        "rawResponseItem/completed",
        "skills/changed",
        "thread/archived",
        "thread/closed",
        "thread/compacted",
        "thread/deleted",
        "thread/reverted",
        "thread/settings/updated",
        "thread/started",
        "thread/status/changed",
        "thread/unarchived",
        "turn/diff/updated",
        "turn/moderationMetadata",
    ];
    const KNOWN_FAMILIES: &[&str] = &[
        "account/",
        "app/",
        "command/exec/",
        "externalAgentConfig/",
        "fs/",
        "fuzzyFileSearch/",
        "hook/",
        "item/autoApprovalReview/",
        "mcpServer/event/",
        "model/safetyBuffering/",
        "process/",
        "remoteControl/",
        "thread/attachment/",
        "thread/environment/",
        "thread/goal/",
        "thread/prediction/",
        "thread/project/",
        "thread/queue/",
        "thread/readState/",
        "thread/realtime/",
        "thread/section/",
        "windows",
    ];
    KNOWN.contains(&method) || KNOWN_FAMILIES.iter().any(|family| method.starts_with(family))
}
