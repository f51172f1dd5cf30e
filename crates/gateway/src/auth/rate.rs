//! How often somebody may try to log in.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::rate::Rate;

/// Tries of each client address, which come back over a minute.
#[derive(Debug)]
pub struct LoginRate(Mutex<Rate<IpAddr>>);

impl LoginRate {
    /// Allows this many tries a minute.
    pub fn new(per_minute: u32) -> LoginRate {
        let tries = f64::from(per_minute);
        LoginRate(Mutex::new(Rate::new(tries / 60.0, tries)))
    }

    /// Counts a try from this address, or says after what time there may be another.
    pub fn check(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(network(address), now)
    }
}

/// The address that stands for its owner: one who has an IPv6 address has a whole /64 of them.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn r49_tries_are_counted_by_address_and_come_back() {
        let (rate, now) = (LoginRate::new(10), Instant::now());
        for _ in 0..10 {
            assert_eq!(rate.check(address("192.0.2.1"), now), Ok(()));
        }
        let wait = rate.check(address("192.0.2.1"), now).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(6));
        assert_eq!(rate.check(address("192.0.2.2"), now), Ok(()), "another address has its own tries");
        assert!(rate.check(address("::ffff:192.0.2.1"), now).is_err(), "the same address in another coat");
        let later = now + Duration::from_secs(7);
        assert_eq!(rate.check(address("192.0.2.1"), later), Ok(()));
        assert!(rate.check(address("192.0.2.1"), later).is_err());
    }

    #[test]
    fn r49_an_ipv6_network_is_one_address() {
        let (rate, now) = (LoginRate::new(1), Instant::now());
        assert_eq!(rate.check(address("2001:db8::1"), now), Ok(()));
        assert!(rate.check(address("2001:db8::ffff:2"), now).is_err());
        assert_eq!(rate.check(address("2001:db8:0:1::1"), now), Ok(()));
    }
}
