//! Limits how fast a program's output is read, so that one that prints without end leaves CPU time to others.
//!
//! Output costs CPU time in the program, the kernel and the session, on several cores. A burst is read at
//! full speed. After that, pauses between reads bring the average down to [`RATE`].

use std::time::{Duration, Instant};

/// The sustained rate, in bytes per second. It is far more than a person can read.
const RATE: u64 = 32 << 20;
/// How far a burst may get ahead of [`RATE`]: 8 s, which is 256 MiB at once.
const BURST: Duration = Duration::from_secs(8);
/// The length of a pause. A user who interrupts the program waits for at most one of them.
const PAUSE: Duration = Duration::from_millis(4);

/// Measures a program's output against [`RATE`].
#[derive(Debug)]
pub(super) struct Throttle {
    /// When all output so far would have been read at [`RATE`].
    due: Instant,
    pause_end: Option<Instant>,
}

impl Throttle {
    pub(super) fn new(now: Instant) -> Throttle {
        Throttle { due: now, pause_end: None }
    }

    /// Counts `bytes` that were read. A pause begins if they are too far ahead of the rate.
    pub(super) fn handle_output(&mut self, bytes: usize, now: Instant) {
        let duration = Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / RATE);
        self.due = self.due.max(now) + duration;
        self.pause_end = (self.due > now + BURST).then_some(now + PAUSE);
    }

    /// The end of the current pause, if there is one at `now`.
    pub(super) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.pause_end.filter(|end| now < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most bytes that one read of the PTY returns.
    const READ: usize = 64 << 10;

    /// Prints for `duration` as fast as the throttle allows, at most 1 MiB in 10 ms. Returns how much was printed.
    fn flood(throttle: &mut Throttle, from: Instant, duration: Duration) -> u64 {
        let (mut now, mut printed) = (from, 0);
        while now < from + duration {
            match throttle.paused_until(now) {
                Some(end) => now = end,
                None => {
                    now += Duration::from_micros(625);
                    throttle.handle_output(READ, now);
                    printed += READ as u64;
                }
            }
        }
        printed
    }

    #[test]
    fn r25_a_burst_is_read_at_full_speed() {
        let start = Instant::now();
        let mut throttle = Throttle::new(start);
        assert_eq!(flood(&mut throttle, start, Duration::from_secs(2)), 200 << 20);
        assert_eq!(throttle.pause_end, None);
    }

    #[test]
    fn r25_sustained_output_is_read_at_the_rate_after_its_burst() {
        let start = Instant::now();
        let printed = flood(&mut Throttle::new(start), start, Duration::from_secs(60));
        let most = (60 + 8) * RATE;
        assert!(printed <= most + READ as u64 && printed > most - RATE / 10, "{printed}");
    }

    #[test]
    fn r25_a_program_that_was_quiet_may_burst_again() {
        let start = Instant::now();
        let mut throttle = Throttle::new(start);
        flood(&mut throttle, start, Duration::from_secs(60));
        let later = start + Duration::from_secs(60) + BURST + PAUSE;
        assert_eq!(flood(&mut throttle, later, Duration::from_secs(2)), 200 << 20);
    }
}
