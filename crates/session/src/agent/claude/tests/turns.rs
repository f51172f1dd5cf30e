//! Which run a turn is, and how it ends.

use super::*;

#[test]
fn r40_only_the_result_that_answers_the_prompt_ends_its_run() {
    let (mut claude, message) = prompted();
    receive(&mut claude, result(Some("another"), json!({})));
    receive(&mut claude, result(None, json!({"origin": {"kind": "task-notification"}})));
    assert_eq!(ends(&mut claude), []);
    receive(&mut claude, result(Some(&message), json!({})));
    assert_eq!(ends(&mut claude), [(RUN, success())]);
    receive(&mut claude, result(Some(&message), json!({})));
    let notice = recorded(&mut claude).pop().unwrap();
    assert_eq!(notice["level"], "debug", "it ended already");
}

#[test]
fn r40_only_a_completed_turn_is_a_success() {
    let cases = [
        (json!({}), true, "end_turn"),
        (json!({"terminal_reason": null}), true, "end_turn"),
        (json!({"terminal_reason": null, "subtype": "error_max_turns"}), false, "error_max_turns"),
        (json!({"terminal_reason": "aborted_streaming"}), false, "aborted_streaming"),
        (json!({"terminal_reason": "api_error", "is_error": true}), false, "api_error"),
        (json!({"stop_reason": "max_tokens"}), false, "max_tokens"),
        (json!({"stop_reason": "refusal"}), false, "refusal"),
    ];
    for (more, success, stop_reason) in cases {
        let (mut claude, message) = prompted();
        receive(&mut claude, result(Some(&message), more.clone()));
        let (_, end) = ends(&mut claude).pop().unwrap();
        assert_eq!((end.success, end.stop_reason.as_deref()), (success, Some(stop_reason)), "{more}");
        assert_eq!(end.error.is_none(), success, "{more}");
    }
}

#[test]
fn a_usage_limit_says_when_it_ends() {
    let (mut claude, message) = prompted();
    let info = json!({"status": "rejected", "resetsAt": 1_893_456_000});
    receive(&mut claude, json!({"type": "rate_limit_event", "rate_limit_info": info}));
    let limit = json!({"is_error": true, "terminal_reason": "api_error", "api_error": "usage_limit_reached"});
    receive(&mut claude, result(Some(&message), limit.clone()));
    let error = ends(&mut claude).pop().unwrap().1.error.unwrap();
    assert_eq!((error.code.as_str(), error.retry_at.is_some()), ("usage_limit", true));
    // A time that cannot be written is left out.
    let (mut claude, message) = prompted();
    let info = json!({"status": "rejected", "resetsAt": u64::MAX});
    receive(&mut claude, json!({"type": "rate_limit_event", "rate_limit_info": info}));
    receive(&mut claude, result(Some(&message), limit));
    assert_eq!(ends(&mut claude).pop().unwrap().1.error.unwrap().retry_at, None);
}

#[test]
fn r40_an_instruction_that_waits_is_a_turn_of_its_own() {
    let (mut claude, message) = prompted();
    claude.steer("also this");
    let steer = written(&mut claude).pop().unwrap()["uuid"].as_str().unwrap().to_owned();
    lifecycle(&mut claude, &steer, "queued");
    receive(&mut claude, result(Some(&message), json!({})));
    assert_eq!(ends(&mut claude), [(RUN, End { goes_on: true, ..success() })]);
    claude.handle_own_turn(OWN);
    lifecycle(&mut claude, &steer, "started");
    init(&mut claude);
    assert_eq!(events(&mut claude), [], "the turn is known already");
    text(&mut claude, "yes");
    assert_eq!(recorded(&mut claude)[0]["run"], "r9");
    receive(&mut claude, result(Some(&steer), json!({})));
    assert_eq!(ends(&mut claude), [(OWN, success())]);
}

#[test]
fn r40_an_instruction_that_was_followed_or_cancelled_is_no_turn() {
    for state in ["started", "cancelled", "completed"] {
        let (mut claude, message) = prompted();
        claude.steer("also this");
        let steer = written(&mut claude).pop().unwrap()["uuid"].as_str().unwrap().to_owned();
        lifecycle(&mut claude, &steer, "queued");
        lifecycle(&mut claude, &steer, state);
        receive(&mut claude, result(Some(&message), json!({})));
        assert_eq!(ends(&mut claude), [(RUN, success())], "{state}");
    }
}

#[test]
fn the_number_of_instructions_that_wait_is_bounded() {
    let (mut claude, _) = prompted();
    let mut accepted = 0;
    while claude.can_steer() && accepted < 1000 {
        claude.steer("more");
        accepted += 1;
    }
    assert_eq!(accepted, 64);
}

#[test]
fn r40_a_turn_that_the_agent_begins_by_itself_is_a_run() {
    let (mut claude, message) = prompted();
    receive(&mut claude, result(Some(&message), json!({})));
    events(&mut claude);
    text(&mut claude, "late");
    assert_eq!(recorded(&mut claude)[0]["run"], Value::Null);
    init(&mut claude);
    assert_eq!(events(&mut claude), [AdapterEvent::OwnTurn]);
    claude.handle_own_turn(OWN);
    receive(&mut claude, result(None, json!({"origin": {"kind": "task-notification"}})));
    assert_eq!(ends(&mut claude), [(OWN, success())]);
}

/// The agent begins a turn by itself while the prompt is on its way.
#[test]
fn r40_a_prompt_that_waits_behind_another_turn_is_not_ended_by_it() {
    let mut claude = ready(config());
    let message = prompt(&mut claude, RUN);
    init(&mut claude);
    lifecycle(&mut claude, &message, "queued");
    text(&mut claude, "not yours");
    receive(&mut claude, result(None, json!({"origin": {"kind": "task-notification"}})));
    let news = recorded(&mut claude);
    assert_eq!(news.iter().find(|event| event["type"] == "text").unwrap()["run"], Value::Null);
    lifecycle(&mut claude, &message, "started");
    text(&mut claude, "yours");
    receive(&mut claude, result(Some(&message), json!({})));
    assert_eq!(ends(&mut claude), [(RUN, success())]);
    // One that is cancelled while it waits gets no result.
    let message = prompt(&mut claude, OWN);
    lifecycle(&mut claude, &message, "queued");
    lifecycle(&mut claude, &message, "cancelled");
    let (run, end) = ends(&mut claude).pop().unwrap();
    assert_eq!((run, end.success, end.stop_reason), (OWN, false, None), "the agent may not know the conversation");
}

/// A steered adapter: the run of the prompt has ended, and the one of the instruction is named.
fn going_on() -> (Claude, String) {
    let (mut claude, message) = prompted();
    let steer = steer(&mut claude);
    receive(&mut claude, result(Some(&message), json!({})));
    assert_eq!(ends(&mut claude), [(RUN, End { goes_on: true, ..success() })]);
    claude.handle_own_turn(OWN);
    (claude, steer)
}

fn steer(claude: &mut Claude) -> String {
    claude.steer("also this");
    let steer = written(claude).pop().unwrap()["uuid"].as_str().unwrap().to_owned();
    lifecycle(claude, &steer, "queued");
    steer
}

#[test]
fn r40_a_run_whose_instruction_is_cancelled_before_it_begins_ends() {
    let (mut claude, steer) = going_on();
    lifecycle(&mut claude, &steer, "cancelled");
    let cancelled = End { stop_reason: Some("cancelled".into()), ..End::default() };
    assert_eq!(ends(&mut claude), [(OWN, cancelled)]);
    assert!(!claude.can_steer());
    // One that has begun ends with its result.
    for begin in [
        |claude: &mut Claude, _: &str| init(claude),
        |claude: &mut Claude, steer: &str| lifecycle(claude, steer, "started"),
    ] {
        let (mut claude, steer) = going_on();
        begin(&mut claude, &steer);
        lifecycle(&mut claude, &steer, "cancelled");
        assert_eq!(ends(&mut claude), []);
        receive(&mut claude, result(Some(&steer), json!({})));
        assert_eq!(ends(&mut claude), [(OWN, success())]);
    }
}

#[test]
fn r40_an_instruction_that_the_agent_dropped_does_not_make_every_run_go_on() {
    let (mut claude, _) = going_on();
    init(&mut claude);
    receive(&mut claude, result(None, json!({"origin": {"kind": "task-notification"}})));
    assert_eq!(ends(&mut claude), [(OWN, success())]);
    // Two that are followed one after the other are not dropped.
    let (mut claude, message) = prompted();
    let (first, second) = (steer(&mut claude), steer(&mut claude));
    receive(&mut claude, result(Some(&message), json!({})));
    claude.handle_own_turn(OWN);
    lifecycle(&mut claude, &first, "started");
    init(&mut claude);
    events(&mut claude);
    receive(&mut claude, result(Some(&first), json!({})));
    assert_eq!(ends(&mut claude), [(OWN, End { goes_on: true, ..success() })]);
    claude.handle_own_turn(RUN);
    lifecycle(&mut claude, &second, "started");
    receive(&mut claude, result(Some(&second), json!({})));
    assert_eq!(ends(&mut claude), [(RUN, success())]);
}

/// From the second prompt on, it is known that the agent says when a message begins.
#[test]
fn r40_what_another_turn_says_before_a_prompt_begins_is_not_of_its_run() {
    let (mut claude, message) = prompted();
    receive(&mut claude, result(Some(&message), json!({})));
    events(&mut claude);
    let message = prompt(&mut claude, OWN);
    init(&mut claude);
    text(&mut claude, "not yours");
    let error = json!({"type": "assistant", "message": {"content": []}, "error": "rate_limit"});
    receive(&mut claude, error);
    assert_eq!(recorded(&mut claude)[0]["run"], Value::Null);
    receive(&mut claude, result(None, json!({})));
    assert_eq!(ends(&mut claude), [], "it is the end of the other turn");
    lifecycle(&mut claude, &message, "queued");
    lifecycle(&mut claude, &message, "started");
    let failed = json!({"is_error": true, "terminal_reason": "api_error", "result": "broke"});
    receive(&mut claude, result(Some(&message), failed));
    assert_eq!(ends(&mut claude).pop().unwrap().1.error.unwrap().code, "agent_error", "not the limit of the other");
    let message = prompt(&mut claude, OWN);
    text(&mut claude, "not yours");
    lifecycle(&mut claude, &message, "started");
    receive(&mut claude, result(Some(&message), json!({"result": "Compacted"})));
    let texts: Vec<Value> = recorded(&mut claude).into_iter().map(|event| event["delta"].clone()).collect();
    assert!(texts.contains(&json!("Compacted")), "{texts:?}");
}

#[test]
fn r40_a_prompt_that_the_agent_is_done_with_ends_with_any_result() {
    for (state, is_success) in [("completed", true), ("cancelled", false)] {
        let (mut claude, message) = prompted();
        lifecycle(&mut claude, &message, state);
        assert_eq!(ends(&mut claude), []);
        receive(&mut claude, result(Some("another"), json!({})));
        let (run, end) = ends(&mut claude).pop().unwrap();
        assert_eq!((run, end.success, end.error.is_none()), (RUN, is_success, is_success), "{state}");
    }
}

/// The agent says that it is done with a message only after the result.
#[test]
fn r40_a_prompt_whose_result_does_not_name_it_ends() {
    let (mut claude, message) = prompted();
    receive(&mut claude, result(None, json!({})));
    assert_eq!(ends(&mut claude), []);
    lifecycle(&mut claude, &message, "completed");
    let (run, end) = ends(&mut claude).pop().unwrap();
    assert_eq!((run, end.success, end.error.unwrap().code.as_str()), (RUN, false, "agent_error"));
}

#[test]
fn r40_an_odd_field_does_not_keep_a_run_open() {
    let odd = [
        json!({"is_error": null}),
        json!({"api_error_status": "429"}),
        json!({"result": {"text": "x"}, "errors": ["why"]}),
    ];
    for more in odd {
        let (mut claude, message) = prompted();
        receive(&mut claude, result(Some("another"), more.clone()));
        assert_eq!(ends(&mut claude), [], "{more}");
        receive(&mut claude, result(Some(&message), more.clone()));
        let mut news = events(&mut claude);
        let Some(AdapterEvent::Ended { run: RUN, end }) = news.pop() else { panic!("{more}: {news:?}") };
        assert_eq!((end.success, end.error.unwrap().code.as_str()), (false, "agent_error"), "{more}");
        assert_eq!(
            json!(news.iter().filter(|news| matches!(news, AdapterEvent::Event(AgentEvent::Raw { .. }))).count()),
            1
        );
    }
    let (mut claude, message) = prompted();
    let more = json!({"errors": [{"message": "x"}, "broke", 5], "is_error": true, "terminal_reason": "api_error"});
    receive(&mut claude, result(Some(&message), more));
    assert_eq!(ends(&mut claude).pop().unwrap().1.error.unwrap().message, "broke");
}

#[test]
fn r40_an_odd_field_does_not_hide_a_turn() {
    for odd in [json!({"slash_commands": ["a", {"name": "b"}]}), json!({"slash_commands": 5}), json!({"model": 5})] {
        let mut claude = ready(config());
        let mut init = json!({"type": "system", "subtype": "init"});
        init.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
        receive(&mut claude, init);
        assert_eq!(events(&mut claude).pop(), Some(AdapterEvent::OwnTurn), "{odd}");
    }
}

#[test]
fn r40_only_a_request_of_a_sub_agent_outlives_the_run() {
    let (mut claude, message) = prompted();
    let (own, _) = request(&mut claude, "1", "Bash", json!({"input": {"command": "x"}}));
    let (sub_agents, _) = request(&mut claude, "2", "Bash", json!({"input": {"command": "x"}, "agent_id": "sub"}));
    receive(&mut claude, result(Some(&message), json!({})));
    assert!(!claude.awaits_after_run(own) && claude.awaits_after_run(sub_agents));
    assert_eq!(answered(&mut claude, own, &Answer::Cancelled)["interrupt"], false, "its turn is over");
    assert!(!claude.awaits_after_run(own));
}

#[test]
fn r42_an_abort_stops_background_tasks_that_run() {
    let (mut claude, _) = prompted();
    let system = |claude: &mut Claude, subtype: &str, more: Value| {
        let mut line = json!({"type": "system", "subtype": subtype});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        receive(claude, line);
    };
    for task in ["a", "b", "c", "d"] {
        system(&mut claude, "task_started", json!({"task_id": task, "tool_use_id": "t", "is_backgrounded": true}));
    }
    system(&mut claude, "task_updated", json!({"task_id": "b", "patch": {"status": "completed"}}));
    system(&mut claude, "task_notification", json!({"task_id": "c", "status": "failed", "summary": "broke"}));
    let listed = json!({"tasks": [{"task_id": "a"}, {"task_id": "e"}]});
    system(&mut claude, "background_tasks_changed", listed);
    let update = recorded(&mut claude).pop().unwrap();
    assert_eq!((&update["call"], &update["status"]), (&json!("t"), &json!("failed")));
    claude.cancel();
    let requests: Vec<Value> = written(&mut claude).into_iter().map(|line| line["request"].clone()).collect();
    let stop = |task: &str| json!({"subtype": "stop_task", "task_id": task});
    assert_eq!(requests, [json!({"subtype": "interrupt", "cancel_queued": true}), stop("a"), stop("e")]);
}
