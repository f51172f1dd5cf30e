//! What the parser holds back between two pieces of output: an unfinished escape or UTF-8 character.
//!
//! The parser's own state is private, but every ESC makes it forget what came before, so the bytes since the last
//! ESC are its whole state. This follows the parser's state table over those bytes alone.

use super::limits::{DCS_MAX, ESCAPE_MAX, OSC_MAX};

const ESC: u8 = 0x1b;
/// Stands for a command that grew too long: no terminal knows it, and it ends where the long one ends.
const LOST_OSC: &[u8] = b"\x1b]7777;";
/// Stands for a device control string whose content nobody needs.
const LOST_DCS: &[u8] = b"\x1bPz";
/// Stands for a device control string with an endless header.
const IGNORED_DCS: &[u8] = b"\x1bP0<";
/// Stands for an endless control sequence.
const IGNORED_CSI: &[u8] = b"\x1b[0<";

/// The unfinished end of the output so far.
#[derive(Debug, Default)]
pub(super) struct Half {
    state: State,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
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
    /// Inside a device control string that we answer.
    DcsQuery,
    /// Inside any other device control string.
    DcsData,
    Osc,
    /// Inside a command that is too long to keep.
    OscLost,
    /// Inside a string that no terminal shows: SOS, PM or APC.
    Opaque,
}

/// What the parser has to be told besides the byte itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The byte goes to the parser.
    Feed,
    /// The byte belongs to something discarded; the parser does not see it.
    Skip,
    /// The byte is one too many; the parser gets `<`, which makes it ignore the sequence.
    Ignore,
    /// The byte is one too many for a command; the parser keeps what it has, to be discarded at the end.
    Discard,
}

impl Half {
    /// Nothing is unfinished.
    pub(super) fn is_empty(&self) -> bool {
        self.state == State::Ground && self.bytes.is_empty()
    }

    /// The parser is between sequences, perhaps inside a character.
    pub(super) fn is_ground(&self) -> bool {
        self.state == State::Ground
    }

    /// The bytes that put a parser into the same state.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what was unfinished.
    pub(super) fn clear(&mut self) {
        self.state = State::Ground;
        self.bytes.clear();
    }

    /// Keeps the start of a character.
    pub(super) fn keep_char(&mut self, start: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(start);
    }

    /// Follows a sequence from its ESC; returns how many bytes it has, all of `bytes` when it is unfinished.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> usize {
        self.state = State::Escape;
        self.bytes.clear();
        self.bytes.push(ESC);
        for (at, &byte) in bytes.iter().enumerate().skip(1) {
            // A piece is shorter than every cap, so nothing here has to be kept from the parser.
            self.step(byte);
            if self.state == State::Ground {
                return at + 1;
            }
        }
        bytes.len()
    }

    /// Takes the next byte of an unfinished sequence; never an ESC, which ends them all.
    pub(super) fn step(&mut self, byte: u8) -> Step {
        if matches!(byte, 0x18 | 0x1a) {
            self.clear();
            return Step::Feed;
        }
        match self.state {
            State::Ground => Step::Feed,
            State::Escape => self.escape(byte),
            State::EscapeIntermediate => match byte {
                0x20..=0x2f => self.push(byte),
                0x30..=0x7e => self.done(),
                _ => Step::Feed,
            },
            State::CsiEntry | State::CsiParam | State::CsiIntermediate | State::CsiIgnore => self.csi(byte),
            State::DcsEntry | State::DcsParam | State::DcsIntermediate => self.dcs_header(byte),
            State::DcsQuery | State::DcsData => self.dcs_data(byte),
            State::Osc => match byte {
                0x07 => self.done(),
                0x00..=0x1f => Step::Feed,
                _ if self.bytes.len() >= OSC_MAX => {
                    self.become_lost(State::OscLost, LOST_OSC);
                    Step::Discard
                }
                _ => self.push_unbounded(byte),
            },
            State::OscLost if byte == 0x07 => self.done(),
            State::OscLost => Step::Skip,
            State::DcsIgnore | State::Opaque => Step::Feed,
        }
    }

    fn escape(&mut self, byte: u8) -> Step {
        let next = match byte {
            0x20..=0x2f => State::EscapeIntermediate,
            b'P' => State::DcsEntry,
            b'X' | b'^' | b'_' => State::Opaque,
            b'[' => State::CsiEntry,
            b']' => State::Osc,
            0x30..=0x7e => return self.done(),
            _ => return Step::Feed,
        };
        self.state = next;
        self.push(byte)
    }

    fn csi(&mut self, byte: u8) -> Step {
        let next = match (self.state, byte) {
            (_, 0x40..=0x7e) => return self.done(),
            (State::CsiIgnore, _) | (_, 0x00..=0x1f | 0x7f..) => return Step::Feed,
            (_, 0x20..=0x2f) => State::CsiIntermediate,
            (State::CsiIntermediate, _) => State::CsiIgnore,
            (State::CsiParam, 0x3c..=0x3f) => State::CsiIgnore,
            _ => State::CsiParam,
        };
        self.advance(next, byte, State::CsiIgnore, IGNORED_CSI)
    }

    fn dcs_header(&mut self, byte: u8) -> Step {
        let next = match (self.state, byte) {
            (_, 0x40..=0x7e) => {
                let query = byte == b'q' && matches!(self.bytes.last(), Some(b'$' | b'+'));
                if query {
                    self.state = State::DcsQuery;
                    return self.push(byte);
                }
                self.become_lost(State::DcsData, LOST_DCS);
                return Step::Feed;
            }
            (_, 0x00..=0x1f | 0x7f..) => return Step::Feed,
            (_, 0x20..=0x2f) => State::DcsIntermediate,
            (State::DcsIntermediate, _) | (State::DcsParam, 0x3c..=0x3f) => {
                self.become_lost(State::DcsIgnore, IGNORED_DCS);
                return Step::Feed;
            }
            _ => State::DcsParam,
        };
        self.advance(next, byte, State::DcsIgnore, IGNORED_DCS)
    }

    /// Keeps a byte of a header and goes to `next`; a header past the cap is `ignored` from here on.
    fn advance(&mut self, next: State, byte: u8, ignored: State, stand_in: &[u8]) -> Step {
        if self.bytes.len() >= ESCAPE_MAX {
            self.become_lost(ignored, stand_in);
            return Step::Ignore;
        }
        self.state = next;
        self.push(byte)
    }

    fn dcs_data(&mut self, byte: u8) -> Step {
        match byte {
            0x9c => self.done(),
            0x7f.. => Step::Feed,
            _ if self.state == State::DcsData => Step::Feed,
            _ if self.bytes.len() >= DCS_MAX => {
                self.become_lost(State::DcsData, LOST_DCS);
                Step::Feed
            }
            _ => self.push_unbounded(byte),
        }
    }

    fn done(&mut self) -> Step {
        self.clear();
        Step::Feed
    }

    fn become_lost(&mut self, state: State, stand_in: &[u8]) {
        self.state = state;
        self.bytes.clear();
        self.bytes.shrink_to(ESCAPE_MAX);
        self.bytes.extend_from_slice(stand_in);
    }

    /// Keeps a byte of a short sequence; past the cap only bytes without effect can follow.
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

/// How many bytes at the end of `text` start a character that is not yet whole.
pub(super) fn unfinished_char(text: &[u8]) -> usize {
    (1..=text.len().min(3)).find(|&n| starts_char(&text[text.len() - n..])).unwrap_or(0)
}

/// These bytes are the valid start of one character, and not all of it.
pub(super) fn starts_char(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(e) if e.valid_up_to() == 0 && e.error_len().is_none())
}
