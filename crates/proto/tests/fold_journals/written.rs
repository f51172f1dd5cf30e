//! Journals written by hand, one for each subject.

use serde_json::{Value, json};

use super::{Journal, abort, complete, config, delta, prompt, requested, resolved, run_started, tool, usage};

pub(crate) fn written() -> Vec<Journal> {
    vec![
        Journal::new("a run, with what the agent does in it", activity()),
        Journal::new("prompts that wait, and an abort of one of them", queue()),
        Journal::new("an abort with the queue, behind a run that the agent began by itself", own_run()),
        Journal::new("approvals, one of which outlives its run", approvals()),
        Journal::new("tool calls up to their limits", tools()),
        Journal::new("usage adds up, and the context is the latest", used()),
        Journal::new("settings, titles and conversations", settings()),
        Journal::new("a session that degrades, exits, is repaired and starts again", lives()),
        Journal::new("events that mean nothing to the fold, or are of no known shape", unknown()),
        ranges(),
    ]
}

fn activity() -> Vec<Value> {
    let r0 = Some("r0");
    vec![
        prompt("r0"),
        delta("text", r0, None), // the agent does not have the prompt yet
        tool("tool_call", r0, "early", Some("early"), None),
        run_started("r0", "prompt"),
        delta("thinking", r0, None),
        delta("thinking", r0, None),
        delta("text", r0, None),
        delta("text", None, None),
        delta("thinking", Some("r1"), None),
        tool("tool_call", r0, "t1", Some("make test"), Some("in_progress")),
        delta("thinking", r0, Some("t1")), // of a sub-agent
        tool("tool_call", r0, "t2", None, Some("pending")),
        tool("tool_update", r0, "t2", Some("ls"), None),
        tool("tool_update", r0, "t2", Some("ls"), None),
        tool("tool_update", None, "t1", None, Some("completed")), // of no run
        tool("tool_update", r0, "t2", None, Some("failed")),
        tool("tool_update", r0, "t2", Some("late"), Some("completed")),
        tool("tool_update", r0, "t1", None, Some("a status of a newer version")),
        run_started("r0", "prompt"),
        abort("r0", false),
        abort("r7", true),
        complete("r7"),
        complete("r0"),
        complete("r0"),
        delta("text", r0, None),
    ]
}

fn queue() -> Vec<Value> {
    vec![
        prompt("r0"),
        run_started("r0", "prompt"),
        prompt("r1"),
        prompt("r2"),
        prompt("r3"),
        prompt("r1"),
        delta("text", Some("r0"), None),
        tool("tool_call", Some("r0"), "t", Some("sleep"), None),
        abort("r2", false),
        complete("r2"),
        complete("r0"),
        run_started("r1", "prompt"),
        abort("r1", true),
        complete("r1"),
        complete("r3"),
    ]
}

fn own_run() -> Vec<Value> {
    vec![
        prompt("r0"),
        prompt("r1"),
        run_started("r2", "agent"),
        delta("text", Some("r2"), None),
        tool("tool_call", Some("r2"), "t", Some("watch"), None),
        prompt("r3"),
        complete("r0"), // another run ends: this one goes on
        abort("r2", true),
        complete("r2"),
        complete("r1"),
        run_started("r3", "prompt"),
        run_started("r4", "a cause of a newer version"),
        complete("r3"),
        complete("r4"),
    ]
}

fn approvals() -> Vec<Value> {
    let (r0, r1) = (Some("r0"), Some("r1"));
    let question = json!({"type": "approval_requested", "approval": {"id": "a3", "run": null, "kind": "question",
        "tool": "ask", "call": "t9", "title": "Which?", "detail": {}, "truncated": true, "options": [],
        "questions": [{"id": "q", "text": "Which?", "options": [{"label": "A", "description": "the first"}],
        "multi": false, "free": true}], "at": ""}});
    let short = json!({"type": "approval_requested", "approval": {"id": "a4", "run": "r1", "kind": "hologram",
        "tool": "", "title": "", "at": ""}});
    vec![
        prompt("r0"),
        run_started("r0", "prompt"),
        requested("a0", r0),
        requested("a1", r1),
        delta("text", r0, None),
        tool("tool_call", r0, "t", None, None),
        tool("tool_update", r0, "t", None, Some("completed")),
        resolved("a0"),
        requested("a2", r0),
        resolved("a9"),
        complete("r0"),
        prompt("r1"),
        run_started("r1", "prompt"),
        resolved("a1"),
        question,
        short,
        json!({"type": "approval_resolved", "approval": "a2", "outcome": "lost"}),
        json!({"type": "approval_resolved", "approval": "a3", "outcome": "hologram", "by": 7}),
        resolved("a4"),
    ]
}

fn tools() -> Vec<Value> {
    let run = Some("r0");
    let mut events = vec![prompt("r0"), run_started("r0", "prompt")];
    for title in ["x".repeat(200), "x".repeat(201), "é".repeat(201), "🦀".repeat(200), "🦀".repeat(250)] {
        events.push(tool("tool_call", run, "title", Some(&title), None));
    }
    events.push(tool("tool_call", run, "title", Some(&format!("{}🦀x", "x".repeat(199))), None));
    for id in ["c".repeat(256), "c".repeat(257), "é".repeat(128), "é".repeat(129), "🦀".repeat(64), "🦀".repeat(65)]
    {
        events.push(tool("tool_call", run, &id, Some("an id"), None));
        events.push(tool("tool_update", run, &id, None, Some("completed")));
    }
    events.extend((0..66).map(|n| tool("tool_call", run, &format!("t{n}"), Some("one of many"), Some("pending"))));
    events.push(tool("tool_update", run, "t0", None, Some("completed"))); // dropped before
    events.push(tool("tool_update", run, "t65", Some(""), None));
    events.push(tool("tool_update", run, "t30", None, Some("completed")));
    events.push(complete("r0"));
    events
}

fn used() -> Vec<Value> {
    vec![
        usage(Some("r0"), 1, None, None),
        usage(None, 2, Some(0.1), None),
        usage(None, 3, Some(0.2), Some(10)),
        usage(None, 4, Some(0.000_000_000_4), None),
        usage(None, 5, Some(0.000_000_000_5), Some(5)),
        usage(None, 6, Some(-1.0), None),
        usage(None, 7, Some(1_234.567_890_123_456), None),
        usage(None, 8, Some(1e300), None),
        json!({"type": "usage", "run": null}),
        json!({"type": "usage", "run": null, "tokens": {"output": 9}}),
        usage(None, (1 << 53) - 2, None, None),
        usage(None, 1000, None, None),
    ]
}

fn settings() -> Vec<Value> {
    vec![
        json!({"type": "conversation", "id": "abc"}),
        json!({"type": "title", "title": "Fix the build"}),
        config("plan"),
        json!({"type": "set", "mode": "default", "option": {"id": "effort", "value": "high"}, "command": "c",
            "digest": "0000000000000000", "by": "local"}),
        config("default"),
        json!({"type": "config", "truncated": true}),
        json!({"type": "config", "modes": {}, "options": [{"id": "a", "name": "b"}], "commands": []}),
        json!({"type": "conversation", "id": "def"}),
        json!({"type": "title", "title": ""}),
    ]
}

fn lives() -> Vec<Value> {
    let started = |epoch: &str| json!({"type": "started", "epoch": epoch, "pid": 7, "version": "0.1.0"});
    vec![
        started("00000001"),
        prompt("r0"),
        run_started("r0", "prompt"),
        requested("a0", Some("r0")),
        json!({"type": "degraded", "error": "No space left on device"}),
        json!({"type": "repaired", "epoch": "00000002"}),
        json!({"type": "approval_resolved", "approval": "a0", "outcome": "lost"}),
        complete("r0"),
        json!({"type": "exit", "code": 0, "signal": null}),
        started("00000003"),
        json!({"type": "exit", "code": null, "signal": "SIGKILL"}),
        json!({"type": "repaired", "epoch": "00000004"}),
        started("00000005"),
        json!({"type": "degraded", "error": ""}),
        started("00000006"),
    ]
}

fn unknown() -> Vec<Value> {
    let with = |mut event: Value, key: &str, value: Value| {
        event[key] = value;
        event
    };
    vec![
        prompt("r0"),
        run_started("r0", "prompt"),
        json!({"type": "plan", "run": "r0", "entries": [{"content": "a", "status": "pending"}]}),
        json!({"type": "steered", "run": "r0", "command": "c", "digest": "0000000000000000", "by": "local", "text": ""}),
        json!({"type": "notice", "level": "warning", "text": "careful"}),
        json!({"type": "notice", "level": "hologram", "text": ""}),
        json!({"type": "raw", "source": "acp", "message": {"type": "title", "title": "no"}}),
        json!({"type": "hologram", "title": "no"}),
        json!({"title": "no"}),
        json!([{"type": "title", "title": "no"}]),
        json!("title"),
        json!(null),
        json!({"type": 7}),
        json!({"type": "__proto__"}),
        json!({"type": "constructor"}),
        json!({"type": "title", "title": 7}),
        json!({"type": "title"}),
        with(prompt("r1"), "run", json!("r01")),
        with(prompt("r1"), "run", json!("R1")),
        with(prompt("r1"), "run", json!("r-1")),
        with(prompt("r1"), "run", json!("r18446744073709551616")),
        with(prompt("r1"), "text", json!(null)),
        with(prompt("r1"), "attachments", json!([7])),
        with(complete("r0"), "started", json!("yes")),
        with(complete("r0"), "exit_code", json!(3_000_000_000_u32)),
        with(complete("r0"), "error", json!({"code": "x"})),
        with(abort("r0", false), "by", json!(null)),
        with(abort("r0", false), "queue", json!("yes")),
        tool("tool_call", Some("r"), "t", Some("no"), None),
        with(tool("tool_call", Some("r0"), "t", Some("no"), None), "blob", json!({"seq": -1, "bytes": 1})),
        with(tool("tool_call", Some("r0"), "t", None, None), "title", json!(["no"])),
        with(delta("text", Some("r0"), None), "delta", json!(null)),
        with(delta("text", Some("r0"), None), "parent", json!(7)),
        requested("7", Some("r0")),
        requested("a07", Some("r0")),
        requested("a7", Some("7")),
        json!({"type": "approval_requested", "approval": "a7"}),
        json!({"type": "approval_resolved", "approval": "a7"}),
        json!({"type": "usage", "run": "r0", "tokens": {"input": -1}}),
        json!({"type": "usage", "run": "r0", "tokens": {}, "cost": "1"}),
        json!({"type": "usage", "run": "r0", "tokens": {}, "context": {"used": 1}}),
        json!({"type": "config", "modes": "plan"}),
        json!({"type": "started", "epoch": "1", "pid": 7, "version": "0.1.0"}),
        json!({"type": "exit", "code": "0"}),
        with(prompt("r18446744073709551615"), "extra", json!({"of": "a newer version"})),
        complete("r0"),
    ]
}

/// Several events that are sent as one, as to a viewer that is far behind.
fn ranges() -> Journal {
    let record = |from: Option<u64>, seq: u64, event: Value| {
        let mut record = json!({"seq": seq, "at": format!("t{seq}"), "event": event});
        if let Some(from) = from {
            record["from"] = json!(from);
        }
        record
    };
    let records = vec![
        record(None, 0, prompt("r0")),
        record(None, 1, run_started("r0", "prompt")),
        record(Some(2), 40, delta("thinking", Some("r0"), None)),
        record(Some(41), 41, delta("text", Some("r0"), None)),
        record(Some(42), 90, delta("text", Some("r0"), None)),
        record(None, 91, complete("r0")),
    ];
    Journal { name: "ranges".to_owned(), records }
}
