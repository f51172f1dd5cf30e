//! Writes the whole state as text, so that tests can compare two screens.

use std::fmt::Write as _;

use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::sgr::Pen;
use super::state::State;

impl State {
    pub(super) fn dump(&mut self) -> String {
        let mut out = String::new();
        let alt = self.is_alt();
        let _ = writeln!(out, "size {:?} alt {alt} region {:?}", self.size, self.region);
        let _ = writeln!(out, "modes {:?}", self.modes);
        let tabs: Vec<_> = (0..self.cols()).filter(|&col| self.tabs[col]).collect();
        let _ = writeln!(out, "tabs {tabs:?} charset {:?} printed {}", self.charset, self.printed);
        let _ = writeln!(out, "title {:?} stack {:?}", self.title, self.titles);
        let colours = self.term.colors();
        let changed: Vec<_> =
            (0..alacritty_terminal::term::color::COUNT).filter_map(|i| Some((i, colours[i]?))).collect();
        let _ = writeln!(out, "colours {changed:?}");
        if alt {
            self.with_main(|main| {
                dump_grid(&mut out, "main", main);
                // While the main screen is hidden, its saved cursor is the same as its cursor.
                main.cursor.input_needs_wrap = false;
                dump_cursor(&mut out, "main cursor", &main.cursor);
            });
        }
        dump_grid(&mut out, "shown", self.grid());
        dump_cursor(&mut out, "cursor", &self.grid().cursor);
        dump_cursor(&mut out, "saved cursor", &self.grid().saved_cursor);
        out
    }
}

fn dump_cursor(out: &mut String, name: &str, cursor: &Cursor<Cell>) {
    let _ = writeln!(
        out,
        "{name} {:?} pending {} charsets {:?} pen {:?}",
        cursor.point,
        cursor.input_needs_wrap,
        cursor.charsets,
        Pen::of(&cursor.template)
    );
}

/// Writes each row's characters, followed by its changes of attributes.
fn dump_grid(out: &mut String, name: &str, grid: &Grid<Cell>) {
    let _ = writeln!(out, "{name} history {}", grid.history_size());
    let layout = Flags::WRAPLINE | Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
    for line in grid.topmost_line().0..=grid.bottommost_line().0 {
        let row = &grid[Line(line)];
        let mut notes = String::new();
        let _ = write!(out, "{line:4} |");
        let mut last = Pen::default();
        for col in 0..row.len() {
            let cell = &row[Column(col)];
            out.push(cell.c);
            out.extend(cell.zerowidth().unwrap_or_default());
            let flags = cell.flags & layout;
            if !flags.is_empty() {
                let _ = write!(notes, " {col}:{flags:?}");
            }
            let plain = cell.extra.is_none() && last.link.is_none() && last.underline.is_none();
            if plain && cell.fg == last.fg && cell.bg == last.bg && (cell.flags - layout) == last.flags {
                continue;
            }
            let pen = Pen::of(cell);
            if pen != last {
                let _ = write!(notes, " {col}:{pen:?}");
                last = pen;
            }
        }
        out.push('|');
        if !notes.is_empty() {
            out.push_str(&notes);
        }
        out.push('\n');
    }
}
