//! An entry in the queue, and the times of its tries.

use std::time::Duration;

use super::SEND_WITHIN;
use super::entry::{Delivery, Entry, Failure, FailureReason, Lane, State};

/// An entry, and what the queue knows about it.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) entry: Entry,
    pub(super) lane: Lane,
    /// The length of the command as JSON; 0 if it could not be read.
    pub(super) bytes: usize,
    pub(super) phase: Phase,
    /// Tries that failed, as shown to the user.
    pub(super) tries: u32,
    /// Tries that failed since the last wake, for the backoff.
    pub(super) failures: u32,
    /// Why the last try failed.
    pub(super) last_error: String,
    /// The driver knows the entry.
    pub(super) shown: bool,
}

/// What the queue does with an entry. [`State`] is what the user sees of it.
#[derive(Debug)]
pub(super) enum Phase {
    /// To be sent as soon as nothing prevents it.
    Ready,
    /// Until a response comes, or this time.
    InFlight {
        attempt: u64,
        until: u64,
    },
    /// For the next try.
    Waiting {
        at: u64,
        /// The gateway requested no try before this time, not even on a wake.
        not_before: u64,
    },
    Delivered(Delivery),
    Failed(Failure),
}

impl Item {
    pub(super) fn new(entry: Entry) -> Item {
        let phase = match &entry.state {
            State::Failed(failure) => Phase::Failed(failure.clone()),
            _ => Phase::Ready,
        };
        // What cannot be read holds nothing.
        let lane = if entry.session.is_empty() { Lane::Urgent } else { entry.lane() };
        let bytes = if entry.command.is_null() { 0 } else { entry.command.to_string().len() };
        Item { entry, lane, bytes, phase, tries: 0, failures: 0, last_error: String::new(), shown: false }
    }

    /// The request that is under way.
    pub(super) fn attempt(&self) -> Option<u64> {
        match self.phase {
            Phase::InFlight { attempt, .. } => Some(attempt),
            Phase::Ready | Phase::Waiting { .. } | Phase::Delivered(_) | Phase::Failed(_) => None,
        }
    }

    pub(super) fn expires(&self) -> u64 {
        self.entry.made.saturating_add(millis(SEND_WITHIN))
    }

    pub(super) fn is_late(&self, now: u64) -> bool {
        self.expires() <= now
    }

    pub(super) fn fail(&mut self, reason: FailureReason) {
        self.phase = Phase::Failed(Failure { reason, message: self.last_error.clone() });
    }
}

/// A duration in milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
