//! The adapter for Claude Code, line by line: what the captured streams do not show.

mod approvals;
mod attachments;
mod blobs;
mod hostile;
mod texts;
mod turns;

use std::path::PathBuf;

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::approval::{Answers, Approval, ApprovalKind, OptionKind};
use bowline_proto::agent::config::OptionValue;

use super::*;
use crate::agent::details::{MAX_DETAIL, MAX_SHORT};
use crate::agent::merge_deltas;

const RUN: RunId = RunId(3);
const OWN: RunId = RunId(9);

fn config() -> AdapterConfig {
    AdapterConfig {
        cwd: PathBuf::from("/project"),
        conversation: None,
        may_start_anew: false,
        mode: None,
        model: None,
        mode_policy: ModePolicy::default(),
        random: [7; 16],
        runs_as_root: false,
    }
}

fn written(claude: &mut Claude) -> Vec<Value> {
    std::iter::from_fn(|| claude.poll_write()).map(|line| serde_json::from_str(&line).unwrap()).collect()
}

fn events(claude: &mut Claude) -> Vec<AdapterEvent> {
    std::iter::from_fn(|| claude.poll_event()).collect()
}

fn recorded(claude: &mut Claude) -> Vec<Value> {
    let event = |news| match news {
        AdapterEvent::Event(event) | AdapterEvent::LongOutput { event, .. } => Some(event),
        _ => None,
    };
    merge_deltas(events(claude).into_iter().filter_map(event).collect()).into_iter().map(|event| json!(event)).collect()
}

fn receive(claude: &mut Claude, message: Value) {
    claude.handle_line(message.to_string().as_bytes());
}

fn responded(claude: &mut Claude, id: &str, response: Value) {
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    receive(claude, json!({"type": "control_response", "response": response}));
}

fn refused(claude: &mut Claude, id: &str) {
    let response = json!({"subtype": "error", "request_id": id, "error": "no such thing"});
    receive(claude, json!({"type": "control_response", "response": response}));
}

fn ready(config: AdapterConfig) -> Claude {
    let mut claude = Claude::new(config);
    let models = json!([
        {"value": "default", "resolvedModel": "opus-5", "supportedEffortLevels": ["low", "high"]},
        {"value": "opus", "resolvedModel": "opus-5", "displayName": "Opus"},
    ]);
    responded(&mut claude, "bowline-1", json!({"models": models, "current_permission_mode": "default"}));
    written(&mut claude);
    events(&mut claude);
    claude
}

fn prompt(claude: &mut Claude, run: RunId) -> String {
    claude.prompt(run, &Prompt { text: "hi".into(), attachments: vec![] }, &[]);
    written(claude).pop().unwrap()["uuid"].as_str().unwrap().to_owned()
}

/// An adapter whose agent works at [`RUN`], and the id of its prompt.
fn prompted() -> (Claude, String) {
    let mut claude = ready(config());
    let message = prompt(&mut claude, RUN);
    lifecycle(&mut claude, &message, "queued");
    lifecycle(&mut claude, &message, "started");
    init(&mut claude);
    events(&mut claude);
    (claude, message)
}

fn init(claude: &mut Claude) {
    let session = claude.conversation.clone();
    receive(claude, json!({"type": "system", "subtype": "init", "session_id": session, "model": "opus-5"}));
}

fn lifecycle(claude: &mut Claude, message: &str, state: &str) {
    receive(claude, json!({"type": "command_lifecycle", "command_uuid": message, "state": state}));
}

fn result(answers: Option<&str>, more: Value) -> Value {
    let mut result = json!({"type": "result", "subtype": "success", "is_error": false, "stop_reason": "end_turn",
        "terminal_reason": "completed", "result": ""});
    if let Some(message) = answers {
        result["user_message_uuids"] = json!([message]);
    }
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    result
}

fn ends(claude: &mut Claude) -> Vec<(RunId, End)> {
    let end = |news| if let AdapterEvent::Ended { run, end } = news { Some((run, end)) } else { None };
    events(claude).into_iter().filter_map(end).collect()
}

fn success() -> End {
    End { success: true, stop_reason: Some("end_turn".into()), ..End::default() }
}

fn text(claude: &mut Claude, delta: &str) {
    let event = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": delta}});
    receive(claude, json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}));
}

fn request(claude: &mut Claude, id: &str, tool: &str, more: Value) -> (RequestKey, Approval) {
    let mut request = json!({"subtype": "can_use_tool", "tool_name": tool, "tool_use_id": "t1"});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    receive(claude, json!({"type": "control_request", "request_id": id, "request": request}));
    match events(claude).pop() {
        Some(AdapterEvent::Requested { request, approval }) => (request, *approval),
        other => panic!("{other:?}"),
    }
}

fn answered(claude: &mut Claude, request: RequestKey, answer: &Answer) -> Value {
    claude.answer(request, answer);
    written(claude).pop().unwrap()["response"]["response"].clone()
}

#[test]
fn r32_a_new_conversation_has_the_id_that_the_program_is_started_with() {
    let arguments = arguments(&config());
    let id = arguments.last().unwrap();
    assert_eq!(arguments[arguments.len() - 2], "--session-id");
    let mut claude = Claude::new(config());
    assert_eq!(recorded(&mut claude), [json!({"type": "conversation", "id": id})]);
    let first = written(&mut claude);
    assert_eq!(first[0]["request"], json!({"subtype": "initialize", "hooks": null}));
}

#[test]
fn the_arguments_follow_the_configuration() {
    let resumed = AdapterConfig { conversation: Some("--help".into()), ..config() };
    assert_eq!(arguments(&resumed).last().unwrap(), "--resume=--help", "it cannot be taken for an option");
    let resumed = AdapterConfig { conversation: Some("id".into()), ..config() };
    assert!(arguments(&resumed).ends_with(&["--resume".to_owned(), "id".to_owned()]));
    let flag = "--allow-dangerously-skip-permissions".to_owned();
    assert!(!arguments(&config()).contains(&flag));
    let mode_policy = ModePolicy { modes: None, allow_bypass: true };
    let bypass = AdapterConfig { mode_policy, ..config() };
    assert!(arguments(&bypass).contains(&flag));
    let root = AdapterConfig { runs_as_root: true, ..bypass };
    assert!(!arguments(&root).contains(&flag), "as root, the program would not start");
}

#[test]
fn mode_and_model_are_set_before_the_first_prompt_and_a_refused_model_is_a_notice() {
    let mut claude = Claude::new(AdapterConfig { mode: Some("plan".into()), model: Some("opus".into()), ..config() });
    responded(&mut claude, "bowline-1", json!({"current_permission_mode": "default"}));
    let requests: Vec<Value> = written(&mut claude).into_iter().map(|line| line["request"].clone()).collect();
    assert_eq!(
        requests[1..],
        [json!({"subtype": "set_permission_mode", "mode": "plan"}), json!({"subtype": "set_model", "model": "opus"})]
    );
    refused(&mut claude, "bowline-3");
    assert!(!events(&mut claude).contains(&AdapterEvent::Ready));
    responded(&mut claude, "bowline-2", json!({"mode": "plan"}));
    let mut news = events(&mut claude);
    assert_eq!(news.pop(), Some(AdapterEvent::Ready));
    let Some(AdapterEvent::Event(AgentEvent::Config(config))) = news.pop() else { panic!("{news:?}") };
    assert_eq!(config.modes.unwrap().current.as_deref(), Some("plan"));
    assert_eq!(config.models.unwrap().current.as_deref(), Some("default"));
}

#[test]
fn an_agent_that_refuses_the_mode_is_not_used_in_another_one() {
    let mut claude = Claude::new(AdapterConfig { mode: Some("plan".into()), model: Some("opus".into()), ..config() });
    responded(&mut claude, "bowline-1", json!({"current_permission_mode": "default"}));
    refused(&mut claude, "bowline-2");
    responded(&mut claude, "bowline-3", json!({"model": "opus-5"}));
    let mut news = events(&mut claude);
    let Some(AdapterEvent::Unusable(error)) = news.pop() else { panic!("{news:?}") };
    assert_eq!(error.code, "mode_refused");
    assert_eq!(error.message, "the agent refused the mode plan: no such thing; set another one");
    assert!(!news.contains(&AdapterEvent::Ready) && !claude.controls.is_ready());
}

#[test]
fn what_is_set_while_the_agent_starts_replaces_the_configuration() {
    let mut claude = Claude::new(AdapterConfig { mode: Some("plan".into()), model: Some("opus".into()), ..config() });
    written(&mut claude);
    events(&mut claude);
    let option = Some(OptionValue { id: "effort".into(), value: "high".into() });
    claude.set(&Settings { mode: Some("acceptEdits".into()), model: Some("haiku".into()), option });
    claude.set(&Settings { mode: Some("bypassPermissions".into()), ..Settings::default() });
    assert_eq!(written(&mut claude).len(), 0);
    let notices: Vec<Value> = recorded(&mut claude).into_iter().map(|event| event["text"].clone()).collect();
    assert_eq!(
        notices,
        ["effort was not set: the agent is still starting", "the mode bypassPermissions is not allowed"]
    );
    responded(&mut claude, "bowline-1", json!({"current_permission_mode": "default"}));
    let requests: Vec<Value> = written(&mut claude).into_iter().map(|line| line["request"].clone()).collect();
    let mode = json!({"subtype": "set_permission_mode", "mode": "acceptEdits"});
    assert_eq!(requests, [mode, json!({"subtype": "set_model", "model": "haiku"})]);
}

#[test]
fn a_mode_that_the_agent_chooses_itself_has_to_be_allowed() {
    let warnings = |claude: &mut Claude| recorded(claude).iter().filter(|event| event["level"] == "warning").count();
    let policies = [(None, Some("default")), (Some(vec!["plan".to_owned()]), Some("plan")), (Some(vec![]), None)];
    for (modes, expected) in policies {
        let mode_policy = ModePolicy { modes, allow_bypass: false };
        let mut claude = Claude::new(AdapterConfig { mode_policy, ..config() });
        written(&mut claude);
        responded(&mut claude, "bowline-1", json!({"current_permission_mode": "bypassPermissions"}));
        let set = written(&mut claude).pop().map(|line| line["request"]["mode"].clone());
        assert_eq!(set, expected.map(|mode| json!(mode)));
        assert_eq!(warnings(&mut claude), 1);
    }
    let (mut claude, _) = prompted();
    for (mode, expected) in [("plan", 0), ("bypassPermissions", 1), ("bypassPermissions", 0), ("default", 0)] {
        receive(&mut claude, json!({"type": "system", "subtype": "status", "permissionMode": mode}));
        assert_eq!(warnings(&mut claude), expected, "{mode}");
    }
    receive(&mut claude, json!({"type": "system", "subtype": "init", "permissionMode": "dontAsk"}));
    assert_eq!(warnings(&mut claude), 1);
}

#[test]
fn r32_a_program_that_cannot_start_says_why() {
    let failed = json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
        "errors": ["No conversation found with session ID: x"]});
    let mut claude = Claude::new(AdapterConfig { conversation: Some("x".into()), ..config() });
    receive(&mut claude, failed.clone());
    assert_eq!(events(&mut claude).pop(), Some(AdapterEvent::UnknownConversation));
    let mut claude = Claude::new(config());
    receive(&mut claude, failed);
    let Some(AdapterEvent::Unusable(error)) = events(&mut claude).pop() else { panic!() };
    assert_eq!(error.code, "agent_failed");
    let mut claude = Claude::new(config());
    refused(&mut claude, "bowline-1");
    let Some(AdapterEvent::Unusable(error)) = events(&mut claude).pop() else { panic!() };
    assert_eq!(error.message, "the agent refused to start: no such thing");
}

#[test]
fn another_conversation_than_expected_is_recorded() {
    let (mut claude, _) = prompted();
    receive(&mut claude, json!({"type": "system", "subtype": "init", "session_id": "forked"}));
    assert!(recorded(&mut claude).contains(&json!({"type": "conversation", "id": "forked"})));
    let long = "x".repeat(MAX_SHORT + 1);
    receive(&mut claude, json!({"type": "system", "subtype": "init", "session_id": long}));
    assert_eq!(claude.conversation, "forked");
}
