//! Rate limiting: a token bucket for each key.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Buckets kept in memory. At the limit, full buckets are dropped; if none are full, all new keys share one bucket.
const MAX_KEYS: usize = 65_536;
/// The least time between two searches for full buckets.
const PRUNE_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Rate<K> {
    per_second: f64,
    burst: f64,
    buckets: HashMap<K, Bucket>,
    overflow: Option<Bucket>,
    /// When full buckets were last dropped.
    pruned: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Hash + Eq> Rate<K> {
    /// Allows a burst of attempts, then `per_second`.
    pub(crate) fn new(per_second: f64, burst: f64) -> Rate<K> {
        Rate { per_second, burst, buckets: HashMap::new(), overflow: None, pruned: None }
    }

    /// Takes one attempt, or returns how long to wait for the next.
    pub(crate) fn take(&mut self, key: K, now: Instant) -> Result<(), Duration> {
        self.take_soon(key, 1.0, Duration::ZERO, now).map(drop)
    }

    /// Takes `cost` attempts if they are due within `patience`, and returns how long to wait for them. Otherwise takes
    /// none, and returns how long it would be.
    pub(crate) fn take_soon(
        &mut self,
        key: K,
        cost: f64,
        patience: Duration,
        now: Instant,
    ) -> Result<Duration, Duration> {
        let (per_second, burst) = (self.per_second, self.burst);
        if self.buckets.len() >= MAX_KEYS && !self.buckets.contains_key(&key) {
            self.prune(now);
        }
        let full = Bucket { left: burst, at: now };
        let bucket = if self.buckets.len() >= MAX_KEYS && !self.buckets.contains_key(&key) {
            self.overflow.get_or_insert(full)
        } else {
            self.buckets.entry(key).or_insert(full)
        };
        *bucket = Bucket { left: bucket.filled(per_second, burst, now), at: now };
        let wait = Duration::from_secs_f64((cost - bucket.left).max(0.0) / per_second.max(f64::MIN_POSITIVE));
        if wait > patience {
            return Err(wait);
        }
        bucket.left -= cost;
        Ok(wait)
    }
}

impl<K> Rate<K> {
    /// Drops full buckets, at most once per [`PRUNE_INTERVAL`], because it visits all keys.
    fn prune(&mut self, now: Instant) {
        if self.pruned.is_some_and(|last| now.saturating_duration_since(last) < PRUNE_INTERVAL) {
            return;
        }
        self.pruned = Some(now);
        let (per_second, burst) = (self.per_second, self.burst);
        self.buckets.retain(|_, bucket| bucket.filled(per_second, burst, now) < burst);
    }
}

impl Bucket {
    fn filled(&self, per_second: f64, burst: f64, now: Instant) -> f64 {
        (self.left + now.saturating_duration_since(self.at).as_secs_f64() * per_second).min(burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r49_attempts_are_limited_for_each_key() {
        let start = Instant::now();
        let mut rate = Rate::new(1.0, 3.0);
        for _ in 0..3 {
            assert_eq!(rate.take("a", start), Ok(()));
        }
        assert_eq!(rate.take("a", start), Err(Duration::from_secs(1)));
        assert_eq!(rate.take("b", start), Ok(()));
        assert_eq!(rate.take("a", start + Duration::from_secs(1)), Ok(()));
        assert!(rate.take("a", start + Duration::from_secs(1)).is_err());
    }

    #[test]
    fn r49_attempts_over_the_rate_wait_for_their_turn_and_then_are_refused() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut rate = Rate::new(10.0, 3.0);
        let mut take = |cost, now| rate.take_soon("a", cost, ms(250), now).map_err(|wait| wait.as_millis());
        assert_eq!([take(1.0, start), take(2.0, start)], [Ok(ms(0)); 2]);
        assert_eq!([take(1.0, start), take(1.0, start)], [Ok(ms(100)), Ok(ms(200))]);
        assert_eq!([take(1.0, start), take(5.0, start)], [Err(300), Err(700)], "a refused one takes nothing");
        assert_eq!(take(1.0, start + ms(100)), Ok(ms(200)));
    }

    #[test]
    fn r52_many_keys_use_bounded_memory() {
        let now = Instant::now();
        let mut rate = Rate::new(0.1, 2.0);
        for key in 0..2 * MAX_KEYS {
            let _ = rate.take(key, now);
        }
        assert_eq!(rate.buckets.len(), MAX_KEYS);
        assert!(rate.take(usize::MAX, now).is_err());
        let later = now + Duration::from_secs(60);
        assert_eq!(rate.take(usize::MAX, later), Ok(()));
        assert_eq!(rate.buckets.len(), 1, "full buckets were dropped");
    }
}
