//! Turns and their ends.

use super::*;

#[test]
fn r33_only_a_completed_turn_is_a_success() {
    for (status, success) in
        [("completed", true), ("interrupted", false), ("failed", false), ("fancy", false), ("", false)]
    {
        let mut codex = prompted();
        complete(&mut codex, "u", status);
        let [end] = ends(&mut codex).try_into().unwrap();
        assert_eq!(
            (end.success, end.stop_reason.as_deref(), end.error.is_some()),
            (success, Some(status), status == "failed")
        );
    }
}

/// A field of another type in a newer version must not leave a run without an end.
#[test]
fn r33_an_end_in_an_unknown_form_is_an_end() {
    for error in [json!("text"), json!([1]), json!({"message": 7}), json!({"codexErrorInfo": {"x": 7}})] {
        let mut codex = prompted();
        notify(&mut codex, "turn/completed", json!({"turn": {"id": "u", "status": "failed", "error": error}}));
        let [end] = ends(&mut codex).try_into().unwrap();
        assert!(!end.success && end.error.is_some(), "{error}");
    }
}

#[test]
fn r33_the_end_of_another_turn_ends_nothing() {
    let mut codex = prompted();
    complete(&mut codex, "other", "completed");
    assert_eq!(recorded(&mut codex)[0]["level"], "debug");
    notify(&mut codex, "turn/completed", json!({"threadId": "sub-agent", "turn": {"id": "u", "status": "completed"}}));
    assert!(recorded(&mut codex).is_empty());
    complete(&mut codex, "u", "completed");
    complete(&mut codex, "u", "completed");
    assert_eq!(ends(&mut codex).len(), 1);
    notify(&mut codex, "item/agentMessage/delta", json!({"itemId": "i", "turnId": "u", "delta": "late"}));
    assert_eq!(recorded(&mut codex)[0]["run"], json!(null));
}

#[test]
fn r33_a_turn_may_end_before_its_id_is_known() {
    let mut codex = opened(config());
    prompt(&mut codex);
    notify(&mut codex, "turn/started", json!({"turn": {"id": "u"}}));
    complete(&mut codex, "u", "completed");
    assert!(news(&mut codex).is_empty(), "it could be a turn that Codex began by itself");
    receive(&mut codex, json!({"id": 4, "result": {"turn": {"id": "u"}}}));
    assert!(ends(&mut codex)[0].success);
    prompt(&mut codex);
    complete(&mut codex, "other", "completed");
    receive(&mut codex, json!({"id": 5, "result": {"turn": {"id": "v"}}}));
    assert!(ends(&mut codex).is_empty());
    complete(&mut codex, "v", "interrupted");
    assert!(!ends(&mut codex)[0].success);
}

#[test]
fn r33_a_refused_turn_ends_its_run() {
    for answer in [json!({"error": {"code": -32600, "message": "thread not found"}}), json!({"result": 7})] {
        let mut codex = opened(config());
        prompt(&mut codex);
        let mut message = answer.clone();
        message["id"] = json!(4);
        receive(&mut codex, message);
        assert_eq!(ends(&mut codex)[0].error.as_ref().unwrap().code, "agent_error", "{answer}");
    }
}

/// Before `turn/started`, Codex answers "no active turn to interrupt", and the turn goes on.
#[test]
fn r42_a_cancel_is_sent_when_the_turn_can_be_interrupted() {
    let answer = json!({"id": 4, "result": {"turn": {"id": "u"}}});
    let started = json!({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u"}}});
    for order in [[&answer, &started], [&started, &answer]] {
        let mut codex = opened(config());
        prompt(&mut codex);
        written(&mut codex);
        codex.cancel();
        receive(&mut codex, order[0].clone());
        assert!(written(&mut codex).is_empty() && !codex.can_steer());
        receive(&mut codex, order[1].clone());
        let interrupt = &written(&mut codex)[0];
        assert_eq!((&interrupt["method"], &interrupt["params"]["turnId"]), (&json!("turn/interrupt"), &json!("u")));
        assert!(!codex.can_steer());
        codex.cancel();
        assert_eq!(methods(&mut codex), ["turn/interrupt"]);
        complete(&mut codex, "u", "interrupted");
        codex.cancel();
        assert!(written(&mut codex).is_empty());
    }
}

/// Otherwise clients show them as running for ever.
#[test]
fn tools_of_an_interrupted_turn_have_failed() {
    let mut codex = prompted();
    let item =
        json!({"type": "commandExecution", "id": "c", "command": "/bin/bash -lc 'sleep 9'", "status": "inProgress"});
    notify(&mut codex, "item/started", json!({"item": item, "turnId": "u"}));
    complete(&mut codex, "u", "interrupted");
    let found = news(&mut codex);
    let [_, AdapterEvent::Event(AgentEvent::ToolUpdate(call)), AdapterEvent::Ended { .. }] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((call.call.as_str(), call.status.as_deref(), call.run), ("c", Some("failed"), Some(RUN)));
}

#[test]
fn steering_names_the_turn_and_a_refusal_is_a_warning() {
    let mut codex = opened(config());
    assert!(!codex.can_steer());
    prompt(&mut codex);
    assert!(!codex.can_steer(), "the turn's id is not known");
    written(&mut codex);
    receive(&mut codex, json!({"id": 4, "result": {"turn": {"id": "u"}}}));
    assert!(!codex.can_steer(), "Codex would say that there is no turn to steer");
    notify(&mut codex, "turn/started", json!({"turn": {"id": "u"}}));
    assert!(codex.can_steer());
    codex.steer("more");
    let steer = &written(&mut codex)[0];
    assert_eq!((&steer["method"], &steer["params"]["expectedTurnId"]), (&json!("turn/steer"), &json!("u")));
    receive(&mut codex, json!({"id": 5, "error": {"code": -32600, "message": "no active turn to steer"}}));
    assert_eq!(recorded(&mut codex)[0]["level"], "warning");
    complete(&mut codex, "u", "completed");
    news(&mut codex);
    codex.steer("too late");
    assert!(written(&mut codex).is_empty() && recorded(&mut codex)[0]["level"] == "warning");
}

#[test]
fn a_turn_that_codex_begins_is_a_run() {
    let mut codex = opened(config());
    notify(&mut codex, "turn/started", json!({"threadId": "sub-agent", "turn": {"id": "v"}}));
    assert!(news(&mut codex).is_empty());
    notify(&mut codex, "turn/started", json!({"turn": {"id": "w"}}));
    assert_eq!(news(&mut codex), [AdapterEvent::OwnTurn]);
    codex.handle_own_turn(RUN);
    assert!(codex.can_steer());
    notify(&mut codex, "item/agentMessage/delta", json!({"itemId": "i", "delta": "hm"}));
    assert_eq!(recorded(&mut codex)[0]["run"], "r3");
    complete(&mut codex, "w", "completed");
    assert!(ends(&mut codex)[0].success);
    notify(&mut codex, "turn/started", json!({"turn": {"id": "w"}}));
    assert!(news(&mut codex).is_empty(), "it has ended already");
    // The session may have no run for it, because it is being ended.
    notify(&mut codex, "turn/started", json!({"turn": {"id": "x"}}));
    complete(&mut codex, "x", "completed");
    assert_eq!(news(&mut codex), [AdapterEvent::OwnTurn]);
}

#[test]
fn errors_of_a_turn_have_their_codes() {
    let end = |limits: Value, error: Value| {
        let mut codex = prompted();
        notify(&mut codex, "account/rateLimits/updated", json!({"rateLimits": limits}));
        notify(&mut codex, "error", json!({"error": error, "willRetry": false, "turnId": "u"}));
        notify(&mut codex, "turn/completed", json!({"turn": {"id": "u", "status": "failed", "error": error}}));
        let error = ends(&mut codex).remove(0).error.unwrap();
        (error.code, error.message, error.retry_at)
    };
    let limit = json!({"message": "at 12:00 AM", "codexErrorInfo": "usageLimitExceeded"});
    let message = "at 12:00 AM".to_owned();
    assert_eq!(end(json!({}), limit.clone()), ("usage_limit".to_owned(), message.clone(), None));
    let window = |percent: u64, resets_at: i64| json!({"usedPercent": percent, "resetsAt": resets_at});
    let limits = json!({"primary": window(100, 1_893_456_000), "secondary": window(50, 1_999_999_999)});
    let retry_at = end(limits, limit.clone()).2.unwrap();
    assert!(retry_at.starts_with("2030-01-01T00:00:00"), "{retry_at}");
    assert_eq!(end(json!({"primary": window(100, i64::MAX)}), limit), ("usage_limit".to_owned(), message, None));
    let kinds = json!({"responseTooManyFailedAttempts": {"httpStatusCode": 401}});
    assert_eq!(end(json!({}), json!({"message": "x", "codexErrorInfo": kinds})).0, "not_logged_in");
    assert_eq!(end(json!({}), json!({"message": "x", "codexErrorInfo": [[1]]})).0, "agent_error");
    let body = json!({"error": {"message": "too long"}}).to_string();
    assert_eq!(end(json!({}), json!({"message": body})).1, "too long");
}

#[test]
fn r33_the_output_of_an_aborted_command_is_shown() {
    let mut codex = prompted();
    item(&mut codex, "item/started", json!({"type": "commandExecution", "id": "c", "command": "x"}));
    for delta in ["one\n", "2\n"] {
        notify(&mut codex, "item/commandExecution/outputDelta", json!({"itemId": "c", "delta": delta}));
    }
    news(&mut codex);
    complete(&mut codex, "u", "interrupted");
    let found = news(&mut codex);
    let [AdapterEvent::Event(AgentEvent::ToolUpdate(call)), AdapterEvent::Ended { .. }] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(call.content.as_ref().unwrap()[0]["content"]["text"], "one\n2\n");
}

/// The next prompt then starts Codex again.
#[test]
fn r40_codex_without_its_thread_is_unusable() {
    let mut codex = opened(config());
    notify(&mut codex, "thread/closed", json!({"threadId": "sub-agent"}));
    assert!(news(&mut codex).is_empty());
    notify(&mut codex, "thread/closed", json!({}));
    assert!(matches!(news(&mut codex).as_slice(), [AdapterEvent::Unusable(error)] if error.code == "agent_failed"));
}

#[test]
fn r33_several_turns_may_end_before_the_id_of_the_run_is_known() {
    let mut codex = opened(config());
    prompt(&mut codex);
    for turn in ["other", "u", "more"] {
        complete(&mut codex, turn, "completed");
    }
    receive(&mut codex, json!({"id": 4, "result": {"turn": {"id": "u"}}}));
    assert!(ends(&mut codex)[0].success);
}

#[test]
fn r33_an_end_without_an_error_has_the_one_that_came_before() {
    let mut codex = prompted();
    let error = json!({"message": "used up", "codexErrorInfo": "usageLimitExceeded"});
    notify(&mut codex, "error", json!({"error": error, "willRetry": false, "turnId": "u"}));
    complete(&mut codex, "u", "failed");
    let error = ends(&mut codex).remove(0).error.unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("usage_limit", "used up"));
}

/// Otherwise its streamed text would be recorded again when it is completed.
#[test]
fn a_prompt_into_a_turn_of_codex_does_not_forget_its_items() {
    let mut codex = opened(config());
    notify(&mut codex, "turn/started", json!({"turn": {"id": "w"}}));
    notify(&mut codex, "item/agentMessage/delta", json!({"itemId": "i", "delta": "streamed"}));
    news(&mut codex);
    prompt(&mut codex);
    item(&mut codex, "item/completed", json!({"type": "agentMessage", "id": "i", "text": "streamed"}));
    assert!(news(&mut codex).is_empty());
}

#[test]
fn r34_many_texts_do_not_make_codex_forget_a_change() {
    let mut codex = prompted();
    let changes = json!([{"path": "/project/a", "kind": {"type": "update"}, "diff": "@@ -1 +1 @@\n-x\n+y\n"}]);
    item(&mut codex, "item/started", json!({"type": "fileChange", "id": "f", "changes": changes}));
    for number in 0..200 {
        notify(&mut codex, "item/agentMessage/delta", json!({"itemId": format!("i{number}"), "delta": "x"}));
    }
    assert!(codex.items.changes("f").is_some());
}
