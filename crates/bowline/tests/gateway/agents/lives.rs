//! Restarts and crashes: the conversation goes on, and what was open is ended once.

use serde_json::{Value, json};

use rustix::process::Signal;

use super::super::gateway::{World, signal};
use super::{assert_contiguous, assert_each_run_ends_once, until, world, world_with};

#[test]
fn r32_a_restarted_session_continues_its_conversation() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations"), ("FAKE_AGENT_LOG", "received")]);
    let id = world.agent();
    let first = world.run_prompt(&id, "a", &["say one"]);
    let before = world.describe(&id);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    let restarted = world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({}));
    assert_eq!(restarted.status, 200, "{}", restarted.text());
    assert_ne!(restarted.json()["epoch"], before["epoch"]);
    let second = world.run_prompt(&id, "b", &["say two"]);
    assert_eq!((&second["success"], &second["conversation"]), (&json!(true), &first["conversation"]));
    let received = std::fs::read_to_string(world.file("received")).unwrap();
    assert_eq!((received.matches("session/new").count(), received.matches("session/load").count()), (1, 1));
    assert_eq!(world.events_of(&id, "conversation").len(), 1);
    let texts = world.events_of(&id, "text");
    assert_eq!(texts.len(), 2, "what the agent replays is not recorded again: {texts:?}");
    assert_contiguous(&world.journal(&id));
    let again = world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({}));
    assert_eq!(
        (again.status, &again.json()["epoch"]),
        (200, &restarted.json()["epoch"]),
        "a running session is left alone"
    );
}

/// What the configuration says counts when a session is restarted, not what it said when the session was made.
#[test]
fn r43_a_restart_reads_the_table_again() {
    let mut world = world_with(&[("FROM_TABLE", "old")]);
    let config = std::fs::read_to_string(world.path().join("config.toml")).unwrap();
    let set = |world: &mut World, env: &str, more: &str| {
        let changed = config.replace("FROM_TABLE = \"old\"", env);
        let changed = changed.replace("[agents.missing]", &format!("{more}\n[agents.missing]"));
        std::fs::write(world.path().join("config.toml"), changed).unwrap();
        world.kill_gateway();
        world.start_gateway();
    };
    set(&mut world, "FROM_TABLE = \"old\"", "allow_bypass = true");
    let id = world.new_agent(&json!({"mode": "yolo"})).json()["id"].as_str().unwrap().to_owned();
    world.run_prompt(&id, "a", &["echo-env FROM_TABLE"]);
    assert_eq!(world.said(&id, "r0"), "FROM_TABLE=old\n");
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    set(&mut world, "", "");
    let refused = world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({}));
    assert_eq!((refused.status, refused.code()), (422, "not_allowed_mode"));
    set(&mut world, "", "allow_bypass = true");
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    // The conversation is not stored, but the agent ended a run in it: it is not replaced without a word.
    let end = world.run_prompt(&id, "b", &["echo-env FROM_TABLE"]);
    assert_eq!(end["error"]["code"], "unknown_conversation");
    let meta: Value =
        serde_json::from_slice(&std::fs::read(world.session_dir(&id).join("meta.json")).unwrap()).unwrap();
    assert_eq!(meta["table_env"], json!([]), "a variable that left the table is gone");
}

/// A conversation without a run is not stored by agents.
#[test]
fn r32_a_session_that_was_never_prompted_can_be_restarted() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    until("the agent has named the conversation", || !world.events_of(&id, "conversation").is_empty());
    std::fs::remove_dir_all(world.file("conversations")).ok();
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    assert_eq!(world.run_prompt(&id, "a", &["say hi"])["success"], true);
}

#[test]
fn r32_a_conversation_of_another_session_is_resumed() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let first = world.agent();
    let conversation = world.run_prompt(&first, "a", &["say one"])["conversation"].clone();
    let second = world.new_agent(&json!({"resume": conversation})).json();
    let second = second["id"].as_str().unwrap();
    let end = world.run_prompt(second, "a", &["say two"]);
    assert_eq!((&end["success"], &end["conversation"]), (&json!(true), &conversation));
    assert_eq!(world.describe(second)["conversation"], conversation);
    let third = world.new_agent(&json!({"resume": conversation})).json();
    let third = third["id"].as_str().unwrap();
    until("the conversation is loaded", || world.describe(third)["conversation"] == conversation);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{third}?keep=true"), &Value::Null).status, 204);
    assert_eq!(world.call("POST", &format!("/v1/sessions/{third}/restart"), &json!({})).status, 200);
    assert_eq!(world.run_prompt(third, "a", &["say three"])["conversation"], conversation, "also before its first run");
    let unknown = world.new_agent(&json!({"resume": "never-heard-of"})).json();
    let unknown = unknown["id"].as_str().unwrap();
    let end = world.run_prompt(unknown, "a", &["say hi"]);
    assert_eq!((&end["started"], &end["error"]["code"]), (&json!(false), &json!("unknown_conversation")));
}

/// The session process is killed in the middle of a run. Its next life says so, once.
#[test]
fn r33_a_run_is_interrupted_when_its_session_process_is_killed() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    world.run_prompt(&id, "a", &["say before"]);
    let reached = world.file("reached");
    let run =
        world.prompt(&id, "b", &["say half", &format!("touch {reached}"), &format!("wait {}", world.file("never"))]);
    let queued = world.prompt(&id, "c", &["say never"]);
    until("the run is in the agent", || std::path::Path::new(&reached).exists());
    signal(world.session_pid(&id), Signal::KILL);
    until("the session is lost", || world.describe(&id)["state"] == "lost");
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    let (first, second) = (world.complete(&id, &run), world.complete(&id, &queued));
    assert_eq!((&first["interrupted"], &first["started"]), (&json!(true), &json!(true)));
    assert_eq!((&second["interrupted"], &second["started"]), (&json!(true), &json!(false)), "safe to send again");
    assert_eq!(world.run_prompt(&id, "d", &["say after"])["success"], true);
    let journal = world.journal(&id);
    assert_contiguous(&journal);
    assert_each_run_ends_once(&journal);
}

/// Also an agent that waits for a prompt must not meet a second one in its conversation.
#[test]
fn r42_an_idle_agent_that_outlives_its_session_process_is_ended() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    let file = world.file("pid");
    world.run_prompt(&id, "a", &["ignore-term", &format!("pid {file}")]);
    let agent: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    signal(world.session_pid(&id), Signal::KILL);
    until("the agent has ended", || {
        world.describe(&id);
        super::aborts::has_ended(agent)
    });
    assert_eq!(world.describe(&id)["state"], "lost");
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    assert_eq!(world.run_prompt(&id, "b", &["say back"])["success"], true);
}

/// The agent's program does not notice the gateway's end, and neither does the run.
#[test]
fn r33_a_run_goes_on_while_the_gateway_is_killed_and_restarted() {
    let mut world = world();
    let id = world.agent();
    let (reached, go) = (world.file("reached"), world.file("go"));
    let run = world.prompt(&id, "a", &[&format!("touch {reached}"), &format!("wait {go}"), "say survived"]);
    until("the run is in the agent", || std::path::Path::new(&reached).exists());
    world.kill_gateway();
    std::fs::write(&go, "").unwrap();
    assert_eq!(world.complete(&id, &run)["success"], true);
    world.start_gateway();
    assert_eq!(world.describe(&id)["activity"], Value::Null);
    assert_eq!(world.command(&id, "a", &json!({"type": "prompt", "text": "other"})).code(), "id_reused");
}

/// A line that a crash cut off is removed, and a new epoch begins before its number is used again.
#[test]
fn r40_a_torn_journal_is_repaired_with_a_new_epoch() {
    let world = world();
    let id = world.agent();
    world.run_prompt(&id, "a", &["say hi"]);
    signal(world.session_pid(&id), Signal::KILL);
    until("the session is lost", || world.describe(&id)["state"] == "lost");
    let path = world.session_dir(&id).join("events.jsonl");
    let whole = world.journal(&id).len();
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(br#"{"seq":99,"at":"2026"#);
    std::fs::write(&path, text).unwrap();
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    let journal = world.journal(&id);
    assert_contiguous(&journal);
    let kinds: Vec<&Value> = journal[whole..].iter().map(|record| &record["event"]["type"]).take(2).collect();
    assert_eq!(kinds, ["repaired", "started"]);
}
