//! Prints characters into cells, and handles the cases that the emulator gets wrong.

use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::Handler;
use unicode_width::UnicodeWidthChar;

use super::limits::MARKS_MAX;
use super::repair;
use super::state::State;

impl State {
    /// Prints a character. ASCII without special modes takes the emulator's fast path.
    #[inline]
    pub(super) fn print_char(&mut self, c: char) {
        if c <= '~' && !self.slow_print {
            self.term.input(c);
            self.printed = true;
        } else {
            self.print_unusual(c);
        }
    }

    #[inline(never)]
    fn print_unusual(&mut self, c: char) {
        if never_combines(c) && !self.slow_print {
            self.term.input(c);
            self.printed = true;
            return;
        }
        match c.width() {
            None => {}
            Some(0) => self.combine(c),
            Some(_) if !self.slow_print => {
                self.term.input(c);
                self.printed = true;
            }
            Some(width) => self.print_slow(c, width.min(2)),
        }
    }

    /// Adds a combining mark to the character before the cursor.
    fn combine(&mut self, c: char) {
        let (row, col) = self.cursor();
        let pending = self.grid().cursor.input_needs_wrap;
        let row = &mut self.term.grid_mut()[Line(row as i32)];
        let mut col = if pending { col } else { col.saturating_sub(1) };
        if row[Column(col)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            col = col.saturating_sub(1);
        }
        let marks = row[Column(col)].zerowidth().map_or(0, <[char]>::len);
        if marks < MARKS_MAX {
            row[Column(col)].push_zerowidth(c);
        }
    }

    /// Prints in insert mode, without autowrap, or with rows below the scroll region.
    fn print_slow(&mut self, c: char, width: usize) {
        if self.modes.autowrap && self.grid().cursor.input_needs_wrap {
            self.wrap(false);
        }
        let cols = self.cols();
        if self.cursor().1 + width > cols {
            if !self.modes.autowrap {
                self.term.grid_mut().cursor.input_needs_wrap = false;
                self.printed = false;
                return;
            }
            self.wrap(true);
        }
        let (row, col) = self.cursor();
        let line = Line(row as i32);
        if self.modes.insert && col + width < cols {
            // The emulator moves cells that are shifted off the end to the cursor. Blank cells do no harm there.
            let row = &mut self.term.grid_mut()[line];
            for col in cols - width..cols {
                row[Column(col)] = Cell::default();
            }
            repair::row(row);
        }
        self.term.input(c);
        if self.modes.insert {
            repair::row(&mut self.term.grid_mut()[line]);
        }
        self.printed = true;
    }

    /// Wraps to the next row. `early`: a wide character does not fit into the last column.
    fn wrap(&mut self, early: bool) {
        let (row, col) = self.cursor();
        let (line, below) = (Line(row as i32), row + 1);
        let moves = below == self.region.1 || below < self.rows();
        let grid = self.term.grid_mut();
        if early {
            let blank = Cell { c: ' ', ..grid.cursor.template.clone() };
            grid[line][Column(col)] = blank;
        }
        if moves {
            let mark = if early { Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER } else { Flags::WRAPLINE };
            grid[line][Column(col)].flags.insert(mark);
        }
        repair::row(&mut grid[line]);
        self.term.linefeed();
        self.term.carriage_return();
    }

    /// REP: prints the last printed character `count` more times.
    pub(super) fn repeat(&mut self, count: usize) {
        let Some((row, col)) = self.printed_cell() else { return };
        let cell = &self.grid()[Line(row as i32)][Column(col)];
        let c = cell.c;
        let marks: Vec<char> = cell.zerowidth().unwrap_or_default().to_vec();
        for _ in 0..count.min(self.cols() * self.rows()) {
            self.print_char(c);
            marks.iter().for_each(|&mark| self.print_char(mark));
        }
    }
}

/// Whether `c` is in a common block without combining characters. The emulator looks up the width of such a
/// character, so it need not be looked up here, too.
fn never_combines(c: char) -> bool {
    matches!(c, '\u{ae}'..='\u{2ff}' | '\u{2500}'..='\u{25ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_of_the_common_blocks_combines() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|&c| never_combines(c)) {
            assert!(matches!(c.width(), Some(1 | 2)), "{c:?}");
        }
    }
}
