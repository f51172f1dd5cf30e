//! Lays out a Markdown table: in columns if they fit, else each row as lines of names and values.

use pulldown_cmark::Alignment;

use super::text::{Indent, Paint, Style, Text};

/// Cells of a table; a table with more is shown as its source.
pub(super) const MAX_CELLS: usize = 4096;
/// The widest table in columns if lines are not wrapped; a wider one is shown as records.
const MAX_COLUMNS: usize = 200;
/// Columns of a name in a record. Longer names are cut: they are repeated in each record.
const MAX_NAME: usize = 40;
/// How many times as long as its source a table may become, because of names and spaces. A longer one is shown as its
/// source.
const MAX_GROWTH: usize = 4;
/// Bytes that a table may have in any case.
const SMALL: usize = 8 << 10;
/// Between two columns.
const SPACE: &str = "  ";

#[derive(Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    /// The first row is the header.
    pub(super) rows: Vec<Vec<Text>>,
    /// Also those that were not kept.
    pub(super) cells: usize,
}

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push_cell(&mut self, cell: Text) {
        self.cells += 1;
        if let Some(row) = self.rows.last_mut().filter(|_| self.cells <= MAX_CELLS) {
            row.push(cell);
        }
    }

    /// The lines of the table. `None` if it has too many cells, or would be much longer than its source of this many
    /// bytes.
    pub(super) fn lines(&self, source: usize, indent: &Indent, style: Style) -> Option<Vec<String>> {
        if self.cells > MAX_CELLS {
            return None;
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(Text::width).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let needed = widths.iter().sum::<usize>() + SPACE.len() * columns.saturating_sub(1);
        let before = indent.rest.width().max(indent.first.width());
        let room = style.width.map_or(MAX_COLUMNS, |_| style.columns()).saturating_sub(before);
        let names = self.names();
        let (is_wide, estimate) = match needed > room {
            true => (true, self.cells * before + self.record_width(&names)),
            false => (false, self.rows.len() * (before + needed)),
        };
        (estimate <= SMALL.max(source * MAX_GROWTH)).then(|| match is_wide {
            true => self.as_records(&names, indent, style),
            false => self.in_columns(&widths, indent, style),
        })
    }

    /// What stands before each cell of a record.
    fn names(&self) -> Vec<Text> {
        let header = self.rows.first().map(Vec::as_slice).unwrap_or_default();
        header.iter().map(|name| name.cut(MAX_NAME).with(": ", Paint::PLAIN)).collect()
    }

    /// The columns of all records in one line.
    fn record_width(&self, names: &[Text]) -> usize {
        let cells = self.rows.iter().skip(1).flat_map(|row| row.iter().enumerate());
        let names: Vec<usize> = names.iter().map(Text::width).collect();
        cells.map(|(column, cell)| names.get(column).unwrap_or(&0) + cell.width()).sum()
    }

    fn in_columns(&self, widths: &[usize], indent: &Indent, style: Style) -> Vec<String> {
        let mut lines = Vec::new();
        let mut push = |row: Text| {
            let mut line = if lines.is_empty() { indent.first.clone() } else { indent.rest.clone() };
            line.append(row);
            lines.push(line.line(style));
        };
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = Text::default();
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).cloned().unwrap_or_default();
                let free = width.saturating_sub(cell.width());
                let left = match self.alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    Some(Alignment::Left | Alignment::None) | None => 0,
                };
                line.push(if column > 0 { SPACE } else { "" }, Paint::PLAIN);
                line.push(&" ".repeat(left), Paint::PLAIN);
                line.append(cell);
                line.push(&" ".repeat(free - left), Paint::PLAIN);
            }
            push(line);
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                push(Text::new(&rules.join(SPACE), Paint::DIM));
            }
        }
        lines
    }

    fn as_records(&self, names: &[Text], indent: &Indent, style: Style) -> Vec<String> {
        let mut lines = Vec::new();
        for row in self.rows.iter().skip(1) {
            for (column, cell) in row.iter().enumerate() {
                let before = if lines.is_empty() { &indent.first } else { &indent.rest };
                let mark = if column == 0 { "• " } else { "  " };
                let indent = Indent {
                    first: before.clone().with(mark, Paint::PLAIN),
                    rest: indent.rest.clone().with("    ", Paint::PLAIN),
                };
                let mut text = names.get(column).cloned().unwrap_or_default();
                text.append(cell.clone());
                lines.extend(text.wrap(&indent, style));
            }
        }
        lines
    }
}
