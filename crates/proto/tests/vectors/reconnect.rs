//! Plays the transcript of a [`Reconnector`].

use std::time::Duration;

use bowline_proto::backoff::Backoff;
use bowline_proto::link::{Action, Reconnector, Status};
use serde_json::{Value, json};

use super::{closed, ms, permanent};

pub(crate) fn play(config: &Value, steps: &[Value]) -> Vec<Value> {
    let mut backoff = if config["preset"] == "browser" { Backoff::BROWSER } else { Backoff::NATIVE };
    if config.get("tries").is_some() {
        backoff.tries = config["tries"].as_u64().map(|tries| tries as u32);
    }
    let mut reconnector = Reconnector::new(backoff);
    steps.iter().map(|step| apply(&mut reconnector, &step["do"], ms(&step["at"]))).collect()
}

fn apply(reconnector: &mut Reconnector, action: &Value, now: Duration) -> Value {
    let (verb, argument) = action.as_object().unwrap().iter().next().unwrap();
    let generation = argument["generation"].as_u64().unwrap_or_default();
    let jitter = argument["jitter"].as_f64().unwrap_or_default();
    match verb.as_str() {
        "start" => reconnector.start(now),
        "opened" => reconnector.handle_opened(generation),
        "attached" => reconnector.handle_attached(generation, now),
        "closed" => reconnector.handle_closed(generation, &closed(argument), jitter, now),
        "wake" => reconnector.handle_wake(now),
        "hidden" => reconnector.handle_hidden(now),
        "redial" => reconnector.redial(now),
        "timeout" => reconnector.handle_timeout(jitter, now),
        "ended" => reconnector.handle_ended(),
        other => panic!("no such step: {other}"),
    }
    let mut then = json!({});
    let actions: Vec<_> = std::iter::from_fn(|| reconnector.poll_action()).map(action_json).collect();
    if !actions.is_empty() {
        then["actions"] = actions.into();
    }
    if let Some(at) = reconnector.poll_timeout() {
        then["timeout"] = json!(at.as_millis() as u64);
    }
    then
}

fn action_json(action: Action) -> Value {
    match action {
        Action::Dial { generation, fresh_ticket: false } => json!({"dial": generation}),
        Action::Dial { generation, fresh_ticket: true } => json!({"dial": generation, "fresh_ticket": true}),
        Action::Drop { generation } => json!({"drop": generation}),
        Action::Show(Status::Reconnecting { attempt, at }) => {
            json!({"show": "reconnecting", "attempt": attempt, "at": at.as_millis() as u64})
        }
        Action::Show(Status::Gone(failure)) => json!({"show": "gone", "why": permanent(failure)}),
        Action::Show(Status::NeedsLogin) => json!({"show": "needs-login"}),
        Action::Show(status) => json!({"show": format!("{status:?}").to_lowercase()}),
    }
}
