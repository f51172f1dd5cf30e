//! Rate limiting of wrong login codes.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::rate::Rate;

/// Counts wrong login codes per client address.
#[derive(Debug)]
pub struct LoginRate(Mutex<Rate<IpAddr>>);

impl LoginRate {
    pub fn new(per_minute: u32) -> LoginRate {
        let attempts = f64::from(per_minute);
        LoginRate(Mutex::new(Rate::new(attempts / 60.0, attempts)))
    }

    /// Counts a wrong code from this address, or returns how long to wait for the next.
    pub fn count(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(network(address), now)
    }
}

/// The key for rate limits: an IPv4 address, or the /64 network of an IPv6 address, because one host usually has a
/// whole /64.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    prefix(address, 64)
}

/// The owner of places: an IPv4 address, or the /48 network of an IPv6 address, because one customer can have a whole
/// /48. Clients that share it are not refused, but share its places.
pub(crate) fn site(address: IpAddr) -> IpAddr {
    prefix(address, 48)
}

/// An IPv4 address, or the first bits of an IPv6 address.
fn prefix(address: IpAddr, bits: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !(u128::MAX >> bits)).into(),
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
    fn r49_wrong_codes_are_counted_by_address_and_refill() {
        let (rate, now) = (LoginRate::new(10), Instant::now());
        for _ in 0..10 {
            assert_eq!(rate.count(address("192.0.2.1"), now), Ok(()));
        }
        let wait = rate.count(address("192.0.2.1"), now).unwrap_err();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(6));
        assert_eq!(rate.count(address("192.0.2.2"), now), Ok(()), "another address has its own attempts");
        assert!(rate.count(address("::ffff:192.0.2.1"), now).is_err(), "the same address, mapped to IPv6");
        let later = now + Duration::from_secs(7);
        assert_eq!(rate.count(address("192.0.2.1"), later), Ok(()));
        assert!(rate.count(address("192.0.2.1"), later).is_err());
    }

    #[test]
    fn r49_an_ipv6_network_counts_as_one_address() {
        let (rate, now) = (LoginRate::new(1), Instant::now());
        assert_eq!(rate.count(address("2001:db8::1"), now), Ok(()));
        assert!(rate.count(address("2001:db8::ffff:2"), now).is_err());
        assert_eq!(rate.count(address("2001:db8:0:1::1"), now), Ok(()));
    }

    #[test]
    fn r52_an_ipv6_site_owns_its_places_together() {
        assert_eq!(site(address("2001:db8:1:2::3")), site(address("2001:db8:1:ffff::4")));
        assert_ne!(site(address("2001:db8:1::1")), site(address("2001:db8:2::1")));
        assert_eq!(site(address("::ffff:192.0.2.1")), address("192.0.2.1"));
    }
}
