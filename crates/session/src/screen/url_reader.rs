//! Reads a URL from cells, across rows where the text continues.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::limits::URL_MAX;
use super::url::is_url_char;

const MARK: &str = "://";

/// The URL at a colon, if any.
pub(super) enum FoundUrl {
    None,
    /// A URL, perhaps followed by punctuation.
    Complete(String),
    /// A URL with the cursor right after it, so that more of it may be printed.
    Unfinished,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellPosition {
    pub(super) line: i32,
    pub(super) col: usize,
}

/// Reads the URL whose scheme ends at `colon`. Also returns the position of its last cell.
pub(super) fn read_url(grid: &Grid<Cell>, colon: CellPosition) -> (FoundUrl, CellPosition) {
    let reversed: String = std::iter::successors(colon.previous(grid), |position| position.previous(grid))
        .map(|position| position.cell(grid).c.to_ascii_lowercase())
        .take("https".len())
        .collect();
    let mut text = match reversed.as_str() {
        "sptth" => "https".to_owned(),
        reversed if reversed.starts_with("ptth") => "http".to_owned(),
        _ => return (FoundUrl::None, colon),
    };
    let mark = text.len();
    let mut position = Some(colon);
    let mut last = colon;
    while let Some(at) = position {
        let cell = at.cell(grid);
        // The last column is empty if a wide character did not fit there.
        if !cell.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
            if !is_url_char(cell.c) || text.len() > URL_MAX {
                break;
            }
            text.push(cell.c);
            if text.len() <= mark + MARK.len() && !MARK.starts_with(&text[mark..]) {
                return (FoundUrl::None, colon);
            }
        }
        last = at;
        position = at.next(grid);
    }
    if last.is_before_cursor(grid) {
        return (FoundUrl::Unfinished, last);
    }
    let complete = text[mark..].starts_with(MARK);
    (if complete { FoundUrl::Complete(text) } else { FoundUrl::None }, last)
}

impl CellPosition {
    fn cell(self, grid: &Grid<Cell>) -> &Cell {
        &grid[Line(self.line)][Column(self.col)]
    }

    fn is_wrapped(grid: &Grid<Cell>, line: i32) -> bool {
        grid[Line(line)][grid.last_column()].flags.contains(Flags::WRAPLINE)
    }

    fn previous(self, grid: &Grid<Cell>) -> Option<CellPosition> {
        if self.col > 0 {
            return Some(CellPosition { col: self.col - 1, ..self });
        }
        let line = self.line - 1;
        let above = line >= grid.topmost_line().0 && CellPosition::is_wrapped(grid, line);
        above.then(|| CellPosition { line, col: grid.columns() - 1 })
    }

    fn next(self, grid: &Grid<Cell>) -> Option<CellPosition> {
        if self.col + 1 < grid.columns() {
            return Some(CellPosition { col: self.col + 1, ..self });
        }
        let below = CellPosition { line: self.line + 1, col: 0 };
        let exists = below.line <= grid.bottommost_line().0;
        let continues = exists && (CellPosition::is_wrapped(grid, self.line) || below.looks_continued(grid));
        continues.then_some(below)
    }

    /// Whether the row of this position seems to continue a URL that ends in the last column of the row
    /// above. Programs that wrap text themselves split URLs there. A plain word at the start of the row is
    /// not taken for a part of the URL.
    fn looks_continued(self, grid: &Grid<Cell>) -> bool {
        let row = &grid[Line(self.line)];
        let len = (0..row.len()).take_while(|&col| is_url_char(row[Column(col)].c)).count();
        let is_typical = |c: char| c.is_ascii_digit() || "/?#=&%_-+~".contains(c);
        len == row.len() || (0..len).any(|col| is_typical(row[Column(col)].c))
    }

    fn is_before_cursor(self, grid: &Grid<Cell>) -> bool {
        let (line, col) = (grid.cursor.point.line.0, grid.cursor.point.column.0);
        if grid.cursor.input_needs_wrap {
            return (self.line, self.col) == (line, col);
        }
        (self.line, self.col + 1) == (line, col)
    }
}
