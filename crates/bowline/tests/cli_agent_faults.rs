//! `bowline agent` when something goes wrong: aborts, killed gateways and session processes, lost connections.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use support::{Gateway, Running, World, here_and_there, wait_until};

fn is_alive(file: &Path) -> bool {
    let pid = std::fs::read_to_string(file).unwrap();
    test_kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap()).is_ok()
}

/// Runs `bowline agent fake` with a prompt that creates the file `working`, then waits for `go`, and then goes on with
/// `rest`. Returns once the agent waits.
fn working(server: &World, client: &World, flags: &[&str], before: &str, rest: &str) -> Running {
    let (cwd, path) = (server.path().to_str().unwrap(), server.path().display());
    let prompt = format!("{before}\ntouch {path}/working\nwait {path}/go\n{rest}");
    let args = [&["agent", "fake", "--name", "dev", "--cwd", cwd], flags, &[prompt.as_str()]].concat();
    let running = client.spawn(&args);
    let file = server.path().join("working");
    wait_until("the agent works", || file.exists());
    running
}

fn completes(server: &World) -> Vec<Value> {
    let events = server.journal("dev").into_iter().map(|record| record["event"].clone());
    events.filter(|event| event["type"] == "complete").collect()
}

#[test]
fn r42_an_interrupt_aborts_the_run_and_the_session_goes_on() {
    here_and_there(|server, client| {
        let child = server.path().join("child");
        let running = working(server, client, &[], &format!("say begun\nchild {}", child.display()), "say never");
        running.wait_for_out("begun");
        running.signal(Signal::INT);
        let (code, out, err) = running.finish();
        assert_eq!((code, out.as_str()), (Some(1), "begun\n"), "{err}");
        assert!(err.contains("[aborting the run; Ctrl-C again leaves") && err.contains("the run was aborted"), "{err}");
        assert_eq!(completes(server)[0]["aborted"], true);
        assert_eq!(server.info("dev", "state"), "running");
        wait_until("no tool survives the abort", || !is_alive(&child));
    });
}

#[test]
fn r33_a_second_interrupt_leaves_at_once_and_another_signal_leaves_the_run_alone() {
    here_and_there(|server, client| {
        let mut running = working(server, client, &[], "ignore-cancel", "say still here");
        running.wait_for_err("continues the conversation");
        running.signal(Signal::INT);
        running.wait_for_err("aborting the run");
        // One of them comes within a second of the one before, however busy this machine is.
        running.signal_until_it_ends(Signal::INT);
        let (code, _, err) = running.finish();
        assert_eq!(code, Some(130), "{err}");
    });
    here_and_there(|server, client| {
        let running = working(server, client, &[], "", "say still here");
        running.wait_for_err("continues the conversation");
        running.signal(Signal::TERM);
        assert_eq!(running.finish().0, Some(143));
        std::fs::write(server.path().join("go"), "").unwrap();
        server.wait_for_end("dev", "r0");
        assert!(server.ok(&["log", "dev"]).contains("\nstill here\n"));
    });
}

#[test]
fn r36_an_approval_is_announced_and_the_run_waits_for_it() {
    here_and_there(|server, client| {
        let cwd = server.path().to_str().unwrap();
        for json in [&[][..], &["--json"]] {
            let args = [&["agent", "fake", "--cwd", cwd, "--name", "dev"], json, &["ask t1 rm -r build"]].concat();
            let running = client.spawn(&args);
            running.wait_for_err("[dev/a0 needs an answer: rm -r build; `bowline ");
            let told = running.err();
            assert!(told.contains("approve dev/a0`") && told.contains("deny dev/a0`"), "{told}");
            server.ok(&["approve", "dev/a0"]);
            let (code, out, err) = running.finish();
            assert_eq!(code, Some(0), "{err}");
            assert!(out.contains("t1: once"), "{out}");
            server.ok(&["kill", "dev"]);
        }
    });
}

#[test]
fn r36_what_is_said_about_a_run_does_not_change_the_text_that_is_piped() {
    here_and_there(|server, client| {
        let cwd = server.path().to_str().unwrap();
        let prompt = "say begun,\nquestion q1 Which?\ntool-start t1 Build\ntool-end t1\ntool-end t1";
        let running = client.spawn(&["agent", "fake", "--cwd", cwd, "--name", "dev", prompt]);
        running.wait_for_err("[dev/a0 needs an answer: Which?");
        server.ok(&["approve", "dev/a0", "--answer", "1=Red"]);
        let (code, out, err) = running.finish();
        assert_eq!(code, Some(0), "{err}");
        assert!(out.starts_with("begun,q1: {") && out.lines().count() == 1, "{out}");
        assert_eq!(err.matches("Build").count(), 1, "{err}");
    });
}

/// The follower resumes after the event that it printed last, whatever became of the gateway meanwhile.
#[test]
fn r40_a_gateway_that_is_restarted_in_the_middle_loses_and_repeats_nothing() {
    let server = World::with_agents();
    let mut gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("laptop", "write"));
    let path = server.path().display().to_string();
    let steps: String = (0..3).map(|n| format!("say step {n}.\\n\ntouch {path}/at{n}\nwait {path}/go{n}\n")).collect();
    let running = laptop.spawn(&["agent", "fake", "--name", "dev", "--cwd", &path, &format!("{steps}say end")]);
    for n in 0..3 {
        running.wait_for_out(&format!("step {n}."));
        gateway.kill();
        // The agent goes on while no client is connected.
        std::fs::write(server.path().join(format!("go{n}")), "").unwrap();
        wait_until("the agent went on", || n == 2 || server.path().join(format!("at{}", n + 1)).exists());
        gateway.restart();
    }
    let (code, out, err) = running.finish();
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, "step 0.\nstep 1.\nstep 2.\nend\n");
    assert_eq!(err.matches("[the connection was lost; trying again]").count(), 3, "{err}");
    assert_eq!(err.matches("[connected again; nothing is missing]").count(), 3, "{err}");
}

#[test]
fn r33_a_gateway_that_stays_away_is_reported_and_the_run_goes_on() {
    let server = World::with_agents();
    let mut gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("laptop", "write"));
    laptop.configure("reconnect_tries = 1\n");
    let running = working(&server, &laptop, &[], "say begun", "say end");
    running.wait_for_out("begun");
    gateway.kill();
    let (code, _, err) = running.finish();
    assert_eq!(code, Some(6), "{err}");
    assert!(err.contains("any more; dev goes on") && err.contains("log dev` prints the conversation"), "{err}");
    assert_eq!(server.info("dev", "state"), "running");
}

#[test]
fn r33_an_abort_without_a_gateway_blocks_nothing_and_is_delivered_later() {
    let server = World::with_agents();
    let mut gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("laptop", "write"));
    let start = || {
        let running = working(&server, &laptop, &[], "say begun", "say never");
        running.wait_for_out("begun");
        running
    };
    let running = start();
    gateway.kill();
    running.signal(Signal::INT);
    running.wait_for_err("[not aborted yet (");
    gateway.restart();
    let (code, out, err) = running.finish();
    assert_eq!((code, out.as_str()), (Some(1), "begun\n"), "{err}");
    assert!(err.contains("the run was aborted"), "{err}");

    server.ok(&["kill", "dev"]);
    std::fs::remove_file(server.path().join("working")).unwrap();
    let running = start();
    gateway.kill();
    running.signal(Signal::INT);
    running.wait_for_err("[not aborted yet (");
    running.signal(Signal::TERM);
    let (code, _, err) = running.finish();
    assert_eq!(code, Some(143), "it does not wait for the gateway: {err}");
    assert!(err.contains("[the abort was not delivered; Ctrl-C in `bowline --server "), "{err}");
}

/// Without a gateway, nothing else repairs the session, so the follower has to: the run would never end otherwise.
#[test]
fn r33_a_session_process_that_is_killed_in_the_middle_ends_the_run() {
    here_and_there(|server, client| {
        let pid = server.path().join("pid");
        let running = working(server, client, &[], &format!("say begun\npid {}", pid.display()), "say never");
        running.wait_for_out("begun");
        let id = server.info("dev", "id").as_str().unwrap().to_owned();
        kill_process(server.process_of(&id), Signal::KILL).unwrap();
        let (code, out, err) = running.finish();
        assert_eq!((code, out.as_str()), (Some(1), "begun\n"), "{err}");
        assert!(err.contains("the run was interrupted: "), "{err}");
        assert!(!err.contains("connection was lost") || client.path() != server.path(), "{err}");
        let completes = completes(server);
        assert_eq!((completes.len(), &completes[0]["interrupted"]), (1, &Value::Bool(true)));
        wait_until("the agent does not outlive its session", || !is_alive(&pid));
        assert_eq!(server.info("dev", "state"), "lost");
        let lost = client.run(&["send", "dev", "say more"]);
        assert!(String::from_utf8_lossy(&lost.stderr).contains("dev is not running (lost)"));
    });
}

#[test]
fn r33_a_session_that_is_ended_in_the_middle_ends_the_run() {
    here_and_there(|server, client| {
        let running = working(server, client, &["--json"], "", "say never");
        server.ok(&["kill", "dev", "--keep"]);
        let (code, out, err) = running.finish();
        assert_eq!(code, Some(1), "{err}");
        let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!((&last["event"]["type"], &last["event"]["interrupted"]), (&"complete".into(), &true.into()));
    });
}

#[test]
fn r40_a_flood_is_printed_whole() {
    here_and_there(|server, client| {
        let cwd = server.path().to_str().unwrap();
        let (code, out, err) = client.spawn(&["agent", "fake", "--cwd", cwd, "flood 3000000\nsay \\nend"]).finish();
        assert_eq!(code, Some(0), "{err}");
        assert!(out.ends_with("\nend\n") && out.len() > 3_000_000, "{}", out.len());
    });
}
