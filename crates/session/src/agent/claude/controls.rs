//! Requests to Claude Code, and what follows from its answers.

use std::collections::BTreeMap;

use bowline_proto::agent::config::{OptionValue, Settings};
use bowline_proto::agent::event::Level;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::Claude;
use super::messages::{Initialized, ResponseLine};
use super::settings::{EFFORT, Known};
use crate::agent::details::{read, short};
use crate::agent::{AdapterEvent, News};

/// The most requests that may wait for an answer; further settings are refused with a notice.
const MAX_PENDING: usize = 64;

/// The requests that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Controls {
    last: u64,
    pending: BTreeMap<String, Request>,
    start: Start,
}

#[derive(Debug, Default)]
enum Start {
    #[default]
    Initializing,
    /// Settings are made before the first prompt. `refused`: why the agent must not be used.
    Setting {
        refused: Option<String>,
    },
    Ready,
    Failed,
}

#[derive(Debug)]
enum Request {
    Initialize,
    /// Before the first prompt.
    SetAtStart(Change),
    Set(Change),
}

/// A setting that is changed.
#[derive(Debug)]
enum Change {
    Mode(String),
    Model(String),
    Effort(String),
}

impl Change {
    fn request(&self) -> Value {
        match self {
            Change::Mode(mode) => json!({"subtype": "set_permission_mode", "mode": mode}),
            Change::Model(model) => json!({"subtype": "set_model", "model": model}),
            Change::Effort(effort) => json!({"subtype": "apply_flag_settings", "settings": {"effortLevel": effort}}),
        }
    }

    /// What is being changed, for a notice.
    fn words(&self) -> String {
        match self {
            Change::Mode(mode) => format!("the mode {mode}"),
            Change::Model(model) => format!("the model {model}"),
            Change::Effort(effort) => format!("the effort {effort}"),
        }
    }
}

impl Controls {
    /// Whether the agent takes prompts.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.start, Start::Ready)
    }

    /// Whether the agent takes no settings yet.
    pub(super) fn is_initializing(&self) -> bool {
        matches!(self.start, Start::Initializing)
    }

    pub(super) fn initialize(&mut self, news: &mut News) {
        let id = self.write(news, &json!({"subtype": "initialize", "hooks": null}));
        self.pending.insert(id, Request::Initialize);
    }

    /// Writes a request, and returns its id.
    pub(super) fn write(&mut self, news: &mut News, request: &Value) -> String {
        self.last += 1;
        let id = format!("bowline-{}", self.last);
        news.write(&json!({"type": "control_request", "request_id": id, "request": request}));
        id
    }

    /// Changes settings. What the agent cannot do, or must not, is a notice. Returns whether there was such a thing.
    pub(super) fn set(&mut self, news: &mut News, known: &Known, settings: &Settings) -> bool {
        let mut is_refused = false;
        let mut refuse = |text: String| {
            is_refused = true;
            news.notice(Level::Warning, text);
        };
        let mut changes = Vec::new();
        match &settings.mode {
            Some(mode) if known.allows_mode(mode) => changes.push(Change::Mode(mode.clone())),
            Some(mode) => refuse(format!("the mode {} is not allowed", short(mode))),
            None => {}
        }
        changes.extend(settings.model.clone().map(Change::Model));
        match &settings.option {
            // The agent accepts any value, and ignores one that it does not know.
            Some(OptionValue { id, value }) if id == EFFORT => match known.effort_levels().contains(value) {
                true => changes.push(Change::Effort(value.clone())),
                false => refuse(format!("the model has no effort {}", short(value))),
            },
            Some(option) => refuse(format!("the agent has no option {}", short(&option.id))),
            None => {}
        }
        for change in changes {
            self.change(news, change, Request::Set);
        }
        is_refused
    }

    fn change(&mut self, news: &mut News, change: Change, request: fn(Change) -> Request) {
        if self.pending.len() >= MAX_PENDING {
            let text = format!("{} was not set: the agent has not answered earlier requests", change.words());
            return news.notice(Level::Warning, text);
        }
        let id = self.write(news, &change.request());
        self.pending.insert(id, request(change));
    }
}

impl Claude {
    /// The answers to other requests, such as `interrupt`, say nothing that other messages do not say.
    pub(super) fn handle_response(&mut self, line: &[u8]) {
        let Some(ResponseLine { response }) = read::<ResponseLine<Option<IgnoredAny>>>(line) else {
            return self.news.raw(line);
        };
        let Some(request) = self.controls.pending.remove(&response.request_id) else { return };
        let result = match response.subtype.as_str() {
            "success" => Ok(()),
            _ => Err(short(response.error.as_deref().unwrap_or("no reason given"))),
        };
        match request {
            Request::Initialize => self.handle_initialized(result, line),
            Request::SetAtStart(change) => self.handle_set_at_start(&change, result),
            Request::Set(change) => self.handle_set(&change, result),
        }
        if let Start::Setting { refused } = &mut self.controls.start
            && self.controls.pending.is_empty()
        {
            let refused = refused.take();
            self.controls.start = if refused.is_none() { Start::Ready } else { Start::Failed };
            // Also if the agent cannot be used: it shows which modes there are.
            self.record_config(false);
            match refused {
                Some(why) => self.news.unusable("mode_refused", why),
                None => self.news.push(AdapterEvent::Ready),
            }
        }
    }

    /// Settings that come before the agent takes any are made when it does.
    pub(super) fn set_later(&mut self, settings: &Settings) {
        let Settings { mode, model, option } = settings;
        match mode {
            Some(mode) if self.known.allows_mode(mode) => self.config.mode = Some(mode.clone()),
            Some(mode) => self.news.notice(Level::Warning, format!("the mode {} is not allowed", short(mode))),
            None => {}
        }
        if let Some(model) = model {
            self.config.model = Some(model.clone());
        }
        if let Some(option) = option {
            let text = format!("{} was not set: the agent is still starting", short(&option.id));
            self.news.notice(Level::Warning, text);
        }
    }

    fn handle_initialized(&mut self, result: Result<(), String>, line: &[u8]) {
        if let Err(error) = result {
            return self.news.unusable("agent_failed", format!("the agent refused to start: {error}"));
        }
        let initialized = read::<ResponseLine<Initialized>>(line).map(|line| line.response.response);
        self.known.handle_initialized(initialized.unwrap_or_default());
        self.controls.start = Start::Setting { refused: None };
        let mode = self.first_mode().filter(|mode| self.known.mode() != Some(mode.as_str())).map(Change::Mode);
        let model = self.config.model.clone().filter(|model| self.known.model() != model).map(Change::Model);
        for change in mode.into_iter().chain(model) {
            self.controls.change(&mut self.news, change, Request::SetAtStart);
        }
    }

    /// The mode to begin with, unless it is the one that the agent has chosen itself, which has to be allowed, too.
    fn first_mode(&mut self) -> Option<String> {
        if let Some(mode) = &self.config.mode {
            if self.known.allows_mode(mode) {
                return Some(mode.clone());
            }
            self.news.notice(Level::Warning, format!("the mode {} is not allowed", short(mode)));
        }
        let current = short(self.known.mode().filter(|mode| !self.known.allows_mode(mode))?);
        let other = self.known.first_allowed_mode();
        let then = other.map(|other| format!("; it is switched to {other}")).unwrap_or_default();
        let text = format!("the agent starts in the mode {current}, which is not allowed{then}");
        self.news.notice(Level::Warning, text);
        other.map(ToOwned::to_owned)
    }

    /// In another mode than the chosen one, a run could do what the user did not want. Another model does less harm.
    fn handle_set_at_start(&mut self, change: &Change, result: Result<(), String>) {
        match (change, &result, &mut self.controls.start) {
            (Change::Mode(mode), Err(why), Start::Setting { refused }) => {
                *refused = Some(format!("the agent refused the mode {}: {why}; set another one", short(mode)));
            }
            _ => self.handle_set(change, result),
        }
    }

    fn handle_set(&mut self, change: &Change, result: Result<(), String>) {
        if let Err(error) = &result {
            self.news.notice(Level::Warning, format!("the agent refused {}: {error}", change.words()));
        } else {
            match change {
                Change::Mode(mode) => self.known.handle_mode(mode),
                Change::Model(model) => self.known.handle_model(model),
                Change::Effort(effort) => self.known.handle_effort(effort),
            }
        }
        if self.controls.is_ready() {
            // After a refusal, clients that show the new value are told what is really set.
            self.record_config(result.is_err());
        }
    }
}
