//! Leaves out events that were received before, when a journal has to be read again from its beginning.

use std::collections::VecDeque;

use bowline_proto::follow::epoch_begun;
use bowline_proto::ids::Epoch;
use bowline_proto::journal::Record;
use bowline_proto::message::Cursor;
use serde_json::Value;

use crate::follow::FollowEvent;

/// What a follower has received of a journal.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The number of the first event that was wanted; `None` until that is known.
    first: Option<u64>,
    /// The number after the last event that was received.
    next: u64,
    /// The epochs that began in events that were received.
    epochs: Vec<Epoch>,
    /// The journal is being read again. What comes before the first change is left out.
    reading_again: bool,
}

impl Replay {
    pub(crate) fn new(cursor: Option<Cursor>) -> Replay {
        let first = cursor.map(|cursor| cursor.offset);
        Replay { first, next: first.unwrap_or(0), epochs: Vec::new(), reading_again: false }
    }

    /// Whether the follower has a position that it must continue from.
    pub(crate) fn has_position(&self) -> bool {
        self.first.is_some()
    }

    /// Events follow from `offset` on.
    pub(crate) fn begin(&mut self, offset: u64) {
        if self.first.is_none() {
            (self.first, self.next) = (Some(offset), offset);
        }
    }

    /// The journal is read again from its beginning. Returns `false` if that was tried already, and no event came.
    pub(crate) fn restart(&mut self) -> bool {
        !std::mem::replace(&mut self.reading_again, true)
    }

    /// Passes an event on, unless it was received before.
    pub(crate) fn take(&mut self, record: Record<Value>, out: &mut VecDeque<FollowEvent>) {
        let epoch = epoch_begun(&record.event);
        if self.reading_again {
            let is_wanted = self.first.is_none_or(|first| record.seq >= first);
            let is_change = is_wanted && epoch.as_ref().is_some_and(|epoch| !self.epochs.contains(epoch));
            if record.seq < self.next && !is_change {
                return;
            }
            self.reading_again = false;
            if record.first() < self.next {
                out.push_back(FollowEvent::Cut { from: record.first() });
            }
        }
        self.epochs.extend(epoch);
        self.next = record.seq + 1;
        out.push_back(FollowEvent::Event(record));
    }
}

#[cfg(test)]
mod tests {
    use bowline_proto::message::Cursor;
    use serde_json::json;

    use super::*;

    fn record(seq: u64, event: Value) -> Record<Value> {
        Record::new(seq, String::new(), event)
    }

    fn replay_from(offset: u64) -> Replay {
        Replay::new(Some(Cursor { epoch: "9f3c61d2".parse().unwrap(), offset }))
    }

    /// What is passed on: the numbers of events, and negative ones for cuts.
    fn take(replay: &mut Replay, records: &[Record<Value>]) -> Vec<i64> {
        let mut out = VecDeque::new();
        records.iter().for_each(|record| replay.take(record.clone(), &mut out));
        let number = |event: FollowEvent| match event {
            FollowEvent::Event(record) => record.seq as i64,
            FollowEvent::Cut { from } => -(from as i64),
            other => panic!("{other:?}"),
        };
        out.into_iter().map(number).collect()
    }

    #[test]
    fn r40_events_before_the_cut_are_left_out_and_the_others_replaced() {
        let started = record(0, json!({"type": "started", "epoch": "9f3c61d2"}));
        let text = |seq| record(seq, json!({"type": "text"}));
        let mut replay = replay_from(0);
        assert_eq!(take(&mut replay, &[started.clone(), text(1), text(2), text(3)]), [0, 1, 2, 3]);
        assert!(replay.restart());
        assert!(!replay.restart(), "it must not be tried for ever");
        let repaired = record(2, json!({"type": "repaired", "epoch": "0a0a0a0a"}));
        assert_eq!(take(&mut replay, &[started, text(1), repaired, text(3), text(4)]), [-2, 2, 3, 4]);
    }

    #[test]
    fn r40_an_unchanged_journal_continues_where_it_was() {
        let started = record(0, json!({"type": "started", "epoch": "9f3c61d2"}));
        let text = |seq| record(seq, json!({"type": "text"}));
        let mut replay = replay_from(1);
        assert_eq!(take(&mut replay, &[text(1), text(2)]), [1, 2]);
        assert!(replay.restart());
        assert_eq!(take(&mut replay, &[started, text(1), text(2), text(3)]), [3], "also the start was not wanted");
    }
}
