//! The output of a tool: what an event shows of it, what goes to a blob, and when to show what was printed so far.

use bowline_host::blobs::MAX_BLOB;
use serde_json::{Value, json};

use super::details::{bounded, fits};

/// The most bytes of a tool's output in an event. Of a longer one, the event has the beginning and the end, and the whole
/// goes to a blob.
pub(super) const MAX_OUTPUT: usize = 32 << 10;
/// The most bytes of the beginning. The end takes the rest.
const MAX_HEAD: usize = MAX_OUTPUT / 2;

/// The whole text of an output of which an event has only the beginning and the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobText {
    pub text: String,
    /// It is only the beginning.
    pub is_cut: bool,
}

/// What an event shows of an output.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Of a tool call: its content, or an item of it.
    pub(super) content: Value,
    /// The event does not have everything.
    pub(super) was_cut: bool,
    pub(super) blob: Option<BlobText>,
}

impl Shown {
    /// The whole content of a tool call, of which this is the only item.
    pub(super) fn into_content(self) -> Shown {
        Shown { content: json!([self.content]), ..self }
    }
}

/// Shows an output that is complete, as one item of a tool call's content.
pub(super) fn shown(text: String) -> Shown {
    let (shown, was_cut) = shown_ends(&text);
    let content = item(&shown);
    Shown { content, was_cut, blob: was_cut.then_some(BlobText { text, is_cut: false }) }
}

/// Shows the content of a tool call, which an agent has sent as a list of blocks. Long texts in it become one text.
pub(super) fn shown_content(mut content: Value) -> Shown {
    let mut texts: Vec<String> = block_texts(&mut content).map(std::mem::take).collect();
    let rest_fits = fits(&content);
    if texts.iter().map(String::len).sum::<usize>() <= MAX_OUTPUT {
        for (place, text) in block_texts(&mut content).zip(texts) {
            *place = text;
        }
        let (content, was_cut) = if rest_fits { (content, false) } else { bounded(content) };
        return Shown { content, was_cut, blob: None };
    }
    let text = if texts.len() == 1 { texts.pop().unwrap_or_default() } else { texts.join("\n") };
    let (ends, _) = shown_ends(&text);
    let blob = Some(BlobText { text, is_cut: false });
    if !rest_fits {
        return Shown { content: json!([item(&ends)]), was_cut: true, blob };
    }
    // The first text stands for all.
    let mut ends = Some(ends);
    if let Value::Array(items) = &mut content {
        items.retain_mut(|item| match (block_text(item), ends.take()) {
            (Some(place), Some(ends)) => {
                *place = ends;
                true
            }
            (Some(_), None) => false,
            (None, left) => {
                ends = left;
                true
            }
        });
    }
    Shown { content, was_cut: true, blob }
}

/// The texts in the content of a tool call.
fn block_texts(content: &mut Value) -> impl Iterator<Item = &mut String> {
    let items = if let Value::Array(items) = content { items.as_mut_slice() } else { &mut [] };
    items.iter_mut().filter_map(block_text)
}

fn block_text(item: &mut Value) -> Option<&mut String> {
    if item["type"] != "content" {
        return None;
    }
    match item.get_mut("content")?.get_mut("text")? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// One item of a tool call's content.
fn item(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

/// The text, or its beginning and its end; and whether something was left out.
fn shown_ends(text: &str) -> (String, bool) {
    let mut output = Output::default();
    output.push(text, 0);
    output.ends()
}

/// How many more bytes of running tools' outputs may be kept for blobs. All of them together are kept in memory.
pub(super) fn room<'a>(outputs: impl Iterator<Item = &'a Output>) -> usize {
    MAX_BLOB.saturating_sub(outputs.map(|output| output.whole.len()).sum())
}

/// What a running tool has printed so far.
#[derive(Debug, Default)]
pub(super) struct Output {
    head: String,
    /// What follows, from some point on. Only the last bytes of it are shown.
    tail: String,
    /// The beginning, as much as there was room for.
    whole: String,
    total: usize,
    shown: usize,
    /// Its end was shown, with the blob.
    is_over: bool,
}

impl Output {
    /// Adds what the tool has printed. At most `room` bytes of it are kept for a blob.
    pub(super) fn push(&mut self, text: &str, room: usize) {
        if self.whole.len() == self.total && !self.is_over {
            self.whole.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        }
        self.total = self.total.saturating_add(text.len());
        let mut rest = text;
        if self.tail.is_empty() {
            let (head, after) = text.split_at(text.floor_char_boundary(MAX_HEAD - self.head.len()));
            self.head.push_str(head);
            rest = after;
        }
        // It is cut when it has doubled, so that each byte is moved only a few times. The copy has no room to spare.
        let last = self.last_part(rest);
        if last.len() < rest.len() {
            // What was before it is not next to it.
            self.tail.clear();
        }
        self.tail.push_str(last);
        if self.tail.len() > MAX_OUTPUT {
            self.tail = self.last_part(&self.tail).to_owned();
        }
    }

    /// The bytes that were printed.
    pub(super) fn len(&self) -> usize {
        self.total
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// What to show now, if anything: at the end what was not shown yet, and before that whenever there is twice as much.
    /// An event has everything that is kept, so one for each line would cost the square of the output.
    pub(super) fn take_due(&mut self, is_end: bool) -> Option<Shown> {
        let has_news = self.total > self.shown;
        let is_due = match is_end {
            // The blob is not written before the end.
            true => has_news || (self.total > MAX_OUTPUT && !self.is_over),
            false => has_news && self.total >= self.shown.saturating_mul(2),
        };
        if is_end && !is_due {
            // Nothing of it is needed for a blob any more.
            (self.whole, self.is_over) = (String::new(), true);
        }
        is_due.then(|| self.show(is_end))
    }

    /// Shows everything, at the end with the blob.
    pub(super) fn show(&mut self, is_end: bool) -> Shown {
        self.shown = self.total;
        let (ends, was_cut) = self.ends();
        let mut blob = None;
        if is_end && !std::mem::replace(&mut self.is_over, true) {
            let text = std::mem::take(&mut self.whole);
            let is_cut = text.len() < self.total;
            // The event has as much as a shorter one.
            blob = (text.len() > MAX_OUTPUT).then_some(BlobText { text, is_cut });
        }
        Shown { content: item(&ends), was_cut, blob }
    }

    /// The beginning and the end; and whether something between them was left out.
    fn ends(&self) -> (String, bool) {
        let tail = self.last_part(&self.tail);
        let left_out = self.total - self.head.len() - tail.len();
        let gap = if left_out > 0 { format!("\n[{left_out} bytes left out]\n") } else { String::new() };
        (format!("{}{gap}{tail}", self.head), left_out > 0)
    }

    /// The end of a text, as much as is shown of it.
    fn last_part<'a>(&self, text: &'a str) -> &'a str {
        let from = text.len().saturating_sub(MAX_OUTPUT - self.head.len());
        text.get(text.ceil_char_boundary(from)..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
