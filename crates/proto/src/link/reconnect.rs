//! Decides when to dial, and tracks each connection from the dial to its end. Nothing else opens connections.

use std::collections::VecDeque;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::close::{CloseClass, ConnectionEnd, PermanentFailure, classify};
use crate::config::{DIAL_WITHIN, HIDDEN_EVERY, STABLE_AFTER};

/// The state of the connection, as shown to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The first dial is under way.
    Connecting,
    /// Attached.
    Open,
    /// The connection was lost. The next dial is at `at`, or under way once that has passed.
    Reconnecting {
        /// Counted from 1.
        attempt: u32,
        at: Duration,
    },
    /// All attempts failed; a wake starts over.
    Offline,
    /// The session exited, the user detached, or a newer connection took over.
    Ended,
    /// The user must log in again, then call [`redial`](Reconnector::redial).
    NeedsLogin,
    /// Another attempt cannot succeed.
    Gone(PermanentFailure),
}

/// What the driver must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection. Pass `generation` with every report about it.
    Dial {
        generation: u64,
        /// Fetch a new ticket first.
        fresh_ticket: bool,
    },
    /// Abort this dial or close its connection. Later reports about it are ignored.
    Drop { generation: u64 },
    /// Show the new status.
    Show(Status),
}

/// The state machine that decides when to dial.
#[derive(Debug)]
pub struct Reconnector {
    backoff: Backoff,
    status: Status,
    generation: u64,
    phase: Phase,
    /// Failures since the last connection that lasted for [`STABLE_AFTER`].
    failures: u32,
    fresh_ticket: bool,
    /// The server requested no dial before this time, not even on a wake.
    not_before: Duration,
    hidden: bool,
    actions: VecDeque<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// Since this time.
    Dialling(Duration),
    /// The transport is open, but not attached yet.
    Opened,
    /// Since this time.
    Attached(Duration),
    /// For the next dial, at this time.
    Waiting(Duration),
}

impl Phase {
    /// Whether a dial is under way or a connection is open.
    fn is_active(self) -> bool {
        matches!(self, Phase::Dialling(_) | Phase::Opened | Phase::Attached(_))
    }
}

impl Reconnector {
    /// Does not dial until [`start`](Reconnector::start).
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

    /// The server answered the hello with `attached`.
    pub fn handle_attached(&mut self, generation: u64, now: Duration) {
        if generation == self.generation && matches!(self.phase, Phase::Dialling(_) | Phase::Opened) {
            self.phase = Phase::Attached(now);
            self.show(Status::Open);
        }
    }

    /// The dial failed, or its connection ended. `jitter` is in [-1, 1].
    pub fn handle_closed(&mut self, generation: u64, closed: &ConnectionEnd, jitter: f64, now: Duration) {
        if generation != self.generation || !self.phase.is_active() {
            return;
        }
        // A server that accepts connections only to close them does not reset the count.
        if matches!(self.phase, Phase::Attached(since) if now.saturating_sub(since) >= STABLE_AFTER) {
            self.failures = 0;
        }
        self.phase = Phase::Idle;
        match classify(closed) {
            CloseClass::Ended | CloseClass::Superseded => self.show(Status::Ended),
            CloseClass::Permanent(failure) => self.show(Status::Gone(failure)),
            CloseClass::NeedsLogin => self.show(Status::NeedsLogin),
            CloseClass::FetchTicket => {
                self.fresh_ticket = true;
                self.retry(None, jitter, now);
            }
            CloseClass::Transient { not_before } => {
                self.retry(not_before, jitter, now);
                // A proxy does not know when the server is back, so the user may try earlier.
                if matches!(closed, ConnectionEnd::Refused { from_gateway: false, .. }) {
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

    /// The page was hidden: dial at most once per [`HIDDEN_EVERY`] until a wake.
    pub fn handle_hidden(&mut self, now: Duration) {
        self.hidden = true;
        if let Phase::Waiting(at) = self.phase {
            self.wait(at.max(now + HIDDEN_EVERY));
        }
    }

    /// The network is back, the page is visible, the machine resumed, or the user wants to retry.
    ///
    /// Resets the count of failures and dials at once, unless a dial is under way or the server requested a longer
    /// wait. An open connection is kept; the link probes whether it still works.
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

    /// Drops any current connection and dials at once: after a new login, after a long sleep, or at the user's
    /// request.
    pub fn redial(&mut self, now: Duration) {
        if matches!(self.status, Status::Ended | Status::Gone(_)) {
            return;
        }
        if self.phase.is_active() {
            self.actions.push_back(Action::Drop { generation: self.generation });
        }
        self.failures = 0;
        self.phase = Phase::Idle;
        self.show(Status::Reconnecting { attempt: 1, at: now });
        self.dial(now);
    }

    /// The session exited, or the user detached.
    pub fn handle_ended(&mut self) {
        if self.phase.is_active() {
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
                self.handle_closed(self.generation, &ConnectionEnd::Failed, jitter, now);
            }
            Phase::Idle | Phase::Waiting(_) | Phase::Dialling(_) | Phase::Opened | Phase::Attached(_) => {}
        }
    }

    /// When to call [`handle_timeout`](Reconnector::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Duration> {
        match self.phase {
            Phase::Waiting(at) => Some(at),
            Phase::Dialling(since) => Some(since + DIAL_WITHIN),
            Phase::Idle | Phase::Opened | Phase::Attached(_) => None,
        }
    }

    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub fn status(&self) -> Status {
        self.status
    }

    /// The number of the latest dial; reports about earlier ones are ignored.
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
