//! Starting an agent session, and sending it prompts: each is accepted once, and ends once.

use serde_json::{Value, json};

use super::super::gateway::signal;
use super::{assert_contiguous, assert_each_run_ends_once, until, world, world_with};
use rustix::process::Signal;

#[test]
fn r32_a_session_begins_with_its_first_prompt() {
    let world = world();
    let made = world.new_agent(&json!({"name": "talk", "prompt": {"id": "first", "text": "think hm\nsay Hello"}}));
    assert_eq!(made.status, 201, "{}", made.text());
    let session = made.json();
    let id = session["id"].as_str().unwrap();
    assert_eq!(
        (&session["kind"], &session["agent"], &session["state"]),
        (&json!("agent"), &json!("fake"), &json!("running"))
    );
    assert_eq!(session["activity"]["run"], "r0", "there is activity before the agent is ready");
    let end = world.complete(id, "r0");
    assert_eq!(
        (&end["success"], &end["started"], &end["stop_reason"]),
        (&json!(true), &json!(true), &json!("end_turn"))
    );
    assert_eq!(world.said(id, "r0"), "Hello");
    let described = world.describe("talk");
    assert_eq!((&described["activity"], &described["queued"]), (&Value::Null, &json!(0)));
    assert_eq!(described["conversation"], end["conversation"]);
    assert_eq!(described["offset"], json!(world.journal(id).len()));
    let prompt = &world.events_of(id, "prompt")[0];
    assert_eq!(
        (&prompt["command"], &prompt["by"], &prompt["text"]),
        (&json!("first"), &json!("test"), &json!("think hm\nsay Hello"))
    );
    let again = world.command(id, "first", &json!({"type": "prompt", "text": "think hm\nsay Hello"}));
    assert_eq!((again.status, &again.json()["run"]), (200, &json!("r0")), "the first prompt is a command like others");
    let listed = world.call("GET", "/v1/sessions", &Value::Null).json();
    assert_eq!(listed["sessions"][0]["agent"], "fake");
}

#[test]
fn r37_a_prompt_is_sent_to_the_agent_once_however_often_it_arrives() {
    let world = world_with(&[("FAKE_AGENT_LOG", "received")]);
    let id = world.agent();
    let prompt = json!({"type": "prompt", "text": "say once"});
    let first = world.command(&id, "one", &prompt);
    assert_eq!((first.status, &first.json()["status"]), (202, &json!("accepted")));
    for _ in 0..3 {
        let again = world.command(&id, "one", &prompt);
        assert_eq!(again.status, 200);
        let (mut first, again) = (first.json(), again.json());
        first["status"] = "duplicate".into();
        assert_eq!(first, again, "the same number and the same run");
    }
    let other = world.command(&id, "one", &json!({"type": "prompt", "text": "another"}));
    assert_eq!((other.status, other.code()), (409, "id_reused"));
    world.complete(&id, "r0");
    let received = std::fs::read_to_string(world.file("received")).unwrap();
    assert_eq!(received.matches("session/prompt").count(), 1, "{received}");
    assert_eq!(world.events_of(&id, "prompt").len(), 1);
    // Whatever the state, a known id is a duplicate.
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    assert_eq!(world.command(&id, "one", &prompt).status, 200);
    assert_eq!(world.command(&id, "one", &json!({"type": "prompt", "text": "x"})).code(), "id_reused");
    let new = world.command(&id, "two", &prompt);
    assert_eq!((new.status, new.code()), (410, "session_gone"));
}

#[test]
fn r33_each_way_in_which_a_run_can_end_is_one_complete() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    let mut n = 0;
    let mut end = |lines: &[&str]| {
        n += 1;
        world.run_prompt(&id, &format!("c{n}"), lines)
    };
    assert_eq!(end(&["say hi"])["success"], true);
    let limited = end(&["stop max_tokens"]);
    assert_eq!((&limited["success"], &limited["stop_reason"]), (&json!(false), &json!("max_tokens")));
    let failed = end(&["error -32603 It broke."]);
    assert_eq!((&failed["error"]["code"], &failed["error"]["message"]), (&json!("agent_error"), &json!("It broke.")));
    let exited = end(&["say before", "exit 3"]);
    assert_eq!((&exited["error"]["code"], &exited["exit_code"]), (&json!("agent_exited"), &json!(3)));
    assert_eq!(end(&["say again"])["success"], true, "the next prompt starts the agent again");
    assert_eq!(end(&["signal KILL"])["signal"], "SIGKILL");
    let half = end(&["half 0"]);
    assert_eq!((&half["success"], &half["exit_code"]), (&json!(false), &json!(0)));
    assert_eq!(end(&["twice"])["success"], true);
    assert_eq!(end(&["late after the end"])["success"], true);
    assert_eq!(end(&["stderr noise", "garbage", "unknown", "say still here"])["success"], true);
    let journal = world.journal(&id);
    assert_contiguous(&journal);
    assert_each_run_ends_once(&journal);
    until("the late text is recorded", || {
        world.events_of(&id, "text").iter().any(|text| text["run"].is_null() && text["delta"] == "after the end")
    });
    let notices = world.events_of(&id, "notice");
    assert!(notices.iter().any(|notice| notice["text"] == "noise"), "r34: stderr is a notice: {notices:?}");
    assert_eq!(world.events_of(&id, "raw").len(), 1, "the unknown update");
}

#[test]
fn r37_prompts_wait_for_each_other_and_run_in_order() {
    let world = world();
    let id = world.agent();
    let (working, go) = (world.file("working"), world.file("go"));
    world.prompt(&id, "a", &[&format!("touch {working}"), &format!("wait {go}"), "say first"]);
    until("the first run is in the agent", || std::path::Path::new(&working).exists());
    for n in 0..16 {
        world.prompt(&id, &format!("b{n}"), &[&format!("say {n}")]);
    }
    let full = world.command(&id, "c", &json!({"type": "prompt", "text": "say no"}));
    assert_eq!((full.status, full.code()), (429, "too_many"));
    let described = world.describe(&id);
    assert_eq!((&described["queued"], &described["activity"]["run"]), (&json!(16), &json!("r0")));
    std::fs::write(&go, "").unwrap();
    world.complete(&id, "r16");
    assert_eq!(world.prompt(&id, "c", &["say yes"]), "r17", "the refused prompt was not recorded");
    world.complete(&id, "r17");
    let ends: Vec<Value> = world.events_of(&id, "complete").into_iter().map(|mut end| end["run"].take()).collect();
    assert_eq!(ends, (0..18).map(|n| json!(format!("r{n}"))).collect::<Vec<_>>());
}

#[test]
fn r32_what_cannot_be_started_is_refused_and_leaves_nothing() {
    let world = world();
    for (fields, status, code) in [
        (json!({"agent": "missing"}), 422, "no_program"),
        (json!({"agent": "unheard-of"}), 422, "no_program"),
        (json!({"cwd": "/no/such/directory"}), 422, "bad_cwd"),
        (json!({"cwd": "relative"}), 422, "bad_cwd"),
        (json!({"cwd": null}), 400, "bad_request"),
        (json!({"argv": ["sh"]}), 400, "bad_request"),
        (json!({"env": {}}), 400, "bad_request"),
        (json!({"model": "-best"}), 400, "bad_request"),
        (json!({"name": "-x"}), 400, "bad_name"),
        (json!({"resume": "--help"}), 400, "bad_request"),
        (json!({"resume": "a b"}), 400, "bad_request"),
        (json!({"resume": ""}), 400, "bad_request"),
        (json!({"resume": "x".repeat(129)}), 400, "bad_request"),
        (json!({"mode": "yolo"}), 422, "not_allowed_mode"),
        (json!({"mode": "--plan"}), 422, "not_allowed_mode"),
        (json!({"prompt": {"id": "", "text": "hi"}}), 400, "bad_request"),
        (json!({"prompt": {"id": "a", "text": " "}}), 400, "bad_request"),
    ] {
        let refused = world.new_agent(&fields);
        assert_eq!((refused.status, refused.code()), (status, code), "{fields}: {}", refused.text());
    }
    assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).json(), json!({"sessions": []}));
    until("no program is left", || !has_process_in(world.path()));
    let id = world.agent();
    for (command, status, code) in [
        (json!({"type": "prompt", "text": ""}), 400, "bad_request"),
        (json!({"type": "prompt"}), 400, "bad_request"),
        (json!({"type": "input", "text": "ls"}), 400, "bad_request"),
        (json!({"type": "prompt", "text": "x".repeat(256 << 10)}), 413, "too_large"),
        (json!({"type": "prompt", "text": "x", "attachments": ["u1"]}), 404, "not_found"),
        (json!({"type": "abort", "run": "r0"}), 409, "not_running"),
        (json!({"type": "abort", "run": "the first"}), 409, "not_running"),
        (json!({"type": "abort", "run": 7}), 400, "bad_request"),
        (json!({"type": "deny", "approval": "the first"}), 404, "not_found"),
    ] {
        let refused = world.command(&id, "x", &command);
        assert_eq!((refused.status, refused.code()), (status, code), "{command:.80}: {}", refused.text());
    }
    assert_eq!(world.command(&id, &"x".repeat(65), &json!({"type": "prompt", "text": "x"})).status, 400);
    let reader = world.new_token("reader", "read");
    let body = json!({"id": "x", "command": {"type": "prompt", "text": "x"}});
    let refused = world.call_as(&reader, "POST", &format!("/v1/sessions/{id}/commands"), &body);
    assert_eq!((refused.status, refused.code()), (403, "not_allowed"));
    assert!(world.events_of(&id, "prompt").is_empty());
    let refused = world.run(&["screen", &id]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("is an agent session"), "{text}");
    assert!(world.ok(&["ls"]).contains("fake"));
    for path in ["log", "screen"] {
        assert_eq!(world.call("GET", &format!("/v1/sessions/{id}/{path}"), &Value::Null).status, 400, "{path}");
    }
}

#[test]
fn r28_a_repeated_request_starts_one_session() {
    let world = world();
    let bearer = world.bearer();
    let request = |text: &str| {
        let body = json!({"kind": "agent", "agent": "fake", "cwd": world.path(), "prompt": {"id": "p", "text": text}});
        let headers =
            [("Authorization", bearer.as_str()), ("Content-Type", "application/json"), ("Idempotency-Key", "k")];
        super::super::http::request(world.address, "POST", "/v1/sessions", &headers, body.to_string().as_bytes())
            .unwrap()
    };
    let (first, again) = (request("say hi"), request("say hi"));
    assert_eq!((first.status, again.status), (201, 201), "{}", again.text());
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(request("say other").code(), "id_reused");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    world.complete(&id, "r0");
    assert_eq!(world.events_of(&id, "prompt").len(), 1);
}

#[test]
fn r43_directory_environment_and_mode_are_the_servers() {
    let world = world_with(&[("FROM_TABLE", "yes")]);
    let made = world.new_agent(&json!({"mode": "plan", "name": "moded"}));
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let names = ["FROM_TABLE", "BOWLINE_SESSION", "BOWLINE_TOKEN"].map(|name| format!("echo-env {name}"));
    let lines: Vec<&str> = ["echo-cwd", "echo-mode"].into_iter().chain(names.iter().map(String::as_str)).collect();
    world.run_prompt(&id, "a", &lines);
    let path = world.path().display();
    let expected = format!(
        "cwd={path} session={path}\nmode=plan model=fake-model\nFROM_TABLE=yes\nBOWLINE_SESSION={id}\nBOWLINE_TOKEN is unset\n"
    );
    let said = world.said(&id, "r0");
    let without_model =
        |text: &str| text.lines().map(|line| line.split(" model=").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(without_model(&said), without_model(&expected));
}

/// A failed handshake does not end the session, and the next prompt tries again.
#[test]
fn r32_an_agent_that_is_not_logged_in_says_so_until_it_is() {
    let world = world_with(&[("FAKE_AGENT_START", "nologin"), ("FAKE_AGENT_START_UNTIL", "logged-in")]);
    let id = world.agent();
    until("a notice says why", || {
        world.events_of(&id, "notice").iter().any(|notice| notice["text"].as_str().unwrap().contains("not logged in"))
    });
    let end = world.run_prompt(&id, "a", &["say hi"]);
    assert_eq!((&end["started"], &end["error"]["code"]), (&json!(false), &json!("not_logged_in")));
    assert_eq!(world.describe(&id)["state"], "running");
    std::fs::write(world.file("logged-in"), "").unwrap();
    assert_eq!(world.run_prompt(&id, "b", &["say hi"])["success"], true);
}

#[test]
fn r32_an_agent_that_exits_while_it_starts_fails_the_waiting_prompts() {
    let world = world_with(&[("FAKE_AGENT_START", "exit:7"), ("FAKE_AGENT_START_UNTIL", "fixed")]);
    let id = world.agent();
    let end = world.run_prompt(&id, "a", &["say hi"]);
    assert_eq!((&end["started"], &end["error"]["code"]), (&json!(false), &json!("agent_exited")));
    std::fs::write(world.file("fixed"), "").unwrap();
    assert_eq!(world.run_prompt(&id, "b", &["say hi"])["success"], true);
    assert_each_run_ends_once(&world.journal(&id));
}

/// No prompt was sent yet.
#[test]
fn r32_an_agent_that_exits_while_it_starts_is_noticed_at_once() {
    let world = world_with(&[("FAKE_AGENT_START", "exit:7")]);
    let id = world.agent();
    until("a notice says so", || {
        let said = |notice: &Value| notice["text"].as_str().unwrap().contains("exited with code 7; the next prompt");
        world.events_of(&id, "notice").iter().any(said)
    });
}

/// The journal of a session whose process was killed answers repeats of its commands.
#[test]
fn r37_a_command_is_known_after_the_session_process_was_killed() {
    let world = world();
    let id = world.agent();
    world.run_prompt(&id, "a", &["say hi"]);
    signal(world.session_pid(&id), Signal::KILL);
    until("the session is lost", || world.describe(&id)["state"] == "lost");
    let prompt = |text: &str| json!({"type": "prompt", "text": text});
    assert_eq!(world.command(&id, "a", &prompt("say hi")).status, 200);
    assert_eq!(world.command(&id, "b", &prompt("say hi")).code(), "session_gone");
}

/// Whether an agent runs in this directory.
fn has_process_in(path: &std::path::Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let runs_agent = |process: &std::path::PathBuf| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("agent.mjs")
    };
    let here = |process: &std::path::PathBuf| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == path);
    processes.into_iter().any(|process| here(&process) && runs_agent(&process))
}
