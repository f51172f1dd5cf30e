//! The ACP adapter, line by line. The messages have the shapes that Gemini, opencode and others send.

mod approvals;
mod attachments;
mod blobs;
mod hostile;
mod settings;

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
        AdapterEvent::Event(event) | AdapterEvent::LongOutput { event, .. } => event,
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
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] }, &[]);
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
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] }, &[]);
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
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] }, &[]);
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
            json!({"type": "tool_call", "run": "r3", "call": "t1", "name": "execute", "kind": "execute", "title": "ls", "status": "pending",
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

/// An adapter whose agent calls itself this, and has a prompt.
fn prompted_as(agent: &str) -> Acp {
    let mut acp = adapter(None, None);
    let meta = json!({"steering": {"supported": true}});
    let result = json!({"protocolVersion": 1, "agentInfo": {"name": agent}, "_meta": meta});
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 0, "result": result}));
    receive(&mut acp, json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}));
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] }, &[]);
    written(&mut acp);
    events(&mut acp);
    acp
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
    acp.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] }, &[]);
    update(&mut acp, chunk("now"));
    assert_eq!(recorded(&mut acp)[0]["delta"], "now");
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
