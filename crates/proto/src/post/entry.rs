//! An entry: a command on its way to a session, and how far it has come.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::approval::Outcome;

/// A command on its way to a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The id of the command. Every try has the same.
    pub id: String,
    /// The id of the session; empty if the entry could not be read.
    pub session: String,
    /// The command, as JSON; null if the entry could not be read.
    pub command: Value,
    /// When the user made the entry or sent it again, in milliseconds since 1970.
    pub made: u64,
    /// Entries are sent in this order. It is near the time of the entry, but grows even if the clock is set back.
    pub order: u64,
    pub state: State,
}

impl Entry {
    pub fn lane(&self) -> Lane {
        Lane::of(&self.command)
    }
}

/// Which entries of a session wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Prompts, and everything whose effect depends on what was sent before. Each entry waits for those before it.
    Ordered,
    /// Aborts and answers to approvals, which never wait for a prompt, or for another that is to be sent again.
    Urgent,
}

impl Lane {
    /// The lane of a command.
    pub fn of(command: &Value) -> Lane {
        match command["type"].as_str() {
            Some("abort" | "approve" | "deny" | "answer") => Lane::Urgent,
            _ => Lane::Ordered,
        }
    }
}

/// How far an entry has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum State {
    Waiting {
        why: WaitReason,
    },
    /// A request is under way.
    Sending {
        /// Tries that failed before.
        tries: u32,
    },
    /// The last try failed; the next one follows.
    Retrying {
        /// When, in milliseconds since 1970.
        at: u64,
        /// Tries that failed.
        tries: u32,
        /// Why the last one failed.
        message: String,
    },
    Delivered(Delivery),
    /// Nothing happens until the user sends the entry again or discards it.
    Failed(Failure),
}

/// What an entry waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// For entries before it.
    Turn,
    /// For the user to send or discard a failed entry before it.
    Held,
    Login,
    Offline,
}

/// How an entry was settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Delivery {
    /// The session recorded the command.
    Accepted {
        /// The number of the command in the session's journal.
        seq: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    /// The approval was closed before. The command had no effect.
    AlreadyAnswered {
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// Absent if no client answered it.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The run had ended before. The command had no effect.
    NotRunning,
}

/// Why an entry failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(flatten)]
    pub reason: FailureReason,
    /// For people: what the server said, or why the last try failed. May be empty.
    pub message: String,
}

/// The kinds of failures, by what the user can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum FailureReason {
    /// The server refused the command; it would refuse it again.
    Refused {
        /// The problem code.
        code: String,
    },
    /// The session has ended. Restart it, then send the entry again.
    SessionGone,
    /// The disk or the session's journal is full.
    NoSpace,
    /// It could not be sent within ten minutes.
    Expired,
    /// It was made more than ten minutes ago, and the page was closed, hidden or asleep since.
    Old,
    /// It was stored by a newer version, or is damaged. It can only be discarded, unless its session is known.
    Unreadable,
}
