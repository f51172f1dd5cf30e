//! Draws and erases a line on the bottom row in place, without scrolling or moving the cursor.
//!
//! The covered row is not saved; a repaint restores it. Saving the cursor overwrites the terminal's only slot for that,
//! which the same repaint restores.

use bowline_proto::size::Size;

/// Appends the escape sequences that draw `line` on the bottom row.
pub(crate) fn draw(line: &str, size: Size, out: &mut Vec<u8>) {
    begin(size, out);
    out.extend_from_slice(format!("\x1b[7m{}\x1b[m", fit(line, size.cols())).as_bytes());
    end(out);
}

/// Appends the escape sequences that blank the bottom row.
pub(crate) fn erase(size: Size, out: &mut Vec<u8>) {
    begin(size, out);
    end(out);
}

/// Cuts a line so that it never reaches the last column, where the terminal would wrap or scroll. Characters other than
/// printable ASCII become `?`, so that each takes one column.
pub(crate) fn fit(line: &str, cols: u16) -> String {
    let room = usize::from(cols.saturating_sub(1));
    line.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).take(room).collect()
}

/// Saves the cursor, blanks the bottom row and moves to its start, with origin mode, line drawing and colours off.
fn begin(size: Size, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\x1b7\x1b[?6l\x0f\x1b(B\x1b[m\x1b[{};1H\x1b[2K", size.rows()).as_bytes());
}

fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b8");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r6_a_line_stays_on_one_row() {
        let mut out = Vec::new();
        draw("[bowline: connection lost, retrying in 4s (attempt 3)]", Size::new(20, 5).unwrap(), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("\x1b7") && text.ends_with("\x1b8"));
        assert!(text.contains("\x1b[5;1H\x1b[2K\x1b[7m[bowline: connectio\x1b[m"));
        assert!(!text.contains('\n'));
        assert_eq!(fit("a\x1bé\nb", 80), "a???b");
    }
}
