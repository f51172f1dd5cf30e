//! The adapter for the app-server of Codex: JSON-RPC without its `jsonrpc` key, one message per line.
//!
//! - [`responses`]: what Codex answers, from its start to a thread; [`settings`]: modes, models and effort;
//! - [`input`]: what a prompt becomes; [`turn`]: the run that is in Codex; [`items`], [`tools`]: what happens in it;
//! - [`requests`], [`approval`], [`question`]: what Codex asks; [`notices`]: what it says to people;
//! - [`messages`], [`item_messages`], [`request_messages`]: what is read of its lines.

mod approval;
#[cfg(test)]
mod captured;
mod input;
mod item_messages;
mod items;
mod messages;
mod notices;
mod question;
mod request_messages;
mod requests;
mod responses;
mod settings;
#[cfg(test)]
mod tests;
mod tools;
mod turn;

use std::collections::{BTreeMap, VecDeque};

use bowline_proto::agent::approval::{Answer, RequestKey};
use bowline_proto::agent::config::Settings;
use bowline_proto::agent::event::{Level, RunId};
use bowline_proto::agent::run::Prompt;
use serde_json::{Map, Value, json};

use self::approval::OpenRequest;
use self::input::{prompt_input, text_input};
use self::items::{Items, TextKind};
use self::messages::TokenCounts;
use self::notices::is_meaningless;
use self::settings::CodexSettings;
use self::turn::CurrentTurn;
use super::details::short;
use super::rpc::{Envelope, MAX_PENDING};
use super::{Adapter, AdapterConfig, Attachment, News};

/// The warnings that are remembered, so that each is recorded once. The oldest is forgotten to make room.
const MAX_WARNINGS: usize = 16;

/// The adapter of one program.
#[derive(Debug)]
pub(super) struct Codex {
    config: AdapterConfig,
    settings: CodexSettings,
    next_id: i64,
    /// Requests that Codex has not answered.
    pending: BTreeMap<i64, Request>,
    /// Codex's name for the conversation.
    thread: Option<String>,
    /// The thread has a history, which the journal has already.
    is_resumed: bool,
    turn: Option<CurrentTurn>,
    /// The turn that ended last.
    last_turn: Option<String>,
    items: Items,
    /// What the thread had used in all when Codex said it last.
    tokens: Option<TokenCounts>,
    /// When the limits that are used up are reset.
    limit_resets_at: Option<String>,
    warnings: VecDeque<String>,
    /// Requests of Codex that wait for an answer of the user. The session lets a bounded number of them wait, and denies
    /// the others at once.
    open: BTreeMap<RequestKey, OpenRequest>,
    next_request: u64,
    news: News,
}

/// A request to Codex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Initialize,
    Account,
    Start,
    Resume,
    Models,
    Turn(RunId),
    Interrupt,
    Steer,
}

/// The arguments that make the program speak this protocol.
pub(super) fn arguments(_config: &AdapterConfig) -> Vec<String> {
    vec!["app-server".to_owned()]
}

impl Adapter for Codex {
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
        self.begin(run);
        let mut params = Map::new();
        params.insert("threadId".to_owned(), json!(self.thread));
        params.insert("input".to_owned(), prompt_input(prompt, attachments));
        self.settings.write_turn(&mut params);
        self.request(Request::Turn(run), "turn/start", &Value::Object(params));
    }

    fn handle_own_turn(&mut self, run: RunId) {
        self.adopt_own_turn(run);
    }

    fn cancel(&mut self) {
        self.cancel_turn();
    }

    fn answer(&mut self, request: RequestKey, answer: &Answer) {
        if let Some(open) = self.open.remove(&request) {
            self.news.write(&json!({"id": open.id, "result": open.result(answer)}));
        }
    }

    fn can_steer(&self) -> bool {
        self.steerable().is_some()
    }

    fn steer(&mut self, text: &str) {
        let Some(turn) = self.steerable() else {
            let text = "the turn had ended before it could be given more instructions".to_owned();
            return self.news.notice(Level::Warning, text);
        };
        let input = json!([text_input(text)]);
        let params = json!({"threadId": self.thread, "expectedTurnId": turn, "input": input});
        self.request(Request::Steer, "turn/steer", &params);
    }

    /// Codex hears of the settings with the next turn.
    fn set(&mut self, settings: &Settings) {
        for refused in self.settings.set(settings) {
            self.news.notice(Level::Warning, refused);
        }
        self.record_config();
    }

    fn awaits_after_run(&self, _request: RequestKey) -> bool {
        false
    }

    fn news(&mut self) -> &mut News {
        &mut self.news
    }
}

impl Codex {
    pub(super) fn new(config: AdapterConfig) -> Codex {
        let settings = CodexSettings::new(&config);
        let mut codex = Codex {
            config,
            settings,
            next_id: 0,
            pending: BTreeMap::new(),
            thread: None,
            is_resumed: false,
            turn: None,
            last_turn: None,
            items: Items::default(),
            tokens: None,
            limit_resets_at: None,
            warnings: VecDeque::new(),
            open: BTreeMap::new(),
            next_request: 0,
            news: News::new("codex"),
        };
        // In another mode, Codex might do what the user did not want to be done without a question.
        if let Some(mode) = codex.config.mode.as_ref().filter(|mode| *mode != codex.settings.mode.id) {
            let why = if settings::is_mode(mode) { "it may not be chosen here" } else { "Codex has no such mode" };
            let message = format!("the agent refused the mode {}: {why}; set another one", short(mode));
            codex.news.unusable("mode_refused", message);
            return codex;
        }
        let client = json!({"name": "bowline", "title": "Bowline", "version": env!("CARGO_PKG_VERSION")});
        // Plan mode, and with it questions, need the experimental part.
        let params = json!({"clientInfo": client, "capabilities": {"experimentalApi": true}});
        codex.request(Request::Initialize, "initialize", &params);
        codex
    }

    // ---- notifications ----

    fn handle_notification(&mut self, method: &str, line: &[u8]) {
        match method {
            "turn/started" => self.handle_turn_started(line),
            "turn/completed" => self.handle_turn_completed(line),
            "turn/plan/updated" => self.handle_plan(line),
            "error" => self.handle_error(line),
            "item/started" => self.handle_item(line, false),
            "item/completed" => self.handle_item(line, true),
            "item/agentMessage/delta" | "item/plan/delta" => self.handle_delta(TextKind::Text, "", line),
            "item/reasoning/summaryTextDelta" => self.handle_delta(TextKind::Thinking, "", line),
            "item/reasoning/textDelta" => self.handle_delta(TextKind::Thinking, ".text", line),
            "item/reasoning/summaryPartAdded" => self.handle_summary_part(line),
            "item/commandExecution/outputDelta" => self.handle_output(line),
            "item/fileChange/patchUpdated" => self.handle_patch(line),
            "thread/tokenUsage/updated" => self.handle_tokens(line),
            "account/rateLimits/updated" => self.handle_rate_limits(line),
            "thread/name/updated" => self.handle_name(line),
            "serverRequest/resolved" => self.handle_resolved(line),
            "thread/closed" | "thread/deleted" if self.is_own_line(line) => {
                // The next prompt starts Codex again, which continues the conversation.
                self.news.unusable("agent_failed", "Codex closed the conversation".to_owned());
            }
            "warning" | "guardianWarning" | "configWarning" | "modelProvider/authRecoveryStarted" => self.warn(line),
            "deprecationNotice" => self.remark(Level::Debug, line),
            "mcpServer/startupStatus/updated" => self.handle_mcp_status(line),
            "model/rerouted" => self.handle_rerouted(line),
            method if is_meaningless(method) => {}
            _ => self.news.raw(line),
        }
    }

    // ---- out ----

    fn request(&mut self, request: Request, method: &str, params: &Value) {
        let id = self.next_id;
        self.next_id += 1;
        if self.pending.len() >= MAX_PENDING {
            self.pending.pop_first();
        }
        self.pending.insert(id, request);
        self.news.write(&json!({"id": id, "method": method, "params": params}));
    }
}
