//! One at a time: who takes a name, and who gives a session a new life or another name.

use std::io;
use std::time::Duration;

use bowline_proto::ids::{SessionId, SessionName};

use crate::home::Home;
use crate::lock::Lock;

/// How long to wait for somebody who does the same.
const WITHIN: Duration = Duration::from_secs(15);

/// Why it is not our turn.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// Somebody else is at it, and takes long.
    #[error("{0} is being started or renamed, and that takes long; try again")]
    Busy(String),
    /// The lock cannot be used.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Held by whoever takes a name, until the session that has it speaks for it.
pub(crate) fn hold_name(home: &Home, name: &SessionName) -> Result<Lock, HoldError> {
    hold(home, &format!("the name {name}"))
}

/// Held by whoever changes a session from outside. Who also takes a name takes that second, so that nobody waits in a
/// circle.
pub(crate) fn hold_session(home: &Home, id: &SessionId) -> Result<Lock, HoldError> {
    hold(home, &format!("the session {id}"))
}

fn hold(home: &Home, key: &str) -> Result<Lock, HoldError> {
    let path = home.names_lock();
    match Lock::wait_for(&path, key, WITHIN) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(HoldError::Busy(key.to_owned())),
        Err(source) => Err(HoldError::Io { path, source }),
    }
}
