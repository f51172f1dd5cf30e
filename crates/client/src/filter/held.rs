//! The bytes that the filter holds back: what is done with them once their sequence is judged.

use super::query::Decision;
use super::{CAN, ESC, Filter, MAX_SEQUENCE, State};

impl Filter {
    /// Starts a sequence.
    pub(super) fn begin(&mut self, state: State, introducer: &[u8]) {
        self.state = state;
        self.held.clear();
        self.held.extend_from_slice(introducer);
        self.body = introducer.len();
        self.limit = MAX_SEQUENCE;
    }

    /// Starts a sequence in the middle of another one, which passes unfinished. Every parser restarts at ESC, but not
    /// all do at an 8-bit introducer, so the unfinished sequence is cancelled before one.
    pub(super) fn restart(&mut self, state: State, introducer: &[u8], out: &mut Vec<u8>) {
        let previous = self.state;
        match previous {
            State::Osc => self.end_osc(0, out),
            State::Escape | State::Csi if introducer[0] != ESC => self.cancel(out),
            State::LongCsi | State::String { pass: false, .. } => self.held.clear(),
            State::Ground | State::Escape | State::Csi | State::Dcs | State::Apc | State::String { pass: true, .. } => {
                self.dangling |= !self.held.is_empty();
                self.flush(out);
            }
        }
        if introducer[0] != ESC && previous != State::Ground {
            self.end_dangling(out);
        }
        self.begin(state, introducer);
    }

    /// Holds a byte of a short sequence. Past [`MAX_SEQUENCE`], the sequence is dropped and the state becomes `long`.
    pub(super) fn hold(&mut self, byte: u8, long: State, out: &mut Vec<u8>) {
        if self.state == State::LongCsi || self.held.len() < MAX_SEQUENCE {
            if self.state != State::LongCsi {
                self.held.push(byte);
            }
            return;
        }
        self.end_dangling(out);
        self.held.clear();
        self.state = long;
        if long == State::LongCsi {
            // `held` must not be empty, or the next byte would be treated as text.
            self.held.push(ESC);
        }
    }

    /// Passes, removes or replaces the held sequence.
    pub(super) fn apply(&mut self, decision: Decision, out: &mut Vec<u8>) {
        match decision {
            Decision::Pass => self.pass(out),
            Decision::Strip => self.strip(out),
            Decision::Replace(bytes) => {
                self.held = bytes;
                self.pass(out);
            }
        }
    }

    /// Passes the held bytes, which end the sequence.
    pub(super) fn pass(&mut self, out: &mut Vec<u8>) {
        self.dangling = false;
        self.flush(out);
        self.state = State::Ground;
    }

    /// Removes the held sequence; C0 controls inside it still pass.
    pub(super) fn strip(&mut self, out: &mut Vec<u8>) {
        self.end_dangling(out);
        if matches!(self.state, State::Escape | State::Csi) {
            out.extend(self.held.iter().skip(1).filter(|b| **b < 0x20 && **b != ESC));
        }
        self.held.clear();
        self.state = State::Ground;
    }

    /// Ends the held sequence before a character that cannot be part of it.
    pub(super) fn cancel(&mut self, out: &mut Vec<u8>) {
        if self.state == State::LongCsi {
            self.held.clear();
        } else {
            self.flush(out);
            self.dangling = true;
        }
        self.end_dangling(out);
        self.state = State::Ground;
    }

    /// Cancels the unfinished sequence that the terminal has received, if any.
    pub(super) fn end_dangling(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.dangling) {
            out.push(CAN);
        }
    }

    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.held);
        self.held.clear();
    }
}
