//! Replays the captured streams of Codex's app-server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use bowline_host::agents::ModePolicy;
use bowline_proto::agent::approval::{Answers, Decision};
use bowline_proto::agent::config::{OptionValue, Settings};
use serde_json::{Value, json};

use super::Codex;
use crate::agent::replay::{Captured, Case, Session, Translate, cases, check_program};
use crate::agent::{Adapter, AdapterConfig};

/// Finds the adapter's request for each request of the captured client, by its method.
#[derive(Default)]
struct Translation {
    /// The methods of the captured client's requests.
    methods: BTreeMap<i64, String>,
    /// The adapter's requests that were answered.
    answered: BTreeSet<i64>,
}

impl Translation {
    /// The id of the adapter's oldest request with this method that was not answered.
    fn request(&mut self, session: &Session, method: &str) -> Option<i64> {
        let is_meant = |message: &&Value| message["method"] == method && message["id"].is_i64();
        let ids = session.written.iter().filter(is_meant).filter_map(|message| message["id"].as_i64());
        let id = ids.into_iter().find(|id| !self.answered.contains(id))?;
        self.answered.insert(id);
        Some(id)
    }

    /// Answers what the adapter requests and the captured client did not.
    fn answer_others(&mut self, session: &mut Session) {
        let account = json!({"account": null, "requiresOpenaiAuth": false, "workspaceRouting": null});
        for (method, result) in [("account/read", &account), ("model/list", model_list())] {
            if let Some(id) = self.request(session, method) {
                session.handle_line(json!({"id": id, "result": result}).to_string().as_bytes());
            }
        }
    }
}

/// The models that Codex listed when the streams were captured.
fn model_list() -> &'static Value {
    static LIST: OnceLock<Value> = OnceLock::new();
    LIST.get_or_init(|| {
        let case = cases("codex").into_iter().find(|case| case.name == "app_lists").unwrap();
        let listed = case.messages.iter().find_map(|message| match message {
            Captured::FromAgent(message) if message["result"]["data"][0]["displayName"].is_string() => Some(message),
            _ => None,
        });
        listed.unwrap()["result"].clone()
    })
}

/// The first request of the captured client for which this holds.
fn find_request(case: &Case, is_meant: impl Fn(&Value) -> bool) -> Option<&Value> {
    case.messages.iter().find_map(|message| match message {
        Captured::FromClient(message) if is_meant(message) => Some(message),
        _ => None,
    })
}

fn answers(answers: &Value) -> Answers {
    let answers = answers.as_object().unwrap().iter();
    answers.map(|(id, answer)| (id.clone(), serde_json::from_value(answer["answers"].clone()).unwrap())).collect()
}

impl Translate for Translation {
    fn adapter(&mut self, case: &Case) -> Box<dyn Adapter> {
        let opened = find_request(case, |message| message["method"].as_str().is_some_and(|m| m.starts_with("thread/")));
        let params = opened.map(|message| message["params"].clone()).unwrap_or_default();
        let plans = find_request(case, |message| message["params"]["collaborationMode"]["mode"] == "plan").is_some();
        let sandbox = params["sandbox"].as_str().map(ToOwned::to_owned);
        Box::new(Codex::new(AdapterConfig {
            cwd: PathBuf::from("/home/dev/project"),
            conversation: params["threadId"].as_str().map(ToOwned::to_owned),
            may_start_anew: false,
            mode: if plans { Some("plan".to_owned()) } else { sandbox },
            model: None,
            mode_policy: ModePolicy { modes: None, allow_bypass: true },
            random: [7; 16],
            runs_as_root: false,
        }))
    }

    fn from_client(&mut self, session: &mut Session, message: &Value) {
        self.answer_others(session);
        let params = &message["params"];
        let text = || params["input"][0]["text"].as_str().unwrap_or_default();
        if let (Some(method), Some(id)) = (message["method"].as_str(), message["id"].as_i64()) {
            self.methods.insert(id, method.to_owned());
        }
        match message["method"].as_str() {
            // What another client did by mistake: to Codex it is a steer.
            Some("turn/start") if session.current().is_some() => {
                self.methods.insert(message["id"].as_i64().unwrap(), "turn/steer".to_owned());
                session.steer(text());
            }
            Some("turn/start") if params["input"] == json!([]) => {}
            Some("turn/start") => {
                if let Some(model) = params["model"].as_str() {
                    let option =
                        params["effort"].as_str().map(|value| OptionValue { id: "effort".into(), value: value.into() });
                    session.adapter.set(&Settings { mode: None, model: Some(model.to_owned()), option });
                }
                session.prompt(text());
            }
            Some("turn/interrupt") => session.abort(),
            Some("turn/steer") => session.steer(text()),
            Some(_) => {}
            None => {
                let result = &message["result"];
                let allow = |option: &str| Decision::Approve { option: Some(option.to_owned()) };
                let persists = result["_meta"]["persist"].as_str();
                let decision = match (result["decision"].as_str(), persists) {
                    (Some("acceptForSession"), _) => allow("accept-session"),
                    (Some("accept"), _) => allow("accept"),
                    (None, Some(option)) => allow(option),
                    // Clients deny in one way; which of these Codex gets is the adapter's choice.
                    (Some("decline" | "cancel"), _) => Decision::Deny { option: None, reason: None },
                    _ => Decision::Answer { answers: answers(&result["answers"]) },
                };
                session.decide(|_| true, decision);
            }
        }
    }

    fn from_agent(&mut self, session: &mut Session, message: &Value) -> Option<Value> {
        self.answer_others(session);
        if message["method"].is_string() {
            return Some(message.clone());
        }
        let method = self.methods.get(&message["id"].as_i64()?)?.clone();
        let mut message = message.clone();
        message["id"] = json!(self.request(session, &method)?);
        Some(message)
    }

    fn unknown(&self) -> Value {
        json!({"method": "hologram/started", "params": {"threadId": "t", "beams": 2}})
    }
}

#[test]
fn captured_streams_of_codex_become_the_expected_events() {
    check_program("codex", || Box::new(Translation::default()));
}
