//! Modes, models and effort.

use super::*;

#[test]
fn modes_and_models_apply_from_the_next_turn() {
    let mut codex = opened(config());
    let option = Some(OptionValue { id: "effort".into(), value: "n".into() });
    codex.set(&Settings { mode: Some("read-only".into()), model: Some("n".into()), option });
    let config = &recorded(&mut codex)[0];
    assert_eq!((&config["modes"]["current"], &config["models"]["current"]), (&json!("read-only"), &json!("n")));
    assert_eq!(config["options"][0]["current"], "n");
    assert!(written(&mut codex).is_empty());
    prompt(&mut codex);
    let params = &written(&mut codex)[0]["params"];
    let sandbox = json!({"type": "readOnly"});
    assert_eq!((&params["approvalPolicy"], &params["sandboxPolicy"]), (&json!("on-request"), &sandbox));
    assert_eq!((&params["model"], &params["effort"]), (&json!("n"), &json!("n")));
    assert!(params["collaborationMode"].is_null());
    complete(&mut codex, "u", "completed");
    // The user's own sandbox has more than the mode says.
    codex.set(&Settings { mode: Some("workspace-write".into()), ..Settings::default() });
    prompt(&mut codex);
    assert_eq!(written(&mut codex)[0]["params"]["sandboxPolicy"]["writableRoots"], json!(["/more"]));
}

/// Codex keeps the collaboration mode for later turns.
#[test]
fn plan_mode_is_left_when_another_one_is_chosen() {
    let mut codex = opened(AdapterConfig { mode: Some("plan".into()), ..config() });
    prompt(&mut codex);
    let mode = |codex: &mut Codex| written(codex)[0]["params"]["collaborationMode"].clone();
    let plan = mode(&mut codex);
    assert_eq!((&plan["mode"], &plan["settings"]["model"]), (&json!("plan"), &json!("m")));
    codex.set(&Settings { mode: Some("workspace-write".into()), ..Settings::default() });
    prompt(&mut codex);
    assert_eq!(mode(&mut codex)["mode"], "default");
}

#[test]
fn r52_a_mode_that_skips_approvals_needs_permission() {
    let ids = |codex: &Codex| {
        let config = codex.settings.config();
        config.modes.unwrap().available.into_iter().map(|mode| mode.id).collect::<Vec<_>>()
    };
    let mut codex = opened(config());
    assert_eq!(ids(&codex), ["read-only", "workspace-write", "plan"]);
    codex.set(&Settings { mode: Some("danger-full-access".into()), ..Settings::default() });
    assert_eq!(recorded(&mut codex)[0]["level"], "warning", "and no configuration, because nothing changed");
    prompt(&mut codex);
    assert!(written(&mut codex)[0]["params"]["approvalPolicy"].is_null());
    let mode = Some("danger-full-access".to_owned());
    let mut codex = Codex::new(AdapterConfig { mode: mode.clone(), ..config() });
    assert_eq!(refusal(&mut codex), "mode_refused");
    let mode_policy = ModePolicy { modes: None, allow_bypass: true };
    let mut codex = Codex::new(AdapterConfig { mode, mode_policy, ..config() });
    open(&mut codex);
    let start = written(&mut codex).into_iter().find(|message| message["method"] == "thread/start").unwrap();
    assert_eq!(
        (&start["params"]["sandbox"], &start["params"]["approvalPolicy"]),
        (&json!("danger-full-access"), &json!("never"))
    );
    let mode_policy = ModePolicy { modes: Some(vec!["read-only".into()]), allow_bypass: false };
    let codex = opened(AdapterConfig { mode_policy, ..config() });
    assert_eq!(ids(&codex), ["read-only"]);
    assert_eq!(codex.settings.mode.id, "read-only", "the default is not allowed");
}

#[test]
fn an_effort_that_the_model_does_not_have_is_refused() {
    let mut codex = opened(config());
    let effort = |value: &str| Settings {
        option: Some(OptionValue { id: "effort".into(), value: value.into() }),
        ..Settings::default()
    };
    codex.set(&effort("extreme"));
    codex.set(&Settings {
        option: Some(OptionValue { id: "colour".into(), value: "red".into() }),
        ..Settings::default()
    });
    assert!(recorded(&mut codex).iter().all(|event| event["level"] == "warning"));
    codex.set(&effort("m"));
    codex.set(&Settings { model: Some("n".into()), ..Settings::default() });
    let found = recorded(&mut codex);
    assert_eq!((&found[0]["options"][0]["current"], &found[1]["options"][0]["current"]), (&json!("m"), &json!("low")));
    codex.set(&Settings { model: Some("n".into()), ..Settings::default() });
    assert!(recorded(&mut codex).is_empty(), "nothing changed");
}

fn refusal(codex: &mut Codex) -> String {
    assert!(written(codex).is_empty());
    match news(codex).as_slice() {
        [AdapterEvent::Unusable(error)] => error.code.clone(),
        other => panic!("{other:?}"),
    }
}

/// It must not work in a mode that the user did not choose.
#[test]
fn r52_codex_is_not_started_in_another_mode_than_the_configured_one() {
    let mut codex = Codex::new(AdapterConfig { mode: Some("hologram".into()), ..config() });
    assert_eq!(refusal(&mut codex), "mode_refused");
}

#[test]
fn an_effort_that_the_model_turns_out_not_to_have_is_dropped() {
    let mut codex = Codex::new(config());
    receive(&mut codex, json!({"id": 0, "result": {}}));
    receive(&mut codex, json!({"id": 1, "result": {}}));
    let thread = json!({"thread": {"id": "t"}, "model": "m", "reasoningEffort": "m"});
    receive(&mut codex, json!({"id": 2, "result": thread}));
    let option = Some(OptionValue { id: "effort".into(), value: "extreme".into() });
    codex.set(&Settings { option, ..Settings::default() });
    receive(&mut codex, json!({"id": 3, "result": {"data": [model("m"), model("n")]}}));
    written(&mut codex);
    let effort = |codex: &mut Codex| {
        prompt(codex);
        written(codex)[0]["params"]["effort"].clone()
    };
    assert_eq!(effort(&mut codex), "m", "that of the thread");
    codex.set(&Settings { model: Some("n".into()), ..Settings::default() });
    assert_eq!(effort(&mut codex), "low", "the thread would keep an effort that the model does not have");
}

#[test]
fn a_plan_needs_the_name_of_a_model() {
    let mut codex = Codex::new(AdapterConfig { mode: Some("plan".into()), ..config() });
    receive(&mut codex, json!({"id": 0, "result": {}}));
    receive(&mut codex, json!({"id": 1, "result": {}}));
    receive(&mut codex, json!({"id": 2, "result": {"thread": {"id": "t"}}}));
    written(&mut codex);
    prompt(&mut codex);
    let mode = &written(&mut codex)[0]["params"]["collaborationMode"];
    assert_eq!((&mode["mode"], mode["settings"].get("model")), (&json!("plan"), None));
}
