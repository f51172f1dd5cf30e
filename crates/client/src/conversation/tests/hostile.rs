//! Hostile input: nothing reaches the terminal that it acts on, and everything is bounded.

use super::*;
use crate::escape::rearranges;

/// The lines of one text.
fn shown(source: &str) -> Vec<String> {
    let mut session = Session::new(PLAIN);
    let mut lines = session.event(text("b", source));
    lines.extend(session.finish());
    lines
}

#[test]
fn r52_control_characters_are_shown_escaped_wherever_they_come_from() {
    let evil = "x\x1b]0;t\x07\u{9b}2J\u{202e}\u{200f}\u{2028}\r\x7f";
    let mut session = Session::new(Style { width: None, color: false });
    let mut lines = Vec::new();
    lines.extend(session.event(prompt("r0", evil)));
    lines.extend(
        session.event(text("b", &format!("{evil} `{evil}` [{evil}](<{evil}>) &#27;[31m\n\n```{evil}\n{evil}\n```\n"))),
    );
    let content = json!([{"type": "content", "content": {"type": "text", "text": evil}}]);
    lines.extend(session.event(tool(evil, json!({"title": evil, "status": "failed", "content": content}))));
    lines.extend(session.event(json!({"type": "plan", "run": "r0", "entries": [{"content": evil, "status": evil}]})));
    lines.extend(session.event(json!({"type": "notice", "level": "error", "text": evil})));
    let mut request = approval();
    request["detail"]["command"] = json!(evil);
    lines.extend(session.event(json!({"type": "approval_requested", "approval": request})));
    lines.extend(
        session
            .event(resolved(json!({"outcome": "denied", "reason": evil, "command": "c", "digest": "0", "by": evil}))),
    );
    lines.extend(session.event(json!({"type": "thinking", "run": "r0", "block": "t", "delta": evil})));
    lines.extend(session.pending());
    lines.extend(session.event(complete("r0", json!({"error": {"code": "e", "message": evil}}))));
    assert!(lines.len() > 12, "{lines:#?}");
    for line in &lines {
        assert!(!line.contains(|c: char| c.is_control() || rearranges(c)), "{line:?}");
    }
    assert!(lines.iter().filter(|line| line.contains(r"\u001b")).count() > 10, "{lines:#?}");
}

#[test]
fn r52_deep_nesting_is_bounded() {
    for deep in [
        ">".repeat(10_000),
        "> ".repeat(10_000),
        "[".repeat(10_000),
        "![".repeat(5_000),
        "- ".repeat(5_000),
        "1. ".repeat(5_000),
        "*".repeat(10_000),
        "x".to_owned() + &"`".repeat(9_999) + "\n" + &"`a".repeat(5_000),
        "<".repeat(10_000),
        "](".repeat(5_000),
        format!("a\n{}", ">".repeat(10_000)),
        format!("{}x{}", "[".repeat(5_000), "](a)".repeat(2_500)),
        (0..100).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect(),
    ] {
        let lines = shown(&format!("{deep} end\n\nafter"));
        assert_eq!(lines.last().map(String::as_str), Some("after"));
        assert!(lines.len() < 2_000, "{} lines of {:?}", lines.len(), &deep[..20]);
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{:?}", &deep[..20]);
    }
}

#[test]
fn r52_deep_marks_are_not_repeated_on_each_line() {
    let mut session = Session::new(Style { width: None, color: false });
    session.event(text("b", &format!("{} a\n{}", ">".repeat(8_000), "b\n".repeat(4_000))));
    let lines = session.finish();
    assert_eq!(lines.len(), 4_001);
    assert!(lines.iter().all(|line| line.chars().count() < 30), "{}", lines[1].len());
}

#[test]
fn r52_a_table_with_too_many_cells_is_shown_as_its_source() {
    let (header, rule) = ("|a".repeat(1000), "|-".repeat(1000));
    let source = format!("{header}|\n{rule}|\n{}", "|x|\n".repeat(1000));
    let lines = shown(&source);
    assert!(lines.len() < 3_000, "{}", lines.len());
    assert!(lines[0].starts_with("|a|a"), "{}", lines[0]);
}

#[test]
fn r52_long_titles_and_floods_are_one_line() {
    let mut session = Session::new(PLAIN);
    for long in ["x".repeat(1 << 20), "\u{301}".repeat(1 << 20), "\n".repeat(1 << 20), "漢".repeat(1 << 18)] {
        let lines = session.event(tool(&long, json!({"title": long, "name": long, "status": "completed"})));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() < 1000, "{} bytes", lines[0].len());
    }
}

#[test]
fn r52_thousands_of_open_calls_prompts_and_approvals_are_bounded() {
    let mut session = Session::new(PLAIN);
    let mut lines = 0;
    for number in 0..3000 {
        let name = format!("t{number}");
        lines += session.event(tool(&name, json!({"title": name}))).len();
        let mut approval = approval();
        approval["id"] = json!(format!("a{number}"));
        session.event(json!({"type": "approval_requested", "approval": approval}));
        lines += session.event(prompt(&format!("r{}", number + 1), "x")).len();
        session.event(json!({"type": "usage", "run": format!("r{}", number + 5000), "tokens": {}}));
    }
    assert!(lines > 5000, "the oldest ones were shown: {lines}");
    assert!(session.pending().len() < 100);
    assert!(session.finish().len() < 1000);
    assert!(session.event(tool("t2999", json!({"status": "completed"}))).is_empty());
}

#[test]
fn r52_lines_that_wait_for_a_block_are_bounded() {
    let mut session = Session::new(PLAIN);
    session.event(text("b", "open"));
    let notice = json!({"type": "notice", "level": "info", "text": "x"});
    let lines: usize = (0..1000).map(|_| session.event(notice.clone()).len()).sum();
    assert!(lines > 900, "{lines}");
}

#[test]
fn r52_calls_that_are_their_own_parents_are_shown() {
    let mut session = Session::new(PLAIN);
    session.event(tool("a", json!({"title": "a", "parent": "a"})));
    session.event(tool("b", json!({"title": "b", "parent": "c"})));
    session.event(tool("c", json!({"title": "c", "parent": "b"})));
    assert_eq!(session.finish(), ["  ● a", "  ● b", "    ● c"]);
}
