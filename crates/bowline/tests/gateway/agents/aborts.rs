//! Stopping a run: by the agent's own cancel, and by ending its program and everything that it started.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::gateway::{World, signal};
use super::{assert_each_run_ends_once, is_running, until, world, world_with};

impl World {
    /// Sends a prompt whose run reaches a certain point and waits there.
    #[track_caller]
    fn hold(&self, session: &str, id: &str, lines: &[&str]) -> String {
        let reached = self.file(&format!("reached-{id}"));
        let (touch, wait) = (format!("touch {reached}"), format!("wait {}", self.file("never")));
        let lines: Vec<&str> = lines.iter().copied().chain([touch.as_str(), wait.as_str()]).collect();
        let run = self.prompt(session, id, &lines);
        until("the run has reached its point", || Path::new(&reached).exists());
        run
    }

    /// The process id that the agent wrote to a file.
    fn pid_in(&self, name: &str) -> i32 {
        until("the pid is written", || std::fs::read_to_string(self.file(name)).is_ok_and(|pid| !pid.is_empty()));
        std::fs::read_to_string(self.file(name)).unwrap().trim().parse().unwrap()
    }
}

pub(super) fn has_ended(pid: i32) -> bool {
    !is_running(pid)
}

#[test]
fn r33_an_aborted_run_ends_once_and_the_agent_lives_on() {
    let world = world();
    let id = world.agent();
    let run = world.hold(&id, "a", &["say working"]);
    let queued = [world.prompt(&id, "b", &["say next"]), world.prompt(&id, "c", &["say dropped"])];
    world.abort(&id, "x", &queued[1]);
    let dropped = world.complete(&id, &queued[1]);
    assert_eq!((&dropped["aborted"], &dropped["started"]), (&json!(true), &json!(false)));
    world.abort(&id, "y", &run);
    let aborted = world.complete(&id, &run);
    assert_eq!(
        (&aborted["aborted"], &aborted["started"], &aborted["success"]),
        (&json!(true), &json!(true), &json!(false))
    );
    assert_eq!(world.complete(&id, &queued[0])["success"], true, "the next prompt runs after an abort");
    let again = world.command(&id, "z", &json!({"type": "abort", "run": run}));
    assert_eq!((again.status, again.code()), (409, "not_running"));
    assert_eq!(world.command(&id, "y", &json!({"type": "abort", "run": run})).status, 200, "a repeat is a duplicate");
    assert_each_run_ends_once(&world.journal(&id));
    let abort = world.events_of(&id, "abort_requested");
    assert_eq!((abort.len(), &abort[1]["by"], &abort[1]["command"]), (2, &json!("test"), &json!("y")));
}

#[test]
fn r33_an_abort_with_its_queue_ends_every_later_run() {
    let world = world();
    let id = world.agent();
    let run = world.hold(&id, "a", &[]);
    let queued = ["b", "c"].map(|command| world.prompt(&id, command, &["say no"]));
    let answer = world.command(&id, "x", &json!({"type": "abort", "run": run, "queue": true}));
    assert_eq!(answer.status, 202);
    for run in [&run, &queued[0], &queued[1]] {
        assert_eq!(world.complete(&id, run)["aborted"], true);
    }
    assert_eq!(world.run_prompt(&id, "d", &["say yes"])["success"], true);
}

/// An agent that does not listen is ended with everything that it started, and the next prompt gets a new one.
#[test]
fn r42_an_agent_that_ignores_everything_is_killed_with_its_processes() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    let files = ["pid", "child", "orphan"].map(|name| world.file(name));
    let lines = [format!("pid {}", files[0]), format!("child {}", files[1]), format!("child-orphan {}", files[2])];
    let lines: Vec<&str> =
        ["ignore-cancel", "ignore-term"].into_iter().chain(lines.iter().map(String::as_str)).collect();
    let run = world.hold(&id, "a", &lines);
    let pids = ["pid", "child", "orphan"].map(|name| world.pid_in(name));
    assert!(pids.iter().all(|pid| is_running(*pid)));
    world.abort(&id, "x", &run);
    let end = world.complete(&id, &run);
    assert_eq!((&end["aborted"], &end["signal"]), (&json!(true), &json!("SIGKILL")));
    until("no process is left", || !pids.iter().any(|pid| is_running(*pid)));
    assert_eq!(world.run_prompt(&id, "b", &["say back"])["success"], true);
}

/// As Codex does it: the agent ends its run when it is told to, and leaves its tool running.
#[test]
fn r42_no_tool_survives_an_abort_although_the_agent_does() {
    let world = world();
    let id = world.agent();
    let files = ["soft", "stubborn"].map(|name| world.file(name));
    let pid = |name: &str| format!("pid {}", world.file(name));
    let lines = [pid("first"), format!("child {}", files[0]), format!("child-stubborn {}", files[1])];
    let run = world.hold(&id, "a", &lines.each_ref().map(String::as_str));
    let tools = ["soft", "stubborn"].map(|name| world.pid_in(name));
    assert!(tools.iter().all(|pid| is_running(*pid)));
    world.abort(&id, "x", &run);
    world.prompt(&id, "b", &[&pid("second")]);
    assert_eq!(world.complete(&id, &run)["aborted"], true);
    assert!(tools.iter().all(|pid| has_ended(*pid)), "the run is over once its tools have ended");
    assert_eq!(world.complete(&id, "r1")["success"], true, "the next run starts then");
    assert_eq!(world.pid_in("first"), world.pid_in("second"), "in the same agent");
}

/// The agent ends its run as it was told and exits, while a tool of the run does not.
#[test]
fn r42_a_session_waits_for_the_tools_of_an_agent_that_exited_without_being_busy() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    let lines = [("pid", "agent"), ("child", "soft"), ("child-stubborn", "stubborn")];
    let lines = lines.map(|(instruction, name)| format!("{instruction} {}", world.file(name)));
    let run = world.hold(&id, "a", &lines.each_ref().map(String::as_str));
    let [agent, soft, stubborn] = ["agent", "soft", "stubborn"].map(|name| world.pid_in(name));
    world.abort(&id, "x", &run);
    until("the agent has ended its run, and tools are asked to exit", || has_ended(soft));
    let before = world.ticks(&id);
    signal(agent.cast_unsigned(), Signal::KILL);
    assert_eq!(world.complete(&id, &run)["aborted"], true);
    assert!(has_ended(stubborn));
    let used = world.ticks(&id) - before;
    assert!(used < 100, "the session process used {used} ticks while it waited");
    assert_eq!(world.run_prompt(&id, "b", &["say next"])["success"], true);
}

/// An agent that exits at once, and a tool that does not.
#[test]
fn r42_a_tool_that_outlives_its_agent_is_ended_before_the_run_is_over() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    for (n, last) in ["exit 1", "signal KILL"].into_iter().enumerate() {
        let child = format!("stubborn-{n}");
        let run = world.prompt(&id, &format!("c{n}"), &[&format!("child-stubborn {}", world.file(&child)), last]);
        world.complete(&id, &run);
        assert!(has_ended(world.pid_in(&child)), "{last}");
    }
}

/// A closed standard input must not keep the session process busy, and the next prompt gets a new program.
#[test]
fn r33_an_agent_that_closes_its_pipes_is_replaced() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    world.run_prompt(&id, "a", &["close-stdin", "say deaf"]);
    let before = world.ticks(&id);
    assert_eq!(world.run_prompt(&id, "b", &["say again"])["success"], true);
    let used = world.ticks(&id) - before;
    assert!(used < 100, "the session process used {used} ticks while it waited");
}

/// A follower learns of a queued prompt and of an abort at once, not with the next words of the agent.
#[test]
fn r46_a_command_is_seen_although_the_agent_is_silent() {
    let world = world();
    let id = world.agent();
    let epoch = world.describe(&id)["epoch"].as_str().unwrap().to_owned();
    let mut sse = super::stream::Sse::open(&world, &format!("watch={id}@{epoch}:0"), None);
    let mut received = super::stream::Received::default();
    let run = world.hold(&id, "a", &["ignore-cancel"]);
    let queued = world.prompt(&id, "b", &["say next"]);
    let mut see = |kind: &str, run: &str| {
        super::stream::read_until(
            || Some(sse.next()?.0),
            &mut received,
            kind,
            |event| event["type"] == kind && event["run"] == run,
        );
    };
    see("prompt", &queued);
    assert_eq!(world.describe(&id)["queued"], 1);
    world.abort(&id, "x", &run);
    see("abort_requested", &run);
}

#[test]
fn r33_ending_a_session_interrupts_its_runs_and_records_its_exit() {
    let world = world();
    let id = world.agent();
    let child = world.file("child");
    let run = world.hold(&id, "a", &["ignore-cancel", &format!("child {child}")]);
    let child = world.pid_in("child");
    let queued = world.prompt(&id, "b", &["say no"]);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    let (first, second) = (world.complete(&id, &run), world.complete(&id, &queued));
    assert_eq!((&first["interrupted"], &first["started"]), (&json!(true), &json!(true)));
    assert_eq!((&second["interrupted"], &second["started"]), (&json!(true), &json!(false)));
    assert!(!is_running(child), "nothing that the agent started is left");
    let journal = world.journal(&id);
    assert_eq!(journal.last().unwrap()["event"]["type"], "exit");
    assert_each_run_ends_once(&journal);
    let described = world.describe(&id);
    assert_eq!(
        (&described["state"], &described["activity"], &described["exit"]["code"]),
        (&json!("exited"), &Value::Null, &json!(0))
    );
}
