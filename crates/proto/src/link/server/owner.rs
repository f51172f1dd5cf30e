//! Whose window decides the terminal's size.
//!
//! One viewer that may write owns the size. It is taken by the first that comes with a window, by `claim_size`,
//! or from a page's earlier life (`was`). It survives a drop of its client for a while, then passes to the writer
//! with a window that has been attached longest, or, if there is none, to the next that comes.

use std::time::Duration;

use crate::ids::ClientId;

/// The owner of the size, if there is one.
#[derive(Debug, Default)]
pub(super) struct Owner {
    client: Option<ClientId>,
    /// When it left, if it is away.
    left: Option<Duration>,
    /// The owner's next page, attached before the old page's connection was seen to be gone.
    heir: Option<ClientId>,
}

impl Owner {
    pub(super) fn is(&self, client: &ClientId) -> bool {
        self.client.as_ref() == Some(client)
    }

    /// A viewer that may write and has a window is here. True when it owns the size now.
    pub(super) fn arrive(&mut self, client: &ClientId, was: Option<&ClientId>) -> bool {
        let inherits = was.is_some() && was == self.client.as_ref();
        if self.is(client) {
            self.left = None;
        } else if self.client.is_none() || (inherits && self.left.is_some()) {
            self.claim(client);
        } else if inherits {
            self.heir = Some(client.clone());
        }
        self.is(client)
    }

    /// A client becomes the owner.
    pub(super) fn claim(&mut self, client: &ClientId) {
        *self = Owner { client: Some(client.clone()), left: None, heir: None };
    }

    /// A client is no longer attached. True when its heir takes over.
    pub(super) fn leave(&mut self, client: &ClientId, now: Duration) -> bool {
        if self.heir.as_ref() == Some(client) {
            self.heir = None;
        }
        if !self.is(client) {
            return false;
        }
        match self.heir.take() {
            Some(heir) => {
                self.claim(&heir);
                true
            }
            None => {
                self.left = Some(now);
                false
            }
        }
    }

    /// When ownership passes on, unless the owner returns.
    pub(super) fn deadline(&self, grace: Duration) -> Option<Duration> {
        self.left.map(|left| left + grace)
    }

    /// The owner stayed away, or may no longer write: `next` has it now.
    pub(super) fn pass(&mut self, next: Option<&ClientId>) {
        *self = Owner { client: next.cloned(), left: None, heir: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> ClientId {
        ClientId::from_random([n; 16])
    }

    #[test]
    fn r23_size_belongs_to_one_and_survives_a_drop() {
        let mut owner = Owner::default();
        assert!(owner.arrive(&id(1), None));
        assert!(!owner.arrive(&id(2), None));
        assert!(!owner.leave(&id(1), Duration::from_secs(5)));
        assert_eq!(owner.deadline(Duration::from_secs(60)), Some(Duration::from_secs(65)));
        assert!(!owner.arrive(&id(3), None));
        assert!(owner.arrive(&id(1), None));
        assert_eq!(owner.deadline(Duration::from_secs(60)), None);
    }

    #[test]
    fn a_reloaded_page_inherits_and_a_duplicated_tab_does_not() {
        let mut owner = Owner::default();
        owner.arrive(&id(1), None);
        assert!(!owner.arrive(&id(2), Some(&id(1))));
        assert!(owner.leave(&id(1), Duration::ZERO));
        assert!(owner.is(&id(2)));
        owner.leave(&id(2), Duration::ZERO);
        assert!(owner.arrive(&id(3), Some(&id(2))));
    }
}
