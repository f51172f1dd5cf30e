//! The text that the user is typing: editing keys, earlier texts, and how it is shown.

use bowline_proto::agent::command::MAX_COMMAND;
use unicode_width::UnicodeWidthChar;

use super::key_reader::Key;
use crate::escape::rearranges;

/// The longest text in bytes. Even if JSON escapes make it twice as long, it fits a command.
const MAX_TEXT: usize = MAX_COMMAND / 2 - 1024;
/// How many earlier texts are kept; older ones are dropped.
const MAX_EARLIER: usize = 100;
/// Columns of a tab.
const TAB: &str = "    ";

/// A text with a cursor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// A byte offset in `text`, between two characters.
    cursor: usize,
    /// Texts that were sent before, oldest first.
    earlier: Vec<String>,
    /// Which of `earlier` is shown, and what was typed before that.
    recalled: Option<(usize, String)>,
}

/// The text was not inserted, because it would be too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("that text is too long to send (limit {} KB)", MAX_TEXT / 1000)]
pub(crate) struct TooLong;

/// An editor as rows of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditorRows {
    pub(crate) rows: Vec<String>,
    /// The row and column of the cursor.
    pub(crate) cursor: (usize, usize),
}

impl Editor {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether there is nothing but white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Takes the text, and remembers it among the earlier ones.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        (self.cursor, self.recalled) = (0, None);
        self.remember(&text);
        text
    }

    /// Adds an earlier text, which the user can get back.
    pub(crate) fn remember(&mut self, text: &str) {
        // It may be another client's.
        let text = without_controls(text);
        if !text.trim().is_empty() && self.earlier.last().is_none_or(|last| *last != text) {
            self.earlier.push(text);
            if self.earlier.len() > MAX_EARLIER {
                self.earlier.remove(0);
            }
        }
    }

    /// Puts a text back that was taken, in the place of what is there.
    pub(crate) fn restore(&mut self, text: String) {
        (self.cursor, self.text) = (text.len(), text);
    }

    /// Removes the text. The user can get it back.
    pub(crate) fn clear(&mut self) {
        self.take();
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Handles a key that edits. Other keys, such as Enter, change nothing.
    pub(crate) fn handle_key(&mut self, key: &Key) -> Result<(), TooLong> {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4]))?,
            Key::Paste(text) => self.insert(text)?,
            Key::NewLine => self.insert("\n")?,
            Key::Backspace | Key::Ctrl('h') => self.delete_to(self.left()),
            Key::Delete | Key::Ctrl('d') => self.delete_to(self.right()),
            Key::DeleteWord | Key::Ctrl('w') => self.delete_to(self.word_left()),
            Key::Ctrl('u') => self.delete_to(self.line_start()),
            Key::Ctrl('k') => self.delete_to(self.line_end()),
            Key::Left | Key::Ctrl('b') => self.cursor = self.left(),
            Key::Right | Key::Ctrl('f') => self.cursor = self.right(),
            Key::WordLeft => self.cursor = self.word_left(),
            Key::WordRight => self.cursor = self.word_right(),
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(),
            Key::End | Key::Ctrl('e') => self.cursor = self.line_end(),
            Key::Up | Key::Ctrl('p') => self.up(),
            Key::Down | Key::Ctrl('n') => self.down(),
            Key::Enter | Key::Tab | Key::Escape | Key::Ctrl(_) => {}
        }
        Ok(())
    }

    /// Inserts a text at the cursor, without control characters other than line breaks and tabs.
    fn insert(&mut self, text: &str) -> Result<(), TooLong> {
        let text = without_controls(text);
        if self.text.len() + text.len() > MAX_TEXT {
            return Err(TooLong);
        }
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        Ok(())
    }

    fn delete_to(&mut self, other: usize) {
        let (start, end) = (self.cursor.min(other), self.cursor.max(other));
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }

    /// The cursor one character to the left. Characters without a width, such as accents, belong to the one before.
    fn left(&self) -> usize {
        let before = self.text[..self.cursor].char_indices().rev();
        before.into_iter().find(|(_, c)| !is_attached(*c)).map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        let after = self.text[self.cursor..].char_indices().skip(1);
        after.into_iter().find(|(_, c)| !is_attached(*c)).map_or(self.text.len(), |(at, _)| self.cursor + at)
    }

    fn word_left(&self) -> usize {
        let before = self.text[..self.cursor].trim_end_matches(|c: char| !c.is_alphanumeric());
        before.trim_end_matches(char::is_alphanumeric).len()
    }

    fn word_right(&self) -> usize {
        let after = self.text[self.cursor..].trim_start_matches(|c: char| !c.is_alphanumeric());
        self.text.len() - after.trim_start_matches(char::is_alphanumeric).len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// One line up, or from the first line to the text before.
    fn up(&mut self) {
        if self.line_start() > 0 {
            let column = self.text[self.line_start()..self.cursor].chars().count();
            self.cursor = self.line_start() - 1;
            self.move_to_column(column);
            return;
        }
        let at = self.recalled.as_ref().map_or(self.earlier.len(), |(at, _)| *at);
        if let Some(text) = at.checked_sub(1).and_then(|at| self.earlier.get(at)).cloned() {
            let shown = std::mem::replace(&mut self.text, text);
            let draft = self.recalled.take().map_or(shown, |(_, draft)| draft);
            self.recalled = Some((at - 1, draft));
            self.cursor = self.text.len();
        }
    }

    /// One line down, or from the last line to the text after.
    fn down(&mut self) {
        if self.line_end() < self.text.len() {
            let column = self.text[self.line_start()..self.cursor].chars().count();
            self.cursor = self.line_end() + 1;
            self.move_to_column(column);
            return;
        }
        if let Some((at, draft)) = self.recalled.take() {
            match self.earlier.get(at + 1).cloned() {
                Some(text) => {
                    self.recalled = Some((at + 1, draft));
                    self.text = text;
                }
                None => self.text = draft,
            }
            self.cursor = self.text.len();
        }
    }

    /// Moves to this character of the cursor's line, or to the end of a shorter one.
    fn move_to_column(&mut self, column: usize) {
        let (start, end) = (self.line_start(), self.line_end());
        self.cursor = self.text[start..end].char_indices().nth(column).map_or(end, |(at, _)| start + at);
    }

    /// The text in rows of at most `width` columns, the first one after `label`; at most `max_rows` of them, around the
    /// cursor.
    pub(crate) fn rows(&self, label: &str, width: usize, max_rows: usize) -> EditorRows {
        let indent = display_width(label);
        let mut rows = vec![label.to_owned()];
        let (mut column, mut cursor) = (indent, (0, indent));
        for (at, c) in self.text.char_indices() {
            if at == self.cursor {
                cursor = (rows.len() - 1, column);
            }
            let shown = if c == '\n' { String::new() } else { shown(c) };
            let shown_width = display_width(&shown);
            if c == '\n' || column + shown_width > width {
                rows.push(" ".repeat(indent));
                column = indent;
                if at == self.cursor && c != '\n' {
                    cursor = (rows.len() - 1, column);
                }
            }
            if let Some(row) = rows.last_mut() {
                row.push_str(&shown);
            }
            column += shown_width;
        }
        if self.cursor == self.text.len() {
            if column >= width {
                rows.push(" ".repeat(indent));
                column = indent;
            }
            cursor = (rows.len() - 1, column);
        }
        let first = (cursor.0 + 1).saturating_sub(max_rows.max(1));
        let rows: Vec<String> = rows.into_iter().skip(first).take(max_rows.max(1)).collect();
        // Before an accent, the cursor may be right of a full row.
        EditorRows { rows, cursor: (cursor.0 - first, cursor.1.min(width.saturating_sub(1))) }
    }
}

fn without_controls(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Whether a character is shown with the one before it.
fn is_attached(c: char) -> bool {
    !c.is_control() && !rearranges(c) && c.width() == Some(0)
}

/// A character as it is shown: characters that rearrange text are visible.
fn shown(c: char) -> String {
    match c {
        '\t' => TAB.to_owned(),
        c if rearranges(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    }
}

fn display_width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn editor(text: &str, keys: &[Key]) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text).unwrap();
        for key in keys {
            editor.handle_key(key).unwrap();
        }
        editor
    }

    /// The text with `|` at the cursor.
    fn shown(editor: &Editor) -> String {
        format!("{}|{}", &editor.text[..editor.cursor], &editor.text[editor.cursor..])
    }

    fn edited(text: &str, keys: &[Key]) -> String {
        shown(&editor(text, keys))
    }

    #[test]
    fn keys_edit_as_in_a_shell() {
        use Key::*;
        assert_eq!(edited("one two", &[Left, Backspace, Char('w')]), "one tw|o");
        assert_eq!(edited("one two", &[Ctrl('a'), Delete, Ctrl('d')]), "|e two");
        assert_eq!(edited("one two three", &[WordLeft, WordLeft, DeleteWord]), "|two three");
        assert_eq!(edited("one two three", &[WordLeft, Ctrl('w')]), "one |three");
        assert_eq!(edited("one two", &[Home, WordRight, Ctrl('k')]), "one|");
        assert_eq!(edited("one\ntwo", &[Ctrl('u'), Char('x')]), "one\nx|");
        assert_eq!(edited("one\ntwo", &[Ctrl('k'), Home, Left, Home]), "|one\ntwo");
        assert_eq!(edited("long line\nx", &[Up, Ctrl('k')]), "l|\nx");
        assert_eq!(edited("e\u{301}x", &[Left, Left, Delete]), "|x", "an accent belongs to its letter");
        assert_eq!(edited("", &[Backspace, Delete, Left, Right, Up, Down, WordLeft, WordRight]), "|");
    }

    #[test]
    fn earlier_texts_come_back_and_so_does_what_was_typed() {
        let mut editor = Editor::default();
        for text in ["one", "two", "two", "  "] {
            editor.insert(text).unwrap();
            assert_eq!(editor.take(), text);
        }
        editor.insert("draft").unwrap();
        let mut pressed = |key| {
            editor.handle_key(&key).unwrap();
            shown(&editor)
        };
        assert_eq!(pressed(Key::Up), "two|");
        assert_eq!(pressed(Key::Up), "one|");
        assert_eq!(pressed(Key::Up), "one|");
        assert_eq!(pressed(Key::Down), "two|");
        assert_eq!(pressed(Key::Down), "draft|");
        assert_eq!(pressed(Key::Down), "draft|");
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_as_a_whole() {
        let mut editor = editor("kept", &[]);
        assert_eq!(editor.handle_key(&Key::Paste("x".repeat(MAX_TEXT))), Err(TooLong));
        assert_eq!(shown(&editor), "kept|");
    }

    #[test]
    fn control_characters_of_a_paste_are_left_out_and_others_are_visible() {
        let editor = editor("", &[Key::Paste("a\x1b[2J\u{9b}\tb\u{202e}\u{200e}".to_owned())]);
        assert_eq!(editor.text, "a[2J\tb\u{202e}\u{200e}");
        assert_eq!(editor.rows("> ", 80, 5).rows, ["> a[2J    b\\u202e\\u200e"]);
    }

    #[test]
    fn r52_control_characters_of_earlier_texts_are_left_out() {
        let mut editor = Editor::default();
        editor.remember("say \x1b]0;owned\x07");
        editor.handle_key(&Key::Up).unwrap();
        assert_eq!(editor.rows("> ", 80, 5).rows, ["> say ]0;owned"]);
    }

    #[test]
    fn a_text_that_was_cleared_can_be_got_back() {
        let mut editor = editor("lost?", &[]);
        editor.clear();
        editor.handle_key(&Key::Up).unwrap();
        assert_eq!(shown(&editor), "lost?|");
    }

    #[test]
    fn rows_wrap_by_width_and_follow_the_cursor() {
        let rows = |text: &str, keys: &[Key], max| editor(text, keys).rows("> ", 6, max);
        assert_eq!(rows("abcdef", &[], 9), EditorRows { rows: vec!["> abcd".into(), "  ef".into()], cursor: (1, 4) });
        assert_eq!(rows("abcd", &[], 9).cursor, (1, 2), "the cursor never stands right of the width");
        assert_eq!(rows("漢字漢", &[], 9).rows, ["> 漢字", "  漢"]);
        assert_eq!(rows("a\nb", &[Key::Up, Key::Home], 9).cursor, (0, 2));
        assert_eq!(rows("1\n2\n3\n4", &[], 2), EditorRows { rows: vec!["  3".into(), "  4".into()], cursor: (1, 3) });
        assert_eq!(rows("1\n2\n3\n4", &[Key::Up, Key::Up, Key::Up], 2).rows, ["> 1", "  2"]);
    }

    fn any_key() -> impl Strategy<Value = Key> {
        prop_oneof![
            any::<char>().prop_map(Key::Char),
            "[a\n\t漢e\u{301} ]{0,12}".prop_map(Key::Paste),
            prop::sample::select(vec![
                Key::NewLine,
                Key::Backspace,
                Key::Delete,
                Key::DeleteWord,
                Key::Left,
                Key::Right,
                Key::WordLeft,
                Key::WordRight,
                Key::Up,
                Key::Down,
                Key::Home,
                Key::End,
                Key::Ctrl('u'),
                Key::Ctrl('k'),
                Key::Ctrl('w'),
            ]),
        ]
    }

    proptest! {
        #[test]
        fn any_keys_leave_a_valid_cursor_and_rows_that_fit(
            keys in prop::collection::vec(any_key(), 0..60), width in 12usize..40, max in 1usize..8, take in 0usize..60,
        ) {
            let mut editor = Editor::default();
            for (at, key) in keys.iter().enumerate() {
                editor.handle_key(key).unwrap();
                if at == take {
                    editor.take();
                }
                prop_assert!(editor.text.is_char_boundary(editor.cursor));
                let EditorRows { rows, cursor } = editor.rows("> ", width, max);
                prop_assert!(rows.len() <= max && cursor.0 < rows.len() && cursor.1 < width.max(3), "{rows:?} {cursor:?}");
                prop_assert!(rows.iter().all(|row| display_width(row) <= width), "{rows:?}");
            }
        }
    }
}
