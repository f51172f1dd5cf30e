//! What the response to a command means for its entry.

use std::time::Duration;

use serde_json::Value;

use super::MAX_MESSAGE;
use super::entry::{Delivery, Failure, FailureReason};
use crate::config::MAX_RETRY_AFTER;

/// The response to a request that sent a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// No response came, or only a part of one. The command may have been received.
    Missing {
        /// Why, for people.
        why: String,
    },
    Http {
        status: u16,
        /// The header `Bowline-Code`: the response comes from a gateway and not from a server in between.
        code: Option<String>,
        /// From the header `Retry-After`.
        retry_after: Option<Duration>,
        body: String,
    },
}

/// What a response means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseClass {
    Delivered(Delivery),
    /// Another try fails until the user logs in again.
    NeedsLogin,
    Retry {
        /// The shortest wait, at most [`MAX_RETRY_AFTER`].
        not_before: Option<Duration>,
        /// The gateway itself requested the wait, so it also holds on a wake.
        binding: bool,
        /// Why, for people.
        message: String,
    },
    Failed(Failure),
}

/// Classifies the response to the command `id`.
///
/// Only a gateway can settle an entry: by a body that has the command's id, or by a refusal with `Bowline-Code`. All
/// else may come from a proxy, or from a login page of the network.
pub fn classify_response(id: &str, response: &Response) -> ResponseClass {
    let (status, code, retry_after, body) = match response {
        Response::Missing { why } => return retry(None, false, cut(why)),
        Response::Http { status, code, retry_after, body } => (*status, code.as_deref(), *retry_after, body),
    };
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    if (200..=299).contains(&status) {
        return match accepted(id, &body) {
            Some(delivery) => ResponseClass::Delivered(delivery),
            None => retry(None, false, "the response is not from Bowline".to_owned()),
        };
    }
    let message = message(status, &body);
    let Some(code) = code else {
        let waits = matches!(status, 429 | 503);
        return retry(retry_after.filter(|_| waits), false, message);
    };
    let failed = |reason| ResponseClass::Failed(Failure { reason, message: message.clone() });
    match (status, code) {
        (401, _) => ResponseClass::NeedsLogin,
        (409, "already_answered") => ResponseClass::Delivered(Delivery::AlreadyAnswered {
            outcome: serde_json::from_value(body["outcome"].clone()).ok(),
            by: body["by"].as_str().map(cut),
        }),
        (409, "not_running") => ResponseClass::Delivered(Delivery::NotRunning),
        (410, _) => failed(FailureReason::SessionGone),
        (507, _) => failed(FailureReason::NoSpace),
        (429 | 503, _) => retry(retry_after, true, message),
        (408 | 425, _) => retry(None, false, message),
        (400..=499, _) => failed(FailureReason::Refused { code: cut(code) }),
        _ => retry(None, false, message),
    }
}

/// The settlement that a successful response proves, if it is about this command.
fn accepted(id: &str, body: &Value) -> Option<Delivery> {
    let seq = body["seq"].as_u64().filter(|_| body["id"] == id)?;
    Some(Delivery::Accepted { seq, run: body["run"].as_str().map(cut) })
}

fn retry(not_before: Option<Duration>, binding: bool, message: String) -> ResponseClass {
    let not_before = not_before.map(|wait| wait.min(MAX_RETRY_AFTER));
    ResponseClass::Retry { not_before, binding: binding && not_before.is_some(), message }
}

/// What the problem document says, or the status if there is none.
fn message(status: u16, body: &Value) -> String {
    let text = ["detail", "title"].iter().find_map(|field| body[field].as_str().filter(|text| !text.is_empty()));
    text.map_or_else(|| format!("HTTP status {status}"), cut)
}

/// The beginning of a text from outside.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(MAX_MESSAGE).collect()
}
