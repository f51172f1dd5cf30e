//! Rows of cells written as text and attributes, onto rows that are blank.

use alacritty_terminal::grid::Row;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};

use super::sgr::Pen;

/// Shortest run of blanks that is skipped by moving the cursor instead of printing.
const SKIP_MIN: usize = 6;
/// Shortest run of coloured blanks that is erased instead of printed.
const ERASE_MIN: usize = 14;
/// A character as wide as two cells in every table of widths.
const WIDE_BLANK: char = '\u{3000}';

/// Writes rows, and remembers which attributes are in force.
pub(super) struct Painter {
    pub(super) out: Vec<u8>,
    /// What each charset slot was last designated to.
    pub(super) charsets: [char; 4],
    pen: Pen,
}

impl Default for Painter {
    fn default() -> Painter {
        Painter { out: Vec::new(), charsets: ['B'; 4], pen: Pen::default() }
    }
}

impl Painter {
    pub(super) fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn set_pen(&mut self, pen: Pen) {
        if pen != self.pen {
            pen.write(&self.pen, &mut self.out);
            self.pen = pen;
        }
    }

    /// Puts the cursor at a row and column, from 0.
    pub(super) fn go(&mut self, row: usize, col: usize) {
        match (row, col) {
            (0, 0) => self.text("\x1b[H"),
            (row, 0) => self.text(&format!("\x1b[{}H", row + 1)),
            (row, col) => self.text(&format!("\x1b[{};{}H", row + 1, col + 1)),
        }
    }

    /// Writes a row from its start; whether the terminal has then wrapped to the next row, as this one did.
    pub(super) fn row(&mut self, row: &Row<Cell>) -> bool {
        let last = row.len() - 1;
        let end = &row[Column(last)];
        let wrapped = end.flags.contains(Flags::WRAPLINE);
        if !wrapped {
            self.cells(row, painted_len(row));
            return false;
        }
        let wide = end.flags.contains(Flags::WIDE_CHAR_SPACER);
        let at = self.cells(row, if wide { last - 1 } else { last });
        self.skip(if wide { last - 1 } else { last } - at);
        if end.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
            self.set_pen(Pen::of(end));
            self.out.extend_from_slice(WIDE_BLANK.encode_utf8(&mut [0; 4]).as_bytes());
            self.set_pen(Pen::default());
            self.text(&format!("\r\x1b[{}X", row.len()));
        } else {
            self.cell(if wide { &row[Column(last - 1)] } else { end });
            self.set_pen(Pen::default());
            self.text(" \r");
        }
        true
    }

    /// Writes the first `len` cells; returns the column where the cursor is, blanks at the end being left out.
    fn cells(&mut self, row: &Row<Cell>, len: usize) -> usize {
        let mut col = 0;
        let mut blanks = 0;
        while col < len {
            let cell = &row[Column(col)];
            if is_blank(cell) {
                blanks += 1;
                col += 1;
                continue;
            }
            self.skip(std::mem::take(&mut blanks));
            let erased = (col..len).take_while(|&at| is_erased(&row[Column(at)], cell)).count();
            if erased == row.len() - col && erased > 3 {
                self.set_pen(Pen::of(cell));
                // Erasing to the end of the line would also make xterm.js forget that it was wrapped to.
                self.text(&format!("\x1b[{erased}X"));
                return col;
            }
            if erased >= ERASE_MIN {
                self.set_pen(Pen::of(cell));
                self.text(&format!("\x1b[{erased}X\x1b[{erased}C"));
                col += erased;
                continue;
            }
            if !cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
                self.cell(cell);
            }
            col += 1;
        }
        col - blanks
    }

    /// Writes a row for reading, without moving the cursor or erasing.
    pub(super) fn plain_row(&mut self, row: &Row<Cell>) {
        for cell in (0..painted_len(row)).map(|col| &row[Column(col)]) {
            if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                self.cell(cell);
            }
        }
    }

    /// Moves over blanks that are there already.
    fn skip(&mut self, blanks: usize) {
        if blanks >= SKIP_MIN || (blanks > 0 && self.pen != Pen::default()) {
            self.text(&if blanks == 1 { "\x1b[C".to_owned() } else { format!("\x1b[{blanks}C") });
        } else {
            self.out.extend(std::iter::repeat_n(b' ', blanks));
        }
    }

    /// Writes one character with its marks.
    pub(super) fn cell(&mut self, cell: &Cell) {
        let same = cell.extra.is_none()
            && self.pen.link.is_none()
            && self.pen.underline.is_none()
            && cell.fg == self.pen.fg
            && cell.bg == self.pen.bg
            && (cell.flags - (Flags::WRAPLINE | Flags::WIDE_CHAR)) == self.pen.flags;
        if !same {
            self.set_pen(Pen::of(cell));
        }
        let mut buffer = [0; 4];
        for c in std::iter::once(&cell.c).chain(cell.zerowidth().unwrap_or_default()) {
            self.out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        }
    }
}

/// How many cells of a row have to be written.
pub(super) fn painted_len(row: &Row<Cell>) -> usize {
    (0..row.len()).rev().find(|&col| !is_blank(&row[Column(col)])).map_or(0, |col| col + 1)
}

/// Nothing was written here since the row was cleared.
fn is_blank(cell: &Cell) -> bool {
    cell.c == ' ' && cell.flags.is_empty() && cell.extra.is_none() && *cell == Cell::default()
}

/// Cleared with a colour, the same as in `like`.
fn is_erased(cell: &Cell, like: &Cell) -> bool {
    cell.bg == like.bg && *cell == Cell::from(like.bg)
}
