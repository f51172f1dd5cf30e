//! What is set in an ACP agent, and the instructions that a run is given.

use super::*;

#[test]
fn r43_what_is_set_before_the_conversation_begins_is_set_with_it() {
    use bowline_proto::agent::config::OptionValue;
    let mut acp = adapter(None, Some("default"));
    let option = Some(OptionValue { id: "effort".into(), value: "high".into() });
    acp.set(&config::Settings { mode: Some("plan".into()), model: Some("large".into()), option });
    let notices = recorded(&mut acp);
    assert!(notices[0]["text"].as_str().unwrap().contains("effort was not set"), "{notices:?}");
    receive(&mut acp, initialized(false));
    written(&mut acp);
    let models = json!({"currentModelId": "large", "availableModels": []});
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s", "models": models}}));
    let requests = written(&mut acp);
    assert_eq!(requests.len(), 1, "the model is large already: {requests:?}");
    assert_eq!(requests[0]["params"], json!({"sessionId": "s", "modeId": "plan"}));
    events(&mut acp);
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    assert_eq!(events(&mut acp).last(), Some(&AdapterEvent::Ready));
}

/// Otherwise a crash in between would make the state forget the mode that was asked for.
#[test]
fn r43_the_agents_own_mode_is_not_recorded_before_the_configured_one_is_set() {
    let mut acp = adapter(None, Some("plan"));
    receive(&mut acp, initialized(false));
    let modes = json!({"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "plan"}]});
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s", "modes": modes}}));
    update(&mut acp, json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "help"}]}));
    let conversation = AdapterEvent::Event(AgentEvent::Conversation { id: "s".into() });
    assert_eq!(events(&mut acp), [conversation]);
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    match events(&mut acp).as_slice() {
        [AdapterEvent::Event(AgentEvent::Config(config)), AdapterEvent::Ready] => {
            assert_eq!(config.modes.as_ref().unwrap().current.as_deref(), Some("plan"));
            assert_eq!(config.commands.len(), 1);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn r52_an_agent_that_refuses_the_configured_mode_is_unusable() {
    let mut acp = adapter(None, Some("plan"));
    acp.config.model = Some("large".into());
    receive(&mut acp, initialized(false));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}));
    events(&mut acp);
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "no"}}));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
    match events(&mut acp).as_slice() {
        [AdapterEvent::Unusable(error)] => {
            assert_eq!(error.code, "mode_refused");
            assert_eq!(error.message, "the agent refused the mode plan: no; set another one");
        }
        other => panic!("{other:?}"),
    }
    let mut acp = adapter(None, None);
    acp.config.model = Some("large".into());
    receive(&mut acp, initialized(false));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": "no"}}));
    let news = events(&mut acp);
    let is_notice = |news: &AdapterEvent| matches!(news, AdapterEvent::Event(AgentEvent::Notice { .. }));
    assert!(news.iter().any(is_notice) && news.last() == Some(&AdapterEvent::Ready), "a model only: {news:?}");
}

#[test]
fn r43_modes_among_the_options_are_modes_and_groups_and_truth_values_can_be_chosen() {
    let mut acp = prompted();
    let grouped = json!([{"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}]}, {"value": "b"}]);
    let options = json!([
        {"id": "m", "category": "mode", "currentValue": "build", "options": [{"value": "build"}, {"value": "yolo"}]},
        {"id": "model", "category": "model", "currentValue": "a", "options": grouped},
        {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": false},
        {"id": "level", "name": "Level", "currentValue": "low", "options": [{"value": "low"}, {"value": "full-access"}]},
        {"name": "has no id"},
    ]);
    update(&mut acp, json!({"sessionUpdate": "config_option_update", "configOptions": options}));
    let config = recorded(&mut acp).pop().unwrap();
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|choice| choice["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (&config["modes"]["current"], ids(&config["modes"]["available"])),
        (&json!("build"), vec!["build".into()])
    );
    assert_eq!(ids(&config["models"]["available"]), ["a", "b"]);
    assert_eq!(ids(&config["options"]), ["fast", "level"]);
    assert_eq!(ids(&config["options"][0]["available"]), ["true", "false"]);
    assert_eq!(ids(&config["options"][1]["available"]), ["low"], "a value that skips approvals is not offered");
    let option = Some(bowline_proto::agent::config::OptionValue { id: "fast".into(), value: "true".into() });
    acp.set(&config::Settings { mode: Some("plan".into()), model: None, option });
    let values: Vec<(Value, Value)> = written(&mut acp)
        .iter()
        .map(|set| (set["params"]["configId"].clone(), set["params"]["value"].clone()))
        .collect();
    assert_eq!(values, [(json!("m"), json!("plan")), (json!("fast"), json!(true))]);
}

#[test]
fn r52_a_long_list_of_commands_is_cut_and_recorded_once() {
    let mut acp = prompted();
    let command = |n: usize| json!({"name": format!("c{n}"), "description": "d".repeat(1000), "input": {"hint": "x"}});
    let commands: Vec<Value> = (0..1000).map(command).collect();
    let long = json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
    update(&mut acp, long.clone());
    let config = recorded(&mut acp).pop().unwrap();
    assert_eq!((&config["truncated"], &config["commands"][0]["name"]), (&json!(true), &json!("c0")));
    assert!(config.to_string().len() <= MAX_DETAIL + 1024, "{}", config.to_string().len());
    update(&mut acp, long);
    assert_eq!(recorded(&mut acp), Vec::<Value>::new(), "nothing changed");
}

#[test]
fn r59_instructions_that_come_too_late_are_a_notice() {
    let mut acp = prompted_as("x");
    assert!(acp.can_steer());
    for answer in [json!({"result": {"outcome": "promptRequired"}}), json!({"error": {"code": -1, "message": "no"}})] {
        acp.steer("more");
        let request = written(&mut acp).pop().unwrap();
        assert_eq!(request["params"]["_meta"]["steering"]["idleBehavior"], "promptRequired");
        let mut answer = answer;
        answer["id"] = request["id"].clone();
        receive(&mut acp, answer);
        assert_eq!(recorded(&mut acp)[0]["level"], "warning");
    }
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}}));
    assert!(!acp.can_steer(), "there is no run");
    assert!(!prompted().can_steer(), "an agent that does not say so cannot be steered");
}
