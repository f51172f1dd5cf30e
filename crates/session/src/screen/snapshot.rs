//! Writes the terminal's state as escape sequences, which put another terminal into the same state.

use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{CharsetIndex, StandardCharset};
use bowline_host::saved::RESET;
use bowline_proto::message::Scope;
use bytes::Bytes;

use super::limits::PAINTED_SCROLLBACK_MAX;
use super::modes::Modes;
use super::paint::{Painter, painted_len};
use super::palette::{self, BACKGROUND, CURSOR, FOREGROUND};
use super::sgr::Pen;
use super::state::{State, default_tabs};

/// Cancels an unfinished sequence, switches to the main screen, and resets attributes, charsets, link,
/// scroll region and colours.
const RESET_SCREEN: &str = "\x18\x1b[!p\x1b[?1049l\x1b[!p\x1b[m\x0f\x1b(B\x1b)B\x1b*B\x1b+B\x1b]8;;\x1b\\\x1b[r\
    \x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\";
const SLOTS: [(CharsetIndex, char); 4] =
    [(CharsetIndex::G0, '('), (CharsetIndex::G1, ')'), (CharsetIndex::G2, '*'), (CharsetIndex::G3, '+')];

impl State {
    /// The escape sequences for `scope`, with at most `scrollback` lines of history. [`Scope::Screen`]
    /// leaves the viewer's scrollback and title stack as they are.
    pub(super) fn snapshot(&mut self, scope: Scope, scrollback: usize) -> Vec<Bytes> {
        let mut painter = Painter::default();
        match scope {
            Scope::All => painter.text(RESET),
            Scope::Screen => {
                painter.text(RESET_SCREEN);
                painter.out.extend_from_slice(Modes::RESET);
                painter.text("\x1b[H\x1b[J");
            }
        }
        let scrollback = if scope == Scope::All { scrollback } else { 0 };
        if self.is_alt() {
            self.with_main(|main| {
                paint_history(&mut painter, main, scrollback);
                paint_screen(&mut painter, main);
                paint_cursor(&mut painter, &main.cursor, 0);
            });
            self.paint_margins(&mut painter, scope);
            self.with_main(|main| paint_cursor(&mut painter, &main.cursor, 0));
            painter.text("\x1b[?1049h");
            let coloured = self.with_main(|main| main.cursor.template.bg) != Pen::default().bg;
            paint_charsets(&mut painter, &Cursor::default());
            painter.set_pen(Pen::default());
            painter.text(if coloured { "\x1b[H\x1b[J" } else { "\x1b[H" });
            // Some terminals keep margins per screen.
            painter.text("\x1b[r");
        } else {
            paint_history(&mut painter, self.grid(), scrollback);
        }
        paint_screen(&mut painter, self.grid());
        self.paint_saved_cursor(&mut painter, scope);
        self.paint_margins(&mut painter, scope);
        self.paint_window(&mut painter, scope);
        self.paint_active_cursor(&mut painter);
        painter.finish()
    }

    fn paint_saved_cursor(&self, painter: &mut Painter, scope: Scope) {
        let saved = &self.grid().saved_cursor;
        if self.is_alt() || scope == Scope::Screen || *saved != Cursor::default() {
            paint_cursor(painter, saved, 0);
            painter.text("\x1b7");
            paint_charsets(painter, &Cursor::default());
        }
    }

    /// Tab stops and the scroll region.
    fn paint_margins(&self, painter: &mut Painter, scope: Scope) {
        if scope == Scope::Screen || self.tabs != default_tabs(self.cols()) {
            painter.text("\x1b[3g");
            for col in (0..self.cols()).filter(|&col| self.tabs[col]) {
                painter.text(&format!("\x1b[{}G\x1bH", col + 1));
            }
        }
        if self.region != (0, self.rows()) {
            painter.text(&format!("\x1b[{};{}r", self.region.0 + 1, self.region.1));
        }
    }

    /// Title, title stack, and colours that a program changed.
    fn paint_window(&self, painter: &mut Painter, scope: Scope) {
        if scope == Scope::All {
            self.titles.iter().for_each(|title| painter.text(&format!("\x1b]2;{title}\x1b\\\x1b[22;2t")));
        }
        painter.text(&format!("\x1b]2;{}\x1b\\", self.title));
        let colours = self.term.colors();
        for (index, colour) in (0..256).filter_map(|index| Some((index, colours[index]?))) {
            painter.text(&format!("\x1b]4;{index};{}\x1b\\", palette::write(colour)));
        }
        for (name, index) in [(10, FOREGROUND), (11, BACKGROUND), (12, CURSOR)] {
            if let Some(colour) = colours[index] {
                painter.text(&format!("\x1b]{name};{}\x1b\\", palette::write(colour)));
            }
        }
    }

    /// Position, pending wrap, attributes and modes; at the end the character that REP would repeat.
    fn paint_active_cursor(&self, painter: &mut Painter) {
        if self.modes.origin {
            painter.text("\x1b[?6h");
        }
        let top = self.addressable_rows().0;
        let cursor = &self.grid().cursor;
        let printed = self.printed_cell();
        if cursor.input_needs_wrap && printed.is_none() {
            let line = &self.grid()[cursor.point.line];
            let mut col = cursor.point.column;
            if line[col].flags.contains(Flags::WIDE_CHAR_SPACER) {
                col -= 1;
            }
            let row = usize::try_from(cursor.point.line.0).unwrap_or(0);
            painter.move_to(row - top, col.0);
            repaint(painter, &line[col], false);
            // Any control character: the program's last output was not this character, so REP must not repeat it.
            painter.text("\x0f");
            paint_charsets(painter, cursor);
            painter.set_pen(Pen::of(&cursor.template));
        } else {
            paint_cursor(painter, cursor, top);
        }
        painter.text(match self.charset {
            CharsetIndex::G0 => "",
            CharsetIndex::G1 => "\x0e",
            CharsetIndex::G2 => "\x1bn",
            CharsetIndex::G3 => "\x1bo",
        });
        self.modes.write(&mut painter.out);
        if let Some((row, col)) = printed {
            let cell = &self.grid()[Line(row as i32)][Column(col)];
            painter.move_to(row - top, col);
            repaint(painter, cell, self.modes.insert);
        }
    }
}

/// Writes the last lines of history, as far as [`PAINTED_SCROLLBACK_MAX`] allows, and scrolls them off the screen.
fn paint_history(painter: &mut Painter, grid: &Grid<Cell>, scrollback: usize) {
    // From the newest to the oldest, since it is not known before how many fit. No line depends on the one before.
    let mut rows = Painter::default();
    let mut starts = Vec::new();
    for line in 1..=grid.history_size().min(scrollback) {
        let start = rows.out.len();
        let wrapped = rows.row(&grid[Line(-(line as i32))]);
        rows.set_pen(Pen::default());
        if !wrapped {
            rows.text("\r\n");
        }
        if rows.out.len() > PAINTED_SCROLLBACK_MAX {
            rows.out.truncate(start);
            break;
        }
        starts.push(start);
    }
    painter.links += rows.links;
    let mut end = rows.out.len();
    for start in starts.iter().rev() {
        painter.out.extend_from_slice(&rows.out[*start..end]);
        painter.cut();
        end = *start;
    }
    let lines = starts.len();
    let below = lines.min(grid.screen_lines() - 1);
    if below > 0 {
        painter.move_to(grid.screen_lines() - 1, 0);
        painter.out.extend(std::iter::repeat_n(b'\n', below));
    }
    if lines > 0 {
        painter.move_to(0, 0);
    }
}

/// Writes the visible rows onto a blank screen, from its top.
fn paint_screen(painter: &mut Painter, grid: &Grid<Cell>) {
    let rows = grid.screen_lines();
    let used = (0..rows).rev().find(|&row| painted_len(&grid[Line(row as i32)]) > 0).map_or(0, |row| row + 1);
    for row in 0..used {
        let wrapped = painter.row(&grid[Line(row as i32)]);
        if !wrapped && row + 1 < used {
            painter.text("\r\n");
        }
        painter.cut();
    }
}

/// Writes a character over itself, so that the terminal is in the state right after printing it.
fn repaint(painter: &mut Painter, cell: &Cell, insert: bool) {
    let wide = cell.flags.contains(Flags::WIDE_CHAR);
    match (insert, wide) {
        (true, false) => painter.text("\x1b[P"),
        (true, true) => painter.text("\x1b[2P"),
        // Overwriting a wide character can also change the row above; erasing it first prevents that.
        (false, true) => painter.text("\x1b[2X"),
        (false, false) => {}
    }
    painter.cell(cell);
}

/// Writes a cursor's position, charsets and attributes. `top` is the row that positions count from.
fn paint_cursor(painter: &mut Painter, cursor: &Cursor<Cell>, top: usize) {
    let row = usize::try_from(cursor.point.line.0).unwrap_or(0);
    painter.move_to(row.saturating_sub(top), cursor.point.column.0);
    paint_charsets(painter, cursor);
    painter.set_pen(Pen::of(&cursor.template));
}

/// Designates the charsets that differ from this cursor's.
fn paint_charsets(painter: &mut Painter, cursor: &Cursor<Cell>) {
    for (slot, mark) in SLOTS {
        let drawing = cursor.charsets[slot] == StandardCharset::SpecialCharacterAndLineDrawing;
        let code = if drawing { '0' } else { 'B' };
        if painter.charsets[slot as usize] != code {
            painter.charsets[slot as usize] = code;
            painter.text(&format!("\x1b{mark}{code}"));
        }
    }
}
