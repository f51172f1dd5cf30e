//! Removes from a session's output every query that the real terminal would answer, and the few sequences that would
//! take the terminal away from its user.
//!
//! The session's own emulator answers each query once. A terminal that also received the query would answer again, on
//! every attach and replay, and its answer would be typed into the program. The other sequences that are removed start a
//! mode in which the terminal itself types commands (tmux's control mode) or prints on paper, program its keys, or write
//! more than [`MAX_CLIPBOARD`] to the clipboard. All other bytes pass unchanged, however the input is split, with these
//! exceptions, all of them malformed or related to queries:
//!
//! - bytes that are not valid UTF-8 are replaced or removed (`filter/utf8.rs`);
//! - a control sequence cut off by a non-ASCII character is cancelled before that character, because old parsers read
//!   such bytes as their 7-bit equivalents;
//! - a query removed from the middle of an unfinished sequence is replaced by a cancel (CAN), so that the two halves
//!   cannot form a new query;
//! - the 8-bit string terminator, which not every terminal supports, is sent as `ESC \`;
//! - `ESC % @`, which would turn raw bytes into 8-bit controls, is removed, and kitty graphics get the quiet flag;
//! - sequences longer than [`MAX_SEQUENCE`] that cannot be judged whole are dropped to their end.
//!
//! An incomplete sequence or character is held back until its rest arrives. So whenever [`Filter::filter`] returns, the
//! terminal is between sequences, unless a long string is passing; [`Filter::interrupt`] ends that.

mod held;
mod query;
mod scan;
mod strings;
mod utf8;

pub(crate) use query::{Csi, split_code};

use crate::changes::TerminalChanges;
use query::Decision;
use utf8::Utf8;

/// The longest sequence that is held back to be judged whole. A longer one is dropped to its end, except a string whose
/// start already shows that it is not a query (an image, a title): that passes as it arrives.
pub const MAX_SEQUENCE: usize = 4096;

/// The longest sequence that writes to the clipboard (OSC 52), in bytes: 74 KB of text. Common terminals accept that
/// much. It is held back until its end; a longer one is dropped whole, and the clipboard stays as it is.
pub const MAX_CLIPBOARD: usize = 100_000;

/// How many bytes of filtered output are kept, to guess the cursor's column.
const TAIL: usize = 256;

const BEL: u8 = 0x07;
const ENQ: u8 = 0x05;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;
/// The first byte of every C1 control in UTF-8.
const C2: u8 = 0xc2;
/// The second byte of the 8-bit introducer of a control sequence.
const CSI: u8 = 0x9b;

/// The streaming filter. Also records what the output changes on the terminal.
#[derive(Debug, Default)]
pub struct Filter {
    utf8: Utf8,
    state: State,
    /// The unfinished sequence, from its first byte; empty between sequences.
    held: Vec<u8>,
    /// The index in `held` of the sequence's body, after its introducer.
    body: usize,
    /// How many bytes of a command may be held: [`MAX_SEQUENCE`], or [`MAX_CLIPBOARD`] once it is known to be one for the
    /// clipboard.
    limit: usize,
    /// The terminal has received the start of an unfinished sequence.
    dangling: bool,
    changes: TerminalChanges,
    /// A snapshot is passing: full resets, and resets of colours that were not changed, are removed.
    in_snapshot: bool,
    /// While muted, collects the only sequences that still pass: those that affect how the terminal encodes keys.
    muted: Option<Vec<u8>>,
    /// The last bytes sent to the terminal, at most [`TAIL`] of them.
    tail: Vec<u8>,
}

/// What the next byte is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Between sequences; `held` is empty.
    #[default]
    Ground,
    /// After ESC and any intermediate bytes.
    Escape,
    Csi,
    /// In a control sequence that is too long: dropped to its final byte.
    LongCsi,
    /// In an operating system command that is still held.
    Osc,
    /// In the header of a device control string.
    Dcs,
    /// In an application command that is not judged yet.
    Apc,
    /// In a string that passes, or is dropped, to its end. BEL ends it only if `osc`.
    String {
        osc: bool,
        pass: bool,
    },
}

impl Filter {
    pub fn new() -> Filter {
        Filter::default()
    }

    /// Appends `input` without its queries to `out`.
    pub fn filter(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let (start, input) = (out.len(), self.utf8.repair(input));
        let mut input = &input[..];
        while let Some((&byte, rest)) = input.split_first() {
            if self.state == State::Ground {
                let used = self.ground(input, out);
                input = &input[used..];
            } else if let (State::String { pass, .. }, true) = (self.state, self.held.is_empty())
                && let used @ 1.. = scan::string_data(input)
            {
                if pass {
                    out.extend_from_slice(&input[..used]);
                }
                input = &input[used..];
            } else if self.step(byte, out) {
                input = rest;
            }
        }
        if let Some(key_modes) = &mut self.muted {
            out.truncate(start);
            out.append(key_modes);
        }
        self.remember(&out[start..]);
    }

    /// Puts the terminal between sequences now: cancels a string that is passing, and drops its rest. Held bytes stay
    /// held.
    pub fn interrupt(&mut self, out: &mut Vec<u8>) {
        if let State::String { osc, pass: true } = self.state {
            self.state = State::String { osc, pass: false };
            self.dangling = true;
        }
        self.end_dangling(out);
    }

    /// Discards an unfinished sequence: the next input does not continue it.
    pub fn reset(&mut self, out: &mut Vec<u8>) {
        self.interrupt(out);
        self.state = State::Ground;
        self.held.clear();
        self.utf8.reset();
    }

    /// Ends the output: undoes what it changed on the terminal, and moves the cursor below everything if that moved it.
    /// `cols` is the window's width.
    pub fn finish(&mut self, cols: u16, out: &mut Vec<u8>) {
        self.reset(out);
        let moves = self.changes.moves_cursor();
        self.changes.undo(cols, out);
        if moves {
            // The terminal stops at its last row.
            out.extend_from_slice(b"\x1b[9999;1H\r\n");
        }
    }

    /// Sets whether the next input is a snapshot. A snapshot may start by resetting the terminal and its colours, for
    /// viewers that own their whole terminal. Here the session's changes have been undone already, and the user's own
    /// scrollback and colours must stay, so those resets are removed.
    pub fn set_in_snapshot(&mut self, in_snapshot: bool) {
        self.in_snapshot = in_snapshot;
    }

    /// Sets whether output is withheld from the terminal, while the screen is painted by other means. Modes that affect
    /// how the terminal encodes keys, mouse and pastes still pass.
    pub fn set_muted(&mut self, muted: bool) {
        self.muted = muted.then(Vec::new);
    }

    pub fn is_muted(&self) -> bool {
        self.muted.is_some()
    }

    /// What the output so far has changed on the terminal.
    pub fn changes(&self) -> &TerminalChanges {
        &self.changes
    }

    pub(crate) fn changes_mut(&mut self) -> &mut TerminalChanges {
        &mut self.changes
    }

    /// Whether the cursor seems to be at the start of a line, judging by the last bytes that passed.
    pub fn is_at_line_start(&self) -> bool {
        scan::ends_at_line_start(&self.tail)
    }

    fn remember(&mut self, passed: &[u8]) {
        let fresh = &passed[passed.len().saturating_sub(TAIL)..];
        let old = self.tail.len().min((self.tail.len() + fresh.len()).saturating_sub(TAIL));
        self.tail.drain(..old);
        self.tail.extend_from_slice(fresh);
    }

    /// Passes text up to the next sequence, and starts that. Returns how many bytes it used.
    fn ground(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        let mut from = 0;
        loop {
            let at = scan::next_special(input, from);
            let (text, rest) = input.split_at(at);
            match *rest {
                [C2, byte @ 0x80..=0x9f, ..] => {
                    out.extend_from_slice(text);
                    self.control(byte, out);
                    return at + 2;
                }
                [ESC, ..] if let len @ 1.. = scan::plain_sequence(rest) => from = at + len,
                [C2, ..] => from = at + 1,
                [ESC, ..] => {
                    out.extend_from_slice(text);
                    self.begin(State::Escape, &[ESC]);
                    return at + 1;
                }
                // ENQ is a query by itself.
                _ => {
                    out.extend_from_slice(text);
                    return input.len().min(at + 1);
                }
            }
        }
    }

    /// Handles one byte outside plain text. Returns false if the byte must be handled again in the new state.
    fn step(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match self.state {
            State::String { osc, pass } => return self.string(byte, osc, pass, out),
            State::Ground | State::Escape | State::Csi | State::LongCsi | State::Osc | State::Dcs | State::Apc => {}
        }
        if self.held.last() == Some(&C2) {
            let control = (0x80..=0x9f).contains(&byte);
            match self.state {
                // In a short sequence, parsers disagree about an 8-bit control, and none accepts a non-ASCII letter.
                State::Escape | State::Csi | State::LongCsi | State::Dcs => {
                    self.held.pop();
                    self.cancel(out);
                    match control {
                        true => self.control(byte, out),
                        false => out.extend_from_slice(&[C2, byte]),
                    }
                    return true;
                }
                State::Apc if control => {
                    self.held.pop();
                    self.judge_graphics(out);
                    self.dangling = matches!(self.state, State::String { pass: true, .. });
                    self.control(byte, out);
                    return true;
                }
                State::Osc if control => {
                    self.held.pop();
                    self.control(byte, out);
                    return true;
                }
                State::Osc | State::Apc | State::Ground | State::String { .. } => {}
            }
        }
        match self.state {
            State::Escape => self.escape(byte, out),
            State::Csi | State::LongCsi => self.csi(byte, out),
            State::Osc => self.osc(byte, out),
            State::Dcs => self.dcs(byte, out),
            State::Apc => self.apc(byte, out),
            State::Ground | State::String { .. } => true,
        }
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match byte {
            ESC => self.restart(State::Escape, &[ESC], out),
            ENQ => {}
            CAN | SUB => {
                self.held.push(byte);
                self.pass(out);
            }
            // Controls inside a sequence act at once and do not end it.
            0x00..=0x1f | 0x7f | C2 => self.held.push(byte),
            0x20..=0x2f => self.hold(byte, State::Ground, out),
            0x80..=0xff => {
                self.cancel(out);
                return false;
            }
            0x30..=0x7e => {
                self.held.push(byte);
                self.end_escape(byte, out);
            }
        }
        true
    }

    fn end_escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        let intermediate = self.held.iter().rev().skip(1).copied().find(|b| (0x20..=0x2f).contains(b));
        self.body = self.held.len();
        match (intermediate, byte) {
            (None, b'[') => self.state = State::Csi,
            (None, b']') => self.state = State::Osc,
            (None, b'P') => self.state = State::Dcs,
            (None, b'_') => self.state = State::Apc,
            (None, b'X' | b'^') => self.pass_string(false, out),
            (None, b'Z') | (Some(b'%'), b'@') => self.strip(out),
            (None, b'c') if self.in_snapshot => self.strip(out),
            _ => {
                self.changes.escape(intermediate.unwrap_or_default(), byte);
                let is_key_mode = self.held == b"\x1b=" || self.held == b"\x1b>";
                if let Some(key_modes) = self.muted.as_mut().filter(|_| is_key_mode) {
                    key_modes.extend_from_slice(&self.held);
                }
                self.pass(out);
            }
        }
    }

    fn csi(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match byte {
            ESC => self.restart(State::Escape, &[ESC], out),
            ENQ => {}
            CAN | SUB if self.state == State::LongCsi => self.strip(out),
            CAN | SUB => {
                self.held.push(byte);
                self.pass(out);
            }
            C2 => self.held.push(byte),
            0x80..=0xff => {
                self.cancel(out);
                return false;
            }
            0x40..=0x7e if self.state == State::LongCsi => self.strip(out),
            0x40..=0x7e => {
                self.held.push(byte);
                let csi = Csi::parse(&self.held[self.body..]);
                let decision = query::csi(&csi);
                if decision != Decision::Strip {
                    self.changes.csi(&csi);
                }
                if let (Some(key_modes), Some(part)) = (&mut self.muted, query::key_part(&csi)) {
                    key_modes.extend_from_slice(&part);
                }
                self.apply(decision, out);
            }
            0x00..=0x3f | 0x7f => self.hold(byte, State::LongCsi, out),
        }
        true
    }

    /// Handles a C1 control in UTF-8, which interrupts any sequence. Its two bytes are not in `held`.
    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        let in_string = matches!(self.state, State::Osc | State::Dcs | State::Apc | State::String { .. });
        let bytes = [C2, byte];
        match byte {
            // Not every terminal supports the 8-bit terminator; all support `ESC \`.
            0x9c if self.state == State::Osc => {
                self.held.extend_from_slice(b"\x1b\\");
                self.end_osc(2, out);
            }
            0x9c => {
                let pass = !matches!(self.state, State::String { pass: false, .. });
                self.held.extend_from_slice(if in_string { b"\x1b\\" } else { &bytes });
                self.end_string(pass, out);
            }
            CSI => self.restart(State::Csi, &bytes, out),
            0x9d => self.restart(State::Osc, &bytes, out),
            0x90 => self.restart(State::Dcs, &bytes, out),
            0x9f => self.restart(State::Apc, &bytes, out),
            0x98 | 0x9e => {
                self.restart(State::Escape, &bytes, out);
                self.pass_string(false, out);
            }
            // DECID: the old form of a device attributes query.
            0x9a => {
                self.restart(State::Escape, &bytes, out);
                self.strip(out);
            }
            _ if in_string => {
                self.held.extend_from_slice(&bytes);
                if let State::String { pass, .. } = self.state {
                    self.dangling = false;
                    self.continue_string(pass, out);
                }
            }
            _ => {
                self.restart(State::Escape, &bytes, out);
                self.changes.escape(0, byte - 0x40);
                self.pass(out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
