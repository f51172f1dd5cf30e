//! What clients set in an agent, the instructions that they give to a run, and what the agent says that it has used.

use serde_json::{Value, json};

use super::{until, world, world_with};

#[test]
fn r43_a_client_sets_mode_and_model_and_the_next_process_has_them_too() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.new_agent(&json!({"model": "fake-large"})).json()["id"].as_str().unwrap().to_owned();
    let set = |command: &str, settings: Value| {
        let mut body = json!({"type": "set"});
        body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        world.command(&id, command, &body)
    };
    let modes = |run: &str| world.said(&id, run);
    world.run_prompt(&id, "one", &["echo-mode"]);
    assert_eq!(modes("r0"), "mode=default model=fake-large\n", "the model of the request");
    assert_eq!(set("plan", json!({"mode": "plan", "model": "other"})).status, 202);
    assert_eq!(set("plan", json!({"mode": "plan", "model": "other"})).json()["status"], "duplicate");
    world.run_prompt(&id, "two", &["echo-mode"]);
    assert_eq!(modes("r1"), "mode=plan model=other\n");
    let recorded = &world.events_of(&id, "set")[0];
    assert_eq!(
        (&recorded["mode"], &recorded["model"], &recorded["by"]),
        (&json!("plan"), &json!("other"), &json!("test"))
    );
    let described = world.describe(&id);
    assert_eq!((&described["mode"], &described["model"]), (&json!("plan"), &json!("other")));
    world.run_prompt(&id, "three", &["exit 1"]);
    world.run_prompt(&id, "four", &["echo-mode"]);
    assert_eq!(modes("r3"), "mode=plan model=other\n", "another process of the agent");
    let config = world.events_of(&id, "config").pop().unwrap();
    let offered: Vec<&str> =
        config["modes"]["available"].as_array().unwrap().iter().map(|mode| mode["id"].as_str().unwrap()).collect();
    assert_eq!(offered, ["default", "plan"], "a mode that skips approvals is not offered");
}

#[test]
fn r43_what_must_not_be_set_is_refused_and_recorded_nowhere() {
    let world = world();
    let id = world.agent();
    world.run_prompt(&id, "one", &["say hi"]);
    let before = world.journal(&id).len();
    let refused = |settings: Value| {
        let mut body = json!({"type": "set"});
        body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let answer = world.command(&id, "set", &body);
        (answer.status, answer.code().to_owned())
    };
    let not_allowed = (422, "not_allowed_mode".to_owned());
    assert_eq!(refused(json!({"mode": "yolo"})), not_allowed);
    assert_eq!(refused(json!({"mode": "nonsense"})), not_allowed, "the agent has no such mode");
    assert_eq!(refused(json!({"option": {"id": "mode", "value": "YOLO"}})), not_allowed, "an option of another name");
    let bad = (400, "bad_request".to_owned());
    assert_eq!(refused(json!({})), bad);
    assert_eq!(refused(json!({"model": "-x"})), bad);
    assert_eq!(refused(json!({"model": "a b"})), bad);
    assert_eq!(refused(json!({"option": {"id": "", "value": "x"}})), bad);
    assert_eq!(refused(json!({"option": {"id": "mode", "value": "plan"}})), bad, "a mode is set as the mode");
    assert_eq!(refused(json!({"option": {"id": "auto-approve", "value": "true"}})), not_allowed);
    assert_eq!(world.journal(&id).len(), before);
    for model in ["-x", "", "a b", "a\u{1b}"] {
        let answer = world.new_agent(&json!({"model": model}));
        assert_eq!((answer.status, answer.code()), (400, "bad_request"), "{model:?}");
    }
}

#[test]
fn r43_a_setting_that_the_agent_refuses_is_a_notice_and_is_not_kept() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    assert_eq!(world.command(&id, "set", &json!({"type": "set", "model": "none"})).status, 202);
    let refused = |notice: &Value| notice["text"].as_str().unwrap().starts_with("the agent refused the model none");
    until("the agent has refused", || world.events_of(&id, "notice").iter().any(refused));
    world.run_prompt(&id, "one", &["exit 1"]);
    world.run_prompt(&id, "two", &["echo-mode"]);
    assert_eq!(world.said(&id, "r1"), "mode=default model=fake-small\n");
    assert_eq!(world.events_of(&id, "notice").iter().filter(|notice| refused(notice)).count(), 1, "not tried again");
}

#[test]
fn r59_a_running_run_takes_more_instructions_once() {
    let world = world_with(&[("FAKE_AGENT_LOG", "received")]);
    let id = world.agent();
    let early = world.command(&id, "early", &json!({"type": "steer", "run": "r0", "text": "too early"}));
    assert_eq!((early.status, early.code()), (409, "not_running"));
    let run = world.prompt(&id, "one", &[&format!("touch {}", world.file("working")), "hear", "say after"]);
    until("the agent works", || world.path().join("working").exists());
    let steer = json!({"type": "steer", "run": run, "text": "faster"});
    assert_eq!(world.command(&id, "steer", &json!({"type": "steer", "run": run, "text": " "})).status, 400);
    let first = world.command(&id, "steer", &steer);
    assert_eq!((first.status, &first.json()["run"]), (202, &json!(run)));
    assert_eq!(world.command(&id, "steer", &steer).json()["status"], "duplicate");
    assert_eq!(world.complete(&id, &run)["success"], true);
    assert_eq!(world.said(&id, &run), "heard: faster\nafter");
    let recorded = world.events_of(&id, "steered");
    assert_eq!((recorded.len(), &recorded[0]["text"], &recorded[0]["by"]), (1, &json!("faster"), &json!("test")));
    let late = world.command(&id, "late", &json!({"type": "steer", "run": run, "text": "x"}));
    assert_eq!((late.status, late.code()), (409, "not_running"));
    let received = std::fs::read_to_string(world.file("received")).unwrap();
    assert_eq!(received.matches("_session/steering").count(), 1, "{received}");
}

#[test]
fn r35_the_description_has_usage_and_commands_and_lists_leave_the_commands_out() {
    let world = world();
    let id = world.agent();
    world.run_prompt(&id, "one", &["commands compact|review", "usage 10 100 0.5"]);
    world.run_prompt(&id, "two", &["usage 30 100 0.75"]);
    let described = world.describe(&id);
    assert_eq!(described["usage"]["cost"], 0.75, "{described}");
    assert_eq!(described["usage"]["context"], json!({"used": 30, "size": 100}));
    let costs: Vec<Value> = world.events_of(&id, "usage").iter().map(|usage| usage["cost"].clone()).collect();
    assert_eq!(costs, [0.5, 0.25], "the difference to the event before");
    let names: Vec<&Value> = described["commands"].as_array().unwrap().iter().map(|command| &command["name"]).collect();
    assert_eq!(names, ["compact", "review"]);
    let listed = &world.call("GET", "/v1/sessions", &Value::Null).json()["sessions"][0];
    assert_eq!((&listed["commands"], &listed["usage"]), (&Value::Null, &described["usage"]));
}

/// A user who chose to get only a plan must not get more.
#[test]
fn r43_an_agent_that_refuses_the_chosen_mode_gets_no_prompt_until_another_is_set() {
    let world = world();
    let id = world.new_agent(&json!({"mode": "nonsense"})).json()["id"].as_str().unwrap().to_owned();
    let refused = world.run_prompt(&id, "one", &["echo-mode"]);
    assert_eq!((&refused["started"], &refused["error"]["code"]), (&json!(false), &json!("mode_refused")), "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("nonsense") && message.contains("set another"), "{message}");
    assert_eq!(world.command(&id, "set", &json!({"type": "set", "mode": "plan"})).status, 202);
    assert_eq!(world.run_prompt(&id, "two", &["echo-mode"])["success"], true);
    assert_eq!(world.said(&id, "r1"), "mode=plan model=fake-small\n");
}
