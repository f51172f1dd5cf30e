//! Limits the memory that OSC 8 links use.

use std::collections::HashSet;

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Hyperlink};

use super::limits::LINK_BYTES_MAX;

/// The memory of one link besides its URI and id, in bytes.
const LINK_OVERHEAD: usize = 128;

/// Counts the bytes of links that cells refer to.
#[derive(Debug, Default)]
pub(super) struct LinkBudget {
    /// An upper bound of the bytes in use.
    spent: usize,
    /// How many more bytes to refuse before counting again, since counting is slow.
    refuse: usize,
}

impl LinkBudget {
    /// Whether a link of `len` bytes may be created. `count` counts the bytes that are really in use.
    pub(super) fn admit(&mut self, len: usize, count: impl FnOnce() -> usize) -> bool {
        let cost = len + LINK_OVERHEAD;
        if self.refuse >= cost {
            self.refuse -= cost;
            return false;
        }
        if self.spent + cost > LINK_BYTES_MAX {
            self.spent = count();
            if self.spent > LINK_BYTES_MAX / 2 {
                self.refuse = LINK_BYTES_MAX / 2;
                return false;
            }
        }
        self.spent += cost;
        true
    }
}

/// The bytes of the links in a grid, each link counted once. Also frees the rows that the grid keeps for
/// reuse, with their links.
pub(super) fn count_bytes(grid: &mut Grid<Cell>) -> usize {
    grid.truncate();
    let mut seen = HashSet::new();
    let mut bytes = 0;
    for line in grid.topmost_line().0..=grid.bottommost_line().0 {
        for cell in &grid[Line(line)] {
            if let Some(link) = cell.hyperlink()
                && seen.insert(link.uri().as_ptr() as usize)
            {
                bytes += cost(&link);
            }
        }
    }
    bytes
}

fn cost(link: &Hyperlink) -> usize {
    link.uri().len() + link.id().len() + LINK_OVERHEAD
}
