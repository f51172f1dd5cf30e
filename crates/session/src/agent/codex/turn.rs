//! The turn that is in Codex, which run it is, and how it ends.

use std::time::{Duration, UNIX_EPOCH};

use bowline_host::timestamp::timestamp_of;
use bowline_proto::agent::event::{AgentEvent, Level, RunError, RunId};
use bowline_proto::agent::run::End;
use bowline_proto::agent::usage::{Context, Tokens, Usage, Used};
use serde_json::json;

use super::messages::{
    ErrorInfo, ErrorMessage, Place, RateLimit, RateLimitMessage, TokenCounts, TokenMessage, Turn, TurnError, TurnHead,
    TurnMessage,
};
use super::{Codex, Request};
use crate::agent::AdapterEvent;
use crate::agent::details::{MAX_CONTENT, error_words, read, short};
use crate::agent::rpc::{Call, Response};

/// The last second of the year 9999, since 1970. A later time cannot be written.
const MAX_TIME: i64 = 253_402_300_799;

/// The ends of turns that are kept while it is not known which of them is meant.
const MAX_EARLY: usize = 4;

/// The turn that is in Codex.
#[derive(Debug)]
pub(super) struct CurrentTurn {
    /// Unknown for a turn that Codex began by itself, until the session says which run it is.
    run: Option<RunId>,
    /// Unknown until the answer to `turn/start`.
    id: Option<String>,
    /// The id in the last `turn/started`. Between the answer and that, Codex says that there is no turn to steer or to
    /// interrupt.
    started: Option<String>,
    /// It is to be interrupted as soon as that is possible.
    is_cancelled: bool,
    /// Turns whose ends came before that answer. One of them may be this one.
    early: Vec<(String, End)>,
    /// The last error after which Codex does not try again. Its end may come without one.
    error: Option<RunError>,
}

impl CurrentTurn {
    fn new(run: Option<RunId>, id: Option<String>, started: Option<String>) -> CurrentTurn {
        CurrentTurn { run, id, started, is_cancelled: false, early: Vec::new(), error: None }
    }

    /// The id of the turn if it is known and has been started.
    fn active(&self) -> Option<&str> {
        self.id.as_deref().filter(|_| self.id == self.started)
    }
}

impl Codex {
    /// The run that is in Codex.
    pub(super) fn run(&self) -> Option<RunId> {
        self.turn.as_ref().and_then(|turn| turn.run)
    }

    /// A turn was requested for this run.
    pub(super) fn begin(&mut self, run: RunId) {
        // A turn that runs without the session's knowledge takes the prompt as a steer, and its items go on.
        let other = self.turn.take();
        if other.is_none() {
            self.items.clear();
        }
        self.turn = Some(CurrentTurn::new(Some(run), None, other.and_then(|turn| turn.started)));
    }

    /// The answer to `turn/start`.
    pub(super) fn handle_turn_response(&mut self, run: RunId, line: &[u8]) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.run == Some(run)) else { return };
        let Some(Response { result }) = read::<Response<TurnMessage<TurnHead>>>(line) else {
            let error = RunError::new("agent_error", "Codex answered `turn/start` with something else");
            return self.end(End { error: Some(error), ..End::default() });
        };
        let id = short(&result.turn.id);
        turn.id = Some(id.clone());
        let mut own = None;
        for (early, end) in std::mem::take(&mut turn.early) {
            if early == id && own.is_none() {
                own = Some(end);
            } else {
                self.note_other_end();
            }
        }
        match own {
            Some(end) => self.end(end),
            None => self.interrupt_cancelled(),
        }
    }

    pub(super) fn handle_turn_refused(&mut self, run: RunId, message: String) {
        if self.run() == Some(run) {
            self.end(End { error: Some(RunError::new("agent_error", message)), ..End::default() });
        }
    }

    /// A turn that was not requested is one that Codex began by itself.
    pub(super) fn handle_turn_started(&mut self, line: &[u8]) {
        let Some(Call { params }) = read::<Call<TurnMessage<TurnHead>>>(line) else { return self.news.raw(line) };
        let id = short(&params.turn.id);
        if !self.is_own(params.thread_id.as_deref()) || self.last_turn.as_ref() == Some(&id) {
            return;
        }
        if let Some(turn) = &mut self.turn {
            turn.started = Some(id);
            return self.interrupt_cancelled();
        }
        self.items.clear();
        self.turn = Some(CurrentTurn::new(None, Some(id.clone()), Some(id)));
        self.news.push(AdapterEvent::OwnTurn);
    }

    pub(super) fn adopt_own_turn(&mut self, run: RunId) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.run.is_none()) {
            turn.run = Some(run);
        }
    }

    pub(super) fn handle_turn_completed(&mut self, line: &[u8]) {
        let whole = if line.len() > MAX_CONTENT { None } else { read::<Call<TurnMessage<Turn>>>(line) };
        let whole = whole.map(|call| (call.params.thread_id, call.params.turn));
        // The run ends even if its error is of a form that this version does not know.
        let turn = whole.or_else(|| {
            let Call { params } = read::<Call<TurnMessage<TurnHead>>>(line)?;
            Some((params.thread_id, Turn { id: params.turn.id, status: params.turn.status, error: None }))
        });
        let Some((thread, turn)) = turn else { return self.news.raw(line) };
        if !self.is_own(thread.as_deref()) {
            return; // a sub-agent's
        }
        let (id, end) = (short(&turn.id), self.end_of(&turn));
        match &mut self.turn {
            Some(current) if current.id.as_ref() == Some(&id) => self.end(end),
            Some(current) if current.id.is_none() && current.early.len() < MAX_EARLY => current.early.push((id, end)),
            Some(_) | None => self.note_other_end(),
        }
    }

    fn note_other_end(&mut self) {
        self.news.notice(Level::Debug, "Codex reported the end of another turn".to_owned());
    }

    fn end_of(&self, turn: &Turn) -> End {
        let error = match (turn.status.as_str(), &turn.error) {
            (_, Some(error)) => Some(self.run_error(error)),
            ("failed", None) => {
                let said = self.turn.as_ref().and_then(|turn| turn.error.clone());
                Some(said.unwrap_or_else(|| RunError::new("agent_error", "the turn failed, and Codex did not say why")))
            }
            _ => None,
        };
        let success = turn.status == "completed" && error.is_none();
        End { success, stop_reason: Some(short(&turn.status)), error, goes_on: false }
    }

    fn run_error(&self, error: &TurnError) -> RunError {
        let message = error_words(&error.message);
        let (word, status) = match &error.codex_error_info {
            Some(ErrorInfo::Word(word)) => (word.as_str(), None),
            Some(ErrorInfo::Http(kinds)) => ("", kinds.values().find_map(|kind| kind.http_status_code)),
            Some(ErrorInfo::Other(_)) | None => ("", None),
        };
        match (word, status) {
            ("usageLimitExceeded", _) => {
                // The message has a time, too, but in the words and the time zone of Codex.
                RunError { retry_at: self.limit_resets_at.clone(), ..RunError::new("usage_limit", message) }
            }
            ("unauthorized", _) | (_, Some(401)) => {
                let hint = "the login of Codex was refused; run `codex login`, or check the key of its provider";
                RunError::new("not_logged_in", format!("{hint}: {message}"))
            }
            _ => RunError::new("agent_error", message),
        }
    }

    /// The turn has ended.
    fn end(&mut self, end: End) {
        if !end.success {
            self.fail_open_calls();
        }
        let Some(turn) = self.turn.take() else { return };
        self.last_turn = turn.id;
        if let Some(run) = turn.run {
            self.news.push(AdapterEvent::Ended { run, end });
        }
    }

    // ---- what the session wants ----

    pub(super) fn cancel_turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.is_cancelled = true;
            self.interrupt_cancelled();
        }
    }

    /// Interrupts the turn if it is cancelled and can be interrupted.
    fn interrupt_cancelled(&mut self) {
        let Some(id) = self.turn.as_ref().filter(|turn| turn.is_cancelled).and_then(CurrentTurn::active) else {
            return;
        };
        let params = json!({"threadId": self.thread, "turnId": id});
        self.request(Request::Interrupt, "turn/interrupt", &params);
    }

    /// The id of the turn that can be given more instructions.
    pub(super) fn steerable(&self) -> Option<&str> {
        self.turn.as_ref().filter(|turn| turn.run.is_some() && !turn.is_cancelled)?.active()
    }

    // ---- errors and usage ----

    /// An error in a turn. If Codex does not try again, the end of the turn says it.
    pub(super) fn handle_error(&mut self, line: &[u8]) {
        let message = if line.len() > MAX_CONTENT { None } else { read::<Call<ErrorMessage>>(line) };
        let Some(Call { params: ErrorMessage { error, will_retry, thread_id, turn_id } }) = message else {
            return self.news.raw(line);
        };
        let details = error.additional_details.as_deref().map(|details| format!(": {details}")).unwrap_or_default();
        let text = short(&format!("{}{details}", error.message));
        let is_current = self.turn.as_ref().is_some_and(|turn| turn.id.is_none() || turn.id == turn_id);
        match (will_retry, is_current && self.is_own(thread_id.as_deref())) {
            (true, _) => self.news.notice(Level::Warning, text),
            (false, false) => self.news.notice(Level::Error, text),
            (false, true) => {
                let error = self.run_error(&error);
                self.turn.iter_mut().for_each(|turn| turn.error = Some(error.clone()));
            }
        }
    }

    /// What the thread has used. The totals are those of the whole thread, so the difference is recorded.
    pub(super) fn handle_tokens(&mut self, line: &[u8]) {
        let Some(Call { params }) = read::<Call<TokenMessage>>(line) else { return self.news.raw(line) };
        let TokenMessage { token_usage: usage, thread_id, turn_id } = params;
        if !self.is_own(thread_id.as_deref()) {
            let used = Used { tokens: tokens(&usage.last), ..Used::default() };
            return self.news.record(AgentEvent::Usage(Usage { run: self.run(), used }));
        }
        let before = self.tokens.replace(usage.total);
        let is_current = turn_id.is_some() && self.turn.as_ref().is_some_and(|turn| turn.id == turn_id);
        let used = match before {
            Some(before) => difference(&usage.total, &before),
            // Codex repeats the totals of a resumed thread, which were recorded before.
            None if self.is_resumed && !is_current => return,
            None if self.is_resumed => usage.last,
            None => usage.total,
        };
        if used == TokenCounts::default() {
            return;
        }
        let size = usage.model_context_window.unwrap_or(0);
        let context = Some(Context { used: usage.last.total_tokens, size });
        let used = Used { tokens: tokens(&used), cost: None, context };
        self.news.record(AgentEvent::Usage(Usage { run: self.run(), used }));
    }

    /// Remembers when the limits that are used up are reset. Only numbers count, because words may be in any time zone.
    pub(super) fn handle_rate_limits(&mut self, line: &[u8]) {
        let Some(Call { params: RateLimitMessage { rate_limits } }) = read(line) else { return };
        let used_up = |limit: &RateLimit| limit.used_percent >= 100.0;
        let limits = [rate_limits.primary, rate_limits.secondary].into_iter().flatten().filter(used_up);
        let resets_at = limits.filter_map(|limit| limit.resets_at).filter(|at| (1..=MAX_TIME).contains(at)).max();
        let time = |at: i64| timestamp_of(UNIX_EPOCH + Duration::from_secs(at.unsigned_abs()));
        self.limit_resets_at = resets_at.map(time);
    }

    /// Whether a message is about the conversation's thread, and not a sub-agent's.
    pub(super) fn is_own(&self, thread: Option<&str>) -> bool {
        thread.is_none_or(|thread| self.thread.as_deref() == Some(thread))
    }

    /// The thread of a message that has nothing else to say.
    pub(super) fn is_own_line(&self, line: &[u8]) -> bool {
        let place = read::<Call<Place>>(line).map(|call| call.params).unwrap_or_default();
        self.is_own(place.thread_id.as_deref())
    }
}

fn tokens(counts: &TokenCounts) -> Tokens {
    let TokenCounts { input_tokens, cached_input_tokens, cache_write_input_tokens, output_tokens, .. } = *counts;
    let cached = cached_input_tokens.saturating_add(cache_write_input_tokens);
    Tokens {
        input: input_tokens.saturating_sub(cached),
        output: output_tokens,
        cache_read: cached_input_tokens,
        cache_write: cache_write_input_tokens,
    }
}

fn difference(now: &TokenCounts, before: &TokenCounts) -> TokenCounts {
    TokenCounts {
        total_tokens: now.total_tokens.saturating_sub(before.total_tokens),
        input_tokens: now.input_tokens.saturating_sub(before.input_tokens),
        cached_input_tokens: now.cached_input_tokens.saturating_sub(before.cached_input_tokens),
        cache_write_input_tokens: now.cache_write_input_tokens.saturating_sub(before.cache_write_input_tokens),
        output_tokens: now.output_tokens.saturating_sub(before.output_tokens),
    }
}
