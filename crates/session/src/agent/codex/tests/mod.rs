//! The adapter of Codex, line by line: what the captured streams do not show.

use std::path::PathBuf;

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::approval::{Approval, OptionKind};
use bowline_proto::agent::config::OptionValue;
use bowline_proto::agent::event::AgentEvent;
use bowline_proto::agent::run::End;

use super::*;
use crate::agent::details::{MAX_CONTENT, MAX_DETAIL};
use crate::agent::news::MAX_NOISE;
use crate::agent::{AdapterEvent, merge_deltas};

mod attachments;
mod blobs;
mod hostile;
mod items;
mod requests;
mod settings;
mod start;
mod turns;

const RUN: RunId = RunId(3);

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

fn written(codex: &mut Codex) -> Vec<Value> {
    std::iter::from_fn(|| codex.poll_write()).map(|line| serde_json::from_str(&line).unwrap()).collect()
}

fn methods(codex: &mut Codex) -> Vec<String> {
    written(codex).iter().map(|message| message["method"].as_str().unwrap_or("response").to_owned()).collect()
}

fn news(codex: &mut Codex) -> Vec<AdapterEvent> {
    std::iter::from_fn(|| codex.poll_event()).collect()
}

fn recorded(codex: &mut Codex) -> Vec<Value> {
    let events = news(codex).into_iter().map(|news| match news {
        AdapterEvent::Event(event) | AdapterEvent::LongOutput { event, .. } => event,
        other => panic!("{other:?}"),
    });
    merge_deltas(events.collect()).into_iter().map(|event| json!(event)).collect()
}

fn receive(codex: &mut Codex, message: Value) {
    codex.handle_line(message.to_string().as_bytes());
}

fn notify(codex: &mut Codex, method: &str, mut params: Value) {
    if params["threadId"].is_null() {
        params["threadId"] = json!("t");
    }
    receive(codex, json!({"method": method, "params": params}));
}

/// Answers the requests until the thread is open. The adapter's next request has the id 4.
fn open(codex: &mut Codex) {
    receive(codex, json!({"id": 0, "result": {}}));
    receive(codex, json!({"id": 1, "result": {"account": null, "requiresOpenaiAuth": false}}));
    let sandbox = json!({"type": "workspaceWrite", "writableRoots": ["/more"]});
    receive(codex, json!({"id": 2, "result": {"thread": {"id": "t"}, "model": "m", "sandbox": sandbox}}));
    receive(codex, json!({"id": 3, "result": {"data": [model("m"), model("n")]}}));
}

fn model(id: &str) -> Value {
    let efforts = json!([{"reasoningEffort": "low", "description": ""}, {"reasoningEffort": id, "description": ""}]);
    json!({"id": id, "displayName": id, "supportedReasoningEfforts": efforts, "defaultReasoningEffort": "low"})
}

fn opened(config: AdapterConfig) -> Codex {
    let mut codex = Codex::new(config);
    open(&mut codex);
    written(&mut codex);
    news(&mut codex);
    codex
}

fn prompt(codex: &mut Codex) {
    codex.prompt(RUN, &Prompt { text: "hi".into(), attachments: vec![] }, &[]);
}

/// An adapter whose Codex is in the turn `u`.
fn prompted() -> Codex {
    let mut codex = opened(config());
    prompt(&mut codex);
    receive(&mut codex, json!({"id": 4, "result": {"turn": {"id": "u", "status": "inProgress"}}}));
    notify(&mut codex, "turn/started", json!({"turn": {"id": "u", "status": "inProgress"}}));
    written(&mut codex);
    news(&mut codex);
    codex
}

fn complete(codex: &mut Codex, turn: &str, status: &str) {
    notify(codex, "turn/completed", json!({"turn": {"id": turn, "status": status, "error": null}}));
}

fn ends(codex: &mut Codex) -> Vec<End> {
    let end = |news| if let AdapterEvent::Ended { run: RUN, end } = news { Some(end) } else { None };
    news(codex).into_iter().filter_map(end).collect()
}

fn requested(codex: &mut Codex) -> Vec<(RequestKey, Approval)> {
    let request = |news| match news {
        AdapterEvent::Requested { request, approval } => Some((request, *approval)),
        _ => None,
    };
    news(codex).into_iter().filter_map(request).collect()
}

fn item(codex: &mut Codex, method: &str, item: Value) {
    notify(codex, method, json!({"item": item, "turnId": "u"}));
}
