//! The form in which an entry is stored, so that it is sent even if the page is closed before.

use serde_json::{Value, json};

use super::MAX_SESSION;
use super::entry::{Entry, Failure, FailureReason, State, WaitReason};
use crate::config::COMMAND_ID;

/// The version of the form. An entry of another version is not sent.
const VERSION: u64 = 1;
/// The latest time that a stored entry may have: the latest one that JavaScript can represent as a date.
const MAX_TIME: u64 = 8_640_000_000_000_000;

impl Entry {
    /// The text to store. It has no state except a failure, because another try finds out everything else.
    pub fn to_stored(&self) -> String {
        let Entry { id, session, command, made, order, state } = self;
        let mut stored = json!({
            "version": VERSION, "id": id, "session": session, "order": order, "made": made, "command": command,
        });
        if let State::Failed(failure) = state {
            stored["failed"] = json!(failure);
        }
        stored.to_string()
    }

    /// Reads a stored text. One that cannot be read is a failed entry, so that the user learns of it.
    pub fn from_stored(id: &str, text: &str) -> Entry {
        read(id, text).unwrap_or_else(|| Entry {
            id: id.to_owned(),
            session: String::new(),
            command: Value::Null,
            made: 0,
            order: 0,
            state: unreadable("a stored message cannot be read; it is damaged, or of a newer version"),
        })
    }
}

fn read(id: &str, text: &str) -> Option<Entry> {
    let mut stored: Value = serde_json::from_str(text).ok()?;
    let time = |value: &Value| value.as_u64().filter(|time| *time <= MAX_TIME);
    let session = stored["session"].as_str().filter(|session| (1..=MAX_SESSION).contains(&session.len()))?.to_owned();
    let is_readable = stored["version"] == VERSION && stored["id"] == id && (1..=COMMAND_ID).contains(&id.len());
    let (made, order) = (time(&stored["made"])?, time(&stored["order"])?);
    let state = match stored.get("failed") {
        None => State::Waiting { why: WaitReason::Turn },
        // Never sent by itself, even if this version does not know the reason.
        Some(failed) => serde_json::from_value(failed.clone()).map_or_else(
            |_| unreadable("sending it failed for a reason that this version does not know"),
            State::Failed,
        ),
    };
    let command = stored["command"].take();
    let is_command = command["type"].is_string();
    (is_readable && is_command).then(|| Entry { id: id.to_owned(), session, command, made, order, state })
}

fn unreadable(message: &str) -> State {
    State::Failed(Failure { reason: FailureReason::Unreadable, message: message.to_owned() })
}
