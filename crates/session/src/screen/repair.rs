//! Keeps the grid in a state that escape sequences can reproduce.
//!
//! Shifting and erasing cells can split wide characters and move wrap marks away from the end of the line.
//! This is not visible, but no output could produce such cells, so a snapshot could not restore them. They
//! are repaired at once.

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

/// Repairs every row and the cursors after a resize.
pub(super) fn grid(grid: &mut Grid<Cell>) {
    for line in grid.topmost_line().0..=grid.bottommost_line().0 {
        row(&mut grid[Line(line)]);
        // Rewrapping miscounts the cells in use of a row, and clearing the row would leave out the others.
        // Accessing the last cell corrects the count.
        let _ = grid[Line(line)].last_mut();
    }
    bottom(grid);
    let last = grid.last_column();
    let at_end = grid.cursor.point.column == last;
    grid.cursor.input_needs_wrap &= at_end;
    grid.saved_cursor.input_needs_wrap = false;
    pending(grid);
}

/// Turns halves of wide characters into narrow cells, and removes wrap marks that are not at the end of the row.
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

/// Removes the wrap mark of the lowest row, since there is no row below to continue it.
pub(super) fn bottom(grid: &mut Grid<Cell>) {
    let (line, last) = (grid.bottommost_line(), grid.last_column());
    unwrap(grid, line, last);
}

/// Removes the wrap mark of the cursor's row if a wrap is pending, since the row is not wrapped yet.
pub(super) fn pending(grid: &mut Grid<Cell>) {
    if grid.cursor.input_needs_wrap {
        let point = grid.cursor.point;
        unwrap(grid, point.line, point.column);
    }
}

/// Removes the wrap mark of the row above `line`, since `line` does not continue it any more.
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
