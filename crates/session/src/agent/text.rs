//! Texts of agents: merged into few events, split where they are too long, and stripped of escape sequences.

use bowline_proto::agent::event::{AgentEvent, Delta};

/// The longest delta in bytes; a longer one is split.
const MAX_DELTA: usize = 16 << 10;

/// Merges adjacent deltas of one block, and splits long ones. For the events that one read of the agent's output gave:
/// each event costs every viewer a message.
pub fn merge_deltas(events: Vec<AgentEvent>) -> Vec<AgentEvent> {
    let mut merged: Vec<AgentEvent> = Vec::with_capacity(events.len());
    for event in events {
        match (merged.last_mut(), event) {
            (Some(AgentEvent::Text(last)), AgentEvent::Text(delta))
            | (Some(AgentEvent::Thinking(last)), AgentEvent::Thinking(delta))
                if is_same_block(last, &delta) && last.delta.len() + delta.delta.len() <= MAX_DELTA =>
            {
                last.delta.push_str(&delta.delta);
            }
            (_, AgentEvent::Text(delta)) => merged.extend(split(delta).map(AgentEvent::Text)),
            (_, AgentEvent::Thinking(delta)) => merged.extend(split(delta).map(AgentEvent::Thinking)),
            (_, event) => merged.push(event),
        }
    }
    merged
}

fn is_same_block(a: &Delta, b: &Delta) -> bool {
    a.block == b.block && a.run == b.run && a.parent == b.parent
}

/// The parts of a delta, none longer than [`MAX_DELTA`].
fn split(delta: Delta) -> impl Iterator<Item = Delta> {
    let Delta { run, block, parent, delta } = delta;
    let mut from = 0;
    let mut is_done = false;
    std::iter::from_fn(move || {
        if is_done {
            return None;
        }
        let to = delta.floor_char_boundary(from + MAX_DELTA);
        let part = delta.get(from..to).unwrap_or_default().to_owned();
        (from, is_done) = (to, to >= delta.len());
        Some(Delta { run, block: block.clone(), parent: parent.clone(), delta: part })
    })
}

/// The text without escape sequences and control characters, cut to `max` bytes.
pub(crate) fn plain_text(bytes: &[u8], max: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if plain.len() + char.len_utf8() > max {
            break;
        }
        match char {
            // A control sequence ends with a letter or one of `@[\]^_{|}~`.
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                while chars.next().is_some_and(|char| !('@'..='~').contains(&char)) {}
            }
            // Any other string of this kind, such as a title, ends with BEL or ESC \.
            '\u{1b}' if chars.next_if_eq(&']').is_some() => {
                while chars.next_if(|char| !matches!(char, '\u{7}' | '\u{1b}')).is_some() {}
            }
            '\t' => plain.push('\t'),
            char if char.is_control() => {}
            char => plain.push(char),
        }
    }
    plain
}

/// The text with its control characters as visible escapes, except line breaks and tabs, cut to `max` bytes; and whether
/// it was cut. For what a person has to judge: nothing in it may hide something else.
pub(crate) fn shown_text(text: &str, max: usize) -> (String, bool) {
    let mut shown = String::new();
    for char in text.chars() {
        let is_shown = matches!(char, '\n' | '\t') || !(char.is_control() || is_invisible(char));
        let escaped = if is_shown { char.to_string() } else { char.escape_unicode().to_string() };
        if shown.len() + escaped.len() > max {
            return (shown, true);
        }
        shown.push_str(&escaped);
    }
    (shown, false)
}

/// Characters that change the direction of the text around them, break its line, or take no room.
fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use bowline_proto::agent::event::RunId;

    use super::*;

    fn delta(block: &str, text: &str) -> Delta {
        Delta { run: Some(RunId(0)), block: block.into(), parent: None, delta: text.into() }
    }

    #[test]
    fn adjacent_deltas_of_a_block_are_one_event() {
        let text = |block, text| AgentEvent::Text(delta(block, text));
        let thinking = AgentEvent::Thinking(delta("a", "z"));
        let merged =
            merge_deltas(vec![text("a", "1"), text("a", "2"), thinking.clone(), text("a", "3"), text("b", "4")]);
        assert_eq!(merged, [text("a", "12"), thinking, text("a", "3"), text("b", "4")]);
    }

    #[test]
    fn long_deltas_are_split_between_characters() {
        let long = "\u{e9}".repeat(MAX_DELTA);
        let parts = merge_deltas(vec![AgentEvent::Text(delta("a", &long)), AgentEvent::Text(delta("a", "x"))]);
        let texts: Vec<&str> = parts
            .iter()
            .map(|event| match event {
                AgentEvent::Text(delta) => delta.delta.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts.concat(), format!("{long}x"));
        assert!(texts.iter().all(|text| text.len() <= MAX_DELTA && !text.is_empty()));
    }

    #[test]
    fn r52_nothing_in_a_shown_text_hides_something_else() {
        let shown = |text: &str| shown_text(text, 20);
        assert_eq!(shown("ls\n\t-l"), ("ls\n\t-l".to_owned(), false));
        assert_eq!(shown("rm\u{1b}[2K\r"), ("rm\\u{1b}[2K\\u{d}".to_owned(), false));
        assert_eq!(shown("a\u{202e}b"), ("a\\u{202e}b".to_owned(), false));
        assert_eq!(shown("\u{1b}\u{1b}\u{1b}; rm"), ("\\u{1b}\\u{1b}\\u{1b}; ".to_owned(), true), "escapes count");
    }

    #[test]
    fn r52_escape_sequences_and_control_characters_are_removed() {
        let plain = |bytes: &[u8]| plain_text(bytes, 20);
        assert_eq!(plain(b"\x1b[31mred\x1b[0m\tend\x07"), "red\tend");
        assert_eq!(plain(b"\x1b]0;title\x07after\x1b]8;;x\x1b\\"), "after\\");
        assert_eq!(plain(b"\x1b[31"), "");
        assert_eq!(plain(b"\xff\x00ok"), "\u{fffd}ok");
        assert_eq!(plain("\u{e9}".repeat(20).as_bytes()).len(), 20);
    }
}
