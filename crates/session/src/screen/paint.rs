//! Writes rows of cells as text and escape sequences, onto blank rows.

use alacritty_terminal::grid::Row;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};
use bytes::Bytes;

use super::limits::PAINTED_LINKS_MAX;
use super::sgr::Pen;

/// Shortest run of blanks that is skipped by moving the cursor, instead of printing spaces.
const SKIP_MIN: usize = 6;
/// Shortest run of coloured blanks that is written by erasing, instead of printing spaces.
const ERASE_MIN: usize = 14;
/// A blank that is two cells wide in every terminal.
const WIDE_BLANK: char = '\u{3000}';
/// A snapshot is cut into pieces of about this many bytes.
const PIECE: usize = 64 << 10;
/// Room for the rest of a row in a piece.
const PIECE_SLACK: usize = 8 << 10;

/// Writes rows, and tracks the current attributes.
pub(super) struct Painter {
    /// What is painted since the last [`Painter::cut`].
    pub(super) out: Vec<u8>,
    pieces: Vec<Bytes>,
    /// Bytes of links so far.
    pub(super) links: usize,
    /// The charset that was last designated for each slot.
    pub(super) charsets: [char; 4],
    pen: Pen,
}

impl Default for Painter {
    fn default() -> Painter {
        Painter { out: Vec::new(), pieces: Vec::new(), links: 0, charsets: ['B'; 4], pen: Pen::default() }
    }
}

impl Painter {
    pub(super) fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Begins a new piece if the current one is long enough.
    pub(super) fn cut(&mut self) {
        if self.out.len() >= PIECE {
            let piece = std::mem::replace(&mut self.out, Vec::with_capacity(PIECE + PIECE_SLACK));
            self.pieces.push(piece.into());
        }
    }

    /// Everything that is painted.
    pub(super) fn finish(mut self) -> Vec<Bytes> {
        self.pieces.push(self.out.into());
        self.pieces
    }

    pub(super) fn set_pen(&mut self, mut pen: Pen) {
        if pen.link != self.pen.link
            && let Some(link) = &pen.link
        {
            self.links += link.uri().len() + link.id().len();
            pen.link.take_if(|_| self.links > PAINTED_LINKS_MAX);
        }
        if pen != self.pen {
            pen.write(&self.pen, &mut self.out);
            self.pen = pen;
        }
    }

    /// Moves the cursor to a row and column, counted from 0.
    pub(super) fn move_to(&mut self, row: usize, col: usize) {
        match (row, col) {
            (0, 0) => self.text("\x1b[H"),
            (row, 0) => self.text(&format!("\x1b[{}H", row + 1)),
            (row, col) => self.text(&format!("\x1b[{};{}H", row + 1, col + 1)),
        }
    }

    /// Writes a row from its start. Returns whether the row is wrapped; the cursor is then at the start of
    /// the next row.
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

    /// Writes the first `len` cells, except for blanks at the end. Returns the cursor's column.
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
                // Not `CSI K`: in xterm.js it also removes the mark that this row continues the one above.
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

    /// Writes a row as text and attributes only, without moving the cursor or erasing.
    pub(super) fn plain_row(&mut self, row: &Row<Cell>) {
        for cell in (0..painted_len(row)).map(|col| &row[Column(col)]) {
            if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                self.cell(cell);
            }
        }
    }

    /// Skips blanks, since the row is blank already.
    fn skip(&mut self, blanks: usize) {
        if blanks >= SKIP_MIN || (blanks > 0 && self.pen != Pen::default()) {
            self.text(&if blanks == 1 { "\x1b[C".to_owned() } else { format!("\x1b[{blanks}C") });
        } else {
            self.out.extend(std::iter::repeat_n(b' ', blanks));
        }
    }

    /// Writes one character with its combining marks.
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

/// The number of cells up to the last one that is not blank.
pub(super) fn painted_len(row: &Row<Cell>) -> usize {
    (0..row.len()).rev().find(|&col| !is_blank(&row[Column(col)])).map_or(0, |col| col + 1)
}

/// Whether the cell is in its default state.
fn is_blank(cell: &Cell) -> bool {
    cell.c == ' ' && cell.flags.is_empty() && cell.extra.is_none() && *cell == Cell::default()
}

/// Whether the cell was erased with the background colour of `like`.
fn is_erased(cell: &Cell, like: &Cell) -> bool {
    cell.bg == like.bg && *cell == Cell::from(like.bg)
}
