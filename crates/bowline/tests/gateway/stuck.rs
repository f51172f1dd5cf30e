//! Sessions that do not end or answer: hundreds of calls that wait for one, and hang up, delay no other call.

use std::io::Write;
use std::net::TcpStream;

use bowline_host::lock::Lock;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::gateway::{World, signal, wait_until};
use super::refusals::check_problem;

/// Together, more calls than the 512 threads that the gateway's runtime may start.
const ROUNDS: usize = 9;
const CALLS: usize = 60;
/// The gateway needs fewer threads than this, whatever waits.
const MAX_THREADS: usize = 300;

/// Makes the same call many times, and hangs up once the gateway has begun to work on it.
fn call_and_hang_up(world: &World, method: &str, path: &str, body: &Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        world.address,
        world.bearer(),
        body.len()
    );
    for _ in 0..ROUNDS {
        let connect = || {
            let mut stream = TcpStream::connect(world.address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        let calls: Vec<TcpStream> = (0..CALLS).map(|_| connect()).collect();
        // Sockets are accepted in order, so this call comes after them.
        assert_eq!(world.call("GET", "/v1/sessions/none", &Value::Null).status, 404);
        drop(calls);
    }
}

/// Checks that calls for other sessions are answered, and that the calls before them did not keep threads.
#[track_caller]
fn check_others(world: &World, other: &str) {
    assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).status, 200);
    assert_eq!(world.call("GET", &format!("/v1/sessions/{other}/screen"), &Value::Null).status, 200);
    let new = world.shell("exec cat");
    assert_eq!(world.call("PATCH", &format!("/v1/sessions/{new}"), &json!({"name": "renamed"})).status, 200);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{new}?grace=0"), &Value::Null).status, 204);
    let threads = std::fs::read_dir(format!("/proc/{}/task", world.gateway_pid())).unwrap().count();
    assert!(threads < MAX_THREADS, "the gateway has {threads} threads");
}

/// A session called `name` that ignores SIGHUP.
fn ignoring_hangup(world: &World, name: &str) -> String {
    let script = "trap '' HUP; echo ready; exec cat";
    let body = json!({"kind": "terminal", "name": name, "argv": ["sh", "-c", script]});
    let made = world.call("POST", "/v1/sessions", &body);
    assert_eq!(made.status, 201, "{}", made.text());
    wait_until("the program ignores SIGHUP", || world.ok(&["screen", name]).contains("ready").then_some(()));
    made.json()["id"].as_str().unwrap().to_owned()
}

#[test]
fn r52_ends_that_hang_up_do_not_keep_threads() {
    let world = World::new();
    let other = world.shell("exec cat");
    let id = ignoring_hangup(&world, "stays");
    call_and_hang_up(&world, "DELETE", &format!("/v1/sessions/{id}?grace=300"), &Value::Null);
    check_others(&world, &other);
    let ended = world.call("DELETE", &format!("/v1/sessions/{id}?grace=0"), &Value::Null);
    assert_eq!(ended.status, 204, "a later end shortens the grace: {}", ended.text());
    assert!(!world.session_dir(&id).exists());
}

#[test]
fn r31_a_session_is_forgotten_even_if_the_client_hangs_up() {
    let world = World::new();
    let id = ignoring_hangup(&world, "stays");
    call_and_hang_up(&world, "DELETE", &format!("/v1/sessions/{id}?grace=1"), &Value::Null);
    wait_until("the session is forgotten", || (!world.session_dir(&id).exists()).then_some(()));
}

#[test]
fn r52_renames_of_a_stopped_session_do_not_keep_threads() {
    let world = World::new();
    let other = world.shell("exec cat");
    let id = world.shell("exec cat");
    signal(world.session_pid(&id), Signal::STOP);
    call_and_hang_up(&world, "PATCH", &format!("/v1/sessions/{id}"), &json!({"name": "new"}));
    check_others(&world, &other);
    let refused = world.call("PATCH", &format!("/v1/sessions/{id}"), &json!({"name": "newer"}));
    check_problem(&refused, 503, "unreachable");
    assert!(refused.header("retry-after").is_some());
    signal(world.session_pid(&id), Signal::CONT);
    let renamed = world.call("PATCH", &format!("/v1/sessions/{id}"), &json!({"name": "newest"}));
    assert_eq!(renamed.status, 200, "{}", renamed.text());
}

#[test]
fn r52_restarts_that_wait_do_not_keep_threads() {
    let world = World::new();
    let other = world.shell("exec cat");
    let id = world.shell("exit 3");
    // Its process seems to be running: its lock is held, but nothing answers.
    let lock = wait_until("the session has ended", || Lock::take(&world.session_dir(&id).join("lock")).unwrap());
    call_and_hang_up(&world, "POST", &format!("/v1/sessions/{id}/restart"), &Value::Null);
    check_others(&world, &other);
    drop(lock);
    let restarted = world.call("POST", &format!("/v1/sessions/{id}/restart"), &Value::Null);
    assert_eq!(restarted.status, 200, "{}", restarted.text());
}

#[test]
fn r52_starts_that_replace_a_stopped_session_do_not_keep_threads() {
    let world = World::new();
    let other = world.shell("exec cat");
    let id = ignoring_hangup(&world, "build");
    signal(world.session_pid(&id), Signal::STOP);
    let body = json!({"kind": "terminal", "name": "build", "argv": ["cat"], "if_exists": "restart"});
    call_and_hang_up(&world, "POST", "/v1/sessions", &body);
    check_others(&world, &other);
    let refused = world.call("POST", "/v1/sessions", &body);
    check_problem(&refused, 503, "unreachable");
    assert!(refused.header("retry-after").is_some());
    signal(world.session_pid(&id), Signal::CONT);
    let replaced = world.call("POST", "/v1/sessions", &body);
    assert_eq!(replaced.status, 201, "{}", replaced.text());
}

#[test]
fn r46_lists_wait_once_for_a_session_that_hangs() {
    let world = World::new();
    let id = world.shell("exec cat");
    let pid = world.session_pid(&id);
    signal(pid, Signal::STOP);
    // A stopped process accepts no connection, so each one that was made since stays in its queue.
    let address = std::fs::canonicalize(world.session_dir(&id).join("sock")).unwrap();
    let queued = || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        sockets.lines().filter(|line| line.ends_with(address.to_str().unwrap())).count()
    };
    let before = queued();
    for _ in 0..10 {
        let list = world.call("GET", "/v1/sessions", &Value::Null).json();
        assert_eq!(list["sessions"][0]["state"], "running", "{list}");
    }
    let made = queued() - before;
    assert!((1..=3).contains(&made), "ten lists made {made} connections to the session");
    signal(pid, Signal::CONT);
    let title = "\x1b]2;awake\x07";
    world.ok(&["send", &id, title, "--enter"]);
    wait_until("the list waits for the process again", || {
        let list = world.call("GET", "/v1/sessions", &Value::Null).json();
        (list["sessions"][0]["title"] == "awake").then_some(())
    });
}
