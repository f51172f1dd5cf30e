//! A follower's position in a journal, and the rules by which it moves.

use serde_json::Value;

use crate::Offset;
use crate::ids::Epoch;
use crate::journal::Record;
use crate::message::{Cursor, Verdict};

/// The epoch and the number of the next event. Without them, a follower starts where the server says.
///
/// What does not continue the position is an error that leaves it as it was: the follower drops the connection, and
/// resumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    cursor: Option<Cursor>,
}

impl Position {
    pub fn new(cursor: Option<Cursor>) -> Position {
        Position { cursor }
    }

    /// Where a new connection resumes.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }

    /// The server says from where it sends events. With `exact` that is the next event; with `snapshot` it may be any
    /// other, and what came before has to be read again.
    pub fn handle_verdict(&mut self, verdict: Verdict, epoch: &Epoch, offset: Offset) -> Result<(), &'static str> {
        let resumed = self.cursor.as_ref().is_some_and(|cursor| cursor.offset == offset);
        if verdict == Verdict::Exact && !resumed {
            return Err("an exact resume from another event than the next one");
        }
        self.cursor = Some(Cursor { epoch: epoch.clone(), offset });
        Ok(())
    }

    /// An event arrived. It must begin with the expected number; then the number after its last is expected.
    ///
    /// If it begins an epoch, that is the cursor's from now on, even if the verdict named a later one: a follower does not
    /// know where the journal ended then, and the server accepts the cursor of an earlier epoch as well.
    pub fn handle_record(&mut self, record: &Record<Value>) -> Result<(), &'static str> {
        let cursor = self.cursor.as_mut().ok_or("an event before the verdict")?;
        let first = record.first();
        if first > cursor.offset {
            return Err("events are missing");
        }
        if first < cursor.offset {
            return Err("an event that was received before");
        }
        let next = record.seq.checked_add(1).filter(|next| *next > first).ok_or("an event with an invalid range")?;
        cursor.offset = next;
        if let Some(epoch) = epoch_begun(&record.event) {
            cursor.epoch = epoch;
        }
        Ok(())
    }
}

/// The epoch that begins with this event, if one does.
pub fn epoch_begun(event: &Value) -> Option<Epoch> {
    let begins = matches!(event.get("type")?.as_str()?, "started" | "repaired");
    event.get("epoch").filter(|_| begins)?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_cannot_end_past_the_last_number() {
        let epoch: Epoch = "9f3c61d2".parse().unwrap();
        let mut position = Position::new(Some(Cursor { epoch, offset: u64::MAX }));
        let before = position.clone();
        let record = Record::new(u64::MAX, String::new(), Value::Null);
        assert_eq!(position.handle_record(&record), Err("an event with an invalid range"));
        assert_eq!(position, before);
    }
}
