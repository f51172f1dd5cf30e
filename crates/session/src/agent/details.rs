//! What agents say in detail: parsed only as far as it is needed, and cut to what can be recorded.

use std::io;

use bowline_proto::agent::event::{AgentEvent, RunId};
use serde::Deserialize;
use serde_json::Value;

use super::{plain_text, shown_text};

/// The longest line whose details, which may be any JSON, are parsed: a parsed value takes up to 100 times as much memory.
/// Of a longer line, texts are used, and details are left out.
pub(super) const MAX_CONTENT: usize = 512 << 10;
/// The most bytes of a tool's input or other value in an event, as JSON; of a larger one, texts are cut. Three of them fit
/// into a line of the journal. Texts of a tool's output have a limit of their own.
pub(super) const MAX_DETAIL: usize = 144 << 10;
/// Texts of a value that is too large are not cut to less than this many bytes: it has too many parts, and loses some.
const MIN_TEXT: usize = 64;
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

/// The value, and whether it was too large. Then the longest texts in it are cut: a client that knows its shape can still
/// read it.
pub(super) fn bounded(mut value: Value) -> (Value, bool) {
    if fits(&value) {
        return (value, false);
    }
    flatten(&mut value, MAX_DEPTH);
    let mut max = MAX_DETAIL / 2;
    while json_len(&value) > MAX_DETAIL && max >= MIN_TEXT {
        cut_texts(&mut value, max);
        max /= 2;
    }
    if json_len(&value) > MAX_DETAIL {
        drop_parts(&mut value, MAX_DETAIL);
    }
    (value, true)
}

/// Whether a value can be recorded as it is.
pub(super) fn fits(value: &Value) -> bool {
    json_len(value) <= MAX_DETAIL && depth(value) <= MAX_DEPTH
}

/// The length of a value as JSON.
fn json_len(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX, |()| counter.0)
}

/// The parts of a value.
fn parts(value: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter_mut()),
        Value::Object(fields) => Box::new(fields.values_mut()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Turns what is nested too deep into text.
fn flatten(value: &mut Value, depth: usize) {
    if depth == 0 && matches!(value, Value::Array(_) | Value::Object(_)) {
        *value = Value::String(value.to_string());
    }
    parts(value).for_each(|part| flatten(part, depth.saturating_sub(1)));
}

/// Cuts each text in a value to this many bytes.
fn cut_texts(value: &mut Value, max: usize) {
    if let Value::String(text) = value {
        text.truncate(text.floor_char_boundary(max));
        text.shrink_to_fit();
    }
    parts(value).for_each(|part| cut_texts(part, max));
}

/// Keeps the first parts of a value that fit into this many bytes of JSON, and drops the others.
fn drop_parts(value: &mut Value, room: usize) {
    let mut room = room.saturating_sub(2);
    let (mut is_first, mut is_full) = (true, false);
    let mut keep = |part: &mut Value, key_len: usize, may_cut: bool| {
        // A comma and a colon.
        room = room.saturating_sub(key_len + 2);
        let fits = !is_full && json_len(part) <= room;
        let is_cut = !fits && !is_full && room > 2 && may_cut && matches!(part, Value::Array(_) | Value::Object(_));
        if is_cut {
            drop_parts(part, room);
        }
        is_full |= !fits;
        room = room.saturating_sub(json_len(part));
        fits || is_cut
    };
    match value {
        // Part of an item would be of little use, unless it is all that there is.
        Value::Array(items) => items.retain_mut(|item| keep(item, 0, std::mem::take(&mut is_first))),
        Value::Object(fields) => fields.retain(|key, field| keep(field, json_len(&Value::from(key.as_str())), true)),
        _ => {}
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The event for a plan with these entries.
pub(super) fn plan(run: Option<RunId>, entries: Value) -> AgentEvent {
    let (entries, truncated) = bounded(entries);
    AgentEvent::Plan { run, entries, truncated }
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
