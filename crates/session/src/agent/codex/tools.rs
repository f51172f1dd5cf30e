//! Items of a turn that are tool calls: how they are shown.

use std::path::Path;

use bowline_proto::agent::event::ToolCall;
use serde_json::{Value, json};

use super::item_messages::{CommandItem, FileChange};
use crate::agent::details::{MAX_DIFF, bounded, cut_diff, unified_diff};
use crate::agent::output::{BlobText, Output, Shown, shown, shown_content};
use crate::agent::plain_text;

/// The most bytes of a title or a name.
const MAX_LINE: usize = 4 << 10;
/// The files of a change that are listed; more are left out.
const MAX_FILES: usize = 128;
/// Codex keeps 1 MiB of a command's output, and drops the middle. Of an output shorter than this, it has everything.
const MIN_DROPPED: usize = 1_000_000;
/// The files that a title names.
const MAX_TITLE_FILES: usize = 3;

/// One line for people.
pub(super) fn line(text: &str) -> Option<String> {
    Some(plain_text(text.replace('\n', " ").as_bytes(), MAX_LINE))
}

/// The status of a tool call in Bowline's words.
pub(super) fn status(status: Option<&str>, is_end: bool) -> Option<String> {
    let status = match status {
        Some("inProgress") => "in_progress",
        Some("failed" | "declined") => "failed",
        Some("completed") => "completed",
        _ if is_end => "completed",
        _ => "in_progress",
    };
    Some(status.to_owned())
}

/// A command, with its output if it has ended, and the blob of that.
pub(super) fn command(
    item: CommandItem,
    streamed: Option<Output>,
    status: Option<&str>,
    is_end: bool,
) -> (ToolCall, Option<BlobText>) {
    let (input, mut truncated) = bounded(json!({"command": item.command, "cwd": item.cwd}));
    let streamed = streamed.filter(|output| !output.is_empty());
    let streamed_len = streamed.as_ref().map_or(0, Output::len);
    // Codex breaks characters at the ends of what it streams, so that is used only if it has more.
    let has_all = |text: &str| text.len() < MIN_DROPPED || text.len() >= streamed_len;
    let aggregated = item.aggregated_output.filter(|text| is_end && !text.is_empty() && has_all(text));
    let output = aggregated.map(shown).or_else(|| streamed.map(|mut output| output.show(is_end)));
    let (mut content, mut blob) = (Vec::new(), None);
    if let Some(output) = output {
        content.push(output.content);
        truncated |= output.was_cut;
        blob = output.blob;
    }
    match item.exit_code {
        Some(code) if code != 0 => content.push(shown(format!("exit code {code}")).content),
        None if status == Some("declined") => content.push(shown("declined".to_owned()).content),
        _ => {}
    }
    let call = ToolCall {
        name: line("commandExecution"),
        kind: line("execute"),
        title: line(&unwrap_shell(&item.command)),
        input: (!is_end).then_some(input),
        content: is_end.then_some(Value::Array(content)),
        truncated,
        ..ToolCall::default()
    };
    (call, blob)
}

/// Changes of files.
pub(super) fn file_changes(changes: &[FileChange], cwd: &Path) -> ToolCall {
    let listed = changes.get(..changes.len().min(MAX_FILES)).unwrap_or_default();
    let (content, was_cut) = bounded(listed.iter().map(diff_content).collect());
    let (locations, _) = bounded(listed.iter().map(|change| json!({"path": change.path})).collect());
    ToolCall {
        name: line("fileChange"),
        kind: line(if changes.iter().all(|change| change.kind.kind == "delete") { "delete" } else { "edit" }),
        title: line(&changes_title(changes, cwd)),
        content: Some(content),
        locations: Some(locations),
        truncated: was_cut || listed.len() < changes.len(),
        ..ToolCall::default()
    }
}

fn diff_content(change: &FileChange) -> Value {
    let FileChange { path, kind, diff } = change;
    match kind.kind.as_str() {
        "add" => json!({"type": "diff", "path": path, "oldText": null, "newText": diff}),
        "delete" => json!({"type": "diff", "path": path, "oldText": diff, "newText": null}),
        _ => json!({"type": "diff", "path": path, "diff": diff}),
    }
}

/// What is done to which files, such as `Edit src/main.rs, README.md`.
pub(super) fn changes_title(changes: &[FileChange], cwd: &Path) -> String {
    let verb = |change: &FileChange| match change.kind.kind.as_str() {
        "add" => "Add",
        "delete" => "Delete",
        _ => "Edit",
    };
    let first = changes.first().map_or("Edit", verb);
    let verb = if changes.iter().all(|change| verb(change) == first) { first } else { "Edit" };
    let shown = |path: &str| Path::new(path).strip_prefix(cwd).unwrap_or(Path::new(path)).display().to_string();
    let names: Vec<String> = changes.iter().take(MAX_TITLE_FILES).map(|change| shown(&change.path)).collect();
    let more = changes.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{verb} {}{more}", names.join(", "))
}

/// The changes as one unified diff, cut to what an approval can need.
pub(super) fn unified(changes: &[FileChange]) -> String {
    let mut diff = String::new();
    for change in changes {
        let FileChange { path, kind, diff: content } = change;
        diff.push_str(&match (kind.kind.as_str(), &kind.move_path) {
            ("add", _) => unified_diff(path, "", content),
            ("delete", _) => unified_diff(path, content, ""),
            (_, Some(new)) => format!("--- {path}\n+++ {new}\n{content}"),
            (_, None) => format!("--- {path}\n+++ {path}\n{content}"),
        });
        if diff.len() > MAX_DIFF {
            break;
        }
        if !diff.ends_with('\n') {
            diff.push('\n');
        }
    }
    cut_diff(diff)
}

/// The details of any other tool.
pub(super) enum Details {
    Whole(Value),
    /// Of an item that was too long to be parsed: its names, and the text of its output.
    Texts {
        names: Value,
        output: String,
    },
}

/// Any other tool, and the blob of its output.
pub(super) fn other(kind: &str, details: Details, is_end: bool) -> (ToolCall, Option<BlobText>) {
    let (item, output, is_whole) = match details {
        Details::Whole(item) => {
            let output = if is_end { result_content(kind, &item) } else { None };
            (item, output, true)
        }
        Details::Texts { names, output } => {
            let output = Some(output).filter(|text| is_end && !text.is_empty());
            (names, output.map(|text| shown(text).into_content()), false)
        }
    };
    let item = &item;
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    let (name, tool_kind, title) = match kind {
        "mcpToolCall" => (format!("{}.{}", text("server"), text("tool")), "other", None),
        "dynamicToolCall" => (text("tool").to_owned(), "other", None),
        "webSearch" => ("webSearch".to_owned(), "search", Some(format!("Search {}", search_words(item)))),
        "imageView" => ("imageView".to_owned(), "read", Some(format!("View {}", text("path")))),
        "collabAgentToolCall" => {
            let prompt = text("prompt").lines().next().unwrap_or_default();
            (text("tool").to_owned(), "think", Some(format!("{} {prompt}", text("tool"))))
        }
        "sleep" => ("sleep".to_owned(), "other", Some("Wait".to_owned())),
        kind => (kind.to_owned(), "other", None),
    };
    let input = &item["arguments"];
    let (input, input_cut) = bounded(input.clone());
    let was_cut = output.as_ref().is_some_and(|output| output.was_cut);
    let (content, blob) = output.map_or((None, None), |output| (Some(output.content), output.blob));
    let call = ToolCall {
        title: line(title.as_deref().unwrap_or(&name)),
        name: line(&name),
        kind: line(tool_kind),
        input: (!input.is_null()).then_some(input),
        content,
        truncated: !is_whole || input_cut || was_cut,
        ..ToolCall::default()
    };
    (call, blob)
}

/// The words of a search, or the page that is opened.
fn search_words(item: &Value) -> &str {
    let action = &item["action"];
    let words = [&item["query"], &action["query"], &action["url"]];
    words.into_iter().filter_map(Value::as_str).find(|words| !words.is_empty()).unwrap_or_default()
}

/// What a tool returned.
fn result_content(kind: &str, item: &Value) -> Option<Shown> {
    let error = item["error"]["message"].as_str().or_else(|| item["error"].as_str());
    if let Some(error) = error {
        return Some(shown(error.to_owned()).into_content());
    }
    // The blocks of MCP are those of ACP.
    let blocks = match kind {
        "mcpToolCall" => item["result"]["content"].as_array(),
        "dynamicToolCall" => item["contentItems"].as_array(),
        _ => None,
    };
    let blocks = blocks?.iter().map(|block| json!({"type": "content", "content": block}));
    Some(shown_content(blocks.collect()))
}

/// The command as a user would type it: Codex wraps it as `/bin/bash -lc '..'`. Anything that is not exactly a shell
/// with one argument stays as it is, so that nothing is hidden.
pub(super) fn unwrap_shell(command: &str) -> String {
    let script = || {
        let (shell, rest) = command.split_once(' ')?;
        // A program of this name elsewhere may be another one.
        let (directory, name) = shell.rsplit_once('/')?;
        let is_system = matches!(directory, "/bin" | "/usr/bin" | "/usr/local/bin");
        let (flag, word) = rest.split_once(' ')?;
        let is_shell = is_system && matches!(name, "bash" | "sh" | "zsh") && matches!(flag, "-lc" | "-c");
        if is_shell { shell_word(word) } else { None }
    };
    script().unwrap_or_else(|| command.to_owned())
}

/// The text of a shell word, if this is exactly one and nothing in it is expanded.
fn shell_word(word: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = word.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    char => text.push(char),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => match chars.next()? {
                        char @ ('$' | '`' | '"' | '\\') => text.push(char),
                        '\n' => {}
                        char => text.extend(['\\', char]),
                    },
                    '$' | '`' => return None,
                    char => text.push(char),
                }
            },
            '\\' => text.push(chars.next()?),
            char if char.is_alphanumeric() || "-_./=:,@%+".contains(char) => text.push(char),
            _ => return None,
        }
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        for (wrapped, shown) in [
            ("/bin/bash -lc 'touch a && echo hi'", "touch a && echo hi"),
            ("/bin/bash -lc ls", "ls"),
            ("/usr/bin/zsh -lc \"echo 'it' \\$HOME\"", "echo 'it' $HOME"),
            ("/bin/sh -c 'it'\\''s'", "it's"),
            ("/bin/bash -lc 'ls' && rm -r x", "/bin/bash -lc 'ls' && rm -r x"),
            ("/bin/bash -lc 'ls' x", "/bin/bash -lc 'ls' x"),
            ("/bin/bash -lc \"$(rm x)\"", "/bin/bash -lc \"$(rm x)\""),
            ("/bin/bash -lc 'open", "/bin/bash -lc 'open"),
            ("/tmp/bash -lc ls", "/tmp/bash -lc ls"),
            ("bash -lc ls", "bash -lc ls"),
            ("rm -r x", "rm -r x"),
            ("", ""),
        ] {
            assert_eq!(unwrap_shell(wrapped), shown);
        }
    }
}
