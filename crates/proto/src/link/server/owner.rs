//! The size owner: the one viewer whose window decides the terminal's size.
//!
//! Only a writer with a window can own the size. A viewer becomes the owner if there is none, by `claim_size`, or as
//! the reload of the owner's page (`was`). A disconnected owner keeps the size for a while; then it passes to the
//! writer with a window that has been attached longest, or, if there is none, to the next one that attaches.

use std::time::Duration;

use super::caller::ClientKey;

/// The client that owns the size, if there is one.
#[derive(Debug, Default)]
pub(super) struct SizeOwner {
    client: Option<ClientKey>,
    /// When the owner detached, unless it is attached.
    detached_at: Option<Duration>,
    /// The reloaded page of the owner, if it attached before the old page detached.
    successor: Option<ClientKey>,
}

impl SizeOwner {
    pub(super) fn is(&self, client: &ClientKey) -> bool {
        self.client.as_ref() == Some(client)
    }

    /// A writer with a window attached. Returns whether it owns the size now.
    pub(super) fn attach(&mut self, client: &ClientKey, was: Option<&ClientKey>) -> bool {
        let inherits = was.is_some() && was == self.client.as_ref();
        if self.is(client) {
            self.detached_at = None;
        } else if self.client.is_none() || (inherits && self.detached_at.is_some()) {
            self.claim(client);
        } else if inherits {
            self.successor = Some(client.clone());
        }
        self.is(client)
    }

    pub(super) fn claim(&mut self, client: &ClientKey) {
        self.pass(Some(client));
    }

    /// A client detached. Returns whether its successor takes over.
    pub(super) fn detach(&mut self, client: &ClientKey, now: Duration) -> bool {
        if self.successor.as_ref() == Some(client) {
            self.successor = None;
        }
        if !self.is(client) {
            return false;
        }
        match self.successor.take() {
            Some(successor) => {
                self.claim(&successor);
                true
            }
            None => {
                self.detached_at = Some(now);
                false
            }
        }
    }

    /// When ownership passes on, unless the owner attaches again.
    pub(super) fn deadline(&self, grace: Duration) -> Option<Duration> {
        self.detached_at.map(|at| at + grace)
    }

    /// Makes `next` the owner.
    pub(super) fn pass(&mut self, next: Option<&ClientKey>) {
        *self = SizeOwner { client: next.cloned(), detached_at: None, successor: None };
    }
}

#[cfg(test)]
mod tests {
    use super::super::caller::Caller;
    use super::*;
    use crate::ids::ClientId;

    fn id(n: u8) -> ClientKey {
        ClientKey { caller: Caller::Owner, id: ClientId::from_random([n; 16]) }
    }

    #[test]
    fn r23_the_size_has_one_owner_and_survives_a_disconnect() {
        let mut owner = SizeOwner::default();
        assert!(owner.attach(&id(1), None));
        assert!(!owner.attach(&id(2), None));
        assert!(!owner.detach(&id(1), Duration::from_secs(5)));
        assert_eq!(owner.deadline(Duration::from_secs(60)), Some(Duration::from_secs(65)));
        assert!(!owner.attach(&id(3), None));
        assert!(owner.attach(&id(1), None));
        assert_eq!(owner.deadline(Duration::from_secs(60)), None);
    }

    #[test]
    fn a_reloaded_page_inherits_the_size_and_a_duplicated_tab_does_not() {
        let mut owner = SizeOwner::default();
        owner.attach(&id(1), None);
        assert!(!owner.attach(&id(2), Some(&id(1))));
        assert!(owner.detach(&id(1), Duration::ZERO));
        assert!(owner.is(&id(2)));
        owner.detach(&id(2), Duration::ZERO);
        assert!(owner.attach(&id(3), Some(&id(2))));
    }
}
