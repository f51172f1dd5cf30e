//! The limits of a conversation: deadlines of approvals, the size of a transcript, and how long conversations are kept.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime};

use bowline_host::control::{encode_request, parse_reply, take_text};
use bowline_host::timestamp::timestamp;
use bowline_proto::control::Request;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::gateway::{World, signal};
use super::{
    assert_each_approval_has_one_outcome, assert_each_run_ends_once, configured_world, until, world, world_with,
};

fn replace_in_config(world: &World, old: &str, new: &str) {
    let path = world.path().join("config.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    assert!(before.contains(old), "{before}");
    std::fs::write(path, before.replace(old, new)).unwrap();
}

#[test]
fn r36_an_approval_that_nobody_answers_is_denied_at_its_deadline() {
    let world = configured_world("approval_deadline = \"1s\"", &[]);
    let id = world.agent();
    let run = world.prompt(&id, "a", &["ask t1 deploy", "say went on"]);
    assert_eq!(world.complete(&id, &run)["success"], true, "the run goes on");
    assert_eq!(world.said(&id, &run), "t1: reject\nwent on", "the agent is told that it is denied");
    let requested = &world.events_of(&id, "approval_requested")[0]["approval"];
    let (at, expires_at) = (requested["at"].as_str().unwrap(), requested["expires_at"].as_str().unwrap());
    assert!(at < expires_at, "{requested}");
    let resolved = &world.events_of(&id, "approval_resolved")[0];
    assert_eq!((&resolved["outcome"], &resolved["by"]), (&json!("expired"), &Value::Null));
    let late = world.answer(&id, "yes", json!({"type": "approve"}), requested);
    assert_eq!((late.status, late.code(), &late.json()["outcome"]), (409, "already_answered", &json!("expired")));
    assert_each_approval_has_one_outcome(&world.journal(&id));
}

/// The answer is in the socket when the process goes on, so both are due at the same time.
#[test]
fn r36_a_session_that_was_stopped_at_the_deadline_refuses_a_late_answer() {
    let world = configured_world("approval_deadline = \"2s\"", &[]);
    let id = world.agent();
    let mut socket = UnixStream::connect(world.session_dir(&id).join("sock")).unwrap();
    send(&mut socket, &Request::Status { follow: false, brief: false });
    read_reply(&mut socket); // now the process has accepted the connection
    let run = world.prompt(&id, "a", &["ask t1 deploy"]);
    let approval = world.approvals(&id, 1).remove(0);
    let pid = world.session_pid(&id);
    signal(pid, Signal::STOP);
    let expires_at = approval["expires_at"].as_str().unwrap();
    until("the deadline has passed", || timestamp().as_str() > expires_at);
    let command = json!({"type": "approve", "approval": approval["id"]});
    send(&mut socket, &Request::Command { id: "late".into(), command, by: Some("phone".into()) });
    signal(pid, Signal::CONT);
    let reply = read_reply(&mut socket);
    assert!(parse_reply(&reply).is_err() && reply.contains("expired"), "{reply}");
    world.complete(&id, &run);
    assert_eq!(world.said(&id, &run), "t1: reject\n");
}

fn send(socket: &mut UnixStream, request: &Request) {
    socket.write_all(&encode_request(request).unwrap()).unwrap();
}

fn read_reply(socket: &mut UnixStream) -> String {
    let mut received = Vec::new();
    loop {
        if let Some(text) = take_text(&mut received).unwrap() {
            return text;
        }
        let mut chunk = [0; 4096];
        let read = socket.read(&mut chunk).unwrap();
        assert_ne!(read, 0, "the session process closed the connection");
        received.extend_from_slice(&chunk[..read]);
    }
}

#[test]
fn r36_without_a_deadline_an_approval_has_none() {
    let world = world();
    let id = world.agent();
    world.prompt(&id, "a", &["ask t1 deploy"]);
    assert_eq!(world.approvals(&id, 1)[0].get("expires_at"), None);
}

#[test]
fn r52_a_transcript_past_the_configured_size_takes_no_prompts_until_it_is_raised() {
    let state = [("FAKE_AGENT_STATE", "conversations")];
    let mut world = configured_world("transcript_size = \"1M\"", &state);
    let id = world.agent();
    assert_eq!(world.run_prompt(&id, "a", &["flood 2000000", "say done"])["success"], true);
    let refused = world.command(&id, "b", &json!({"type": "prompt", "text": "say no"}));
    assert_eq!((refused.status, refused.code()), (507, "no_space"), "{}", refused.text());
    assert!(refused.text().contains("more than 1 MiB") && refused.text().contains("transcript_size"));
    assert_eq!(world.command(&id, "a", &json!({"type": "prompt", "text": "flood 2000000\nsay done"})).status, 200);
    replace_in_config(&world, "\"1M\"", "\"8M\"");
    world.kill_gateway();
    world.start_gateway();
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    assert_eq!(world.run_prompt(&id, "b", &["say yes"])["success"], true, "the refused id was not used up");
    assert_each_run_ends_once(&world.journal(&id));
}

#[test]
fn r60_conversations_are_kept_unless_the_configuration_says_otherwise() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let [ended, lost, running] = [(), (), ()].map(|()| world.agent());
    world.run_prompt(&lost, "a", &["say hi"]);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{ended}?keep=true"), &Value::Null).status, 204);
    signal(world.session_pid(&lost), Signal::KILL);
    until("it is lost", || world.describe(&lost)["state"] == "lost");
    let year = Duration::from_secs(365 * 24 * 3600);
    let age = |id: &str| {
        let events = std::fs::File::open(world.session_dir(id).join("events.jsonl")).unwrap();
        events.set_modified(SystemTime::now() - year).unwrap();
    };
    [&ended, &lost, &running].into_iter().for_each(|id| age(id));
    let prune = |args: &[&str]| -> Value {
        let output = world.run(&[&["prune", "--json"], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(prune(&["--older", "0s", "--total-size", "0"])["pruned"], json!([]));
    assert_eq!(prune(&["--older", "366d", "--conversations"])["pruned"], json!([]));
    let mut expected = [ended.clone(), lost.clone()];
    expected.sort();
    let ids = |pruned: Value| {
        let mut ids: Vec<String> = serde_json::from_value(pruned["pruned"].clone()).unwrap();
        ids.sort();
        ids
    };
    assert_eq!(ids(prune(&["--older", "364d", "--conversations", "--dry-run"])), expected);
    replace_in_config(&world, "[gateway.limits]", "[retention]\nconversations = \"364d\"\n[gateway.limits]");
    assert_eq!(ids(prune(&[])), expected);
    let left = [&ended, &lost, &running].map(|id| world.session_dir(id).exists());
    assert_eq!(left, [false, false, true]);
}
