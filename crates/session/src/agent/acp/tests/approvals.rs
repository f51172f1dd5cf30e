//! What an ACP agent asks, and the answers that it gets.

use super::*;

/// A permission request as Gemini sends it: no tool call came before it.
fn permission(id: u64, title: &str) -> Value {
    let options = json!([
        {"optionId": "always", "kind": "allow_always", "name": "Always"}, {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
        {"optionId": "no", "kind": "reject_once", "name": "No"}, {"optionId": "odd", "kind": "maybe", "name": "?"},
        {"optionId": "never", "kind": "reject_always", "name": "Never"},
    ]);
    let tool = json!({"toolCallId": "t", "title": title, "kind": "execute", "rawInput": {"command": "rm -r x\u{202e}", "cwd": "/p"}});
    let params = json!({"sessionId": "s", "options": options, "toolCall": tool});
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params})
}

/// The approvals that the adapter reports, besides events.
fn requested(acp: &mut Acp) -> Vec<(RequestKey, Approval)> {
    let news = events(acp).into_iter().filter_map(|news| match news {
        AdapterEvent::Requested { request, approval } => Some((request, *approval)),
        _ => None,
    });
    news.collect()
}

#[test]
fn r36_a_permission_request_waits_for_its_answer() {
    use bowline_proto::agent::approval::{ApprovalKind, OptionKind};
    for (answer, outcome) in [
        (Answer::Chosen("yes".into()), json!({"outcome": "selected", "optionId": "yes"})),
        (Answer::Denied { option: None, reason: Some("no".into()) }, json!({"outcome": "selected", "optionId": "no"})),
        (
            Answer::Denied { option: Some("never".into()), reason: None },
            json!({"outcome": "selected", "optionId": "never"}),
        ),
        (Answer::Cancelled, json!({"outcome": "cancelled"})),
    ] {
        let mut acp = prompted();
        receive(&mut acp, permission(0, "rm\u{1b}[1m"));
        assert!(written(&mut acp).is_empty(), "it waits");
        let (request, approval) = requested(&mut acp).pop().unwrap();
        assert_eq!(
            (approval.run, approval.kind, approval.tool.as_str()),
            (Some(RUN), ApprovalKind::Permission, "execute")
        );
        assert_eq!((approval.title.as_str(), approval.detail.cwd.as_deref()), ("rm\\u{1b}[1m", Some("/p")));
        assert_eq!(approval.detail.command.as_deref(), Some("rm -r x\\u{202e}"), "nothing in it is hidden");
        let kinds: Vec<OptionKind> = approval.options.iter().map(|option| option.kind).collect();
        use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};
        assert_eq!(kinds, [AllowAlways, AllowOnce, RejectOnce, Unknown, RejectAlways]);
        assert!(approval.options[0].effect.is_some() && approval.options[1].effect.is_none());
        acp.answer(request, &answer);
        acp.answer(request, &answer);
        let answers = written(&mut acp);
        assert_eq!(
            (answers.len(), &answers[0]["id"], &answers[0]["result"]["outcome"]),
            (1, &json!(0), &outcome),
            "once"
        );
    }
}

#[test]
fn r36_a_request_that_the_agent_takes_back_is_withdrawn() {
    let mut acp = prompted();
    receive(&mut acp, permission(5, "ls"));
    let (request, _) = requested(&mut acp).pop().unwrap();
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 5}});
    receive(&mut acp, cancel.clone());
    assert_eq!(events(&mut acp), [AdapterEvent::Withdrawn(request)]);
    assert_eq!(written(&mut acp)[0]["error"]["code"], CANCELLED);
    receive(&mut acp, cancel);
    acp.answer(request, &Answer::Cancelled);
    assert!(events(&mut acp).is_empty() && written(&mut acp).is_empty(), "once");
}

#[test]
fn r36_a_question_is_a_form_whose_answers_have_their_types() {
    let mut acp = prompted();
    let properties = json!({
        "colour": {"type": "string", "title": "Colour", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
        "sizes": {"type": "array", "items": {"enum": ["S", "L"]}}, "count": {"type": "integer"}, "sure": {"type": "boolean"},
        "other": {"type": "string", "description": "Anything else"},
    });
    let params =
        json!({"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": properties}});
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}));
    let (request, approval) = requested(&mut acp).pop().unwrap();
    let questions = json!(approval.questions);
    assert_eq!(
        questions[0],
        json!({"id": "colour", "text": "Colour", "options": [{"label": "Red"}, {"label": "Blue"}], "multi": false, "free": false})
    );
    assert_eq!((&questions[2]["id"], &questions[2]["free"]), (&json!("other"), &json!(true)));
    let answers =
        json!({"colour": ["Blue"], "sizes": ["S", "L"], "count": ["3"], "sure": ["true"], "other": ["no"], "x": ["y"]});
    acp.answer(request, &Answer::Answers(serde_json::from_value(answers).unwrap()));
    let content = json!({"colour": "b", "sizes": ["S", "L"], "count": 3, "sure": true, "other": "no"});
    assert_eq!(written(&mut acp)[0]["result"], json!({"action": "accept", "content": content}));
    receive(
        &mut acp,
        json!({"jsonrpc": "2.0", "id": 8, "method": "elicitation/create", "params": {"mode": "url", "message": "go"}}),
    );
    assert_eq!(written(&mut acp)[0]["result"]["action"], "decline");
}

#[test]
fn r52_options_that_the_table_of_agents_does_not_allow_are_left_out() {
    let ids = |policy: ModePolicy, kind: &str, offered: &[(&str, &str)]| -> Vec<String> {
        let mut acp = prompted();
        acp.config.mode_policy = policy;
        let modes = json!([{"value": "acceptEdits"}, {"value": "default"}, {"value": "plan"}]);
        let options = json!([{"id": "mode", "category": "mode", "currentValue": "plan", "options": modes}]);
        update(&mut acp, json!({"sessionUpdate": "config_option_update", "configOptions": options}));
        let option = |(id, kind): &(&str, &str)| json!({"optionId": id, "kind": kind, "name": id});
        let options: Vec<Value> = offered.iter().map(option).collect();
        let params = json!({"options": options, "toolCall": {"toolCallId": "t", "kind": kind}});
        receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params}));
        let approval = requested(&mut acp).pop().unwrap().1;
        approval.options.into_iter().map(|option| option.id).collect()
    };
    let plan = [
        ("exit-plan-default", "allow_once"),
        ("exit-plan-auto", "allow_always"),
        ("exit-plan-clear-auto", "allow_always"),
        ("exit-plan-bypassPermissions", "allow_always"),
        ("exit-plan-clear-bypass_permissions", "allow_always"),
        ("acceptEdits", "allow_always"),
        ("implement_plan", "allow_once"),
        ("plan", "reject_once"),
    ];
    let listed = |modes: &[&str]| Some(modes.iter().map(|mode| (*mode).to_owned()).collect());
    let only_default = ModePolicy { modes: listed(&["default"]), allow_bypass: false };
    assert_eq!(ids(only_default.clone(), "switch_mode", &plan), ["exit-plan-default", "implement_plan", "plan"]);
    let all: Vec<&str> = plan.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids(ModePolicy::default(), "switch_mode", &plan), [&all[..3], &all[5..]].concat());
    assert_eq!(ids(ModePolicy { modes: None, allow_bypass: true }, "switch_mode", &plan), all);
    let other = [("yolo", "allow_always"), ("acceptEdits", "allow_always"), ("once", "allow_once")];
    assert_eq!(ids(only_default, "execute", &other), ["acceptEdits", "once"], "only a plan switches modes");
}

/// As Cursor's documentation describes them; the program could not be tried.
#[test]
fn r36_the_requests_of_cursor_are_approvals() {
    let ask = |acp: &mut Acp, method: &str, params: Value| {
        receive(acp, json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params}));
        requested(acp).pop()
    };
    let options =
        json!([{"id": "r", "label": "Red"}, {"id": "b", "label": "Blue"}, {"id": "x", "label": "B\u{202e}lue"}]);
    let question = json!({"toolCallId": "t", "title": "Colours", "questions":
        [{"id": "q", "prompt": "Which?", "options": options, "allowMultiple": true}]});
    let mut acp = prompted_as("cursor-agent");
    let (request, approval) = ask(&mut acp, "cursor/ask_question", question.clone()).unwrap();
    assert_eq!(json!(approval.questions)[0]["options"], json!([{"label": "Red"}, {"label": "Blue"}]));
    acp.answer(request, &Answer::Answers([("q".to_owned(), vec!["Blue".to_owned()])].into()));
    let answers = json!([{"questionId": "q", "selectedOptionIds": ["b"]}]);
    assert_eq!(written(&mut acp)[0]["result"], json!({"outcome": {"outcome": "answered", "answers": answers}}));
    let plan = json!({"toolCallId": "t", "name": "Do it", "plan": "# Steps"});
    for (answer, outcome) in [
        (Answer::Chosen("accepted".into()), "accepted"),
        (Answer::Denied { option: None, reason: None }, "rejected"),
        (Answer::Denied { option: Some("rejected".into()), reason: None }, "rejected"),
        (Answer::Cancelled, "cancelled"),
    ] {
        let (request, approval) = ask(&mut acp, "cursor/create_plan", plan.clone()).unwrap();
        assert_eq!((approval.title.as_str(), approval.detail.text.as_deref()), ("Do it", Some("# Steps")));
        acp.answer(request, &answer);
        assert_eq!(written(&mut acp)[0]["result"]["outcome"]["outcome"], outcome);
    }
    receive(
        &mut acp,
        json!({"jsonrpc": "2.0", "id": 10, "method": "cursor/update_todos", "params": {"todos": [{"content": "a"}]}}),
    );
    assert_eq!(written(&mut acp)[0]["result"], json!({}));
    assert_eq!(recorded(&mut acp)[0]["entries"], json!([{"content": "a"}]));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 11, "method": "cursor/other", "params": {}}));
    assert_eq!(written(&mut acp)[0]["result"], json!({"outcome": {"outcome": "cancelled"}}));
    let mut other = prompted();
    assert!(ask(&mut other, "cursor/ask_question", question).is_none(), "no other agent has them");
    assert_eq!(written(&mut other)[0]["error"]["code"], NO_METHOD);
}

#[test]
fn r36_edits_and_plans_say_what_they_are() {
    use bowline_proto::agent::approval::ApprovalKind;
    let mut acp = prompted();
    let ask = |acp: &mut Acp, tool: Value| {
        let params = json!({"sessionId": "s", "options": [], "toolCall": tool});
        receive(acp, json!({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params}));
        requested(acp).pop().unwrap().1
    };
    let old = "1\n2\n3\n4\nold\n5\n6\n7\n8\n";
    let content =
        json!([{"type": "diff", "path": "/p/f", "oldText": old, "newText": old.replace("old", "new\nnewer")}]);
    let edit = ask(&mut acp, json!({"toolCallId": "t", "title": "edit", "kind": "edit", "content": content}));
    let expected = "--- /p/f\n+++ /p/f\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-old\n+new\n+newer\n 5\n 6\n 7\n";
    assert_eq!(edit.detail.diff.as_deref(), Some(expected));
    let new = json!([{"type": "diff", "path": "/n", "oldText": null, "newText": "a\n"}]);
    let new = ask(&mut acp, json!({"toolCallId": "t", "content": new}));
    assert_eq!(new.detail.diff.as_deref(), Some("--- /n\n+++ /n\n@@ -1,0 +1,1 @@\n+a\n"));
    let plan = json!({"toolCallId": "t", "kind": "switch_mode", "rawInput": {"plan": "# Plan"}});
    let plan = ask(&mut acp, plan);
    assert_eq!((plan.kind, plan.detail.text.as_deref()), (ApprovalKind::Plan, Some("# Plan")));
    let long = ask(&mut acp, json!({"toolCallId": "t", "rawInput": {"command": "x".repeat(100_000)}}));
    assert!(long.truncated && long.detail.command.unwrap().len() <= 8 << 10);
    let hidden = format!("ls{}; rm -rf /", "\u{1b}".repeat(1400));
    assert!(ask(&mut acp, json!({"toolCallId": "t", "rawInput": {"command": hidden}})).truncated, "escapes count");
    let list = ask(&mut acp, json!({"toolCallId": "t", "rawInput": {"command": ["rm", 7, "a b", "it's", "-r"]}}));
    assert_eq!(list.detail.command.as_deref(), Some(r"rm 7 'a b' 'it'\''s' -r"));
}
