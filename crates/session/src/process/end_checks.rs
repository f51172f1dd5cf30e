//! When to check whether every process of a session that is being ended has exited.
//!
//! Each check reads all of `/proc`. So it must not follow from every message of a client, and a program that takes
//! minutes to end must not be checked fifty times a second.

use std::time::{Duration, Instant};

/// While processes exit, and once they are killed, they are checked this often.
const OFTEN: Duration = Duration::from_millis(20);
/// While none exits, they are checked more and more rarely, down to this.
const RARELY: Duration = Duration::from_secs(1);

/// The schedule of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndChecks {
    kill_at: Instant,
    /// The next check; `None` once all processes have exited.
    next: Option<Instant>,
    last: Option<Instant>,
    /// The time between the next check and the one after it.
    pause: Duration,
}

impl EndChecks {
    /// The processes were asked to exit, and are killed at `kill_at`.
    pub(super) fn new(now: Instant, kill_at: Instant) -> EndChecks {
        EndChecks { kill_at, next: Some(now), last: None, pause: OFTEN }
    }

    /// Whether a check made now kills what is left.
    pub(super) fn kills(&self, now: Instant) -> bool {
        now >= self.kill_at
    }

    /// Moves the kill to an earlier time; a later one is ignored.
    pub(super) fn kill_by(&mut self, kill_at: Instant) {
        if kill_at < self.kill_at {
            self.kill_at = kill_at;
            self.next = self.next.map(|next| next.min(kill_at));
        }
    }

    /// A process was reaped, perhaps the last one.
    pub(super) fn handle_reaped(&mut self, now: Instant) {
        let soon = self.last.map_or(now, |last| now.max(last + OFTEN));
        self.next = self.next.map(|next| next.min(soon));
        self.pause = OFTEN;
    }

    /// A check was made, and found whether all processes have exited.
    pub(super) fn handle_checked(&mut self, now: Instant, all_exited: bool) {
        self.last = Some(now);
        self.next = match all_exited {
            true => None,
            false if self.kills(now) => Some(now + OFTEN),
            false => Some((now + self.pause).min(self.kill_at)),
        };
        self.pause = (self.pause * 2).min(RARELY);
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checks of a program that does not exit by itself, in milliseconds after the start.
    fn times(checks: &mut EndChecks, start: Instant, until: u64) -> Vec<u128> {
        let mut times = Vec::new();
        while let Some(next) = checks.next().filter(|next| *next <= start + Duration::from_millis(until)) {
            times.push((next - start).as_millis());
            checks.handle_checked(next, false);
        }
        times
    }

    #[test]
    fn r52_a_program_that_does_not_exit_is_checked_more_and_more_rarely_until_it_is_killed() {
        let start = Instant::now();
        let mut checks = EndChecks::new(start, start + Duration::from_millis(2500));
        assert_eq!(times(&mut checks, start, 2540), [0, 20, 60, 140, 300, 620, 1260, 2260, 2500, 2520, 2540]);
    }

    #[test]
    fn an_exit_is_checked_at_once_but_many_are_checked_together() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut checks = EndChecks::new(start, ms(60_000));
        assert_eq!(times(&mut checks, start, 1300).last(), Some(&1260));
        checks.handle_reaped(ms(2000));
        assert_eq!(checks.next(), Some(ms(2000)));
        checks.handle_checked(ms(2000), false);
        checks.handle_reaped(ms(2001));
        assert_eq!(checks.next(), Some(ms(2020)));
        checks.handle_checked(ms(2020), true);
        checks.handle_reaped(ms(2021));
        assert_eq!(checks.next(), None, "nothing is left to check");
    }

    #[test]
    fn a_shorter_grace_counts_and_a_longer_one_does_not() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut checks = EndChecks::new(start, ms(60_000));
        assert_eq!(times(&mut checks, start, 700).last(), Some(&620));
        checks.kill_by(ms(800));
        checks.kill_by(ms(9000));
        assert_eq!(checks.next(), Some(ms(800)));
        assert!(checks.kills(ms(800)) && !checks.kills(ms(799)));
        checks.handle_checked(ms(800), false);
        checks.kill_by(ms(801));
        assert_eq!(checks.next(), Some(ms(820)), "once they are killed, another request changes nothing");
    }
}
