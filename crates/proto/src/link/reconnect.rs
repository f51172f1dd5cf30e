//! Who dials, and when: one machine owns the connection's whole life, so nobody else reopens sockets.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::close::{Class, Closed, Permanent, classify};
use crate::config::{DIAL_WITHIN, GOOD_AFTER, HIDDEN_EVERY};

/// What a user sees of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The first dial.
    Connecting,
    /// Attached.
    Open,
    /// Lost; the next dial is at `at`, or under way when that is past.
    Reconnecting {
        /// Which try this is, from 1.
        attempt: u32,
        /// When it is made.
        at: Duration,
    },
    /// The tries are used up; a wake starts again.
    Offline,
    /// Over: the session exited, the user left, or a newer connection took over.
    Ended,
    /// A new login is needed, and then a [`redial`](Reconnector::redial).
    NeedsLogin,
    /// It will never work.
    Gone(Permanent),
}

/// What the driver is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Dial; give the generation back with everything that this dial leads to.
    Dial {
        /// This dial.
        generation: u64,
        /// Fetch another ticket first.
        fresh_ticket: bool,
    },
    /// This dial or its connection is superseded: close it. Whatever it still does is ignored.
    Drop {
        /// Which.
        generation: u64,
    },
    /// The status changed: show it.
    Show(Status),
}

/// The reconnecting machine.
#[derive(Debug)]
pub struct Reconnector {
    backoff: Backoff,
    status: Status,
    generation: u64,
    phase: Phase,
    /// Failures since the last good connection.
    failures: u32,
    fresh_ticket: bool,
    /// The server asked not to be dialled before, not even on a wake.
    not_before: Duration,
    hidden: bool,
    actions: VecDeque<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is under way.
    Idle,
    /// A dial since then.
    Dialling(Duration),
    /// Open, and not attached yet.
    Opened,
    /// Attached since then.
    Attached(Duration),
    /// The next dial is then.
    Waiting(Duration),
}

impl Reconnector {
    /// A machine that has not dialled.
    pub fn new(backoff: Backoff) -> Reconnector {
        Reconnector {
            backoff,
            status: Status::Connecting,
            generation: 0,
            phase: Phase::Idle,
            failures: 0,
            fresh_ticket: false,
            not_before: Duration::ZERO,
            hidden: false,
            actions: VecDeque::new(),
        }
    }

    /// Makes the first dial.
    pub fn start(&mut self, now: Duration) {
        if self.generation == 0 && self.phase == Phase::Idle {
            self.dial(now);
        }
    }

    /// The transport of this dial is open.
    pub fn handle_opened(&mut self, generation: u64) {
        if generation == self.generation && matches!(self.phase, Phase::Dialling(_)) {
            self.phase = Phase::Opened;
        }
    }

    /// The server attached us.
    pub fn handle_attached(&mut self, generation: u64, now: Duration) {
        if generation == self.generation && matches!(self.phase, Phase::Dialling(_) | Phase::Opened) {
            self.phase = Phase::Attached(now);
            self.show(Status::Open);
        }
    }

    /// A dial failed, or its connection ended. `jitter` is in [-1, 1].
    pub fn handle_closed(&mut self, generation: u64, closed: &Closed, jitter: f64, now: Duration) {
        let live = matches!(self.phase, Phase::Dialling(_) | Phase::Opened | Phase::Attached(_));
        if generation != self.generation || !live {
            return;
        }
        // A server that accepts and closes does not earn a fresh budget.
        if matches!(self.phase, Phase::Attached(since) if now.saturating_sub(since) >= GOOD_AFTER) {
            self.failures = 0;
        }
        self.phase = Phase::Idle;
        match classify(closed) {
            Class::Ended | Class::Superseded => self.show(Status::Ended),
            Class::Permanent(why) => self.show(Status::Gone(why)),
            Class::NeedsLogin => self.show(Status::NeedsLogin),
            Class::FetchTicket => {
                self.fresh_ticket = true;
                self.retry(None, jitter, now);
            }
            Class::Transient { not_before } => {
                self.retry(not_before, jitter, now);
                // A page in between does not know when the server is back; the user may.
                if matches!(closed, Closed::Refused { ours: false, .. }) {
                    self.not_before = now;
                }
            }
        }
    }

    fn retry(&mut self, not_before: Option<Duration>, jitter: f64, now: Duration) {
        let Some(delay) = self.backoff.delay(self.failures, jitter) else {
            return self.show(Status::Offline);
        };
        self.failures += 1;
        self.not_before = now + not_before.unwrap_or_default();
        let delay = if self.hidden { delay.max(HIDDEN_EVERY) } else { delay };
        self.wait((now + delay).max(self.not_before));
    }

    fn wait(&mut self, at: Duration) {
        self.phase = Phase::Waiting(at);
        self.show(Status::Reconnecting { attempt: self.failures.max(1), at });
    }

    /// Nobody looks: no more than a try a minute, until a wake.
    pub fn handle_hidden(&mut self, now: Duration) {
        self.hidden = true;
        if let Phase::Waiting(at) = self.phase {
            self.wait(at.max(now + HIDDEN_EVERY));
        }
    }

    /// Online, visible, resumed, or the user asked: the tries start again, and a dial is made at once, unless one is
    /// under way or the server asked for patience. An open connection is left alone; whether it lives is for the
    /// link's probe.
    pub fn handle_wake(&mut self, now: Duration) {
        self.hidden = false;
        if self.generation == 0 || matches!(self.status, Status::Ended | Status::Gone(_) | Status::NeedsLogin) {
            return;
        }
        self.failures = 0;
        if matches!(self.phase, Phase::Idle | Phase::Waiting(_)) {
            self.wait(self.not_before.max(now));
            self.handle_timeout(0.0, now);
        }
    }

    /// Dial afresh, whatever is under way: after a new login, after a long sleep, or on the user's word.
    pub fn redial(&mut self, now: Duration) {
        if matches!(self.status, Status::Ended | Status::Gone(_)) {
            return;
        }
        if matches!(self.phase, Phase::Dialling(_) | Phase::Opened | Phase::Attached(_)) {
            self.actions.push_back(Action::Drop { generation: self.generation });
        }
        self.failures = 0;
        self.phase = Phase::Idle;
        self.show(Status::Reconnecting { attempt: 1, at: now });
        self.dial(now);
    }

    /// The session exited, or the user left.
    pub fn handle_ended(&mut self) {
        if matches!(self.phase, Phase::Dialling(_) | Phase::Opened | Phase::Attached(_)) {
            self.actions.push_back(Action::Drop { generation: self.generation });
        }
        self.phase = Phase::Idle;
        if !matches!(self.status, Status::Gone(_)) {
            self.show(Status::Ended);
        }
    }

    /// Time has passed. `jitter` is in [-1, 1].
    pub fn handle_timeout(&mut self, jitter: f64, now: Duration) {
        match self.phase {
            Phase::Waiting(at) if at <= now => self.dial(now),
            Phase::Dialling(since) if since + DIAL_WITHIN <= now => {
                self.actions.push_back(Action::Drop { generation: self.generation });
                self.handle_closed(self.generation, &Closed::Failed, jitter, now);
            }
            Phase::Idle | Phase::Waiting(_) | Phase::Dialling(_) | Phase::Opened | Phase::Attached(_) => {}
        }
    }

    /// When [`handle_timeout`](Reconnector::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<Duration> {
        match self.phase {
            Phase::Waiting(at) => Some(at),
            Phase::Dialling(since) => Some(since + DIAL_WITHIN),
            Phase::Idle | Phase::Opened | Phase::Attached(_) => None,
        }
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The status as a user sees it.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The dial that counts.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn dial(&mut self, now: Duration) {
        self.generation += 1;
        self.phase = Phase::Dialling(now);
        let fresh_ticket = std::mem::take(&mut self.fresh_ticket);
        self.actions.push_back(Action::Dial { generation: self.generation, fresh_ticket });
    }

    fn show(&mut self, status: Status) {
        if self.status != status {
            self.status = status;
            self.actions.push_back(Action::Show(status));
        }
    }
}
