//! The adapter for agents that speak ACP, version 1: JSON-RPC, one message per line.
//!
//! - `content.rs`: what a prompt becomes; `responses.rs`: what the agent answers, from the handshake to the end of a run;
//! - `updates.rs`: what it says by itself; `requests.rs`: what it asks;
//! - `quirks.rs`: what is particular to single agents.

mod content;
mod cursor;
mod elicitation;
mod messages;
mod permission;
mod quirks;
mod requests;
mod responses;
mod settings;
mod tools;
mod updates;
mod usage;

use std::collections::BTreeMap;

use bowline_proto::agent::approval::{Answer, RequestKey};
use bowline_proto::agent::config;
use bowline_proto::agent::event::{AgentEvent, Level, RunId};
use bowline_proto::agent::run::Prompt;
use serde::Serialize;
use serde_json::{Value, json};

use self::content::{PromptParams, prompt_content};
use self::messages::PromptCapabilities;
use self::permission::OpenRequest;
use self::quirks::Quirks;
use self::settings::{Setting, Settings};
use self::tools::ToolCalls;
use self::updates::Block;
use self::usage::UsageMeter;
use super::rpc::{Envelope, Id, MAX_PENDING, OutgoingRequest};
use super::{Adapter, AdapterConfig, Attachment, News};

/// The version of ACP that is requested.
const PROTOCOL_VERSION: u64 = 1;

/// The adapter of one ACP agent.
#[derive(Debug)]
pub(super) struct Acp {
    config: AdapterConfig,
    quirks: Quirks,
    next_id: i64,
    /// Requests that the agent has not answered.
    pending: BTreeMap<i64, Request>,
    /// The agent's name for the conversation.
    session: Option<String>,
    phase: Phase,
    /// The agent may still send the history of a conversation that it loaded, which the journal has already.
    replays: bool,
    /// It has sent some since it was last asked whether that is over.
    has_replayed: bool,
    can_steer: bool,
    /// What a prompt may have beside texts and links.
    takes: PromptCapabilities,
    settings: Settings,
    /// The run that is in the agent.
    run: Option<RunId>,
    /// What the agent reported in this run as the error of its program.
    system_error: Option<String>,
    /// Requests of the agent that wait for an answer of the user.
    open: BTreeMap<RequestKey, OpenRequest>,
    next_request: u64,
    block: Block,
    tools: ToolCalls,
    usage: UsageMeter,
    news: News,
}

/// How far the agent has come. Until it is ready, what is set in it is not what the user wants, so it is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Ready,
    Unusable,
}

/// A request to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Request {
    Initialize,
    New,
    Load,
    Set {
        setting: Setting,
        /// The agent gets no prompts before it has answered.
        is_first: bool,
    },
    /// Sets what is set already, to find out whether history is still being replayed.
    Probe,
    Steer,
    Prompt(RunId),
}

impl Adapter for Acp {
    fn handle_line(&mut self, line: &[u8]) {
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(line) else {
            return self.news.noise(line);
        };
        match (envelope.method, envelope.id) {
            (Some(method), Some(id)) => self.handle_request(&method, id, line),
            (Some(method), None) => self.handle_notification(&method, line),
            (None, Some(id)) => self.handle_response(&id, envelope.error.is_some(), line),
            (None, None) => self.news.raw(line),
        }
    }

    fn prompt(&mut self, run: RunId, prompt: &Prompt, attachments: &[Attachment]) {
        self.show_open_calls();
        (self.run, self.replays, self.system_error) = (Some(run), false, None);
        self.block.end();
        let session = self.session.clone();
        let content = prompt_content(prompt, attachments, self.takes, self.quirks);
        let params = PromptParams { session_id: session.as_deref(), prompt: content };
        self.request(Request::Prompt(run), "session/prompt", &params);
    }

    /// Agents that speak ACP have no way to say that they begin a turn.
    fn handle_own_turn(&mut self, _run: RunId) {}

    fn cancel(&mut self) {
        let params = json!({"sessionId": self.session});
        self.news.write(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
    }

    fn answer(&mut self, request: RequestKey, answer: &Answer) {
        if let Some(open) = self.open.remove(&request) {
            self.news.write(&json!({"jsonrpc": "2.0", "id": open.id, "result": open.result(answer)}));
        }
    }

    fn can_steer(&self) -> bool {
        self.can_steer && self.run.is_some()
    }

    fn steer(&mut self, text: &str) {
        // Should the run have ended meanwhile, the text must not begin another one.
        let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
        let params = json!({"sessionId": self.session, "prompt": text_content(text), "_meta": meta});
        self.request(Request::Steer, "_session/steering", &params);
    }

    fn set(&mut self, settings: &config::Settings) {
        let config::Settings { mode, model, option } = settings.clone();
        if self.session.is_none() {
            // They are set when the conversation begins.
            self.config.mode = mode.or(self.config.mode.take());
            self.config.model = model.or(self.config.model.take());
            if let Some(option) = option {
                let text = format!("the option {} was not set, because the agent has not started yet", option.id);
                self.news.notice(Level::Warning, text);
            }
            return;
        }
        let option = option.map(|option| Setting::Option { id: option.id, value: option.value });
        let all = mode.map(Setting::Mode).into_iter().chain(model.map(Setting::Model)).chain(option);
        all.for_each(|setting| self.request_set(setting, false));
    }

    fn awaits_after_run(&self, _request: RequestKey) -> bool {
        false
    }

    fn news(&mut self) -> &mut News {
        &mut self.news
    }
}

impl Acp {
    pub(super) fn new(config: AdapterConfig) -> Acp {
        let mut acp = Acp {
            config,
            quirks: Quirks::default(),
            next_id: 0,
            pending: BTreeMap::new(),
            session: None,
            phase: Phase::Starting,
            replays: false,
            has_replayed: false,
            can_steer: false,
            takes: PromptCapabilities::default(),
            settings: Settings::default(),
            run: None,
            system_error: None,
            open: BTreeMap::new(),
            next_request: 0,
            block: Block::default(),
            tools: ToolCalls::default(),
            usage: UsageMeter::default(),
            news: News::new("acp"),
        };
        // Without the first two, agents read files and run commands themselves. Their questions need the last one.
        let capabilities = json!({
            "fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false,
            "elicitation": {"form": {}, "url": {}},
        });
        let client = json!({"name": "bowline", "title": "Bowline", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities, "clientInfo": client
        });
        acp.request(Request::Initialize, "initialize", &params);
        acp
    }

    /// Records what can be set, if it changed or has to be `repeated`.
    fn record_config(&mut self, repeated: bool) {
        if self.phase != Phase::Ready {
            return;
        }
        if let Some(config) = self.settings.take_config(&self.config.mode_policy, repeated) {
            self.news.record(AgentEvent::Config(config));
        }
    }

    fn request_set(&mut self, setting: Setting, is_first: bool) {
        let (method, params) = self.settings.request(self.session.as_deref(), &setting);
        self.request(Request::Set { setting, is_first }, method, &params);
    }

    fn request(&mut self, request: Request, method: &str, params: &impl Serialize) {
        let id = self.next_id;
        self.next_id += 1;
        if self.pending.len() >= MAX_PENDING {
            self.forget_oldest();
        }
        self.pending.insert(id, request);
        self.news.write(&OutgoingRequest { jsonrpc: "2.0", id, method, params });
    }

    /// A prompt is never forgotten: its run would have no end.
    fn forget_oldest(&mut self) {
        let is_prompt = |request: &Request| matches!(request, Request::Prompt(_));
        let oldest = self.pending.iter().find(|(_, request)| !is_prompt(request)).map(|(id, _)| *id);
        oldest.map(|id| self.pending.remove(&id));
    }

    /// The agent cannot be used, whatever it still answers.
    fn fail(&mut self, code: &str, message: String) {
        self.phase = Phase::Unusable;
        self.news.unusable(code, message);
    }

    fn refuse(&mut self, id: &Id, code: i64, message: &str) {
        self.news.write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }
}

fn text_content(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[cfg(test)]
mod captured;
#[cfg(test)]
mod tests;
