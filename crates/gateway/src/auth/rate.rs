//! How often somebody may try to log in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Addresses that are remembered; past that, the one that tried longest ago is forgotten.
const MAX_ADDRESSES: usize = 4096;
const MINUTE: Duration = Duration::from_secs(60);

/// A bucket of tries for each client address, filled again over a minute.
#[derive(Debug)]
pub struct LoginRate {
    per_minute: NonZeroU32,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    tries: f64,
    at: Instant,
}

impl LoginRate {
    /// Allows this many tries a minute.
    pub fn new(per_minute: NonZeroU32) -> LoginRate {
        LoginRate { per_minute, buckets: Mutex::default() }
    }

    /// Counts a try from this address, or says after what time there may be another.
    pub fn check(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let full = f64::from(self.per_minute.get());
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let network = network(address);
        if !buckets.contains_key(&network) {
            make_room(&mut buckets, now);
        }
        let bucket = buckets.entry(network).or_insert(Bucket { tries: full, at: now });
        let filled = now.saturating_duration_since(bucket.at).div_duration_f64(MINUTE) * full;
        bucket.tries = (bucket.tries + filled).min(full);
        bucket.at = now;
        if bucket.tries < 1.0 {
            return Err(MINUTE.mul_f64((1.0 - bucket.tries) / full));
        }
        bucket.tries -= 1.0;
        Ok(())
    }
}

/// Forgets the full buckets first: they are as good as new.
fn make_room(buckets: &mut HashMap<IpAddr, Bucket>, now: Instant) {
    if buckets.len() < MAX_ADDRESSES {
        return;
    }
    buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at) < MINUTE);
    while buckets.len() >= MAX_ADDRESSES {
        let Some(oldest) = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(address, _)| *address) else {
            break;
        };
        buckets.remove(&oldest);
    }
}

/// The address that stands for its owner: one who has an IPv6 address has a whole /64 of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_minute: u32) -> LoginRate {
        LoginRate::new(NonZeroU32::new(per_minute).unwrap())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn r49_tries_are_counted_by_address_and_come_back() {
        let (rate, now) = (rate(10), Instant::now());
        for _ in 0..10 {
            assert_eq!(rate.check(address("192.0.2.1"), now), Ok(()));
        }
        let wait = rate.check(address("192.0.2.1"), now).unwrap_err();
        assert_eq!(wait, Duration::from_secs(6));
        assert_eq!(rate.check(address("192.0.2.2"), now), Ok(()), "another address has its own tries");
        assert!(rate.check(address("::ffff:192.0.2.1"), now).is_err(), "the same address in another coat");
        assert_eq!(rate.check(address("192.0.2.1"), now + wait), Ok(()));
        assert!(rate.check(address("192.0.2.1"), now + wait).is_err());
    }

    #[test]
    fn r49_an_ipv6_network_is_one_address() {
        let (rate, now) = (rate(1), Instant::now());
        assert_eq!(rate.check(address("2001:db8::1"), now), Ok(()));
        assert!(rate.check(address("2001:db8::ffff:2"), now).is_err());
        assert_eq!(rate.check(address("2001:db8:0:1::1"), now), Ok(()));
    }

    #[test]
    fn r49_the_memory_of_addresses_is_bounded() {
        let (rate, now) = (rate(1), Instant::now());
        let nth = |n: u32| IpAddr::from(std::net::Ipv4Addr::from_bits(n));
        for n in 0..MAX_ADDRESSES as u32 + 5 {
            let _ = rate.check(nth(n), now + Duration::from_micros(n.into()));
        }
        assert_eq!(rate.buckets.lock().unwrap().len(), MAX_ADDRESSES);
        let last = MAX_ADDRESSES as u32 + 4;
        assert!(rate.check(nth(last), now + Duration::from_secs(1)).is_err(), "the newest are remembered");
    }
}
