//! Tests of the transcript: what each event shows, and that hostile text stays harmless and cheap.

mod hostile;
mod streaming;

use std::time::{Duration, SystemTime};

use bowline_proto::agent::approval::Approval;
use bowline_proto::journal::Record;
use serde_json::{Value, json};

use super::*;

/// Forty columns, without colour.
pub(super) const PLAIN: Style = Style { width: Some(40), color: false };
const ROWS: usize = 100;

/// A transcript, and records that come a second after each other.
pub(super) struct Session {
    pub(super) transcript: Transcript,
    seq: u64,
}

impl Session {
    pub(super) fn new(style: Style) -> Session {
        Session { transcript: Transcript::new(style), seq: 0 }
    }

    /// Takes an event. Returns the lines that are final now.
    pub(super) fn event(&mut self, event: Value) -> Vec<String> {
        let (minutes, seconds) = (self.seq / 60 % 60, self.seq % 60);
        let at = format!("2026-11-15T18:{minutes:02}:{seconds:02}Z");
        self.transcript.handle_record(&Record::new(self.seq, at, event));
        self.seq += 1;
        self.lines()
    }

    pub(super) fn lines(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.transcript.poll_line()).collect()
    }

    pub(super) fn finish(&mut self) -> Vec<String> {
        self.transcript.finish();
        self.lines()
    }

    /// What is pending ten seconds after the last record.
    pub(super) fn pending(&self) -> Vec<String> {
        // 2026-11-15T18:00:00Z
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_765_600);
        self.transcript.pending(start + Duration::from_secs(self.seq + 9), ROWS)
    }
}

pub(super) fn text(block: &str, delta: &str) -> Value {
    json!({"type": "text", "run": "r0", "block": block, "delta": delta})
}

fn prompt(run: &str, text: &str) -> Value {
    json!({"type": "prompt", "run": run, "command": "c", "digest": "0", "by": "local", "text": text, "attachments": []})
}

fn run_started(run: &str) -> Value {
    json!({"type": "run_started", "run": run, "cause": "prompt"})
}

pub(super) fn tool(call: &str, fields: Value) -> Value {
    let mut event = json!({"type": "tool_call", "run": "r0", "call": call});
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event
}

fn complete(run: &str, fields: Value) -> Value {
    let mut event = json!({"type": "complete", "run": run, "started": true, "success": false, "aborted": false,
        "interrupted": false, "exit_code": null, "signal": null, "stop_reason": null, "conversation": null});
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event
}

fn success(run: &str) -> Value {
    complete(run, json!({"success": true}))
}

fn approval() -> Value {
    json!({"id": "a7", "run": "r0", "kind": "permission", "tool": "execute", "title": "Remove the build directory",
        "detail": {"command": "rm -r build", "cwd": "/home/dev/app"}, "truncated": false, "options": [
            {"id": "once", "kind": "allow_once", "label": "Yes"},
            {"id": "always", "kind": "allow_always", "label": "Always", "effect": "adds a rule"},
            {"id": "no", "kind": "reject_once", "label": "No"}], "at": ""})
}

fn resolved(fields: Value) -> Value {
    let mut event = json!({"type": "approval_resolved", "approval": "a7"});
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event
}

#[test]
fn a_block_is_pending_until_the_next_one_begins() {
    let mut session = Session::new(PLAIN);
    assert!(session.event(text("b", "One ")).is_empty());
    assert!(session.event(text("b", "*two*\n")).is_empty());
    assert_eq!(session.pending(), ["One two"]);
    assert_eq!(session.event(text("b", "\nThree")), ["One two"], "the blank line ends it");
    assert_eq!(session.pending(), ["", "Three"], "with the blank line between them");
    assert_eq!(session.event(text("c", "Four")), ["", "Three"], "another text begins");
    assert_eq!(session.event(tool("t", json!({"title": "ls"}))), ["", "Four"], "a tool call begins");
    assert_eq!(session.event(tool("t", json!({"status": "completed"}))), ["", "✓ ls"]);
    session.event(text("d", "Five"));
    assert_eq!(session.event(success("r0")), ["", "Five"], "the run ends");
    assert!(session.pending().is_empty() && session.finish().is_empty());
}

#[test]
fn lines_of_code_are_final_one_by_one() {
    let mut session = Session::new(PLAIN);
    assert_eq!(session.event(text("b", "```sh\nmake")), ["    ── sh"]);
    assert_eq!(session.pending(), ["    make"]);
    assert_eq!(session.event(text("b", " test\nexit")), ["    make test"]);
    assert_eq!(session.event(text("b", " 1\n```\n")), ["    exit 1"]);
    assert!(session.pending().is_empty());
    session.event(text("b", "\nMore:\n\n"));
    session.event(text("b", "```\n"));
    assert_eq!(session.pending(), Vec::<String>::new());
    assert_eq!(session.event(text("b", "ls\n")), ["", "    ls"], "the blank line is before the code, not its fence");
}

#[test]
fn other_lines_do_not_interrupt_an_open_block() {
    let mut session = Session::new(PLAIN);
    session.event(tool("t", json!({"title": "make"})));
    session.event(text("b", "Half of a "));
    assert!(session.event(json!({"type": "notice", "level": "warning", "text": "slow"})).is_empty());
    assert!(session.event(tool("t", json!({"status": "completed"}))).is_empty());
    assert_eq!(session.pending(), ["Half of a", "", "! slow", "✓ make"], "but they are shown");
    assert_eq!(
        session.event(text("b", "sentence.\n\nNext\n\nLast")),
        ["Half of a sentence.", "", "! slow", "✓ make", "", "Next"]
    );
    let mut session = Session::new(PLAIN);
    session.event(text("b", "```\none\n"));
    assert!(session.event(json!({"type": "notice", "level": "info", "text": "soon"})).is_empty());
    assert_eq!(session.event(text("b", "two\n```\n")), ["    two", "", "soon"]);
}

#[test]
fn prompts_show_all_lines_and_by_whom() {
    let mut session = Session::new(PLAIN);
    assert_eq!(session.event(prompt("r0", "Fix it\nplease")), ["> Fix it", "  please"]);
    session.event(run_started("r0"));
    session.event(success("r0"));
    let mut from_phone = prompt("r1", "Again");
    (from_phone["by"], from_phone["attachments"]) = (json!("phone"), json!(["a.png", "b.png"]));
    assert_eq!(session.event(from_phone), ["", "> Again", "  by phone · 2 attachments"]);
    let steered = json!({"type": "steered", "run": "r1", "command": "c", "digest": "0", "by": "local", "text": "no"});
    assert_eq!(session.event(steered), ["", "> no"]);
    let set = json!({"type": "set", "command": "c", "digest": "0", "by": "phone", "mode": "plan"});
    assert_eq!(session.event(set), ["", "set mode plan (by phone)"]);
}

#[test]
fn a_prompt_that_waits_is_shown_where_its_run_begins() {
    let mut session = Session::new(PLAIN);
    session.event(prompt("r0", "first"));
    session.event(run_started("r0"));
    session.event(text("b", "Half"));
    assert!(session.event(prompt("r1", "second")).is_empty());
    assert_eq!(session.pending(), ["", "Half", "", "> second (queued)"]);
    assert_eq!(session.event(success("r0")), ["", "Half", "", "3s"]);
    assert_eq!(session.event(run_started("r1")), ["", "> second"]);
    session.event(prompt("r2", "third"));
    session.event(json!({"type": "text", "run": "r1", "block": "c", "delta": "Half"}));
    let not_started = complete("r2", json!({"started": false, "error": {"code": "x", "message": "no login"}}));
    let shown = [
        "",
        "> third",
        "",
        "✗ not started: no login",
        "  the agent did not get this prompt: it",
        "  can be sent again",
    ];
    assert!(session.event(not_started).is_empty(), "it does not interrupt the run before");
    let lines = session.event(success("r1"));
    assert_eq!((&lines[..2], &lines[2..8]), (&["", "Half"].map(String::from)[..], &shown.map(String::from)[..]));
}

#[test]
fn tool_calls_are_one_line_each() {
    let mut session = Session::new(PLAIN);
    session.event(tool("t", json!({"title": "cargo test", "name": "Bash", "status": "in_progress"})));
    assert_eq!(session.pending(), ["● cargo test 10s"]);
    let diff = json!([{"type": "diff", "path": "a", "oldText": "1\n2\n3\n", "newText": "1\n3\n4\n5\n"},
        {"type": "diff", "path": "b", "diff": "--- b\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"}]);
    assert_eq!(session.event(tool("t", json!({"status": "completed", "content": diff}))), ["✓ cargo test +4 −2"]);
    assert!(session.event(tool("t", json!({"status": "completed"}))).is_empty(), "an end is shown once");
    let error = json!([{"type": "content", "content": {"type": "text", "text": "\n no such file\nmore"}}]);
    assert_eq!(
        session.event(tool("u", json!({"name": "Read", "title": "", "status": "failed", "content": error}))),
        ["✗ Read", "  no such file …"]
    );
    let long = "x".repeat(100);
    assert_eq!(
        session.event(tool("v", json!({"title": long, "status": "completed"}))),
        [format!("✓ {}…", "x".repeat(37))]
    );
    session.event(tool("w", json!({"title": "sleep 100"})));
    assert_eq!(session.event(success("r0")), ["○ sleep 100 (did not end)"]);
}

#[test]
fn calls_of_a_sub_agent_are_below_it_and_its_words_are_not_shown() {
    let mut session = Session::new(PLAIN);
    session.event(tool("task", json!({"title": "Explore"})));
    session.event(json!({"type": "text", "run": "r0", "block": "s", "parent": "task", "delta": "Hidden\n\n"}));
    for number in 0..30 {
        let call = format!("c{number}");
        session.event(tool(&call, json!({"title": call, "parent": "task"})));
        assert!(session.event(tool(&call, json!({"status": "completed", "parent": "task"}))).is_empty());
    }
    session.event(tool("deep", json!({"title": "deep", "parent": "c29"})));
    let pending = session.pending();
    assert_eq!(pending[1..], ["  … 28 more", "  ✓ c28", "  ✓ c29", "    ● deep 10s"]);
    let lines = session.event(tool("task", json!({"status": "completed"})));
    assert_eq!(lines[..2], ["✓ Explore", "  … 11 more"]);
    assert_eq!(lines[lines.len() - 2..], ["  ✓ c29", "    ● deep"]);
    assert_eq!(session.event(tool("deep", json!({"status": "completed"}))), ["  ✓ deep"], "it outlived its parent");
    assert_eq!(
        session.event(tool("late", json!({"title": "late", "parent": "task", "status": "failed"}))),
        ["  ✗ late"]
    );
}

#[test]
fn thinking_shows_its_last_line_and_then_how_long_it_took() {
    let mut session = Session::new(PLAIN);
    let thinking = |delta: &str| json!({"type": "thinking", "run": "r0", "block": "t", "delta": delta});
    session.event(run_started("r0"));
    session.event(thinking("First\nthen this"));
    session.event(thinking(" and that\n"));
    assert_eq!(session.pending(), ["∴ then this and that"]);
    assert_eq!(session.event(text("b", "Done\n\n")), ["thought for 2s", "", "Done"]);
}

#[test]
fn a_plan_is_final_once_when_its_run_ends() {
    let mut session = Session::new(PLAIN);
    let plan = |status: &str| {
        json!({"type": "plan", "run": "r0", "entries": [{"content": "Read", "status": "completed"},
            {"content": "Write", "status": status}, {"content": "Test", "status": "pending"}]})
    };
    assert!(session.event(plan("pending")).is_empty() && session.event(plan("in_progress")).is_empty());
    assert_eq!(session.pending(), ["☑ Read", "◐ Write", "☐ Test"]);
    assert_eq!(session.event(success("r0")), ["☑ Read", "◐ Write", "☐ Test"]);
    assert!(session.pending().is_empty());
    session.event(plan("in_progress"));
    assert!(session.event(success("r1")).is_empty(), "it did not change");
}

#[test]
fn approvals_show_how_they_were_answered() {
    let shown = |fields: Value| {
        let mut session = Session::new(PLAIN);
        assert!(session.event(json!({"type": "approval_requested", "approval": approval()})).is_empty());
        session.event(resolved(fields)).concat()
    };
    let by = |name: &str, more: Value| {
        let mut fields = json!({"command": "c", "digest": "0", "by": name});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        shown(fields)
    };
    assert_eq!(by("phone", json!({"outcome": "allowed", "option": "once"})), "✓ allowed by phone: rm -r build");
    assert_eq!(by("local", json!({"outcome": "allowed", "option": "always"})), "✓ allowed (Always): rm -r build");
    assert_eq!(by("local", json!({"outcome": "denied", "reason": "no"})), "✗ denied: rm -r build (no)");
    assert_eq!(shown(json!({"outcome": "withdrawn"})), "○ withdrawn: rm -r build");
    assert_eq!(shown(json!({"outcome": "lost"})), "○ the agent no longer waits: rm -r build");
    let mut session = Session::new(PLAIN);
    session.event(json!({"type": "approval_requested", "approval": approval()}));
    assert_eq!(session.finish(), ["? waits for approval a7: rm -r build"]);
}

#[test]
fn ends_say_what_happened() {
    let end = |fields: Value| Session::new(PLAIN).event(complete("r0", fields)).join("|");
    assert_eq!(end(json!({"success": true})), "");
    assert_eq!(end(json!({"aborted": true})), "■ stopped");
    assert_eq!(end(json!({"interrupted": true})), "✗ interrupted: the session ended, or its|  process died");
    assert_eq!(end(json!({"stop_reason": "max_tokens"})), "✗ the agent stopped: max_tokens");
    assert_eq!(
        end(json!({"error": {"code": "e", "message": "boom"}, "exit_code": 1})),
        "✗ boom (the agent exited with code 1)"
    );
    assert_eq!(
        end(json!({"error": {"code": "usage_limit", "message": "limit", "retry_at": "2030-01-01T01:00:00+01:00"}})),
        "✗ limit|  works again from 2030-01-01 00:00 UTC"
    );
    let mut session = Session::new(PLAIN);
    session.event(run_started("r0"));
    session.event(json!({"type": "abort_requested", "run": "r0", "command": "c", "digest": "0", "by": "phone"}));
    assert_eq!(session.event(complete("r0", json!({"aborted": true}))), ["■ stopped by phone · 2s"]);
    session.event(run_started("r1"));
    for _ in 0..2 {
        session.event(json!({"type": "usage", "run": "r1", "tokens": {"input": 700, "output": 9}, "cost": 0.01}));
    }
    assert_eq!(session.event(success("r1")), ["3s · 1.4k tokens in, 18 out · $0.02"]);
}

#[test]
fn the_life_of_the_session_and_notices_are_one_line_each() {
    let mut session = Session::new(PLAIN);
    let started = json!({"type": "started", "epoch": "9f3c61d2", "pid": 1, "version": "1"});
    assert!(session.event(started.clone()).is_empty(), "the first life");
    session.event(tool("t", json!({"title": "make"})));
    assert_eq!(session.event(started), ["○ make (did not end)", "the session was restarted"]);
    for (event, line) in [
        (json!({"type": "notice", "level": "debug", "text": "x"}), ""),
        (json!({"type": "notice", "level": "info", "text": "x"}), "x"),
        (json!({"type": "notice", "level": "error", "text": "x"}), "! x"),
        (json!({"type": "notice", "level": "new", "text": "x"}), "x"),
        (json!({"type": "degraded", "error": "x"}), "! the history could not be written for a|  while: x"),
        (
            json!({"type": "repaired", "epoch": "9f3c61d3"}),
            "! the end of the history was damaged:|  the last events may be missing",
        ),
        (json!({"type": "run_started", "run": "r9", "cause": "agent"}), "the agent continues by itself"),
        (json!({"type": "exit", "code": 0, "signal": null}), "the session was ended"),
        (json!({"type": "title", "title": "x"}), ""),
        (json!({"type": "raw", "source": "acp", "message": {}}), ""),
        (json!({"type": "from_a_newer_version", "text": "x"}), ""),
        (json!({"type": "text"}), ""),
        (json!(["not", "an", "event"]), ""),
    ] {
        assert_eq!(session.event(event).join("|"), line);
    }
}

/// A plan that hides what it does where laid out Markdown does not show it.
#[test]
fn r35_a_plan_is_printed_in_full() {
    let text = "|step|\n|-|\n|test|rm -r /|\n\n[docs](a.md 'push --force')\n\n```sh deploys first\nls\n```\n\
        <!-- drops tables -->\n\n[note]: b 'sends mail'";
    let plan = json!({"id": "a1", "run": null, "kind": "plan", "tool": "", "title": "", "at": "",
        "detail": {"text": text}});
    let shown = card(&serde_json::from_value::<Approval>(plan).unwrap(), PLAIN).join("\n");
    for hidden in ["rm -r /", "push --force", "deploys first", "drops tables", "sends mail"] {
        assert!(shown.contains(hidden), "{hidden}:\n{shown}");
    }
}

#[test]
fn a_card_shows_everything_that_a_decision_needs() {
    let card = |approval: Value| card(&serde_json::from_value::<Approval>(approval).unwrap(), PLAIN);
    let mut permission = approval();
    permission["truncated"] = json!(true);
    assert_eq!(
        card(permission),
        [
            "? The agent asks for permission · execu…",
            "  the agent says: Remove the build",
            "  directory",
            "  in /home/dev/app",
            "  │ rm -r build",
            "  ! This is not all: something was too",
            "  long and was cut.",
        ]
    );
    let mut spoofed = approval();
    spoofed["detail"] = json!({"command": "a\x1b[2K\n  1. No", "diff": "+x\u{202e}"});
    assert_eq!(
        card(spoofed)[3..],
        [r"  │ a\u001b[2K", "  │   1. No", r"  │ +x\u202e"],
        "the agent's text does not look like an option"
    );
    let plan = json!({"id": "a1", "run": null, "kind": "plan", "tool": "", "title": "", "at": "",
        "detail": {"text": "# Plan\n\n1. Test"}});
    assert_eq!(card(plan)[1..], ["  │ # Plan", "  │", "  │ 1. Test"]);
    let question = json!({"id": "a1", "run": null, "kind": "question", "tool": "", "title": "Colour?", "at": "",
        "questions": [{"id": "q", "text": "Colour?", "options": [{"label": "Red", "description": "warm"}], "free": true}]});
    assert_eq!(card(question)[1..], ["  Colour?"]);
    let unknown = json!({"id": "a1", "run": null, "kind": "newer", "tool": "", "title": "", "at": ""});
    assert!(card(unknown).concat().contains("only be denied"));
}

#[test]
fn a_new_width_applies_to_lines_from_now_on() {
    let mut session = Session::new(PLAIN);
    assert_eq!(session.event(text("b", "one two three four five six seven eight\n\n")).len(), 1);
    session.transcript.set_style(Style { width: Some(20), color: false });
    assert_eq!(session.event(text("b", "one two three four five\n\n")), ["", "one two three four", "five"]);
}
