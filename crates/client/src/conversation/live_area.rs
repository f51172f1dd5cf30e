//! The last rows of the terminal, which are painted again whenever something changes. Lines that are final go above them,
//! and then belong to the terminal.
//!
//! Each painting overwrites the rows before erasing anything, in one write, so nothing flickers. Rows are narrower than the
//! window, so the terminal wraps none of them.

use std::io::Write;

use unicode_width::UnicodeWidthChar;

/// The rows on the terminal now.
#[derive(Debug, Default)]
pub(crate) struct LiveArea {
    rows: Vec<String>,
    /// The row and column of the cursor.
    cursor: (usize, usize),
    columns: usize,
}

impl LiveArea {
    /// Returns the bytes that print `above` and then show `rows`, with the cursor at this row and column. Empty if nothing
    /// changed. There must be fewer rows than the window has.
    pub(crate) fn paint(
        &mut self,
        above: &[String],
        rows: Vec<String>,
        cursor: (usize, usize),
        columns: usize,
    ) -> Vec<u8> {
        if above.is_empty() && rows == self.rows && cursor == self.cursor && columns == self.columns {
            return Vec::new();
        }
        let mut out = Vec::new();
        // A synchronized update, in terminals that support it; others ignore it.
        out.extend_from_slice(b"\x1b[?2026h\x1b[?25l");
        self.go_to_top(&mut out, columns);
        for line in above {
            let _ = write!(out, "{line}\x1b[K\r\n");
        }
        for (at, row) in rows.iter().enumerate() {
            let _ = write!(out, "{}{row}\x1b[K", if at > 0 { "\r\n" } else { "" });
        }
        out.extend_from_slice(b"\x1b[J\r");
        up(&mut out, rows.len().saturating_sub(1) - cursor.0.min(rows.len().saturating_sub(1)));
        if cursor.1 > 0 {
            let _ = write!(out, "\x1b[{}C", cursor.1);
        }
        out.extend_from_slice(b"\x1b[?25h\x1b[?2026l");
        *self = LiveArea { rows, cursor, columns };
        out
    }

    /// Returns the bytes that remove the rows, and leave the cursor where they began.
    pub(crate) fn clear(&mut self, columns: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.go_to_top(&mut out, columns);
        out.extend_from_slice(b"\x1b[J");
        *self = LiveArea::default();
        out
    }

    /// Forgets the rows: the terminal shows something else now.
    pub(crate) fn forget(&mut self) {
        *self = LiveArea::default();
    }

    /// Moves the cursor to the first row. If the window became narrower, the terminal has wrapped the rows.
    fn go_to_top(&self, out: &mut Vec<u8>, columns: usize) {
        let columns = columns.max(1);
        let height = |row: &String| display_width(row).div_ceil(columns).max(1);
        let above: usize = self.rows.iter().take(self.cursor.0).map(height).sum();
        up(out, above + self.cursor.1 / columns);
        out.push(b'\r');
    }
}

fn up(out: &mut Vec<u8>, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

/// The columns of a row, which may contain SGR sequences.
fn display_width(row: &str) -> usize {
    let mut is_escape = false;
    let mut width = 0;
    for c in row.chars() {
        match c {
            '\x1b' => is_escape = true,
            'm' if is_escape => is_escape = false,
            _ if is_escape => {}
            c => width += c.width().unwrap_or(0),
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use bowline_proto::size::Size;
    use bowline_session::screen::Screen;
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: u16 = 30;
    const ROWS: u16 = 10;

    fn screen() -> Screen {
        Screen::new(Size::new(COLUMNS.into(), ROWS.into()).unwrap(), 1000)
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    #[test]
    fn final_lines_scroll_up_and_the_rows_stay_below() {
        let (mut area, mut screen) = (LiveArea::default(), screen());
        screen.advance(&area.paint(&lines(&["one"]), lines(&["live", "> "]), (1, 2), 30));
        screen.advance(&area.paint(&lines(&["two", "three"]), lines(&["> x"]), (0, 3), 30));
        screen.advance(b"!");
        assert_eq!(screen.text(1000).trim_end(), "one\ntwo\nthree\n> x!");
    }

    #[test]
    fn nothing_is_written_if_nothing_changed() {
        let mut area = LiveArea::default();
        assert!(!area.paint(&[], lines(&["a"]), (0, 0), 30).is_empty());
        assert!(area.paint(&[], lines(&["a"]), (0, 0), 30).is_empty());
    }

    #[test]
    fn a_row_is_overwritten_before_anything_is_erased() {
        let mut area = LiveArea::default();
        area.paint(&[], lines(&["working", "> "]), (1, 2), 30);
        let bytes = area.paint(&[], lines(&["working harder", "> "]), (1, 2), 30);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.find("working harder").unwrap() < text.find("\x1b[K").unwrap(), "{text:?}");
        assert!(!text.contains("\x1b[2K") && !text.contains("\x1b[2J"), "{text:?}");
    }

    #[test]
    fn clearing_leaves_only_the_final_lines() {
        let (mut area, mut screen) = (LiveArea::default(), screen());
        screen.advance(&area.paint(&lines(&["one"]), lines(&["live", "> text"]), (1, 3), 30));
        screen.advance(&area.clear(30));
        screen.advance(b"next");
        assert_eq!(screen.text(1000).trim_end(), "one\nnext");
    }

    #[test]
    fn a_narrower_window_wraps_the_rows_and_they_are_still_replaced() {
        let (mut area, mut screen) = (LiveArea::default(), screen());
        let above: Vec<String> = (0..12).map(|line| format!("line {line}")).collect();
        screen.advance(&area.paint(&above, vec!["x".repeat(25), "> ".to_owned()], (1, 2), 30));
        screen.resize(Size::new(12, ROWS.into()).unwrap());
        screen.advance(&area.paint(&[], lines(&["short", "> "]), (1, 2), 12));
        assert_eq!(screen.text(1000).trim_end(), above.join("\n") + "\nshort\n>");
    }

    fn row() -> impl Strategy<Value = String> {
        "[a-c漢]{0,14}"
    }

    proptest! {
        #[test]
        fn the_screen_has_every_final_line_once_and_the_latest_rows(
            paintings in prop::collection::vec(
                (prop::collection::vec(row(), 0..5), prop::collection::vec(row(), 1..9), any::<prop::sample::Index>()), 1..20,
            ),
        ) {
            let (mut area, mut screen) = (LiveArea::default(), screen());
            let (mut expected, mut last) = (Vec::new(), Vec::new());
            for (above, rows, cursor) in paintings {
                let cursor = (cursor.index(rows.len()), 0);
                screen.advance(&area.paint(&above, rows.clone(), cursor, 30));
                expected.extend(above);
                last = rows;
            }
            expected.extend(last);
            let (shown, expected) = (screen.text(1000), expected.join("\n"));
            prop_assert_eq!(shown.trim_end(), expected.trim_end());
        }
    }
}
