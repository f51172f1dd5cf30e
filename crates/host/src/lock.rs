//! The kernel's word on whether a session lives: an open-file-description lock that dies with its process.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::digest::fnv1a;

/// How often to look whether somebody has let go.
const LOOK: Duration = Duration::from_millis(5);

/// A held lock; dropping it, or the death of the process, releases it.
///
/// Open-file-description locks follow the file description through `fork`, so this is taken after the last fork
/// and the descriptor is close-on-exec (as all of `std`'s are).
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes the lock, or `None` when somebody else has it.
    pub fn take(path: &Path) -> io::Result<Option<Lock>> {
        Lock::set(path, &whole_file(libc::F_WRLCK))
    }

    /// Takes the lock, or `None` when others have had it all this time: whoever has it may be stopped, or its disk hang.
    pub fn wait(path: &Path, within: Duration) -> io::Result<Option<Lock>> {
        Lock::retry(path, &whole_file(libc::F_WRLCK), within)
    }

    /// Takes the part of the lock that stands for `key`, or `None` when somebody has had it all this time. Other keys are
    /// not in its way; whoever takes the whole file is.
    pub fn wait_for(path: &Path, key: &str, within: Duration) -> io::Result<Option<Lock>> {
        Lock::retry(path, &part_of(key), within)
    }

    fn retry(path: &Path, part: &libc::flock, within: Duration) -> io::Result<Option<Lock>> {
        let until = Instant::now() + within;
        loop {
            let lock = Lock::set(path, part)?;
            if lock.is_some() || Instant::now() >= until {
                return Ok(lock);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The same lock once more: it is released when both are dropped.
    pub fn try_clone(&self) -> io::Result<Lock> {
        Ok(Lock(self.0.try_clone()?))
    }

    fn set(path: &Path, part: &libc::flock) -> io::Result<Option<Lock>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(part)) {
            // A file that was removed meanwhile locks nothing.
            Ok(_) => Ok(is_at(&file, path)?.then_some(Lock(file))),
            Err(Errno::EAGAIN | Errno::EACCES | Errno::EINTR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether somebody holds the lock. Asking never takes it, so it cannot get in anybody's way. A lock that is there and
    /// cannot be looked at (no descriptors left, say) counts as held: nobody is declared dead for want of a look.
    pub fn is_held(path: &Path) -> bool {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => return error.kind() != io::ErrorKind::NotFound,
        };
        let mut found = whole_file(libc::F_WRLCK);
        fcntl(&file, FcntlArg::F_OFD_GETLK(&mut found)).is_err() || found.l_type != libc::F_UNLCK as libc::c_short
    }
}

/// Whether this file is still the one at that path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// One byte of the file, chosen by the key's digest: two keys that share it wait for each other, and that is all.
fn part_of(key: &str) -> libc::flock {
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
    fn a_lock_is_seen_and_released() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("lock");
        assert!(!Lock::is_held(&path));
        let lock = Lock::take(&path).unwrap().unwrap();
        assert!(Lock::is_held(&path));
        assert!(Lock::take(&path).unwrap().is_none());
        assert!(Lock::wait(&path, LOOK).unwrap().is_none());
        let again = lock.try_clone().unwrap();
        drop(lock);
        assert!(Lock::is_held(&path));
        drop(again);
        assert!(!Lock::is_held(&path));
        assert!(Lock::take(&path).unwrap().is_some());
        assert!(Lock::wait(&path, Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn a_part_of_a_lock_stands_for_a_key() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("lock");
        let take = |key: &str| Lock::wait_for(&path, key, Duration::ZERO).unwrap();
        let dev = take("dev").unwrap();
        assert!(take("dev").is_none(), "it is held");
        assert!(take("build").is_some(), "another key is free");
        assert!(Lock::take(&path).unwrap().is_none(), "who takes all of it waits for each");
        drop(dev);
        let all = Lock::take(&path).unwrap().unwrap();
        assert!(take("dev").is_none(), "and each waits for who has all");
        drop(all);
        assert!(take("dev").is_some());
    }
}
