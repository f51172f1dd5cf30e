//! The lines of an agent's plan.

use serde_json::Value;

use super::text::{Indent, Paint, Style, Text};
use super::wording::short;

/// Entries of a plan that are shown; the rest is counted.
const MAX_ENTRIES: usize = 50;

/// The lines of a plan: each entry with its status. None if it has no entries.
pub(super) fn lines(entries: &Value, style: Style) -> Vec<String> {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = entries.iter().take(MAX_ENTRIES).flat_map(|entry| entry_lines(entry, style));
    let mut lines: Vec<String> = shown.collect();
    if entries.len() > MAX_ENTRIES {
        lines.push(Text::new(&format!("… {} more", entries.len() - MAX_ENTRIES), Paint::DIM).line(style));
    }
    lines
}

fn entry_lines(entry: &Value, style: Style) -> Vec<String> {
    let content = entry.get("content").unwrap_or(entry).as_str().unwrap_or("(no text)");
    let (mark, paint) = match entry.get("status").and_then(Value::as_str) {
        Some("completed") => ("☑ ", Paint::DIM),
        Some("in_progress") => ("◐ ", Paint::BOLD),
        _ => ("☐ ", Paint::PLAIN),
    };
    Text::new(&short(content), paint).wrap(&Indent::hanging(mark, Paint::PLAIN), style)
}
