//! The driver of a [`PostQueue`]: a thread for its timers, one for each request, and a descriptor for its owner's loop.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bowline_proto::ids::ClientId;
use bowline_proto::post::{Action, Entry, PostQueue, RESPONSE_WITHIN, Response, SendError};
use serde_json::Value;

use super::Deliver;
use crate::clock::{self, Clock};

/// The longest wait for a timer. Waits do not count the time during which the machine slept, and do not end when the clock
/// is set, so they are kept short.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Sends commands in the background. Dropping it gives up what is not delivered; a request that is under way may still
/// succeed.
pub struct Poster {
    shared: Arc<Shared>,
    /// Readable while there are changes.
    signal: UnixStream,
    timers: Option<JoinHandle<()>>,
}

/// Something for the owner to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The entry is new, or its state has changed.
    Shown(Entry),
    /// The entry with this id has left the queue.
    Hidden(String),
}

/// Reads the wall clock, in milliseconds since 1970.
pub(super) type WallClock = Box<dyn Fn() -> u64 + Send + Sync>;
/// Returns whether the machine slept since the last call.
pub(super) type SleepDetector = Box<dyn FnMut() -> bool + Send>;

struct Shared {
    deliver: Box<dyn Deliver>,
    wall: WallClock,
    state: Mutex<Queue>,
    /// The timers may have changed.
    changed: Condvar,
}

struct Queue {
    post: PostQueue,
    /// The ids of entries that have changed, each once, oldest first.
    changes: VecDeque<String>,
    /// A byte is written for the owner when the first change is queued.
    signal: UnixStream,
    /// The owner is gone.
    ended: bool,
}

impl Poster {
    pub fn start(deliver: impl Deliver) -> io::Result<Poster> {
        let mut clock = Clock::start();
        Poster::with_clock(deliver, Box::new(wall_clock), Box::new(move || clock.take_slept()))
    }

    pub(super) fn with_clock(deliver: impl Deliver, wall: WallClock, take_slept: SleepDetector) -> io::Result<Poster> {
        let (signal, other_end) = UnixStream::pair()?;
        signal.set_nonblocking(true)?;
        other_end.set_nonblocking(true)?;
        let queue = Queue { post: PostQueue::new(), changes: VecDeque::new(), signal: other_end, ended: false };
        let (state, changed) = (Mutex::new(queue), Condvar::new());
        let shared = Arc::new(Shared { deliver: Box::new(deliver), wall, state, changed });
        let timers = Arc::clone(&shared);
        let timers =
            std::thread::Builder::new().name("post".to_owned()).spawn(move || timers.run_timers(take_slept))?;
        Ok(Poster { shared, signal, timers: Some(timers) })
    }

    /// Takes over a command for the session with this id. Returns the id of its entry, which is new.
    pub fn send(&self, session: &str, command: Value) -> Result<String, SendError> {
        let mut random = [0; 16];
        // Without random bytes, no id is unique.
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(|_| SendError::Invalid)?;
        let id = ClientId::from_random(random).to_string();
        self.send_with_id(session, &id, command)?;
        Ok(id)
    }

    /// Takes over a command with an id that the caller chose.
    pub fn send_with_id(&self, session: &str, id: &str, command: Value) -> Result<(), SendError> {
        self.shared.with(|post, now| post.send(session, id, command, now))
    }

    /// An event of the session says that it recorded the command with this id.
    pub fn handle_recorded(&self, session: &str, id: &str, seq: u64, run: Option<&str>) {
        self.shared.with(|post, now| post.handle_recorded(session, id, seq, run, now));
    }

    /// The user has logged in again.
    pub fn handle_login(&self) {
        self.shared.with(PostQueue::handle_login);
    }

    /// The user wants to try now.
    pub fn handle_wake(&self) {
        self.shared.with(PostQueue::handle_wake);
    }

    /// See [`PostQueue::send_again`].
    pub fn send_again(&self, id: &str) -> bool {
        self.shared.with(|post, now| post.send_again(id, now))
    }

    /// See [`PostQueue::discard`].
    pub fn discard(&self, id: &str) -> bool {
        self.shared.with(|post, now| post.discard(id, now))
    }

    /// The descriptor to poll: it is readable while [`poll_change`](Poster::poll_change) has changes.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }

    /// The next change. An entry that has changed several times is returned once, as it is now.
    pub fn poll_change(&self) -> Option<Change> {
        let mut queue = self.shared.lock();
        let id = queue.changes.pop_front();
        if queue.changes.is_empty() {
            let mut bytes = [0; 16];
            while (&self.signal).read(&mut bytes).is_ok_and(|n| n > 0) {}
        }
        let id = id?;
        Some(queue.post.entry(&id).cloned().map_or(Change::Hidden(id), Change::Shown))
    }

    /// Runs the timers at once, as if the one that is waited for had fired.
    #[cfg(test)]
    pub(super) fn run_timers(&self) {
        self.shared.with(|post, now| post.handle_timeout(0.0, now));
    }
}

impl Drop for Poster {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        if let Some(timers) = self.timers.take() {
            let _ = timers.join();
        }
    }
}

impl Shared {
    /// A panic cannot leave the queue half changed in a way that matters: it only sends again.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue, then does what it wants.
    fn with<T>(self: &Arc<Shared>, change: impl FnOnce(&mut PostQueue, u64) -> T) -> T {
        let mut queue = self.lock();
        let result = change(&mut queue.post, (self.wall)());
        self.work(&mut queue);
        result
    }

    fn work(self: &Arc<Shared>, queue: &mut Queue) {
        while let Some(action) = queue.post.poll_action() {
            match action {
                Action::Send { id, attempt } => self.start_request(queue, id, attempt),
                Action::Show { id } | Action::Hide { id } => queue.push_change(id),
                // A request cannot be aborted; it ends by itself in time, and its response is ignored. Nothing is
                // stored: the user sees how each command ends before this process does.
                Action::Drop { .. } | Action::Store { .. } | Action::Unstore { .. } => {}
            }
        }
        self.changed.notify_all();
    }

    fn start_request(self: &Arc<Shared>, queue: &mut Queue, id: String, attempt: u64) {
        let Some(entry) = queue.post.entry(&id) else { return };
        let (session, command, shared) = (entry.session.clone(), entry.command.clone(), Arc::clone(self));
        let request = std::thread::Builder::new().name("post request".to_owned());
        let for_request = id.clone();
        let started = request.spawn(move || {
            let id = for_request;
            let response = shared.deliver.deliver(&session, &id, &command, RESPONSE_WITHIN);
            shared.handle_response(&id, attempt, &response);
        });
        if let Err(error) = started {
            let (response, jitter) = (Response::Missing { why: error.to_string() }, clock::jitter());
            queue.post.handle_response(&id, attempt, &response, jitter, (self.wall)());
        }
    }

    fn handle_response(self: &Arc<Shared>, id: &str, attempt: u64, response: &Response) {
        let mut queue = self.lock();
        if !queue.ended {
            queue.post.handle_response(id, attempt, response, clock::jitter(), (self.wall)());
            self.work(&mut queue);
        }
    }

    /// Waits for the timers of the queue until the owner is gone.
    fn run_timers(self: &Arc<Shared>, mut take_slept: SleepDetector) {
        let mut queue = self.lock();
        while !queue.ended {
            let now = (self.wall)();
            if take_slept() {
                queue.post.handle_wake(now);
            }
            // Also if no timer is due, because the clock may have been set back.
            queue.post.handle_timeout(clock::jitter(), now);
            self.work(&mut queue);
            let wait = queue.post.poll_timeout().map(|at| Duration::from_millis(at.saturating_sub(now)));
            queue = match wait {
                Some(wait) => {
                    let waited = self.changed.wait_timeout(queue, wait.min(MAX_WAIT));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl Queue {
    fn push_change(&mut self, id: String) {
        if self.changes.is_empty() {
            // If the buffer is full, the descriptor is readable already.
            let _ = self.signal.write(&[1]);
        }
        if !self.changes.contains(&id) {
            self.changes.push_back(id);
        }
    }
}

fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
