//! Permission requests and their answers.

use super::*;

fn suggestions() -> Value {
    json!([
        {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch a"}, {"toolName": "Read"}],
            "behavior": "allow", "destination": "localSettings"},
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        {"type": "from_a_later_version", "destination": "session"},
        {"type": "addRules", "rules": [{"odd": 1}], "behavior": "allow", "destination": "userSettings"},
    ])
}

#[test]
fn each_suggestion_is_an_option_that_says_what_it_changes() {
    let (mut claude, _) = prompted();
    let more = json!({"input": {"command": "touch a"}, "permission_suggestions": suggestions()});
    let (key, approval) = request(&mut claude, "q", "Bash", more.clone());
    let options: Vec<(OptionKind, Option<&str>)> =
        approval.options.iter().map(|option| (option.kind, option.effect.as_deref())).collect();
    assert_eq!(
        options,
        [
            (OptionKind::AllowOnce, None),
            (
                OptionKind::AllowAlways,
                Some("adds the rule Bash(touch a), Read to .claude/settings.local.json of the project")
            ),
            (OptionKind::AllowAlways, Some("switches to the mode acceptEdits for this session")),
            (OptionKind::RejectOnce, None),
        ],
        "no mode that is refused, and nothing that cannot be explained"
    );
    assert_eq!(approval.detail.command.as_deref(), Some("touch a"));
    assert_eq!(approval.detail.cwd.as_deref(), Some("/project"));
    let response = answered(&mut claude, key, &Answer::Chosen(approval.options[2].id.clone()));
    assert_eq!(
        response,
        json!({"behavior": "allow", "updatedInput": {"command": "touch a"},
            "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]})
    );
    let (key, _) = request(&mut claude, "q", "Bash", more);
    let response = answered(&mut claude, key, &Answer::Chosen("always99".into()));
    assert_eq!(response["behavior"], "deny", "an option that was not offered");
}

#[test]
fn a_denial_carries_the_reason_and_an_abort_ends_the_turn() {
    let (mut claude, _) = prompted();
    let more = json!({"input": {"command": "x"}});
    let (key, _) = request(&mut claude, "1", "Bash", more.clone());
    let with_reason = Answer::Denied { option: Some("deny".into()), reason: Some("not now".into()) };
    assert_eq!(answered(&mut claude, key, &with_reason), json!({"behavior": "deny", "message": "not now"}));
    let (key, _) = request(&mut claude, "2", "Bash", more.clone());
    let response = answered(&mut claude, key, &Answer::Denied { option: None, reason: None });
    assert_eq!(response["message"], "The user denied this.");
    let (key, _) = request(&mut claude, "3", "Bash", more);
    assert_eq!(answered(&mut claude, key, &Answer::Cancelled)["interrupt"], true);
    let (key, _) = request(&mut claude, "4", "Bash", json!({"input": {}, "agent_id": "sub"}));
    assert_eq!(answered(&mut claude, key, &Answer::Cancelled)["interrupt"], false);
    claude.answer(key, &Answer::Cancelled);
    assert_eq!(written(&mut claude).len(), 0, "each request gets one answer");
}

#[test]
fn a_request_can_be_withdrawn_and_is_open_once() {
    let (mut claude, _) = prompted();
    let (key, _) = request(&mut claude, "q", "Bash", json!({"input": {"command": "x"}}));
    let again = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}});
    receive(&mut claude, json!({"type": "control_request", "request_id": "q", "request": again}));
    assert_eq!(events(&mut claude), []);
    receive(&mut claude, json!({"type": "control_cancel_request", "request_id": "q"}));
    receive(&mut claude, json!({"type": "control_cancel_request", "request_id": "q"}));
    assert_eq!(events(&mut claude), [AdapterEvent::Withdrawn(key)]);
}

#[test]
fn a_plan_can_be_approved_with_edits_unless_that_is_refused() {
    let (mut claude, _) = prompted();
    let (key, approval) = request(&mut claude, "q", "ExitPlanMode", json!({"input": {"plan": "# Do it"}}));
    assert_eq!((approval.kind, approval.detail.text.as_deref()), (ApprovalKind::Plan, Some("# Do it")));
    let response = answered(&mut claude, key, &Answer::Chosen("accept_edits".into()));
    assert_eq!(response["updatedPermissions"][0]["mode"], "acceptEdits");
    assert_eq!(response["updatedInput"], json!({"plan": "# Do it"}));
    let mode_policy = ModePolicy { modes: Some(vec!["plan".into(), "default".into()]), allow_bypass: false };
    let mut claude = ready(AdapterConfig { mode_policy, ..config() });
    let (_, approval) = request(&mut claude, "q", "ExitPlanMode", json!({"input": {}}));
    let ids: Vec<&str> = approval.options.iter().map(|option| option.id.as_str()).collect();
    assert_eq!(ids, ["allow", "deny"]);
    assert_eq!(approval.detail.text.as_deref(), Some("The agent wrote no plan."));
}

/// By itself, the agent would return to the mode before the plan.
#[test]
fn the_mode_after_a_plan_is_the_one_that_the_option_names() {
    let (mut claude, _) = prompted();
    let (key, _) = request(&mut claude, "q", "ExitPlanMode", json!({"input": {"plan": "# Do it"}}));
    let response = answered(&mut claude, key, &Answer::Chosen("allow".into()));
    let change = json!([{"type": "setMode", "mode": "default", "destination": "session"}]);
    assert_eq!((&response["behavior"], &response["updatedPermissions"]), (&json!("allow"), &change));
    for (modes, offered) in [(vec!["plan", "acceptEdits"], vec!["accept_edits", "deny"]), (vec!["plan"], vec!["deny"])]
    {
        let modes = Some(modes.into_iter().map(ToOwned::to_owned).collect());
        let mut claude = ready(AdapterConfig { mode_policy: ModePolicy { modes, allow_bypass: false }, ..config() });
        let (key, approval) = request(&mut claude, "q", "ExitPlanMode", json!({"input": {}}));
        let ids: Vec<&str> = approval.options.iter().map(|option| option.id.as_str()).collect();
        assert_eq!(ids, offered);
        assert_eq!(answered(&mut claude, key, &Answer::Chosen("allow".into()))["behavior"], "deny");
    }
}

#[test]
fn answers_are_keyed_by_the_question_and_the_stored_input_is_echoed() {
    let (mut claude, _) = prompted();
    let long = "x".repeat(300);
    let label = "a\u{202e}b";
    let input = json!({"questions": [
        {"question": "Which?", "options": [{"label": label}, {"label": "c"}], "multiSelect": true},
        {"question": "Which?", "options": []},
        {"question": long, "options": []},
    ], "other": 1});
    let (key, approval) = request(&mut claude, "q", "AskUserQuestion", json!({"input": input}));
    let questions = approval.questions.unwrap();
    let ids: Vec<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(ids, ["Which?", "q2", "q3"]);
    assert!(questions.iter().all(|question| question.free) && questions[0].multi);
    let shown = questions[0].options[0].label.clone();
    assert_eq!(shown, "a\\u{202e}b");
    let answers = Answers::from([("Which?".into(), vec![shown, "c".into()]), ("q3".into(), vec!["free".into()])]);
    let response = answered(&mut claude, key, &Answer::Answers(answers));
    assert_eq!(response["updatedInput"]["other"], 1);
    assert_eq!(response["updatedInput"]["answers"], json!({"Which?": format!("{label}, c"), long: "free"}));
}

#[test]
fn a_user_sees_all_that_a_tool_gets() {
    let (mut claude, _) = prompted();
    let input = json!({"command": "x", "description": "d", "run_in_background": true, "timeout": 5});
    let (_, approval) = request(&mut claude, "1", "Bash", json!({"input": input, "description": "d"}));
    assert_eq!(approval.detail.text.as_deref(), Some("run_in_background: true\ntimeout: 5"));
    let edits = json!([{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]);
    let (_, approval) = request(&mut claude, "2", "MultiEdit", json!({"input": {"file_path": "/f", "edits": edits}}));
    assert_eq!(approval.detail.diff.unwrap().matches("--- /f").count(), 2);
    let (_, approval) = request(&mut claude, "3", "mcp__x__y", json!({"input": {"to": "bob", "n": [1]}}));
    assert_eq!(approval.detail.text.as_deref(), Some("n: [1]\nto: bob"));
    let long = json!({"input": {"command": "x".repeat(20_000)}});
    let (_, approval) = request(&mut claude, "4", "Bash", long);
    assert!(approval.truncated);
}

#[test]
fn nothing_that_a_tool_gets_is_hidden_by_what_is_shown_of_it() {
    let (mut claude, _) = prompted();
    let mut shown = |tool: &str, input: Value| {
        let (_, approval) = request(&mut claude, &format!("{tool}{input}"), tool, json!({"input": input}));
        (approval.detail.diff.unwrap_or_default(), approval.detail.text.unwrap_or_default(), approval.truncated)
    };
    let edit = json!({"old_string": "a", "new_string": "b"});
    let (diff, text, truncated) = shown("MultiEdit", json!({"file_path": "/f", "edits": vec![edit.clone(); 65]}));
    assert!(truncated && diff.matches("--- /f").count() == 64 && text.starts_with("edits: "), "{text}");
    let (_, text, truncated) = shown("MultiEdit", json!({"file_path": "/f", "edits": [edit, {"odd": 1}]}));
    assert!(truncated && text.contains("odd"), "{text}");
    let all = json!({"old_string": "a", "new_string": "b", "replace_all": true});
    let (_, text, truncated) = shown("MultiEdit", json!({"file_path": "/f", "edits": [all]}));
    assert!(!truncated && text.contains("replace_all"), "{text}");
    let (diff, text, _) =
        shown("NotebookEdit", json!({"notebook_path": "/real", "file_path": "/harmless", "new_source": "x"}));
    assert!(diff.starts_with("--- /real\n"), "{diff}");
    assert_eq!(text, "file_path: /harmless");
    let (_, text, _) = shown("Write", json!({"file_path": ["/f"], "content": "x"}));
    assert_eq!(text, "file_path: [\"/f\"]");
    let (_, text, _) = shown("Bash", json!({"command": ["rm", "-rf"], "description": "list files"}));
    assert_eq!(text, "command: [\"rm\",\"-rf\"]\ndescription: list files");
    let (_, text, _) = shown("PowerShell", json!({"command": "x", "description": "d"}));
    assert_eq!(text, "description: d");
    let (_, text, _) = shown("ExitPlanMode", json!({"plan": "# Do", "allowedPrompts": ["rm"]}));
    assert_eq!(text, "# Do\n\nallowedPrompts: [\"rm\"]");
    let (_, text, _) = shown("mcp__x__y", json!("rm"));
    assert_eq!(text, "\"rm\"");
}

#[test]
fn ids_of_questions_are_not_taken_for_others_and_no_answer_is_left_out() {
    let (mut claude, _) = prompted();
    let long = "x".repeat(300);
    let input = json!({"questions": [{"question": long}, {"question": "q1"}, {"question": "q1"}]});
    let (key, approval) = request(&mut claude, "q", "AskUserQuestion", json!({"input": input}));
    let questions = approval.questions.unwrap();
    let ids: Vec<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(ids, ["q2", "q1", "q3"]);
    let answers = Answers::from([("q2".into(), vec![]), ("q1".into(), vec!["yes".into()])]);
    let response = answered(&mut claude, key, &Answer::Answers(answers));
    assert_eq!(response["updatedInput"]["answers"], json!({"q1": "yes"}));
}

#[test]
fn a_command_is_shown_with_the_directory_that_the_agent_works_in() {
    let (mut claude, _) = prompted();
    receive(&mut claude, json!({"type": "system", "subtype": "init", "cwd": "/elsewhere"}));
    let (_, approval) = request(&mut claude, "q", "Bash", json!({"input": {"command": "x"}}));
    assert_eq!(approval.detail.cwd.as_deref(), Some("/elsewhere"));
}

/// The agent waits for the answer to each of its requests.
#[test]
fn r52_every_request_of_the_agent_gets_an_answer() {
    let (mut claude, _) = prompted();
    let long = json!({"subtype": "can_use_tool", "input": {"x": "y".repeat(MAX_CONTENT)}});
    let requests = [
        json!({"subtype": "hook_callback"}),
        json!({}),
        json!(null),
        json!("can_use_tool"),
        json!({"subtype": 5}),
        json!({"subtype": "can_use_tool",
        "permission_suggestions": [], "tool_name": 5}),
        long,
    ];
    for request in requests {
        receive(&mut claude, json!({"type": "control_request", "request_id": "q", "request": request}));
        let lines = written(&mut claude);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["response"]["request_id"], "q");
    }
    assert!(claude.open.is_empty());
}
