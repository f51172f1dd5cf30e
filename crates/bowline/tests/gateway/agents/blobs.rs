//! Large output of tools: the event has its beginning and its end, the blob has everything.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::gateway::{World, signal};
use super::super::http::Response;
use super::{assert_contiguous, assert_each_run_ends_once, until, world, world_with};

/// The output of the fake agent's `tool-lines`.
fn lines(count: usize) -> String {
    (0..count).map(|n| format!("{n} caf\u{e9}\n")).collect()
}

impl World {
    /// The events that have a blob, with their numbers.
    fn with_blob(&self, session: &str) -> Vec<(u64, Value)> {
        let records = self.journal(session).into_iter();
        let records = records.filter(|record| record["event"]["blob"].is_object());
        records.map(|mut record| (record["seq"].as_u64().unwrap(), record["event"].take())).collect()
    }

    fn blob(&self, session: &str, seq: impl std::fmt::Display) -> Response {
        self.call("GET", &format!("/v1/sessions/{session}/blobs/{seq}"), &Value::Null)
    }

    /// The session has this one blob, which is served whole.
    #[track_caller]
    fn assert_blob(&self, session: &str, output: &str) {
        let found = self.with_blob(session);
        assert_eq!(found.len(), 1, "{found:?}");
        let (seq, event) = &found[0];
        assert_eq!(event["blob"], json!({"seq": seq, "bytes": output.len()}));
        let answer = self.blob(session, seq);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text() == output, "{} bytes of {}", answer.text().len(), output.len());
    }
}

/// The line of the agent is far longer than what is parsed as any JSON.
#[test]
fn r40_long_output_is_whole_in_its_blob_whatever_ends() {
    let mut world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let (long, killed) = (lines(300_000), world.agent());
    let id = world.agent();
    assert!(long.len() > 3 << 20);
    for session in [&id, &killed] {
        let end = world.run_prompt(session, "a", &["tool-lines 300000 print", "tool-lines 10 few", "say done"]);
        assert_eq!(end["success"], true, "{end}");
        world.assert_blob(session, &long);
    }
    let (seq, event) = world.with_blob(&id).remove(0);
    assert_eq!(
        (&event["type"], &event["status"], &event["truncated"]),
        (&json!("tool_update"), &json!("completed"), &json!(true))
    );
    let shown = event["content"][0]["content"]["text"].as_str().unwrap();
    assert!(shown.starts_with("0 caf\u{e9}\n1 caf\u{e9}\n") && shown.ends_with("299999 caf\u{e9}\n"));
    assert!(shown.len() < 33 << 10 && shown.contains("bytes left out"));
    let few = world.events_of(&id, "tool_update").pop().unwrap();
    assert_eq!((&few["content"][0]["content"]["text"], &few["blob"]), (&json!(lines(10)), &Value::Null));

    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    signal(world.session_pid(&killed), Signal::KILL);
    until("the session is lost", || world.describe(&killed)["state"] == "lost");
    world.kill_gateway();
    world.start_gateway();
    for session in [&id, &killed] {
        world.assert_blob(session, &long);
        let restarted = world.call("POST", &format!("/v1/sessions/{session}/restart"), &json!({}));
        assert_eq!(restarted.status, 200, "{}", restarted.text());
        assert_eq!(world.run_prompt(session, "b", &["say back"])["success"], true);
        world.assert_blob(session, &long);
    }
    let dir = world.session_dir(&id);
    assert!(dir.join(format!("blobs/{seq}")).is_file());
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}"), &Value::Null).status, 204);
    assert!(!dir.exists());
    assert_eq!(world.blob(&id, seq).code(), "unknown_session");
}

#[test]
fn r51_a_blob_is_served_as_plain_text_to_readers_only() {
    let world = world();
    let id = world.agent();
    world.run_prompt(&id, "a", &["tool-size 100000 print"]);
    let (seq, _) = world.with_blob(&id).remove(0);
    let path = format!("/v1/sessions/{id}/blobs/{seq}");
    let reader = world.new_token("reader", "read");
    let read = world.call_as(&reader, "GET", &path, &Value::Null);
    assert_eq!((read.status, read.text().len()), (200, 100_000), "{}", read.code());
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox; frame-ancestors 'none'"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(read.header(name), Some(value), "{name}");
    }
    assert!(read.header("content-disposition").unwrap().starts_with("attachment; filename="));
    assert_eq!(world.call_as("wrong", "GET", &path, &Value::Null).status, 401);
    let part = world.call("GET", &format!("{path}?from=99990"), &Value::Null);
    assert_eq!((part.status, part.text().as_str()), (206, "xxxxxxxxxx"));
    assert_eq!(part.header("content-range"), Some("bytes 99990-99999/100000"));
    let beyond = world.call("GET", &format!("{path}?from=100001"), &Value::Null);
    assert_eq!((beyond.status, beyond.code()), (416, "out_of_range"));
    for (seq, status, code) in [
        ("0", 404, "not_found"),
        ("999999", 404, "not_found"),
        ("x", 400, "bad_request"),
        ("-1", 400, "bad_request"),
        ("%2e%2e%2fmeta.json", 400, "bad_request"),
        ("%ff", 400, "bad_name"),
    ] {
        let refused = world.blob(&id, seq);
        assert_eq!((refused.status, refused.code()), (status, code), "{seq}");
    }
    let secret = world.file("secret");
    std::fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(&secret, world.session_dir(&id).join("blobs/1")).unwrap();
    assert_eq!(world.blob(&id, 1).code(), "not_found", "a link is not followed");
    let terminal = world.shell("cat");
    assert_eq!(world.blob(&terminal, 0).code(), "bad_request");
}

/// The blob does not fit, but a line of the journal would: its event waits for it.
#[test]
fn r52_on_a_full_disk_long_output_is_neither_lost_nor_repeated() {
    let world = world();
    let (id, long) = (world.agent(), lines(200_000));
    let (reached, go) = (world.file("reached"), world.file("go"));
    let run = world.prompt(
        &id,
        "a",
        &[&format!("touch {reached}"), &format!("wait {go}"), "tool-lines 200000 print", "say last words"],
    );
    until("the run is in the agent", || std::path::Path::new(&reached).exists());
    world.limit_files(&id, Some(1 << 20));
    std::fs::write(&go, "").unwrap();
    until("the session is degraded", || world.describe(&id)["degraded"] == true);
    assert_eq!(world.with_blob(&id), []);
    let blobs = world.session_dir(&id).join("blobs");
    // Between two tries, nothing of it is left.
    until("no part is left", || std::fs::read_dir(&blobs).is_ok_and(|mut files| files.next().is_none()));
    let refused = world.command(&id, "x", &json!({"type": "prompt", "text": "say no"}));
    assert_eq!((refused.status, refused.code()), (507, "no_space"), "{}", refused.text());
    world.limit_files(&id, None);
    let end = world.complete(&id, &run);
    assert_eq!(end["success"], true, "{end}");
    assert_eq!(world.said(&id, &run), "last words");
    world.assert_blob(&id, &long);
    assert_eq!(std::fs::read_dir(&blobs).unwrap().count(), 1);
    let journal = world.journal(&id);
    assert_contiguous(&journal);
    assert_each_run_ends_once(&journal);
}

#[test]
fn r52_past_the_limit_of_a_session_events_keep_the_ends_and_one_notice_says_so() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    world.run_prompt(&id, "a", &["tool-size 100000 print"]);
    let kept = world.with_blob(&id);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    // A file with a hole, which takes no space, is counted by its length.
    let hole = std::fs::File::create(world.session_dir(&id).join("blobs/0")).unwrap();
    hole.set_len(256 << 20).unwrap();
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    let end = world.run_prompt(&id, "b", &["tool-size 100000 print", "tool-size 100000 print", "say done"]);
    assert_eq!(end["success"], true, "{end}");
    assert_eq!(world.with_blob(&id), kept, "there is no room for more");
    let cut = world.events_of(&id, "tool_update").into_iter().filter(|event| event["truncated"] == true);
    let cut: Vec<Value> = cut.collect();
    assert_eq!(cut.len(), 3);
    assert!(cut[2]["content"][0]["content"]["text"].as_str().unwrap().contains("bytes left out"));
    let notices = world.events_of(&id, "notice");
    let is_meant = |notice: &&Value| notice["text"].as_str().unwrap().contains("256 MiB");
    assert_eq!(notices.iter().filter(is_meant).count(), 1, "{notices:?}");
    assert_contiguous(&world.journal(&id));
}

/// A stand-in for Claude Code, which answers a prompt with the line in the file `results`.
const CLAUDE: &str = r#"read -r init
echo '{"type":"control_response","response":{"subtype":"success","request_id":"bowline-1","response":{"models":[]}}}'
while read -r line; do
    case $line in *'"type":"user"'*) ;; *) continue ;; esac
    message=$(printf '%s' "$line" | sed 's/.*"uuid":"\([^"]*\)".*/\1/')
    echo "{\"type\":\"command_lifecycle\",\"command_uuid\":\"$message\",\"state\":\"started\"}"
    cat "$HOME/results"
    echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"user_message_uuids\":[\"$message\"]}"
done"#;

/// The session does not write them all before it does something else, but nothing gets in between.
#[test]
fn r40_many_long_outputs_in_one_line_are_kept_in_order() {
    let world = world();
    world.set_login_path();
    world.install("claude", CLAUDE, "755");
    let output = |n: usize| format!("{n} ").repeat(20_000);
    let block = |n: usize| json!({"type": "tool_result", "tool_use_id": format!("t{n}"), "content": output(n)});
    let blocks: Vec<Value> = (0..60).map(block).collect();
    let line = json!({"type": "user", "message": {"content": blocks}});
    std::fs::write(world.file("results"), format!("{line}\n")).unwrap();
    let made = world.new_agent(&json!({"agent": "claude"}));
    assert_eq!(made.status, 201, "{}", made.text());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let run = world.prompt(&id, "a", &["go"]);
    // A command in the middle is accepted.
    until("the first blobs are written", || !world.with_blob(&id).is_empty());
    let next = world.prompt(&id, "b", &["again"]);
    for run in [&run, &next] {
        assert_eq!(world.complete(&id, run)["success"], true);
    }
    let found = world.with_blob(&id);
    let calls: Vec<String> = found.iter().map(|(_, event)| event["call"].as_str().unwrap().to_owned()).collect();
    assert_eq!(calls, (0..120).map(|n| format!("t{}", n % 60)).collect::<Vec<_>>());
    for at in [0, 7, 8, 59, 119] {
        assert!(world.blob(&id, found[at].0).text() == output(at % 60), "{at}");
    }
    assert!(world.events_of(&id, "degraded").is_empty());
    assert_contiguous(&world.journal(&id));
    assert_each_run_ends_once(&world.journal(&id));
}
