//! The lines of a prompt.

use super::text::{Indent, Paint, Style, Text, cut};
use super::wording::{client_name, short};

pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) by: String,
    pub(super) attachments: usize,
}

impl Prompt {
    pub(super) fn lines(&self, style: Style) -> Vec<String> {
        let indent = Indent::hanging("> ", Paint { bold: true, ..Paint::CYAN });
        let mut lines = Text::new(self.text.trim_end(), Paint::BOLD).wrap(&indent, style);
        let by = client_name(&self.by).map(|name| format!("by {}", short(name)));
        let attachments = match self.attachments {
            0 => None,
            1 => Some("1 attachment".to_owned()),
            number => Some(format!("{number} attachments")),
        };
        let about: Vec<String> = [by, attachments].into_iter().flatten().collect();
        if !about.is_empty() {
            let indent = Indent::hanging("  ", Paint::PLAIN);
            lines.extend(Text::new(&about.join(" · "), Paint::DIM).wrap(&indent, style));
        }
        lines
    }

    /// The prompt, as long as it waits for its run.
    pub(super) fn waiting_line(&self, style: Style) -> String {
        let text = cut(&short(&self.text), style.cut_columns().saturating_sub(11));
        Text::new(&format!("> {text} (queued)"), Paint::DIM).line(style)
    }
}
