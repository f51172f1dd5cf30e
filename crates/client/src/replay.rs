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
    /// The epoch in which the follower began; `None` until that is known.
    first_epoch: Option<Epoch>,
    /// The number after the last event that was received.
    next: u64,
    /// The epochs that began in events that were received.
    epochs: Vec<Epoch>,
    /// The journal is being read again. What comes before the first change is left out.
    reading_again: bool,
    /// Of the journal that is being read again, the first epoch has begun. Those before it are no change.
    passed_first_epoch: bool,
}

impl Replay {
    pub(crate) fn new(cursor: Option<Cursor>) -> Replay {
        let next = cursor.as_ref().map_or(0, |cursor| cursor.offset);
        let first_epoch = cursor.map(|cursor| cursor.epoch);
        Replay { first_epoch, next, epochs: Vec::new(), reading_again: false, passed_first_epoch: false }
    }

    /// Whether the follower has a position that it must continue from.
    pub(crate) fn has_position(&self) -> bool {
        self.first_epoch.is_some()
    }

    /// Events follow from `offset` on, in this epoch.
    pub(crate) fn begin(&mut self, epoch: &Epoch, offset: u64) {
        if self.first_epoch.is_none() {
            (self.first_epoch, self.next) = (Some(epoch.clone()), offset);
        }
    }

    /// The journal is read again from its beginning. Returns `false` if that was tried already, and no event came.
    pub(crate) fn restart(&mut self) -> bool {
        self.passed_first_epoch = false;
        !std::mem::replace(&mut self.reading_again, true)
    }

    /// Passes an event on, unless it was received before.
    pub(crate) fn take(&mut self, record: Record<Value>, out: &mut VecDeque<FollowEvent>) {
        let epoch = epoch_begun(&record.event);
        if self.reading_again {
            // The end of the journal was lost before this epoch began, perhaps even before the first event that was received.
            let is_new = |epoch: &Epoch| self.first_epoch.as_ref() != Some(epoch) && !self.epochs.contains(epoch);
            let is_change = self.passed_first_epoch && epoch.as_ref().is_some_and(is_new);
            self.passed_first_epoch |= epoch.is_some() && epoch == self.first_epoch;
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

    fn started(seq: u64, epoch: &str) -> Record<Value> {
        record(seq, json!({"type": "started", "epoch": epoch}))
    }

    fn text(seq: u64) -> Record<Value> {
        record(seq, json!({"type": "text"}))
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
        let started = started(0, "9f3c61d2");
        let mut replay = replay_from(0);
        assert_eq!(take(&mut replay, &[started.clone(), text(1), text(2), text(3)]), [0, 1, 2, 3]);
        assert!(replay.restart());
        assert!(!replay.restart(), "it must not be tried for ever");
        let repaired = record(2, json!({"type": "repaired", "epoch": "0a0a0a0a"}));
        assert_eq!(take(&mut replay, &[started, text(1), repaired, text(3), text(4)]), [-2, 2, 3, 4]);
    }

    #[test]
    fn r40_an_unchanged_journal_continues_where_it_was() {
        let mut replay = replay_from(2);
        assert_eq!(take(&mut replay, &[text(2), text(3)]), [2, 3]);
        assert!(replay.restart());
        let journal = [started(0, "0a0a0a0a"), started(1, "9f3c61d2"), text(2), text(3), text(4)];
        assert_eq!(take(&mut replay, &journal), [4], "the earlier lives were not wanted");
    }

    #[test]
    fn r40_a_repair_before_the_first_event_that_was_wanted_is_passed_on() {
        let mut replay = replay_from(4);
        assert_eq!(take(&mut replay, &[text(4), text(5)]), [4, 5]);
        assert!(replay.restart());
        let repaired = record(3, json!({"type": "repaired", "epoch": "0b0b0b0b"}));
        let journal = [started(0, "0a0a0a0a"), started(1, "9f3c61d2"), text(2), repaired, text(4), text(5), text(6)];
        assert_eq!(take(&mut replay, &journal), [-3, 3, 4, 5, 6]);
    }
}
