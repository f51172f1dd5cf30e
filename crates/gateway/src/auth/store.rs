//! `auth.json`: read whole, replaced whole, changed under a lock that all processes share.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_host::files::write_durable;
use bowline_host::home::Home;
use bowline_host::lock::Lock;
use serde::Deserialize;
use time::OffsetDateTime;

use super::AuthError;
use super::records::{Records, VERSION};

/// The file and its lock.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    lock: PathBuf,
    /// How long to wait for the lock.
    within: Duration,
}

/// Which file was read. It stays open, so that no later file can get its inode number and be taken for it.
#[derive(Debug, Default)]
pub(super) struct Stamp(Option<(File, Traits)>);

/// Device, inode, size and time of change.
type Traits = (u64, u64, u64, i64, i64);

impl Store {
    pub(super) fn new(home: &Home, within: Duration) -> Store {
        Store { path: home.state().join("auth.json"), lock: home.state().join("auth.lock"), within }
    }

    /// The directory that the file is in.
    pub(super) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Whether the file is still the one that was read.
    pub(super) fn is_current(&self, stamp: &Stamp) -> bool {
        match (fs::metadata(&self.path), &stamp.0) {
            (Ok(found), Some((_, traits))) => self::traits(&found) == *traits,
            (Err(error), None) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// The file as it is now. Without one, there are no tokens and no logins.
    ///
    /// A damaged file has a stamp, too, so that it is looked at once and not at every call.
    pub(super) fn read(&self) -> Result<(Stamp, Result<Records, AuthError>), AuthError> {
        let io = |source| AuthError::Io { path: self.path.clone(), source };
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Stamp::default(), Ok(Records::default())));
            }
            Err(error) => return Err(io(error)),
        };
        let traits = traits(&file.metadata().map_err(io)?);
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(io)?;
        Ok((Stamp(Some((file, traits))), self.parse(&content)))
    }

    fn parse(&self, content: &[u8]) -> Result<Records, AuthError> {
        // Where, not what: nothing of the file goes into a message.
        let damaged = |error: serde_json::Error| AuthError::Damaged {
            path: self.path.clone(),
            what: format!("line {}, column {}", error.line(), error.column()),
        };
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_slice(content).map_err(damaged)?;
        if version > VERSION {
            return Err(AuthError::Newer { path: self.path.clone() });
        }
        serde_json::from_slice(content).map_err(damaged)
    }

    /// Changes the file, alone among all processes. On `Ok`, the change is on the disk; on `Err`, nothing changed.
    pub(super) fn change<T, E: From<AuthError>>(
        &self,
        now: OffsetDateTime,
        change: impl FnOnce(&mut Records) -> Result<T, E>,
    ) -> Result<T, E> {
        let io = |source| AuthError::Io { path: self.path.clone(), source };
        let _alone = self.lock()?;
        let mut records = self.read()?.1?;
        records.prune(now);
        let outcome = change(&mut records)?;
        let content = serde_json::to_vec_pretty(&records).map_err(|error| io(error.into()))?;
        write_durable(&self.path, &content).map_err(io)?;
        Ok(outcome)
    }

    /// Waits to be alone among all processes that change files of this home's auth.
    pub(super) fn lock(&self) -> Result<Lock, AuthError> {
        let io = |source| AuthError::Io { path: self.lock.clone(), source };
        let lock = Lock::wait(&self.lock, self.within).map_err(io)?;
        lock.ok_or_else(|| AuthError::Busy { path: self.lock.clone() })
    }
}

fn traits(found: &Metadata) -> Traits {
    (found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec())
}
