//! Filters strings: operating system commands, device control strings and application commands.
//!
//! A string is held until it can be judged; from then on it passes, or is dropped, to its end.

use super::query::{self, Decision};
use super::{BEL, C2, CAN, Csi, ENQ, ESC, Filter, MAX_CLIPBOARD, MAX_SEQUENCE, SUB, State, split_code};

impl Filter {
    pub(super) fn osc(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        if self.held.last() == Some(&ESC) {
            if byte == b'\\' {
                self.held.push(byte);
                self.end_osc(2, out);
                return true;
            }
            self.held.pop();
            self.end_osc(0, out);
            self.begin(State::Escape, &[ESC]);
            return false;
        }
        match byte {
            BEL | CAN | SUB => {
                self.held.push(byte);
                self.end_osc(1, out);
            }
            _ => {
                self.held.push(if byte == ENQ { 0 } else { byte });
                let text = &self.held[self.body..];
                if self.held.len() <= self.limit {
                    return true;
                }
                if self.limit == MAX_SEQUENCE && query::is_clipboard(text) {
                    self.limit = MAX_CLIPBOARD;
                } else if query::long_osc_passes(text) {
                    self.pass_string(true, out);
                } else {
                    self.drop_string(true, out);
                }
            }
        }
        true
    }

    /// Judges the held command. Its last `end` bytes are the terminator; 0 if the command was interrupted.
    pub(super) fn end_osc(&mut self, end: usize, out: &mut Vec<u8>) {
        let text = &self.held[self.body..self.held.len() - end];
        let decision = match split_code(text) {
            (Some(code @ (104 | 105 | 110..=119)), b"") if self.in_snapshot && !self.changes.has_colour(code) => {
                Decision::Strip
            }
            _ => query::osc(text),
        };
        let passes = decision == Decision::Pass;
        if passes {
            self.changes.osc(text);
        }
        self.apply(decision, out);
        self.dangling = passes && end == 0;
    }

    pub(super) fn dcs(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match byte {
            ESC => self.restart(State::Escape, &[ESC], out),
            CAN | SUB => {
                self.held.push(byte);
                self.pass(out);
            }
            0x40..=0x7e => {
                self.held.push(byte);
                match query::dcs(&Csi::parse(&self.held[self.body..])) {
                    Decision::Strip => self.drop_string(false, out),
                    Decision::Pass | Decision::Replace(_) => self.pass_string(false, out),
                }
            }
            0x80..=0xff if byte != C2 => {
                self.cancel(out);
                return false;
            }
            _ => {
                self.hold_header(byte, out);
            }
        }
        true
    }

    pub(super) fn apc(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        let graphics = self.held.get(self.body).copied().or(Some(byte)) == Some(b'G');
        if !graphics {
            self.pass_string(false, out);
            return false;
        }
        match byte {
            b';' | ESC | CAN | SUB => {
                self.judge_graphics(out);
                return false;
            }
            _ => {
                self.hold_header(byte, out);
            }
        }
        true
    }

    /// Holds a byte of a header. If the header gets too long to judge, the string is dropped.
    fn hold_header(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.held.push(if byte == ENQ { 0 } else { byte });
        if self.held.len() > MAX_SEQUENCE {
            self.drop_string(false, out);
        }
    }

    /// Judges an application command whose control data is complete.
    pub(super) fn judge_graphics(&mut self, out: &mut Vec<u8>) {
        let decision = match self.held.get(self.body) {
            Some(b'G') => query::graphics(&self.held[self.body + 1..]),
            _ => Decision::Pass,
        };
        match decision {
            Decision::Strip => self.drop_string(false, out),
            Decision::Pass => self.pass_string(false, out),
            Decision::Replace(control) => {
                self.held.truncate(self.body + 1);
                self.held.extend_from_slice(&control);
                self.pass_string(false, out);
            }
        }
    }

    /// Handles a byte of a string that was judged already. Only bytes that may end it are held.
    pub(super) fn string(&mut self, byte: u8, osc: bool, pass: bool, out: &mut Vec<u8>) -> bool {
        match (self.held.first().copied(), byte) {
            (Some(ESC), b'\\') => {
                self.held.push(byte);
                self.end_string(pass, out);
            }
            (Some(ESC), _) => {
                self.dangling = pass;
                self.held.clear();
                self.begin(State::Escape, &[ESC]);
                return false;
            }
            (Some(_), 0x80..=0x9f) => {
                self.held.clear();
                self.dangling = pass;
                self.control(byte, out);
            }
            (Some(_), _) => {
                self.continue_string(pass, out);
                return false;
            }
            (None, ESC | C2) => self.held.push(byte),
            (None, CAN | SUB) => {
                self.held.push(byte);
                self.end_string(pass, out);
            }
            (None, BEL) if osc => {
                self.held.push(byte);
                self.end_string(pass, out);
            }
            (None, _) => {
                self.held.push(if byte == ENQ { 0 } else { byte });
                self.continue_string(pass, out);
            }
        }
        true
    }

    pub(super) fn pass_string(&mut self, osc: bool, out: &mut Vec<u8>) {
        self.dangling = false;
        let tail = self.split_tail();
        self.flush(out);
        self.held = tail;
        self.state = State::String { osc, pass: true };
    }

    fn drop_string(&mut self, osc: bool, out: &mut Vec<u8>) {
        self.end_dangling(out);
        self.held = self.split_tail();
        self.state = State::String { osc, pass: false };
    }

    /// Splits off the last byte of `held` if it may start a terminator.
    fn split_tail(&mut self) -> Vec<u8> {
        match self.held.last() {
            Some(&(ESC | C2)) if self.held.len() > self.body => self.held.split_off(self.held.len() - 1),
            _ => Vec::new(),
        }
    }

    pub(super) fn end_string(&mut self, pass: bool, out: &mut Vec<u8>) {
        if pass {
            self.pass(out);
        } else {
            self.held.clear();
            self.state = State::Ground;
        }
    }

    /// Passes or drops the held bytes of a string that has not ended.
    pub(super) fn continue_string(&mut self, pass: bool, out: &mut Vec<u8>) {
        if pass {
            self.flush(out);
        } else {
            self.held.clear();
        }
    }
}
