//! Streams captured from ACP agents: Gemini CLI, opencode, and the adapters of Claude Code and Codex.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::approval::{Answers, Decision, OptionKind};
use bowline_proto::agent::config::{OptionValue, Settings};
use serde_json::{Value, json};

use super::Acp;
use crate::agent::replay::{Captured, Case, Session, Translate, check_program};
use crate::agent::{Adapter, AdapterConfig};

/// Maps the ids of the captured client's requests to those of the adapter.
#[derive(Default)]
struct Ids {
    ours: BTreeMap<i64, i64>,
    /// Requests of the adapter that belong to one of the captured client.
    matched: Vec<i64>,
}

impl Ids {
    /// The adapter's oldest request with one of these methods stands for the captured one with this id.
    fn match_request(&mut self, session: &Session, captured: &Value, methods: &[&str]) {
        let is_meant = |request: &&Value| {
            let method = request["method"].as_str().unwrap_or_default();
            let id = request["id"].as_i64();
            methods.contains(&method) && id.is_some_and(|id| !self.matched.contains(&id))
        };
        let found = session.written.iter().find(is_meant).and_then(|request| request["id"].as_i64());
        if let (Some(ours), Some(theirs)) = (found, captured["id"].as_i64()) {
            self.matched.push(ours);
            self.ours.insert(theirs, ours);
        }
    }
}

impl Ids {
    /// Answers what the adapter sends after a conversation was loaded, which the captured clients did not send.
    fn answer_probes(&mut self, session: &mut Session) {
        let is_load = |request: &Value| request["method"] == "session/load";
        loop {
            let is_probe = |request: &&Value| {
                let id = request["id"].as_i64();
                request["method"] == "session/set_mode" && id.is_some_and(|id| !self.matched.contains(&id))
            };
            let was_loaded = session.written.iter().any(is_load);
            let probe = session.written.iter().find(is_probe).and_then(|request| request["id"].as_i64());
            let Some(id) = probe.filter(|_| was_loaded) else { return };
            self.matched.push(id);
            session.handle_line(json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string().as_bytes());
        }
    }
}

impl Translate for Ids {
    fn adapter(&mut self, case: &Case) -> Box<dyn Adapter> {
        let loaded = case.messages.iter().find_map(|message| match message {
            Captured::FromClient(message) if is_load(message) => message["params"]["sessionId"].as_str(),
            _ => None,
        });
        Box::new(Acp::new(AdapterConfig {
            cwd: PathBuf::from("/home/dev/project"),
            conversation: loaded.map(ToOwned::to_owned),
            may_start_anew: false,
            mode: None,
            model: None,
            mode_policy: ModePolicy::default(),
            random: [7; 16],
            runs_as_root: false,
        }))
    }

    fn from_client(&mut self, session: &mut Session, message: &Value) {
        let params = &message["params"];
        let text = || params["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
        let set = |key: &str| params[key].as_str().map(ToOwned::to_owned);
        self.answer_probes(session);
        const SETTERS: &[&str] = &["session/set_mode", "session/set_model", "session/set_config_option"];
        match message["method"].as_str() {
            Some("session/prompt") => {
                session.prompt(&text());
                self.match_request(session, message, &["session/prompt"]);
            }
            Some("session/cancel") => session.abort(),
            Some("_session/steering") => {
                session.steer(&text());
                self.match_request(session, message, &["_session/steering"]);
            }
            Some("session/set_mode" | "session/set_model" | "session/set_config_option") => {
                let option = set("configId").zip(set("value")).map(|(id, value)| OptionValue { id, value });
                let (mode, model, option) = match option {
                    Some(option) if option.id == "mode" => (Some(option.value), None, None),
                    Some(option) if option.id == "model" => (None, Some(option.value), None),
                    option => (set("modeId"), set("modelId"), option),
                };
                session.set(&Settings { mode, model, option });
                self.match_request(session, message, SETTERS);
            }
            Some("session/load" | "session/resume") => self.match_request(session, message, &["session/load"]),
            Some(method @ ("initialize" | "session/new")) => self.match_request(session, message, &[method]),
            Some(_) => {}
            None => answer(session, &message["result"]),
        }
    }

    fn from_agent(&mut self, _session: &mut Session, message: &Value) -> Option<Value> {
        let mut message = message.clone();
        if message.get("method").is_none() {
            let theirs = message["id"].as_i64()?;
            message["id"] = json!(self.ours.get(&theirs)?);
        }
        Some(message)
    }

    fn unknown(&self) -> Value {
        json!({"jsonrpc": "2.0", "method": "session/hologram", "params": {"beams": 2}})
    }
}

fn is_load(message: &Value) -> bool {
    matches!(message["method"].as_str(), Some("session/load" | "session/resume"))
}

/// Answers the oldest open approval as the captured client did.
fn answer(session: &mut Session, result: &Value) {
    let Some((_, approval)) = session.open.first() else { return };
    let option = result["outcome"]["optionId"].as_str();
    let allows = |id: &&str| {
        let allowing = |kind| matches!(kind, OptionKind::AllowOnce | OptionKind::AllowAlways);
        approval.options.iter().any(|option| option.id == **id && allowing(option.kind))
    };
    let decision = match (option.filter(allows), &result["content"]) {
        (Some(option), _) => Decision::Approve { option: Some(option.to_owned()) },
        (None, Value::Object(content)) => {
            let texts = |value: &Value| match value {
                Value::Array(values) => {
                    values.iter().filter_map(|value| value.as_str().map(ToOwned::to_owned)).collect()
                }
                value => vec![value.as_str().unwrap_or_default().to_owned()],
            };
            let answers: Answers = content.iter().map(|(id, value)| (id.clone(), texts(value))).collect();
            Decision::Answer { answers }
        }
        (None, _) => Decision::Deny { option: None, reason: None },
    };
    let id = approval.id;
    session.decide(|approval| approval.id == id, decision);
}

fn check(program: &str) {
    check_program(program, || Box::new(Ids::default()));
}

#[test]
fn r32_gemini() {
    check("gemini-acp");
}

#[test]
fn r32_opencode() {
    check("opencode-acp");
}

#[test]
fn r32_claude_agent_acp() {
    check("claude-agent-acp");
}

#[test]
fn r32_codex_acp() {
    check("codex-acp");
}
