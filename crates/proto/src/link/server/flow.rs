//! How much may be in flight to one viewer: its own speed decides.

use std::time::Duration;

use crate::Offset;
use crate::config::PACE;

/// Buckets in which the last [`PACE`] is counted.
const BUCKETS: usize = 10;

/// Counts what is in flight to a viewer and how fast it acknowledges.
#[derive(Debug)]
pub(super) struct Flow {
    window: u64,
    least: u64,
    acked: Offset,
    /// A snapshot on its way: its offset, and its bytes plus all that was in flight before it.
    snapshot: Option<(Offset, u64)>,
    pace: Pace,
}

impl Flow {
    pub(super) fn new(window: u64, least: u64, at: Offset) -> Flow {
        Flow { window, least, acked: at, snapshot: None, pace: Pace::default() }
    }

    /// A snapshot at `offset` follows output that ended at `sent`.
    pub(super) fn jump(&mut self, sent: Offset, offset: Offset, bytes: u64) {
        self.snapshot = Some((offset, self.in_flight(sent) + bytes));
    }

    /// The viewer rendered up to `offset`, which is not past what it was sent.
    pub(super) fn ack(&mut self, offset: Offset, now: Duration) {
        let counted = match self.snapshot {
            Some((at, bytes)) if offset >= at => {
                self.snapshot = None;
                bytes + (offset - at)
            }
            // Before the snapshot came what was in flight before it.
            Some((at, bytes)) => {
                let fresh = offset.saturating_sub(self.acked).min(bytes);
                self.snapshot = Some((at, bytes - fresh));
                fresh
            }
            None => offset.saturating_sub(self.acked),
        };
        self.acked = self.acked.max(offset);
        self.pace.add(counted, now);
    }

    /// A snapshot was sent and its offset is not acknowledged.
    pub(super) fn is_painting(&self) -> bool {
        self.snapshot.is_some()
    }

    pub(super) fn in_flight(&self, sent: Offset) -> u64 {
        match self.snapshot {
            Some((at, bytes)) => bytes + sent.saturating_sub(at),
            None => sent.saturating_sub(self.acked),
        }
    }

    /// The most that may be in flight now.
    pub(super) fn allowance(&self, now: Duration) -> u64 {
        self.pace.lately(now).max(self.least).min(self.window)
    }
}

/// Bytes per slice of time, over the last [`PACE`].
#[derive(Debug, Default)]
struct Pace {
    buckets: [u64; BUCKETS],
    /// The slice that the newest bucket counts.
    slice: u64,
}

impl Pace {
    fn slice(now: Duration) -> u64 {
        (now.as_nanos() * BUCKETS as u128 / PACE.as_nanos()) as u64
    }

    fn add(&mut self, bytes: u64, now: Duration) {
        let slice = Pace::slice(now).max(self.slice);
        if slice - self.slice >= BUCKETS as u64 {
            self.buckets = [0; BUCKETS];
        } else {
            for old in self.slice + 1..=slice {
                self.buckets[old as usize % BUCKETS] = 0;
            }
        }
        self.slice = slice;
        let bucket = &mut self.buckets[slice as usize % BUCKETS];
        *bucket = bucket.saturating_add(bytes);
    }

    fn lately(&self, now: Duration) -> u64 {
        let oldest = (Pace::slice(now) + 1).saturating_sub(BUCKETS as u64);
        let first = (self.slice + 1).saturating_sub(BUCKETS as u64).max(oldest);
        (first..=self.slice).fold(0, |sum, slice| sum.saturating_add(self.buckets[slice as usize % BUCKETS]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn r25_allowance_follows_the_viewers_speed() {
        let mut flow = Flow::new(1 << 20, 32 << 10, 0);
        assert_eq!(flow.allowance(MS(0)), 32 << 10);
        for step in 1..=20 {
            flow.ack(step * 10_000, MS(step * 50));
        }
        assert_eq!(flow.allowance(MS(1000)), 100_000);
        assert_eq!(flow.allowance(MS(1250)), 50_000);
        assert_eq!(flow.allowance(MS(9000)), 32 << 10);
        flow.ack(10 << 20, MS(9000));
        assert_eq!(flow.allowance(MS(9000)), 1 << 20);
    }

    #[test]
    fn a_snapshot_counts_until_its_offset_is_acknowledged() {
        let mut flow = Flow::new(1 << 20, 32 << 10, 100);
        flow.jump(150, 9000, 5000);
        assert_eq!(flow.in_flight(9000), 5050);
        flow.ack(150, MS(1));
        assert_eq!(flow.in_flight(9010), 5010);
        flow.ack(9000, MS(2));
        assert!(!flow.is_painting());
        assert_eq!(flow.in_flight(9010), 10);
    }
}
