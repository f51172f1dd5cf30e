//! Turns: which changes of a session, or starts under a name, run now. The others wait without a thread.
//!
//! A change may take as long as a session process is stuck. It holds its turn until it is done, even if its client
//! hangs up, and a session or name has only a few, so a stuck session delays only its own callers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bowline_host::change_lock::{ChangeKey, ChangeLockError, LOCK_TIMEOUT};
use bowline_host::start::StartError;
use bowline_proto::ids::SessionId;
use bowline_proto::problem::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::auth::Caller;
use crate::problem::{Problem, internal};
use crate::sessions::MAX_FILE_WORK;

/// Concurrent starts and restarts; more wait. Each takes a thread until its session process has reported.
const MAX_STARTS: usize = 64;
/// Concurrent ends; more wait. Each takes a connection to its session process until that has exited.
const MAX_ENDS: usize = 256;
/// Concurrent changes of tokens, logins and codes; more wait. Each may wait for another process on a thread.
const MAX_AUTH_CHANGES: usize = 16;
/// Concurrent searches for sessions for one caller; more wait. A search by name reads every session, so without this
/// limit one caller could take all work on files.
pub(crate) const MAX_SEARCHES: usize = MAX_FILE_WORK / 4;
/// Concurrent reads of history for one caller; more wait. A read may have to scan a whole journal.
const MAX_HISTORY: usize = 4;
/// Concurrent uploads of one caller; more wait without being read.
const MAX_UPLOADS: usize = 4;
/// Concurrent reads of folders, for all callers and for one; more wait. One may be stuck on a network file system.
const MAX_WALKS: usize = 8;
const MAX_WALKS_OF_CALLER: usize = 2;
/// How long an upload waits for its turn: those before it may come over a slow network.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a call waits for a turn. After that it gets 503 `unreachable`.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// The turns that have been taken or are waited for.
pub(crate) struct Turns {
    starts: Arc<Semaphore>,
    ends: Arc<Semaphore>,
    auth_changes: Arc<Semaphore>,
    walks: Arc<Semaphore>,
    /// Turns of one session, name, directory or caller; an entry is dead once no call has or awaits one.
    keyed: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Held until the change is done.
pub(crate) struct Turn(#[expect(dead_code, reason = "held until drop, never read")] OwnedSemaphorePermit);

impl Turns {
    pub(crate) fn new() -> Turns {
        let semaphore = |places| Arc::new(Semaphore::new(places));
        Turns {
            starts: semaphore(MAX_STARTS),
            ends: semaphore(MAX_ENDS),
            auth_changes: semaphore(MAX_AUTH_CHANGES),
            walks: semaphore(MAX_WALKS),
            keyed: Mutex::default(),
        }
    }

    /// A turn to start or restart a session.
    pub(crate) async fn start(&self) -> Result<Turn, Problem> {
        take(self.starts.clone(), TURN_TIMEOUT).await?.ok_or_else(|| busy("sessions are being started"))
    }

    /// A turn of this caller to search for a session.
    pub(crate) async fn search(&self, caller: &Caller) -> Result<Turn, Problem> {
        let turns = self.keyed(format!("the searches of {}", caller.id()), MAX_SEARCHES);
        take(turns, TURN_TIMEOUT).await?.ok_or_else(|| busy("requests of this token or login search for sessions"))
    }

    /// This caller's turn to read the file with a session's last screen, which can be large.
    pub(crate) async fn last_screen(&self, caller: &Caller) -> Result<Turn, Problem> {
        let turn = take(self.keyed(format!("the last screens of {}", caller.id()), 1), TURN_TIMEOUT).await?;
        turn.ok_or_else(|| busy("requests of this token or login read screens of ended sessions"))
    }

    /// A turn of this caller to read a page of history.
    pub(crate) async fn history(&self, caller: &Caller) -> Result<Turn, Problem> {
        let turn = take(self.keyed(format!("the history of {}", caller.id()), MAX_HISTORY), TURN_TIMEOUT).await?;
        turn.ok_or_else(|| busy("requests of this token or login read the history of sessions"))
    }

    /// A turn of this caller to upload a file, which is kept in memory until it is whole.
    pub(crate) async fn upload(&self, caller: &Caller) -> Result<Turn, Problem> {
        let turn = take(self.keyed(format!("the uploads of {}", caller.id()), MAX_UPLOADS), UPLOAD_TIMEOUT).await?;
        turn.ok_or_else(|| busy("files are being uploaded with this token or login"))
    }

    /// A turn of this caller to read the names in folders.
    pub(crate) async fn walk(&self, caller: &Caller) -> Result<(Turn, Turn), Problem> {
        let own = self.keyed(format!("the walks of {}", caller.id()), MAX_WALKS_OF_CALLER);
        let own = take(own, TURN_TIMEOUT).await?;
        let own = own.ok_or_else(|| busy("requests of this token or login read folders"))?;
        let any = take(self.walks.clone(), TURN_TIMEOUT).await?;
        Ok((own, any.ok_or_else(|| busy("requests read folders"))?))
    }

    /// The turn to read what is below this directory.
    pub(crate) async fn directory(&self, dir: &Path) -> Result<Turn, Problem> {
        let turn = take(self.keyed(format!("the files below {}", dir.display()), 1), TURN_TIMEOUT).await?;
        turn.ok_or_else(|| busy("requests read this directory"))
    }

    /// A turn to change tokens, logins or codes.
    pub(crate) async fn auth_change(&self) -> Result<Turn, Problem> {
        let turn = take(self.auth_changes.clone(), TURN_TIMEOUT).await?;
        turn.ok_or_else(|| busy("tokens and logins are being changed"))
    }

    /// The turn to end this session; `None` if an earlier request keeps it for all of this time.
    pub(crate) async fn end(&self, id: &SessionId, within: Duration) -> Result<Option<(Turn, Turn)>, Problem> {
        let Some(own) = take(self.keyed(format!("the end of {id}"), 1), within).await? else { return Ok(None) };
        let any = take(self.ends.clone(), TURN_TIMEOUT).await?;
        Ok(Some((own, any.ok_or_else(|| busy("sessions are being ended"))?)))
    }

    /// The turn to start the session with this derived id; `None` if an earlier request keeps it for all of this
    /// time.
    pub(crate) async fn create(&self, id: &SessionId, within: Duration) -> Result<Option<Turn>, Problem> {
        take(self.keyed(format!("the creation of {id}"), 1), within).await
    }

    /// The turn to change a session or to take a name. The caller still has to lock it against other processes.
    pub(crate) async fn change(&self, key: &ChangeKey) -> Result<Turn, Problem> {
        let turn = take(self.keyed(key.to_string(), 1), LOCK_TIMEOUT).await?;
        turn.ok_or_else(|| StartError::from(ChangeLockError::Busy(key.to_string())).into())
    }

    fn keyed(&self, key: String, places: usize) -> Arc<Semaphore> {
        let mut keyed = self.keyed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = keyed.get(&key).and_then(Weak::upgrade) {
            return found;
        }
        keyed.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(places));
        keyed.insert(key, Arc::downgrade(&turns));
        turns
    }
}

async fn take(turns: Arc<Semaphore>, within: Duration) -> Result<Option<Turn>, Problem> {
    match timeout(within, turns.acquire_owned()).await {
        Ok(turn) => Ok(Some(Turn(turn.map_err(|error| internal(&error))?))),
        Err(_) => Ok(None),
    }
}

fn busy(what: &str) -> Problem {
    Problem::new(Code::Unreachable, format!("too many {what}; try again in a few seconds")).retry_after(5)
}

#[cfg(test)]
mod tests {
    use bowline_proto::api::TokenScope;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn r52_walks_of_one_caller_leave_room_for_others() {
        let turns = Turns::new();
        let callers: Vec<Caller> = (0..5).map(|n| Caller::user(&n.to_string(), TokenScope::Read)).collect();
        let mut kept = Vec::new();
        for caller in &callers[..4] {
            kept.extend([turns.walk(caller).await.ok().unwrap(), turns.walk(caller).await.ok().unwrap()]);
            let third = turns.walk(caller).await.err().map(|refused| refused.code());
            assert_eq!(third, Some(Code::Unreachable), "a caller has two");
        }
        assert!(turns.walk(&callers[4]).await.is_err(), "there are eight in all");
        drop(kept);
        assert!(turns.walk(&callers[4]).await.is_ok());
        let dir = turns.directory(Path::new("/a")).await.ok().unwrap();
        assert!(turns.directory(Path::new("/b")).await.is_ok() && turns.directory(Path::new("/a")).await.is_err());
        drop(dir);
        assert!(turns.directory(Path::new("/a")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_keeps_its_turn_delays_no_other() {
        let turns = Turns::new();
        let [stuck, other, last] = [1, 2, 3].map(|n| ChangeKey::Session(SessionId::from_random([n; 12])));
        let kept = turns.change(&stuck).await.ok().unwrap();
        assert_eq!(turns.change(&stuck).await.err().map(|refused| refused.code()), Some(Code::Unreachable));
        assert!(turns.change(&other).await.is_ok());
        drop(kept);
        assert!(turns.change(&stuck).await.is_ok());
        assert!(turns.change(&last).await.is_ok());
        assert_eq!(turns.keyed.lock().unwrap().len(), 1, "turns that no call has or awaits are forgotten");
    }
}
