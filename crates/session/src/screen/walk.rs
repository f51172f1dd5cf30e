//! Reads an address from cells, going on in the next row where the text does.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::address::is_part;
use super::limits::URL_MAX;

/// What is between the scheme and the host.
const MARK: &str = "://";

/// What is at a colon.
pub(super) enum Read {
    /// No address.
    Nothing,
    /// An address, perhaps with punctuation after it.
    Whole(String),
    /// One that the cursor stands right behind, so that more of it may come.
    Unfinished,
}

/// A cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: i32,
    pub(super) col: usize,
}

/// Reads the address whose scheme ends with the colon at `colon`; also returns the last cell of it.
pub(super) fn read_address(grid: &Grid<Cell>, colon: Place) -> (Read, Place) {
    let scheme: String = std::iter::successors(colon.previous(grid), |place| place.previous(grid))
        .map(|place| place.cell(grid).c.to_ascii_lowercase())
        .take("https".len())
        .collect();
    let mut text = match scheme.as_str() {
        "sptth" => "https".to_owned(),
        scheme if scheme.starts_with("ptth") => "http".to_owned(),
        _ => return (Read::Nothing, colon),
    };
    let mark = text.len();
    let mut place = Some(colon);
    let mut last = colon;
    while let Some(at) = place {
        let cell = at.cell(grid);
        // Before a wide character that did not fit there is one column of nothing.
        if !cell.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
            if !is_part(cell.c) || text.len() > URL_MAX {
                break;
            }
            text.push(cell.c);
            if text.len() <= mark + MARK.len() && !MARK.starts_with(&text[mark..]) {
                return (Read::Nothing, colon);
            }
        }
        last = at;
        place = at.next(grid);
    }
    if last.is_before_cursor(grid) {
        return (Read::Unfinished, last);
    }
    let whole = text[mark..].starts_with(MARK);
    (if whole { Read::Whole(text) } else { Read::Nothing }, last)
}

impl Place {
    fn cell(self, grid: &Grid<Cell>) -> &Cell {
        &grid[Line(self.line)][Column(self.col)]
    }

    fn is_wrapped(grid: &Grid<Cell>, line: i32) -> bool {
        grid[Line(line)][grid.last_column()].flags.contains(Flags::WRAPLINE)
    }

    fn previous(self, grid: &Grid<Cell>) -> Option<Place> {
        if self.col > 0 {
            return Some(Place { col: self.col - 1, ..self });
        }
        let line = self.line - 1;
        let above = line >= grid.topmost_line().0 && Place::is_wrapped(grid, line);
        above.then(|| Place { line, col: grid.columns() - 1 })
    }

    fn next(self, grid: &Grid<Cell>) -> Option<Place> {
        if self.col + 1 < grid.columns() {
            return Some(Place { col: self.col + 1, ..self });
        }
        let below = Place { line: self.line + 1, col: 0 };
        let exists = below.line <= grid.bottommost_line().0;
        let goes_on = exists && (Place::is_wrapped(grid, self.line) || below.looks_continued(grid));
        goes_on.then_some(below)
    }

    /// Programs that wrap text themselves break an address at the last column and go on at the first; a word that
    /// happens to stand there is no part of it.
    fn looks_continued(self, grid: &Grid<Cell>) -> bool {
        let row = &grid[Line(self.line)];
        let len = (0..row.len()).take_while(|&col| is_part(row[Column(col)].c)).count();
        let telling = |c: char| c.is_ascii_digit() || "/?#=&%_-+~".contains(c);
        len == row.len() || (0..len).any(|col| telling(row[Column(col)].c))
    }

    fn is_before_cursor(self, grid: &Grid<Cell>) -> bool {
        let (line, col) = (grid.cursor.point.line.0, grid.cursor.point.column.0);
        if grid.cursor.input_needs_wrap {
            return (self.line, self.col) == (line, col);
        }
        (self.line, self.col + 1) == (line, col)
    }
}
