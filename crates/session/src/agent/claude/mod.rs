//! The adapter for Claude Code: its stream of JSON messages and its control requests.
//!
//! - [`messages`] and [`parsing`]: what it prints; [`stream`], [`tools`] and [`todos`]: what becomes of it;
//! - [`turns`]: which run it works at; [`outcome`]: how that ended; [`tasks`]: what runs in the background;
//! - [`content`]: what a prompt becomes;
//! - [`controls`]: requests to it and their answers; [`settings`]: what they change;
//! - [`requests`], [`permission`], [`question`] and [`suggestion`]: what it requests of the user.

#[cfg(test)]
mod captured;
mod content;
mod controls;
mod ids;
mod messages;
mod outcome;
mod parsing;
mod permission;
mod question;
mod requests;
mod settings;
mod stream;
mod suggestion;
mod system;
mod tasks;
#[cfg(test)]
mod tests;
mod todos;
mod tools;
mod turns;

use std::collections::BTreeMap;
use std::path::PathBuf;

use bowline_proto::agent::approval::{Answer, RequestKey};
use bowline_proto::agent::config::Settings;
use bowline_proto::agent::event::{AgentEvent, Level, RunError, RunId};
use bowline_proto::agent::run::{End, Prompt};
use serde_json::{Value, json};

use self::content::{Block, UserMessage, prompt_content};
use self::controls::Controls;
use self::ids::Ids;
use self::messages::{
    AssistantBlock, AssistantLine, BareResult, CreatedLine, Envelope, LifecycleLine, RateLimitLine, ResultLine,
    ResultUsage, StreamLine, UserBlock, UserLine,
};
use self::parsing::Unread;
use self::permission::OpenRequest;
use self::settings::Known;
use self::stream::{Kind, Stream};
use self::tasks::Tasks;
use self::todos::{TodoChange, Todos};
use self::tools::OpenCalls;
use self::turns::{SilentEnd, TurnEnd, Turns};
use super::details::{self, MAX_CONTENT, read};
use super::{Adapter, AdapterConfig, AdapterEvent, Attachment, News};

/// The adapter of one program.
#[derive(Debug)]
pub(super) struct Claude {
    config: AdapterConfig,
    ids: Ids,
    /// The directory that the agent works in.
    cwd: PathBuf,
    /// The agent's name for the conversation.
    conversation: String,
    controls: Controls,
    known: Known,
    turns: Turns,
    tasks: Tasks,
    stream: Stream,
    calls: OpenCalls,
    todos: Todos,
    /// Requests of the agent that wait for an answer of the user. The session denies those that are too many.
    open: BTreeMap<RequestKey, OpenRequest>,
    next_request: u64,
    /// When the usage limit that was reached last ends, in seconds after 1970.
    resets_at: Option<u64>,
    /// The cost that the agent reported last. It counts from the start of the conversation.
    last_cost: f64,
    news: News,
}

/// Whether the program may be switched to the mode that skips approvals. As root, it would not even start with the
/// argument for that.
fn can_bypass(config: &AdapterConfig) -> bool {
    config.mode_policy.allow_bypass && !config.runs_as_root
}

/// The arguments that make the program speak this protocol.
pub(super) fn arguments(config: &AdapterConfig) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
        "--include-partial-messages",
        "--permission-prompt-tool",
        "stdio",
    ]
    .map(ToOwned::to_owned)
    .into();
    if can_bypass(config) {
        // Without it, the program refuses to switch to that mode.
        arguments.push("--allow-dangerously-skip-permissions".to_owned());
    }
    match &config.conversation {
        // In one argument, because it would be taken for an option.
        Some(id) if id.starts_with('-') => arguments.push(format!("--resume={id}")),
        Some(id) => arguments.extend(["--resume".to_owned(), id.clone()]),
        None => arguments.extend(["--session-id".to_owned(), ids::conversation(config.random)]),
    }
    arguments
}

impl Adapter for Claude {
    fn handle_line(&mut self, line: &[u8]) {
        let Some(envelope) = read::<Envelope<'_>>(line) else { return self.news.noise(line) };
        match envelope.kind.as_deref() {
            Some("stream_event") => self.handle_stream(line),
            Some("assistant") => self.handle_assistant(line),
            Some("user") => self.handle_user(line),
            Some("system") => self.handle_system(envelope.subtype.as_deref().unwrap_or_default(), line),
            Some("result") => self.handle_result(line),
            Some("control_request") => self.handle_request(line),
            Some("control_response") => self.handle_response(line),
            Some("control_cancel_request") => self.handle_withdrawal(line),
            Some("command_lifecycle") => self.handle_lifecycle(line),
            Some("rate_limit_event") => self.handle_rate_limit(line),
            // They say nothing that other messages do not say.
            Some("keep_alive" | "tool_progress" | "tool_use_summary" | "auth_status" | "prompt_suggestion") => {}
            Some(_) | None => self.news.raw(line),
        }
    }

    fn prompt(&mut self, run: RunId, prompt: &Prompt, attachments: &[Attachment]) {
        let message = self.write_message(&prompt_content(prompt, attachments));
        self.turns.prompt(run, message);
    }

    fn handle_own_turn(&mut self, run: RunId) {
        self.turns.handle_own_turn(run);
    }

    fn cancel(&mut self) {
        // Otherwise a message that waits would begin the next turn.
        self.controls.write(&mut self.news, &json!({"subtype": "interrupt", "cancel_queued": true}));
        for task in self.tasks.running() {
            self.controls.write(&mut self.news, &json!({"subtype": "stop_task", "task_id": task}));
        }
    }

    fn answer(&mut self, request: RequestKey, answer: &Answer) {
        let Some(open) = self.open.remove(&request) else { return };
        let (response, is_allowed) = open.response(answer);
        if let Some(call) = open.call.as_deref().filter(|_| is_allowed) {
            let update = tools::allowed(self.turns.run(), open.parent.as_deref(), call);
            self.news.record(AgentEvent::ToolUpdate(update));
        }
        self.respond(&open.id, &response);
    }

    fn can_steer(&self) -> bool {
        self.turns.can_steer()
    }

    fn steer(&mut self, text: &str) {
        let message = self.write_message(&[Block::Text { text }]);
        self.turns.steer(message);
    }

    fn set(&mut self, settings: &Settings) {
        if self.controls.is_initializing() {
            return self.set_later(settings);
        }
        let is_refused = self.controls.set(&mut self.news, &self.known, settings);
        if is_refused && self.controls.is_ready() {
            // A client that shows the new value is told what is really set.
            self.record_config(true);
        }
    }

    fn awaits_after_run(&self, request: RequestKey) -> bool {
        // Only sub-agents outlive a turn.
        self.open.get(&request).is_some_and(|open| open.is_of_sub_agent)
    }

    fn news(&mut self) -> &mut News {
        &mut self.news
    }
}

impl Claude {
    pub(super) fn new(config: AdapterConfig) -> Claude {
        let conversation = config.conversation.clone().unwrap_or_else(|| ids::conversation(config.random));
        let mut claude = Claude {
            ids: Ids::new(config.random),
            cwd: config.cwd.clone(),
            conversation: conversation.clone(),
            controls: Controls::default(),
            known: Known::new(config.mode_policy.clone(), can_bypass(&config)),
            turns: Turns::default(),
            tasks: Tasks::default(),
            stream: Stream::new(config.random),
            calls: OpenCalls::default(),
            todos: Todos::default(),
            open: BTreeMap::new(),
            next_request: 0,
            resets_at: None,
            last_cost: 0.0,
            news: News::new("claude"),
            config,
        };
        claude.news.record(AgentEvent::Conversation { id: conversation });
        claude.controls.initialize(&mut claude.news);
        claude
    }

    // ---- what the agent says ----

    fn handle_stream(&mut self, line: &[u8]) {
        let Some(StreamLine { event, parent_tool_use_id }) = read(line) else { return self.news.raw(line) };
        // A sub-agent's text comes as a whole, too.
        if parent_tool_use_id.is_none()
            && let Some(text) = self.stream.handle(self.turns.run(), event)
        {
            self.record_text(text);
        }
    }

    fn handle_assistant(&mut self, line: &[u8]) {
        if line.len() > MAX_CONTENT {
            match read::<AssistantLine<Unread>>(line) {
                Some(message) => self.assistant(message, |Unread| None),
                None => self.news.raw(line),
            }
            return;
        }
        match read::<AssistantLine<Value>>(line) {
            Some(message) => self.assistant(message, Some),
            None => self.news.raw(line),
        }
    }

    fn assistant<I>(&mut self, line: AssistantLine<I>, input: impl Fn(I) -> Option<Value>) {
        let AssistantLine { message, parent_tool_use_id, error } = line;
        let parent = parent_tool_use_id.as_deref();
        if let Some(error) = error.filter(|_| parent.is_none()) {
            self.turns.error = Some(details::short(&error));
        }
        let run = self.turns.run();
        for block in message.content.0 {
            let AssistantBlock { kind, text, thinking, id, name, input: block_input } = block;
            let text = match (kind.as_str(), text, thinking) {
                ("text", Some(text), _) => self.stream.whole(&message.id, Kind::Text, run, parent, text),
                ("thinking", _, Some(text)) => self.stream.whole(&message.id, Kind::Thinking, run, parent, text),
                _ => None,
            };
            if let Some(text) = text {
                self.record_text(text);
            }
            if let (true, Some(id)) = (kind.ends_with("tool_use"), id) {
                self.tool_call(parent, &id, &name.unwrap_or_default(), input(block_input));
            }
        }
    }

    fn tool_call(&mut self, parent: Option<&str>, id: &str, name: &str, input: Option<Value>) {
        // Sub-agents have lists of their own.
        let todo = input.as_ref().filter(|_| parent.is_none()).and_then(|input| TodoChange::of(name, input));
        let (call, has_diff) = tools::call(self.turns.run(), parent, id, name, input);
        self.calls.add(id, has_diff, todo);
        self.news.record(AgentEvent::ToolCall(call));
    }

    fn handle_user(&mut self, line: &[u8]) {
        let Some(UserLine { message, parent_tool_use_id }) = read(line) else { return self.news.raw(line) };
        for block in message.content.0 {
            let UserBlock { kind, tool_use_id, content, is_error } = block;
            // The texts are prompts, of the user or for a sub-agent, which the journal has already.
            let (true, Some(id)) = (kind.ends_with("tool_result"), tool_use_id) else { continue };
            let is_error = is_error.unwrap_or(false);
            let call = self.calls.remove(&id);
            let keeps_diff = call.as_ref().is_some_and(|call| call.has_diff);
            let (run, parent) = (self.turns.run(), parent_tool_use_id.as_deref());
            let (update, blob) = tools::result(run, parent, &id, is_error, &content.0, keeps_diff);
            self.news.record_tool(AgentEvent::ToolUpdate(update), blob);
            if let Some(todo) = call.and_then(|call| call.todo).filter(|_| !is_error) {
                let created = read::<CreatedLine>(line).map(|line| line.tool_use_result.task.id);
                self.todos.apply(todo, created);
                self.news.record(details::plan(run, self.todos.entries()));
            }
        }
    }

    fn record_text(&mut self, text: AgentEvent) {
        self.turns.has_text |= matches!(&text, AgentEvent::Text(delta) if delta.parent.is_none());
        self.news.record(text);
    }

    // ---- turns ----

    fn handle_result(&mut self, line: &[u8]) {
        let result = match read::<ResultLine>(line) {
            Some(result) => result,
            None => {
                self.news.raw(line);
                let Some(bare) = read::<BareResult>(line) else { return };
                bare.into()
            }
        };
        if !self.controls.is_ready() {
            return self.handle_failed_start(&result);
        }
        let said = result.result.as_deref().filter(|text| !text.trim().is_empty() && !result.is_error);
        let (has_text, error) = (self.turns.has_text, self.turns.error.clone());
        let ended = self.turns.handle_result(&result);
        let run = if let TurnEnd::Run { run, .. } = &ended { Some(*run) } else { None };
        // A command of the agent may answer with nothing else.
        if let (Some(_), Some(said), false) = (run, said, has_text)
            && let Some(text) = self.stream.whole("", Kind::Text, run, None, said.to_owned())
        {
            self.news.record(text);
        }
        self.record_usage(run, line);
        match ended {
            TurnEnd::Run { run, goes_on, is_cancelled } => {
                // The turn that they belong to is over: an abort must not end the next one.
                self.open.values_mut().for_each(OpenRequest::handle_turn_end);
                let end = match is_cancelled {
                    true => End { error: Some(message_cancelled()), ..End::default() },
                    false => outcome::end(&result, error.as_deref(), self.resets_at),
                };
                self.news.push(AdapterEvent::Ended { run, end: End { goes_on, ..end } });
            }
            TurnEnd::NoRun => {
                let text = "the agent reported the end of a turn that is no run".to_owned();
                self.news.notice(Level::Debug, text);
            }
        }
    }

    /// A `result` before the answer to `initialize`: the program is about to exit.
    fn handle_failed_start(&mut self, result: &ResultLine) {
        let is_unknown = |text: &String| text.contains("No conversation found");
        if self.config.conversation.is_some() && result.errors.0.iter().any(is_unknown) {
            return self.news.push(AdapterEvent::UnknownConversation);
        }
        self.news.unusable("agent_failed", outcome::failure(result));
    }

    fn record_usage(&mut self, run: Option<RunId>, line: &[u8]) {
        let Some(usage) = Some(line).filter(|line| line.len() <= MAX_CONTENT).and_then(read::<ResultUsage>) else {
            return;
        };
        if let Some(usage) = outcome::usage(run, &usage, &self.stream, &mut self.last_cost) {
            self.news.record(AgentEvent::Usage(usage));
        }
    }

    fn handle_lifecycle(&mut self, line: &[u8]) {
        let Some(lifecycle) = read::<LifecycleLine>(line) else { return self.news.raw(line) };
        let (run, end) = match self.turns.handle_lifecycle(&lifecycle) {
            // Without a reason to stop, which would stand for a conversation that the agent knows.
            Some(SilentEnd::Prompt(run)) => (run, End { error: Some(message_cancelled()), ..End::default() }),
            Some(SilentEnd::Unanswered(run)) => (run, End { error: Some(unanswered()), ..End::default() }),
            Some(SilentEnd::Own(run)) => (run, End { stop_reason: Some("cancelled".to_owned()), ..End::default() }),
            None => return,
        };
        self.news.push(AdapterEvent::Ended { run, end });
    }

    fn handle_rate_limit(&mut self, line: &[u8]) {
        let Some(RateLimitLine { rate_limit_info }) = read(line) else { return self.news.raw(line) };
        self.resets_at = rate_limit_info.resets_at.filter(|_| rate_limit_info.status == "rejected");
    }

    // ---- out ----

    /// Writes a message of the user, and returns its id.
    fn write_message(&mut self, content: &[Block<'_>]) -> String {
        let id = self.ids.next();
        self.news.write(&UserMessage::new(&id, content));
        id
    }
}

fn unanswered() -> RunError {
    RunError::new("agent_error", "the agent did not say how the run ended")
}

fn message_cancelled() -> RunError {
    RunError::new("cancelled", "the agent cancelled the message")
}
