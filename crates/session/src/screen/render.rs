//! Renders the screen as plain text, ANSI text or JSON, for people and scripts.

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};
use serde_json::{Map, Value, json};

use super::limits::RENDERED_MAX;
use super::paint::{Painter, painted_len};
use super::sgr::{self, Pen};
use super::state::State;

impl State {
    /// The text, without trailing blanks on each line and without blank lines at the end.
    pub(super) fn text(&self, scrollback: usize) -> String {
        let mut text = String::new();
        for row in shown(self.grid(), scrollback) {
            text.push_str(row_text(row, row.len()).trim_end());
            text.push('\n');
            if text.len() > RENDERED_MAX {
                break;
            }
        }
        let len = text.trim_end_matches('\n').len();
        text.truncate(len);
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// The same lines with attributes and links. Each starts and ends without attributes.
    pub(super) fn ansi(&self, scrollback: usize) -> Vec<u8> {
        let rows: Vec<_> = shown(self.grid(), scrollback).collect();
        let used = rows.iter().rposition(|row| painted_len(row) > 0).map_or(0, |at| at + 1);
        let mut painter = Painter::default();
        for row in &rows[..used] {
            painter.plain_row(row);
            painter.set_pen(Pen::default());
            painter.text("\n");
            if painter.out.len() > RENDERED_MAX {
                break;
            }
        }
        painter.out
    }

    /// `Screen::json` documents the format.
    pub(super) fn json(&self, scrollback: usize) -> Value {
        let (row, col) = self.cursor();
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for line in shown(self.grid(), scrollback).map(line) {
            bytes += line.to_string().len();
            lines.push(line);
            if bytes > RENDERED_MAX {
                break;
            }
        }
        json!({
            "size": { "cols": self.cols(), "rows": self.rows() },
            "cursor": {
                "col": col,
                "row": row,
                "visible": self.modes.cursor_visible,
                "pending_wrap": self.grid().cursor.input_needs_wrap,
            },
            "modes": self.modes.json(),
            "title": self.title,
            "alt": self.is_alt(),
            "scrollback": self.grid().history_size().min(scrollback),
            "lines": lines,
        })
    }
}

/// The last lines of history, then the visible rows.
fn shown(grid: &Grid<Cell>, scrollback: usize) -> impl Iterator<Item = &Row<Cell>> {
    let first = -(grid.history_size().min(scrollback) as i32);
    (first..grid.screen_lines() as i32).map(|line| &grid[Line(line)])
}

/// The text of the first `len` cells.
fn row_text(row: &Row<Cell>, len: usize) -> String {
    (0..len).map(|col| &row[Column(col)]).filter(|cell| !is_filler(cell)).fold(String::new(), |mut text, cell| {
        text.push(cell.c);
        text.extend(cell.zerowidth().unwrap_or_default());
        text
    })
}

/// The second half of a wide character, or the empty last column before one that did not fit.
fn is_filler(cell: &Cell) -> bool {
    cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER)
}

fn line(row: &Row<Cell>) -> Value {
    let len = painted_len(row);
    let mut spans: Vec<(usize, Pen, String)> = Vec::new();
    for (col, cell) in (0..len).map(|col| (col, &row[Column(col)])) {
        if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
            continue;
        }
        let pen = Pen::of(cell);
        if spans.last().is_none_or(|(_, last, _)| *last != pen) {
            spans.push((col, pen, String::new()));
        }
        if let Some((_, _, text)) = spans.last_mut() {
            text.push(cell.c);
            text.extend(cell.zerowidth().unwrap_or_default());
        }
    }
    json!({
        "text": row_text(row, len).trim_end(),
        "wrapped": row[Column(row.len() - 1)].flags.contains(Flags::WRAPLINE),
        "spans": spans.iter().map(|(col, pen, text)| span(*col, pen, text)).collect::<Vec<_>>(),
    })
}

/// Text with the same attributes. Those that are off are left out.
fn span(col: usize, pen: &Pen, text: &str) -> Value {
    let mut span = Map::new();
    span.insert("col".into(), col.into());
    span.insert("text".into(), text.into());
    for (key, value) in [("fg", colour(pen.fg)), ("bg", colour(pen.bg))] {
        if let Some(value) = value {
            span.insert(key.into(), value);
        }
    }
    for (flag, _, name) in sgr::ATTRIBUTES {
        if pen.flags.contains(flag) {
            span.insert(name.into(), true.into());
        }
    }
    let (under, over) = sgr::lines(pen.flags);
    if let Some(name) = [None, Some("single"), Some("double"), Some("curly"), Some("dotted"), Some("dashed")]
        .get(usize::from(under))
        .copied()
        .flatten()
    {
        span.insert("underline".into(), name.into());
    }
    if over {
        span.insert("overline".into(), true.into());
    }
    if let Some(value) = pen.underline.and_then(colour) {
        span.insert("underline_colour".into(), value);
    }
    if let Some(link) = &pen.link {
        span.insert("link".into(), link.uri().into());
    }
    Value::Object(span)
}

/// A number for a palette colour, `#rrggbb` for any other, `None` for the default.
fn colour(colour: Color) -> Option<Value> {
    match colour {
        Color::Named(NamedColor::Foreground | NamedColor::Background) => None,
        Color::Named(name) => Some((name as usize).into()),
        Color::Indexed(index) => Some(index.into()),
        Color::Spec(rgb) => Some(rgb.to_string().into()),
    }
}
