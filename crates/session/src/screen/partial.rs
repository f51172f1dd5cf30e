//! Tracks the escape sequence or UTF-8 character that is unfinished at the end of the output.
//!
//! A snapshot has to include it, but the parser's state is private. Every ESC resets the parser, so the
//! bytes since the last ESC are its whole state. This module runs the parser's state table over those bytes
//! alone.

use super::limits::{DCS_MAX, ESCAPE_MAX, OSC_MAX};

const ESC: u8 = 0x1b;
/// Replaces an operating system command that is too long: terminals ignore it, and it ends where the long one ends.
const DISCARDED_OSC: &[u8] = b"\x1b]7777;";
/// Replaces a device control string whose content is not needed.
const DISCARDED_DCS: &[u8] = b"\x1bPz";
/// Replaces a device control string whose header is invalid or too long.
const IGNORED_DCS: &[u8] = b"\x1bP0<";
/// Replaces a control sequence that is too long.
const IGNORED_CSI: &[u8] = b"\x1b[0<";

/// The unfinished end of the output so far.
#[derive(Debug, Default)]
pub(super) struct PartialInput {
    state: ParserState,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParserState {
    #[default]
    Ground,
    Escape,
    EscapeIntermediate,
    CsiEntry,
    CsiParam,
    CsiIntermediate,
    CsiIgnore,
    DcsEntry,
    DcsParam,
    DcsIntermediate,
    DcsIgnore,
    /// Inside a device control string that gets a reply.
    DcsQuery,
    /// Inside any other device control string.
    DcsData,
    Osc,
    /// Inside an operating system command that is too long.
    OscDiscarded,
    /// Inside an SOS, PM or APC string, which terminals ignore.
    Opaque,
}

/// What to do with a byte of an unfinished sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Pass the byte to the parser.
    Feed,
    /// Drop the byte; it belongs to a discarded command.
    Skip,
    /// The sequence is too long: pass `<` to the parser instead, which makes it ignore the sequence.
    Ignore,
    /// The operating system command is too long: drop the byte, and ignore the command when the parser reports it.
    Discard,
}

impl PartialInput {
    pub(super) fn is_empty(&self) -> bool {
        self.state == ParserState::Ground && self.bytes.is_empty()
    }

    /// Whether no sequence is unfinished. A character may be.
    pub(super) fn is_ground(&self) -> bool {
        self.state == ParserState::Ground
    }

    /// The bytes that put a parser into the same state.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.state = ParserState::Ground;
        self.bytes.clear();
    }

    /// Sets the start of a character as what is unfinished.
    pub(super) fn keep_char(&mut self, start: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(start);
    }

    /// Tracks a sequence from its ESC. Returns its length in bytes, which is all of `bytes` if it is unfinished.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> usize {
        self.state = ParserState::Escape;
        self.bytes.clear();
        self.bytes.push(ESC);
        for (at, &byte) in bytes.iter().enumerate().skip(1) {
            // The parser gets all of `bytes`, so the step does not matter: a piece is shorter than `OSC_MAX`.
            self.step(byte);
            if self.state == ParserState::Ground {
                return at + 1;
            }
        }
        bytes.len()
    }

    /// Tracks the next byte of an unfinished sequence. It must not be an ESC, which ends every sequence.
    pub(super) fn step(&mut self, byte: u8) -> Step {
        if matches!(byte, 0x18 | 0x1a) {
            self.clear();
            return Step::Feed;
        }
        match self.state {
            ParserState::Ground => Step::Feed,
            ParserState::Escape => self.escape(byte),
            ParserState::EscapeIntermediate => match byte {
                0x20..=0x2f => self.push(byte),
                0x30..=0x7e => self.done(),
                _ => Step::Feed,
            },
            ParserState::CsiEntry | ParserState::CsiParam | ParserState::CsiIntermediate | ParserState::CsiIgnore => {
                self.csi(byte)
            }
            ParserState::DcsEntry | ParserState::DcsParam | ParserState::DcsIntermediate => self.dcs_header(byte),
            ParserState::DcsQuery | ParserState::DcsData => self.dcs_data(byte),
            ParserState::Osc => match byte {
                0x07 => self.done(),
                0x00..=0x1f => Step::Feed,
                _ if self.bytes.len() >= OSC_MAX => {
                    self.replace_with(ParserState::OscDiscarded, DISCARDED_OSC);
                    Step::Discard
                }
                _ => self.push_unbounded(byte),
            },
            ParserState::OscDiscarded if byte == 0x07 => self.done(),
            ParserState::OscDiscarded => Step::Skip,
            ParserState::DcsIgnore | ParserState::Opaque => Step::Feed,
        }
    }

    fn escape(&mut self, byte: u8) -> Step {
        let next = match byte {
            0x20..=0x2f => ParserState::EscapeIntermediate,
            b'P' => ParserState::DcsEntry,
            b'X' | b'^' | b'_' => ParserState::Opaque,
            b'[' => ParserState::CsiEntry,
            b']' => ParserState::Osc,
            0x30..=0x7e => return self.done(),
            _ => return Step::Feed,
        };
        self.state = next;
        self.push(byte)
    }

    fn csi(&mut self, byte: u8) -> Step {
        let next = match (self.state, byte) {
            (_, 0x40..=0x7e) => return self.done(),
            (ParserState::CsiIgnore, _) | (_, 0x00..=0x1f | 0x7f..) => return Step::Feed,
            (_, 0x20..=0x2f) => ParserState::CsiIntermediate,
            (ParserState::CsiIntermediate, _) => ParserState::CsiIgnore,
            (ParserState::CsiParam, 0x3c..=0x3f) => ParserState::CsiIgnore,
            _ => ParserState::CsiParam,
        };
        self.advance(next, byte, ParserState::CsiIgnore, IGNORED_CSI)
    }

    fn dcs_header(&mut self, byte: u8) -> Step {
        let next = match (self.state, byte) {
            (_, 0x40..=0x7e) => {
                let query = byte == b'q' && matches!(self.bytes.last(), Some(b'$' | b'+'));
                if query {
                    self.state = ParserState::DcsQuery;
                    return self.push(byte);
                }
                self.replace_with(ParserState::DcsData, DISCARDED_DCS);
                return Step::Feed;
            }
            (_, 0x00..=0x1f | 0x7f..) => return Step::Feed,
            (_, 0x20..=0x2f) => ParserState::DcsIntermediate,
            (ParserState::DcsIntermediate, _) | (ParserState::DcsParam, 0x3c..=0x3f) => {
                self.replace_with(ParserState::DcsIgnore, IGNORED_DCS);
                return Step::Feed;
            }
            _ => ParserState::DcsParam,
        };
        self.advance(next, byte, ParserState::DcsIgnore, IGNORED_DCS)
    }

    /// Keeps a byte of a header and moves to `next`. A header that is too long moves to `ignored` instead.
    fn advance(&mut self, next: ParserState, byte: u8, ignored: ParserState, stand_in: &[u8]) -> Step {
        if self.bytes.len() >= ESCAPE_MAX {
            self.replace_with(ignored, stand_in);
            return Step::Ignore;
        }
        self.state = next;
        self.push(byte)
    }

    fn dcs_data(&mut self, byte: u8) -> Step {
        match byte {
            0x9c => self.done(),
            0x7f.. => Step::Feed,
            _ if self.state == ParserState::DcsData => Step::Feed,
            _ if self.bytes.len() >= DCS_MAX => {
                self.replace_with(ParserState::DcsData, DISCARDED_DCS);
                Step::Feed
            }
            _ => self.push_unbounded(byte),
        }
    }

    fn done(&mut self) -> Step {
        self.clear();
        Step::Feed
    }

    fn replace_with(&mut self, state: ParserState, stand_in: &[u8]) {
        self.state = state;
        self.bytes.clear();
        self.bytes.shrink_to(ESCAPE_MAX);
        self.bytes.extend_from_slice(stand_in);
    }

    /// Keeps a byte of a short sequence. Bytes past the cap have no effect on the state and are dropped.
    fn push(&mut self, byte: u8) -> Step {
        if self.bytes.len() < ESCAPE_MAX {
            self.bytes.push(byte);
        }
        Step::Feed
    }

    fn push_unbounded(&mut self, byte: u8) -> Step {
        self.bytes.push(byte);
        Step::Feed
    }
}

/// How many bytes at the end of `text` are the start of an unfinished character.
pub(super) fn unfinished_char(text: &[u8]) -> usize {
    (1..=text.len().min(3)).find(|&n| starts_char(&text[text.len() - n..])).unwrap_or(0)
}

/// Whether `bytes` are a valid but incomplete UTF-8 character.
pub(super) fn starts_char(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(e) if e.valid_up_to() == 0 && e.error_len().is_none())
}
