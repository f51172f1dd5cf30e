//! What happens in a turn: texts and tool calls, each recorded once whether it was streamed, came whole, or both.

use std::collections::VecDeque;

use bowline_proto::agent::event::{AgentEvent, Delta, Level, ToolCall};
use serde_json::{Value, json};

use super::Codex;
use super::item_messages::{
    CommandItem, ErrorText, FileChanges, ItemHead, ItemMessage, PlanMessage, ReasoningItem, TextDelta, TextItem,
    ToolError, ToolNames, ToolOutput,
};
use super::tools::{self, Details};
use crate::agent::details::{self, MAX_CONTENT, read, short};
use crate::agent::output::{BlobText, Output, Shown, room};
use crate::agent::rpc::Call;

/// The items of a turn that are remembered. The oldest text is forgotten to make room: should it be completed later, it is
/// recorded again. If there are only tool calls, it is the oldest of them: then its approval cannot show a diff.
const MAX_ITEMS: usize = 64;
/// The threads of sub-agents that are remembered; of others, the thread's id stands for the tool call.
const MAX_CHILDREN: usize = 64;
/// The steps of a plan that are recorded; more are left out.
const MAX_STEPS: usize = 128;

/// The items of the current turn, and of the last one until another begins.
#[derive(Debug, Default)]
pub(super) struct Items {
    known: VecDeque<(String, Item)>,
    /// The thread of each sub-agent, and the tool call that started it.
    children: VecDeque<(String, String)>,
}

/// What is remembered of an item.
#[derive(Debug)]
enum Item {
    /// The bytes of its text that are recorded.
    Text(usize),
    Command(Output),
    /// The changes as a unified diff, and a title.
    Changes(String, String),
    Tool,
}

/// Which event a text becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Thinking,
}

impl Items {
    /// A turn begins.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// The diff and the title of a change that has not ended.
    pub(super) fn changes(&self, id: &str) -> Option<(&str, &str)> {
        self.known.iter().find_map(|(known, item)| match item {
            Item::Changes(diff, title) if known == id => Some((diff.as_str(), title.as_str())),
            _ => None,
        })
    }

    /// The call that runs, if there is only one besides commands and changes.
    pub(super) fn only_tool(&self) -> Option<&str> {
        let mut tools = self.known.iter().filter(|(_, item)| matches!(item, Item::Tool)).map(|(id, _)| id.as_str());
        tools.next().filter(|_| tools.next().is_none())
    }

    /// How many more bytes of output can be kept.
    fn output_room(&self) -> usize {
        room(
            self.known
                .iter()
                .filter_map(|(_, item)| if let Item::Command(output) = item { Some(output) } else { None }),
        )
    }

    /// Forgets the tool calls that have not ended, and returns them.
    fn take_open_calls(&mut self) -> VecDeque<(String, Item)> {
        let (texts, calls): (VecDeque<_>, VecDeque<_>) =
            self.known.drain(..).partition(|(_, item)| matches!(item, Item::Text(_)));
        self.known = texts;
        calls
    }

    fn get(&mut self, id: &str) -> Option<&mut Item> {
        self.known.iter_mut().find(|(known, _)| known == id).map(|(_, item)| item)
    }

    fn insert(&mut self, id: &str, item: Item) {
        if let Some(known) = self.get(id) {
            *known = item;
            return;
        }
        if self.known.len() >= MAX_ITEMS {
            let text = self.known.iter().position(|(_, item)| matches!(item, Item::Text(_)));
            self.known.remove(text.unwrap_or(0));
        }
        self.known.push_back((short(id), item));
    }

    fn remove(&mut self, id: &str) -> Option<Item> {
        let at = self.known.iter().position(|(known, _)| known == id)?;
        self.known.remove(at).map(|(_, item)| item)
    }

    /// The bytes of this text that are recorded.
    fn recorded(&mut self, id: &str) -> usize {
        if let Some(Item::Text(recorded)) = self.get(id) { *recorded } else { 0 }
    }

    fn add_recorded(&mut self, id: &str, bytes: usize) {
        match self.get(id) {
            Some(Item::Text(recorded)) => *recorded += bytes,
            _ => self.insert(id, Item::Text(bytes)),
        }
    }
}

impl Codex {
    /// A part of a text, in the block of its item.
    pub(super) fn handle_delta(&mut self, kind: TextKind, suffix: &str, line: &[u8]) {
        let Some(Call { params: TextDelta { item_id, delta, thread_id, .. } }) = read(line) else {
            return self.news.raw(line);
        };
        self.text(kind, &format!("{}{suffix}", short(&item_id)), delta, self.parent(thread_id.as_deref()));
        if !suffix.is_empty() {
            // What is not the summary counts, too: the whole text must not follow.
            self.items.add_recorded(&short(&item_id), 1);
        }
    }

    /// Another part of a summary begins. Its parts are paragraphs of one text.
    pub(super) fn handle_summary_part(&mut self, line: &[u8]) {
        match read::<Call<TextDelta>>(line) {
            Some(Call { params }) if params.summary_index > 0 => {
                let parent = self.parent(params.thread_id.as_deref());
                self.text(TextKind::Thinking, &short(&params.item_id), "\n\n".to_owned(), parent);
            }
            Some(_) => {}
            None => self.news.raw(line),
        }
    }

    fn text(&mut self, kind: TextKind, block: &str, delta: String, parent: Option<String>) {
        if delta.is_empty() {
            return;
        }
        self.items.add_recorded(block, delta.len());
        let delta = Delta { run: self.run(), block: block.to_owned(), parent, delta };
        self.news.record(match kind {
            TextKind::Text => AgentEvent::Text(delta),
            TextKind::Thinking => AgentEvent::Thinking(delta),
        });
    }

    /// A whole text. Only what was not streamed is recorded.
    fn whole_text(&mut self, kind: TextKind, id: &str, text: &str, parent: Option<String>) {
        let rest = text.get(self.items.recorded(id)..).unwrap_or_default().to_owned();
        self.text(kind, id, rest, parent);
    }

    /// An item was started or, if `is_end`, completed.
    pub(super) fn handle_item(&mut self, line: &[u8], is_end: bool) {
        let Some(Call { params: ItemMessage { item: head, thread_id } }) =
            read::<Call<ItemMessage<ItemHead<'_>>>>(line)
        else {
            return self.news.raw(line);
        };
        let parent = self.parent(thread_id.as_deref());
        let id = short(&head.id);
        match (&*head.kind, is_end) {
            // The prompt, and what was added to it: the journal has it.
            ("userMessage" | "hookPrompt", _) => {}
            ("agentMessage" | "plan" | "reasoning" | "contextCompaction" | "enteredReviewMode", false) => {}
            ("agentMessage" | "plan", true) => {
                let text = item::<TextItem>(line).map(|item| item.text).unwrap_or_default();
                self.whole_text(TextKind::Text, &id, &text, parent);
            }
            ("reasoning", true) => {
                let Some(item) = item::<ReasoningItem>(line).filter(|_| self.items.recorded(&id) == 0) else { return };
                let parts = if item.summary.is_empty() { item.content } else { item.summary };
                let parts: Vec<String> = parts.into_iter().collect();
                self.text(TextKind::Thinking, &id, parts.join("\n\n"), parent);
            }
            ("contextCompaction", true) => {
                self.news.notice(Level::Info, "Codex summarized the conversation so far".into());
            }
            ("enteredReviewMode" | "exitedReviewMode", _) => {}
            (kind, _) => {
                let (call, blob) = self.tool_call(kind, &id, &head, line, is_end);
                let status = tools::status(head.status.as_deref(), is_end);
                let call = ToolCall { run: self.run(), call: id, parent, status, ..call };
                let event = if is_end { AgentEvent::ToolUpdate(call) } else { AgentEvent::ToolCall(call) };
                self.news.record_tool(event, blob);
            }
        }
    }

    /// The fields of a tool call that its item says, and the blob of its output. Of a line that is too long, only texts are
    /// read.
    fn tool_call(
        &mut self,
        kind: &str,
        id: &str,
        head: &ItemHead<'_>,
        line: &[u8],
        is_end: bool,
    ) -> (ToolCall, Option<BlobText>) {
        let known = if is_end { self.items.remove(id) } else { None };
        match kind {
            "commandExecution" => {
                if !is_end {
                    self.items.insert(id, Item::Command(Output::default()));
                }
                let output = if let Some(Item::Command(output)) = known { Some(output) } else { None };
                let Some(item) = item::<CommandItem>(line) else { return (unread(kind), None) };
                tools::command(item, output, head.status.as_deref(), is_end)
            }
            "fileChange" if line.len() <= MAX_CONTENT => {
                let Some(FileChanges { changes, .. }) = item(line) else { return (unread(kind), None) };
                if !is_end {
                    let title = tools::changes_title(&changes, &self.config.cwd);
                    self.items.insert(id, Item::Changes(tools::unified(&changes), title));
                }
                (tools::file_changes(&changes, &self.config.cwd), None)
            }
            _ => {
                if !is_end {
                    self.items.insert(id, Item::Tool);
                }
                if line.len() > MAX_CONTENT {
                    return tools::other(kind, long_item(line), is_end);
                }
                let item = item::<Value>(line).unwrap_or_default();
                if kind == "collabAgentToolCall" {
                    self.adopt(id, &item);
                }
                tools::other(kind, Details::Whole(item), is_end)
            }
        }
    }

    /// Remembers the threads that a tool call started.
    fn adopt(&mut self, call: &str, item: &Value) {
        let threads = item["receiverThreadIds"].as_array().map(Vec::as_slice).unwrap_or_default();
        let children = &mut self.items.children;
        for thread in threads.iter().filter_map(Value::as_str).take(MAX_CHILDREN) {
            if children.iter().any(|(known, _)| known == thread) {
                continue;
            }
            if children.len() >= MAX_CHILDREN {
                children.pop_front();
            }
            children.push_back((short(thread), call.to_owned()));
        }
    }

    /// The tool call of the sub-agent that has this thread.
    pub(super) fn parent(&self, thread: Option<&str>) -> Option<String> {
        let thread = thread.filter(|thread| !self.is_own(Some(thread)))?;
        let call = self.items.children.iter().find(|(known, _)| known == thread).map(|(_, call)| call.clone());
        Some(call.unwrap_or_else(|| short(thread)))
    }

    /// A running command printed something.
    pub(super) fn handle_output(&mut self, line: &[u8]) {
        let Some(Call { params: TextDelta { item_id, delta, thread_id, .. } }) = read(line) else {
            return self.news.raw(line);
        };
        let id = short(&item_id);
        let room = self.items.output_room();
        let Some(Item::Command(output)) = self.items.get(&id) else { return };
        output.push(&delta, room);
        if let Some(Shown { content, was_cut: truncated, .. }) = output.take_due(false) {
            let (run, parent, content) = (self.run(), self.parent(thread_id.as_deref()), Some(json!([content])));
            let call = ToolCall { run, call: id, parent, content, truncated, ..ToolCall::default() };
            self.news.record(AgentEvent::ToolUpdate(call));
        }
    }

    /// The changes of an item became others.
    pub(super) fn handle_patch(&mut self, line: &[u8]) {
        let changes = if line.len() > MAX_CONTENT { None } else { read::<Call<FileChanges>>(line) };
        let Some(Call { params: FileChanges { changes, item_id: Some(id) } }) = changes else {
            return self.news.raw(line);
        };
        let id = short(&id);
        let title = tools::changes_title(&changes, &self.config.cwd);
        self.items.insert(&id, Item::Changes(tools::unified(&changes), title));
        let call = tools::file_changes(&changes, &self.config.cwd);
        self.news.record(AgentEvent::ToolUpdate(ToolCall { run: self.run(), call: id, ..call }));
    }

    pub(super) fn handle_plan(&mut self, line: &[u8]) {
        let plan = if line.len() > MAX_CONTENT { None } else { read::<Call<PlanMessage>>(line) };
        let Some(Call { params: PlanMessage { plan } }) = plan else { return self.news.raw(line) };
        let status = |status: &str| if status == "inProgress" { "in_progress".to_owned() } else { short(status) };
        let steps = plan.iter().take(MAX_STEPS);
        let entries = steps.map(|step| json!({"content": short(&step.step), "status": status(&step.status)}));
        let mut event = details::plan(self.run(), entries.collect());
        if let AgentEvent::Plan { truncated, .. } = &mut event {
            *truncated |= plan.len() > MAX_STEPS;
        }
        self.news.record(event);
    }

    /// Ends the tool calls of a turn that did not end normally: Codex does not complete them. What they printed, and what
    /// was not shown yet, is shown now.
    pub(super) fn fail_open_calls(&mut self) {
        for (call, item) in self.items.take_open_calls() {
            let due = if let Item::Command(mut output) = item { output.take_due(true) } else { None };
            let truncated = due.as_ref().is_some_and(|due| due.was_cut);
            let (content, blob) = due.map_or((None, None), |due| (Some(json!([due.content])), due.blob));
            let status = Some("failed".to_owned());
            let call = ToolCall { run: self.run(), call, status, content, truncated, ..ToolCall::default() };
            self.news.record_tool(AgentEvent::ToolUpdate(call), blob);
        }
    }
}

/// The item of `item/started` or `item/completed`.
fn item<T: serde::de::DeserializeOwned>(line: &[u8]) -> Option<T> {
    read::<Call<ItemMessage<T>>>(line).map(|call| call.params.item)
}

/// What can be read of an item that is too long to be parsed as a whole.
fn long_item(line: &[u8]) -> Details {
    let names = item::<ToolNames>(line).unwrap_or_default();
    let error =
        item::<ToolError>(line).map(|item| item.error.message).or_else(|| item(line).map(|ErrorText { error }| error));
    let output = item::<ToolOutput>(line).and_then(ToolOutput::into_text);
    let names = json!({"server": names.server, "tool": names.tool});
    Details::Texts { names, output: error.or(output).unwrap_or_default() }
}

/// A tool call whose item makes no sense.
fn unread(kind: &str) -> ToolCall {
    ToolCall { name: tools::line(kind), title: tools::line(kind), truncated: true, ..ToolCall::default() }
}
