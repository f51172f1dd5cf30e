//! Runs in the middle of which the gateway or the session process dies, or the session is ended.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::gateway::signal;
use super::super::processes;
use super::stream::{Received, Sse, read_until};
use super::{until, with_each};

#[test]
fn r33_r36_r40_runs_and_approvals_go_on_while_the_gateway_is_killed_and_restarted() {
    with_each(|bench| {
        let id = bench.start();
        let epoch = bench.world.describe(&id)["epoch"].as_str().unwrap().to_owned();
        let go = bench.world.file("go");
        let run = bench.hold(&id, &go);
        bench.world.kill_gateway();
        std::fs::write(&go, "").unwrap();
        let end = bench.world.complete(&id, &run);
        assert_eq!(end["success"], true, "{end}");
        bench.world.start_gateway();
        assert_eq!(bench.world.said(&id, &run), "Holding. Released.");
        let (run, approval) = bench.request_tool(&id, "touch allowed");
        bench.world.kill_gateway();
        bench.world.start_gateway();
        assert_eq!(bench.world.approvals(&id, 1).remove(0), approval);
        bench.allow(&id, &approval);
        bench.made.push("allowed");
        let mut sse = Sse::open(&bench.world, &format!("watch={id}@{epoch}:0"), None);
        let mut received = Received::default();
        read_until(
            || Some(sse.next()?.0),
            &mut received,
            "the run ends",
            |event| event["type"] == "complete" && event["run"] == run.as_str(),
        );
        let end = bench.world.complete(&id, &run);
        assert_eq!(end["success"], true, "{end}");
        assert!(bench.project().join("allowed").exists());
    });
}

#[test]
fn r33_r42_a_run_is_interrupted_when_its_session_process_is_killed() {
    with_each(|bench| {
        let id = bench.start();
        bench.begin_conversation(&id);
        let (run, unique) = bench.run_tool(&id);
        signal(bench.world.session_pid(&id), Signal::KILL);
        until("the session is lost", || bench.world.describe(&id)["state"] == "lost");
        let end = bench.world.complete(&id, &run);
        assert_eq!((&end["interrupted"], &end["started"]), (&json!(true), &json!(true)), "{end}");
        until("the tool has ended", || processes::with_argument(&unique).is_empty());
        until("the program has ended", || bench.processes_of(&id).is_empty());
        bench.wait_until_resumable();
        let restarted = bench.world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({}));
        assert_eq!(restarted.status, 200, "{}", restarted.text());
        bench.continue_conversation(&id);
    });
}

#[test]
fn r31_r33_ending_a_session_ends_its_run_and_every_process() {
    with_each(|bench| {
        let id = bench.start();
        let (run, unique) = bench.run_tool(&id);
        let pid = bench.world.session_pid(&id);
        bench.end(&id);
        assert_eq!(processes::with_argument(&unique), [0; 0], "the tool is left");
        assert_eq!(bench.processes_of(&id), [0; 0], "processes of the agent are left");
        assert!(processes::children_of(pid).is_empty());
        let end = bench.world.complete(&id, &run);
        assert_eq!(end["interrupted"], true, "{end}");
        assert_eq!(bench.world.describe(&id)["activity"], Value::Null);
    });
}
