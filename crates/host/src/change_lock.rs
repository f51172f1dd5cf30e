//! Locks that let only one process at a time take a name, or restart or rename a session.

use std::fmt;
use std::io;
use std::time::Duration;

use bowline_proto::ids::{SessionId, SessionName};

use crate::home::Home;
use crate::lock::Lock;

/// How long to wait for another process that holds the lock.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
pub enum ChangeLockError {
    #[error("{0} is locked by another start or rename; try again")]
    Busy(String),
    #[error("cannot use {path}: {source}")]
    Io { path: std::path::PathBuf, source: io::Error },
}

/// What a change locks. To lock a session and a name, lock the session first: the fixed order avoids deadlocks.
#[derive(Clone, Debug)]
pub enum ChangeKey {
    /// A session while it is changed from outside its process.
    Session(SessionId),
    /// A name while it is being taken, until the running session that has it can be found.
    Name(SessionName),
}

impl fmt::Display for ChangeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeKey::Session(id) => write!(f, "the session {id}"),
            ChangeKey::Name(name) => write!(f, "the name {name}"),
        }
    }
}

/// Takes a lock; `None` if another process or thread holds it.
pub fn try_lock(home: &Home, key: &ChangeKey) -> Result<Option<Lock>, ChangeLockError> {
    wait(home, key, Duration::ZERO)
}

pub(crate) fn lock_name(home: &Home, name: &SessionName) -> Result<Lock, ChangeLockError> {
    lock(home, &ChangeKey::Name(name.clone()))
}

pub(crate) fn lock_session(home: &Home, id: &SessionId) -> Result<Lock, ChangeLockError> {
    lock(home, &ChangeKey::Session(id.clone()))
}

fn lock(home: &Home, key: &ChangeKey) -> Result<Lock, ChangeLockError> {
    wait(home, key, LOCK_TIMEOUT)?.ok_or_else(|| ChangeLockError::Busy(key.to_string()))
}

fn wait(home: &Home, key: &ChangeKey, within: Duration) -> Result<Option<Lock>, ChangeLockError> {
    let path = home.names_lock();
    Lock::wait_for_key(&path, &key.to_string(), within).map_err(|source| ChangeLockError::Io { path, source })
}
