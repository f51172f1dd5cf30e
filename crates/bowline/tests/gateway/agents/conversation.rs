//! What tests of agent sessions do with them: send commands, read the journal, and check its promises.

use serde_json::{Value, json};

use super::super::gateway::{World, wait_until};
use super::super::http::{self, Response};

impl World {
    /// Sends a command.
    #[track_caller]
    pub(super) fn command(&self, session: &str, id: &str, command: &Value) -> Response {
        let body = json!({"id": id, "command": command});
        self.call("POST", &format!("/v1/sessions/{session}/commands"), &body)
    }

    /// Sends a prompt that is accepted. Its command has the id `id`. Returns its run.
    #[track_caller]
    pub(super) fn prompt(&self, session: &str, id: &str, lines: &[&str]) -> String {
        let answer = self.command(session, id, &json!({"type": "prompt", "text": lines.join("\n")}));
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["run"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt, and waits for the end of its run, which it returns.
    #[track_caller]
    pub(super) fn run_prompt(&self, session: &str, id: &str, lines: &[&str]) -> Value {
        let run = self.prompt(session, id, lines);
        self.complete(session, &run)
    }

    /// The journal of a session, as far as its lines are complete.
    pub(super) fn journal(&self, session: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.session_dir(session).join("events.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of a session with this type.
    pub(super) fn events_of(&self, session: &str, kind: &str) -> Vec<Value> {
        let events = self.journal(session).into_iter().map(|mut record| record["event"].take());
        events.filter(|event| event["type"] == kind).collect()
    }

    /// Waits for the end of a run.
    #[track_caller]
    pub(super) fn complete(&self, session: &str, run: &str) -> Value {
        let find = || self.events_of(session, "complete").into_iter().find(|event| event["run"] == run);
        until(&format!("{run} has ended"), || find().is_some());
        find().unwrap()
    }

    /// All that the agent said in a run.
    pub(super) fn said(&self, session: &str, run: &str) -> String {
        let texts = self.events_of(session, "text").into_iter().filter(|event| event["run"] == run);
        texts.map(|event| event["delta"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    pub(super) fn describe(&self, session: &str) -> Value {
        let answer = self.call("GET", &format!("/v1/sessions/{session}"), &Value::Null);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// A path in the test's directory, as text.
    pub(super) fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(super) fn abort(&self, session: &str, id: &str, run: &str) {
        let answer = self.command(session, id, &json!({"type": "abort", "run": run}));
        assert_eq!(answer.status, 202, "{}", answer.text());
    }

    /// The approvals of a session, once there are this many.
    #[track_caller]
    pub(super) fn approvals(&self, session: &str, count: usize) -> Vec<Value> {
        let open = || self.describe(session)["approvals"].as_array().unwrap().clone();
        until(&format!("{count} approvals wait"), || open().len() == count);
        open()
    }

    /// Uploads a file.
    pub(super) fn upload_as(&self, token: &str, session: &str, name: &str, content: &[u8]) -> Response {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/x-anything")];
        http::request(self.address, "PUT", &format!("/v1/sessions/{session}/uploads/{name}"), &headers, content)
            .unwrap()
    }

    /// Uploads a file that is accepted. Returns its id.
    #[track_caller]
    pub(super) fn upload(&self, session: &str, name: &str, content: &[u8]) -> String {
        let answer = self.upload_as(&self.token, session, name, content);
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt with attachments that is accepted. Returns its run.
    #[track_caller]
    pub(super) fn prompt_with(&self, session: &str, id: &str, text: &str, attachments: &[&str]) -> String {
        let command = json!({"type": "prompt", "text": text, "attachments": attachments});
        let answer = self.command(session, id, &command);
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["run"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(super) fn answer(&self, session: &str, id: &str, mut command: Value, approval: &Value) -> Response {
        command["approval"] = approval["id"].clone();
        self.command(session, id, &command)
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    wait_until(what, || holds().then_some(()));
}

/// Each prompt, and each run that the agent began by itself, has exactly one end.
#[track_caller]
pub(super) fn assert_each_run_ends_once(journal: &[Value]) {
    let of = |is_meant: fn(&Value) -> bool| -> Vec<String> {
        let events = journal.iter().map(|record| &record["event"]).filter(|event| is_meant(event));
        events.map(|event| event["run"].as_str().unwrap().to_owned()).collect()
    };
    let begins = |event: &Value| event["type"] == "prompt" || event["cause"] == "agent";
    let (mut begun, mut ended) = (of(begins), of(|event| event["type"] == "complete"));
    begun.sort();
    ended.sort();
    assert_eq!(begun, ended);
}

/// The journal's numbers have no gap.
#[track_caller]
pub(super) fn assert_contiguous(journal: &[Value]) {
    let numbers: Vec<u64> = journal.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
}

/// The events `approval_requested` and `approval_resolved` of a journal: each request has exactly one outcome.
#[track_caller]
pub(super) fn assert_each_approval_has_one_outcome(journal: &[Value]) {
    let events = || journal.iter().map(|record| &record["event"]);
    let requested =
        events().filter(|event| event["type"] == "approval_requested").map(|event| &event["approval"]["id"]);
    let resolved = events().filter(|event| event["type"] == "approval_resolved").map(|event| &event["approval"]);
    let (mut requested, mut resolved): (Vec<_>, Vec<_>) = (requested.collect(), resolved.collect());
    requested.sort_by_key(ToString::to_string);
    resolved.sort_by_key(ToString::to_string);
    assert_eq!(requested, resolved);
}

/// Events with each text in one piece, and without their numbers and times: the same for every way to read them.
pub(super) fn joined(records: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for event in records.iter().map(|record| &record["event"]) {
        let same = |last: &Value| ["type", "run", "block", "parent"].iter().all(|field| last[*field] == event[*field]);
        match joined.last_mut() {
            Some(last) if event["delta"].is_string() && same(last) => {
                last["delta"] =
                    json!(format!("{}{}", last["delta"].as_str().unwrap(), event["delta"].as_str().unwrap()));
            }
            _ => joined.push(event.clone()),
        }
    }
    joined
}

/// A client has received what the journal has. A message may stand for several events of one text.
#[track_caller]
pub(super) fn assert_same_events(received: &[Value], journal: &[Value]) {
    let last = |records: &[Value]| records.last().map(|record| record["seq"].clone());
    assert_eq!(last(received), last(journal));
    // Not `assert_eq`: a conversation can have megabytes.
    let (received, journal) = (joined(received), joined(journal));
    let first = received.iter().zip(&journal).find(|(received, journal)| received != journal);
    assert!(first.is_none() && received.len() == journal.len(), "{first:?}");
}

/// Whether a process runs; a zombie does not.
pub(super) fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}
