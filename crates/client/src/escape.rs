//! Shows the characters that a terminal acts on, instead of letting it act on them.

use std::fmt;

/// Escapes text that is part of a line, so that it cannot end that line and pretend to be another one.
pub fn one_line(text: impl fmt::Display) -> String {
    escape(text, &[])
}

/// Escapes the characters that a terminal acts on and [those that rearrange text](rearranges), except for those in `keep`.
/// The form `\u001b` is that of JSON, so escaping a JSON text does not change its meaning.
pub fn escape(text: impl fmt::Display, keep: &[char]) -> String {
    let text = text.to_string();
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() || rearranges(c)) && !keep.contains(&c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether a character has no shape, but changes the direction of the text around it or begins a new line: the marks,
/// embeddings, overrides and isolates of bidirectional text, and the separators of lines and paragraphs. Joiners and
/// variation selectors are not among them: emoji need them.
pub fn rearranges(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_terminal_acts_on_is_shown_escaped() {
        let hostile = "a\x1b[31m\u{9b}2J\x07\r\x7fb\u{202e}\u{2066}é✓🦀\\";
        let shown = r"a\u001b[31m\u009b2J\u0007\u000d\u007fb\u202e\u2066é✓🦀\";
        assert_eq!(escape(hostile, &['\n', '\t']), shown);
        assert_eq!(escape("two\nlines\t.", &['\n', '\t']), "two\nlines\t.");
        let marks = "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}";
        assert_eq!(escape(marks, &['\n', '\t']), r"\u061c\u200e\u200f\u2028\u2029");
        let emoji = "👩\u{200d}👧 ❤\u{fe0f}";
        assert_eq!(one_line(emoji), emoji);
        assert_eq!(one_line("two\nlines\t."), r"two\u000alines\u0009.");
    }

    #[test]
    fn escaping_does_not_change_the_meaning_of_json() {
        let value = serde_json::json!({ "title": "\\\u{9b}31m\\\\\x1b\x7f\u{202e}\u{2028}\n" });
        let printed = escape(&value, &['\n', '\t']);
        assert!(!printed.contains(|c: char| c.is_control() || rearranges(c)), "{printed:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
    }
}
