//! The lines of a conversation: records in, final lines and pending lines out.
//!
//! A line that was polled never changes. What still can is pending: the open block of a text, tool calls that run, the
//! plan, and prompts that wait for their run.

use std::collections::VecDeque;
use std::mem;
use std::time::SystemTime;

use bowline_proto::agent::approval::ApprovalId;
use bowline_proto::agent::config::Settings;
use bowline_proto::agent::event::{AgentEvent, Cause, CommandSource, Complete, Delta, Level, RunId, ToolCall};
use bowline_proto::agent::usage::Used;
use bowline_proto::journal::Record;
use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;

use super::blocks::Blocks;
use super::output::{Group, Output};
use super::plan;
use super::prompt::Prompt;
use super::text::{Indent, Paint, Style, Text};
use super::thinking::Thinking;
use super::tools::Tools;
use super::wording::{self, Request, client_name, duration_text, elapsed, parse_time, short};

/// Lines about other things that wait for the end of an open block. When there are more, the block ends.
const MAX_DEFERRED: usize = 64;
/// Prompts that wait for their runs. When there are more, the oldest one is shown at once.
const MAX_PROMPTS: usize = 32;
/// Open approvals and runs that are remembered; the oldest ones are forgotten.
const MAX_REMEMBERED: usize = 128;

/// The lines of a conversation.
#[derive(Default)]
pub struct Transcript {
    style: Style,
    /// The final lines.
    output: Output,
    text: Option<OpenText>,
    /// Lines that came while a block was open.
    deferred: Vec<(Group, Vec<String>)>,
    thinking: Option<Thinking>,
    tools: Tools,
    /// The plan of the current run, if it is not final yet.
    plan: Option<Value>,
    /// The plan that was final last.
    shown_plan: Option<Value>,
    prompts: VecDeque<(RunId, Prompt)>,
    /// The run that the agent works on.
    current: Option<RunId>,
    runs: VecDeque<(RunId, Run)>,
    approvals: VecDeque<(ApprovalId, Request)>,
    /// The time of the last record.
    at: Option<OffsetDateTime>,
}

/// A text that the agent writes.
struct OpenText {
    run: Option<RunId>,
    block: String,
    blocks: Blocks,
    /// Something of it is final.
    is_shown: bool,
    /// How many blocks are final before the deferred lines.
    deferred_after: usize,
}

#[derive(Default)]
struct Run {
    began: Option<OffsetDateTime>,
    used: Used,
    stopped_by: Option<CommandSource>,
}

impl Transcript {
    pub fn new(style: Style) -> Transcript {
        Transcript { style, ..Transcript::default() }
    }

    /// Changes how lines look from now on: those that are final stay as they are.
    pub fn set_style(&mut self, style: Style) {
        self.style = style;
    }

    /// Takes the next record of the journal. What is not understood is ignored.
    pub fn handle_record(&mut self, record: &Record<Value>) {
        let before = self.at;
        self.at = parse_time(&record.at).or(before);
        if let Ok(event) = AgentEvent::deserialize(&record.event) {
            self.handle_event(event, record.first(), before);
        }
    }

    /// The next final line, without a newline.
    pub fn poll_line(&mut self) -> Option<String> {
        self.output.lines.pop_front()
    }

    /// The last `rows` lines of what is not final yet. `now` is for how long tools have been running.
    pub fn pending(&self, now: SystemTime, rows: usize) -> Vec<String> {
        let mut pending = self.output.following();
        if let Some(text) = &self.text {
            let mut blocks = text.blocks.clone();
            blocks.finish();
            let mut is_shown = text.is_shown;
            while let Some(block) = blocks.poll() {
                pending.write_block(&block, mem::replace(&mut is_shown, true), self.style);
            }
        }
        for (group, lines) in &self.deferred {
            pending.write(*group, lines.clone());
        }
        if let Some(thinking) = &self.thinking {
            pending.write(Group::Line, vec![thinking.line(self.style)]);
        }
        pending.write(Group::Line, self.tools.pending(Some(now.into()), self.style));
        if let Some(plan) = &self.plan {
            pending.write(Group::Plan, plan::lines(plan, self.style));
        }
        for (_, prompt) in &self.prompts {
            pending.write(Group::Prompt, vec![prompt.waiting_line(self.style)]);
        }
        let skipped = pending.lines.len().saturating_sub(rows);
        pending.lines.into_iter().skip(skipped).collect()
    }

    /// Makes everything final that is pending: the viewer leaves, or the journal ends here.
    pub fn finish(&mut self) {
        self.end_words();
        let lines = self.tools.finish(self.style);
        self.output.write(Group::Line, lines);
        let waiting = self.approvals.iter().map(|(id, request)| self.one_line(&request.waiting(id)));
        let waiting: Vec<String> = waiting.collect();
        self.output.write(Group::Line, waiting);
        self.write_plan();
        while let Some((_, prompt)) = self.prompts.pop_front() {
            self.output.write(Group::Prompt, vec![prompt.waiting_line(self.style)]);
        }
    }

    fn handle_event(&mut self, event: AgentEvent, seq: u64, before: Option<OffsetDateTime>) {
        match event {
            AgentEvent::Prompt { run, source, text, attachments } => {
                let prompt = Prompt { text, by: source.by, attachments: attachments.len() };
                self.handle_prompt(run, prompt);
            }
            AgentEvent::RunStarted { run, cause } => self.handle_run_started(run, cause),
            AgentEvent::Text(delta) if delta.parent.is_none() => self.handle_text(delta),
            AgentEvent::Thinking(delta) if delta.parent.is_none() => self.handle_thinking(&delta, before),
            AgentEvent::ToolCall(call) | AgentEvent::ToolUpdate(call) => self.handle_tool(&call),
            AgentEvent::Plan { entries, .. } => self.plan = Some(entries),
            AgentEvent::ApprovalRequested { approval } => {
                // What the agent wrote before stands above what it asks.
                self.end_words();
                remember(&mut self.approvals, approval.id, Request::new(&approval));
            }
            AgentEvent::ApprovalResolved { approval, outcome, option, reason, source } => {
                let request = forget(&mut self.approvals, approval);
                let (option, reason) = (option.as_deref(), reason.as_deref());
                let line = wording::resolved(request.as_ref(), outcome, option, reason, source.as_ref());
                self.emit(Group::Line, vec![self.one_line(&line)]);
            }
            AgentEvent::AbortRequested { run, source, .. } => self.run(run).stopped_by = Some(source),
            AgentEvent::Steered { source, text, .. } => {
                let prompt = Prompt { text, by: source.by, attachments: 0 };
                self.emit(Group::Prompt, prompt.lines(self.style));
            }
            AgentEvent::Set { settings, source } => self.handle_set(&settings, &source),
            AgentEvent::Usage(usage) => {
                if let Some(run) = usage.run {
                    self.run(run).used.add(&usage.used);
                }
            }
            AgentEvent::Notice { level, text } => self.handle_notice(level, &text),
            AgentEvent::Complete(complete) => self.handle_complete(&complete),
            AgentEvent::Started { .. } if seq > 0 => {
                self.abandon();
                self.note("", "the session was restarted", Paint::DIM);
            }
            AgentEvent::Repaired { .. } => {
                self.abandon();
                self.note("! ", "the end of the history was damaged: the last events may be missing", Paint::YELLOW);
            }
            AgentEvent::Degraded { error } => {
                self.note("! ", &format!("the history could not be written for a while: {error}"), Paint::YELLOW);
            }
            AgentEvent::Exit { .. } => {
                self.abandon();
                self.note("", "the session was ended", Paint::DIM);
            }
            AgentEvent::Started { .. }
            | AgentEvent::Text(_)
            | AgentEvent::Thinking(_)
            | AgentEvent::Config(_)
            | AgentEvent::Conversation { .. }
            | AgentEvent::Title { .. }
            | AgentEvent::Raw { .. }
            | AgentEvent::Unknown => {}
        }
    }

    /// A prompt is shown where its run begins, so that it does not interrupt the run before.
    fn handle_prompt(&mut self, run: RunId, prompt: Prompt) {
        self.run(run);
        self.prompts.push_back((run, prompt));
        if self.current.is_none() {
            self.end_words();
            self.current = Some(run);
            self.write_prompt(run);
        } else if self.prompts.len() > MAX_PROMPTS
            && let Some(first) = self.prompts.front().map(|(run, _)| *run)
        {
            self.write_prompt(first);
        }
    }

    fn handle_run_started(&mut self, run: RunId, cause: Cause) {
        self.end_words();
        self.write_prompt(run);
        self.current = Some(run);
        self.run(run).began = self.at;
        if cause == Cause::Agent {
            self.note("", "the agent continues by itself", Paint::DIM);
        }
    }

    fn handle_text(&mut self, delta: Delta) {
        self.end_thinking();
        let Delta { run, block, delta, .. } = delta;
        self.current = self.current.or(run);
        if self.text.as_ref().is_some_and(|text| text.run != run || text.block != block) {
            self.end_text();
        }
        let text = self.text.get_or_insert_with(|| OpenText {
            run,
            block,
            blocks: Blocks::default(),
            is_shown: false,
            deferred_after: 0,
        });
        text.blocks.push(&delta);
        self.write_blocks();
    }

    fn handle_thinking(&mut self, delta: &Delta, before: Option<OffsetDateTime>) {
        self.end_text();
        let thinking = self.thinking.get_or_insert_with(|| Thinking {
            tail: String::new(),
            // The agent was silent since the record before.
            began: before,
            ended: None,
        });
        thinking.ended = self.at;
        thinking.push(&delta.delta);
    }

    fn handle_tool(&mut self, call: &ToolCall) {
        self.current = self.current.or(call.run);
        if call.parent.is_none() && self.tools.is_new(call) {
            self.end_words();
        }
        let lines = self.tools.handle(call, self.at, self.style);
        self.emit(Group::Line, lines);
    }

    fn handle_set(&mut self, settings: &Settings, source: &CommandSource) {
        let option = settings.option.as_ref().map(|option| (option.id.as_str(), &option.value));
        let mode = settings.mode.as_ref().map(|mode| ("mode", mode));
        let model = settings.model.as_ref().map(|model| ("model", model));
        let set = [mode, model, option].into_iter().flatten();
        let set: Vec<String> = set.map(|(name, value)| format!("{} {}", short(name), short(value))).collect();
        let by = client_name(&source.by).map_or_else(String::new, |name| format!(" (by {})", short(name)));
        self.note("", &format!("set {}{by}", set.join(", ")), Paint::DIM);
    }

    fn handle_notice(&mut self, level: Level, text: &str) {
        match level {
            Level::Debug => {}
            Level::Info | Level::Unknown => self.note("", text, Paint::DIM),
            Level::Warning => self.note("! ", text, Paint::YELLOW),
            Level::Error => self.note("! ", text, Paint::RED),
        }
    }

    fn handle_complete(&mut self, complete: &Complete) {
        // A run that ends while it waits does not interrupt the one that the agent works on.
        if self.current.is_none_or(|current| current == complete.run) {
            self.current = None;
            self.end_words();
            let lines = self.tools.end_run(complete.run, self.style);
            self.output.write(Group::Line, lines);
            self.write_plan();
        }
        self.write_prompt(complete.run);
        let run = forget(&mut self.runs, complete.run).unwrap_or_default();
        let cost = wording::cost(elapsed(run.began, self.at), &run.used);
        if !complete.success {
            let line = wording::failure(complete, run.stopped_by.as_ref(), cost.as_deref());
            let lines = line.wrap(&Indent { rest: Text::new("  ", Paint::PLAIN), ..Indent::default() }, self.style);
            self.emit(Group::Line, lines);
        } else if let Some(cost) = cost {
            self.note("", &cost, Paint::DIM);
        }
    }

    /// The agent is gone, so nothing that is open can go on.
    fn abandon(&mut self) {
        self.current = None;
        self.end_words();
        let lines = self.tools.abandon(self.style);
        self.output.write(Group::Line, lines);
    }

    /// Ends the text or the thinking that is open.
    fn end_words(&mut self) {
        self.end_thinking();
        self.end_text();
    }

    fn end_thinking(&mut self) {
        let Some(thinking) = self.thinking.take() else { return };
        let time = elapsed(thinking.began, thinking.ended).filter(|time| time.as_secs() > 0);
        if let Some(time) = time {
            self.note("", &format!("thought for {}", duration_text(time)), Paint::DIM);
        }
    }

    fn end_text(&mut self) {
        if let Some(text) = &mut self.text {
            text.blocks.finish();
            self.write_blocks();
            self.text = None;
        }
    }

    /// Writes the blocks that are final, and what was deferred where a block ends.
    fn write_blocks(&mut self) {
        while let Some(text) = &mut self.text
            && let Some(block) = text.blocks.poll()
        {
            let is_shown = mem::replace(&mut text.is_shown, true);
            if block.is_start() {
                match text.deferred_after {
                    0 => self.write_deferred(),
                    _ => text.deferred_after -= 1,
                }
            }
            self.output.write_block(&block, is_shown, self.style);
        }
        if self.text.as_ref().is_none_or(|text| text.blocks.is_empty()) {
            self.write_deferred();
        }
    }

    fn write_deferred(&mut self) {
        for (group, lines) in mem::take(&mut self.deferred) {
            self.output.write(group, lines);
        }
    }

    fn write_prompt(&mut self, run: RunId) {
        if let Some(prompt) = forget(&mut self.prompts, run) {
            self.emit(Group::Prompt, prompt.lines(self.style));
        }
    }

    fn write_plan(&mut self) {
        let Some(plan) = self.plan.take() else { return };
        if self.shown_plan.as_ref() != Some(&plan) {
            self.output.write(Group::Plan, plan::lines(&plan, self.style));
            self.shown_plan = Some(plan);
        }
    }

    /// One line or more about something that is not text.
    fn note(&mut self, mark: &str, text: &str, paint: Paint) {
        let lines = Text::new(text, paint).wrap(&Indent::hanging(mark, paint), self.style);
        self.emit(Group::Line, lines);
    }

    fn one_line(&self, line: &Text) -> String {
        line.cut(self.style.cut_columns()).line(self.style)
    }

    /// Writes lines, but not into the middle of an open block.
    fn emit(&mut self, group: Group, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        if self.deferred.len() >= MAX_DEFERRED {
            self.end_text();
        }
        match &mut self.text {
            Some(text) if !text.blocks.is_empty() => {
                if self.deferred.is_empty() {
                    text.deferred_after = usize::from(text.blocks.is_start_open());
                }
                self.deferred.push((group, lines));
            }
            _ => self.output.write(group, lines),
        }
    }

    fn run(&mut self, run: RunId) -> &mut Run {
        let index = self.runs.iter().position(|(id, _)| *id == run).unwrap_or_else(|| {
            remember(&mut self.runs, run, Run::default());
            self.runs.len() - 1
        });
        &mut self.runs[index].1
    }
}

/// Adds an entry, and drops the oldest one if there are too many.
fn remember<K, V>(entries: &mut VecDeque<(K, V)>, key: K, value: V) {
    entries.push_back((key, value));
    if entries.len() > MAX_REMEMBERED {
        entries.pop_front();
    }
}

/// Removes an entry.
fn forget<K: PartialEq, V>(entries: &mut VecDeque<(K, V)>, key: K) -> Option<V> {
    let index = entries.iter().position(|(entry, _)| *entry == key)?;
    entries.remove(index).map(|(_, value)| value)
}
