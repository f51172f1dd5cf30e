//! Locks that let only one process at a time take a name, or restart or rename a session.

use std::io;
use std::time::Duration;

use bowline_proto::ids::{SessionId, SessionName};

use crate::home::Home;
use crate::lock::Lock;

/// How long to wait for another process that holds the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
pub enum ChangeLockError {
    #[error("{0} is locked by another start or rename; try again")]
    Busy(String),
    #[error("cannot use {path}: {source}")]
    Io { path: std::path::PathBuf, source: io::Error },
}

/// Locks a name while it is being taken, until the running session that has it can be found.
pub(crate) fn lock_name(home: &Home, name: &SessionName) -> Result<Lock, ChangeLockError> {
    lock(home, &format!("the name {name}"))
}

/// Locks a session while it is changed from outside its process. To lock a name as well, lock it after the session:
/// the fixed order avoids deadlocks.
pub(crate) fn lock_session(home: &Home, id: &SessionId) -> Result<Lock, ChangeLockError> {
    lock(home, &format!("the session {id}"))
}

fn lock(home: &Home, key: &str) -> Result<Lock, ChangeLockError> {
    let path = home.names_lock();
    match Lock::wait_for_key(&path, key, LOCK_TIMEOUT) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(ChangeLockError::Busy(key.to_owned())),
        Err(source) => Err(ChangeLockError::Io { path, source }),
    }
}
