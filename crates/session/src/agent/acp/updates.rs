//! What an ACP agent says by itself: text, tool calls, plans, and what can be set.

use bowline_proto::agent::event::{AgentEvent, Delta, Level, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Acp;
use super::messages::{
    Chunk, InfoMeta, Plan, SessionTitle, Tool, ToolHead, ToolMeta, ToolOutput, Update, UpdateKind, WithMeta,
};
use super::settings::{AnnouncedOptions, AvailableCommands, CurrentMode};
use super::usage::UsageUpdate;
use crate::agent::details::{self, MAX_CONTENT, bounded, error_words, read};
use crate::agent::output::{Shown, shown_content};
use crate::agent::plain_text;
use crate::agent::rpc::Call;

/// The text that the agent is writing. Another kind of text, another message or a tool call begins the next one.
#[derive(Debug, Default)]
pub(super) struct Block {
    number: u64,
    current: Option<(Kind, Option<String>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl Block {
    pub(super) fn end(&mut self) {
        self.current = None;
    }
}

impl Acp {
    pub(super) fn handle_notification(&mut self, method: &str, line: &[u8]) {
        match method {
            "session/update" => {}
            "$/cancel_request" => return self.handle_withdrawal(line),
            // How the user is logged in. A login that is missing is reported as an error, too.
            "_auth/status_update" => return,
            _ => return self.news.raw(line),
        }
        let kind =
            read::<Call<Update<UpdateKind<'_>>>>(line).map(|call| call.params.update.session_update.into_owned());
        let is_history = |kind: &str| kind.ends_with("_chunk") || kind.starts_with("tool_call") || kind == "plan";
        match kind.as_deref() {
            Some(kind) if self.replays && is_history(kind) => self.has_replayed = self.quirks.replays_after_load,
            Some("agent_message_chunk") => self.handle_chunk(Kind::Text, line),
            Some("agent_thought_chunk") => self.handle_chunk(Kind::Thinking, line),
            // The prompt itself: the journal has it.
            Some("user_message_chunk") => {}
            Some(kind @ ("tool_call" | "tool_call_update")) => self.handle_tool(kind == "tool_call", line),
            // Lists of commands are long, but only their beginning is kept.
            Some("available_commands_update") => self.update(line, |acp, commands: AvailableCommands| {
                acp.settings.handle_commands(commands);
                acp.record_config(false);
            }),
            Some("usage_update") => self.update(line, |acp, usage: UsageUpdate| acp.usage.handle_update(usage)),
            Some("session_info_update") => self.handle_info(line),
            Some(_) if line.len() > MAX_CONTENT => self.news.raw(line),
            Some("plan") => self.update(line, |acp, plan: Plan| acp.record_plan(plan.entries)),
            Some("current_mode_update") => self.update(line, |acp, mode: CurrentMode| {
                acp.settings.handle_mode(mode);
                acp.record_config(false);
            }),
            Some("config_option_update") => self.update(line, |acp, announced: AnnouncedOptions| {
                acp.settings.handle_options(announced.config_options);
                acp.record_config(false);
            }),
            Some(_) | None => self.news.raw(line),
        }
    }

    /// Parses an update of this type; one that is of another becomes a `raw` event.
    fn update<'a, T: Deserialize<'a>>(&mut self, line: &'a [u8], handle: impl FnOnce(&mut Acp, T)) {
        match read::<Call<Update<T>>>(line) {
            Some(call) => handle(self, call.params.update),
            None => self.news.raw(line),
        }
    }

    fn handle_chunk(&mut self, kind: Kind, line: &[u8]) {
        let Some(Call { params: Update { update: Chunk { content, message_id } } }) = read::<Call<Update<Chunk>>>(line)
        else {
            return self.news.raw(line);
        };
        // An image or a link is not text.
        let Some(delta) = content.text else { return self.news.raw(line) };
        if self.quirks.warns_in_text && kind == Kind::Text && message_id.is_none() {
            return self.handle_program_text(&delta);
        }
        // Qwen sends empty ones.
        if delta.is_empty() {
            return;
        }
        let current = Some((kind, message_id));
        if self.block.current != current {
            self.block.number += 1;
            self.block.current = current;
        }
        // Late text has no run, and its block must differ from those of other processes of the agent.
        let [a, b, c, d, ..] = self.config.random;
        let late = || format!("late-{:08x}", u32::from_be_bytes([a, b, c, d]));
        let run = self.run.map_or_else(late, |run| run.to_string());
        let block = format!("{run}.{}", self.block.number);
        let delta = Delta { run: self.run, block, parent: None, delta };
        self.news.record(match kind {
            Kind::Text => AgentEvent::Text(delta),
            Kind::Thinking => AgentEvent::Thinking(delta),
        });
    }

    /// A text of the program, not of the model.
    fn handle_program_text(&mut self, text: &str) {
        let text = error_words(text.trim());
        if let Some(error) = self.system_error.as_mut() {
            error.clone_from(&text);
        }
        self.news.notice(Level::Warning, text);
    }

    fn handle_info(&mut self, line: &[u8]) {
        let meta = read::<Call<Update<WithMeta<InfoMeta>>>>(line).map(|call| call.params.update.meta);
        let status = meta.and_then(|meta| meta.codex).and_then(|codex| codex.thread_status);
        if status.is_some_and(|status| status.kind == "systemError") && self.quirks.warns_in_text {
            self.system_error = Some("the agent reported an error of its program".to_owned());
        }
        self.update(line, |acp, info: SessionTitle| {
            if let Some(title) = info.title {
                acp.news.record(AgentEvent::Title { title: plain_text(title.as_bytes(), 1 << 10) });
            }
        });
    }

    fn handle_tool(&mut self, is_call: bool, line: &[u8]) {
        let meta = read::<Call<Update<WithMeta<ToolMeta>>>>(line).map(|call| call.params.update.meta);
        let meta = meta.unwrap_or_default();
        let parent = meta.parent();
        if line.len() > MAX_CONTENT {
            let output = read::<Call<Update<ToolOutput>>>(line).map(|call| call.params.update.content);
            return self.update(line, |acp, tool: ToolHead| {
                let mut tool = tool.with_output(output.unwrap_or_default());
                acp.tools.handle_tool(&mut tool, meta);
                acp.record_tool(tool, parent, is_call);
            });
        }
        self.update(line, |acp, mut tool: Tool| {
            let is_todo = acp.quirks.todo_tool.is_some_and(|todo| tool.title.as_deref() == Some(todo));
            if let Some(todos) = tool.raw_input.as_ref().and_then(|input| input.get("todos")).filter(|_| is_todo) {
                acp.record_plan(todos.clone());
            }
            acp.tools.handle_tool(&mut tool, meta);
            // Some updates only have fields of the agent's own.
            if is_call || tool.says_something() {
                acp.record_tool(tool, parent, is_call);
            }
        });
    }

    /// Shows what was printed by tool calls whose end the agent did not report, as after an abort. No end follows, and
    /// what is kept for their blobs would take the room of other calls.
    pub(super) fn show_open_calls(&mut self) {
        for (call, Shown { content, was_cut: truncated, blob }) in self.tools.take_open_outputs() {
            let (run, content) = (self.run, Some(json!([content])));
            let call = ToolCall { run, call, content, truncated, ..ToolCall::default() };
            self.news.record_tool(AgentEvent::ToolUpdate(call), blob);
        }
    }

    fn record_plan(&mut self, entries: Value) {
        self.news.record(details::plan(self.run, entries));
    }

    pub(super) fn record_tool(&mut self, mut tool: Tool, parent: Option<String>, is_call: bool) {
        self.block.end();
        self.tools.complete_new(&mut tool, is_call);
        let Tool { tool_call_id, title, name, kind, status, raw_input, content, locations, mut truncated, output } =
            tool;
        let shown = output.or_else(|| content.map(shown_content));
        truncated |= shown.as_ref().is_some_and(|shown| shown.was_cut);
        let (content, blob) = shown.map_or((None, None), |shown| (Some(shown.content), shown.blob));
        let mut bound = |value: Option<Value>| {
            value.map(|value| {
                let (value, cut) = bounded(value);
                truncated |= cut;
                value
            })
        };
        let (input, locations) = (bound(raw_input), bound(locations));
        let line = |text: String| plain_text(text.as_bytes(), 4 << 10);
        let call = ToolCall {
            run: self.run,
            call: line(tool_call_id),
            parent: parent.map(line),
            name: name.map(line),
            kind: kind.map(line),
            title: title.map(line),
            status: status.map(line),
            input,
            content,
            locations,
            blob: None,
            truncated,
        };
        self.news.record_tool(if is_call { AgentEvent::ToolCall(call) } else { AgentEvent::ToolUpdate(call) }, blob);
    }
}
