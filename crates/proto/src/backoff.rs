//! The delay before each connection attempt: it doubles up to a cap, with jitter that the caller passes in.

use std::time::Duration;

/// Jitter changes a delay by at most this fraction.
pub const JITTER: f64 = 0.2;

/// When to dial again, and when to give up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    pub base: Duration,
    /// The longest delay, before jitter.
    pub cap: Duration,
    /// Consecutive failures after which to give up; `None` to retry forever.
    pub tries: Option<u32>,
}

impl Backoff {
    /// For native programs.
    pub const NATIVE: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30), tries: Some(6) };
    /// For web pages.
    pub const BROWSER: Backoff =
        Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(10), tries: Some(12) };

    /// The delay before retry `n`, counted from 0, with `jitter` in [-1, 1]; `None` when there are no retries left.
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
    fn delays_double_up_to_the_cap_and_then_stop() {
        let seconds = |n| Backoff::NATIVE.delay(n, 0.0).map(|delay| delay.as_secs());
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(seconds), [Some(1), Some(2), Some(4), Some(8), Some(16), Some(30), None]);
        let never = Backoff { tries: None, ..Backoff::NATIVE };
        assert_eq!(never.delay(u32::MAX, 1.0), Some(Duration::from_secs(36)));
        assert_eq!(never.delay(0, -1.0), Some(Duration::from_millis(800)));
        assert_eq!(never.delay(0, f64::NAN), Some(Duration::from_secs(1)));
    }
}
