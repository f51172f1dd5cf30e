//! The agent's thinking: its last line while it thinks, and then how long it took.

use time::OffsetDateTime;

use super::text::{Paint, Style, Text, cut};

/// Bytes of the agent's thinking that are kept, to show its last line.
const MAX_THOUGHT: usize = 2048;

pub(super) struct Thinking {
    /// The end of it.
    pub(super) tail: String,
    pub(super) began: Option<OffsetDateTime>,
    pub(super) ended: Option<OffsetDateTime>,
}

impl Thinking {
    pub(super) fn push(&mut self, delta: &str) {
        self.tail.push_str(&delta[delta.ceil_char_boundary(delta.len().saturating_sub(MAX_THOUGHT))..]);
        let excess = self.tail.len().saturating_sub(MAX_THOUGHT);
        self.tail.drain(..self.tail.ceil_char_boundary(excess));
    }

    pub(super) fn line(&self, style: Style) -> String {
        let line = self.tail.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("thinking");
        Text::new("∴ ", Paint::DIM).with(&cut(line, style.cut_columns() - 2), Paint::DIM).line(style)
    }
}
