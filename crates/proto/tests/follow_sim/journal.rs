//! The reference: the journal as it is now, and as it was in each epoch.

use std::collections::BTreeMap;

use bowline_proto::follow::{EpochStart, FollowMessage};
use bowline_proto::ids::Epoch;
use serde_json::{Value, json};

use super::rng::Rng;

/// An event of the journal. No two events ever have the same mark, whatever their number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) mark: u64,
    /// The epoch that begins with this event.
    begins: Option<(&'static str, Epoch)>,
}

pub(crate) struct Journal {
    pub(crate) lines: Vec<Line>,
    pub(crate) epochs: Vec<EpochStart>,
    /// The marks of the whole journal at the end of each earlier epoch, before anything was cut.
    ended: BTreeMap<Epoch, Vec<u64>>,
    marks: u64,
    epoch_count: u32,
}

impl Journal {
    pub(crate) fn new() -> Journal {
        let mut journal =
            Journal { lines: Vec::new(), epochs: Vec::new(), ended: BTreeMap::new(), marks: 0, epoch_count: 0 };
        journal.begin("started");
        journal
    }

    pub(crate) fn end(&self) -> u64 {
        self.lines.len() as u64
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epochs.last().unwrap().epoch
    }

    pub(crate) fn append(&mut self, count: u64) {
        for _ in 0..count {
            self.push(None);
        }
    }

    fn push(&mut self, begins: Option<(&'static str, Epoch)>) {
        self.marks += 1;
        self.lines.push(Line { mark: self.marks, begins });
    }

    /// Begins an epoch with an event of this type.
    pub(crate) fn begin(&mut self, kind: &'static str) -> EpochStart {
        let marks = self.marks();
        self.begin_after(kind, marks)
    }

    /// Cuts the last `count` events and begins an epoch. With `forget`, epochs that began in them are not known any
    /// more, as after a scan of the file.
    pub(crate) fn repair(&mut self, count: u64, forget: bool) -> EpochStart {
        let before = self.marks();
        let keep = self.end().saturating_sub(count);
        self.lines.truncate(keep as usize);
        let start = self.begin_after("repaired", before);
        if forget {
            self.epochs.retain(|epoch| epoch.seq < keep || *epoch == start);
        }
        start
    }

    fn begin_after(&mut self, kind: &'static str, before: Vec<u64>) -> EpochStart {
        if let Some(last) = self.epochs.last() {
            self.ended.insert(last.epoch.clone(), before);
        }
        self.epoch_count += 1;
        let epoch: Epoch = format!("{:08x}", self.epoch_count).parse().unwrap();
        let start = EpochStart { epoch: epoch.clone(), seq: self.end() };
        self.epochs.push(start.clone());
        self.push(Some((kind, epoch)));
        start
    }

    pub(crate) fn marks(&self) -> Vec<u64> {
        self.lines.iter().map(|line| line.mark).collect()
    }

    /// The marks of the first `end` events, as they were in this epoch.
    pub(crate) fn history(&self, epoch: &Epoch, end: u64) -> Vec<u64> {
        let marks = if epoch == self.epoch() { self.marks() } else { self.ended[epoch].clone() };
        assert!(end <= marks.len() as u64, "epoch {epoch} ended at {}, not at {end}", marks.len());
        marks[..end as usize].to_vec()
    }

    /// Some of these events as messages, at least one; adjacent ones may be merged. Also returns the next number.
    pub(crate) fn read(&self, from: u64, to: u64, rng: &mut Rng) -> (Vec<FollowMessage>, u64) {
        assert!(from < to && to <= self.end(), "the journal has the events {from}..{to}");
        let stop = rng.between(from + 1, to.min(from + 30));
        let (mut messages, mut next) = (Vec::new(), from);
        while next < stop {
            let first = next;
            let line = &self.lines[next as usize];
            let mut marks = vec![line.mark];
            next += 1;
            while line.begins.is_none() && next < stop && self.lines[next as usize].begins.is_none() && !rng.one_in(3) {
                marks.push(self.lines[next as usize].mark);
                next += 1;
            }
            let merged = marks.len() > 1;
            let event = match &line.begins {
                None => json!({"type": "text", "marks": marks}),
                Some((kind, epoch)) => json!({"type": kind, "epoch": epoch, "marks": marks}),
            };
            let from = (merged || rng.one_in(5)).then_some(first);
            messages.push(FollowMessage::Event { seq: next - 1, from, at: String::new(), event });
        }
        (messages, next)
    }
}

/// The marks of the events that a message stands for.
pub(crate) fn marks(event: &Value) -> Vec<u64> {
    event["marks"].as_array().unwrap().iter().map(|mark| mark.as_u64().unwrap()).collect()
}
