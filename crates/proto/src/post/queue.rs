//! Decides when each entry is sent. Nothing else sends commands.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

use super::entry::{Delivery, Entry, Failure, FailureReason, Lane, State, WaitReason};
use super::item::{Item, Phase, millis};
use super::response::{Response, ResponseClass, classify_response};
use super::{MAX_BYTES, MAX_ENTRIES, MAX_SESSION, MAX_SESSION_ENTRIES, RESPONSE_WITHIN, RETRY};
use crate::agent::command::MAX_COMMAND;
use crate::config::COMMAND_ID;

/// What the driver must do. All actions are about the entry with this id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the command, and report the response with this number.
    Send { id: String, attempt: u64 },
    /// Abort this request. Its response is ignored, unless it proves that the command arrived.
    Drop { id: String, attempt: u64 },
    /// Store the entry, so that it survives the process.
    Store { id: String },
    /// Remove the entry from the storage.
    Unstore { id: String },
    /// Show the entry: it is new, or its state has changed.
    Show { id: String },
    /// The entry has left the queue.
    Hide { id: String },
}

/// Why a command was not taken. The user's text must stay where it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("too many messages for this session are waiting to be sent (limit {MAX_SESSION_ENTRIES})")]
    SessionFull,
    #[error("too many messages are waiting to be sent (limit {MAX_ENTRIES})")]
    Full,
    #[error("the messages that are waiting to be sent are too long together (limit {} MiB)", MAX_BYTES >> 20)]
    TooManyBytes,
    #[error("the message is too long (limit {} KiB)", MAX_COMMAND >> 10)]
    TooLong,
    #[error("the command has no valid id, session or type")]
    Invalid,
    #[error("a command with this id is already in the queue")]
    IdInUse,
}

/// The state machine that sends commands.
#[derive(Debug, Default)]
pub struct PostQueue {
    /// In the order of [`Entry::order`].
    pub(super) items: Vec<Item>,
    /// The latest time that was passed in.
    pub(super) now: u64,
    /// The number of the latest request.
    pub(super) attempts: u64,
    /// The number of the latest request before the last login.
    attempts_before_login: u64,
    /// The highest order that was given or restored.
    last_order: u64,
    /// The sessions of stored entries of the ordered lane that did not fit, by their ids.
    left_out: BTreeMap<String, String>,
    pub(super) needs_login: bool,
    pub(super) offline: bool,
    hidden: bool,
    pub(super) actions: VecDeque<Action>,
}

impl PostQueue {
    pub fn new() -> PostQueue {
        PostQueue::default()
    }

    /// Takes over a command. `id` is new and unique, such as a UUID; `session` is the id of a session.
    pub fn send(&mut self, session: &str, id: &str, command: Value, now: u64) -> Result<(), SendError> {
        self.set_now(now);
        let is_valid = (1..=MAX_SESSION).contains(&session.len()) && (1..=COMMAND_ID).contains(&id.len());
        if !is_valid || !command["type"].is_string() {
            return Err(SendError::Invalid);
        }
        if self.position(id).is_some() {
            return Err(SendError::IdInUse);
        }
        let order = now.max(self.last_order + 1);
        let state = State::Waiting { why: WaitReason::Turn };
        let item =
            Item::new(Entry { id: id.to_owned(), session: session.to_owned(), command, made: now, order, state });
        if item.bytes > MAX_COMMAND {
            return Err(SendError::TooLong);
        }
        if self.overtakes_left_out(&item) {
            return Err(SendError::SessionFull);
        }
        self.make_room(&item)?;
        self.last_order = order;
        self.items.push(item);
        self.actions.push_back(Action::Store { id: id.to_owned() });
        self.advance();
        Ok(())
    }

    /// Takes over entries that were stored before this process began: ids and texts. Those that are younger than ten minutes
    /// are sent, the others wait for the user.
    ///
    /// Returns the ids of those that do not fit; they stay stored, to be restored when there is room. Until then, `send`
    /// refuses what would go before them.
    pub fn restore(&mut self, stored: impl IntoIterator<Item = (String, String)>, now: u64) -> Vec<String> {
        self.set_now(now);
        let mut entries: Vec<_> = stored.into_iter().map(|(id, text)| Entry::from_stored(&id, &text)).collect();
        entries.sort_by(|a, b| (a.order, &a.id).cmp(&(b.order, &b.id)));
        for entry in &entries {
            self.left_out.remove(&entry.id);
        }
        let mut left_out = Vec::new();
        for mut entry in entries {
            if self.position(&entry.id).is_some() {
                continue;
            }
            // The clock was set back: the age of the entry is unknown, and counts from now.
            entry.made = entry.made.min(now);
            let mut item = Item::new(entry);
            if self.overtakes_left_out(&item) || self.make_room(&item).is_err() {
                if item.lane == Lane::Ordered {
                    self.left_out.insert(item.entry.id.clone(), item.entry.session);
                }
                left_out.push(item.entry.id);
                continue;
            }
            if matches!(item.phase, Phase::Ready) && item.is_late(now) {
                item.fail(FailureReason::Old);
            }
            self.last_order = self.last_order.max(item.entry.order);
            self.items.push(item);
        }
        self.items.sort_by(|a, b| (a.entry.order, &a.entry.id).cmp(&(b.entry.order, &b.entry.id)));
        self.advance();
        left_out
    }

    /// The response to a request. `jitter` is in [-1, 1].
    pub fn handle_response(&mut self, id: &str, attempt: u64, response: &Response, jitter: f64, now: u64) {
        self.set_now(now);
        let Some(at) = self.position(id) else { return };
        let is_current = self.items[at].attempt() == Some(attempt);
        match classify_response(id, response) {
            // It is true whenever it arrives, also after the entry failed.
            ResponseClass::Delivered(delivery @ Delivery::Accepted { .. }) => self.deliver(at, delivery, Some(attempt)),
            _ if !is_current => return,
            ResponseClass::Delivered(delivery) => self.deliver(at, delivery, Some(attempt)),
            ResponseClass::NeedsLogin => {
                // A request that was sent before the login says nothing about it.
                self.needs_login |= attempt > self.attempts_before_login;
                self.items[at].phase = Phase::Ready;
            }
            // Being offline is not a try.
            ResponseClass::Retry { .. } if self.offline && matches!(response, Response::Missing { .. }) => {
                self.items[at].phase = Phase::Ready;
            }
            ResponseClass::Retry { not_before, binding, message } => {
                self.items[at].last_error = message;
                self.retry(at, not_before.unwrap_or_default(), binding, jitter);
            }
            ResponseClass::Failed(failure) => self.fail(at, failure),
        }
        self.advance();
    }

    /// The session's journal has a command with this id, as the number `seq`: an event said so.
    pub fn handle_recorded(&mut self, session: &str, id: &str, seq: u64, run: Option<&str>, now: u64) {
        self.set_now(now);
        let Some(at) = self.position(id).filter(|at| self.items[*at].entry.session == session) else { return };
        self.deliver(at, Delivery::Accepted { seq, run: run.map(str::to_owned) }, None);
        self.advance();
    }

    /// Another process settled or discarded the entry, and removed it from the storage that both use.
    pub fn handle_removed(&mut self, id: &str, now: u64) {
        self.set_now(now);
        self.left_out.remove(id);
        self.take_out(id);
    }

    /// The user has logged in again.
    pub fn handle_login(&mut self, now: u64) {
        self.set_now(now);
        self.needs_login = false;
        self.attempts_before_login = self.attempts;
        self.wake();
    }

    /// The device has no network.
    pub fn handle_offline(&mut self, now: u64) {
        self.set_now(now);
        self.offline = true;
        self.advance();
    }

    /// The device has a network again.
    pub fn handle_online(&mut self, now: u64) {
        self.set_now(now);
        self.offline = false;
        self.wake();
    }

    /// The page was hidden: no timer runs until a wake.
    pub fn handle_hidden(&mut self, now: u64) {
        self.set_now(now);
        self.hidden = true;
    }

    /// The page is visible, or the machine resumed. What waits for another try is tried at once, unless the gateway
    /// requested a longer wait; what was made more than ten minutes ago waits for the user.
    pub fn handle_wake(&mut self, now: u64) {
        self.set_now(now);
        self.hidden = false;
        self.wake();
    }

    fn wake(&mut self) {
        for at in 0..self.items.len() {
            self.drop_late_request(at);
            let (now, item) = (self.now, &mut self.items[at]);
            item.failures = 0;
            match item.phase {
                Phase::Ready | Phase::Waiting { .. } if item.is_late(now) => {
                    item.fail(FailureReason::Old);
                    self.store(at);
                }
                Phase::Waiting { not_before, .. } if not_before > now => {
                    item.phase = Phase::Waiting { at: not_before, not_before };
                }
                Phase::Waiting { .. } => item.phase = Phase::Ready,
                Phase::Ready | Phase::InFlight { .. } | Phase::Delivered(_) | Phase::Failed(_) => {}
            }
        }
        self.advance();
    }

    /// Time has passed. `jitter` is in [-1, 1].
    pub fn handle_timeout(&mut self, jitter: f64, now: u64) {
        self.set_now(now);
        if self.hidden {
            return;
        }
        for at in 0..self.items.len() {
            if self.drop_late_request(at) {
                match self.offline {
                    true => self.items[at].phase = Phase::Ready,
                    false => self.retry(at, Duration::ZERO, false, jitter),
                }
            }
            let item = &mut self.items[at];
            match item.phase {
                Phase::Ready | Phase::Waiting { .. } if item.is_late(now) => {
                    item.fail(FailureReason::Expired);
                    self.store(at);
                }
                Phase::Waiting { at, .. } if at <= now => item.phase = Phase::Ready,
                Phase::Ready
                | Phase::Waiting { .. }
                | Phase::InFlight { .. }
                | Phase::Delivered(_)
                | Phase::Failed(_) => {}
            }
        }
        self.advance();
    }

    /// Drops the request of an entry if it has had no response for too long.
    fn drop_late_request(&mut self, at: usize) -> bool {
        let (now, item) = (self.now, &mut self.items[at]);
        match item.phase {
            Phase::InFlight { attempt, until } if until <= now => {
                self.actions.push_back(Action::Drop { id: item.entry.id.clone(), attempt });
                item.phase = Phase::Ready;
                item.last_error = format!("no response within {} s", RESPONSE_WITHIN.as_secs());
                true
            }
            _ => false,
        }
    }

    /// Sends a failed entry again, or one that waits for another try at once. It gets another ten minutes, and keeps its id and
    /// its place. Returns false if there is no such entry, or nothing to send.
    pub fn send_again(&mut self, id: &str, now: u64) -> bool {
        self.set_now(now);
        let Some(at) = self.position(id) else { return false };
        let item = &mut self.items[at];
        match item.phase {
            Phase::Failed(_) if item.entry.session.is_empty() => return false,
            Phase::Failed(_) | Phase::Ready => item.phase = Phase::Ready,
            Phase::Waiting { not_before, .. } if not_before > now => {}
            Phase::Waiting { .. } => item.phase = Phase::Ready,
            Phase::InFlight { .. } | Phase::Delivered(_) => return false,
        }
        (item.entry.made, item.tries, item.failures) = (now, 0, 0);
        self.advance();
        self.store(at);
        true
    }

    /// Removes an entry that is not delivered. If it was sent before, it may still have been, or be, delivered.
    pub fn discard(&mut self, id: &str, now: u64) -> bool {
        self.set_now(now);
        self.take_out(id)
    }

    fn take_out(&mut self, id: &str) -> bool {
        let found = self.position(id).filter(|at| !matches!(self.items[*at].phase, Phase::Delivered(_)));
        if let Some(at) = found {
            // Also if another process removed it: this one may have stored it again in the meantime.
            self.actions.push_back(Action::Unstore { id: id.to_owned() });
            self.remove(at);
            self.advance();
        }
        found.is_some()
    }

    /// Removes an entry that was delivered.
    pub fn dismiss(&mut self, id: &str) -> bool {
        let found = self.position(id).filter(|at| matches!(self.items[*at].phase, Phase::Delivered(_)));
        found.inspect(|at| self.remove(*at)).is_some()
    }

    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](PostQueue::handle_timeout).
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.hidden {
            return None;
        }
        let can_send = !self.needs_login && !self.offline;
        let times = self.items.iter().filter_map(|item| match item.phase {
            Phase::InFlight { until, .. } => Some(until),
            Phase::Waiting { at, .. } if can_send => Some(at.min(item.expires())),
            Phase::Ready | Phase::Waiting { .. } => Some(item.expires()),
            Phase::Delivered(_) | Phase::Failed(_) => None,
        });
        times.min()
    }

    /// All entries, in the order in which they are sent.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.items.iter().map(|item| &item.entry)
    }

    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.position(id).map(|at| &self.items[at].entry)
    }

    /// Whether entries wait for [`handle_login`](PostQueue::handle_login).
    pub fn needs_login(&self) -> bool {
        self.needs_login
    }

    /// Whether an entry would be sent before one that was left out.
    fn overtakes_left_out(&self, item: &Item) -> bool {
        item.lane == Lane::Ordered && self.left_out.values().any(|session| *session == item.entry.session)
    }

    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.items.iter().position(|item| item.entry.id == id)
    }

    /// Notes the time. If the clock was set back, all times are, too, so that nothing has to wait until the clock has caught up.
    fn set_now(&mut self, now: u64) {
        let back = self.now.saturating_sub(now);
        for item in self.items.iter_mut().filter(|_| back > 0) {
            item.entry.made = item.entry.made.saturating_sub(back);
            match &mut item.phase {
                Phase::InFlight { until, .. } => *until = until.saturating_sub(back),
                Phase::Waiting { at, not_before } => {
                    (*at, *not_before) = (at.saturating_sub(back), not_before.saturating_sub(back));
                }
                Phase::Ready | Phase::Delivered(_) | Phase::Failed(_) => {}
            }
        }
        self.now = now;
    }

    /// Removes an entry from the queue, and drops its request.
    pub(super) fn remove(&mut self, at: usize) {
        let item = self.items.remove(at);
        if let Some(attempt) = item.attempt() {
            self.actions.push_back(Action::Drop { id: item.entry.id.clone(), attempt });
        }
        self.actions.push_back(Action::Hide { id: item.entry.id });
    }

    /// Settles an entry. `answered` is the request whose response says so; another one that is under way is dropped.
    fn deliver(&mut self, at: usize, delivery: Delivery, answered: Option<u64>) {
        let item = &mut self.items[at];
        if matches!(item.phase, Phase::Delivered(_)) {
            return;
        }
        let id = &item.entry.id;
        if let Some(attempt) = item.attempt().filter(|attempt| answered != Some(*attempt)) {
            self.actions.push_back(Action::Drop { id: id.clone(), attempt });
        }
        self.actions.push_back(Action::Unstore { id: id.clone() });
        item.phase = Phase::Delivered(delivery);
    }

    fn fail(&mut self, at: usize, failure: Failure) {
        self.items[at].phase = Phase::Failed(failure);
        self.store(at);
    }

    /// Has the entry stored. A failed one must be stored as such, or it would be sent after a reload.
    fn store(&mut self, at: usize) {
        self.actions.push_back(Action::Store { id: self.items[at].entry.id.clone() });
    }

    /// Plans the next try, unless the ten minutes are over.
    fn retry(&mut self, at: usize, wait: Duration, binding: bool, jitter: f64) {
        let (now, item) = (self.now, &mut self.items[at]);
        item.tries = item.tries.saturating_add(1);
        if item.is_late(now) {
            item.fail(FailureReason::Expired);
            return self.store(at);
        }
        let delay = RETRY.delay(item.failures, jitter).unwrap_or(RETRY.cap);
        item.failures = item.failures.saturating_add(1);
        let not_before = if binding { now.saturating_add(millis(wait)) } else { 0 };
        item.phase = Phase::Waiting { at: now.saturating_add(millis(delay.max(wait))), not_before };
    }
}
