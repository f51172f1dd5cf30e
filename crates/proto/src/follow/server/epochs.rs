//! The epochs of a journal, and where a follower with a cursor of one of them continues.

use serde::{Deserialize, Serialize};

use crate::ids::Epoch;
use crate::message::{Cursor, Reason, Verdict};

/// An epoch and the number of its first event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochStart {
    pub epoch: Epoch,
    pub seq: u64,
}

/// The answer to a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resume {
    pub(super) verdict: Verdict,
    pub(super) reason: Option<Reason>,
    /// The number of the next event that is sent.
    pub(super) offset: u64,
}

/// All epochs of a journal that are known, oldest first. There is at least one.
#[derive(Debug)]
pub(super) struct Epochs {
    earlier: Vec<EpochStart>,
    current: EpochStart,
}

impl Epochs {
    /// `fallback` is the current epoch if `starts` is empty.
    pub(super) fn new(mut starts: Vec<EpochStart>, fallback: &Epoch) -> Epochs {
        let current = starts.pop().unwrap_or_else(|| EpochStart { epoch: fallback.clone(), seq: 0 });
        Epochs { earlier: starts, current }
    }

    pub(super) fn current(&self) -> &Epoch {
        &self.current.epoch
    }

    pub(super) fn begin(&mut self, start: EpochStart) {
        self.earlier.push(std::mem::replace(&mut self.current, start));
    }

    /// Where a follower with this cursor continues in a journal that ends at `end`.
    pub(super) fn resume(&self, cursor: Option<&Cursor>, end: u64) -> Resume {
        let snapshot = |reason| Resume { verdict: Verdict::Snapshot, reason: Some(reason), offset: end };
        let Some(cursor) = cursor else { return snapshot(Reason::Fresh) };
        match self.end_of(&cursor.epoch, end) {
            None => snapshot(Reason::Epoch),
            Some(epoch_end) if cursor.offset > epoch_end => snapshot(Reason::Ahead),
            Some(_) => Resume { verdict: Verdict::Exact, reason: None, offset: cursor.offset },
        }
    }

    /// The end of what an epoch shares with the journal; `None` for an unknown epoch.
    ///
    /// An epoch that begins after a repair may begin before earlier ones did. So what counts is the lowest start of all
    /// later epochs, not that of the next one.
    fn end_of(&self, epoch: &Epoch, end: u64) -> Option<u64> {
        let mut shared = end;
        for start in std::iter::once(&self.current).chain(self.earlier.iter().rev()) {
            if start.epoch == *epoch {
                return Some(shared);
            }
            shared = shared.min(start.seq);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(n: u32) -> Epoch {
        format!("{n:08x}").parse().unwrap()
    }

    fn epochs(starts: &[u64]) -> Epochs {
        let starts = (1..).zip(starts).map(|(n, seq)| EpochStart { epoch: epoch(n), seq: *seq });
        Epochs::new(starts.collect(), &epoch(0))
    }

    /// The first offset of a cursor of epoch `n` that is `ahead`.
    fn ahead(epochs: &Epochs, n: u32, end: u64) -> u64 {
        let resume = |offset| epochs.resume(Some(&Cursor { epoch: epoch(n), offset }), end);
        let first = (0..100).find(|offset| resume(*offset).verdict == Verdict::Snapshot).unwrap();
        for offset in 0..first {
            assert_eq!(resume(offset), Resume { verdict: Verdict::Exact, reason: None, offset });
        }
        for offset in [first, first + 1, u64::MAX] {
            let expected = Resume { verdict: Verdict::Snapshot, reason: Some(Reason::Ahead), offset: end };
            assert_eq!(resume(offset), expected, "{offset}");
        }
        first
    }

    #[test]
    fn a_cursor_is_exact_up_to_the_end_of_its_epoch() {
        let epochs = epochs(&[0, 10, 25]);
        assert_eq!([1, 2, 3].map(|n| ahead(&epochs, n, 30)), [11, 26, 31]);
    }

    #[test]
    fn a_repair_ends_all_earlier_epochs_that_reached_past_it() {
        // The second epoch began at 10, and the repair cut the journal back to 7.
        let epochs = epochs(&[0, 10, 7, 20]);
        assert_eq!([1, 2, 3, 4].map(|n| ahead(&epochs, n, 40)), [8, 8, 21, 41]);
    }

    #[test]
    fn without_a_useful_cursor_a_follower_starts_at_the_end() {
        let mut epochs = epochs(&[0]);
        let fresh = Resume { verdict: Verdict::Snapshot, reason: Some(Reason::Fresh), offset: 9 };
        assert_eq!(epochs.resume(None, 9), fresh);
        let cursor = Cursor { epoch: epoch(2), offset: 3 };
        let unknown = Resume { reason: Some(Reason::Epoch), ..fresh };
        assert_eq!(epochs.resume(Some(&cursor), 9), unknown);
        epochs.begin(EpochStart { epoch: epoch(2), seq: 9 });
        assert_eq!(epochs.resume(Some(&cursor), 9).verdict, Verdict::Exact);
        assert_eq!(epochs.current(), &epoch(2));
    }

    #[test]
    fn a_session_whose_epochs_are_not_listed_has_the_one_in_its_description() {
        let epochs = Epochs::new(Vec::new(), &epoch(7));
        assert_eq!(ahead(&epochs, 7, 5), 6);
    }
}
