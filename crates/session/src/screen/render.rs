//! Renders the screen as plain text, ANSI text or JSON, for people and scripts.

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeStruct, Serializer};
use serde_json::json;

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

    /// `Screen::json` documents the format. Written line by line: a tree of values would take many times the memory.
    pub(super) fn json(&self, scrollback: usize) -> String {
        let (row, col) = self.cursor();
        let head = json!({
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
        });
        let mut json = head.to_string();
        json.truncate(json.len() - 1);
        json.push_str(r#","lines":["#);
        for (n, row) in shown(self.grid(), scrollback).enumerate() {
            if n > 0 {
                json.push(',');
            }
            // Only the standard library's formatting could fail, and it does not for text.
            json.push_str(&serde_json::to_string(&ScreenLine(row)).unwrap_or_else(|_| "null".into()));
            if json.len() > RENDERED_MAX {
                break;
            }
        }
        json.push_str("]}");
        json
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

/// A row in the screen's JSON.
struct ScreenLine<'a>(&'a Row<Cell>);

impl Serialize for ScreenLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.0;
        let len = painted_len(row);
        let mut spans: Vec<Span> = Vec::new();
        for (col, cell) in (0..len).map(|col| (col, &row[Column(col)])) {
            if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
                continue;
            }
            let pen = Pen::of(cell);
            if spans.last().is_none_or(|last| last.pen != pen) {
                spans.push(Span { col, pen, text: String::new() });
            }
            if let Some(Span { text, .. }) = spans.last_mut() {
                text.push(cell.c);
                text.extend(cell.zerowidth().unwrap_or_default());
            }
        }
        let mut line = serializer.serialize_struct("ScreenLine", 3)?;
        line.serialize_field("text", row_text(row, len).trim_end())?;
        line.serialize_field("wrapped", &row[Column(row.len() - 1)].flags.contains(Flags::WRAPLINE))?;
        line.serialize_field("spans", &spans)?;
        line.end()
    }
}

/// Text with the same attributes. Those that are off are left out of the JSON.
struct Span {
    col: usize,
    pen: Pen,
    text: String,
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Span { col, pen, text } = self;
        let mut span = serializer.serialize_map(None)?;
        span.serialize_entry("col", col)?;
        span.serialize_entry("text", text)?;
        for (key, value) in [("fg", Colour::of(pen.fg)), ("bg", Colour::of(pen.bg))] {
            if let Some(value) = value {
                span.serialize_entry(key, &value)?;
            }
        }
        for (flag, _, name) in sgr::ATTRIBUTES {
            if pen.flags.contains(flag) {
                span.serialize_entry(name, &true)?;
            }
        }
        let (under, over) = sgr::lines(pen.flags);
        let style = ["", "single", "double", "curly", "dotted", "dashed"].get(usize::from(under));
        if let Some(style) = style.filter(|style| !style.is_empty()) {
            span.serialize_entry("underline", style)?;
        }
        if over {
            span.serialize_entry("overline", &true)?;
        }
        if let Some(value) = pen.underline.and_then(Colour::of) {
            span.serialize_entry("underline_colour", &value)?;
        }
        if let Some(link) = &pen.link {
            span.serialize_entry("link", link.uri())?;
        }
        span.end()
    }
}

/// A colour in the screen's JSON: a number for one of the palette, `#rrggbb` for any other.
#[derive(Serialize)]
#[serde(untagged)]
enum Colour {
    Palette(usize),
    Rgb(String),
}

impl Colour {
    /// `None` for the default colour.
    fn of(colour: Color) -> Option<Colour> {
        match colour {
            Color::Named(NamedColor::Foreground | NamedColor::Background) => None,
            Color::Named(name) => Some(Colour::Palette(name as usize)),
            Color::Indexed(index) => Some(Colour::Palette(index.into())),
            Color::Spec(rgb) => Some(Colour::Rgb(rgb.to_string())),
        }
    }
}
