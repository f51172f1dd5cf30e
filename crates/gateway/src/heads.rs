//! Connections whose next request head is not complete. Anybody can open one without a login, and each has a buffer,
//! so their number is limited.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::places::{Place, Places};

/// Unfinished heads; one more closes the oldest of the address that has the most. Each takes up to [`MAX_HEAD`] and
/// some 16 KiB.
pub(crate) const MAX_HEADS: usize = 512;
/// The longest head, in bytes; a longer one gets 431.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// The heads of one connection, one after another.
pub(crate) struct ConnectionHeads {
    places: Places<IpAddr>,
    address: IpAddr,
    /// The place of the head that is unfinished now.
    unfinished: Mutex<Option<Place<IpAddr>>>,
    close: CancellationToken,
}

impl ConnectionHeads {
    /// Begins the first head. `address` stands for all that own their places together.
    pub(crate) fn begin(places: Places<IpAddr>, address: IpAddr) -> Arc<ConnectionHeads> {
        let close = CancellationToken::new();
        let first = places.take_with(address, close.clone());
        Arc::new(ConnectionHeads { places, address, unfinished: Mutex::new(Some(first)), close })
    }

    /// The head is complete. The next one begins when the returned value is dropped.
    pub(crate) fn complete(self: &Arc<Self>) -> CompleteHead {
        self.unfinished().take();
        CompleteHead(self.clone())
    }

    /// Waits until the connection has to make room for another one.
    pub(crate) async fn crowded_out(&self) {
        self.close.cancelled().await;
    }

    fn unfinished(&self) -> MutexGuard<'_, Option<Place<IpAddr>>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
pub(crate) struct CompleteHead(Arc<ConnectionHeads>);

impl Drop for CompleteHead {
    fn drop(&mut self) {
        let next = self.0.places.take_with(self.0.address, self.0.close.clone());
        *self.0.unfinished() = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    #[test]
    fn r52_an_address_crowds_out_only_its_own_heads() {
        let places = Places::new(MAX_HEADS);
        let begin = |n| ConnectionHeads::begin(places.clone(), address(n));
        let owner = begin(0);
        let crowd: Vec<_> = (0..2 * MAX_HEADS as u32).map(|n| begin(1 + n % 5)).collect();
        let closed = crowd.iter().filter(|connection| connection.close.is_cancelled()).count();
        assert_eq!((closed, owner.close.is_cancelled()), (MAX_HEADS + 1, false));
        assert!(crowd[0].close.is_cancelled() && !crowd[2 * MAX_HEADS - 1].close.is_cancelled());
    }

    #[test]
    fn r52_a_request_that_is_answered_is_not_crowded_out() {
        let places = Places::new(MAX_HEADS);
        let busy = ConnectionHeads::begin(places.clone(), address(0));
        let request = busy.complete();
        let crowd = || (0..MAX_HEADS).map(|_| ConnectionHeads::begin(places.clone(), address(0)));
        drop(crowd().collect::<Vec<_>>());
        assert!(!busy.close.is_cancelled());
        drop(request);
        let _crowd: Vec<_> = crowd().collect();
        assert!(busy.close.is_cancelled(), "the head of its next request is unfinished");
    }
}
