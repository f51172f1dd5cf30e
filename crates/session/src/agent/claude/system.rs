//! `system` messages of Claude Code: the beginning of a turn, settings, tasks, and things that users should know.

use bowline_proto::agent::event::{AgentEvent, Level};

use super::Claude;
use super::messages::SystemLine;
use super::stream::Kind;
use super::tools;
use crate::agent::AdapterEvent;
use crate::agent::details::{MAX_SHORT, read, short};

/// The longest path in bytes of the directory that the agent works in; a longer one is ignored.
const MAX_PATH: usize = 4 << 10;

impl Claude {
    pub(super) fn handle_system(&mut self, subtype: &str, line: &[u8]) {
        match subtype {
            // They say nothing that other messages do not say.
            "thinking_tokens"
            | "task_progress"
            | "hook_started"
            | "hook_progress"
            | "hook_response"
            | "files_persisted"
            | "session_state_changed"
            | "elicitation_complete" => return,
            "init"
            | "status"
            | "session_title_changed"
            | "api_retry"
            | "permission_denied"
            | "compact_boundary"
            | "local_command_output"
            | "task_started"
            | "task_updated"
            | "task_notification"
            | "background_tasks_changed" => {}
            _ => return self.news.raw(line),
        }
        let system = match read::<SystemLine>(line) {
            Some(system) => system,
            None => {
                self.news.raw(line);
                // The turn begins, whatever else the line says.
                if subtype != "init" {
                    return;
                }
                SystemLine::default()
            }
        };
        match subtype {
            "init" => self.handle_init(system),
            "status" => self.handle_status(&system),
            "session_title_changed" => {
                let title = short(&system.title.unwrap_or_default());
                self.news.record(AgentEvent::Title { title });
            }
            "api_retry" => self.news.notice(Level::Warning, retry(&system)),
            "permission_denied" => {
                let tool = short(system.tool_name.as_deref().unwrap_or("a tool"));
                let why = system.message.map(|message| format!(": {}", short(&message))).unwrap_or_default();
                self.news.notice(Level::Warning, format!("the agent may not use {tool}{why}"));
            }
            "compact_boundary" => {
                // The size of the context is not known before the next message.
                self.stream.usage = None;
                self.news.notice(Level::Info, "the agent has summarized the conversation".to_owned());
            }
            "local_command_output" => {
                let text = system.content.unwrap_or_default();
                if let Some(text) = self.stream.whole("", Kind::Text, self.turns.run(), None, text) {
                    self.record_text(text);
                }
            }
            _ => {
                if let Some(end) = self.tasks.handle(subtype, system) {
                    let (update, blob) = tools::task_end(self.turns.run(), &end);
                    self.news.record_tool(AgentEvent::ToolUpdate(update), blob);
                }
            }
        }
    }

    /// The beginning of a turn. What it says is repeated in every turn.
    fn handle_init(&mut self, init: SystemLine) {
        if let Some(id) = init.session_id.filter(|id| *id != self.conversation && id.len() <= MAX_SHORT) {
            self.conversation.clone_from(&id);
            self.news.record(AgentEvent::Conversation { id });
        }
        if let Some(cwd) = init.cwd.filter(|cwd| !cwd.is_empty() && cwd.len() <= MAX_PATH) {
            self.cwd = cwd.into();
        }
        if let Some(mode) = &init.permission_mode {
            self.handle_mode(mode);
        }
        if let Some(model) = &init.model {
            self.known.handle_used_model(model);
        }
        self.known.handle_commands(init.slash_commands.0);
        if !self.controls.is_ready() {
            return;
        }
        self.record_config(false);
        if self.turns.handle_turn() {
            // The last news of this line: what follows belongs to the run that the session names.
            self.news.push(AdapterEvent::OwnTurn);
        }
    }

    fn handle_status(&mut self, status: &SystemLine) {
        if let Some(mode) = &status.permission_mode {
            self.handle_mode(mode);
            if self.controls.is_ready() {
                self.record_config(false);
            }
        }
        if status.status.as_deref() == Some("compacting") {
            self.news.notice(Level::Info, "the agent summarizes the conversation".to_owned());
        }
    }

    /// The agent is in this mode. It may have chosen it by itself, by its settings or a command.
    fn handle_mode(&mut self, mode: &str) {
        let is_new = self.known.mode() != Some(mode);
        self.known.handle_mode(mode);
        if is_new && !self.known.allows_mode(mode) {
            let text = format!("the agent is now in the mode {}, which is not allowed", short(mode));
            self.news.notice(Level::Warning, text);
        }
    }

    /// Records what can be set, if it has changed or `is_forced`.
    pub(super) fn record_config(&mut self, is_forced: bool) {
        if let Some(config) = self.known.take_config(is_forced) {
            self.news.record(AgentEvent::Config(config));
        }
    }
}

fn retry(line: &SystemLine) -> String {
    let status = line.error_status.map(|status| format!("{status} ")).unwrap_or_default();
    let error = short(line.error.as_deref().unwrap_or("unknown error"));
    let (attempt, most) = (line.attempt.unwrap_or(0), line.max_retries.unwrap_or(0));
    let seconds = line.retry_delay_ms.unwrap_or(0.0) / 1000.0;
    format!("the model did not answer ({status}{error}); retry {attempt} of {most} in {seconds:.1} s")
}
