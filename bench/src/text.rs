//! The coloured text that the programs print. It looks like the output of a build, and is the same in every run.

use std::collections::VecDeque;
use std::fmt::Write as _;

use crate::pty::COLS;

/// The mark that the shell prints after the text, so that a reader knows its end. No text contains an `@`.
pub(crate) fn mark(round: u32) -> String {
    format!("@END{round}@")
}

/// At least `size` bytes of lines, in 16 colours, 256 colours and true colour, with some non-ASCII letters.
pub(crate) fn coloured(size: usize) -> Vec<u8> {
    const STATES: [(&str, &str); 5] =
        [("32", "ok"), ("1;31", "error"), ("33", "warning"), ("36", "note"), ("1;38;2;120;200;80", "built")];
    const PATHS: [&str; 6] =
        ["src/link/server.rs", "src/écran.rs", "tests/résumé.rs", "bench/main.rs", "docs/größe.md", "src/log → ring"];
    let (mut out, mut random, mut line) = (String::with_capacity(size + 256), 0x2545_f491_4f6c_dd1d_u64, 0u32);
    while out.len() < size {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        line += 1;
        let (colour, state) = STATES[random as usize % STATES.len()];
        let path = PATHS[(random >> 8) as usize % PATHS.len()];
        let (row, column, shade) = (random >> 16 & 0x3ff, random >> 26 & 0x3f, 16 + (random >> 32 & 0xbf));
        let _ = write!(out, "\x1b[2m{line:07}\x1b[0m \x1b[{colour}m{state:>7}\x1b[0m {path}:{row}:{column} ");
        let _ = write!(out, "\x1b[38;5;{shade}mstep {:04x}\x1b[0m", random >> 40 & 0xffff);
        // Every fourth line is longer than the terminal is wide.
        if line.is_multiple_of(4) {
            let _ = write!(out, " │ expected `\x1b[1mOffset\x1b[0m`, found `\x1b[4;35mSize\x1b[0m` in this call");
        }
        out.push('\n');
    }
    out.into_bytes()
}

/// `count` lines that fit in one row each.
pub(crate) fn short_lines(count: usize) -> Vec<u8> {
    let text = coloured(count * 256);
    let short = text.split_inclusive(|b| *b == b'\n').enumerate().filter(|(n, _)| n % 4 != 3).map(|(_, line)| line);
    short.take(count).flatten().copied().collect()
}

/// The text as a PTY outputs it: with a carriage return before each line feed.
pub(crate) fn as_printed(text: &[u8]) -> Vec<u8> {
    let mut printed = Vec::with_capacity(text.len() + text.len() / 32);
    for line in text.split_inclusive(|b| *b == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => printed.extend_from_slice(&[line, b"\r\n"].concat()),
            None => printed.extend_from_slice(line),
        }
    }
    printed
}

/// The bytes in a minimal rendering of the last `rows` rows of `text`: characters, changes of colour, and line ends.
pub(crate) fn rendered_len(text: &[u8], rows: usize) -> usize {
    let mut last_rows: VecDeque<Row> = VecDeque::from([Row::default()]);
    let (mut style, mut column) = (String::new(), 0);
    let text = String::from_utf8_lossy(text);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let full = column == usize::from(COLS) && c != '\n' && c != '\x1b';
        if c == '\n' || full {
            if let Some(row) = last_rows.back_mut() {
                row.wraps = full;
            }
            last_rows.push_back(Row::default());
            if last_rows.len() > rows {
                last_rows.pop_front();
            }
            column = 0;
        }
        match c {
            '\n' => {}
            '\x1b' => {
                let sequence: String = chars.by_ref().skip(1).take_while(|c| *c != 'm').collect();
                style = if sequence == "0" { String::new() } else { sequence };
            }
            c => {
                column += 1;
                let row = last_rows.back_mut();
                if let Some(row) = row {
                    row.cells.push((style.clone(), c));
                }
            }
        }
    }
    render(&last_rows).len()
}

#[derive(Debug, Default)]
struct Row {
    cells: Vec<(String, char)>,
    wraps: bool,
}

fn render(rows: &VecDeque<Row>) -> String {
    let (mut out, mut style) = (String::new(), "");
    for (n, row) in rows.iter().enumerate() {
        for (wanted, c) in &row.cells {
            if wanted != style {
                let separator = if wanted.is_empty() || style.is_empty() { "" } else { "0;" };
                let _ = write!(out, "\x1b[{separator}{wanted}m");
                style = wanted;
            }
            out.push(*c);
        }
        if !row.wraps && n + 1 < rows.len() {
            out.push_str("\r\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendering_has_each_change_of_colour_once() {
        let text = b"lost\nplain \x1b[31m\x1b[32mgreen\x1b[0m \x1b[0mplain\nend";
        assert_eq!(rendered_len(text, 2), "plain \x1b[32mgreen\x1b[m plain\r\nend".len());
        let long = [b"x".repeat(81), b"\ny".to_vec()].concat();
        assert_eq!(rendered_len(&long, 9), 81 + 3);
        assert_eq!(rendered_len(&long, 2), 1 + 3);
    }

    #[test]
    fn the_text_contains_no_mark() {
        let text = coloured(100_000);
        assert!(!text.contains(&b'@') && text.ends_with(b"\n"));
        let lines = short_lines(1000);
        assert_eq!(lines.iter().filter(|b| **b == b'\n').count(), 1000);
        assert_eq!(rendered_len(&lines, 5000), rendered_len(&lines, 1001));
    }
}
