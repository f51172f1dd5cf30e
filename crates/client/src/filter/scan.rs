//! Fast scans for the few bytes in a text that may start, end or interrupt a sequence.

/// The index, from `from` on, of the first byte that may start a sequence: ENQ, ESC, or the first byte of a C1 control in
/// UTF-8. The length of `input` if there is none.
pub(super) fn next_special(input: &[u8], from: usize) -> usize {
    let mut at = from;
    // Whole blocks first: the fold has no branches, so it compiles to a few vector instructions.
    for block in input[from..].chunks_exact(BLOCK) {
        if block.iter().fold(false, |any, b| any | special(*b)) {
            break;
        }
        at += BLOCK;
    }
    input[at..].iter().position(|b| special(*b)).map_or(input.len(), |i| at + i)
}

const BLOCK: usize = 32;

fn special(byte: u8) -> bool {
    (byte == 0x05) | (byte == 0x1b) | (byte == 0xc2)
}

/// The length of the control sequence at the start of `input` if it is a common one that is neither a query nor a
/// lasting change: colours, cursor movement, erasing, inserting. 0 for any other sequence, or an incomplete one.
pub(super) fn plain_sequence(input: &[u8]) -> usize {
    let Some(body) = input.strip_prefix(b"\x1b[") else { return 0 };
    match body.iter().take(64).position(|b| !matches!(b, b'0'..=b';')) {
        Some(len) if matches!(body[len], b'@'..=b'H' | b'J'..=b'M' | b'P' | b'X' | b'd' | b'f' | b'm') => len + 3,
        _ => 0,
    }
}

/// How many bytes at the start of `input` are plain string data, which cannot end or interrupt the string.
pub(super) fn string_data(input: &[u8]) -> usize {
    let plain = |b: &u8| !matches!(b, 0x05 | 0x07 | 0x18 | 0x1a | 0x1b | 0xc2);
    input.iter().position(|b| !plain(b)).unwrap_or(input.len())
}

/// Guesses whether the cursor of a terminal that read `tail` is in the first column.
pub(super) fn ends_at_line_start(tail: &[u8]) -> bool {
    let (mut at_start, mut rest) = (false, tail);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.first()) {
            (0x1b, Some(b'[')) => {
                let end = after.iter().skip(1).position(|b| (0x40..=0x7e).contains(b)).map_or(after.len(), |at| at + 2);
                let params = &after[1..end.saturating_sub(1).max(1)];
                let column = params.split(|b| *b == b';').nth(1).unwrap_or_default();
                match after[end - 1] {
                    b'H' | b'f' => at_start = matches!(column, b"" | b"1"),
                    b'G' => at_start = matches!(params, b"" | b"1"),
                    b'C' | b'D' => at_start = false,
                    _ => {}
                }
                rest = &after[end..];
            }
            (0x1b, Some(b']')) => {
                let end = after.iter().position(|b| matches!(b, 0x07 | 0x1b)).unwrap_or(after.len());
                rest = &after[end..];
            }
            (0x1b, Some(_)) => rest = &after[1..],
            (b'\r', _) => at_start = true,
            (0x20..=0xff, _) => at_start = false,
            _ => {}
        }
    }
    at_start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specials_are_found_in_blocks_and_tails() {
        let mut text = vec![b'x'; 100];
        assert_eq!(next_special(&text, 0), 100);
        for at in [0, 31, 32, 70, 99] {
            text[at] = 0x1b;
            assert_eq!(next_special(&text, 0), at);
            assert_eq!(next_special(&text, at), at);
            text[at] = b'x';
        }
    }

    #[test]
    fn the_cursor_column_is_guessed_from_the_tail() {
        for (tail, at_start) in [
            ("bye\r\n", true),
            ("bye", false),
            ("bye\x1b]2;title\x1b\\\x1b[2H", true),
            ("\x1b[2;5H", false),
            ("x\r\n\x1b[?2004h\x1b[m", true),
            ("\x1b[", false),
            ("", false),
        ] {
            assert_eq!(ends_at_line_start(tail.as_bytes()), at_start, "{tail:?}");
        }
    }
}
