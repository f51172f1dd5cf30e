//! The events of a run as plain text: what the agent wrote goes to standard output, and a line about everything else to
//! standard error.

use std::collections::VecDeque;

use bowline_proto::agent::event::{AgentEvent, Complete, Delta, Level, ToolCall};
use serde_json::{Value, json};

use crate::print::{self, one_line};

/// The most tool calls that are remembered. An update of one that is forgotten is printed as if it were a new call.
const MAX_TOOLS: usize = 1024;
/// The characters of a tool call's id and title that are remembered. Calls with ids that begin alike are taken for one.
const MAX_REMEMBERED: usize = 200;

/// Prints events, one after the other.
#[derive(Default)]
pub(crate) struct RunText {
    /// The block of the agent's text that was printed last.
    block: Option<String>,
    /// Standard output is in the middle of a line.
    in_line: bool,
    /// The latest tool calls that were printed, oldest first: their ids, and the titles of those that have not ended.
    tools: VecDeque<(String, Option<String>)>,
}

impl RunText {
    pub(crate) fn print(&mut self, event: &Value) {
        // An event that this version cannot read has nothing to show.
        let Ok(event) = serde_json::from_value::<AgentEvent>(event.clone()) else { return };
        match event {
            AgentEvent::Text(delta) => self.print_text(&delta),
            AgentEvent::ToolCall(call) | AgentEvent::ToolUpdate(call) => self.print_tool(&call),
            AgentEvent::Notice { level, text } => {
                if let Some(level) = level_name(level) {
                    self.line(format_args!("[{level}] {}", one_line(text)));
                }
            }
            AgentEvent::Degraded { error } => {
                self.line(format_args!("[warning] the journal cannot be written: {}", one_line(error)));
            }
            AgentEvent::ApprovalResolved { approval, outcome, source, .. } => {
                let outcome = json!(outcome);
                let by = source.map(|source| format!(" by {}", one_line(source.by))).unwrap_or_default();
                self.line(format_args!("[{approval}] {}{by}", outcome.as_str().unwrap_or("closed")));
            }
            _ => {}
        }
    }

    /// Ends the agent's text, so that the next line stands alone.
    pub(crate) fn finish(&mut self) {
        if std::mem::take(&mut self.in_line) {
            print::print_text("\n");
        }
    }

    /// Prints more of the agent's text, as it wrote it, with an empty line between blocks. A sub-agent's text is left out.
    fn print_text(&mut self, delta: &Delta) {
        if delta.parent.is_some() || delta.delta.is_empty() {
            return;
        }
        if self.block.as_ref().is_some_and(|block| *block != delta.block) {
            self.finish();
            print::print_text("\n");
        }
        self.block = Some(delta.block.clone());
        self.in_line = !delta.delta.ends_with('\n');
        print::print_text(&delta.delta);
    }

    /// Prints a line when a tool is first used, and another one if it fails.
    fn print_tool(&mut self, call: &ToolCall) {
        if call.parent.is_some() {
            return;
        }
        let kind = call.kind.as_deref().or(call.name.as_deref()).unwrap_or("tool");
        let (has_failed, has_ended) = match call.status.as_deref() {
            Some("failed") => (true, true),
            Some("completed") => (false, true),
            _ => (false, false),
        };
        let remember = |text: &str| text.chars().take(MAX_REMEMBERED).collect::<String>();
        let id = remember(&call.call);
        let known = self.tools.iter_mut().find(|(known, _)| *known == id);
        let is_new = known.is_none();
        // An update of a call that has ended is not shown again.
        let open = known.and_then(|(_, title)| if has_ended { title.take() } else { title.clone() });
        let title = match (open, &call.title) {
            (Some(title), _) => title,
            (None, Some(title)) if is_new => title.clone(),
            (None, None) if is_new && has_failed => kind.to_owned(),
            (None, _) => return,
        };
        if is_new {
            if self.tools.len() >= MAX_TOOLS {
                self.tools.pop_front();
            }
            self.tools.push_back((id, (!has_ended).then(|| remember(&title))));
        }
        if has_failed {
            self.line(format_args!("[failed] {}", one_line(title)));
        } else if is_new {
            self.line(format_args!("[{}] {}", one_line(kind), one_line(title)));
        }
    }

    /// Prints a line that is not the agent's text to standard error. In a terminal, it does not continue that text.
    pub(crate) fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if print::is_terminal() {
            self.finish();
        }
        eprintln!("{line}");
    }
}

/// The levels that are shown.
fn level_name(level: Level) -> Option<&'static str> {
    match level {
        Level::Debug => None,
        Level::Info | Level::Unknown => Some("notice"),
        Level::Warning => Some("warning"),
        Level::Error => Some("error"),
    }
}

/// How a run ended, in words.
pub(crate) fn describe_end(complete: &Complete) -> String {
    let Complete { success, aborted, interrupted, started, stop_reason, error, .. } = complete;
    let retry = |at: &str| format!("; try again at {}", one_line(at));
    match error {
        _ if *success => "done".to_owned(),
        Some(error) => {
            let retry = error.retry_at.as_deref().map(retry).unwrap_or_default();
            format!("failed: {} ({}){retry}", one_line(&error.message), one_line(&error.code))
        }
        None if *aborted && *interrupted => "was aborted, and the session has ended".to_owned(),
        None if *aborted => "was aborted".to_owned(),
        None if *interrupted && *started => "was interrupted: the session ended, or its process died".to_owned(),
        None if *interrupted => "was never started: the session ended, or its process died".to_owned(),
        None => format!("stopped: {}", one_line(stop_reason.as_deref().unwrap_or("the agent does not say why"))),
    }
}
