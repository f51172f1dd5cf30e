//! Captured streams as scripts, which a fuzzed session follows more or less.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bowline_host::agents::Protocol;
use serde_json::{Value, json};

use super::Source;
use super::replay::{Captured, cases};

/// A captured stream.
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
    /// All messages that the agent sent by itself.
    pub(super) messages: Vec<Value>,
    /// The conversation that was continued.
    pub(super) conversation: Option<String>,
    protocol: Protocol,
    /// The agent's answers to each method.
    responses: BTreeMap<String, Vec<Value>>,
}

/// What the captured client or the agent did.
#[derive(Clone)]
pub(super) enum Step {
    Prompt(String),
    Abort,
    Decide,
    Print(Value),
    /// A line that is not JSON.
    Noise(String),
    Exit,
}

/// The captured streams of the agents that speak a protocol.
pub(super) fn scripts(protocol: Protocol) -> &'static [Script] {
    static SCRIPTS: [OnceLock<Vec<Script>>; 3] = [const { OnceLock::new() }; 3];
    let (at, programs): (usize, &[&str]) = match protocol {
        Protocol::Claude => (0, &["claude"]),
        Protocol::Codex => (1, &["codex"]),
        Protocol::Acp => (2, &["gemini-acp", "opencode-acp", "claude-agent-acp", "codex-acp"]),
    };
    SCRIPTS[at].get_or_init(|| {
        let cases = programs.iter().flat_map(|program| cases(program));
        let scripts = cases.map(|case| Script::new(protocol, &case.messages));
        scripts.filter(|script| !script.messages.is_empty()).collect()
    })
}

impl Script {
    fn new(protocol: Protocol, captured: &[Captured]) -> Script {
        let (messages, responses) = (Vec::new(), BTreeMap::new());
        let mut script = Script { steps: Vec::new(), messages, conversation: None, protocol, responses };
        // The methods of the client's requests that were not answered.
        let mut methods = BTreeMap::new();
        for message in captured {
            match message {
                Captured::FromClient(message) => script.add_client(message, &mut methods),
                Captured::FromAgent(message) => match methods.remove(&script.answered(message)) {
                    Some(method) => script.responses.entry(method).or_default().push(message.clone()),
                    None => {
                        script.messages.push(message.clone());
                        script.steps.push(Step::Print(message.clone()));
                    }
                },
                Captured::Noise(line) => script.steps.push(Step::Noise(line.clone())),
                Captured::Exit(_) => script.steps.push(Step::Exit),
            }
        }
        script
    }

    fn add_client(&mut self, message: &Value, methods: &mut BTreeMap<String, String>) {
        let (id, method) = match self.protocol {
            Protocol::Claude => (&message["request_id"], &message["request"]["subtype"]),
            Protocol::Acp | Protocol::Codex => (&message["id"], &message["method"]),
        };
        if let Some(method) = method.as_str() {
            methods.insert(id.to_string(), method.to_owned());
        }
        let params = &message["params"];
        let text = |value: &Value| value[0]["text"].as_str().unwrap_or("hi").to_owned();
        self.steps.extend(match (message["type"].as_str(), method.as_str()) {
            (Some("user"), _) => Some(Step::Prompt(text(&message["message"]["content"]))),
            (_, Some("session/prompt")) => Some(Step::Prompt(text(&params["prompt"]))),
            (_, Some("turn/start" | "turn/steer")) => Some(Step::Prompt(text(&params["input"]))),
            (_, Some("interrupt" | "session/cancel" | "turn/interrupt")) => Some(Step::Abort),
            (_, None) => Some(Step::Decide),
            _ => None,
        });
        if let (Some("session/load" | "thread/resume"), id) = (method.as_str(), &params["sessionId"]) {
            self.conversation = id.as_str().or(params["threadId"].as_str()).map(ToOwned::to_owned);
        }
    }

    /// The id of the request that a message of the agent answers.
    fn answered(&self, message: &Value) -> String {
        match self.protocol {
            Protocol::Claude => message["response"]["request_id"].to_string(),
            Protocol::Acp | Protocol::Codex if message["method"].is_null() => message["id"].to_string(),
            Protocol::Acp | Protocol::Codex => "none".to_owned(),
        }
    }

    /// An answer to the adapter's request with this id, as the agent gave it here or in another stream.
    pub(super) fn response(&self, method: &str, id: &Value, source: &mut Source<'_>) -> Value {
        let others = || scripts(self.protocol).iter().find_map(|script| script.responses.get(method));
        let known = self.responses.get(method).or_else(others);
        let mut message = match known {
            Some(known) => known[source.below(known.len())].clone(),
            None if self.protocol == Protocol::Claude => {
                json!({"type": "control_response", "response": {"subtype": "success", "response": {}}})
            }
            None => json!({"result": {}}),
        };
        match self.protocol {
            Protocol::Claude => message["response"]["request_id"] = id.clone(),
            Protocol::Acp | Protocol::Codex => message["id"] = id.clone(),
        }
        message
    }
}
