//! What a client changes while it works with an agent: its settings, and the instructions of a run.

use serde_json::{Value, json};

use super::{until, with_each};

#[test]
fn r43_a_mode_is_set_and_the_next_process_has_it_too() {
    with_each(|bench| {
        let id = bench.start();
        bench.converse(&id, "Hello.", "Hello.");
        let command = bench.command_id();
        let set = bench.world.command(&id, &command, &json!({"type": "set", "mode": "plan"}));
        assert_eq!(set.status, 202, "{}", set.text());
        until("the mode is set", || bench.world.describe(&id)["mode"] == "plan");
        bench.wait_until_resumable();
        bench.kill_agent(&id);
        bench.converse(&id, "Go on.", "Planned.");
        assert_eq!(bench.world.describe(&id)["mode"], "plan");
        let refused: Vec<Value> = bench.world.events_of(&id, "notice");
        let refused: Vec<&Value> = refused.iter().filter(|notice| notice["level"] == "error").collect();
        assert!(refused.is_empty(), "{refused:?}");
    });
}

#[test]
fn r59_a_run_takes_more_instructions_while_its_tool_runs() {
    with_each(|bench| {
        let id = bench.start();
        let go = bench.world.file("go");
        let (run, approval) =
            bench.request_tool(&id, &format!("touch started; until test -e {go}; do sleep 0.1; done"));
        bench.allow(&id, &approval);
        bench.made.push("started");
        until("the tool runs", || bench.project().join("started").exists());
        let command = bench.command_id();
        let steered =
            bench.world.command(&id, &command, &json!({"type": "steer", "run": run, "text": "Think of penguin-0815."}));
        let expected = if bench.program.takes_instructions { 202 } else { 409 };
        assert_eq!(steered.status, expected, "{}", steered.text());
        std::fs::write(&go, "").unwrap();
        let end = bench.world.complete(&id, &run);
        assert_eq!(end["success"], true, "{end}");
        assert_eq!(bench.stub.was_sent(&["penguin-0815"]), bench.program.takes_instructions);
    });
}

/// Only Claude Code is known to do this.
#[test]
fn r33_a_turn_that_the_agent_begins_by_itself_is_a_run() {
    with_each(|bench| {
        if bench.program.name != "claude" {
            return;
        }
        let id = bench.start();
        let go = bench.world.file("go");
        let command = format!("touch started; until test -e {go}; do sleep 0.1; done; echo ready");
        let tool = json!({"command": command, "run_in_background": true, "description": "Waits"});
        let run = bench.prompt(&id, &format!("Please [[tool:Bash {tool}]]"));
        let approval = bench.world.approvals(&id, 1).remove(0);
        bench.allow(&id, &approval);
        bench.made.push("started");
        let end = bench.world.complete(&id, &run);
        assert_eq!(end["success"], true, "{end}");
        assert_eq!(bench.world.describe(&id)["activity"], Value::Null, "the tool goes on in the background");
        std::fs::write(&go, "").unwrap();
        let own = || bench.world.events_of(&id, "run_started").into_iter().find(|event| event["cause"] == "agent");
        until("the agent begins a turn", || own().is_some());
        let own = own().unwrap()["run"].as_str().unwrap().to_owned();
        assert_eq!(bench.world.complete(&id, &own)["success"], true);
        assert_ne!(bench.world.said(&id, &own), "");
        bench.converse(&id, "Go on.", "Here again.");
    });
}
