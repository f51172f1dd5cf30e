//! Agent sessions, with an agent that does what its prompts say (`fixtures/fake-agent`).

mod aborts;
mod approvals;
mod commands;
mod full_disk;
mod hostile;
mod lives;
mod stream;
mod streams;

use std::path::Path;

use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::http::Response;

/// A gateway that knows the fake agent as `fake`, with these variables in its environment.
fn world_with(variables: &[(&str, &str)]) -> World {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fake-agent/agent.mjs");
    let script = script.canonicalize().unwrap();
    // By its whole path: a login shell may have another PATH than this test.
    let paths = std::env::var_os("PATH").unwrap();
    let node = std::env::split_paths(&paths).map(|path| path.join("node")).find(|node| node.is_file()).expect("node");
    let variables: Vec<String> = variables.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    let config = format!(
        "[agents.fake]\nprotocol = \"acp\"\ncommand = [{node:?}, {script:?}]\nenv = {{ {} }}\n\
         [agents.missing]\nprotocol = \"acp\"\ncommand = [\"no-such-agent\"]\n\
         [gateway.limits]\nrequest_rate = 10000\nattach_rate = 10000\n",
        variables.join(", ")
    );
    World::with(&[], &config)
}

fn world() -> World {
    world_with(&[])
}

impl World {
    /// Starts a session of the fake agent. Returns its id.
    #[track_caller]
    fn agent(&self) -> String {
        let made = self.new_agent(&json!({}));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// Requests a session of the fake agent, with these fields in addition.
    #[track_caller]
    fn new_agent(&self, fields: &Value) -> Response {
        let mut body = json!({"kind": "agent", "agent": "fake", "cwd": self.path()});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.call("POST", "/v1/sessions", &body)
    }

    /// Sends a command.
    #[track_caller]
    fn command(&self, session: &str, id: &str, command: &Value) -> Response {
        let body = json!({"id": id, "command": command});
        self.call("POST", &format!("/v1/sessions/{session}/commands"), &body)
    }

    /// Sends a prompt that is accepted. Its command has the id `id`. Returns its run.
    #[track_caller]
    fn prompt(&self, session: &str, id: &str, lines: &[&str]) -> String {
        let answer = self.command(session, id, &json!({"type": "prompt", "text": lines.join("\n")}));
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["run"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt, and waits for the end of its run, which it returns.
    #[track_caller]
    fn run_prompt(&self, session: &str, id: &str, lines: &[&str]) -> Value {
        let run = self.prompt(session, id, lines);
        self.complete(session, &run)
    }

    /// The journal of a session, as far as its lines are complete.
    fn journal(&self, session: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.session_dir(session).join("events.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of a session with this type.
    fn events_of(&self, session: &str, kind: &str) -> Vec<Value> {
        let events = self.journal(session).into_iter().map(|mut record| record["event"].take());
        events.filter(|event| event["type"] == kind).collect()
    }

    /// Waits for the end of a run.
    #[track_caller]
    fn complete(&self, session: &str, run: &str) -> Value {
        let find = || self.events_of(session, "complete").into_iter().find(|event| event["run"] == run);
        until(&format!("{run} has ended"), || find().is_some());
        find().unwrap()
    }

    /// All that the agent said in a run.
    fn said(&self, session: &str, run: &str) -> String {
        let texts = self.events_of(session, "text").into_iter().filter(|event| event["run"] == run);
        texts.map(|event| event["delta"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn describe(&self, session: &str) -> Value {
        let answer = self.call("GET", &format!("/v1/sessions/{session}"), &Value::Null);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// A path in the test's directory, as text.
    fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }
}

/// Waits until a condition holds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    wait_until(what, || holds().then_some(()));
}

/// The events `prompt` and `complete` of a journal: each prompt has exactly one end.
#[track_caller]
fn assert_each_prompt_ends_once(journal: &[Value]) {
    let of = |kind: &str| -> Vec<String> {
        let events = journal.iter().map(|record| &record["event"]).filter(|event| event["type"] == kind);
        events.map(|event| event["run"].as_str().unwrap().to_owned()).collect()
    };
    let (mut prompts, mut ends) = (of("prompt"), of("complete"));
    prompts.sort();
    ends.sort();
    assert_eq!(prompts, ends);
}

/// The journal's numbers have no gap.
#[track_caller]
fn assert_contiguous(journal: &[Value]) {
    let numbers: Vec<u64> = journal.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
}
