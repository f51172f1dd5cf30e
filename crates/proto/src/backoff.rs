//! How long to wait before the next dial: doubling, capped, with jitter that is passed in.

use std::time::Duration;

/// Jitter moves a delay by at most this share of it.
pub const JITTER: f64 = 0.2;

/// When to dial again, and when to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The first delay.
    pub base: Duration,
    /// The longest delay, before jitter.
    pub cap: Duration,
    /// Failures in a row after which it gives up; none for never.
    pub tries: Option<u32>,
}

impl Backoff {
    /// For programs: 1 s, at most 30 s, 6 tries.
    pub const NATIVE: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30), tries: Some(6) };
    /// For pages: 0.5 s, at most 10 s, 12 tries.
    pub const BROWSER: Backoff =
        Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(10), tries: Some(12) };

    /// The delay before try `n` (from 0), with jitter in [-1, 1]; none when the tries are used up.
    pub fn delay(&self, n: u32, jitter: f64) -> Option<Duration> {
        if self.tries.is_some_and(|tries| n >= tries) {
            return None;
        }
        let doubled = self.base.saturating_mul(1u32.checked_shl(n).unwrap_or(u32::MAX)).min(self.cap);
        let jitter = if jitter.is_finite() { jitter.clamp(-1.0, 1.0) } else { 0.0 };
        Some(doubled.mul_f64(1.0 + JITTER * jitter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_and_end() {
        let seconds = |n| Backoff::NATIVE.delay(n, 0.0).map(|delay| delay.as_secs());
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(seconds), [Some(1), Some(2), Some(4), Some(8), Some(16), Some(30), None]);
        let never = Backoff { tries: None, ..Backoff::NATIVE };
        assert_eq!(never.delay(u32::MAX, 1.0), Some(Duration::from_secs(36)));
        assert_eq!(never.delay(0, -1.0), Some(Duration::from_millis(800)));
        assert_eq!(never.delay(0, f64::NAN), Some(Duration::from_secs(1)));
    }
}
