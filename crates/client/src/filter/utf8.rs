//! Makes a session's output valid UTF-8 before it is filtered.
//!
//! Some terminals read bytes that are not valid UTF-8 as Latin-1, where 0x80 to 0x9f are controls: 0x9b starts a control
//! sequence. The terminal gets instead what the session's own screen shows for such bytes, so that no terminal sees a
//! control in them, and none that the filter does not see.

use std::borrow::Cow;

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// The streaming repair.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    /// The start of a character whose rest has not arrived: at most three bytes.
    partial: Vec<u8>,
}

impl Utf8 {
    /// Returns the input with bytes from 0x80 to 0x9f that belong to no character removed, and anything else that is not
    /// UTF-8 replaced by U+FFFD.
    pub(super) fn repair<'a>(&mut self, input: &'a [u8]) -> Cow<'a, [u8]> {
        let mut bytes = Cow::Borrowed(input);
        if !self.partial.is_empty() {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(input);
            bytes = Cow::Owned(joined);
        }
        if std::str::from_utf8(&bytes).is_ok() {
            return bytes;
        }
        let (mut text, mut rest) = (Vec::with_capacity(bytes.len()), &bytes[..]);
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            text.extend_from_slice(valid);
            let Some(len) = error.error_len() else {
                self.partial = invalid.to_vec();
                return Cow::Owned(text);
            };
            if !matches!(invalid[0], 0x80..=0x9f) {
                text.extend_from_slice(REPLACEMENT);
            }
            rest = &invalid[len..];
        }
        text.extend_from_slice(rest);
        Cow::Owned(text)
    }

    /// Forgets an unfinished character: the next input does not continue it.
    pub(super) fn reset(&mut self) {
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_character_reach_the_terminal_neither_alone_nor_in_pieces() {
        for (input, expected) in [
            (&b"caf\xc3\xa9"[..], "café"),
            (b"a\x9b31mb", "a31mb"),
            (b"a\x90\x9db\xff", "ab\u{fffd}"),
            (b"\xe2\x90A", "\u{fffd}A"),
            (b"\xe2\x9c\x93\xe2\x9c", "✓"),
            (b"\xc2\x9b31m", "\u{9b}31m"),
        ] {
            assert_eq!(Utf8::default().repair(input), expected.as_bytes(), "{input:?}");
            let mut utf8 = Utf8::default();
            let bytes: Vec<u8> = input.iter().flat_map(|byte| utf8.repair(&[*byte]).into_owned()).collect();
            assert_eq!(bytes, expected.as_bytes(), "{input:?}, byte by byte");
        }
    }
}
