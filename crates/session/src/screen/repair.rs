//! Keeps the grid in a form that escape sequences can write again.
//!
//! Shifting and erasing cells tears wide characters apart and moves end-of-line marks inside the line. A terminal
//! shows nothing of it, but no output could produce such cells again, so they are put right when they arise.

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

/// Repairs every row, and the cursor, after a change of size.
pub(super) fn grid(grid: &mut Grid<Cell>) {
    for line in grid.topmost_line().0..=grid.bottommost_line().0 {
        row(&mut grid[Line(line)]);
        // Wrapping anew miscounts the cells in use, and what is beyond them is not cleared with the row; asking for
        // the last cell corrects the count.
        let _ = grid[Line(line)].last_mut();
    }
    bottom(grid);
    let last = grid.last_column();
    let at_end = grid.cursor.point.column == last;
    grid.cursor.input_needs_wrap &= at_end;
    grid.saved_cursor.input_needs_wrap = false;
    pending(grid);
}

/// Halves of wide characters become blanks; marks of the line's end stay only at its end.
pub(super) fn row(row: &mut Row<Cell>) {
    let last = row.len() - 1;
    for col in 0..=last {
        let flags = row[Column(col)].flags;
        let special = Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER | Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER;
        if !flags.intersects(special) {
            continue;
        }
        let lone_char = flags.contains(Flags::WIDE_CHAR)
            && (col == last || !row[Column(col + 1)].flags.contains(Flags::WIDE_CHAR_SPACER));
        let lone_spacer = flags.contains(Flags::WIDE_CHAR_SPACER)
            && (col == 0 || !row[Column(col - 1)].flags.contains(Flags::WIDE_CHAR));
        if lone_char {
            row[Column(col)].clear_wide();
        }
        if lone_spacer {
            row[Column(col)].flags.remove(Flags::WIDE_CHAR_SPACER);
        }
        if col < last {
            row[Column(col)].flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
        } else if !flags.contains(Flags::WRAPLINE) {
            row[Column(col)].flags.remove(Flags::LEADING_WIDE_CHAR_SPACER);
        }
    }
}

/// The lowest row has none below it to go on in.
pub(super) fn bottom(grid: &mut Grid<Cell>) {
    let (line, last) = (grid.bottommost_line(), grid.last_column());
    unwrap(grid, line, last);
}

/// A line that is still to be wrapped has not been.
pub(super) fn pending(grid: &mut Grid<Cell>) {
    if grid.cursor.input_needs_wrap {
        let point = grid.cursor.point;
        unwrap(grid, point.line, point.column);
    }
}

/// A row that is written anew no longer goes on from the one above.
pub(super) fn above(grid: &mut Grid<Cell>, line: Line) {
    let (above, last) = (line - 1, grid.last_column());
    if above >= grid.topmost_line() {
        unwrap(grid, above, last);
    }
}

fn unwrap(grid: &mut Grid<Cell>, line: Line, col: Column) {
    if grid[line][col].flags.contains(Flags::WRAPLINE) {
        grid[line][col].flags.remove(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
    }
}
