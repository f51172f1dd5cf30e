//! The rows below the printed lines: what is not final yet, one row of status, and the prompt or a form.

use std::time::{Duration, SystemTime};

use super::super::editor::EditorRows;
use super::super::text::{Paint, Text};
use super::super::wording::{duration_text, parse_time};
use super::View;

/// The label of the prompt editor.
const LABEL: &str = "> ";

/// The live rows, and where the cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveRows {
    pub(crate) rows: Vec<String>,
    pub(crate) cursor: (usize, usize),
}

impl View {
    /// The rows below the printed lines, at most `height` of them.
    pub(crate) fn live_rows(&mut self, height: usize, now: Duration, wall_clock: SystemTime) -> LiveRows {
        self.now = now;
        self.hint.take_if(|(_, until)| *until <= now);
        let (style, height) = (self.options.style, height.max(2));
        let mut bottom = match &self.form {
            _ if self.options.observe => EditorRows { rows: Vec::new(), cursor: (0, 0) },
            Some(open) => open.form.rows(style),
            None => self.editor.rows(LABEL, style.columns(), height / 2),
        };
        // If the window is too low, what is above the cursor's row goes first.
        let excess = bottom.rows.len().saturating_sub(height - 1).min(bottom.cursor.0);
        bottom.rows.drain(..excess);
        bottom.rows.truncate(height - 1);
        bottom.cursor.0 -= excess;
        let mut room = height - 1 - bottom.rows.len();
        // An empty row sets the live rows apart, unless the window is too low.
        let gap = if room > 2 { 1 } else { 0 };
        room -= gap;
        let mut rows = self.outgoing.rows(style);
        rows.truncate(room);
        let mut above = self.transcript.pending(wall_clock, room - rows.len());
        above.append(&mut rows);
        above.extend(std::iter::repeat_n(String::new(), gap));
        above.push(self.status(wall_clock).cut(style.cut_columns()).line(style));
        let cursor = match bottom.rows.is_empty() {
            true => (above.len() - 1, 0),
            false => (above.len() + bottom.cursor.0, bottom.cursor.1),
        };
        above.append(&mut bottom.rows);
        LiveRows { rows: above, cursor }
    }

    /// One line: what the agent does, and what the user can do.
    fn status(&self, wall_clock: SystemTime) -> Text {
        let mut parts = Vec::new();
        parts.extend(self.disconnected.clone());
        // Beside a form, it would look like what the form is about.
        if let Some(activity) = self.fold.activity().filter(|_| self.form.is_none()) {
            parts.push(activity.text.lines().next().unwrap_or_default().to_owned());
            let since = parse_time(&activity.started_at).map(SystemTime::from);
            let elapsed = since.and_then(|since| wall_clock.duration_since(since).ok());
            parts.extend(elapsed.map(duration_text));
        }
        match self.fold.queued() {
            0 => {}
            1 => parts.push("1 prompt waits".to_owned()),
            queued => parts.push(format!("{queued} prompts wait")),
        }
        if self.form.is_none() && !self.options.observe {
            match self.fold.approvals.iter().filter(|approval| !self.is_answering(approval.id)).count() {
                0 => {}
                _ if !self.editor.is_empty() => {
                    parts.push("an approval waits: send or clear your text first".to_owned())
                }
                1 => parts.push("an approval waits: Tab answers".to_owned()),
                waiting => parts.push(format!("{waiting} approvals wait: Tab answers")),
            }
        }
        let hint = match (&self.hint, &self.form) {
            (Some((hint, _)), _) => hint.as_str(),
            (None, Some(_)) if self.ready_at().is_some_and(|at| self.now < at) => "pause a moment, then answer",
            (None, Some(_)) => "Enter confirms · Esc: later",
            (None, None) if self.options.observe => "Ctrl-C leaves",
            (None, None) if self.fold.activity().is_some() => "Ctrl-C stops",
            (None, None) => "Enter sends · Alt-Enter: new line · Ctrl-D leaves",
        };
        parts.push(hint.to_owned());
        Text::new(&parts.join(" · "), Paint::DIM)
    }
}
