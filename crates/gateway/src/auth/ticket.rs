//! Tickets, for WebSockets and event streams that can send neither a cookie nor a header.

use bowline_proto::api::Secret;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::secret::Digest;

/// How long a ticket is valid.
pub const TICKET_TTL: Duration = Duration::from_secs(30);
/// Unused tickets of one caller; one more drops the caller's oldest.
const MAX_PER_CALLER: usize = 64;
/// Unused tickets of all callers; one more drops the oldest.
const MAX_TICKETS: usize = 4096;

/// The unused tickets, oldest first. They are only in memory: a client whose ticket is lost requests another.
#[derive(Debug, Default)]
pub(super) struct Tickets(VecDeque<Ticket>);

#[derive(Debug)]
struct Ticket {
    digest: Digest,
    caller: Caller,
    expires: Instant,
}

impl Tickets {
    pub(super) fn add(&mut self, secret: &Secret, caller: &Caller, now: Instant) {
        self.prune(now);
        let own = self.0.iter().filter(|ticket| ticket.caller.id() == caller.id()).count();
        let excess = if own >= MAX_PER_CALLER {
            self.0.iter().position(|ticket| ticket.caller.id() == caller.id())
        } else {
            (self.0.len() >= MAX_TICKETS).then_some(0)
        };
        excess.map(|oldest| self.0.remove(oldest));
        let digest = Digest::of(secret.reveal());
        self.0.push_back(Ticket { digest, caller: caller.clone(), expires: now + TICKET_TTL });
    }

    /// Uses up a ticket. Returns the caller that it was issued to.
    pub(super) fn take(&mut self, secret: &str, now: Instant) -> Option<Caller> {
        self.prune(now);
        // Hashed once, not for each ticket: anyone can send one.
        let sent = Digest::of_sent(secret)?;
        let found = self.0.iter().position(|ticket| ticket.digest.equals(&sent))?;
        self.0.remove(found).map(|ticket| ticket.caller)
    }

    /// Drops expired tickets. Each would otherwise keep its caller's login in use.
    pub(super) fn prune(&mut self, now: Instant) {
        while self.0.front().is_some_and(|oldest| oldest.expires <= now) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_proto::api::TokenScope;

    fn user(name: &str) -> Caller {
        Caller::user(name, TokenScope::Write)
    }

    #[test]
    fn r48_a_ticket_works_once_within_30_seconds() {
        let (mut tickets, now) = (Tickets::default(), Instant::now());
        let secrets: Vec<Secret> = (0..3).map(|_| super::super::secret::random_secret().unwrap()).collect();
        secrets.iter().for_each(|secret| tickets.add(secret, &user("ann"), now));
        assert!(tickets.take("", now).is_none());
        assert_eq!(tickets.take(secrets[1].reveal(), now).unwrap().id(), "user:ann");
        assert!(tickets.take(secrets[1].reveal(), now).is_none(), "used up");
        let late = now + TICKET_TTL - Duration::from_millis(1);
        assert!(tickets.take(secrets[0].reveal(), late).is_some());
        assert!(tickets.take(secrets[2].reveal(), now + TICKET_TTL).is_none(), "expired");
        assert!(tickets.0.is_empty());
    }

    #[test]
    fn r48_tickets_are_limited_per_caller_and_in_total() {
        let (mut tickets, now) = (Tickets::default(), Instant::now());
        let other = super::super::secret::random_secret().unwrap();
        tickets.add(&other, &user("ann"), now);
        let first = super::super::secret::random_secret().unwrap();
        tickets.add(&first, &user("bob"), now);
        for _ in 0..MAX_PER_CALLER {
            tickets.add(&super::super::secret::random_secret().unwrap(), &user("bob"), now);
        }
        assert_eq!(tickets.0.len(), MAX_PER_CALLER + 1);
        assert!(tickets.take(first.reveal(), now).is_none(), "bob's oldest was dropped");
        assert!(tickets.take(other.reveal(), now).is_some(), "ann's stays");
        for n in 0..MAX_TICKETS + 10 {
            tickets.add(&Secret::new(n.to_string()), &user(&n.to_string()), now);
        }
        assert_eq!(tickets.0.len(), MAX_TICKETS);
    }
}
