//! What Codex answers to requests: first those that start it, until a thread is open.

use bowline_proto::agent::event::{AgentEvent, Level};
use serde_json::json;

use super::messages::{AccountRead, ModelList, RpcError, ThreadHead, ThreadOpened, ThreadSandbox};
use super::{Codex, Request};
use crate::agent::AdapterEvent;
use crate::agent::details::{MAX_CONTENT, MAX_SHORT, read, short};
use crate::agent::rpc::{Failure, Id, Response};

impl Codex {
    pub(super) fn handle_response(&mut self, id: &Id, is_error: bool, line: &[u8]) {
        let number = if let Id::Number(number) = id { Some(number) } else { None };
        let Some(request) = number.and_then(|number| self.pending.remove(number)) else {
            return self.news.notice(Level::Debug, "Codex answered a request that was not open".to_owned());
        };
        if is_error {
            let error = read::<Failure<RpcError>>(line).map_or_else(RpcError::default, |read| read.error);
            return self.handle_failure(request, &short(&error.message));
        }
        match request {
            Request::Initialize => {
                self.news.write(&json!({"method": "initialized"}));
                self.request(Request::Account, "account/read", &json!({}));
            }
            Request::Account => self.handle_account(read::<Response<AccountRead>>(line)),
            Request::Start | Request::Resume => self.handle_thread(line),
            Request::Models if line.len() <= MAX_CONTENT => {
                if let Some(Response { result }) = read::<Response<ModelList>>(line) {
                    self.settings.handle_models(result);
                    self.record_config();
                }
            }
            Request::Turn(run) => self.handle_turn_response(run, line),
            Request::Models | Request::Interrupt | Request::Steer => {}
        }
    }

    fn handle_failure(&mut self, request: Request, message: &str) {
        match request {
            Request::Initialize | Request::Start => self.news.unusable("agent_failed", message.to_owned()),
            // A version without this request may be logged in.
            Request::Account => self.open_thread(),
            Request::Resume if self.config.may_start_anew => {
                // It crashed, perhaps, before it stored the conversation.
                let text = "Codex does not know the conversation, so a new one was started".to_owned();
                self.news.notice(Level::Warning, text);
                self.config.conversation = None;
                self.open_thread();
            }
            Request::Resume => {
                let message = format!("Codex cannot continue the conversation: {message}");
                self.news.unusable("unknown_conversation", message);
            }
            Request::Models => self.news.notice(Level::Debug, format!("Codex did not list its models: {message}")),
            Request::Turn(run) => self.handle_turn_refused(run, message.to_owned()),
            // The turn had ended already. Its end says the rest.
            Request::Interrupt => self.news.notice(Level::Debug, format!("the turn was not interrupted: {message}")),
            Request::Steer => {
                self.news.notice(Level::Warning, format!("Codex did not take the instructions: {message}"));
            }
        }
    }

    /// Without a login, a thread can be started, and then every turn fails after many tries.
    fn handle_account(&mut self, account: Option<Response<AccountRead>>) {
        match account {
            Some(Response { result }) if result.requires_openai_auth && result.account.is_none() => {
                self.news.unusable("not_logged_in", "Codex is not logged in; run `codex login`".to_owned());
            }
            Some(_) | None => self.open_thread(),
        }
    }

    fn open_thread(&mut self) {
        let mut params = json!({
            "cwd": self.config.cwd.to_string_lossy(), "approvalPolicy": self.settings.mode.approvals,
            "sandbox": self.settings.mode.sandbox,
        });
        if let Some(model) = &self.settings.model {
            params["model"] = json!(model);
        }
        match &self.config.conversation {
            Some(id) => {
                params["threadId"] = json!(id);
                // The journal has the history. As one line, it could be too long to be read.
                params["excludeTurns"] = json!(true);
                self.is_resumed = true;
                self.request(Request::Resume, "thread/resume", &params);
            }
            None => {
                self.is_resumed = false;
                self.request(Request::Start, "thread/start", &params);
            }
        }
    }

    fn handle_thread(&mut self, line: &[u8]) {
        let whole = read::<Response<ThreadOpened>>(line).map(|response| response.result);
        // The thread can be used even if its settings are of a form that this version does not know.
        let opened = whole.or_else(|| {
            let Response { result } = read::<Response<ThreadHead>>(line)?;
            Some(ThreadOpened { thread: result.thread, model: None, reasoning_effort: None, collaboration_mode: None })
        });
        let Some(opened) = opened else {
            return self.news.unusable("agent_failed", "Codex started no conversation".to_owned());
        };
        let id = opened.thread.id.clone();
        // A longer one could not be recorded.
        if id.len() > MAX_SHORT {
            return self.news.unusable("agent_failed", "Codex's name for the conversation is too long".to_owned());
        }
        let sandbox = if line.len() > MAX_CONTENT { None } else { read::<Response<ThreadSandbox>>(line) };
        self.settings.handle_thread(&opened, sandbox.and_then(|read| read.result.sandbox));
        self.news.record(AgentEvent::Conversation { id: id.clone() });
        self.thread = Some(id);
        self.record_config();
        self.request(Request::Models, "model/list", &json!({}));
        self.news.push(AdapterEvent::Ready);
    }

    pub(super) fn record_config(&mut self) {
        if let Some(config) = self.settings.changed() {
            self.news.record(AgentEvent::Config(config));
        }
    }
}
