//! The ACP adapter, line by line. The messages have the shapes that Gemini, opencode and others send.

use std::path::PathBuf;

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::approval::Approval;
use bowline_proto::agent::run::End;

use super::requests::CANCELLED;
use super::*;
use crate::agent::details::{MAX_CONTENT, MAX_DETAIL, MAX_SHORT};
use crate::agent::news::MAX_NOISE;
use crate::agent::rpc::NO_METHOD;
use crate::agent::{AdapterEvent, merge_deltas};

const RUN: RunId = RunId(3);

fn adapter(conversation: Option<&str>, mode: Option<&str>) -> Acp {
    let config = AdapterConfig {
        cwd: PathBuf::from("/project"),
        conversation: conversation.map(ToOwned::to_owned),
        may_start_anew: false,
        mode: mode.map(ToOwned::to_owned),
        model: None,
        mode_policy: ModePolicy::default(),
        random: [7; 16],
        runs_as_root: false,
    };
    Acp::new(config)
}

/// What the adapter writes, as the methods of requests and notifications, or the id of a response.
fn written(acp: &mut Acp) -> Vec<Value> {
    std::iter::from_fn(|| acp.poll_write()).map(|line| serde_json::from_str(&line).unwrap()).collect()
}

fn methods(acp: &mut Acp) -> Vec<String> {
    written(acp).iter().map(|message| message["method"].as_str().unwrap_or("response").to_owned()).collect()
}

fn events(acp: &mut Acp) -> Vec<AdapterEvent> {
    std::iter::from_fn(|| acp.poll_event()).collect()
}

fn recorded(acp: &mut Acp) -> Vec<Value> {
    let events = events(acp).into_iter().map(|news| match news {
        AdapterEvent::Event(event) => event,
        other => panic!("{other:?}"),
    });
    merge_deltas(events.collect()).into_iter().map(|event| json!(event)).collect()
}

fn receive(acp: &mut Acp, message: Value) {
    acp.handle_line(message.to_string().as_bytes());
}

fn update(acp: &mut Acp, update: Value) {
    receive(acp, json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}));
}

fn initialized(load: bool) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": load}}})
}

/// An adapter whose agent has a prompt.
fn prompted() -> Acp {
    let mut acp = adapter(None, None);
    receive(&mut acp, initialized(true));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s", "modes": {}}}));
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] });
    written(&mut acp);
    events(&mut acp);
    acp
}

#[test]
fn r32_a_new_conversation_is_started_and_gets_its_prompt() {
    let mut acp = adapter(None, Some("plan"));
    assert_eq!(methods(&mut acp), ["initialize"]);
    receive(&mut acp, initialized(false));
    let new = written(&mut acp);
    assert_eq!(new[0]["params"], json!({"cwd": "/project", "mcpServers": []}));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}));
    assert_eq!(written(&mut acp)[0]["params"], json!({"sessionId": "s", "modeId": "plan"}));
    let conversation = AdapterEvent::Event(AgentEvent::Conversation { id: "s".into() });
    assert_eq!(events(&mut acp), [conversation], "not ready before the mode is set");
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    match events(&mut acp).as_slice() {
        [AdapterEvent::Event(AgentEvent::Config(config)), AdapterEvent::Ready] => {
            assert_eq!(config.modes.as_ref().unwrap().current.as_deref(), Some("plan"));
        }
        other => panic!("{other:?}"),
    }
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] });
    let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]});
    assert_eq!(written(&mut acp)[0]["params"], prompt);
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}));
    let end = End { success: true, stop_reason: Some("end_turn".into()), ..End::default() };
    assert_eq!(events(&mut acp), [AdapterEvent::Ended { run: RUN, end }]);
}

/// The journal has the history already.
#[test]
fn r40_what_an_agent_replays_of_a_loaded_conversation_is_dropped() {
    let mut acp = adapter(Some("old"), None);
    receive(&mut acp, initialized(true));
    assert_eq!(written(&mut acp)[1]["params"]["sessionId"], "old");
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    update(&mut acp, chunk("earlier"));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    // Gemini goes on replaying after its answer.
    update(&mut acp, chunk("earlier"));
    update(&mut acp, json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "earlier"}));
    let conversation = AdapterEvent::Event(AgentEvent::Conversation { id: "old".into() });
    assert_eq!(events(&mut acp), [conversation, AdapterEvent::Ready]);
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] });
    update(&mut acp, chunk("now"));
    assert_eq!(recorded(&mut acp)[0]["delta"], "now");
}

#[test]
fn r32_an_agent_that_cannot_be_used_says_why() {
    let unusable = |acp: &mut Acp| match events(acp).pop() {
        Some(AdapterEvent::Unusable(error)) => error.code,
        other => panic!("{other:?}"),
    };
    let mut acp = adapter(None, None);
    receive(&mut acp, initialized(true));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no key"}}));
    assert_eq!(unusable(&mut acp), "not_logged_in");
    let mut acp = adapter(Some("gone"), None);
    receive(&mut acp, initialized(true));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": "not found"}}));
    assert_eq!(unusable(&mut acp), "unknown_conversation");
    let mut acp = adapter(Some("old"), None);
    receive(&mut acp, initialized(false));
    assert_eq!(unusable(&mut acp), "cannot_resume");
    let mut acp = adapter(None, None);
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 2}}));
    assert_eq!(unusable(&mut acp), "agent_failed");
}

#[test]
fn texts_and_tools_become_events_of_the_run() {
    let mut acp = prompted();
    let chunk = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    update(&mut acp, chunk("agent_thought_chunk", "hm"));
    update(&mut acp, chunk("agent_message_chunk", "one "));
    update(&mut acp, chunk("agent_message_chunk", "two"));
    update(
        &mut acp,
        json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ls\u{1b}[1m", "kind": "execute",
        "status": "pending", "rawInput": {"command": "ls"}}),
    );
    update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}));
    update(&mut acp, chunk("agent_message_chunk", "three"));
    update(&mut acp, json!({"sessionUpdate": "session_info_update", "title": "A title"}));
    assert_eq!(
        recorded(&mut acp),
        [
            json!({"type": "thinking", "run": "r3", "block": "r3.1", "delta": "hm"}),
            json!({"type": "text", "run": "r3", "block": "r3.2", "delta": "one two"}),
            json!({"type": "tool_call", "run": "r3", "call": "t1", "kind": "execute", "title": "ls", "status": "pending",
            "input": {"command": "ls"}}),
            json!({"type": "tool_update", "run": "r3", "call": "t1", "status": "completed"}),
            json!({"type": "text", "run": "r3", "block": "r3.3", "delta": "three"}),
            json!({"type": "title", "title": "A title"}),
        ]
    );
}

#[test]
fn r33_late_text_has_no_run_and_a_second_answer_is_only_noted() {
    let mut acp = prompted();
    let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}});
    receive(&mut acp, answer.clone());
    assert_eq!(events(&mut acp).len(), 1);
    receive(&mut acp, answer);
    update(&mut acp, json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "late"}}));
    let recorded = recorded(&mut acp);
    assert_eq!((&recorded[0]["type"], &recorded[0]["level"]), (&json!("notice"), &json!("debug")));
    assert_eq!((&recorded[1]["run"], &recorded[1]["delta"]), (&json!(null), &json!("late")));
}

#[test]
fn r33_only_end_turn_is_a_success() {
    for (answer, reason) in [
        (json!({"result": {"stopReason": "max_tokens"}}), Some("max_tokens")),
        (json!({"result": {"stopReason": "refusal"}}), Some("refusal")),
        (json!({"result": {"stopReason": "from_the_future"}}), Some("from_the_future")),
        (json!({"result": {}}), Some("")),
        (json!({"result": null}), None),
        (json!({"error": {"code": -32603, "message": "broken"}}), None),
        (json!({"error": "odd"}), None),
    ] {
        let mut acp = prompted();
        let mut message = json!({"jsonrpc": "2.0", "id": 2});
        message.as_object_mut().unwrap().append(&mut answer.as_object().unwrap().clone());
        receive(&mut acp, message);
        match events(&mut acp).pop() {
            Some(AdapterEvent::Ended { run: RUN, end }) => {
                assert!(!end.success && end.stop_reason.as_deref() == reason, "{answer}: {end:?}");
            }
            other => panic!("{answer}: {other:?}"),
        }
    }
}

/// An agent may wait for the answer without end.
#[test]
fn r32_every_request_of_an_agent_is_answered() {
    let mut acp = prompted();
    for (id, method) in [(json!(0), "fs/read_text_file"), (json!("x"), "terminal/create"), (json!(2), "craft/other")] {
        receive(&mut acp, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"path": "/etc/passwd"}}));
        let answer = &written(&mut acp)[0];
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(NO_METHOD)), "{method}");
    }
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 10, "method": "session/request_permission", "params": 7}));
    assert_eq!(written(&mut acp)[0]["error"]["code"], -32602);
}

#[test]
fn r52_hostile_lines_are_recorded_and_change_nothing() {
    let mut acp = prompted();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_update =
        format!(r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"plan","entries":{deep}}}}}}}"#);
    let wide = format!(r#"{{"method":"session/update","params":{{"update":{{"x":[{}0]}}}}}}"#, "0,".repeat(2 << 20));
    let lines: [&[u8]; 10] = [
        b"not json",
        b"{}",
        b"[]",
        b"null",
        b"{\"id\":[1,2]}",
        b"{\"id\":99,\"result\":{}}",
        b"\xff\xfe",
        deep.as_bytes(),
        deep_update.as_bytes(),
        wide.as_bytes(),
    ];
    for line in lines {
        acp.handle_line(line);
        let found = events(&mut acp);
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        match found.as_slice() {
            [AdapterEvent::Event(event)] => assert!(json!(event).to_string().len() < 2 * MAX_DETAIL, "{shown}"),
            [AdapterEvent::Noise(line)] => assert!(line.len() <= MAX_NOISE, "{shown}"),
            other => panic!("{shown}: {other:?}"),
        }
    }
    assert!(written(&mut acp).is_empty());
    update(&mut acp, json!({"sessionUpdate": "hologram", "beams": 2}));
    update(&mut acp, json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "x"}}));
    update(&mut acp, json!({"sessionUpdate": "tool_call", "title": "without an id"}));
    assert!(recorded(&mut acp).iter().all(|event| event["type"] == "raw" && event["source"] == "acp"));
}

/// Some JSON parsers accept at most 128 levels, and a client's message has a few more around the event.
#[test]
fn r52_deep_details_become_text() {
    for depth in [60, 70, 120] {
        let mut acp = prompted();
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let update = format!(r#"{{"jsonrpc":"2.0","method":"other","params":{deep}}}"#);
        acp.handle_line(update.as_bytes());
        let found = recorded(&mut acp);
        assert_eq!(found[0]["message"].is_string(), depth > 60, "{depth}");
    }
}

#[test]
fn r52_large_details_are_left_out_and_texts_are_not() {
    let mut acp = prompted();
    let wide = format!("[{}0]", "0,".repeat(600 << 10));
    let line = format!(
        r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"tool_call","toolCallId":"t","title":"big","rawInput":{wide}}}}}}}"#
    );
    acp.handle_line(line.as_bytes());
    let found = recorded(&mut acp);
    assert_eq!(
        (&found[0]["call"], &found[0]["title"], &found[0]["truncated"]),
        (&json!("t"), &json!("big"), &json!(true))
    );
    let long = "y".repeat(1 << 20);
    update(&mut acp, json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": long}}));
    let texts: usize = recorded(&mut acp).iter().map(|event| event["delta"].as_str().unwrap().len()).sum();
    assert_eq!(texts, 1 << 20);
}

#[test]
fn r33_long_words_of_the_agent_are_cut() {
    let mut acp = prompted();
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "x".repeat(600_000)}}));
    let Some(AdapterEvent::Ended { end, .. }) = events(&mut acp).pop() else { panic!("no end") };
    assert_eq!(end.stop_reason.unwrap().len(), MAX_SHORT);
    let mut acp = adapter(None, None);
    receive(&mut acp, initialized(true));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "x".repeat(600_000)}}));
    assert!(matches!(events(&mut acp).pop(), Some(AdapterEvent::Unusable(_))));
}

#[test]
fn r32_a_conversation_that_was_never_stored_is_begun_anew() {
    let mut acp = adapter(Some("lost"), None);
    acp.config.may_start_anew = true;
    receive(&mut acp, initialized(true));
    written(&mut acp);
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": "not found"}}));
    assert_eq!(methods(&mut acp), ["session/new"]);
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "new"}}));
    assert_eq!(events(&mut acp).last(), Some(&AdapterEvent::Ready));
}

#[test]
fn r52_large_details_are_cut() {
    let mut acp = prompted();
    let content = json!([{"type": "content", "content": {"type": "text", "text": "y".repeat(MAX_DETAIL)}}]);
    update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": content}));
    let found = recorded(&mut acp);
    assert_eq!(found[0]["truncated"], true);
    assert_eq!(found[0]["content"].as_str().unwrap().len(), MAX_DETAIL);
}

/// A permission request as Gemini sends it: no tool call came before it.
fn permission(id: u64, title: &str) -> Value {
    let options = json!([
        {"optionId": "always", "kind": "allow_always", "name": "Always"}, {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
        {"optionId": "no", "kind": "reject_once", "name": "No"}, {"optionId": "odd", "kind": "maybe", "name": "?"},
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
        (Answer::Denied { reason: Some("no".into()) }, json!({"outcome": "selected", "optionId": "no"})),
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
        use OptionKind::{AllowAlways, AllowOnce, RejectOnce, Unknown};
        assert_eq!(kinds, [AllowAlways, AllowOnce, RejectOnce, Unknown]);
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

/// An adapter whose agent calls itself this, and has a prompt.
fn prompted_as(agent: &str) -> Acp {
    let mut acp = adapter(None, None);
    let meta = json!({"steering": {"supported": true}});
    let result = json!({"protocolVersion": 1, "agentInfo": {"name": agent}, "_meta": meta});
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 0, "result": result}));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}));
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] });
    written(&mut acp);
    events(&mut acp);
    acp
}

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

/// Gemini answers `session/load` first and replays the history then, while it works on other requests.
#[test]
fn r40_history_that_gemini_replays_after_its_answer_is_dropped() {
    let mut acp = adapter(Some("old"), None);
    let info =
        json!({"protocolVersion": 1, "agentInfo": {"name": "gemini-cli"}, "agentCapabilities": {"loadSession": true}});
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 0, "result": info}));
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    let commands = json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "help"}]});
    update(&mut acp, chunk("earlier"));
    let modes = json!({"currentModeId": "default", "availableModes": [{"id": "default"}]});
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"modes": modes}}));
    let conversation = AdapterEvent::Event(AgentEvent::Conversation { id: "old".into() });
    assert_eq!(events(&mut acp), [conversation], "a prompt would be sent into the replay");
    for n in 0..3 {
        let probe = written(&mut acp).pop().unwrap();
        assert_eq!((&probe["method"], &probe["params"]["modeId"]), (&json!("session/set_mode"), &json!("default")));
        update(&mut acp, chunk("earlier"));
        if n == 0 {
            update(&mut acp, commands.clone());
        }
        receive(&mut acp, json!({"jsonrpc": "2.0", "id": probe["id"], "result": {}}));
        assert!(events(&mut acp).is_empty(), "there was history before the answer, so more may come");
    }
    let probe = written(&mut acp).pop().unwrap();
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": probe["id"], "result": {}}));
    assert!(written(&mut acp).is_empty());
    assert!(matches!(events(&mut acp).as_slice(), [AdapterEvent::Event(AgentEvent::Config(_)), AdapterEvent::Ready]));
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] });
    update(&mut acp, chunk("now"));
    assert_eq!(recorded(&mut acp)[0]["delta"], "now");
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
fn r32_an_agent_that_cannot_resume_starts_anew_if_it_may() {
    let mut acp = adapter(Some("old"), None);
    acp.config.may_start_anew = true;
    written(&mut acp);
    receive(&mut acp, initialized(false));
    assert_eq!(methods(&mut acp), ["session/new"]);
    assert_eq!(recorded(&mut acp)[0]["level"], "warning");
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

#[test]
fn empty_texts_are_not_recorded_and_late_ones_have_blocks_of_their_own() {
    let mut acp = prompted();
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    update(&mut acp, chunk(""));
    assert!(events(&mut acp).is_empty());
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}}));
    events(&mut acp);
    update(&mut acp, chunk("late"));
    assert_eq!(recorded(&mut acp)[0]["block"], "late-07070707.1");
}

#[test]
fn r52_what_is_remembered_is_bounded() {
    let mut acp = prompted();
    for n in 0..300 {
        let change = json!([{"type": "diff", "path": "/f", "oldText": "", "newText": "x\n".repeat(10_000)}]);
        update(&mut acp, json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{n}"), "content": change}));
        update(
            &mut acp,
            json!({"sessionUpdate": "tool_call", "toolCallId": format!("{n}{}", "x".repeat(10_000)),
            "_meta": {"terminal_output_delta": {"data": "x"}}}),
        );
        acp.steer("more");
        events(&mut acp);
        written(&mut acp);
    }
    assert!(acp.pending.len() <= MAX_PENDING);
    assert!(acp.pending.values().any(|request| *request == Request::Prompt(RUN)), "its run needs an end");
    let kept = format!("{:?}", acp.tools).len();
    assert!(kept < 4 << 20, "{kept} bytes");
    let entries = vec![json!({"content": "x".repeat(1000)}); 200];
    update(&mut acp, json!({"sessionUpdate": "plan", "entries": entries}));
    assert!((20..40).contains(&recorded(&mut acp)[0]["entries"].as_array().unwrap().len()), "a list stays one");
}

/// A parsed value takes up to 100 times as much memory.
#[test]
fn r52_a_long_error_is_not_parsed() {
    let long = format!(r#"{{"error":{{"message":"short"}},"x":[{}0]}}"#, "0,".repeat(100_000));
    let mut acp = prompted();
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": long}}));
    let Some(AdapterEvent::Ended { end, .. }) = events(&mut acp).pop() else { panic!("no end") };
    assert!(end.error.unwrap().message.starts_with("{\"error\""));
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

#[test]
fn r33_errors_say_what_kind_they_are() {
    let error = |error: Value| {
        let mut acp = prompted();
        receive(&mut acp, json!({"jsonrpc": "2.0", "id": 2, "error": error}));
        match events(&mut acp).as_slice() {
            [AdapterEvent::Ended { end, .. }] => (end.error.clone().unwrap().code, end.error.clone().unwrap().message),
            other => panic!("{other:?}"),
        }
    };
    let (code, message) = error(json!({"code": 400, "message": "{\"error\":{\"message\":\"bad\"}}"}));
    assert_eq!((code.as_str(), message.as_str()), ("agent_error", "bad"));
    assert_eq!(error(json!({"code": 429, "message": "slow down"})).0, "usage_limit");
    assert_eq!(error(json!({"code": -32603, "message": "x", "data": {"errorKind": "rate_limit"}})).0, "usage_limit");
    assert_eq!(error(json!({"code": -32000, "message": "x"})).0, "not_logged_in");
    assert_eq!(error(json!({"code": 1, "message": "x", "data": {"details": "why"}})).1, "why");
    assert_eq!(error(json!({"code": 1, "message": "x", "data": "y".repeat(MAX_CONTENT)})).1, "an unreadable error");
}

#[test]
fn r52_output_in_pieces_is_shown_when_it_has_doubled_and_cut_in_the_middle() {
    let mut acp = prompted_as("codex-acp");
    let mut events = 0;
    for n in 0..10_000 {
        let delta = json!({"terminal_output_delta": {"data": format!("line {n}\n")}});
        update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "_meta": delta}));
        events += recorded(&mut acp).len();
    }
    assert!(events < 20, "{events} events");
    let exit = json!({"terminal_exit": {"exit_code": 0}});
    let end = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "_meta": exit});
    update(&mut acp, end);
    let last = recorded(&mut acp).pop().unwrap();
    let text = last["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with("line 0\n") && text.ends_with("line 9999\n") && text.contains("bytes left out"), "{text}");
    assert!(text.len() < MAX_DETAIL && last["truncated"] == true);
    for n in 0..1000 {
        let delta = json!({"terminal_output_delta": {"data": "x"}});
        let id = format!("t{n}");
        update(&mut acp, json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "_meta": delta}));
    }
    assert!(format!("{:?}", acp.tools).len() < 1 << 20, "only some calls are kept");
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
        (Answer::Denied { reason: None }, "rejected"),
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
