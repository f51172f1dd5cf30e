//! Control sequences (CSI): move the cursor, erase, shift, scroll, set modes.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::Params;
use alacritty_terminal::vte::ansi::{ClearMode, Handler, LineClearMode};

use super::limits::TITLE_STACK_MAX;
use super::repair;
use super::sgr;
use super::state::State;

impl State {
    /// Runs one control sequence.
    pub(super) fn csi(&mut self, params: &Params, intermediates: &[u8], action: char) {
        match (intermediates, action) {
            ([], 'm') => sgr::apply(&mut self.term.grid_mut().cursor.template, params),
            ([], _) => self.plain_csi(params, action),
            ([b'?'], 'h' | 'l') => {
                params.iter().for_each(|param| self.set_private(param.first().copied().unwrap_or(0), action == 'h'));
            }
            ([b'?'], 'J') => self.erase_display(number(params, 0, 0)),
            ([b'?'], 'K') => self.erase_line(number(params, 0, 0)),
            ([b'?'], 'W') if number(params, 0, 0) == 5 => self.tabs = super::state::default_tabs(self.cols()),
            ([b'!'], 'p') => self.soft_reset(),
            ([b' '], 'q') => {
                let style = number(params, 0, 0);
                if style <= 6 {
                    self.modes.cursor_style = style as u8;
                }
            }
            ([b'>'], 'm') if number(params, 0, 0) == 4 => {
                self.modes.modify_other_keys = number(params, 1, 0).min(2) as u8;
            }
            _ => self.query(params, intermediates, action),
        }
    }

    /// Control sequences without a prefix or intermediate bytes.
    fn plain_csi(&mut self, params: &Params, action: char) {
        let first = number(params, 0, 1);
        let (row, col) = self.cursor();
        let (top, bottom) = self.region;
        match action {
            '@' => self.shift(|state| state.term.insert_blank(first)),
            'A' | 'F' => {
                let limit = if row >= top { top } else { 0 };
                let col = if action == 'F' { 0 } else { col };
                self.set_cursor(row.saturating_sub(first).max(limit), col);
            }
            'B' | 'e' | 'E' => {
                let limit = if row < bottom { bottom } else { self.rows() };
                let col = if action == 'E' { 0 } else { col };
                self.set_cursor((row + first).min(limit - 1), col);
            }
            'C' | 'a' => self.set_cursor(row, col + first),
            'D' => self.set_cursor(row, col.saturating_sub(first)),
            'G' | '`' => self.set_cursor(row, first - 1),
            'd' => self.address_cursor(first - 1, col),
            'H' | 'f' => self.address_cursor(first - 1, number(params, 1, 1) - 1),
            'I' => self.tab_forward(first),
            'Z' => self.tab_back(first),
            'J' => self.erase_display(number(params, 0, 0)),
            'K' => self.erase_line(number(params, 0, 0)),
            'L' => self.shift_lines(|state| state.term.insert_blank_lines(first)),
            'M' => self.shift_lines(|state| state.term.delete_lines(first)),
            'P' => self.shift(|state| state.term.delete_chars(first.min(state.cols() - col))),
            'S' => self.scroll(|state| state.term.scroll_up(first)),
            // With more parameters it is xterm's highlight mouse tracking.
            'T' if params.len() <= 1 => self.scroll(|state| state.term.scroll_down(first)),
            'X' => self.shift(|state| state.term.erase_chars(first)),
            'b' => self.repeat(first),
            'g' => self.clear_tabs(number(params, 0, 0)),
            'h' | 'l' => {
                params.iter().for_each(|param| self.set_ansi(param.first().copied().unwrap_or(0), action == 'h'));
            }
            'r' => self.set_region(first - 1, number(params, 1, self.rows())),
            's' => self.save_cursor(),
            'u' => self.restore_cursor(),
            't' => match (number(params, 0, 0), number(params, 1, 0)) {
                (22, 0 | 2) => self.push_title(),
                (23, 0 | 2) => self.pop_title(),
                _ => self.query(params, &[], action),
            },
            _ => self.query(params, &[], action),
        }
    }

    /// Runs a change of the cursor's row that can split wide characters.
    fn shift(&mut self, change: impl FnOnce(&mut State)) {
        let (row, col) = self.cursor();
        self.set_cursor(row, col);
        change(self);
        repair::row(&mut self.term.grid_mut()[Line(row as i32)]);
    }

    fn shift_lines(&mut self, change: impl FnOnce(&mut State)) {
        let row = self.cursor().0;
        if row >= self.region.0 && row < self.region.1 {
            self.set_cursor(row, 0);
            self.scroll(change);
        }
    }

    fn scroll(&mut self, change: impl FnOnce(&mut State)) {
        change(self);
        repair::bottom(self.term.grid_mut());
        repair::pending(self.term.grid_mut());
    }

    fn erase_line(&mut self, part: usize) {
        let mode = match part {
            0 => LineClearMode::Right,
            1 => LineClearMode::Left,
            2 => LineClearMode::All,
            _ => return,
        };
        self.term.clear_line(mode);
        let (row, col) = self.cursor();
        if part == 2 || (part == 0 && col == 0) {
            repair::above(self.term.grid_mut(), Line(row as i32));
        }
        repair::row(&mut self.term.grid_mut()[Line(row as i32)]);
    }

    fn erase_display(&mut self, part: usize) {
        let (row, col) = self.cursor();
        match part {
            0 => {
                self.term.clear_screen(ClearMode::Below);
                if col == 0 {
                    repair::above(self.term.grid_mut(), Line(row as i32));
                }
            }
            1 => {
                // The emulator's own method leaves out the first row if the cursor is in the second.
                let grid = self.term.grid_mut();
                grid.reset_region(..Line(row as i32));
                let blank = Cell::from(grid.cursor.template.bg);
                (0..=col).for_each(|col| grid[Line(row as i32)][Column(col)] = blank.clone());
            }
            2 => self.term.clear_screen(ClearMode::All),
            3 => self.term.clear_screen(ClearMode::Saved),
            _ => return,
        }
        let grid = self.term.grid_mut();
        repair::row(&mut grid[Line(row as i32)]);
        if row > 0 || grid.history_size() > 0 {
            repair::bottom(grid);
        }
    }

    fn clear_tabs(&mut self, which: usize) {
        let col = self.cursor().1;
        match which {
            0 => self.tabs[col] = false,
            3 => self.tabs.fill(false),
            _ => {}
        }
    }

    fn set_ansi(&mut self, mode: u16, on: bool) {
        match mode {
            4 => self.set_insert(on),
            20 => self.modes.newline = on,
            _ => {}
        }
    }

    fn set_private(&mut self, mode: u16, on: bool) {
        match mode {
            6 => {
                self.modes.origin = on;
                self.address_cursor(0, 0);
            }
            7 => self.set_autowrap(on),
            47 | 1047 | 1049 if on => self.enter_alt(),
            47 | 1047 | 1049 => self.leave_alt(),
            1048 if on => self.save_cursor(),
            1048 => self.restore_cursor(),
            _ => self.modes.set_private(mode, on),
        }
    }

    fn push_title(&mut self) {
        if self.titles.len() >= TITLE_STACK_MAX {
            self.titles.remove(0);
        }
        self.titles.push(self.title.clone());
    }

    fn pop_title(&mut self) {
        if let Some(title) = self.titles.pop() {
            self.set_title(title);
        }
    }
}

/// The parameter at `index`, or `default` if it is missing or 0.
pub(super) fn number(params: &Params, index: usize, default: usize) -> usize {
    match params.iter().nth(index).and_then(|param| param.first()) {
        Some(&n) if n != 0 => usize::from(n),
        _ => default,
    }
}
