//! Paints the session's screen into a window of another size: the part around the cursor that fits.
//!
//! Output made for one width cannot be replayed at another: lines wrap elsewhere, and cursor positions are wrong. So
//! while another viewer owns the size, the whole screen is fetched as cells, cropped or padded, and painted with
//! absolute positions above a status line. Nothing scrolls, so nothing enters the terminal's own scrollback.

use std::fmt::Write;

use bowline_proto::size::Size;
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use crate::bottom_row;

/// Appends the escape sequences that paint `screen` (the JSON of `bowline screen`), with `line` on the bottom row.
pub(crate) fn paint(screen: &Value, line: &str, window: Size, out: &mut Vec<u8>) {
    // A server may send any number; this bound is far beyond every screen, and nothing overflows below it.
    let number = |value: &Value| value.as_u64().map_or(0, |n| n.min(u32::MAX.into()) as usize);
    let (rows, cols) = (usize::from(window.rows().saturating_sub(1)).max(1), usize::from(window.cols()));
    let cursor = &screen["cursor"];
    let (cursor_row, cursor_col) = (number(&cursor["row"]), number(&cursor["col"]));
    // Show the part with the cursor, starting at the top left corner if possible.
    let (top, left) = ((cursor_row + 1).saturating_sub(rows), (cursor_col + 1).saturating_sub(cols));
    let skipped = number(&screen["scrollback"]) + top;
    let lines = screen["lines"].as_array().map_or(&[][..], Vec::as_slice);

    let mut text = String::from("\x1b[?25l\x1b[r\x1b[?6l\x1b[?7l\x1b[4l\x0f\x1b(B\x1b[m");
    for row in 0..rows {
        let _ = write!(text, "\x1b[{};1H\x1b[2K", row + 1);
        if let Some(line) = lines.get(skipped + row) {
            paint_row(line, left, cols, &mut text);
        }
    }
    if window.rows() > 1 {
        let _ = write!(text, "\x1b[{};1H\x1b[2K\x1b[7m{}\x1b[m", window.rows(), bottom_row::fit(line, window.cols()));
    }
    let _ = write!(text, "\x1b[{};{}H", cursor_row - top + 1, cursor_col - left + 1);
    if cursor["visible"] == true {
        text.push_str("\x1b[?25h");
    }
    out.extend_from_slice(text.as_bytes());
}

/// Appends the cells of a row from column `left`, as many as fit.
fn paint_row(line: &Value, left: usize, cols: usize, text: &mut String) {
    let mut col = 0;
    for span in line["spans"].as_array().map_or(&[][..], Vec::as_slice) {
        text.push_str(&attributes(span));
        for c in span["text"].as_str().unwrap_or_default().chars().filter(|c| !c.is_control()) {
            let width = c.width().unwrap_or(0);
            if col + width > left + cols {
                break;
            }
            if col >= left {
                text.push(c);
            } else if col + width > left {
                // Only the right half of a wide character is visible.
                text.push(' ');
            }
            col += width;
        }
    }
    text.push_str("\x1b[m");
}

/// The escape sequence that sets exactly a span's attributes.
fn attributes(span: &Value) -> String {
    let mut codes = String::from("\x1b[0");
    let names = [("bold", 1), ("dim", 2), ("italic", 3), ("blink", 5), ("inverse", 7), ("hidden", 8), ("strike", 9)];
    for (_, code) in names.iter().filter(|(name, _)| span[*name] == true) {
        let _ = write!(codes, ";{code}");
    }
    if span["underline"].is_string() {
        codes.push_str(";4");
    }
    for (name, code) in [("fg", 38), ("bg", 48)] {
        match &span[name] {
            Value::Number(index) => {
                // Not a fraction, whose exponent would end the sequence.
                if let Some(index) = index.as_u64() {
                    let _ = write!(codes, ";{code};5;{index}");
                }
            }
            Value::String(hex) => {
                if let Some([r, g, b]) = channels(hex) {
                    let _ = write!(codes, ";{code};2;{r};{g};{b}");
                }
            }
            _ => {}
        }
    }
    codes.push('m');
    codes
}

/// Parses `#rrggbb`.
fn channels(hex: &str) -> Option<[u8; 3]> {
    let number = u32::from_str_radix(hex.strip_prefix('#').filter(|digits| digits.len() == 6)?, 16).ok()?;
    let [_, r, g, b] = number.to_be_bytes();
    Some([r, g, b])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_session::screen::Screen;

    fn size(cols: u32, rows: u32) -> Size {
        Size::new(cols, rows).unwrap()
    }

    fn json(screen: &mut Screen) -> Value {
        serde_json::from_str(&screen.json(0)).unwrap()
    }

    /// The rows of a window that mirrors a session after `output`.
    fn mirrored(output: &str, session: Size, window: Size) -> Vec<String> {
        let (mut source, mut mirror, mut out) = (Screen::new(session, 100), Screen::new(window, 100), Vec::new());
        source.advance(output.as_bytes());
        mirror.advance(b"\x1b[3;4r\x1b[?6htext that was there before");
        paint(&json(&mut source), "[line]", window, &mut out);
        mirror.advance(&out);
        let mut rows: Vec<String> = mirror.text(0).lines().map(str::to_owned).collect();
        rows.resize(usize::from(window.rows()), String::new());
        rows
    }

    #[test]
    fn r23_a_smaller_session_is_padded() {
        assert_eq!(mirrored("one\r\ntwo", size(10, 3), size(20, 5)), ["one", "two", "", "", "[line]"]);
    }

    #[test]
    fn r23_a_larger_session_is_cropped_around_its_cursor() {
        assert_eq!(mirrored("a\r\nb\r\nc\r\nd\r\ne", size(10, 6), size(10, 3)), ["d", "e", "[line]"]);
        assert_eq!(mirrored("0123456789abcdef", size(20, 2), size(10, 3)), ["789abcdef", "", "[line]"]);
        assert_eq!(mirrored("0123456789abcdef\r", size(20, 2), size(10, 3)), ["0123456789", "", "[line]"]);
        assert_eq!(mirrored("x中文\r", size(20, 2), size(4, 3)), ["x中", "", "[li"]);
    }

    #[test]
    fn a_hostile_screen_paints_only_text() {
        let screen = |row: u64| {
            serde_json::json!({
                "cursor": { "row": row, "col": row, "visible": true },
                "scrollback": row,
                "lines": [{ "spans": [{ "text": "a\x1b]0;t\x07\u{9b}c", "fg": 1e300, "bg": "#1;2m\x1b" }] }],
            })
        };
        let (mut far, mut out) = (Vec::new(), Vec::new());
        paint(&screen(u64::MAX), "\x1b]0;t\x07", size(10, 3), &mut far);
        paint(&screen(0), "\x1b]0;t\x07", size(10, 3), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\x1b[0ma]0;tc\x1b[m") && text.contains("\x1b[7m?]0;t?\x1b[m"), "{text:?}");
    }

    #[test]
    fn colours_and_cursor_are_kept() {
        let (mut source, mut mirror, mut out) = (Screen::new(size(10, 2), 0), Screen::new(size(12, 4), 0), Vec::new());
        source.advance(b"\x1b[1;31mred\x1b[48;2;1;2;3mrgb\x1b[m\r\nx");
        paint(&json(&mut source), "", size(12, 4), &mut out);
        mirror.advance(&out);
        let (source, mirror) = (json(&mut source), json(&mut mirror));
        assert_eq!(source["lines"][0]["spans"], mirror["lines"][0]["spans"]);
        assert_eq!(source["cursor"], mirror["cursor"]);
    }
}
