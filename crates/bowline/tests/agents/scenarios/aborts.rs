//! Stopping a run at each point where a user may want it.

use serde_json::{Value, json};

use super::super::processes;
use super::{Bench, until, with_each};

#[test]
fn r33_r36_r42_a_run_is_aborted_at_any_point_and_the_next_one_works() {
    with_each(|bench| {
        let id = bench.start();
        abort_while_streaming(bench, &id);
        bench.converse(&id, "Go on.", "Here again.");
        abort_while_a_tool_runs(bench, &id);
        bench.converse(&id, "Go on.", "And again.");
        abort_while_an_approval_waits(bench, &id);
        bench.converse(&id, "Go on.", "Still here.");
    });
}

fn abort_while_streaming(bench: &mut Bench, id: &str) {
    let never = bench.world.file("never");
    let run = bench.hold(id, &never);
    let end = bench.abort(id, &run);
    assert_was_aborted(&end);
}

fn abort_while_a_tool_runs(bench: &mut Bench, id: &str) {
    let (run, unique) = bench.run_tool(id);
    let end = bench.abort(id, &run);
    assert_was_aborted(&end);
    until("the tool has ended", || processes::with_argument(&unique).is_empty());
}

fn abort_while_an_approval_waits(bench: &mut Bench, id: &str) {
    let (run, approval) = bench.request_tool(id, "touch never");
    let end = bench.abort(id, &run);
    assert_was_aborted(&end);
    let resolved = bench.world.events_of(id, "approval_resolved");
    let resolved = resolved.last().unwrap();
    assert_eq!((&resolved["approval"], &resolved["outcome"]), (&approval["id"], &json!("aborted")));
    assert!(!bench.project().join("never").exists());
}

#[track_caller]
fn assert_was_aborted(end: &Value) {
    let fields = ["started", "aborted", "success", "interrupted"].map(|field| &end[field]);
    assert_eq!(fields, [&json!(true), &json!(true), &json!(false), &json!(false)], "{end}");
}
