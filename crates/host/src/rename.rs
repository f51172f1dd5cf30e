//! Renames sessions.

use std::io;
use std::time::Duration;

use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::State;

use crate::change_lock::{ChangeLockError, lock_name, lock_session};
use crate::control::{Control, ControlError};
use crate::home::{Home, HomeError};
use crate::meta::Meta;
use crate::registry::{self, Entry, RegistryError};

/// How long the session process may take to write its new name.
pub const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    #[error("another running session ({id}) is already called {name}")]
    Taken { name: SessionName, id: SessionId },
    #[error("the session belongs to the machine {0}")]
    OtherMachine(String),
    #[error("cannot set a TTL: the session has ended")]
    Ended,
    #[error(transparent)]
    Locked(#[from] ChangeLockError),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error("cannot write the session's files: {0}")]
    Files(#[from] io::Error),
}

/// Renames a session. `detached_ttl`, in seconds, is set in the same step: both change, or neither does.
pub fn rename(home: &Home, entry: &Entry, name: &SessionName, detached_ttl: Option<u64>) -> Result<(), RenameError> {
    home.ensure()?;
    let (_session, _name) = (lock_session(home, &entry.info.id)?, lock_name(home, name)?);
    match rename_locked(home, entry, name, detached_ttl)? {
        None => Ok(()),
        Some(request) => check_reply(&Control::connect(&entry.dir)?.request(&request, TIMEOUT)?),
    }
}

/// Renames a session while the caller holds the locks of the session and of the name. A running session is renamed by
/// its process, which alone writes its files: then this returns the request to send to it.
pub fn rename_locked(
    home: &Home,
    entry: &Entry,
    name: &SessionName,
    detached_ttl: Option<u64>,
) -> Result<Option<Request>, RenameError> {
    if !entry.is_local {
        return Err(RenameError::OtherMachine(entry.meta.host.clone()));
    }
    let entry = &registry::reread(&entry.dir)?;
    let holder = registry::running_holder(home, name)?.filter(|holder| holder.info.id != entry.info.id);
    if let Some(holder) = holder {
        return Err(RenameError::Taken { name: name.clone(), id: holder.info.id });
    }
    if entry.info.state == State::Running {
        return Ok(Some(Request::Set { name: Some(name.clone()), detached_ttl }));
    }
    if detached_ttl.is_some() {
        return Err(RenameError::Ended);
    }
    Meta::rename(&entry.dir.meta(), name)?;
    Ok(None)
}

/// Whether the session process has made the change.
pub fn check_reply(reply: &Reply) -> Result<(), RenameError> {
    match reply {
        Reply::Done => Ok(()),
        _ => Err(ControlError::Unexpected.into()),
    }
}
