//! A model of the server: sessions that run each command once, by its id.

use std::collections::{BTreeMap, BTreeSet};

use bowline_proto::post::Response;
use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct Session {
    /// The commands that were run, in order.
    pub(crate) journal: Vec<(String, Value)>,
    seqs: BTreeMap<String, u64>,
    answered: BTreeSet<String>,
    pub(crate) ended: bool,
    /// Prompts are refused with 429 until this time.
    pub(crate) busy_until: u64,
}

#[derive(Default)]
pub(crate) struct Server {
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) logged_out: bool,
}

impl Server {
    /// Handles one request, as a gateway and a session do.
    pub(crate) fn handle(&mut self, session: &str, id: &str, command: &Value, now: u64) -> Response {
        if self.logged_out {
            return refused(401, "not_authenticated", None, json!({}));
        }
        let session = self.sessions.entry(session.to_owned()).or_default();
        let accepted = |status, seq| http(status, None, None, json!({"id": id, "seq": seq, "run": "r0"}));
        if let Some(seq) = session.seqs.get(id) {
            let same = session.journal[*seq as usize].1 == *command;
            return if same { accepted(200, *seq) } else { refused(409, "id_reused", None, json!({})) };
        }
        if session.ended {
            return refused(410, "session_gone", None, json!({}));
        }
        match command["type"].as_str() {
            Some("prompt") if session.busy_until > now => {
                return refused(429, "too_many", Some((session.busy_until - now) / 1000), json!({}));
            }
            Some("approve") if !session.answered.insert(command["approval"].to_string()) => {
                return refused(409, "already_answered", None, json!({"outcome": "allowed", "by": "another"}));
            }
            Some("abort") if command["run"] == "over" => return refused(409, "not_running", None, json!({})),
            _ => {}
        }
        let seq = session.journal.len() as u64;
        session.journal.push((id.to_owned(), command.clone()));
        session.seqs.insert(id.to_owned(), seq);
        accepted(202, seq)
    }

    pub(crate) fn has_run(&self, id: &str) -> bool {
        self.sessions.values().any(|session| session.seqs.contains_key(id))
    }
}

fn refused(status: u16, code: &str, retry_after: Option<u64>, body: Value) -> Response {
    http(status, Some(code), retry_after, body)
}

pub(crate) fn http(status: u16, code: Option<&str>, retry_after: Option<u64>, body: Value) -> Response {
    let retry_after = retry_after.map(std::time::Duration::from_secs);
    Response::Http { status, code: code.map(str::to_owned), retry_after, body: body.to_string() }
}
