//! A line of a session's journal, whatever the kind of session.

use serde::{Deserialize, Serialize};

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record<E> {
    /// Starts at 0 and continues over restarts and compactions.
    pub seq: u64,
    /// The first number that this record stands for, if it stands for several: `from` to `seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// When it was appended, in RFC 3339 UTC.
    pub at: String,
    pub event: E,
}

impl<E> Record<E> {
    /// A record that stands for one number.
    pub fn new(seq: u64, at: String, event: E) -> Record<E> {
        Record { seq, from: None, at, event }
    }

    /// The first number that this record stands for.
    pub fn first(&self) -> u64 {
        self.from.unwrap_or(self.seq)
    }
}
