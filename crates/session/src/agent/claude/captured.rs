//! Streams that were captured from Claude Code, replayed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::approval::{Approval, Decision};
use bowline_proto::agent::config::{OptionValue, Settings};
use serde_json::{Value, json};

use super::{Claude, arguments, ids};
use crate::agent::replay::{Case, Session, Translate, check_program};
use crate::agent::{Adapter, AdapterConfig};

const RANDOM: [u8; 16] = [0x5a; 16];

#[test]
fn captured_streams_of_claude_code() {
    check_program("claude", || Box::new(Client::default()));
}

/// The client that was captured, as far as the adapter does something else.
#[derive(Default)]
struct Client {
    /// Ids of messages and requests that the captured client chose, with those of the adapter.
    ids: BTreeMap<String, String>,
    /// Requests of the agent, with the tool calls that wait for them.
    calls: BTreeMap<String, String>,
    is_resumed: bool,
    is_initialized: bool,
}

fn command_line(case: &Case) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents/claude");
    std::fs::read_to_string(directory.join(format!("{}.cmd", case.name))).unwrap()
}

impl Translate for Client {
    fn adapter(&mut self, case: &Case) -> Box<dyn Adapter> {
        let command = command_line(case);
        let resumed = command.split_once("--resume=").and_then(|(_, rest)| rest.split_whitespace().next());
        self.is_resumed = resumed.is_some();
        // These clients choose modes without approvals. In one case the program was not started for that.
        let allow_bypass = ["bypass", "controls", "dont_ask"].contains(&case.name.as_str());
        let config = AdapterConfig {
            cwd: PathBuf::from("/home/dev/project"),
            conversation: resumed.map(ToOwned::to_owned),
            may_start_anew: false,
            mode: None,
            model: None,
            mode_policy: ModePolicy { modes: None, allow_bypass },
            runs_as_root: false,
            random: RANDOM,
        };
        // The captured program was started as the adapter wants it.
        let is_bypass = |argument: &String| argument.contains("skip-permissions") && case.name != "bypass";
        for argument in arguments(&config).iter().take_while(|argument| *argument != "--session-id") {
            assert!(command.contains(argument) || is_bypass(argument), "{}: {argument} in {command}", case.name);
        }
        Box::new(Claude::new(config))
    }

    fn from_client(&mut self, session: &mut Session, message: &Value) {
        if message["type"] != "control_request" {
            self.initialize(session);
        }
        let before = session.written.len();
        match (message["type"].as_str().unwrap(), message["request"]["subtype"].as_str()) {
            ("user", _) => {
                let text = message["message"]["content"][0]["text"].as_str().unwrap();
                if session.current().is_some() { session.steer(text) } else { session.prompt(text) }
            }
            ("control_response", _) => self.decide(session, &message["response"]),
            // The adapter has sent it already.
            (_, Some("initialize")) => {
                self.ids.insert("init-1".to_owned(), "bowline-1".to_owned());
            }
            (_, Some("interrupt")) => session.abort(),
            (_, Some("set_permission_mode" | "set_model" | "apply_flag_settings")) => {
                let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
                let effort = text(&message["request"]["settings"]["effortLevel"]);
                let option = effort.map(|value| OptionValue { id: "effort".to_owned(), value });
                let (mode, model) = (text(&message["request"]["mode"]), text(&message["request"]["model"]));
                session.set(&Settings { mode, model, option });
            }
            _ => {}
        }
        // What the adapter has just written, or, for `stop_task`, together with an earlier request.
        let is_same = |line: &&Value| {
            line["type"] == message["type"] && line["request"]["subtype"] == message["request"]["subtype"]
        };
        let start = if message["request"]["subtype"] == "stop_task" { 0 } else { before };
        if let Some(line) = session.written[start..].iter().rfind(is_same) {
            for key in ["uuid", "request_id"] {
                if let (Some(captured), Some(own)) = (message[key].as_str(), line[key].as_str()) {
                    self.ids.insert(captured.to_owned(), own.to_owned());
                }
            }
        }
    }

    fn from_agent(&mut self, _session: &mut Session, message: &Value) -> Option<Value> {
        let mut message = message.clone();
        if message["type"] == "control_request" {
            let call = message["request"]["tool_use_id"].as_str().unwrap_or_default();
            self.calls.insert(message["request_id"].as_str()?.to_owned(), call.to_owned());
        }
        if message["type"] == "control_response" {
            let id = message["response"]["request_id"].as_str()?;
            self.is_initialized |= id == "init-1";
            message["response"]["request_id"] = json!(self.ids.get(id)?);
        }
        for key in ["command_uuid", "user_message_uuid"] {
            self.replace(&mut message[key]);
        }
        message["user_message_uuids"].as_array_mut().into_iter().flatten().for_each(|id| self.replace(id));
        if message["session_id"].is_string() && !self.is_resumed {
            message["session_id"] = json!(ids::conversation(RANDOM));
        }
        // `replace` looks at keys that need not exist.
        if let Some(message) = message.as_object_mut() {
            message.retain(|key, value| !(value.is_null() && key.ends_with("_uuid") | key.ends_with("_uuids")));
        }
        Some(message)
    }

    fn unknown(&self) -> Value {
        json!({"type": "from_a_later_version", "session_id": "x"})
    }
}

impl Client {
    fn replace(&self, id: &mut Value) {
        if let Some(own) = id.as_str().and_then(|id| self.ids.get(id)) {
            *id = json!(own);
        }
    }

    /// Some captured clients sent no `initialize`, without which the adapter sends no prompt.
    fn initialize(&mut self, session: &mut Session) {
        if !std::mem::replace(&mut self.is_initialized, true) {
            let response = json!({"subtype": "success", "request_id": "bowline-1", "response": {}});
            session.handle_line(json!({"type": "control_response", "response": response}).to_string().as_bytes());
        }
    }

    fn decide(&self, session: &mut Session, response: &Value) {
        let Some(call) = response["request_id"].as_str().and_then(|id| self.calls.get(id)) else { return };
        let answer = &response["response"];
        let answers = answer["updatedInput"]["answers"].as_object();
        let decision = match (answer["behavior"].as_str(), answers) {
            (Some("deny"), _) => {
                Decision::Deny { option: None, reason: answer["message"].as_str().map(ToOwned::to_owned) }
            }
            (_, Some(answers)) => {
                let list = |answer: &Value| answer.as_str().unwrap().split(", ").map(ToOwned::to_owned).collect();
                let answers = answers.iter().map(|(question, answer)| (question.clone(), list(answer)));
                Decision::Answer { answers: answers.collect() }
            }
            (_, None) if answer["updatedPermissions"].is_array() => {
                Decision::Approve { option: Some("always1".into()) }
            }
            (_, None) => Decision::Approve { option: None },
        };
        session.decide(|approval: &Approval| approval.call.as_ref() == Some(call), decision);
    }
}
