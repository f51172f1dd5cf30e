//! The board: the current state of every session, and what has changed for each subscriber.
//!
//! All event streams share one board, whose tasks run only while there is a subscriber. One task (`watch`)
//! notices which sessions exist; a task for each session (`track`) follows its process and reads its files. A
//! subscriber's pending changes are ids, not states: it gets the latest state when it reads them, and one that
//! never reads costs at most about one id per session. Messages are serialized once, for all subscribers.

mod message;
mod shown;
mod track;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bowline_host::home::Home;
use bowline_proto::board::BoardMessage;
use bowline_proto::ids::SessionId;
use bowline_proto::session::{SessionInfo, State};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use message::EncodedMessage;
pub(crate) use shown::ShownSessions;
use shown::Waiting;

/// Sessions whose files are read concurrently; others wait.
const MAX_FILE_READS: usize = 4;
/// Concurrent status requests to sessions that are not followed; others wait.
const MAX_STATUS_REQUESTS: usize = 16;
/// How far a subscriber's pending ids may exceed the number of sessions. Beyond that it gets the whole board
/// instead.
const PENDING_SLACK: usize = 64;

pub(crate) struct Board {
    home: Home,
    max_followed: usize,
    /// Outlives the tasks, because a read goes on after its task has ended.
    file_reads: Arc<Semaphore>,
    tasks: Mutex<Weak<BoardTasks>>,
}

/// Keeps the board's tasks running. Each subscription holds it, so they end with the last one.
struct BoardTasks {
    shared: Arc<Shared>,
    _cancel: DropGuard,
}

/// What the tasks and the subscriptions share.
struct Shared {
    home: Home,
    file_reads: Arc<Semaphore>,
    status_requests: Semaphore,
    /// Permits to follow a session, each over a socket. The other sessions are polled.
    followers: Semaphore,
    state: Mutex<BoardState>,
}

#[derive(Default)]
struct BoardState {
    sessions: BTreeMap<SessionId, ShownSession>,
    /// The whole board as a message; `None` until a subscriber needs it.
    board: Option<EncodedMessage>,
    /// Sessions that have not been read yet; `None` until the sessions have been listed.
    unread: Option<HashSet<SessionId>>,
    subscribers: HashMap<u64, PendingChanges>,
    next_subscriber: u64,
    /// Notified of each state of a session, by its id, for those that [wait](ShownSessions::wait_for).
    waiting: HashMap<SessionId, Waiting>,
}

struct ShownSession {
    info: SessionInfo,
    /// The session as a message; `None` until a subscriber needs it.
    message: Option<EncodedMessage>,
}

/// What has changed since a subscriber last read its changes.
struct PendingChanges {
    /// The subscriber gets the whole board next; `changed` is empty then.
    full: bool,
    changed: BTreeSet<SessionId>,
    wake: Arc<Notify>,
}

impl Board {
    /// A board that follows at most `max_followed` sessions at a time.
    pub(crate) fn new(home: Home, max_followed: usize) -> Board {
        let file_reads = Arc::new(Semaphore::new(MAX_FILE_READS));
        Board { home, max_followed, file_reads, tasks: Mutex::default() }
    }

    /// Subscribes to changes. The first message is the whole board. It may be sent again later, and then replaces
    /// everything sent before.
    pub(crate) fn subscribe(&self) -> Subscription {
        let mut current = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = current.upgrade().unwrap_or_else(|| {
            let shared = Arc::new(Shared::new(self.home.clone(), self.max_followed, self.file_reads.clone()));
            let cancel = CancellationToken::new();
            let (watched, cancelled) = (shared.clone(), cancel.clone());
            tokio::spawn(async move { cancelled.run_until_cancelled(watch::run(watched)).await });
            let tasks = Arc::new(BoardTasks { shared, _cancel: cancel.drop_guard() });
            *current = Arc::downgrade(&tasks);
            tasks
        });
        let (id, wake) = tasks.shared.state().subscribe();
        Subscription { tasks, id, wake }
    }
}

/// A subscription to the board's changes, which ends on drop.
pub(crate) struct Subscription {
    tasks: Arc<BoardTasks>,
    id: u64,
    wake: Arc<Notify>,
}

impl Subscription {
    /// Waits for changes and returns all of them, each as a JSON message. Cancel safe.
    pub(crate) async fn next(&mut self) -> Vec<EncodedMessage> {
        loop {
            let messages = self.tasks.shared.state().take(self.id);
            if !messages.is_empty() {
                return messages;
            }
            self.wake.notified().await;
        }
    }

    /// The sessions that the board shows.
    pub(crate) fn shown(&self) -> ShownSessions {
        ShownSessions::new(self.tasks.clone())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.tasks.shared.state().subscribers.remove(&self.id);
    }
}

impl Shared {
    fn new(home: Home, max_followed: usize, file_reads: Arc<Semaphore>) -> Shared {
        Shared {
            home,
            file_reads,
            status_requests: Semaphore::new(MAX_STATUS_REQUESTS),
            followers: Semaphore::new(max_followed),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BoardState {
    fn subscribe(&mut self) -> (u64, Arc<Notify>) {
        self.next_subscriber += 1;
        let wake = Arc::new(Notify::new());
        let pending = PendingChanges { full: true, changed: BTreeSet::new(), wake: wake.clone() };
        self.subscribers.insert(self.next_subscriber, pending);
        (self.next_subscriber, wake)
    }

    /// Sets which sessions exist. The board is complete once each of them has been read. Only the first call
    /// counts.
    fn expect(&mut self, ids: HashSet<SessionId>) {
        if self.unread.is_none() {
            self.unread = Some(ids);
            self.wake_if_complete();
        }
    }

    /// Sets a session's state. A new offset alone is not a change, because output arrives all the time.
    fn put(&mut self, mut info: SessionInfo) {
        info.truncate();
        let id = info.id.clone();
        let same = |before: &ShownSession| SessionInfo { offset: info.offset, ..before.info.clone() } == info;
        let changed = !self.sessions.get(&id).is_some_and(same);
        self.sessions.insert(id.clone(), ShownSession { info, message: None });
        self.waiting.get(&id).iter().for_each(|waiting| waiting.wake());
        self.board = None;
        self.mark_read(&id, changed);
    }

    /// Records that the session does not exist, or not yet.
    fn remove(&mut self, id: &SessionId) {
        let changed = self.sessions.remove(id).is_some();
        self.board = None;
        self.mark_read(id, changed);
    }

    /// Whether the board already shows this session as running in this epoch.
    fn shows_run(&self, info: &SessionInfo) -> bool {
        let shows = |shown: &ShownSession| shown.info.state == State::Running && shown.info.epoch == info.epoch;
        self.sessions.get(&info.id).is_some_and(shows)
    }

    /// Marks a session as read, and notifies the subscribers if it changed.
    fn mark_read(&mut self, id: &SessionId, changed: bool) {
        let max_pending = self.sessions.len() + PENDING_SLACK;
        for pending in self.subscribers.values_mut().filter(|pending| changed && !pending.full) {
            pending.changed.insert(id.clone());
            if pending.changed.len() > max_pending {
                pending.changed.clear();
                pending.full = true;
            }
            pending.wake.notify_one();
        }
        if self.unread.as_mut().is_some_and(|unread| unread.remove(id)) {
            self.wake_if_complete();
        }
    }

    fn wake_if_complete(&self) {
        if self.is_complete() {
            self.subscribers.values().for_each(|pending| pending.wake.notify_one());
        }
    }

    fn is_complete(&self) -> bool {
        self.unread.as_ref().is_some_and(HashSet::is_empty)
    }

    /// Takes a subscriber's pending changes; nothing before the board is complete.
    fn take(&mut self, subscriber: u64) -> Vec<EncodedMessage> {
        if !self.is_complete() {
            return Vec::new();
        }
        let Some(pending) = self.subscribers.get_mut(&subscriber) else { return Vec::new() };
        if std::mem::take(&mut pending.full) {
            return vec![self.board()];
        }
        let changed = std::mem::take(&mut pending.changed);
        let messages = changed.into_iter().map(|id| match self.sessions.get_mut(&id) {
            Some(ShownSession { info, message }) => message
                .get_or_insert_with(|| EncodedMessage::new(&BoardMessage::Session { session: Box::new(info.clone()) }))
                .clone(),
            None => EncodedMessage::new(&BoardMessage::SessionGone { id }),
        });
        messages.collect()
    }

    /// The whole board as a message, oldest session first.
    fn board(&mut self) -> EncodedMessage {
        let sessions = &self.sessions;
        let serialize = || {
            let mut all: Vec<_> = sessions.values().map(|shown| shown.info.clone()).collect();
            all.sort_by(|a, b| (&a.created, &a.id).cmp(&(&b.created, &b.id)));
            EncodedMessage::new(&BoardMessage::Board { sessions: all })
        };
        self.board.get_or_insert_with(serialize).clone()
    }
}

#[cfg(test)]
mod tests;
