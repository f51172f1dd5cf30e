//! How a turn of Claude Code ended, and what it used.

use std::time::{Duration, SystemTime};

use bowline_host::timestamp::timestamp_of;
use bowline_proto::agent::event::{RunError, RunId};
use bowline_proto::agent::run::End;
use bowline_proto::agent::usage::{Context, Cost, Tokens, Usage, Used};

use super::messages::{ModelUsage, ResultLine, ResultUsage};
use super::stream::Stream;
use crate::agent::details::short;

/// The last second that a timestamp can name, at the end of the year 9999.
const MAX_SECONDS: u64 = 253_402_300_799;

/// The end of a run. `error` is the kind of error that the agent reported last, `resets_at` when its usage limit ends.
pub(super) fn end(result: &ResultLine, error: Option<&str>, resets_at: Option<u64>) -> End {
    let stop = result.stop_reason.as_deref();
    // An answer that was cut or refused is not a normal end, although the turn was completed.
    let is_whole = !matches!(stop, Some("max_tokens" | "refusal" | "model_context_window_exceeded"));
    let is_completed = match result.terminal_reason.as_deref() {
        Some(reason) => reason == "completed",
        // Commands such as /compact, and older versions, give no reason.
        None => result.subtype.as_deref() == Some("success"),
    };
    let is_normal = !result.is_error && is_completed;
    let terminal = result.terminal_reason.as_deref();
    let reason = if is_normal { stop.or(terminal) } else { terminal.or(result.subtype.as_deref()) };
    End {
        success: is_normal && is_whole,
        stop_reason: reason.map(short),
        error: (!is_normal || !is_whole).then(|| run_error(result, error, resets_at)),
        goes_on: false,
    }
}

fn run_error(result: &ResultLine, error: Option<&str>, resets_at: Option<u64>) -> RunError {
    let message = failure(result);
    let is_limit = result.api_error.as_deref() == Some("usage_limit_reached")
        || result.api_error_status == Some(429)
        || error == Some("rate_limit");
    let is_login = result.api_error_status == Some(401) || error == Some("authentication_failed");
    match (result.is_error && is_limit, result.is_error && is_login) {
        (true, _) => RunError { retry_at: resets_at.and_then(time), ..RunError::new("usage_limit", message) },
        (false, true) => RunError::new("not_logged_in", message),
        (false, false) => RunError::new("agent_error", message),
    }
}

/// What went wrong, in the agent's words if it has any.
pub(super) fn failure(result: &ResultLine) -> String {
    // The text of a completed turn is its answer, not an error.
    let said = result.result.as_deref().filter(|text| result.is_error && !text.trim().is_empty());
    // These are for the agent's developers.
    let is_plain = |text: &&String| !text.starts_with("[ede_diagnostic]") && !text.trim().is_empty();
    let errors: Vec<&str> = result.errors.0.iter().filter(is_plain).map(String::as_str).take(8).collect();
    let why = || {
        let reason = result.terminal_reason.as_deref().filter(|reason| *reason != "completed");
        let reason =
            reason.or(result.stop_reason.as_deref()).or(result.subtype.as_deref()).unwrap_or("no reason given");
        format!("the agent stopped: {reason}")
    };
    match (said, errors.is_empty()) {
        (Some(said), _) => short(said),
        (None, false) => short(&errors.join("; ")),
        (None, true) => short(&why()),
    }
}

/// A time in seconds after 1970 as RFC 3339.
fn time(seconds: u64) -> Option<String> {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    (seconds <= MAX_SECONDS).then(|| timestamp_of(at))
}

/// What a turn used, unless it used nothing. `last_cost` is the cost that the agent reported before it.
pub(super) fn usage(run: Option<RunId>, result: &ResultUsage, stream: &Stream, last_cost: &mut f64) -> Option<Usage> {
    let total = result.total_cost_usd.unwrap_or(*last_cost);
    let since = result.model_usage_since_last_result.as_ref();
    // The total of a resumed conversation includes what earlier processes spent.
    let cost = since.map_or(total - *last_cost, |models| models.values().map(|model| model.cost_usd).sum());
    *last_cost = total;
    let tokens = match since {
        // Only this counts sub-agents.
        Some(models) => models.values().fold(Tokens::default(), add),
        None => Tokens {
            input: result.usage.input_tokens,
            output: result.usage.output_tokens,
            cache_read: result.usage.cache_read_input_tokens,
            cache_write: result.usage.cache_creation_input_tokens,
        },
    };
    if tokens == Tokens::default() && Cost::from(cost) == Cost::default() {
        return None;
    }
    let context = stream.usage.map(|usage| {
        let size = result.model_usage.get(&stream.model).map_or(0, |model| model.context_window);
        let cached = usage.cache_read_input_tokens.saturating_add(usage.cache_creation_input_tokens);
        Context { used: usage.input_tokens.saturating_add(cached), size }
    });
    Some(Usage { run, used: Used { tokens, cost: Some(Cost::from(cost)), context } })
}

fn add(sum: Tokens, model: &ModelUsage) -> Tokens {
    Tokens {
        input: sum.input.saturating_add(model.input_tokens),
        output: sum.output.saturating_add(model.output_tokens),
        cache_read: sum.cache_read.saturating_add(model.cache_read_input_tokens),
        cache_write: sum.cache_write.saturating_add(model.cache_creation_input_tokens),
    }
}
