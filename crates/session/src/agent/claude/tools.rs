//! Tool calls of Claude Code, in the words and shapes that every agent's tool calls have.

use std::collections::VecDeque;

use bowline_proto::agent::event::{RunId, ToolCall};
use serde_json::{Value, json};

use super::tasks::TaskEnd;
use super::todos::TodoChange;
use crate::agent::details::bounded;
use crate::agent::output::{BlobText, Shown, shown};
use crate::agent::plain_text;

/// The most tool calls that are remembered until their result comes; the oldest is forgotten first. Nothing is lost by it
/// but the change of the todo list, and the diff in a finished call is replaced by the tool's words.
const MAX_CALLS: usize = 256;
/// The most bytes of a title or an id.
const MAX_LINE: usize = 4 << 10;
/// The most changes of one `MultiEdit` that are shown.
const MAX_CHANGES: usize = 64;

/// A tool call without a result.
#[derive(Debug)]
pub(super) struct OpenCall {
    id: String,
    /// The call shows a diff, which says more than the result of a successful call.
    pub(super) has_diff: bool,
    pub(super) todo: Option<TodoChange>,
}

/// The tool calls without a result, oldest first.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(VecDeque<OpenCall>);

impl OpenCalls {
    pub(super) fn add(&mut self, id: &str, has_diff: bool, todo: Option<TodoChange>) {
        if self.0.iter().any(|call| call.id == id) {
            return;
        }
        if self.0.len() >= MAX_CALLS {
            self.0.pop_front();
        }
        self.0.push_back(OpenCall { id: line(id), has_diff, todo });
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.0.iter().position(|call| call.id == id)?;
        self.0.remove(at)
    }
}

/// The event of a new call. Its input is absent if it was too long to be parsed.
pub(super) fn call(
    run: Option<RunId>,
    parent: Option<&str>,
    id: &str,
    name: &str,
    input: Option<Value>,
) -> (ToolCall, bool) {
    let known = input.as_ref().unwrap_or(&Value::Null);
    let (content, content_cut) = match diff(name, known) {
        Value::Null => (None, false),
        diff => {
            let (diff, cut) = bounded(diff);
            (Some(diff), cut)
        }
    };
    let has_diff = content.is_some();
    let (title, locations) = (title(name, known), locations(name, known));
    let was_read = input.is_some();
    let (input, input_cut) = input.map_or((None, false), |input| {
        let (input, cut) = bounded(input);
        (Some(input), cut)
    });
    let call = ToolCall {
        run,
        call: line(id),
        parent: parent.map(line),
        name: Some(line(name)),
        kind: Some(kind(name).to_owned()),
        title: Some(title),
        status: Some("pending".to_owned()),
        input,
        content,
        locations,
        blob: None,
        truncated: !was_read || content_cut || input_cut,
    };
    (call, has_diff)
}

/// The event of a call's result, and the blob of its output.
pub(super) fn result(
    run: Option<RunId>,
    parent: Option<&str>,
    id: &str,
    is_error: bool,
    text: &str,
    keeps_diff: bool,
) -> (ToolCall, Option<BlobText>) {
    let text = text.trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>");
    let is_shown = !text.is_empty() && (is_error || !keeps_diff);
    let Shown { content, was_cut, blob } = if is_shown { shown(text.to_owned()) } else { Shown::default() };
    let call = ToolCall {
        run,
        call: line(id),
        parent: parent.map(line),
        status: Some(if is_error { "failed" } else { "completed" }.to_owned()),
        content: is_shown.then(|| json!([content])),
        truncated: was_cut,
        ..ToolCall::default()
    };
    (call, blob)
}

/// The event of a call whose work in the background has ended.
pub(super) fn task_end(run: Option<RunId>, end: &TaskEnd) -> (ToolCall, Option<BlobText>) {
    result(run, None, &end.call, end.is_failed, &end.summary, false)
}

/// The event of a call that was allowed.
pub(super) fn allowed(run: Option<RunId>, parent: Option<&str>, id: &str) -> ToolCall {
    let status = Some("in_progress".to_owned());
    ToolCall { run, call: line(id), parent: parent.map(line), status, ..ToolCall::default() }
}

/// The kind of a tool, in the words of ACP.
fn kind(name: &str) -> &'static str {
    match name {
        "Bash" | "BashOutput" | "KillShell" | "KillBash" | "TaskStop" | "TaskOutput" | "PowerShell" | "Monitor" => {
            "execute"
        }
        "Read" | "NotebookRead" | "LS" => "read",
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => "edit",
        "Glob" | "Grep" | "ToolSearch" | "LSP" => "search",
        "WebFetch" | "WebSearch" => "fetch",
        "Agent" | "Task" | "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskGet" | "TaskList" => "think",
        "ExitPlanMode" | "EnterPlanMode" => "switch_mode",
        _ => "other",
    }
}

/// One line that says what a call does.
pub(super) fn title(name: &str, input: &Value) -> String {
    let text = |key: &str| input[key].as_str().filter(|text| !text.trim().is_empty());
    let title = match name {
        "Bash" | "PowerShell" => text("command"),
        "Read" | "Edit" | "MultiEdit" | "Write" => text("file_path"),
        "NotebookEdit" | "NotebookRead" => text("notebook_path"),
        "LS" => text("path"),
        "Glob" | "Grep" => text("pattern"),
        "WebFetch" => text("url"),
        "WebSearch" | "ToolSearch" => text("query"),
        "TaskCreate" => text("subject"),
        "Skill" => text("skill"),
        "AskUserQuestion" => input["questions"][0]["question"].as_str(),
        "ExitPlanMode" => Some("Plan"),
        "TodoWrite" => Some("Todo list"),
        _ => text("description"),
    };
    let words = title.unwrap_or(name).replace(['\n', '\t'], " ");
    match (name, title.is_some()) {
        ("TaskUpdate", _) => line(&format!(
            "Task {}: {}",
            text("taskId").unwrap_or("?"),
            text("status").or_else(|| text("subject")).unwrap_or("changed")
        )),
        _ => line(&words),
    }
}

fn locations(name: &str, input: &Value) -> Option<Value> {
    let mut keys = ["file_path", "notebook_path"];
    if name.starts_with("Notebook") {
        keys.reverse();
    }
    let path = keys.iter().find_map(|key| input[*key].as_str())?;
    let line_number = input["offset"].as_u64();
    let location = match line_number {
        Some(number) => json!({"path": line(path), "line": number}),
        None => json!({"path": line(path)}),
    };
    Some(json!([location]))
}

/// What a call changes in a file, as ACP's content; null for other tools.
fn diff(name: &str, input: &Value) -> Value {
    let Some(Changes { path, texts, .. }) = changes(name, input) else { return Value::Null };
    let item = |(old, new): (Option<&str>, &str)| json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    texts.into_iter().map(item).collect()
}

/// What a call changes in a file.
pub(super) struct Changes<'a> {
    pub(super) path: &'a str,
    /// The texts that it replaces, and those that it writes. A whole file has no old text.
    pub(super) texts: Vec<(Option<&'a str>, &'a str)>,
    /// The fields of the input that say nothing else.
    pub(super) shown: Vec<&'static str>,
    /// There are more changes.
    pub(super) left_out: bool,
}

/// What a call changes; `None` if the tool changes no file, or the input does not say what.
pub(super) fn changes<'a>(name: &str, input: &'a Value) -> Option<Changes<'a>> {
    let whole = |key: &str| input[key].as_str().map(|text| (None, text)).into_iter().collect();
    let edit = |edit: &'a Value| Some((Some(edit["old_string"].as_str()?), edit["new_string"].as_str()?));
    let (texts, mut shown, left_out): (Vec<_>, Vec<_>, bool) = match name {
        "Write" => (whole("content"), vec!["content"], false),
        "NotebookEdit" => (whole("new_source"), vec!["new_source"], false),
        "Edit" => (edit(input).into_iter().collect(), vec!["old_string", "new_string"], false),
        "MultiEdit" => {
            let edits = input["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
            let texts: Vec<_> = edits.iter().take(MAX_CHANGES).filter_map(edit).collect();
            let left_out = texts.len() < edits.len();
            let is_shown = !left_out && edits.iter().all(has_only_texts);
            (texts, if is_shown { vec!["edits"] } else { Vec::new() }, left_out)
        }
        _ => return None,
    };
    let key = if name == "NotebookEdit" { "notebook_path" } else { "file_path" };
    let path = input[key].as_str();
    shown.extend(path.map(|_| key));
    (!texts.is_empty()).then_some(Changes { path: path.unwrap_or_default(), texts, shown, left_out })
}

/// Whether the texts are all that one of several edits says, and not, for example, that it replaces all occurrences.
fn has_only_texts(edit: &Value) -> bool {
    let is_text = |key: &str| matches!(key, "old_string" | "new_string");
    let is_unset = |value: &Value| matches!(value, Value::Null | Value::Bool(false));
    edit.as_object().is_some_and(|edit| edit.iter().all(|(key, value)| is_text(key) || is_unset(value)))
}

fn line(text: &str) -> String {
    plain_text(text.as_bytes(), MAX_LINE)
}
