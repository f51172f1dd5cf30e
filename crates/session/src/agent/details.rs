//! What agents say in detail: parsed only as far as it is needed, and cut to what can be recorded.

use serde::Deserialize;
use serde_json::Value;

use super::{plain_text, shown_text};

/// The longest line whose details, which may be any JSON, are parsed: a parsed value takes up to 100 times as much memory.
/// Of a longer line, texts are used, and details are left out.
pub(super) const MAX_CONTENT: usize = 512 << 10;
/// The most bytes of a tool's input or other value in an event, as JSON; more is cut. Texts of its output have a limit of
/// their own.
pub(super) const MAX_DETAIL: usize = 32 << 10;
/// The most bytes of an error message, a stop reason or the name of a conversation.
pub(super) const MAX_SHORT: usize = 1 << 10;
/// Details that are nested deeper become text, so that every client can parse the event that contains them.
const MAX_DEPTH: usize = 64;
/// The most bytes of each part of an approval's detail; more is cut.
const MAX_APPROVAL_DETAIL: usize = 8 << 10;
/// The most bytes of a title or a label of an approval.
const MAX_APPROVAL_LINE: usize = 1 << 10;
/// The most bytes that are kept of the diff of a change that may need an approval, which shows less.
pub(super) const MAX_DIFF: usize = 16 << 10;
/// Lines around a change that a diff shows.
const CONTEXT: usize = 3;

/// One line of the agent's words, for people.
pub(super) fn short(text: &str) -> String {
    plain_text(text.as_bytes(), MAX_SHORT)
}

pub(super) fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// The value, or the beginning of its text if it is too large; and whether it was.
pub(super) fn bounded(value: Value) -> (Value, bool) {
    if fits(&value) {
        return (value, false);
    }
    let text = value.to_string();
    let cut = text.get(..text.floor_char_boundary(MAX_DETAIL)).unwrap_or_default();
    (Value::String(cut.to_owned()), true)
}

/// Whether a value can be recorded as it is.
pub(super) fn fits(value: &Value) -> bool {
    value.to_string().len() <= MAX_DETAIL && depth(value) <= MAX_DEPTH
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The entries of a plan; those that are too many or too large are left out, so that the rest stays a list.
pub(super) fn plan_entries(entries: Value) -> Value {
    let Value::Array(entries) = entries else { return bounded(entries).0 };
    let mut room = MAX_DETAIL;
    let mut fits = |entry: &Value| {
        let rest = room.checked_sub(entry.to_string().len() + 1).filter(|_| depth(entry) < MAX_DEPTH);
        room = rest.unwrap_or(room);
        rest.is_some()
    };
    entries.into_iter().filter(&mut fits).collect()
}

/// An error in the agent's words, which may be the body of an HTTP response. A long text is not parsed.
pub(super) fn error_words(text: &str) -> String {
    let is_object = text.len() <= MAX_DETAIL && text.starts_with('{');
    let body = if is_object { read::<Value>(text.as_bytes()).unwrap_or_default() } else { Value::Null };
    short(body["error"]["message"].as_str().unwrap_or(text))
}

/// An argument as a shell would take it, so that it is clear where it ends.
pub(super) fn quoted_argument(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    match text {
        text if !text.is_empty() && text.bytes().all(is_plain) => text.to_owned(),
        text => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The beginning of a diff, as much as an approval can need.
pub(super) fn cut_diff(mut diff: String) -> String {
    diff.truncate(diff.floor_char_boundary(MAX_DIFF));
    // What is kept is small, and it must not keep the memory of the whole.
    diff.shrink_to_fit();
    diff
}

/// A change of a file as a unified diff with a single hunk: what the texts have in common at both ends is left out.
pub(super) fn unified_diff(path: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    let before = head - head.min(CONTEXT);
    let after = tail.min(CONTEXT);
    let (removed, added) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let context = |lines: &[&str]| lines.iter().map(|line| format!(" {line}\n")).collect::<String>();
    let marked = |mark: char, lines: &[&str]| lines.iter().map(|line| format!("{mark}{line}\n")).collect::<String>();
    let counts = |changed: usize| head - before + changed + after;
    format!(
        "--- {path}\n+++ {path}\n@@ -{start},{} +{start},{} @@\n{}{}{}{}",
        counts(removed.len()),
        counts(added.len()),
        context(&old[before..head]),
        marked('-', removed),
        marked('+', added),
        context(&old[old.len() - tail..old.len() - tail + after]),
        start = before + 1,
    )
}

/// Cuts the long texts of an approval, and remembers whether it did.
#[derive(Default)]
pub(super) struct Cut {
    pub(super) was_cut: bool,
}

impl Cut {
    /// A text of several lines, whose control characters stay visible as escapes: the user decides by what it says.
    pub(super) fn long(&mut self, text: &str) -> String {
        self.shown(text, MAX_APPROVAL_DETAIL)
    }

    /// The same on one line.
    pub(super) fn line(&mut self, text: &str) -> String {
        self.shown(&text.replace(['\n', '\t'], " "), MAX_APPROVAL_LINE)
    }

    fn shown(&mut self, text: &str, max: usize) -> String {
        let (shown, was_cut) = shown_text(text, max);
        self.was_cut |= was_cut;
        shown
    }
}
