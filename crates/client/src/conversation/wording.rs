//! The lines about approvals and ends of runs, and times and numbers in words.

use std::time::Duration;

use bowline_proto::agent::approval::{Approval, ApprovalKind, ApprovalOption, OptionKind, Outcome};
use bowline_proto::agent::event::{CommandSource, Complete};
use bowline_proto::agent::usage::Used;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

use super::text::{Paint, Text};

/// Characters of a text that is shown as a part of a line; the rest is never looked at.
pub(super) const MAX_SHORT: usize = 400;

/// The name of a client that is worth showing: not one on this machine.
pub(super) fn client_name(by: &str) -> Option<&str> {
    (by != "local" && !by.is_empty()).then_some(by)
}

/// ` by phone`, or nothing.
fn by(source: Option<&CommandSource>) -> String {
    let name = source.and_then(|source| client_name(&source.by));
    name.map_or_else(String::new, |name| format!(" by {}", short(name)))
}

/// The beginning of the first line of a text that has one, and a sign if that is not all.
pub(super) fn short(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or_default();
    let mut short: String = line.chars().take(MAX_SHORT).collect();
    if short.len() < line.len() || lines.next().is_some() {
        short.push_str(" …");
    }
    short
}

/// What is left of an approval once it is answered.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) kind: ApprovalKind,
    subject: String,
    /// Options whose choice changes more than this one request.
    lasting: Vec<ApprovalOption>,
}

impl Request {
    pub(super) fn new(approval: &Approval) -> Request {
        let lasting =
            |option: &&ApprovalOption| matches!(option.kind, OptionKind::AllowAlways | OptionKind::RejectAlways);
        Request {
            kind: approval.kind,
            subject: subject(approval),
            lasting: approval.options.iter().filter(lasting).take(MAX_LASTING).cloned().collect(),
        }
    }

    /// The line for an approval that is still open.
    pub(super) fn waiting(&self, id: impl std::fmt::Display) -> Text {
        Text::new("? ", Paint::YELLOW).with(&format!("waits for approval {id}: {}", self.subject), Paint::PLAIN)
    }
}

/// Options that are kept of an approval, to be named when it is answered.
const MAX_LASTING: usize = 16;

/// What an approval is about, in one line: what runs, rather than how the agent calls it.
pub(super) fn subject(approval: &Approval) -> String {
    let plan = (approval.kind == ApprovalKind::Plan).then_some("the plan");
    let question = approval.questions.iter().flatten().next().map(|question| question.text.as_str());
    let texts = [plan, approval.detail.command.as_deref(), question, Some(&approval.title), Some(&approval.tool)];
    texts.into_iter().flatten().map(short).find(|text| !text.is_empty()).unwrap_or_else(|| approval.id.to_string())
}

/// The line for an approval that was answered or closed.
pub(super) fn resolved(
    request: Option<&Request>,
    outcome: Outcome,
    option: Option<&str>,
    reason: Option<&str>,
    source: Option<&CommandSource>,
) -> Text {
    let is_question = request.is_some_and(|request| request.kind == ApprovalKind::Question);
    let by = by(source);
    let (mark, paint, words) = match outcome {
        Outcome::Allowed if is_question => ("✓ ", Paint::GREEN, format!("answered{by}")),
        Outcome::Allowed => ("✓ ", Paint::GREEN, format!("allowed{by}")),
        Outcome::Denied => ("✗ ", Paint::RED, format!("denied{by}")),
        Outcome::Withdrawn => ("○ ", Paint::DIM, "withdrawn".to_owned()),
        Outcome::Aborted => ("○ ", Paint::DIM, "not answered before the run was stopped".to_owned()),
        Outcome::Lost => ("○ ", Paint::DIM, "the agent no longer waits".to_owned()),
        Outcome::Expired => ("✗ ", Paint::RED, "denied, because no answer came in time".to_owned()),
        Outcome::Unknown => ("○ ", Paint::DIM, "closed".to_owned()),
    };
    let mut line = Text::new(mark, paint).with(&words, Paint::PLAIN);
    let lasting = request.and_then(|request| request.lasting.iter().find(|lasting| option == Some(&lasting.id)));
    if let Some(option) = lasting {
        line.push(&format!(" ({})", short(&option.label)), Paint::PLAIN);
    }
    if let Some(request) = request {
        line.push(&format!(": {}", request.subject), Paint::PLAIN);
    }
    if let Some(reason) = reason.map(short).filter(|reason| !reason.is_empty()) {
        line.push(&format!(" ({reason})"), Paint::DIM);
    }
    line
}

/// How an approval was answered before: `already denied by phone`.
pub(super) fn already_answered(is_question: bool, outcome: Option<Outcome>, by: Option<&str>) -> String {
    let words = match outcome {
        Some(Outcome::Allowed) if !is_question => "already allowed",
        Some(Outcome::Denied) => "already denied",
        Some(Outcome::Withdrawn) => "withdrawn",
        Some(Outcome::Aborted) => "closed, because the run was stopped",
        Some(Outcome::Lost) => "closed, because the agent no longer waits",
        Some(Outcome::Expired) => "denied, because no answer came in time",
        Some(Outcome::Allowed | Outcome::Unknown) | None => "already answered",
    };
    let by = by.and_then(client_name).map_or_else(String::new, |name| format!(" by {}", short(name)));
    format!("{words}{by}")
}

/// What a run took, if that is worth a line.
pub(super) fn cost(duration: Option<Duration>, used: &Used) -> Option<String> {
    let tokens = used.tokens;
    let read = tokens.input.saturating_add(tokens.cache_read).saturating_add(tokens.cache_write);
    let duration = duration.filter(|duration| duration.as_secs() > 0).map(duration_text);
    let tokens =
        (read > 0 || tokens.output > 0).then(|| format!("{} tokens in, {} out", count(read), count(tokens.output)));
    let cost = used.cost.map(f64::from).filter(|cost| *cost >= 0.005).map(|cost| format!("${cost:.2}"));
    let parts: Vec<String> = [duration, tokens, cost].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The line for the end of a run that was not a success.
pub(super) fn failure(complete: &Complete, stopped_by: Option<&CommandSource>, cost: Option<&str>) -> Text {
    if complete.aborted {
        let when = if complete.started { "" } else { " before it started" };
        let cost = cost.map_or_else(String::new, |cost| format!(" · {cost}"));
        let line = Text::new("■ ", Paint::YELLOW).with(&format!("stopped{}{when}", by(stopped_by)), Paint::PLAIN);
        return line.with(&cost, Paint::DIM);
    }
    let reason = match (&complete.error, &complete.stop_reason) {
        (Some(error), _) if !error.message.is_empty() => error.message.clone(),
        (Some(error), _) => error.code.clone(),
        (None, _) if complete.interrupted => "the session ended, or its process died".to_owned(),
        (None, Some(reason)) => format!("the agent stopped: {reason}"),
        (None, None) => "the agent stopped without a reason".to_owned(),
    };
    let words = match complete {
        Complete { started: false, .. } => format!("not started: {reason}"),
        Complete { interrupted: true, .. } => format!("interrupted: {reason}"),
        _ => reason,
    };
    let exit = match (&complete.signal, complete.exit_code) {
        (Some(signal), _) => format!(" (the agent was ended by {signal})"),
        (None, Some(code)) => format!(" (the agent exited with code {code})"),
        (None, None) => String::new(),
    };
    let mut line = Text::new("✗ ", Paint::RED).with(&format!("{words}{exit}"), Paint::RED);
    let retry = complete.error.as_ref().and_then(|error| error.retry_at.as_deref()).and_then(parse_time);
    if let Some(at) = retry {
        line.push(&format!("\nworks again from {}", time_text(at)), Paint::PLAIN);
    }
    if !complete.started {
        line.push("\nthe agent did not get this prompt: it can be sent again", Paint::PLAIN);
    }
    line
}

pub(super) fn parse_time(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// From one time to a later one.
pub(super) fn elapsed(from: Option<OffsetDateTime>, to: Option<OffsetDateTime>) -> Option<Duration> {
    (to? - from?).try_into().ok()
}

fn time_text(at: OffsetDateTime) -> String {
    let form = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");
    at.to_offset(time::UtcOffset::UTC).format(&form).unwrap_or_default()
}

/// `12s`, `3m 5s` or `2h 10m`.
pub(super) fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// `340`, `3.4k` or `1.2M`.
fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number / 100 % 10),
        _ => format!("{}.{}M", number / 1_000_000, number / 100_000 % 10),
    }
}
