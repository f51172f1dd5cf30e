//! A bounded number of places that are shared fairly: when all are taken, a newcomer displaces the oldest occupant of
//! the owner that has the most. So taking many places does not keep others out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Places, each with an owner such as an address or a caller's id. Cheap to clone.
#[derive(Debug)]
pub(crate) struct Places<K>(Arc<Mutex<Occupants<K>>>);

impl<K> Clone for Places<K> {
    fn clone(&self) -> Places<K> {
        Places(self.0.clone())
    }
}

#[derive(Debug)]
struct Occupants<K> {
    max: usize,
    count: usize,
    /// Numbers the occupants by age.
    last: u64,
    by_owner: HashMap<K, BTreeMap<u64, CancellationToken>>,
}

impl<K: Hash + Eq + Clone> Places<K> {
    pub(crate) fn new(max: usize) -> Places<K> {
        Places(Arc::new(Mutex::new(Occupants { max, count: 0, last: 0, by_owner: HashMap::new() })))
    }

    /// Takes a place, always successfully.
    pub(crate) fn take(&self, owner: K) -> Place<K> {
        self.take_with(owner, CancellationToken::new())
    }

    /// Like [`Places::take`]; `displaced` is cancelled when a newcomer takes the place. So a connection that takes one
    /// place after another can wait for all of them.
    pub(crate) fn take_with(&self, owner: K, displaced: CancellationToken) -> Place<K> {
        let mut occupants = self.lock();
        occupants.last += 1;
        let id = occupants.last;
        occupants.by_owner.entry(owner.clone()).or_default().insert(id, displaced.clone());
        occupants.count += 1;
        if occupants.count > occupants.max {
            occupants.displace();
        }
        Place { places: self.clone(), owner, id, displaced }
    }

    /// Displaces an occupant as a newcomer would. Returns `false` if there is none.
    pub(crate) fn displace(&self) -> bool {
        self.lock().displace()
    }

    fn lock(&self) -> MutexGuard<'_, Occupants<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq + Clone> Occupants<K> {
    /// Displaces the oldest occupant of the owner that has the most places; of several such owners, the one that has
    /// an occupant for longest.
    fn displace(&mut self) -> bool {
        let most = self.by_owner.iter().max_by_key(|(_, own)| (own.len(), own.keys().next().copied().map(Reverse)));
        let oldest = most.and_then(|(owner, own)| Some((owner.clone(), *own.keys().next()?)));
        let displaced = oldest.and_then(|(owner, id)| self.remove(&owner, id));
        displaced.inspect(CancellationToken::cancel).is_some()
    }

    /// Returns `None` if the occupant was displaced before.
    fn remove(&mut self, owner: &K, id: u64) -> Option<CancellationToken> {
        let own = self.by_owner.get_mut(owner)?;
        let removed = own.remove(&id)?;
        if own.is_empty() {
            self.by_owner.remove(owner);
        }
        self.count -= 1;
        Some(removed)
    }
}

/// One place, until it is dropped or displaced.
#[derive(Debug)]
pub(crate) struct Place<K: Hash + Eq + Clone> {
    places: Places<K>,
    owner: K,
    id: u64,
    displaced: CancellationToken,
}

impl<K: Hash + Eq + Clone> Place<K> {
    /// Returns when a newcomer has taken this place.
    pub(crate) async fn displaced(&self) {
        self.displaced.cancelled().await;
    }

    /// Gives the place up. Its occupant cannot be displaced any more.
    pub(crate) fn leave(&self) {
        self.places.lock().remove(&self.owner, self.id);
    }
}

/// Like [`Place::displaced`]. Without a place, it never returns.
pub(crate) async fn displaced<K: Hash + Eq + Clone>(place: Option<&Place<K>>) {
    match place {
        Some(place) => place.displaced().await,
        None => std::future::pending().await,
    }
}

impl<K: Hash + Eq + Clone> Drop for Place<K> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions of the displaced ones.
    fn displaced<K: Hash + Eq + Clone>(places: &[Place<K>]) -> Vec<usize> {
        (0..places.len()).filter(|n| places[*n].displaced.is_cancelled()).collect()
    }

    #[test]
    fn r52_one_that_takes_all_places_keeps_nobody_out() {
        let places = Places::new(3);
        let mut flood: Vec<_> = (0..5).map(|_| places.take("eve")).collect();
        assert_eq!(displaced(&flood), [0, 1], "only the newest stay");
        let owner = [places.take("ann")];
        assert_eq!(displaced(&flood), [0, 1, 2]);
        flood.extend((0..100).map(|_| places.take("eve")));
        assert_eq!((displaced(&owner), displaced(&flood).len()), (vec![], 103));
    }

    #[test]
    fn r52_with_one_place_for_each_owner_the_oldest_is_displaced() {
        let places = Places::new(2);
        let crowd: Vec<_> = (0..4).map(|owner| places.take(owner)).collect();
        assert_eq!(displaced(&crowd), [0, 1]);
    }

    #[test]
    fn a_place_is_free_again_after_its_occupant_has_left() {
        let places = Places::new(1);
        for _ in 0..3 {
            let place = [places.take("ann")];
            assert!(displaced(&place).is_empty());
            drop(place);
            assert!(places.lock().by_owner.is_empty());
        }
        let displaced = places.take("ann");
        let _newcomer = places.take("bob");
        drop(displaced);
        assert_eq!(places.lock().count, 1, "a displaced occupant is removed once");
    }
}
