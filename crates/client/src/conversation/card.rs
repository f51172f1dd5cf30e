//! The card of an approval: what exactly will run, or what the agent wants to know.

use bowline_proto::agent::approval::{Approval, ApprovalKind};

use super::text::{Indent, Paint, Style, Text};
use super::wording::short;
use crate::escape::one_line;

/// Before each line of what will run.
const BAR: &str = "  │ ";

/// The lines of an approval, with everything that a decision needs. The possible answers are not among them: they are
/// chosen in a form, which has their effects.
pub fn card(approval: &Approval, style: Style) -> Vec<String> {
    let mut card = Card { style, lines: Vec::new() };
    card.heading(approval);
    card.detail(approval);
    if approval.truncated {
        card.text("! This is not all: something was too long and was cut.", Paint { bold: true, ..Paint::YELLOW });
    }
    for question in approval.questions.iter().flatten() {
        card.wrapped(&Text::new(&one_line(&question.text), Paint::BOLD));
    }
    if approval.kind == ApprovalKind::Unknown {
        card.text("This version does not know this kind of request: it can only be denied.", Paint::YELLOW);
    }
    card.lines
}

struct Card {
    style: Style,
    lines: Vec<String>,
}

impl Card {
    fn heading(&mut self, approval: &Approval) {
        let words = match approval.kind {
            ApprovalKind::Permission => "The agent asks for permission",
            ApprovalKind::Plan => "The agent asks for consent to its plan",
            ApprovalKind::Question => "The agent has a question",
            ApprovalKind::Unknown => "The agent asks for something",
        };
        let mark = Paint { bold: true, ..Paint::YELLOW };
        let mut heading = Text::new("? ", mark).with(words, mark);
        if !approval.tool.is_empty() {
            heading.push(&format!(" · {}", short(&approval.tool)), Paint::DIM);
        }
        self.lines.push(heading.cut(self.style.cut_columns()).line(self.style));
        let questions = approval.questions.iter().flatten().map(|question| &question.text);
        let is_said = approval.detail.command.iter().chain(questions).any(|text| *text == approval.title);
        if !approval.title.is_empty() && !is_said {
            self.wrapped(&Text::new("the agent says: ", Paint::DIM).with(&one_line(&approval.title), Paint::PLAIN));
        }
    }

    /// What will run. The bar before each line shows where the agent's text ends.
    fn detail(&mut self, approval: &Approval) {
        let detail = &approval.detail;
        if let Some(cwd) = &detail.cwd {
            self.wrapped(&Text::new("in ", Paint::DIM).with(&one_line(cwd), Paint::PLAIN));
        }
        if let Some(command) = &detail.command {
            self.exact(command, Paint::BOLD);
        }
        for line in detail.diff.iter().flat_map(|diff| diff.lines()) {
            let paint = match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Paint::DIM,
                [b'+', ..] => Paint::GREEN,
                [b'-', ..] => Paint::RED,
                [b'@', ..] => Paint::CYAN,
                _ => Paint::PLAIN,
            };
            self.exact(line, paint);
        }
        match &detail.text {
            Some(text) if approval.kind == ApprovalKind::Plan => self.plan(text),
            Some(text) => self.exact(text, Paint::PLAIN),
            None => {}
        }
    }

    /// Markdown as it is written, because not all of it is shown when it is laid out: cells of a table that has no such
    /// column, the titles of links, and what follows the language of code.
    fn plan(&mut self, text: &str) {
        let bar = Text::new(BAR, Paint::DIM);
        self.lines.extend(Text::new(text, Paint::PLAIN).wrap(&Indent { first: bar.clone(), rest: bar }, self.style));
    }

    fn exact(&mut self, text: &str, paint: Paint) {
        let bar = Text::new(BAR, Paint::DIM);
        self.lines.extend(Text::new(text, paint).wrap_exact(&Indent { first: bar.clone(), rest: bar }, self.style));
    }

    fn text(&mut self, text: &str, paint: Paint) {
        self.wrapped(&Text::new(text, paint));
    }

    fn wrapped(&mut self, text: &Text) {
        self.lines.extend(text.wrap(&Indent::hanging("  ", Paint::PLAIN), self.style));
    }
}
