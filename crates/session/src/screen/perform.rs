//! Applies what the parser reports to the terminal: characters, control characters and short escape sequences.

use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::vte::ansi::{CharsetIndex, Handler, StandardCharset};
use alacritty_terminal::vte::{Params, Perform};

use super::query;
use super::repair;
use super::state::State;

impl Perform for State {
    #[inline]
    fn print(&mut self, c: char) {
        self.print_char(c);
    }

    #[inline]
    fn execute(&mut self, byte: u8) {
        self.printed = false;
        match byte {
            0x07 => self.events.bell(),
            0x08 => self.backspace(),
            0x09 => self.tab_forward(1),
            0x0a..=0x0c => self.newline(),
            0x0d => self.term.carriage_return(),
            0x0e => self.set_charset(CharsetIndex::G1),
            0x0f => self.set_charset(CharsetIndex::G0),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], ignored: bool, byte: u8) {
        self.printed = false;
        match (intermediates, byte) {
            _ if ignored => {}
            ([], b'7') => self.save_cursor(),
            ([], b'8') => self.restore_cursor(),
            ([], b'=') => self.modes.app_keypad = true,
            ([], b'>') => self.modes.app_keypad = false,
            ([], b'D') => self.index(),
            ([], b'E') => {
                self.index();
                self.term.carriage_return();
            }
            ([], b'H') => self.set_tab(),
            ([], b'M') => self.reverse_index(),
            ([], b'Z') => self.reply(query::PRIMARY),
            ([], b'c') => self.reset(),
            ([], b'n') => self.set_charset(CharsetIndex::G2),
            ([], b'o') => self.set_charset(CharsetIndex::G3),
            ([b'#'], b'8') => {
                self.term.decaln();
                self.address_cursor(0, 0);
            }
            ([slot], b'0') => self.designate(*slot, StandardCharset::SpecialCharacterAndLineDrawing),
            ([slot], b'A'..=b'Z' | b'1'..=b'9') => self.designate(*slot, StandardCharset::Ascii),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignored: bool, action: char) {
        // The flag is also set for too many parameters; then those that fit are used.
        if !ignored || intermediates.len() < 2 {
            self.csi(params, intermediates, action);
        }
        // REP prints, so the character can be repeated again.
        if !(action == 'b' && intermediates.is_empty()) {
            self.printed = false;
        }
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], bell: bool) {
        self.printed = false;
        if !std::mem::take(&mut self.discard_osc) {
            self.osc(params, if bell { "\x07" } else { "\x1b\\" });
        }
    }

    fn hook(&mut self, _params: &Params, intermediates: &[u8], ignored: bool, action: char) {
        self.printed = false;
        self.device_string.start(intermediates, ignored, action);
    }

    #[inline]
    fn put(&mut self, byte: u8) {
        self.device_string.push(byte);
    }

    fn unhook(&mut self) {
        self.reply_to_device_string();
    }
}

impl State {
    /// LF: moves down, and in newline mode to the first column.
    #[inline]
    fn newline(&mut self) {
        let before = self.grid().cursor.point.line;
        self.index();
        if self.grid().cursor.point.line != before {
            repair::above(self.term.grid_mut(), before + 1);
        }
        if self.modes.newline {
            self.term.carriage_return();
        }
    }

    /// IND: moves down, and scrolls at the bottom of the scroll region.
    #[inline]
    fn index(&mut self) {
        self.term.linefeed();
        self.term.grid_mut().cursor.input_needs_wrap = false;
    }

    /// RI: moves up, and scrolls at the top of the scroll region.
    fn reverse_index(&mut self) {
        self.term.reverse_index();
        self.term.grid_mut().cursor.input_needs_wrap = false;
        repair::bottom(self.term.grid_mut());
    }

    fn backspace(&mut self) {
        let (row, col) = self.cursor();
        let in_region = row > self.region.0 && row < self.region.1;
        if self.modes.reverse_wrap && self.grid().cursor.input_needs_wrap {
            self.set_cursor(row, col);
        } else if col > 0 {
            self.set_cursor(row, col - 1);
        } else if self.modes.reverse_wrap && in_region {
            let last = self.cols() - 1;
            let end = &mut self.term.grid_mut()[Line(row as i32 - 1)][Column(last)];
            if end.flags.contains(Flags::WRAPLINE) {
                let early = end.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER);
                end.flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
                self.set_cursor(row - 1, if early { last - 1 } else { last });
            }
        }
    }

    fn designate(&mut self, slot: u8, charset: StandardCharset) {
        let index = match slot {
            b'(' => CharsetIndex::G0,
            b')' | b'-' => CharsetIndex::G1,
            b'*' | b'.' => CharsetIndex::G2,
            b'+' | b'/' => CharsetIndex::G3,
            _ => return,
        };
        self.term.configure_charset(index, charset);
    }

    fn set_tab(&mut self) {
        let col = self.cursor().1;
        self.tabs[col] = true;
    }

    /// HT and CHT. Without effect while a wrap is pending, like [`State::tab_back`].
    pub(super) fn tab_forward(&mut self, count: usize) {
        let (row, col) = self.cursor();
        if self.grid().cursor.input_needs_wrap {
            return;
        }
        let stops = (col + 1..self.cols()).filter(|&col| self.tabs[col]);
        let to = stops.take(count).nth(count.saturating_sub(1)).unwrap_or(self.cols() - 1);
        self.set_cursor(row, to);
    }

    /// CBT.
    pub(super) fn tab_back(&mut self, count: usize) {
        let (row, col) = self.cursor();
        if self.grid().cursor.input_needs_wrap {
            return;
        }
        let to = (0..col).rev().filter(|&col| self.tabs[col]).nth(count.saturating_sub(1)).unwrap_or(0);
        self.set_cursor(row, to);
    }
}
