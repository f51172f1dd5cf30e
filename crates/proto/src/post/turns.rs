//! Decides whose turn it is: what may join the queue, what is sent next, and what the others wait for.

use std::collections::BTreeSet;

use super::entry::{FailureReason, Lane, State, WaitReason};
use super::item::{Item, Phase, millis};
use super::queue::{Action, PostQueue, SendError};
use super::{MAX_BYTES, MAX_ENTRIES, MAX_SESSION_ENTRIES, RESPONSE_WITHIN};

impl PostQueue {
    /// Sends what can be sent, and announces what has changed.
    pub(super) fn advance(&mut self) {
        self.start_requests();
        self.show();
    }

    /// Sends the next entry of each lane that has none in flight. One that is late fails: the user decides.
    fn start_requests(&mut self) {
        if self.needs_login || self.offline {
            return;
        }
        let lane_of = |item: &Item| (item.entry.session.clone(), item.lane);
        let in_flight = self.items.iter().filter(|item| item.attempt().is_some());
        let mut closed: BTreeSet<_> = in_flight.map(lane_of).collect();
        for item in &mut self.items {
            let lane = lane_of(item);
            if matches!(item.phase, Phase::Delivered(_)) || closed.contains(&lane) {
                continue;
            }
            if matches!(item.phase, Phase::Ready) && item.is_late(self.now) {
                // A hidden page has no timer that noticed it.
                item.fail(FailureReason::Old);
                self.actions.push_back(Action::Store { id: item.entry.id.clone() });
            }
            if matches!(item.phase, Phase::Ready) {
                self.attempts += 1;
                let until = self.now.saturating_add(millis(RESPONSE_WITHIN));
                item.phase = Phase::InFlight { attempt: self.attempts, until };
                self.actions.push_back(Action::Send { id: item.entry.id.clone(), attempt: self.attempts });
                closed.insert(lane);
            } else if item.lane == Lane::Ordered {
                closed.insert(lane);
            }
        }
    }

    /// Updates the states of all entries, and announces those that have changed.
    fn show(&mut self) {
        let (mut unsettled, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for item in &mut self.items {
            let session = &item.entry.session;
            let is_behind = |sessions: &BTreeSet<String>| item.lane == Lane::Ordered && sessions.contains(session);
            let waiting = |why| State::Waiting { why };
            let state = match &item.phase {
                Phase::Delivered(delivery) => State::Delivered(delivery.clone()),
                Phase::Failed(failure) => State::Failed(failure.clone()),
                Phase::InFlight { .. } => State::Sending { tries: item.tries },
                Phase::Ready | Phase::Waiting { .. } if is_behind(&failed) => waiting(WaitReason::Held),
                Phase::Ready | Phase::Waiting { .. } if self.needs_login => waiting(WaitReason::Login),
                Phase::Ready | Phase::Waiting { .. } if self.offline => waiting(WaitReason::Offline),
                Phase::Waiting { at, .. } if !is_behind(&unsettled) => {
                    State::Retrying { at: *at, tries: item.tries, message: item.last_error.clone() }
                }
                Phase::Ready | Phase::Waiting { .. } => waiting(WaitReason::Turn),
            };
            if item.lane == Lane::Ordered {
                match &item.phase {
                    Phase::Delivered(_) => {}
                    Phase::Failed(_) => drop(failed.insert(session.clone())),
                    Phase::Ready | Phase::Waiting { .. } | Phase::InFlight { .. } => {
                        unsettled.insert(session.clone());
                    }
                }
            }
            if item.entry.state != state || !item.shown {
                item.shown = true;
                item.entry.state = state;
                self.actions.push_back(Action::Show { id: item.entry.id.clone() });
            }
        }
    }

    /// Checks that an entry fits. Delivered ones make room for it, the oldest first; all stay if it does not fit even then.
    pub(super) fn make_room(&mut self, new: &Item) -> Result<(), SendError> {
        let mut leaving: Vec<String> = Vec::new();
        while let Some((error, of_session)) = self.exceeded(new, &leaving) {
            let makes_room = |item: &&Item| {
                let is_near = item.lane == new.lane && (!of_session || item.entry.session == new.entry.session);
                is_near && matches!(item.phase, Phase::Delivered(_)) && !leaving.contains(&item.entry.id)
            };
            let oldest = self.items.iter().find(makes_room).ok_or(error)?;
            leaving.push(oldest.entry.id.clone());
        }
        for id in leaving {
            if let Some(at) = self.position(&id) {
                self.remove(at);
            }
        }
        Ok(())
    }

    /// The limit that an entry would exceed without those that leave, and whether only entries of its session can make room.
    fn exceeded(&self, new: &Item, leaving: &[String]) -> Option<(SendError, bool)> {
        let lane = || self.items.iter().filter(|item| item.lane == new.lane && !leaving.contains(&item.entry.id));
        if lane().filter(|item| item.entry.session == new.entry.session).count() >= MAX_SESSION_ENTRIES {
            Some((SendError::SessionFull, true))
        } else if lane().count() >= MAX_ENTRIES {
            Some((SendError::Full, false))
        } else if lane().map(|item| item.bytes).sum::<usize>() + new.bytes > MAX_BYTES {
            Some((SendError::TooManyBytes, false))
        } else {
            None
        }
    }
}
