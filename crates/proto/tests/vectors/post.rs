//! Plays the transcript of a [`PostQueue`].

use std::time::Duration;

use bowline_proto::post::{Action, PostQueue, Response, SendError};
use serde_json::{Value, json};

/// So many actions of a step are only counted.
const MAX_ACTIONS: usize = 20;
/// Of a stored text that is longer than this, only the length is compared.
const MAX_STORED: usize = 4096;

pub(crate) fn play(_config: &Value, steps: &[Value]) -> Vec<Value> {
    let mut queue = PostQueue::new();
    steps.iter().map(|step| apply(&mut queue, &step["do"], step["at"].as_u64().unwrap())).collect()
}

/// Applies one step, then polls until nothing is left.
fn apply(queue: &mut PostQueue, action: &Value, now: u64) -> Value {
    let (verb, argument) = action.as_object().unwrap().iter().next().unwrap();
    let text = |key: &str| argument[key].as_str().unwrap();
    let jitter = argument["jitter"].as_f64().unwrap_or_default();
    let mut then = json!({});
    match verb.as_str() {
        "send" => {
            if let Err(error) = queue.send(text("session"), text("id"), argument["command"].clone(), now) {
                then["refused"] = refusal(error).into();
            }
        }
        "fill" => fill(queue, argument, now, &mut then),
        "restore" => {
            let stored = argument.as_array().unwrap().iter().map(|entry| {
                let stored = &entry["stored"];
                let text = stored.as_str().map_or_else(|| stored.to_string(), str::to_owned);
                (entry["id"].as_str().unwrap().to_owned(), text)
            });
            let left_out = queue.restore(stored, now);
            if !left_out.is_empty() {
                then["left_out"] = json!(left_out);
            }
        }
        "response" => {
            let attempt = argument["attempt"].as_u64().unwrap();
            queue.handle_response(text("id"), attempt, &response(argument), jitter, now);
        }
        "recorded" => {
            let seq = argument["seq"].as_u64().unwrap();
            queue.handle_recorded(text("session"), text("id"), seq, argument["run"].as_str(), now);
        }
        "removed" => queue.handle_removed(text("id"), now),
        "login" => queue.handle_login(now),
        "offline" => queue.handle_offline(now),
        "online" => queue.handle_online(now),
        "hidden" => queue.handle_hidden(now),
        "wake" => queue.handle_wake(now),
        "timeout" => queue.handle_timeout(jitter, now),
        "send_again" => then["done"] = queue.send_again(text("id"), now).into(),
        "discard" => then["done"] = queue.discard(text("id"), now).into(),
        "dismiss" => then["done"] = queue.dismiss(text("id")).into(),
        other => panic!("no such step: {other}"),
    }
    let actions = std::iter::from_fn(|| queue.poll_action()).collect::<Vec<_>>();
    match actions.len() {
        0 => {}
        many @ MAX_ACTIONS.. => then["action_count"] = many.into(),
        _ => then["actions"] = actions.iter().map(|action| action_json(queue, action)).collect(),
    }
    if let Some(at) = queue.poll_timeout() {
        then["timeout"] = at.into();
    }
    if queue.needs_login() {
        then["needs_login"] = true.into();
    }
    then
}

/// Sends many prompts with ids of one prefix, and counts those that were accepted.
fn fill(queue: &mut PostQueue, argument: &Value, now: u64, then: &mut Value) {
    let (mut accepted, prefix) = (0, argument["prefix"].as_str().unwrap());
    for i in 0..argument["count"].as_u64().unwrap() {
        let command =
            json!({"type": argument["type"], "text": "x".repeat(argument["bytes"].as_u64().unwrap() as usize)});
        match queue.send(argument["session"].as_str().unwrap(), &format!("{prefix}{i}"), command, now) {
            Ok(()) => accepted += 1,
            Err(error) => then["refused"] = refusal(error).into(),
        }
    }
    then["accepted"] = accepted.into();
}

pub(crate) fn response(value: &Value) -> Response {
    let Some(status) = value["status"].as_u64() else {
        return Response::Missing { why: value["why"].as_str().unwrap().to_owned() };
    };
    let body = &value["body"];
    Response::Http {
        status: status as u16,
        code: value["code"].as_str().map(str::to_owned),
        retry_after: value["retry_after"].as_u64().map(Duration::from_secs),
        body: body.as_str().map_or_else(|| body.to_string(), str::to_owned),
    }
}

fn refusal(error: SendError) -> &'static str {
    match error {
        SendError::SessionFull => "session_full",
        SendError::Full => "full",
        SendError::TooManyBytes => "too_many_bytes",
        SendError::TooLong => "too_long",
        SendError::Invalid => "invalid",
        SendError::IdInUse => "id_in_use",
    }
}

fn action_json(queue: &PostQueue, action: &Action) -> Value {
    match action {
        Action::Send { id, attempt } => json!({"send": id, "attempt": attempt}),
        Action::Drop { id, attempt } => json!({"drop": id, "attempt": attempt}),
        Action::Store { id } => {
            let stored = queue.entry(id).unwrap().to_stored();
            match stored.len() {
                0..=MAX_STORED => json!({"store": id, "stored": serde_json::from_str::<Value>(&stored).unwrap()}),
                bytes => json!({"store": id, "stored_bytes": bytes}),
            }
        }
        Action::Unstore { id } => json!({"unstore": id}),
        Action::Show { id } => json!({"show": id, "state": queue.entry(id).map(|entry| json!(entry.state))}),
        Action::Hide { id } => json!({"hide": id}),
    }
}
