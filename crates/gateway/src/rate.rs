//! How often something may be done: a bucket of attempts for each key, filled at a steady rate.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Keys remembered at a time; past it, full buckets are forgotten first, and then everybody shares one.
const KEYS: usize = 65_536;
/// How often full buckets are looked for.
const PRUNE_EVERY: Duration = Duration::from_secs(1);

/// A limit of attempts.
#[derive(Debug)]
pub(crate) struct Rate<K> {
    per_second: f64,
    burst: f64,
    buckets: HashMap<K, Bucket>,
    crowd: Option<Bucket>,
    /// When full buckets were last looked for.
    pruned: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Hash + Eq> Rate<K> {
    /// So many a second, after a burst.
    pub(crate) fn new(per_second: f64, burst: f64) -> Rate<K> {
        Rate { per_second, burst, buckets: HashMap::new(), crowd: None, pruned: None }
    }

    /// Counts an attempt, or says how long to wait.
    pub(crate) fn take(&mut self, key: K, now: Instant) -> Result<(), Duration> {
        let (per_second, burst) = (self.per_second, self.burst);
        if self.buckets.len() >= KEYS && !self.buckets.contains_key(&key) {
            self.prune(now);
        }
        let full = Bucket { left: burst, at: now };
        let bucket = if self.buckets.len() >= KEYS && !self.buckets.contains_key(&key) {
            self.crowd.get_or_insert(full)
        } else {
            self.buckets.entry(key).or_insert(full)
        };
        *bucket = Bucket { left: bucket.filled(per_second, burst, now), at: now };
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.left) / per_second.max(f64::MIN_POSITIVE)))
    }
}

impl<K> Rate<K> {
    /// Forgets full buckets. Not for every stranger of a crowd: it is work for all keys.
    fn prune(&mut self, now: Instant) {
        if self.pruned.is_some_and(|last| now.saturating_duration_since(last) < PRUNE_EVERY) {
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
    fn r52_a_crowd_of_keys_takes_bounded_memory() {
        let now = Instant::now();
        let mut rate = Rate::new(0.1, 2.0);
        for key in 0..2 * KEYS {
            let _ = rate.take(key, now);
        }
        assert_eq!(rate.buckets.len(), KEYS);
        assert!(rate.take(usize::MAX, now).is_err());
        let later = now + Duration::from_secs(60);
        assert_eq!(rate.take(usize::MAX, later), Ok(()));
        assert_eq!(rate.buckets.len(), 1, "full buckets were forgotten");
    }
}
