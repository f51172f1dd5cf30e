//! Turns bytes that were read from the terminal into keys of the prompt editor.
//!
//! Control keys arrive as one byte, as kitty's `CSI 99;5u` or as xterm's `CSI 27;5;99~`; all three are understood, split at
//! any byte. Escape alone is a key, and the beginning of others, so it waits a moment for the rest.

use std::time::Duration;

use crate::keys::MAX_KEY;

/// How long the rest of a key may take that begins with Escape.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);
/// How long the rest of a paste may take. A connection may have lost its end, and keys must work again. What follows may
/// still be the rest, until nothing came for this long, and then one key alone.
const PASTE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest paste in bytes; the rest of a longer one is dropped. More than the editor accepts, so that it can say so.
const MAX_PASTE: usize = 1 << 20;
/// What ends a bracketed paste.
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key, or a pasted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// A character with Ctrl, in lower case. Never one that has a name below.
    Ctrl(char),
    Paste(String),
    Enter,
    /// A new line in the text: Alt-Enter, Shift-Enter or Ctrl-J.
    NewLine,
    Tab,
    Escape,
    Backspace,
    Delete,
    /// Backspace with Alt.
    DeleteWord,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
}

/// Reads keys, across reads of the terminal.
#[derive(Debug, Default)]
pub(crate) struct KeyReader {
    /// An incomplete key: a part of a character or of a sequence.
    held: Vec<u8>,
    /// When a held Escape becomes a key of its own, or a paste ends that has no end.
    due: Option<Duration>,
    /// The text of the paste that is arriving, with as much of its end as has arrived.
    paste: Option<Vec<u8>>,
    /// Set while a paste was ended without its end: when that was, or when what may be a part of it arrived last. Enter does
    /// not send it.
    rest: Option<Duration>,
}

impl KeyReader {
    /// Takes bytes from the terminal, and returns the keys that are complete.
    pub(crate) fn handle_input(&mut self, input: &[u8], now: Duration) -> Vec<Key> {
        let mut keys = Vec::new();
        self.rest.take_if(|last| now >= *last + PASTE_TIMEOUT && is_one_key(input));
        for &byte in input {
            let before = keys.len();
            self.step(byte, &mut keys);
            if self.rest.is_some() {
                keys[before..].iter_mut().filter(|key| **key == Key::Enter).for_each(|key| *key = Key::NewLine);
            }
        }
        self.rest = self.rest.map(|_| now);
        self.due = match (&self.paste, self.held.first()) {
            (Some(_), _) => Some(now + PASTE_TIMEOUT),
            (None, Some(0x1b)) => Some(now + ESCAPE_TIMEOUT),
            (None, _) => None,
        };
        keys
    }

    /// Whether the end of a paste is missing, so that Enter sends nothing until there was a pause.
    pub(crate) fn is_paste_incomplete(&self) -> bool {
        self.rest.is_some()
    }

    /// When to call [`handle_timeout`](KeyReader::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        self.due
    }

    /// Time has passed: an Escape without more is a key, and a paste without an end is over.
    pub(crate) fn handle_timeout(&mut self, now: Duration) -> Option<Key> {
        self.due.take_if(|at| *at <= now)?;
        if let Some(paste) = self.paste.take() {
            self.rest = Some(now);
            return Some(Key::Paste(pasted_text(&paste)));
        }
        let is_escape = self.held == [0x1b];
        self.held.clear();
        is_escape.then_some(Key::Escape)
    }

    fn step(&mut self, byte: u8, keys: &mut Vec<Key>) {
        if let Some(paste) = &mut self.paste {
            paste.push(byte);
            if paste.ends_with(PASTE_END) {
                paste.truncate(paste.len() - PASTE_END.len());
                keys.push(Key::Paste(pasted_text(paste)));
                self.paste = None;
            } else if paste.len() > MAX_PASTE + PASTE_END.len() {
                let end = paste.len() - PASTE_END.len();
                paste.drain(MAX_PASTE..end);
            }
            return;
        }
        match (self.held.as_slice(), byte) {
            ([], 0x1b) => self.held.push(byte),
            ([], 0..=0x7f) => keys.extend(key_of_byte(byte)),
            // The held Escape was a key of its own.
            ([0x1b], 0x1b) => keys.push(Key::Escape),
            ([0x1b], b'[' | b'O') => self.held.push(byte),
            ([0x1b], _) => {
                self.held.clear();
                keys.extend(key_with_alt(byte));
            }
            ([0x1b, b'O'], _) => {
                self.held.clear();
                keys.extend(key_of_letter(byte, 1));
            }
            ([0x1b, ..], 0x20..=0x3f) if self.held.len() < MAX_KEY => self.held.push(byte),
            ([0x1b, ..], _) => {
                let held = std::mem::take(&mut self.held);
                let parameters = held.get(2..).unwrap_or_default();
                match (parameters, byte) {
                    (b"200", b'~') => (self.paste, self.rest) = (Some(Vec::new()), None),
                    (b"201", b'~') => self.rest = None,
                    _ => keys.extend(key_of_sequence(parameters, byte)),
                }
            }
            // The next byte of a character in UTF-8.
            _ => {
                self.held.push(byte);
                match std::str::from_utf8(&self.held) {
                    Ok(text) => keys.extend(text.chars().filter(|c| !c.is_control()).map(Key::Char)),
                    Err(bad) if bad.error_len().is_none() => return,
                    Err(_) => {} // not a character
                }
                self.held.clear();
            }
        }
    }
}

/// Whether a read has a single key, as a person types it. What is pasted comes in larger parts, without escape sequences.
fn is_one_key(input: &[u8]) -> bool {
    input.starts_with(b"\x1b") || std::str::from_utf8(input).is_ok_and(|text| text.chars().count() == 1)
}

/// Terminals send a pasted line break as a carriage return.
fn pasted_text(paste: &[u8]) -> String {
    String::from_utf8_lossy(paste).replace("\r\n", "\n").replace('\r', "\n")
}

fn key_of_byte(byte: u8) -> Option<Key> {
    match byte {
        b'\r' => Some(Key::Enter),
        b'\n' => Some(Key::NewLine),
        b'\t' => Some(Key::Tab),
        0x08 | 0x7f => Some(Key::Backspace),
        0x1b => Some(Key::Escape),
        0x00..=0x1f => Some(Key::Ctrl(char::from(byte + 0x40).to_ascii_lowercase())),
        0x20..=0x7e => Some(Key::Char(char::from(byte))),
        0x80.. => None,
    }
}

fn key_with_alt(byte: u8) -> Option<Key> {
    match byte {
        b'\r' | b'\n' => Some(Key::NewLine),
        0x08 | 0x7f => Some(Key::DeleteWord),
        b'b' => Some(Key::WordLeft),
        b'f' => Some(Key::WordRight),
        _ => None,
    }
}

/// The key that ends in a letter: `CSI A`, `CSI 1;5D`, `SS3 H`.
fn key_of_letter(letter: u8, modifiers: u32) -> Option<Key> {
    match (letter, modifiers) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'C', 1) => Some(Key::Right),
        (b'D', 1) => Some(Key::Left),
        (b'C', _) => Some(Key::WordRight),
        (b'D', _) => Some(Key::WordLeft),
        (b'H', _) => Some(Key::Home),
        (b'F', _) => Some(Key::End),
        _ => None,
    }
}

fn key_of_sequence(parameters: &[u8], last: u8) -> Option<Key> {
    let parameters = std::str::from_utf8(parameters).ok()?;
    let mut fields = parameters.split(';');
    let first = fields.next().unwrap_or_default();
    let second = fields.next().unwrap_or("1");
    if second.split(':').nth(1) == Some("3") {
        return None; // a release
    }
    let modifiers = number(second).unwrap_or(1);
    match (last, first) {
        (b'~', "27") => key_of_code(number(fields.next()?)?, modifiers),
        (b'~', "1" | "7") => Some(Key::Home),
        (b'~', "4" | "8") => Some(Key::End),
        (b'~', "3") => Some(Key::Delete),
        (b'u', code) => key_of_code(number(code)?, modifiers),
        (letter, _) => key_of_letter(letter, modifiers),
    }
}

/// The key with this code point and these modifiers (1 + Shift 1, Alt 2, Ctrl 4).
fn key_of_code(code: u32, modifiers: u32) -> Option<Key> {
    const SHIFT: u32 = 1;
    const ALT: u32 = 2;
    const CTRL: u32 = 4;
    let modifiers = modifiers.saturating_sub(1) & (SHIFT | ALT | CTRL);
    let c = char::from_u32(code)?;
    match (c, modifiers) {
        ('\r', 0) => Some(Key::Enter),
        ('\r', _) => Some(Key::NewLine),
        (_, ALT) => key_with_alt(u8::try_from(code).ok()?),
        ('a'..='z' | '\\', CTRL) => key_of_byte(c as u8 & 0x1f),
        (_, 0) if c.is_ascii() => key_of_byte(c as u8),
        (_, 0) if !c.is_control() => Some(Key::Char(c)),
        (_, SHIFT) if !c.is_control() => Some(Key::Char(c.to_ascii_uppercase())),
        _ => None,
    }
}

/// Parses the first sub-parameter of a field.
fn number(field: &str) -> Option<u32> {
    field.split(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(reads: &[&[u8]]) -> Vec<Key> {
        let mut reader = KeyReader::default();
        let mut keys = Vec::new();
        for bytes in reads {
            keys.extend(reader.handle_input(bytes, Duration::ZERO));
        }
        keys.extend(reader.handle_timeout(ESCAPE_TIMEOUT));
        keys
    }

    #[test]
    fn keys_are_read_in_every_encoding_and_split() {
        let cases: &[(&[u8], Key)] = &[
            (b"a", Key::Char('a')),
            ("é".as_bytes(), Key::Char('é')),
            ("🦀".as_bytes(), Key::Char('🦀')),
            (b"\r", Key::Enter),
            (b"\n", Key::NewLine),
            (b"\x1b\r", Key::NewLine),
            (b"\x1b[13;2u", Key::NewLine),
            (b"\x1b[27;2;13~", Key::NewLine),
            (b"\x03", Key::Ctrl('c')),
            (b"\x1b[99;5u", Key::Ctrl('c')),
            (b"\x1b[27;5;99~", Key::Ctrl('c')),
            (b"\x1c", Key::Ctrl('\\')),
            (b"\x1b[92;5u", Key::Ctrl('\\')),
            (b"\x7f", Key::Backspace),
            (b"\x1b\x7f", Key::DeleteWord),
            (b"\x1b[127u", Key::Backspace),
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;5D", Key::WordLeft),
            (b"\x1bf", Key::WordRight),
            (b"\x1b[H", Key::Home),
            (b"\x1b[4~", Key::End),
            (b"\x1b[3~", Key::Delete),
            (b"\x1b[97;2u", Key::Char('A')),
            (b"\x1b", Key::Escape),
            (b"\x1b[27u", Key::Escape),
            (b"\x1b[200~a\rb\x03\x1b[201~", Key::Paste("a\nb\x03".to_owned())),
        ];
        for (bytes, key) in cases {
            assert_eq!(read(&[bytes]), std::slice::from_ref(key), "{bytes:?}");
            for cut in 0..bytes.len() {
                let (start, end) = bytes.split_at(cut);
                assert_eq!(read(&[start, end]), std::slice::from_ref(key), "{bytes:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn an_escape_waits_for_the_rest_of_a_key_and_then_is_one() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.handle_input(b"\x1b", Duration::ZERO), []);
        assert_eq!(reader.poll_timeout(), Some(ESCAPE_TIMEOUT));
        assert_eq!(reader.handle_timeout(ESCAPE_TIMEOUT / 2), None);
        assert_eq!(reader.handle_timeout(ESCAPE_TIMEOUT), Some(Key::Escape));
        assert_eq!(
            (reader.poll_timeout(), reader.handle_input(b"[A", ESCAPE_TIMEOUT)),
            (None, vec![Key::Char('['), Key::Char('A')])
        );
    }

    #[test]
    fn a_paste_whose_end_was_lost_ends_by_itself() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.handle_input(b"\x1b[200~ab", Duration::ZERO), []);
        assert_eq!(reader.handle_timeout(PASTE_TIMEOUT / 2), None);
        assert_eq!(reader.handle_timeout(PASTE_TIMEOUT), Some(Key::Paste("ab".to_owned())));
        assert_eq!(reader.handle_input(b"\x03", PASTE_TIMEOUT), [Key::Ctrl('c')]);
    }

    #[test]
    fn the_rest_of_a_paste_that_stalled_does_not_send_it() {
        let stalled = || {
            let mut reader = KeyReader::default();
            reader.handle_input(b"\x1b[200~one\r", Duration::ZERO);
            assert_eq!(reader.handle_timeout(PASTE_TIMEOUT), Some(Key::Paste("one\n".to_owned())));
            reader
        };
        let later = PASTE_TIMEOUT * 5;
        let mut reader = stalled();
        assert_eq!(reader.handle_input(b"2\r", later), [Key::Char('2'), Key::NewLine]);
        assert_eq!(
            reader.handle_input(b"\r3\x1b[201~\r", later + PASTE_TIMEOUT / 2),
            [Key::NewLine, Key::Char('3'), Key::Enter],
            "its end has come"
        );
        assert!(!reader.is_paste_incomplete());
        let mut reader = stalled();
        assert!(reader.is_paste_incomplete());
        assert_eq!(reader.handle_input(b"\r", PASTE_TIMEOUT * 3 / 2), [Key::NewLine]);
        assert_eq!(reader.handle_input(b"\r", PASTE_TIMEOUT * 5 / 2), [Key::Enter], "its end was lost");
        assert!(!reader.is_paste_incomplete());
    }

    /// Enter did nothing but add a line, however long the user had waited.
    #[test]
    fn after_a_pause_the_first_enter_sends_a_paste_whose_end_was_lost() {
        let mut reader = KeyReader::default();
        reader.handle_input(b"\x1b[200~one", Duration::ZERO);
        assert_eq!(reader.handle_timeout(PASTE_TIMEOUT), Some(Key::Paste("one".to_owned())));
        assert_eq!(reader.handle_input(b"\r", PASTE_TIMEOUT * 2), [Key::Enter]);
    }

    #[test]
    fn unknown_keys_and_releases_are_ignored() {
        for bytes in
            [&b"\x1b[15~"[..], b"\x1b[97;1:3u", b"\x1b[I", b"\x1b[<0;1;1M", b"\x1bx", b"\xff", b"\x1b[57442;5u"]
        {
            assert_eq!(read(&[bytes]), [], "{bytes:?}");
        }
    }

    #[test]
    fn a_long_paste_is_cut_and_its_end_is_found() {
        let paste = [b"\x1b[200~", vec![b'x'; MAX_PASTE + 5000].as_slice(), PASTE_END, b"y"].concat();
        let keys = read(&[&paste]);
        assert_eq!(keys.len(), 2);
        assert!(matches!(&keys[0], Key::Paste(text) if text.len() >= MAX_PASTE && text.len() < MAX_PASTE + 100));
        assert_eq!(keys[1], Key::Char('y'));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_little_is_held(input in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = KeyReader::default();
            for byte in input {
                reader.handle_input(&[byte], Duration::ZERO);
                prop_assert!(reader.held.len() <= MAX_KEY);
            }
        }
    }
}
