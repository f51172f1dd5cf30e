//! Whole conversations as a terminal shows them: captured streams of real agents, and a page of Markdown.
//!
//! `BOWLINE_BLESS=1 cargo test -p bowline-client --test conversation` writes the files in `conversations/` again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use bowline_client::conversation::{Style, Transcript, card};
use bowline_proto::agent::approval::Approval;
use bowline_proto::journal::Record;
use serde_json::{Value, json};

const WIDTHS: [u16; 2] = [80, 40];

/// Captured streams that differ in what they show.
const CAPTURED: [&str; 10] = [
    "claude/subagent",
    "claude/plan",
    "claude/question",
    "claude-agent-acp/plan",
    "claude/interrupt",
    "claude/usage_limit",
    "codex/app_patch_decline",
    "codex/app_steer",
    "gemini-acp/error",
    "opencode-acp/edit",
];

#[test]
fn captured_conversations_read_well() {
    for name in CAPTURED {
        let path = root().join(format!("fixtures/agents/{name}.events.jsonl"));
        let events = fs::read_to_string(&path).unwrap();
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let events: Vec<Value> = events.filter(|event| event.get("write").is_none()).collect();
        assert!(!events.is_empty(), "{}", path.display());
        compare(&name.replace('/', "-"), &shown_at_all_widths(|style| show(&events, style)));
    }
}

#[test]
fn markdown_reads_well() {
    let source = fs::read_to_string(snapshots().join("markdown.md")).unwrap();
    let text = json!({"type": "text", "run": "r0", "block": "b", "delta": source});
    compare("markdown", &shown_at_all_widths(|style| show(std::slice::from_ref(&text), style)));
}

/// The lines of a conversation, with the card of each approval where it was requested.
fn show(events: &[Value], style: Style) -> Vec<String> {
    let mut transcript = Transcript::new(style);
    let mut lines = Vec::new();
    for (seq, event) in (1..).zip(events) {
        transcript.handle_record(&Record::new(seq, format!("2026-11-15T18:00:{:02}Z", seq % 60), event.clone()));
        lines.extend(std::iter::from_fn(|| transcript.poll_line()));
        if event["type"] == "approval_requested" {
            let approval: Approval = serde_json::from_value(event["approval"].clone()).unwrap();
            lines.extend(card(&approval, style).into_iter().map(|line| format!("    [card] {line}")));
        }
    }
    transcript.finish();
    lines.extend(std::iter::from_fn(|| transcript.poll_line()));
    lines
}

fn shown_at_all_widths(show: impl Fn(Style) -> Vec<String>) -> String {
    let mut shown = String::new();
    for width in WIDTHS {
        let lines = show(Style { width: Some(width), color: false });
        assert!(lines.iter().all(|line| !line.contains(char::is_control)), "{lines:#?}");
        shown.push_str(&format!("==== {width} columns\n{}\n", lines.join("\n")));
    }
    shown
}

fn compare(name: &str, shown: &str) {
    let path = snapshots().join(format!("{name}.txt"));
    if std::env::var_os("BOWLINE_BLESS").is_some() {
        fs::write(&path, shown).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == shown, "{} differs from what is shown now:\n{shown}", path.display());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn snapshots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations")
}
