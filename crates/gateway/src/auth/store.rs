//! `auth.json`, which is always read and replaced as a whole, and changed under a lock that all processes share.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_host::files::{self, write_durable};
use bowline_host::home::Home;
use bowline_host::lock::Lock;
use serde::Deserialize;
use time::OffsetDateTime;

use super::AuthError;
use super::records::{Records, VERSION};

/// A longer file is not read. All tokens, logins and codes that there can be are far shorter.
const MAX_FILE: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    lock: PathBuf,
    lock_timeout: Duration,
}

/// Identifies the file that was read. It stays open, so that its inode number is not reused for a later file.
#[derive(Debug, Default)]
pub(super) struct Stamp(Option<(File, FileId)>);

/// Device, inode, size and modification time.
type FileId = (u64, u64, u64, i64, i64);

impl Store {
    pub(super) fn new(home: &Home, lock_timeout: Duration) -> Store {
        Store { path: home.state().join("auth.json"), lock: home.state().join("auth.lock"), lock_timeout }
    }

    pub(super) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Whether the file is still the one identified by the stamp.
    pub(super) fn is_current(&self, stamp: &Stamp) -> bool {
        match (fs::metadata(&self.path), &stamp.0) {
            (Ok(found), Some((_, file_id))) => self::file_id(&found) == *file_id,
            (Err(error), None) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Reads the file. Without a file, there are no tokens and no logins.
    ///
    /// A damaged file also has a stamp, so that it is not parsed again at every request.
    pub(super) fn read(&self) -> Result<(Stamp, Result<Records, AuthError>), AuthError> {
        let io = |source| AuthError::Io { path: self.path.clone(), source };
        let file = match files::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Stamp::default(), Ok(Records::default())));
            }
            Err(error) => return Err(io(error)),
        };
        let file_id = file_id(&file.metadata().map_err(io)?);
        let content = files::read_open(&file, MAX_FILE).map_err(io)?;
        Ok((Stamp(Some((file, file_id))), self.parse(&content)))
    }

    fn parse(&self, content: &[u8]) -> Result<Records, AuthError> {
        // Only the position: an error message must not contain any of the file's content.
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

    /// Changes the file under the lock. On `Ok`, the change is on the disk; on `Err`, nothing has changed.
    pub(super) fn change<T, E: From<AuthError>>(
        &self,
        now: OffsetDateTime,
        change: impl FnOnce(&mut Records) -> Result<T, E>,
    ) -> Result<T, E> {
        let io = |source| AuthError::Io { path: self.path.clone(), source };
        let _lock = self.lock()?;
        let mut records = self.read()?.1?;
        records.prune(now);
        let outcome = change(&mut records)?;
        let content = serde_json::to_vec_pretty(&records).map_err(|error| io(error.into()))?;
        write_durable(&self.path, &content).map_err(io)?;
        Ok(outcome)
    }

    /// Waits for the lock that all processes take before they change a file of this module.
    pub(super) fn lock(&self) -> Result<Lock, AuthError> {
        let io = |source| AuthError::Io { path: self.lock.clone(), source };
        let lock = Lock::wait(&self.lock, self.lock_timeout).map_err(io)?;
        lock.ok_or_else(|| AuthError::Busy { path: self.lock.clone() })
    }
}

fn file_id(found: &Metadata) -> FileId {
    (found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec())
}
