//! Takes out of a session's output everything that would make the real terminal answer.
//!
//! The session's own emulator answers each query once (law 9). A terminal that also saw the query would answer
//! again, on every attach and replay, and its answer would be typed into the program. Everything else passes byte
//! for byte, cut at any place, with these exceptions, all of them malformed or about answering:
//!
//! - a control sequence broken off by a character outside ASCII is cancelled before that character, since old
//!   parsers read such bytes as their 7-bit twins;
//! - a cancel (CAN) stands where a query was taken out of the middle of an unfinished sequence, so that its two
//!   halves cannot make a new query;
//! - the 8-bit string terminator, which not every terminal knows, is sent as `ESC \`;
//! - `ESC % @`, which would turn raw bytes into 8-bit controls, is taken out; kitty graphics are told to be quiet;
//! - sequences over [`MAX_SEQUENCE`] that cannot be judged whole are dropped to their end.
//!
//! Half a sequence or half a character is held back until its rest arrives, so the terminal is between sequences
//! whenever [`Filter::filter`] returns, unless a long string is passing; [`Filter::interrupt`] ends that.

mod query;
mod scan;
mod strings;

pub(crate) use query::{Csi, split_code};

use crate::touched::Touched;
use query::Fate;

/// The longest sequence that is held back to be judged whole. A longer one is dropped to its end, except strings
/// whose start already shows that they are no query (a clipboard write, an image, a title): those pass as they come.
pub const MAX_SEQUENCE: usize = 4096;

/// How much of what passed is remembered, to tell where it left the cursor.
const TAIL: usize = 256;

const BEL: u8 = 0x07;
const ENQ: u8 = 0x05;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;
/// The first byte of every C1 control in UTF-8.
const C2: u8 = 0xc2;
/// The 8-bit introducer of a control sequence.
const CSI: u8 = 0x9b;

/// The streaming filter, with a record of what the output changed on the terminal.
#[derive(Debug, Default)]
pub struct Filter {
    state: State,
    /// The unfinished sequence or character, from its first byte; empty between sequences.
    held: Vec<u8>,
    /// Where the body of the held sequence starts, after its introducer.
    body: usize,
    /// The terminal has been given the start of something unfinished.
    dangling: bool,
    touched: Touched,
    /// A snapshot is passing: resets of what nobody changed are left out.
    painting: bool,
    /// Nothing passes but what decides how the terminal writes keys; that is collected here.
    muted: Option<Vec<u8>>,
    /// The last bytes that went to the terminal, at most [`TAIL`] of them.
    tail: Vec<u8>,
}

/// Where in a sequence the next byte falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Between sequences; `held` may have the start of a character.
    #[default]
    Ground,
    /// After ESC and any intermediate bytes.
    Escape,
    /// In a control sequence.
    Csi,
    /// In a control sequence that is too long: dropped to its final byte.
    LongCsi,
    /// In an operating system command that is still held.
    Osc,
    /// In the header of a device control string.
    Dcs,
    /// In an application command, before it is known what it is.
    Apc,
    /// In a string that passes (or is dropped) to its end; `bel` ends it only if it is an operating system command.
    String { osc: bool, pass: bool },
}

impl Filter {
    /// A filter between sequences.
    pub fn new() -> Filter {
        Filter::default()
    }

    /// Appends to `out` what the terminal may see of `input`.
    pub fn filter(&mut self, mut input: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        while let Some((&byte, rest)) = input.split_first() {
            if self.state == State::Ground && self.held.is_empty() {
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
        if let Some(kept) = &mut self.muted {
            out.truncate(start);
            out.append(kept);
        }
        self.remember(&out[start..]);
    }

    /// Leaves the terminal between sequences, now: a string that is passing is cancelled, and its rest dropped.
    /// What is held back stays held.
    pub fn interrupt(&mut self, out: &mut Vec<u8>) {
        if let State::String { osc, pass: true } = self.state {
            self.state = State::String { osc, pass: false };
            self.dangling = true;
        }
        self.settle(out);
    }

    /// Forgets an unfinished sequence: what follows is not its rest.
    pub fn reset(&mut self, out: &mut Vec<u8>) {
        self.interrupt(out);
        self.state = State::Ground;
        self.held.clear();
    }

    /// Whether what follows is a snapshot. It may begin by resetting the terminal and its colours, for viewers whose
    /// terminal is theirs alone. Here that was done already, as far as the session had changed anything, and the user's
    /// own scrollback and colours stay.
    pub fn set_painting(&mut self, painting: bool) {
        self.painting = painting;
    }

    /// Whether output is kept from the terminal, but for the modes that decide how it writes keys, mouse and pastes:
    /// the screen is painted in another way meanwhile.
    pub fn set_muted(&mut self, muted: bool) {
        self.muted = muted.then(Vec::new);
    }

    /// Whether output is kept from the terminal.
    pub fn is_muted(&self) -> bool {
        self.muted.is_some()
    }

    /// What the output so far has changed on the terminal.
    pub fn touched(&self) -> &Touched {
        &self.touched
    }

    /// The changes on the terminal have been undone.
    pub(crate) fn touched_mut(&mut self) -> &mut Touched {
        &mut self.touched
    }

    /// Whether the cursor is at the start of a line, as far as the last bytes that went through tell.
    pub fn is_at_line_start(&self) -> bool {
        scan::ends_at_line_start(&self.tail)
    }

    fn remember(&mut self, passed: &[u8]) {
        let fresh = &passed[passed.len().saturating_sub(TAIL)..];
        let old = self.tail.len().min((self.tail.len() + fresh.len()).saturating_sub(TAIL));
        self.tail.drain(..old);
        self.tail.extend_from_slice(fresh);
    }

    /// Passes text up to the next thing that matters, takes that in, and says how much of `input` it used.
    fn ground(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        let mut from = 0;
        loop {
            let at = scan::next_special(input, from);
            let text = &input[..at];
            let Some(&byte) = input.get(at) else {
                let whole = at - scan::unfinished_character(text);
                out.extend_from_slice(&text[..whole]);
                self.held.extend_from_slice(&text[whole..]);
                return at;
            };
            match byte {
                C2 => match input.get(at + 1) {
                    // It may be a C1 control: the character is held until its other half is looked at.
                    None | Some(0x80..=0x9f) => {
                        out.extend_from_slice(text);
                        self.dangling = scan::unfinished_character(text) > 0;
                        self.held.push(C2);
                        return at + 1;
                    }
                    Some(_) => from = at + 1,
                },
                CSI if scan::continues_character(text) => from = at + 1,
                ESC if let len @ 1.. = scan::plain_sequence(&input[at..]) => from = at + len,
                _ => {
                    out.extend_from_slice(text);
                    self.dangling = scan::unfinished_character(text) > 0;
                    match byte {
                        ENQ => self.settle(out),
                        CSI => self.begin(State::Csi, &[CSI]),
                        _ => self.begin(State::Escape, &[ESC]),
                    }
                    return at + 1;
                }
            }
        }
    }

    /// Takes one byte outside of plain text; false when the byte is to be looked at again in the new state.
    fn step(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match self.state {
            State::Ground => return self.character(byte, out),
            State::String { osc, pass } => return self.string(byte, osc, pass, out),
            State::Escape | State::Csi | State::LongCsi | State::Osc | State::Dcs | State::Apc => {}
        }
        if self.held.last() == Some(&C2) {
            let control = (0x80..=0x9f).contains(&byte);
            match self.state {
                // Not every parser lets an 8-bit control, and none a letter, into or out of a short sequence.
                State::Escape | State::Csi | State::LongCsi | State::Dcs => {
                    self.held.pop();
                    self.cancel(out);
                    self.held.push(C2);
                    return false;
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

    /// The next byte of a character of several bytes.
    fn character(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        if self.held == [C2] && (0x80..=0x9f).contains(&byte) {
            self.held.clear();
            self.control(byte, out);
            return true;
        }
        if !(0x80..=0xbf).contains(&byte) {
            self.dangling = true;
            self.flush(out);
            // Something may be taken out right here, and must not join the two sides.
            match byte {
                ENQ => self.settle(out),
                ESC => self.begin(State::Escape, &[ESC]),
                C2 => self.held.push(C2),
                _ => {
                    self.dangling = false;
                    return false;
                }
            }
            return true;
        }
        self.held.push(byte);
        if scan::unfinished_character(&self.held) == 0 {
            self.pass(out);
        }
        true
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match byte {
            ESC => self.restart(State::Escape, &[ESC], out),
            CSI => self.restart(State::Csi, &[CSI], out),
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
                self.escape_ends(byte, out);
            }
        }
        true
    }

    fn escape_ends(&mut self, byte: u8, out: &mut Vec<u8>) {
        let intermediate = self.held.iter().rev().skip(1).copied().find(|b| (0x20..=0x2f).contains(b));
        self.body = self.held.len();
        match (intermediate, byte) {
            (None, b'[') => self.state = State::Csi,
            (None, b']') => self.state = State::Osc,
            (None, b'P') => self.state = State::Dcs,
            (None, b'_') => self.state = State::Apc,
            (None, b'X' | b'^') => self.pass_string(false, out),
            (None, b'Z') | (Some(b'%'), b'@') => self.strip(out),
            (None, b'c') if self.painting => self.strip(out),
            _ => {
                self.touched.escape(intermediate.unwrap_or_default(), byte);
                if let Some(kept) = self.muted.as_mut().filter(|_| self.held == b"\x1b=" || self.held == b"\x1b>") {
                    kept.extend_from_slice(&self.held);
                }
                self.pass(out);
            }
        }
    }

    fn csi(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match byte {
            ESC => self.restart(State::Escape, &[ESC], out),
            CSI => self.restart(State::Csi, &[CSI], out),
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
                let fate = query::csi(&csi);
                if fate != Fate::Strip {
                    self.touched.csi(&csi);
                }
                if let (Some(kept), Some(part)) = (&mut self.muted, query::key_part(&csi)) {
                    kept.extend_from_slice(&part);
                }
                self.meet(fate, out);
            }
            0x00..=0x3f | 0x7f => self.hold(byte, State::LongCsi, out),
        }
        true
    }

    /// A C1 control, in UTF-8: it interrupts whatever was going on. Its two bytes are not in `held`.
    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        let in_string = matches!(self.state, State::Osc | State::Dcs | State::Apc | State::String { .. });
        let bytes = [C2, byte];
        match byte {
            // Not every terminal knows the 8-bit terminator; all know the other.
            0x9c if self.state == State::Osc => {
                self.held.extend_from_slice(b"\x1b\\");
                self.osc_ends(2, out);
            }
            0x9c => {
                let pass = !matches!(self.state, State::String { pass: false, .. });
                self.held.extend_from_slice(if in_string { b"\x1b\\" } else { &bytes });
                self.string_ends(pass, out);
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
                    self.keep(pass, out);
                }
            }
            _ => {
                self.restart(State::Escape, &bytes, out);
                self.touched.escape(0, byte - 0x40);
                self.pass(out);
            }
        }
    }

    /// Starts a sequence.
    fn begin(&mut self, state: State, introducer: &[u8]) {
        self.state = state;
        self.held.clear();
        self.held.extend_from_slice(introducer);
        self.body = introducer.len();
    }

    /// Starts a sequence in the middle of another one, which passes unfinished. Every parser starts again at ESC; not
    /// all do at an 8-bit introducer, so what was unfinished is cancelled before one.
    fn restart(&mut self, state: State, introducer: &[u8], out: &mut Vec<u8>) {
        let was = self.state;
        match was {
            State::Osc => self.osc_ends(0, out),
            State::Escape | State::Csi if introducer[0] != ESC => self.cancel(out),
            State::LongCsi | State::String { pass: false, .. } => self.held.clear(),
            State::Ground | State::Escape | State::Csi | State::Dcs | State::Apc | State::String { pass: true, .. } => {
                self.dangling |= !self.held.is_empty();
                self.flush(out);
            }
        }
        if introducer[0] != ESC && was != State::Ground {
            self.settle(out);
        }
        self.begin(state, introducer);
    }

    /// Holds a byte of a short sequence; over the limit, the sequence is dropped and `long` is the state that ends it.
    fn hold(&mut self, byte: u8, long: State, out: &mut Vec<u8>) {
        if self.state == State::LongCsi || self.held.len() < MAX_SEQUENCE {
            if self.state != State::LongCsi {
                self.held.push(byte);
            }
            return;
        }
        self.settle(out);
        self.held.clear();
        self.state = long;
        if long == State::LongCsi {
            // Something must be held, or the next byte would be taken for text.
            self.held.push(ESC);
        }
    }

    /// Does with the held sequence what was decided.
    fn meet(&mut self, fate: Fate, out: &mut Vec<u8>) {
        match fate {
            Fate::Pass => self.pass(out),
            Fate::Strip => self.strip(out),
            Fate::Replace(bytes) => {
                self.held = bytes;
                self.pass(out);
            }
        }
    }

    /// The held bytes go through, and with them everything is finished.
    fn pass(&mut self, out: &mut Vec<u8>) {
        self.dangling = false;
        self.flush(out);
        self.state = State::Ground;
    }

    /// The held sequence is taken out; controls inside it have their effect.
    fn strip(&mut self, out: &mut Vec<u8>) {
        self.settle(out);
        if matches!(self.state, State::Escape | State::Csi) {
            out.extend(self.held.iter().skip(1).filter(|b| **b < 0x20 && **b != ESC));
        }
        self.held.clear();
        self.state = State::Ground;
    }

    /// The held sequence is cut off by a character that is no part of it.
    fn cancel(&mut self, out: &mut Vec<u8>) {
        if self.state == State::LongCsi {
            self.held.clear();
        } else {
            self.flush(out);
            self.dangling = true;
        }
        self.settle(out);
        self.state = State::Ground;
    }

    /// Ends what the terminal was given unfinished.
    fn settle(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.dangling) {
            out.push(CAN);
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.held);
        self.held.clear();
    }
}

#[cfg(test)]
mod tests;
