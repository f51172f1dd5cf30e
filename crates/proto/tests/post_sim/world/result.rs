//! The end of a simulation: the faults stop, the user sends again what failed, and the result is checked.

use std::collections::BTreeSet;

use bowline_proto::post::{Lane, State};

use super::{SESSIONS, SentCommand, World};

/// How long after the last fault everything must be settled.
const LIVENESS: u64 = 700_000;

impl World {
    /// Ends all faults. The user sends again what failed, until everything is settled.
    pub(super) fn recover(&mut self) {
        self.faults = 0;
        self.server.sessions.values_mut().for_each(|session| (session.ended, session.busy_until) = (false, 0));
        // What only a closed tab had is still stored.
        self.open_tab();
        self.tabs.iter_mut().for_each(|tab| tab.waits.clear());
        for tab in 0..self.tabs.len() {
            let wall = self.wall();
            let tab_state = &mut self.tabs[tab];
            (tab_state.hidden, tab_state.offline) = (false, false);
            tab_state.queue.handle_online(wall);
            tab_state.queue.handle_wake(wall);
            self.work(tab);
        }
        self.log_in();
        self.run_until(self.now + LIVENESS);
        for tab in 0..self.tabs.len() {
            let open = self.tabs[tab].ids(|state| !matches!(state, State::Delivered(_) | State::Failed(_)));
            let held = self.tabs[tab].ids(|state| matches!(state, State::Waiting { .. }));
            assert_eq!(open, held, "an entry is neither delivered nor failed, nor held by a failed one");
            assert!(held.is_empty(), "held entries fail after ten minutes");
        }
        for _ in 0..2 {
            self.tabs.iter_mut().for_each(|tab| tab.waits.clear());
            for tab in 0..self.tabs.len() {
                for id in self.tabs[tab].ids(|state| matches!(state, State::Failed(_))) {
                    let wall = self.wall();
                    assert!(self.tabs[tab].queue.send_again(&id, wall));
                }
                self.work(tab);
            }
            self.run_until(self.now + LIVENESS);
        }
    }

    pub(super) fn check(&self) {
        assert!(self.storage.is_empty(), "settled entries are still stored: {:?}", self.storage.keys());
        for tab in &self.tabs {
            let open = tab.ids(|state| !matches!(state, State::Delivered(_)));
            assert!(open.is_empty(), "not delivered: {open:?}");
        }
        for SentCommand { id, .. } in &self.sent {
            let over = self.server.has_run(id) || self.settled.contains(id) || self.discarded.contains(id);
            assert!(over, "{id} was lost");
        }
        for session in SESSIONS {
            let Some(state) = self.server.sessions.get(session) else { continue };
            let ran: Vec<_> = state.journal.iter().map(|(id, _)| id).collect();
            assert_eq!(ran.iter().collect::<BTreeSet<_>>().len(), ran.len(), "a command was run twice");
            let kept = |sent: &&SentCommand| {
                sent.lane == Lane::Ordered && sent.session == session && !self.discarded.contains(&sent.id)
            };
            // Each tab has an order of its own, also over its reloads.
            for writer in 1..=self.tab_count {
                let sent = self.sent.iter().filter(kept).filter(|sent| sent.writer == writer);
                let expected: Vec<_> = sent.map(|sent| &sent.id).filter(|id| ran.contains(id)).collect();
                let ran: Vec<_> = ran.iter().copied().filter(|id| expected.contains(id)).collect();
                assert_eq!(ran, expected, "prompts were run in another order than they were sent");
            }
        }
    }
}
