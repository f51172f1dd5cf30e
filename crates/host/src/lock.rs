//! File locks that the kernel releases when their process ends: they show whether a session is running.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::digest::fnv1a;
use crate::files;

/// How often to retry a lock that is held.
const RETRY_EVERY: Duration = Duration::from_millis(5);

/// A held lock; it is released when it is dropped or the process ends.
///
/// `fork` shares an open-file-description lock with the child, so take it after the last fork. The descriptor is
/// close-on-exec, as all of `std`'s are.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes the lock; `None` if it is already held.
    pub fn take(path: &Path) -> io::Result<Option<Lock>> {
        Lock::set(path, &whole_file(libc::F_WRLCK))
    }

    /// Takes the lock; `None` if it is held for all of this time; its holder may be stopped or hang.
    pub fn wait(path: &Path, within: Duration) -> io::Result<Option<Lock>> {
        Lock::retry(path, &whole_file(libc::F_WRLCK), within)
    }

    /// Takes the lock of one `key` in the file; `None` if it is not free within this time. Locks of different keys do
    /// not conflict, but each conflicts with a lock of the whole file.
    pub fn wait_for_key(path: &Path, key: &str, within: Duration) -> io::Result<Option<Lock>> {
        Lock::retry(path, &key_range(key), within)
    }

    fn retry(path: &Path, range: &libc::flock, within: Duration) -> io::Result<Option<Lock>> {
        let until = Instant::now() + within;
        loop {
            let lock = Lock::set(path, range)?;
            if lock.is_some() || Instant::now() >= until {
                return Ok(lock);
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }

    /// Whether the lock's file is still at this path. If it is not, other processes cannot see the lock.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.0, path).unwrap_or(true)
    }

    /// Another handle to the same lock, which is released when both are dropped.
    pub fn try_clone(&self) -> io::Result<Lock> {
        Ok(Lock(self.0.try_clone()?))
    }

    fn set(path: &Path, range: &libc::flock) -> io::Result<Option<Lock>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = files::open_with(path, &mut options)?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(range)) {
            // A lock on a file that has been removed is worthless.
            Ok(_) => Ok(is_at(&file, path)?.then_some(Lock(file))),
            Err(Errno::EAGAIN | Errno::EACCES | Errno::EINTR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether the lock is held. Never takes it, so it cannot block another process. If an existing lock file cannot
    /// be checked (for example, because no descriptors are left), it counts as held, so that no running session is
    /// declared lost by mistake.
    pub fn is_held(path: &Path) -> bool {
        let file = match files::open(path) {
            Ok(file) => file,
            Err(error) => return error.kind() != io::ErrorKind::NotFound && !files::is_damage(&error),
        };
        let mut found = whole_file(libc::F_WRLCK);
        fcntl(&file, FcntlArg::F_OFD_GETLK(&mut found)).is_err() || found.l_type != libc::F_UNLCK as libc::c_short
    }
}

/// Whether `file` is still the file at `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// One byte of the file, chosen by the key's digest. If two keys collide, they only wait for each other.
fn key_range(key: &str) -> libc::flock {
    let hash = fnv1a(key.as_bytes());
    libc::flock { l_start: (hash >> 2).cast_signed(), l_len: 1, ..whole_file(libc::F_WRLCK) }
}

fn whole_file(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_visible_and_released() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("lock");
        assert!(!Lock::is_held(&path));
        let lock = Lock::take(&path).unwrap().unwrap();
        assert!(Lock::is_held(&path));
        assert!(Lock::take(&path).unwrap().is_none());
        assert!(Lock::wait(&path, RETRY_EVERY).unwrap().is_none());
        let again = lock.try_clone().unwrap();
        drop(lock);
        assert!(Lock::is_held(&path));
        drop(again);
        assert!(!Lock::is_held(&path));
        assert!(Lock::take(&path).unwrap().is_some());
        assert!(Lock::wait(&path, Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn keys_are_locked_separately() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("lock");
        let take = |key: &str| Lock::wait_for_key(&path, key, Duration::ZERO).unwrap();
        let dev = take("dev").unwrap();
        assert!(take("dev").is_none(), "it is held");
        assert!(take("build").is_some(), "another key is free");
        assert!(Lock::take(&path).unwrap().is_none(), "the whole file conflicts with each key");
        drop(dev);
        let all = Lock::take(&path).unwrap().unwrap();
        assert!(take("dev").is_none(), "each key conflicts with the whole file");
        drop(all);
        assert!(take("dev").is_some());
    }
}
