//! Limits how much output is in flight to one viewer, according to how fast it acknowledges.

use std::time::Duration;

use crate::Offset;
use crate::config::PACE;

/// The number of buckets that cover the last [`PACE`].
const BUCKETS: usize = 10;

/// What is in flight to a viewer, and how fast it acknowledges.
#[derive(Debug)]
pub(super) struct Flow {
    window: u64,
    min_allowance: u64,
    acked: Offset,
    /// An unacknowledged snapshot: its offset, and its bytes plus all that was in flight before it.
    snapshot: Option<(Offset, u64)>,
    ack_rate: AckRate,
}

impl Flow {
    pub(super) fn new(window: u64, min_allowance: u64, at: Offset) -> Flow {
        Flow { window, min_allowance, acked: at, snapshot: None, ack_rate: AckRate::default() }
    }

    /// A snapshot at `offset` follows the output before `sent`.
    pub(super) fn begin_snapshot(&mut self, sent: Offset, offset: Offset, bytes: u64) {
        self.snapshot = Some((offset, self.in_flight(sent) + bytes));
    }

    /// The viewer has rendered everything before `offset`, which must not be past what was sent.
    pub(super) fn ack(&mut self, offset: Offset, now: Duration) {
        let counted = match self.snapshot {
            Some((at, bytes)) if offset >= at => {
                self.snapshot = None;
                bytes + (offset - at)
            }
            // This acknowledges output that was in flight before the snapshot.
            Some((at, bytes)) => {
                let new = offset.saturating_sub(self.acked).min(bytes);
                self.snapshot = Some((at, bytes - new));
                new
            }
            None => offset.saturating_sub(self.acked),
        };
        self.acked = self.acked.max(offset);
        self.ack_rate.add(counted, now);
    }

    /// Whether a snapshot was sent and is not acknowledged.
    pub(super) fn snapshot_in_flight(&self) -> bool {
        self.snapshot.is_some()
    }

    pub(super) fn in_flight(&self, sent: Offset) -> u64 {
        match self.snapshot {
            Some((at, bytes)) => bytes + sent.saturating_sub(at),
            None => sent.saturating_sub(self.acked),
        }
    }

    /// The most bytes that may be in flight now.
    pub(super) fn allowance(&self, now: Duration) -> u64 {
        self.ack_rate.recent(now).max(self.min_allowance).min(self.window)
    }
}

/// The acknowledged bytes of the last [`PACE`], counted per slice of time.
#[derive(Debug, Default)]
struct AckRate {
    buckets: [u64; BUCKETS],
    /// The slice of the newest bucket.
    slice: u64,
}

impl AckRate {
    fn slice(now: Duration) -> u64 {
        (now.as_nanos() * BUCKETS as u128 / PACE.as_nanos()) as u64
    }

    fn add(&mut self, bytes: u64, now: Duration) {
        let slice = AckRate::slice(now).max(self.slice);
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

    fn recent(&self, now: Duration) -> u64 {
        let oldest = (AckRate::slice(now) + 1).saturating_sub(BUCKETS as u64);
        let first = (self.slice + 1).saturating_sub(BUCKETS as u64).max(oldest);
        (first..=self.slice).fold(0, |sum, slice| sum.saturating_add(self.buckets[slice as usize % BUCKETS]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn r25_the_allowance_follows_the_speed_of_the_viewer() {
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
        flow.begin_snapshot(150, 9000, 5000);
        assert_eq!(flow.in_flight(9000), 5050);
        flow.ack(150, MS(1));
        assert_eq!(flow.in_flight(9010), 5010);
        flow.ack(9000, MS(2));
        assert!(!flow.snapshot_in_flight());
        assert_eq!(flow.in_flight(9010), 10);
    }
}
