//! Journals that reach every branch of the fold: some written by hand, one random.

mod random;
mod written;

use serde_json::{Value, json};

pub(crate) use random::random;
pub(crate) use written::written;

/// A journal with a name for people.
pub(crate) struct Journal {
    pub(crate) name: String,
    pub(crate) records: Vec<Value>,
}

impl Journal {
    /// Numbers the events from 0.
    pub(crate) fn new(name: impl Into<String>, events: Vec<Value>) -> Journal {
        let record = |(seq, event)| json!({"seq": seq, "at": format!("t{seq}"), "event": event});
        Journal { name: name.into(), records: events.into_iter().enumerate().map(record).collect() }
    }
}

fn prompt(run: &str) -> Value {
    json!({"type": "prompt", "run": run, "command": format!("c-{run}"), "digest": "0000000000000000", "by": "local",
        "text": "hi", "attachments": []})
}

fn run_started(run: &str, cause: &str) -> Value {
    json!({"type": "run_started", "run": run, "cause": cause})
}

fn complete(run: &str) -> Value {
    json!({"type": "complete", "run": run, "started": true, "success": true, "aborted": false, "interrupted": false,
        "exit_code": null, "signal": null, "stop_reason": "end_turn", "conversation": null})
}

fn abort(run: &str, queue: bool) -> Value {
    let mut event = json!({"type": "abort_requested", "run": run, "command": "c", "digest": "0000000000000000",
        "by": "local"});
    if queue {
        event["queue"] = json!(true);
    }
    event
}

fn delta(kind: &str, run: Option<&str>, parent: Option<&str>) -> Value {
    let mut event = json!({"type": kind, "run": run, "block": "m1", "delta": "x"});
    if let Some(parent) = parent {
        event["parent"] = json!(parent);
    }
    event
}

fn tool(kind: &str, run: Option<&str>, call: &str, title: Option<&str>, status: Option<&str>) -> Value {
    let mut event = json!({"type": kind, "run": run, "call": call});
    for (key, value) in [("title", title), ("status", status)] {
        if let Some(value) = value {
            event[key] = json!(value);
        }
    }
    event
}

fn requested(id: &str, run: Option<&str>) -> Value {
    json!({"type": "approval_requested", "approval": {"id": id, "run": run, "kind": "permission", "tool": "Bash",
        "title": "make", "detail": {"command": "make"}, "truncated": false,
        "options": [{"id": "yes", "kind": "allow_once", "label": "Allow"}], "at": "2026-01-01T00:00:00Z"}})
}

fn resolved(id: &str) -> Value {
    json!({"type": "approval_resolved", "approval": id, "outcome": "allowed", "option": "yes", "command": "c",
        "digest": "0000000000000000", "by": "phone"})
}

fn usage(run: Option<&str>, input: u64, cost: Option<f64>, context: Option<u64>) -> Value {
    let tokens = json!({"input": input, "output": 1, "cache_read": 2, "cache_write": 3});
    let mut event = json!({"type": "usage", "run": run, "tokens": tokens});
    if let Some(cost) = cost {
        event["cost"] = json!(cost);
    }
    if let Some(used) = context {
        event["context"] = json!({"used": used, "size": 1000});
    }
    event
}

fn config(mode: &str) -> Value {
    let choices = json!({"current": mode, "available": [{"id": mode, "name": mode}]});
    json!({"type": "config", "modes": choices, "models": null,
        "options": [{"id": "effort", "name": "Effort", "current": "low", "available": []}],
        "commands": [{"name": "compact", "hint": "what to keep"}]})
}
