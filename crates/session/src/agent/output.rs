//! The output of a tool: its beginning and its end, and when to show them.

use serde_json::{Value, json};

/// The most bytes of a tool's output in an event, as JSON; what is in the middle is left out. With the rest of the event
/// it stays below what can be recorded.
const MAX_OUTPUT: usize = 24 << 10;
/// The most bytes of each end, as JSON.
const MAX_END: usize = MAX_OUTPUT / 2;

/// What a tool has printed so far.
#[derive(Debug, Default)]
pub(super) struct Output {
    head: String,
    /// The bytes of it, as JSON.
    head_len: usize,
    /// What follows, from some point on. Only the last [`MAX_END`] bytes of it are shown.
    tail: String,
    total: usize,
    shown: usize,
}

impl Output {
    /// Output that is complete.
    pub(super) fn whole(text: &str) -> Output {
        let mut output = Output::default();
        output.push(text);
        output
    }

    pub(super) fn push(&mut self, text: &str) {
        self.total = self.total.saturating_add(text.len());
        let mut rest = text;
        if self.tail.is_empty() {
            let (head, after) = text.split_at(fitting(text.chars(), MAX_END - self.head_len));
            self.head.push_str(head);
            self.head_len += head.chars().map(escaped_len).sum::<usize>();
            rest = after;
        }
        self.tail.push_str(rest);
        // It is cut when it has doubled, so that each byte is moved only a few times. The copy has no room to spare.
        if self.tail.len() > MAX_OUTPUT {
            self.tail = last_part(&self.tail).to_owned();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// What to show now, if anything: at the end what was not shown yet, and before that whenever there is twice as much.
    /// An event has everything that is kept, so one for each line would cost the square of the output.
    pub(super) fn take_due(&mut self, is_end: bool) -> Option<(Value, bool)> {
        let is_due = self.total > self.shown && (is_end || self.total >= self.shown.saturating_mul(2));
        is_due.then(|| {
            self.shown = self.total;
            self.content()
        })
    }

    /// One item of a tool call's content, and whether something was left out.
    pub(super) fn content(&self) -> (Value, bool) {
        let tail = last_part(&self.tail);
        let left_out = self.total - self.head.len() - tail.len();
        let gap = if left_out > 0 { format!("\n[{left_out} bytes left out]\n") } else { String::new() };
        let text = format!("{}{gap}{tail}", self.head);
        (json!({"type": "content", "content": {"type": "text", "text": text}}), left_out > 0)
    }
}

/// The end of a text, as much as is shown of it.
fn last_part(text: &str) -> &str {
    let len = fitting(text.chars().rev(), MAX_END);
    text.get(text.len() - len..).unwrap_or_default()
}

/// How many bytes the first characters have that take at most `room` bytes as JSON.
fn fitting(chars: impl Iterator<Item = char>, mut room: usize) -> usize {
    let mut len = 0;
    for char in chars {
        let Some(rest) = room.checked_sub(escaped_len(char)) else { break };
        room = rest;
        len += char.len_utf8();
    }
    len
}

/// The bytes of a character in a JSON text.
fn escaped_len(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        char => char.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::details::bounded;

    fn text(output: &Output) -> String {
        output.content().0["content"]["text"].as_str().unwrap().to_owned()
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end() {
        let mut output = Output::default();
        let mut all = String::new();
        for number in 0..20_000 {
            let line = format!("{number} \u{e9}\n");
            output.push(&line);
            all.push_str(&line);
        }
        let kept = text(&output);
        assert!(kept.starts_with("0 \u{e9}\n1 \u{e9}\n") && kept.ends_with("19999 \u{e9}\n"), "{kept}");
        let (head, rest) = kept.split_once("\n[").unwrap();
        let (number, tail) = rest.split_once(" bytes left out]\n").unwrap();
        assert!(all.starts_with(head) && all.ends_with(tail));
        assert_eq!(number.parse::<usize>().unwrap(), all.len() - head.len() - tail.len());
        assert_eq!(text(&Output::whole(&all)), kept, "in one piece or in many");
    }

    #[test]
    fn short_output_is_whole() {
        let mut output = Output::default();
        for part in ["one\n", "", "two\n"] {
            output.push(part);
        }
        assert_eq!((text(&output).as_str(), output.content().1), ("one\ntwo\n", false));
    }

    #[test]
    fn r52_output_of_any_kind_fits_and_is_shown_a_few_times() {
        for text in ["x", "\u{1}", "\"", "\u{1f600}", "a\u{0}\n"] {
            let (content, was_cut) = Output::whole(&text.repeat(200_000 / text.len())).content();
            let (content, became_text) = bounded(json!([content]));
            assert!(was_cut && !became_text && content.to_string().len() < MAX_OUTPUT + 200, "{text:?}");
        }
        let mut output = Output::default();
        let due = (0..100_000).filter(|_| {
            output.push("a line of output\n");
            output.take_due(false).is_some()
        });
        assert!(due.count() < 20);
        assert!(output.take_due(true).is_some() && output.take_due(true).is_none());
        let kept = Output::whole(&"x".repeat(8 << 20));
        assert!(kept.tail.capacity() <= MAX_OUTPUT);
    }
}
