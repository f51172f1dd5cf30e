//! Tests of the fold: activity, remembered commands, conversations, modes, interruptions and pages.

use serde_json::{Value, json};

use super::*;

fn fold(events: &[Value]) -> Fold {
    let mut fold = Fold::default();
    for (seq, event) in events.iter().enumerate() {
        let event = serde_json::from_value(event.clone()).unwrap();
        fold.fold(&Record::new(seq as u64, format!("t{seq}"), event));
    }
    fold
}

fn prompt(run: &str, command: &str) -> Value {
    json!({"type": "prompt", "run": run, "command": command, "digest": "d", "by": "local", "text": "hi"})
}

fn tool(call: &str, title: &str, status: &str) -> Value {
    json!({"type": "tool_call", "run": "r0", "call": call, "title": title, "status": status})
}

#[test]
fn r35_activity_is_the_newest_open_tool_or_else_what_the_agent_writes() {
    let mut events = vec![prompt("r0", "a")];
    let mut text = |event: Value| {
        events.push(event);
        fold(&events).activity().map(|activity| activity.text)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(text(prompt("r1", "b")), some("Waiting for the agent"));
    assert_eq!(text(json!({"type": "run_started", "run": "r0", "cause": "prompt"})), some("Working"));
    assert_eq!(text(json!({"type": "thinking", "run": "r0", "block": "1", "delta": "x"})), some("Thinking"));
    assert_eq!(text(json!({"type": "text", "run": "r0", "block": "2", "delta": "x"})), some("Writing"));
    assert_eq!(text(tool("t1", "make test", "in_progress")), some("make test"));
    assert_eq!(text(tool("t2", "ls", "pending")), some("ls"));
    assert_eq!(text(json!({"type": "text", "run": "r0", "block": "2", "delta": "x", "parent": "t2"})), some("ls"));
    assert_eq!(text(json!({"type": "tool_update", "run": "r0", "call": "t2", "status": "failed"})), some("make test"));
    assert_eq!(text(json!({"type": "text", "run": null, "block": "9", "delta": "late"})), some("make test"));
    let abort = json!({"type": "abort_requested", "run": "r0", "command": "c", "digest": "d", "by": "local"});
    assert_eq!(text(abort), some("Stopping"));
    let complete = |run: &str| {
        json!({"type": "complete", "run": run, "started": true, "success": false, "aborted": true,
            "interrupted": false, "exit_code": null, "signal": null, "stop_reason": null, "conversation": null})
    };
    assert_eq!(text(complete("r0")), some("Waiting for the agent"), "the next prompt");
    assert_eq!(text(complete("r1")), None);
}

#[test]
fn r35_activity_names_the_oldest_run_and_counts_the_others() {
    let state = fold(&[prompt("r4", "a"), prompt("r5", "b"), prompt("r6", "c")]);
    let activity = state.activity().unwrap();
    assert_eq!((activity.run, activity.started_at.as_str(), activity.can_interrupt), (RunId(4), "t0", true));
    assert_eq!((state.queued(), state.next_run), (2, RunId(7)));
}

#[test]
fn r40_a_client_that_begins_with_a_page_of_history_folds_the_same_state() {
    let complete = |run: &str| {
        json!({"type": "complete", "run": run, "started": true, "success": true, "aborted": false,
            "interrupted": false, "exit_code": null, "signal": null, "stop_reason": null, "conversation": null})
    };
    let approval = json!({"id": "a0", "run": "r0", "kind": "permission", "tool": "x", "title": "t", "at": "t4"});
    let events = [
        prompt("r0", "a"),
        json!({"type": "run_started", "run": "r0", "cause": "prompt"}),
        json!({"type": "thinking", "run": "r0", "block": "1", "delta": "x"}),
        tool("t1", "make test", "in_progress"),
        json!({"type": "approval_requested", "approval": approval}),
        prompt("r1", "b"),
        json!({"type": "usage", "run": "r0", "tokens": {"input": 3}, "cost": 0.5}),
        json!({"type": "abort_requested", "run": "r0", "command": "c", "digest": "d", "by": "local"}),
        json!({"type": "tool_update", "run": "r0", "call": "t1", "status": "completed"}),
        json!({"type": "title", "title": "Tests"}),
        complete("r0"),
        complete("r1"),
        json!({"type": "exit", "code": 0, "signal": null}),
    ];
    let whole = fold(&events);
    for cut in 0..events.len() {
        let mut later = Fold::from(fold(&events[..cut]).state());
        for (seq, event) in events.iter().enumerate().skip(cut) {
            let event = serde_json::from_value(event.clone()).unwrap();
            later.fold(&Record::new(seq as u64, format!("t{seq}"), event));
        }
        assert_eq!(later.state(), whole.state(), "cut at {cut}");
    }
}

#[test]
fn r37_the_latest_commands_are_remembered() {
    let prompts: Vec<Value> = (0..MAX_COMMANDS + 10).map(|n| prompt(&format!("r{n}"), &format!("c{n}"))).collect();
    let state = fold(&prompts);
    assert_eq!(state.accepted("c9"), None);
    let known = state.accepted("c10").unwrap();
    assert_eq!((known.seq, known.run, known.digest.as_str()), (10, Some(RunId(10)), "d"));
    assert_eq!(state.commands.len(), MAX_COMMANDS);
}

#[test]
fn r32_only_a_conversation_with_a_run_can_be_continued() {
    let conversation = |id: &str| json!({"type": "conversation", "id": id});
    let started = json!({"type": "run_started", "run": "r0", "cause": "prompt"});
    let mut events = vec![conversation("a")];
    assert_eq!(fold(&events).resumable(), None);
    events.push(started);
    assert_eq!(fold(&events).resumable(), Some("a"));
    events.push(conversation("b"));
    assert_eq!((fold(&events).resumable(), fold(&events).conversation.as_deref()), (None, Some("b")));
}

#[test]
fn r43_a_mode_that_was_chosen_is_kept_and_one_that_the_agent_began_with_is_not() {
    let config = |mode: &str| {
        json!({"type": "config", "modes": {"current": mode, "available": []},
            "models": {"current": "m", "available": []}, "options": [], "commands": []})
    };
    let set = |mode: &str| json!({"type": "set", "mode": mode, "command": "c", "digest": "d", "by": "local"});
    let chosen = |events: &[Value]| fold(events).settings.mode;
    let some = |mode: &str| Some(mode.to_owned());
    assert_eq!(chosen(&[config("default")]), None);
    assert_eq!(chosen(&[config("default"), config("default")]), None);
    assert_eq!(chosen(&[config("plan"), config("default")]), some("default"), "as when a plan was approved");
    assert_eq!(chosen(&[set("plan")]), some("plan"), "for the next process");
    assert_eq!(chosen(&[config("default"), set("plan"), config("default")]), some("default"), "it was refused");
    assert_eq!(fold(&[config("a"), config("b")]).settings.model, None);
}

#[test]
fn r33_an_interruption_ends_each_open_run_and_says_whether_it_had_started() {
    let mut state = fold(&[
        prompt("r0", "a"),
        json!({"type": "run_started", "run": "r0", "cause": "prompt"}),
        prompt("r1", "b"),
        json!({"type": "conversation", "id": "abc"}),
    ]);
    let ends = state.interruptions();
    let started: Vec<(RunId, bool, bool)> = ends
        .iter()
        .map(|event| match event {
            AgentEvent::Complete(complete) => (complete.run, complete.started, complete.interrupted),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(started, [(RunId(0), true, true), (RunId(1), false, true)]);
    for event in ends {
        state.fold(&Record::new(state.next_seq, String::new(), event));
    }
    assert_eq!((state.interruptions(), state.activity()), (vec![], None));
}
