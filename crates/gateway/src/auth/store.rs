//! `auth.json`, which is always read and replaced as a whole, and changed under a lock that all processes share.
//! Where it cannot be written, `revoked` records at least what is revoked.

use std::collections::BTreeSet;
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
use super::revoked::{self, RevokedFile};

/// A longer file is not read. All tokens, logins and codes that there can be are far shorter.
const MAX_FILE: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    lock: PathBuf,
    lock_timeout: Duration,
    revoked: RevokedFile,
}

/// What the files contain.
pub(super) struct Content {
    pub(super) stamp: Stamp,
    /// The records of `auth.json` without those in `auth.revoked`.
    pub(super) records: Result<Records, AuthError>,
    /// Whether `auth.json` still has to be written without the ids in `auth.revoked`.
    pub(super) is_behind: bool,
}

/// Identifies the files that were read.
#[derive(Debug, Default)]
pub(super) struct Stamp {
    auth: FileStamp,
    revoked: FileStamp,
}

/// A file that was read. It stays open, so that its inode number is not reused for a later file. What is not a file
/// cannot be kept open.
#[derive(Debug, Default)]
struct FileStamp(Option<(Option<File>, FileId)>);

/// Device, inode, size and modification time.
type FileId = (u64, u64, u64, i64, i64);

impl FileStamp {
    fn is_current(&self, path: &Path) -> bool {
        match (fs::symlink_metadata(path), &self.0) {
            (Ok(found), Some((_, file_id))) => self::file_id(&found) == *file_id,
            (Err(error), None) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }
}

impl Store {
    pub(super) fn new(home: &Home, lock_timeout: Duration) -> Store {
        let (path, lock) = (home.state().join("auth.json"), home.state().join("auth.lock"));
        Store { path, lock, lock_timeout, revoked: RevokedFile::new(home) }
    }

    pub(super) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Whether the files are still those identified by the stamp.
    pub(super) fn is_current(&self, stamp: &Stamp) -> bool {
        stamp.auth.is_current(&self.path) && stamp.revoked.is_current(self.revoked.path())
    }

    /// Reads the files. Without `auth.json`, there are no tokens and no logins.
    ///
    /// A damaged file also has a stamp, so that it is not parsed again at every request.
    pub(super) fn read(&self) -> Result<Content, AuthError> {
        // Ids leave `auth.revoked` after they have left `auth.json`. In the other order, one could be missed in both.
        let (revoked, ids) = self.read_revoked()?;
        let (auth, content) = read_file(&self.path, |file| files::read_open(file, MAX_FILE))?;
        let records = match content {
            Some(content) => self.parse(&content),
            None => Ok(Records::default()),
        };
        let records = records.map(|mut records| {
            records.remove_all(&ids);
            records
        });
        Ok(Content { stamp: Stamp { auth, revoked }, records, is_behind: !ids.is_empty() })
    }

    /// Reads `auth.revoked`. If it is not a file, it has no ids: it is only an auxiliary file, and is replaced soon.
    fn read_revoked(&self) -> Result<(FileStamp, BTreeSet<String>), AuthError> {
        let path = self.revoked.path();
        match read_file(path, revoked::read_slots) {
            Ok((stamp, slots)) => Ok((stamp, revoked::parse(&slots.unwrap_or_default()))),
            Err(AuthError::Io { source, .. }) if files::is_damage(&source) => {
                tracing::warn!("{} is {source}", path.display());
                let found = fs::symlink_metadata(path).ok();
                Ok((FileStamp(found.map(|found| (None, file_id(&found)))), BTreeSet::new()))
            }
            Err(error) => Err(error),
        }
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
        let lock = self.lock()?;
        self.change_with(&lock, now, change)
    }

    fn change_with<T, E: From<AuthError>>(
        &self,
        _lock: &Lock,
        now: OffsetDateTime,
        change: impl FnOnce(&mut Records) -> Result<T, E>,
    ) -> Result<T, E> {
        let io = |source| AuthError::Io { path: self.path.clone(), source };
        let Content { records, is_behind, .. } = self.read()?;
        let mut records = records?;
        records.prune(now);
        let outcome = change(&mut records)?;
        let content = serde_json::to_vec_pretty(&records).map_err(|error| io(error.into()))?;
        write_durable(&self.path, &content).map_err(io)?;
        if is_behind && let Err(error) = self.revoked.clear() {
            // Harmless: the ids are not in `auth.json`, and are never used again.
            tracing::warn!(%error, "cannot clear {}", self.revoked.path().display());
        }
        Ok(outcome)
    }

    /// Revokes tokens and logins. On `Ok`, that is on the disk, even if it is full.
    pub(super) fn revoke(&self, now: OffsetDateTime, ids: &BTreeSet<String>) -> Result<(), AuthError> {
        let lock = self.lock()?;
        let written = self.change_with(&lock, now, |records| {
            records.remove_all(ids);
            Ok(())
        });
        written.or_else(|error: AuthError| {
            tracing::warn!("{error}; the revocation is recorded in {}", self.revoked.path().display());
            self.revoked.add(ids).map_err(|source| AuthError::Io { path: self.revoked.path().to_owned(), source })
        })
    }

    /// Reserves the space that revoking needs when the disk is full.
    pub(super) fn reserve(&self) -> Result<(), AuthError> {
        if self.revoked.is_reserved() {
            return Ok(());
        }
        let _lock = self.lock()?;
        self.revoked.reserve().map_err(|source| AuthError::Io { path: self.revoked.path().to_owned(), source })
    }

    /// Waits for the lock that all processes take before they change a file of this module.
    pub(super) fn lock(&self) -> Result<Lock, AuthError> {
        let io = |source| AuthError::Io { path: self.lock.clone(), source };
        let lock = Lock::wait(&self.lock, self.lock_timeout).map_err(io)?;
        lock.ok_or_else(|| AuthError::Busy { path: self.lock.clone() })
    }
}

/// Reads a file, if there is one.
fn read_file(
    path: &Path,
    read: impl FnOnce(&File) -> io::Result<Vec<u8>>,
) -> Result<(FileStamp, Option<Vec<u8>>), AuthError> {
    let io = |source| AuthError::Io { path: path.to_owned(), source };
    let file = match files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((FileStamp::default(), None)),
        Err(error) => return Err(io(error)),
    };
    // Before the content, which may be overwritten meanwhile: then the stamp is out of date.
    let file_id = file_id(&file.metadata().map_err(io)?);
    let content = read(&file).map_err(io)?;
    Ok((FileStamp(Some((Some(file), file_id))), Some(content)))
}

fn file_id(found: &Metadata) -> FileId {
    (found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec())
}
