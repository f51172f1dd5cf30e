//! Connections whose next request head is not complete. Anybody can open one without a login, and each has a buffer,
//! so their number is limited.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Unfinished heads; one more closes the oldest. Each takes up to [`MAX_HEAD`] and some 16 KiB.
const MAX_HEADS: usize = 512;
/// Unfinished heads from one address, or one IPv6 /64 network; one more closes its oldest.
const MAX_HEADS_OF_ADDRESS: usize = 128;
/// The longest head, in bytes; a longer one gets 431.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// All unfinished heads.
#[derive(Default)]
pub(crate) struct Heads(Mutex<Unfinished>);

#[derive(Default)]
struct Unfinished {
    /// Ordered by age.
    all: BTreeMap<u64, Connection>,
    of_address: HashMap<IpAddr, BTreeSet<u64>>,
    next: u64,
}

struct Connection {
    address: IpAddr,
    close: CancellationToken,
}

impl Heads {
    fn unfinished(&self) -> MutexGuard<'_, Unfinished> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unfinished {
    fn add(&mut self, address: IpAddr, close: &CancellationToken) -> u64 {
        let number = self.next;
        self.next += 1;
        self.all.insert(number, Connection { address, close: close.clone() });
        let own = self.of_address.entry(address).or_default();
        own.insert(number);
        let oldest = match own.first() {
            Some(oldest) if own.len() > MAX_HEADS_OF_ADDRESS => Some(*oldest),
            _ => self.all.keys().next().copied().filter(|_| self.all.len() > MAX_HEADS),
        };
        if let Some(connection) = oldest.and_then(|oldest| self.remove(oldest)) {
            connection.close.cancel();
        }
        number
    }

    fn remove(&mut self, number: u64) -> Option<Connection> {
        let connection = self.all.remove(&number)?;
        if let Some(own) = self.of_address.get_mut(&connection.address) {
            own.remove(&number);
            if own.is_empty() {
                self.of_address.remove(&connection.address);
            }
        }
        Some(connection)
    }
}

/// The heads of one connection, one after another.
pub(crate) struct ConnectionHeads {
    heads: Arc<Heads>,
    address: IpAddr,
    /// The head that is unfinished now.
    number: Mutex<u64>,
    close: CancellationToken,
}

impl ConnectionHeads {
    /// Begins the first head. `address` stands for all that share a limit.
    pub(crate) fn begin(heads: Arc<Heads>, address: IpAddr) -> Arc<ConnectionHeads> {
        let close = CancellationToken::new();
        let number = Mutex::new(heads.unfinished().add(address, &close));
        Arc::new(ConnectionHeads { heads, address, number, close })
    }

    /// The head is complete. The next one begins when the returned value is dropped.
    pub(crate) fn complete(self: &Arc<Self>) -> CompleteHead {
        self.heads.unfinished().remove(self.number());
        CompleteHead(self.clone())
    }

    /// Waits until the connection has to make room for another one.
    pub(crate) async fn crowded_out(&self) {
        self.close.cancelled().await;
    }

    fn number(&self) -> u64 {
        *self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionHeads {
    fn drop(&mut self) {
        self.heads.unfinished().remove(self.number());
    }
}

/// A request that is being answered.
pub(crate) struct CompleteHead(Arc<ConnectionHeads>);

impl Drop for CompleteHead {
    fn drop(&mut self) {
        let number = self.0.heads.unfinished().add(self.0.address, &self.0.close);
        *self.0.number.lock().unwrap_or_else(PoisonError::into_inner) = number;
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
        let heads = Arc::new(Heads::default());
        let begin = |n| ConnectionHeads::begin(heads.clone(), address(n));
        let owner = begin(0);
        let crowd: Vec<_> = (0..2 * MAX_HEADS_OF_ADDRESS).map(|_| begin(1)).collect();
        let closed = crowd.iter().filter(|connection| connection.close.is_cancelled()).count();
        assert_eq!((closed, owner.close.is_cancelled()), (MAX_HEADS_OF_ADDRESS, false));
        assert!(crowd[0].close.is_cancelled() && !crowd[2 * MAX_HEADS_OF_ADDRESS - 1].close.is_cancelled());
        drop((crowd, owner));
        assert!(heads.unfinished().all.is_empty() && heads.unfinished().of_address.is_empty());
    }

    #[test]
    fn r52_many_addresses_crowd_out_the_oldest_head() {
        let heads = Arc::new(Heads::default());
        let crowd: Vec<_> =
            (0..2 * MAX_HEADS as u32).map(|n| ConnectionHeads::begin(heads.clone(), address(n))).collect();
        assert_eq!(heads.unfinished().all.len(), MAX_HEADS);
        assert!(crowd[..MAX_HEADS].iter().all(|connection| connection.close.is_cancelled()));
        let owner = ConnectionHeads::begin(heads.clone(), address(0));
        assert!(!owner.close.is_cancelled());
    }

    #[test]
    fn r52_a_request_that_is_answered_is_not_crowded_out() {
        let heads = Arc::new(Heads::default());
        let busy = ConnectionHeads::begin(heads.clone(), address(0));
        let request = busy.complete();
        let crowd = || (0..MAX_HEADS_OF_ADDRESS).map(|_| ConnectionHeads::begin(heads.clone(), address(0)));
        drop(crowd().collect::<Vec<_>>());
        assert!(!busy.close.is_cancelled());
        drop(request);
        let _crowd: Vec<_> = crowd().collect();
        assert!(busy.close.is_cancelled(), "the head of its next request is unfinished");
    }
}
