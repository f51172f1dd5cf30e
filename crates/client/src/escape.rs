//! Shows the characters that a terminal acts on, instead of letting it act on them.

use std::fmt;

/// Escapes text that is part of a line, so that it cannot end that line and pretend to be another one.
pub fn one_line(text: impl fmt::Display) -> String {
    escape(text, &[])
}

/// Escapes the characters that a terminal acts on or that change the direction of text, except for those in `keep`. The
/// form `\u001b` is that of JSON, so escaping a JSON text does not change its meaning.
pub fn escape(text: impl fmt::Display, keep: &[char]) -> String {
    let text = text.to_string();
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        let hostile = c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if hostile && !keep.contains(&c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
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
        assert_eq!(one_line("two\nlines\t."), r"two\u000alines\u0009.");
    }

    #[test]
    fn escaping_does_not_change_the_meaning_of_json() {
        let value = serde_json::json!({ "title": "\\\u{9b}31m\\\\\x1b\x7f\u{202e}\n" });
        let printed = escape(&value, &['\n', '\t']);
        assert!(!printed.contains(|c: char| c.is_control() || c == '\u{202e}'), "{printed:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
    }
}
