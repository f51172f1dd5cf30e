//! Final or pending lines, with the blank lines between groups.

use std::collections::VecDeque;

use super::blocks::Block;
use super::markdown;
use super::text::Style;

/// Lines that belong together. A blank line separates groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Prompt,
    Text,
    /// One line each: tool calls, approvals, notices, ends.
    Line,
    Plan,
}

/// Lines with the blank lines between groups.
#[derive(Default)]
pub(super) struct Output {
    pub(super) lines: VecDeque<String>,
    /// What the last line was a part of.
    last: Option<Group>,
    /// A blank line is due before the next line of the text.
    gap: bool,
}

impl Output {
    /// An output for what follows these lines.
    pub(super) fn following(&self) -> Output {
        Output { lines: VecDeque::new(), ..*self }
    }

    pub(super) fn write(&mut self, group: Group, lines: Vec<String>) {
        let is_separate = self.last != Some(group) || group != Group::Line;
        self.write_lines(group, is_separate, lines);
    }

    fn write_lines(&mut self, group: Group, gap: bool, lines: Vec<String>) {
        let gap = gap || self.gap && group == Group::Text;
        // Code without a language begins without a line of its own.
        self.gap = gap && lines.is_empty() && group == Group::Text;
        if lines.is_empty() {
            return;
        }
        if self.last.is_some() && (gap || self.last != Some(group)) {
            self.lines.push_back(String::new());
        }
        self.last = Some(group);
        self.lines.extend(lines);
    }

    /// Writes a block of a text, of which something `is_shown` already.
    pub(super) fn write_block(&mut self, block: &Block, is_shown: bool, style: Style) {
        let gap = block.gap() || !is_shown;
        self.write_lines(Group::Text, gap, markdown::render_block(block, style));
    }
}
