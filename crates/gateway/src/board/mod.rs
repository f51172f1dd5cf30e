//! The board: every session as it is now, and what changed since a subscriber last looked.
//!
//! It is the one source of changes for all event streams, and runs only while there is one. A task for each session
//! (`keep`) follows its process and reads its files; another (`watch`) notices which sessions there are. Both put what they
//! learn here. A subscriber is owed the ids that changed, never the changes: the latest state wins, and one that takes
//! nothing costs at most an id a session.

mod keep;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bowline_host::home::Home;
use bowline_proto::board::BoardMessage;
use bowline_proto::ids::SessionId;
use bowline_proto::session::{SessionInfo, State};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Sessions whose files are read at a time.
const READERS: usize = 4;
/// Sessions without a follower that are asked at a time.
const ASKERS: usize = 16;
/// Ids that a subscriber may be owed beyond the number of sessions, before it gets the whole board instead.
const SPARE: usize = 64;

/// All sessions, for whoever subscribes.
pub(crate) struct Board {
    home: Home,
    followers: usize,
    run: Mutex<Weak<Run>>,
}

/// The tasks that keep the board, ended with the last subscriber.
struct Run {
    shared: Arc<Shared>,
    _until: DropGuard,
}

/// What tasks and subscribers share.
struct Shared {
    home: Home,
    readers: Semaphore,
    askers: Semaphore,
    /// Sessions that are followed at a time, each by a socket; others are asked now and then.
    followers: Semaphore,
    state: Mutex<Known>,
}

/// What is known.
#[derive(Default)]
struct Known {
    sessions: BTreeMap<SessionId, SessionInfo>,
    /// Sessions that nothing is known about yet; `None` until it is known which sessions there are.
    awaited: Option<HashSet<SessionId>>,
    subscribers: HashMap<u64, Owed>,
    next: u64,
}

/// What a subscriber has not been told.
struct Owed {
    /// Everything; `changed` is empty then.
    whole: bool,
    changed: BTreeSet<SessionId>,
    wake: Arc<Notify>,
}

impl Board {
    /// A board that follows at most so many sessions at a time.
    pub(crate) fn new(home: Home, followers: usize) -> Board {
        Board { home, followers, run: Mutex::default() }
    }

    /// Subscribes. The first news is the whole board; it may come again, and then replaces all that was told before.
    pub(crate) fn subscribe(&self) -> Subscription {
        let mut slot = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let run = slot.upgrade().unwrap_or_else(|| {
            let shared = Arc::new(Shared::new(self.home.clone(), self.followers));
            let until = CancellationToken::new();
            let (keeper, ended) = (shared.clone(), until.clone());
            tokio::spawn(async move { ended.run_until_cancelled(watch::run(keeper)).await });
            let run = Arc::new(Run { shared, _until: until.drop_guard() });
            *slot = Arc::downgrade(&run);
            run
        });
        let (id, wake) = run.shared.known().subscribe();
        Subscription { run, id, wake }
    }
}

/// One who is told. Dropping it unsubscribes.
pub(crate) struct Subscription {
    run: Arc<Run>,
    id: u64,
    wake: Arc<Notify>,
}

impl Subscription {
    /// Waits for something to tell, and returns all of it. What is returned counts as told; cancelling loses nothing.
    pub(crate) async fn news(&mut self) -> Vec<BoardMessage> {
        loop {
            let news = self.run.shared.known().take(self.id);
            if !news.is_empty() {
                return news;
            }
            self.wake.notified().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.run.shared.known().subscribers.remove(&self.id);
    }
}

impl Shared {
    fn new(home: Home, followers: usize) -> Shared {
        let (readers, askers) = (Semaphore::new(READERS), Semaphore::new(ASKERS));
        Shared { home, readers, askers, followers: Semaphore::new(followers), state: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn subscribe(&mut self) -> (u64, Arc<Notify>) {
        self.next += 1;
        let wake = Arc::new(Notify::new());
        self.subscribers.insert(self.next, Owed { whole: true, changed: BTreeSet::new(), wake: wake.clone() });
        (self.next, wake)
    }

    /// These sessions are there: the board is whole once something is known about each.
    fn expect(&mut self, ids: HashSet<SessionId>) {
        if self.awaited.is_none() {
            self.awaited = Some(ids);
            self.wake_if_whole();
        }
    }

    /// A session as it is now. Output alone is no change: it would be one all the time.
    fn put(&mut self, info: SessionInfo) {
        let id = info.id.clone();
        let same = |before: &SessionInfo| SessionInfo { offset: info.offset, ..before.clone() } == info;
        let changed = !self.sessions.get(&id).is_some_and(same);
        self.sessions.insert(id.clone(), info);
        self.settle(&id, changed);
    }

    /// There is no such session, or not yet.
    fn remove(&mut self, id: &SessionId) {
        let changed = self.sessions.remove(id).is_some();
        self.settle(id, changed);
    }

    /// Whether this life of a session is on the board already.
    fn has_life(&self, info: &SessionInfo) -> bool {
        self.sessions.get(&info.id).is_some_and(|known| known.state == State::Running && known.epoch == info.epoch)
    }

    fn settle(&mut self, id: &SessionId, changed: bool) {
        let most = self.sessions.len() + SPARE;
        for owed in self.subscribers.values_mut().filter(|owed| changed && !owed.whole) {
            owed.changed.insert(id.clone());
            if owed.changed.len() > most {
                owed.changed.clear();
                owed.whole = true;
            }
            owed.wake.notify_one();
        }
        if self.awaited.as_mut().is_some_and(|awaited| awaited.remove(id)) {
            self.wake_if_whole();
        }
    }

    fn wake_if_whole(&self) {
        if self.is_whole() {
            self.subscribers.values().for_each(|owed| owed.wake.notify_one());
        }
    }

    fn is_whole(&self) -> bool {
        self.awaited.as_ref().is_some_and(HashSet::is_empty)
    }

    /// What a subscriber is owed; nothing before the board is whole.
    fn take(&mut self, subscriber: u64) -> Vec<BoardMessage> {
        if !self.is_whole() {
            return Vec::new();
        }
        let Some(owed) = self.subscribers.get_mut(&subscriber) else { return Vec::new() };
        if std::mem::take(&mut owed.whole) {
            let mut all: Vec<_> = self.sessions.values().cloned().collect();
            all.sort_by(|a, b| (&a.created, &a.id).cmp(&(&b.created, &b.id)));
            return vec![BoardMessage::Board { sessions: all, approvals: Vec::new() }];
        }
        let changed = std::mem::take(&mut owed.changed);
        let news = changed.into_iter().map(|id| match self.sessions.get(&id) {
            Some(info) => BoardMessage::Session { session: Box::new(info.clone()) },
            None => BoardMessage::SessionGone { id },
        });
        news.collect()
    }
}

#[cfg(test)]
mod tests;
