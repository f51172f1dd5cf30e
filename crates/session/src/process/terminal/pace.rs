//! A flood gives way: a program that prints without end does not keep the processors from everybody else.
//!
//! Bytes on their way through a terminal cost the program, the kernel and the session time, on every core there is. A burst
//! goes at full speed; what lasts goes at a pace, in stretches with a rest after each, in which others find a free processor.

use std::time::{Duration, Instant};

/// How much a program may print for long, in bytes a second. Nobody reads a hundredth of it.
const PACE: u64 = 32 << 20;
/// How far a burst may get ahead of the pace: 256 MiB at once.
const AHEAD: Duration = Duration::from_secs(8);
/// How long a rest is. Whoever interrupts the flood waits for one at most.
const REST: Duration = Duration::from_millis(4);

/// How fast a program prints.
#[derive(Debug)]
pub(super) struct Pace {
    /// When it would have printed all this at the pace.
    due: Instant,
    rest: Option<Instant>,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace { due: now, rest: None }
    }

    /// So much was printed. A rest begins if that is too far ahead of the pace.
    pub(super) fn handle_output(&mut self, bytes: usize, now: Instant) {
        let takes = Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / PACE);
        self.due = self.due.max(now) + takes;
        self.rest = (self.due > now + AHEAD).then_some(now + REST);
    }

    /// The end of the rest that there is at this time.
    pub(super) fn rest(&self, now: Instant) -> Option<Instant> {
        self.rest.filter(|end| now < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a read of the terminal brings at most.
    const READ: usize = 64 << 10;

    /// Prints as fast as it is let for so long, a mebibyte in 10 ms at most; gives what was printed.
    fn flood(pace: &mut Pace, from: Instant, lasts: Duration) -> u64 {
        let (mut now, mut printed) = (from, 0);
        while now < from + lasts {
            match pace.rest(now) {
                Some(end) => now = end,
                None => {
                    now += Duration::from_micros(625);
                    pace.handle_output(READ, now);
                    printed += READ as u64;
                }
            }
        }
        printed
    }

    #[test]
    fn r25_a_burst_goes_at_full_speed() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!(flood(&mut pace, start, Duration::from_secs(2)), 200 << 20);
        assert_eq!(pace.rest, None);
    }

    #[test]
    fn r25_what_lasts_goes_at_the_pace_after_its_burst() {
        let start = Instant::now();
        let printed = flood(&mut Pace::new(start), start, Duration::from_secs(60));
        let most = (60 + 8) * PACE;
        assert!(printed <= most + READ as u64 && printed > most - PACE / 10, "{printed}");
    }

    #[test]
    fn r25_a_pause_brings_the_burst_back() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        flood(&mut pace, start, Duration::from_secs(60));
        let later = start + Duration::from_secs(60) + AHEAD + REST;
        assert_eq!(flood(&mut pace, later, Duration::from_secs(2)), 200 << 20);
    }
}
