//! The kernel's word on whether a session lives: an open-file-description lock that dies with its process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// A held lock; dropping it, or the death of the process, releases it.
///
/// Open-file-description locks follow the file description through `fork`, so this is taken after the last fork
/// and the descriptor is close-on-exec (as all of `std`'s are).
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "held open, never read")] File);

impl Lock {
    /// Takes the lock, or `None` when somebody else has it.
    pub fn take(path: &Path) -> io::Result<Option<Lock>> {
        Lock::set(path, |flock| FcntlArg::F_OFD_SETLK(flock))
    }

    /// Takes the lock, waiting for whoever has it.
    pub fn wait(path: &Path) -> io::Result<Lock> {
        loop {
            if let Some(lock) = Lock::set(path, |flock| FcntlArg::F_OFD_SETLKW(flock))? {
                return Ok(lock);
            }
        }
    }

    fn set(path: &Path, how: impl Fn(&libc::flock) -> FcntlArg<'_>) -> io::Result<Option<Lock>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match fcntl(&file, how(&whole_file(libc::F_WRLCK))) {
            Ok(_) => Ok(Some(Lock(file))),
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
        drop(lock);
        assert!(!Lock::is_held(&path));
        assert!(Lock::take(&path).unwrap().is_some());
    }
}
