//! What an ACP agent answers: the handshake, settings, and the end of a run.

use bowline_proto::agent::event::{AgentEvent, Level, RunError, RunId};
use bowline_proto::agent::run::End;
use serde_json::{Value, json};

use super::messages::{Initialized, NewSession, Prompted, RpcError, Steered};
use super::quirks::quirks;
use super::settings::{Announced, AnnouncedOptions, Setting};
use super::usage::TurnUsage;
use super::{Acp, PROTOCOL_VERSION, Phase, Request};
use crate::agent::AdapterEvent;
use crate::agent::details::{MAX_CONTENT, MAX_SHORT, error_words, read, short};
use crate::agent::rpc::{Failure, Id, Response};

/// The error code of an agent that needs a login.
const NOT_LOGGED_IN: i64 = -32000;

impl Acp {
    pub(super) fn handle_response(&mut self, id: &Id, is_error: bool, line: &[u8]) {
        let number = if let Id::Number(number) = id { Some(number) } else { None };
        let Some(request) = number.and_then(|number| self.pending.remove(number)) else {
            return self.news.notice(Level::Debug, "the agent answered a request that was not open".to_owned());
        };
        if is_error {
            let error = (line.len() <= MAX_CONTENT).then(|| read::<Failure<RpcError>>(line)).flatten();
            let unreadable = || RpcError { code: 0, message: "an unreadable error".to_owned(), data: Value::Null };
            return self.handle_failure(request, &error.map_or_else(unreadable, |failure| failure.error));
        }
        match request {
            Request::Initialize => self.handle_initialized(read::<Response<Initialized>>(line)),
            Request::New => match read::<Response<NewSession>>(line) {
                // A longer one could not be recorded.
                Some(new) if new.result.session_id.len() > MAX_SHORT => {
                    self.fail("agent_failed", "the agent's name for the conversation is too long".to_owned());
                }
                Some(new) => self.handle_session(new.result.session_id, line),
                None => self.fail("agent_failed", "the agent started no conversation".to_owned()),
            },
            Request::Load => {
                let loaded = self.config.conversation.clone().unwrap_or_default();
                self.handle_session(loaded, line);
            }
            Request::Set { setting, is_first: _ } => {
                self.settings.handle_set(&setting);
                self.settings.handle_options(read_result::<AnnouncedOptions>(line).config_options);
                self.record_config(false);
                self.continue_start();
            }
            Request::Probe => self.continue_start(),
            Request::Steer => match read::<Response<Steered>>(line) {
                Some(steered) if steered.result.outcome == "injected" => {}
                _ => self.notice_not_steered("its run has ended already"),
            },
            Request::Prompt(run) => {
                let usage = read_result::<TurnUsage>(line);
                let stop_reason = read::<Response<Prompted>>(line).map(|prompted| short(&prompted.result.stop_reason));
                let error = self.system_error.take().map(|message| RunError::new("agent_error", message));
                let success = stop_reason.as_deref() == Some("end_turn") && error.is_none();
                self.end(run, End { success, stop_reason, error, goes_on: false }, usage);
            }
        }
    }

    fn handle_initialized(&mut self, initialized: Option<Response<Initialized>>) {
        let Some(Response { result }) = initialized else {
            let message = "the agent answered `initialize` with something else".to_owned();
            return self.fail("agent_failed", message);
        };
        if result.protocol_version != PROTOCOL_VERSION {
            let version = result.protocol_version;
            let message =
                format!("the agent speaks version {version} of ACP; Bowline speaks version {PROTOCOL_VERSION}");
            return self.fail("agent_failed", message);
        }
        self.quirks = quirks(&result.agent_info.name);
        self.can_steer = result.meta.steering.supported;
        self.takes = result.agent_capabilities.prompt_capabilities;
        let cwd = self.config.cwd.to_string_lossy().into_owned();
        match &self.config.conversation {
            None => self.request_new(),
            Some(id) if result.agent_capabilities.load_session => {
                let params = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
                (self.replays, self.has_replayed) = (true, self.quirks.replays_after_load);
                self.request(Request::Load, "session/load", &params);
            }
            Some(_) if self.config.may_start_anew => {
                self.start_anew("the agent cannot continue a conversation, so a new one was started");
            }
            Some(_) => self.fail("cannot_resume", "this agent cannot continue a conversation".to_owned()),
        }
    }

    /// Starts another conversation in place of one in which nothing was done.
    fn start_anew(&mut self, why: &str) {
        self.news.notice(Level::Warning, why.to_owned());
        (self.config.conversation, self.replays, self.has_replayed) = (None, false, false);
        self.request_new();
    }

    fn request_new(&mut self) {
        let cwd = self.config.cwd.to_string_lossy().into_owned();
        self.request(Request::New, "session/new", &json!({"cwd": cwd, "mcpServers": []}));
    }

    fn handle_session(&mut self, id: String, line: &[u8]) {
        self.news.record(AgentEvent::Conversation { id: id.clone() });
        self.session = Some(id);
        self.settings.handle_announced(read_result::<Announced>(line));
        let mode = self.config.mode.clone().map(Setting::Mode);
        let model = self.config.model.clone().map(Setting::Model);
        let unset: Vec<Setting> =
            mode.into_iter().chain(model).filter(|setting| !self.settings.is_current(setting)).collect();
        unset.into_iter().for_each(|setting| self.request_set(setting, true));
        self.continue_start();
    }

    /// The agent is ready once nothing remains to be set, and it has replayed the history.
    fn continue_start(&mut self) {
        let is_open = |request: &Request| matches!(request, Request::Set { .. } | Request::Probe);
        if self.phase != Phase::Starting || self.pending.values().any(is_open) {
            return;
        }
        if std::mem::take(&mut self.has_replayed) {
            let (method, params) = self.settings.probe(self.session.as_deref());
            return self.request(Request::Probe, method, &params);
        }
        self.phase = Phase::Ready;
        self.record_config(false);
        self.news.push(AdapterEvent::Ready);
    }

    fn handle_failure(&mut self, request: Request, error: &RpcError) {
        let RunError { code, message, .. } = run_error(error);
        match request {
            Request::Prompt(run) => {
                let error = Some(RunError::new(&code, message));
                self.end(run, End { error, ..End::default() }, TurnUsage::default());
            }
            Request::Set { setting: Setting::Mode(mode), is_first: true } => {
                // In another mode, it might do what the user did not want to be done without a question.
                let message = format!("the agent refused the mode {}: {message}; set another one", short(&mode));
                self.fail("mode_refused", message);
            }
            Request::Set { setting, is_first: _ } => {
                let what = match setting {
                    Setting::Mode(mode) => format!("the mode {mode}"),
                    Setting::Model(model) => format!("the model {model}"),
                    Setting::Option { id, value } => format!("{value} for the option {id}"),
                };
                self.news.notice(Level::Error, format!("the agent refused {what}: {message}"));
                // So that the state has what is really set.
                self.record_config(true);
                self.continue_start();
            }
            Request::Probe => self.continue_start(),
            Request::Steer => self.notice_not_steered(&message),
            Request::Load if code == "agent_error" && self.config.may_start_anew => {
                // It crashed, perhaps, before it stored the conversation.
                self.start_anew("the agent does not know the conversation, so a new one was started");
            }
            Request::Load if code == "agent_error" => {
                let message = format!("the agent cannot continue the conversation: {message}");
                self.fail("unknown_conversation", message);
            }
            Request::Initialize | Request::New | Request::Load => self.fail(&code, message),
        }
    }

    fn notice_not_steered(&mut self, why: &str) {
        let text = format!("the agent did not take the instructions ({why}); send them as a prompt");
        self.news.notice(Level::Warning, text);
    }

    fn end(&mut self, run: RunId, end: End, usage: TurnUsage) {
        if self.run == Some(run) {
            self.show_open_calls();
            self.run = None;
            self.block.end();
        }
        if let Some(usage) = self.usage.take(run, usage) {
            self.news.record(AgentEvent::Usage(usage));
        }
        self.news.push(AdapterEvent::Ended { run, end });
    }
}

/// What an error means, as far as agents say so: a missing login, a limit of use, or something else.
fn run_error(error: &RpcError) -> RunError {
    let RpcError { code, message, data } = error;
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(short);
    // Some agents put their words beside the message.
    let said = [&data["details"], &data["message"]].into_iter().find_map(text).unwrap_or_else(|| error_words(message));
    let is_limit = *code == 429 || data["errorKind"] == "rate_limit" || data["codexErrorInfo"] == "usageLimitExceeded";
    match *code {
        NOT_LOGGED_IN | 401 => RunError::new("not_logged_in", format!("the agent is not logged in: {said}")),
        _ if is_limit => RunError::new("usage_limit", said),
        _ => RunError::new("agent_error", said),
    }
}

/// The result of a response, as far as it has this type. Of a line that is too long, nothing is read.
fn read_result<T: for<'a> serde::Deserialize<'a> + Default>(line: &[u8]) -> T {
    let read = (line.len() <= MAX_CONTENT).then(|| read::<Response<T>>(line)).flatten();
    read.map(|response| response.result).unwrap_or_default()
}
