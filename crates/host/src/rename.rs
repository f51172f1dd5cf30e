//! Giving a session another name.

use std::io;
use std::time::Duration;

use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::State;

use crate::control::{Control, ControlError};
use crate::hold::{HoldError, hold_name, hold_session};
use crate::home::{Home, HomeError};
use crate::meta::Meta;
use crate::registry::{self, Entry, RegistryError};

/// How long the session process may take to write its new name.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why a session keeps its name.
#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    /// A running session has it.
    #[error("a session called {name} is running already ({id})")]
    Taken {
        /// The name.
        name: SessionName,
        /// Who has it.
        id: SessionId,
    },
    /// It belongs to another machine.
    #[error("the session belongs to the machine {0}")]
    Elsewhere(String),
    /// It has ended, and only a running session waits for a viewer.
    #[error("only a running session can be given a TTL")]
    Ended,
    /// Somebody else is renaming or starting it, or one of that name.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The state directory is unusable.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The state directory cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The session process did not do it.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The files of an ended session could not be written.
    #[error("cannot write the session's files: {0}")]
    Files(#[from] io::Error),
}

/// Renames a session: the living one by its own process, which alone writes its files; an ended one here. With
/// `detached_ttl`, also how long it waits for a viewer, in the same step: both change, or neither does.
pub fn rename(home: &Home, entry: &Entry, name: &SessionName, detached_ttl: Option<u64>) -> Result<(), RenameError> {
    if !entry.here {
        return Err(RenameError::Elsewhere(entry.meta.host.clone()));
    }
    home.ensure()?;
    let (_session, _name) = (hold_session(home, &entry.info.id)?, hold_name(home, name)?);
    let entry = &registry::reread(&entry.dir)?;
    let holder = registry::running_holder(home, name)?.filter(|holder| holder.info.id != entry.info.id);
    if let Some(holder) = holder {
        return Err(RenameError::Taken { name: name.clone(), id: holder.info.id });
    }
    if entry.info.state == State::Running {
        let request = Request::Set { name: Some(name.clone()), detached_ttl };
        return match Control::connect(&entry.dir)?.request(&request, DEADLINE)? {
            Reply::Done => Ok(()),
            _ => Err(ControlError::Unexpected.into()),
        };
    }
    if detached_ttl.is_some() {
        return Err(RenameError::Ended);
    }
    Ok(Meta::rename(&entry.dir.meta(), name)?)
}
