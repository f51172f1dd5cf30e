//! How Codex is started.

use super::*;

#[test]
fn r32_codex_without_a_login_is_unusable_at_once() {
    let mut codex = Codex::new(config());
    receive(&mut codex, json!({"id": 0, "result": {}}));
    assert_eq!(methods(&mut codex), ["initialize", "initialized", "account/read"]);
    receive(&mut codex, json!({"id": 1, "result": {"account": null, "requiresOpenaiAuth": true}}));
    let found = news(&mut codex);
    let [AdapterEvent::Unusable(error)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(error.code, "not_logged_in");
    assert!(error.message.contains("codex login"));
    assert!(written(&mut codex).is_empty());
}

#[test]
fn r32_a_login_or_another_provider_opens_a_thread() {
    for account in [
        json!({"account": {"type": "apiKey"}, "requiresOpenaiAuth": true}),
        json!({"account": null, "requiresOpenaiAuth": false}),
        json!(7),
    ] {
        let mut codex = Codex::new(config());
        receive(&mut codex, json!({"id": 0, "result": {}}));
        written(&mut codex);
        receive(&mut codex, json!({"id": 1, "result": account}));
        assert_eq!(methods(&mut codex), ["thread/start"]);
    }
}

#[test]
fn r32_a_thread_with_settings_in_an_unknown_form_can_be_used() {
    let mut codex = Codex::new(config());
    receive(&mut codex, json!({"id": 0, "result": {}}));
    receive(&mut codex, json!({"id": 1, "result": {}}));
    receive(&mut codex, json!({"id": 2, "result": {"thread": {"id": "t"}, "model": ["m"], "sandbox": 7}}));
    assert_eq!(news(&mut codex).last(), Some(&AdapterEvent::Ready));
    let mut codex = Codex::new(config());
    receive(&mut codex, json!({"id": 0, "result": {}}));
    receive(&mut codex, json!({"id": 1, "result": {}}));
    receive(&mut codex, json!({"id": 2, "result": {"thread": {"id": "x".repeat(5000)}}}));
    assert!(matches!(news(&mut codex).last(), Some(AdapterEvent::Unusable(_))));
}

#[test]
fn r40_a_conversation_that_codex_does_not_know() {
    for may_start_anew in [true, false] {
        let conversation = Some("old".to_owned());
        let mut codex = Codex::new(AdapterConfig { conversation, may_start_anew, ..config() });
        receive(&mut codex, json!({"id": 0, "result": {}}));
        receive(&mut codex, json!({"id": 1, "result": {}}));
        let resume = written(&mut codex).pop().unwrap();
        assert_eq!((&resume["method"], &resume["params"]["threadId"]), (&json!("thread/resume"), &json!("old")));
        assert_eq!(resume["params"]["excludeTurns"], true, "the history could be longer than a line");
        receive(&mut codex, json!({"id": 2, "error": {"code": -32600, "message": "no rollout found"}}));
        match news(&mut codex).as_slice() {
            [AdapterEvent::Event(AgentEvent::Notice { level: Level::Warning, .. })] if may_start_anew => {
                assert_eq!(methods(&mut codex), ["thread/start"]);
            }
            [AdapterEvent::Unusable(error)] => assert_eq!(error.code, "unknown_conversation"),
            other => panic!("{other:?}"),
        }
    }
}
