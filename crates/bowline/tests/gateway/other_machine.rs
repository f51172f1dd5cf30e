//! Sessions of another machine in a shared home directory: they are listed but cannot be changed.

use std::io::Write;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::gateway::{World, signal, wait_until};
use super::refusals::{check_problem, origin};
use super::viewer::contains;
use super::ws::Handshake;

#[test]
fn r21_a_session_of_another_machine_is_listed_and_cannot_be_changed() {
    let world = World::new();
    let id = world.shell("echo far away; exec cat");
    let dir = world.session_dir(&id);
    let has_screen = || std::fs::read(dir.join("screen")).is_ok_and(|screen| contains(&screen, "far away"));
    wait_until("the screen is saved", || has_screen().then_some(()));
    // From here, this machine cannot know whether the process is running.
    let pid = world.session_pid(&id);
    signal(pid, Signal::KILL);
    wait_until("it has ended", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    let mut meta: Value = serde_json::from_slice(&std::fs::read(dir.join("meta.json")).unwrap()).unwrap();
    meta["host"] = json!("far-away");
    std::fs::write(dir.join("meta.json"), meta.to_string()).unwrap();

    let path = format!("/v1/sessions/{id}");
    let shown = world.call("GET", &path, &Value::Null).json();
    assert_eq!((&shown["state"], &shown["host"]), (&json!("running"), &json!("far-away")));
    assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).json()["sessions"][0]["host"], "far-away");
    assert!(world.ok(&["ls"]).contains("on far-away"));
    assert!(world.call("GET", &format!("{path}/screen"), &Value::Null).text().contains("far away"));
    assert!(world.call("GET", &format!("{path}/log"), &Value::Null).text().contains("far away"));

    check_refusals(&world, &path);
    let Handshake::Refused(refused) = world.attach(&id, &[]) else { panic!("the attach was accepted") };
    check_problem(&refused, 403, "not_allowed");
    let (code, _) = world.attach(&id, &[("Origin", &origin(world.address))]).open().until_close();
    assert_eq!(code, 4403);

    // The same holds once it has exited.
    let mut events = std::fs::OpenOptions::new().append(true).open(dir.join("events.jsonl")).unwrap();
    let last = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    let seq = last["seq"].as_u64().unwrap() + 1;
    let event = json!({"type": "exit", "code": 0, "signal": null, "offset": 10});
    writeln!(events, "{}", json!({"seq": seq, "at": last["at"], "event": event})).unwrap();
    assert_eq!(world.call("GET", &path, &Value::Null).json()["state"], "exited");
    check_refusals(&world, &path);
}

/// Checks that no call can change the session at `path`, which belongs to the machine "far-away", or list the files there.
fn check_refusals(world: &World, path: &str) {
    let command = json!({"id": "c", "command": {"type": "input", "text": "x"}});
    for (method, path, body) in [
        ("POST", format!("{path}/commands"), command),
        ("PATCH", path.to_owned(), json!({"detached_ttl": 5})),
        ("PATCH", path.to_owned(), json!({"name": "mine"})),
        ("PATCH", path.to_owned(), json!({"name": "mine", "detached_ttl": 5})),
        ("DELETE", path.to_owned(), Value::Null),
        ("POST", format!("{path}/restart"), Value::Null),
        ("GET", format!("{path}/files?q=x"), Value::Null),
    ] {
        let refused = world.call(method, &path, &body);
        check_problem(&refused, 403, "not_allowed");
        assert!(refused.text().contains("far-away"), "{}", refused.text());
    }
}
