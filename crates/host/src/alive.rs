//! Whether a session's process is running: it holds the session's lock, and listens at its socket.
//!
//! Either one proves it. The lock file may have been removed, or replaced, under a running process, which puts it back
//! as soon as it notices. So another process that takes the lock also has to check the socket.

use std::io;

use crate::control;
use crate::files::{is_damage, set_aside};
use crate::home::SessionDir;
use crate::lock::Lock;

/// Whether the session's process is running. Takes no lock, and waits for nothing.
pub fn is_alive(dir: &SessionDir) -> bool {
    Lock::is_held(&dir.lock()) || control::is_listening(dir)
}

/// Takes the lock of a session that has no process; `None` if it has one.
pub fn take_lock(dir: &SessionDir) -> io::Result<Option<Lock>> {
    let lock = replace_lock(dir)?;
    Ok(lock.filter(|_| !control::is_listening(dir)))
}

/// Takes the lock again for the running process, after its file was removed or replaced.
pub fn replace_lock(dir: &SessionDir) -> io::Result<Option<Lock>> {
    match Lock::take(&dir.lock()) {
        // No process can hold a lock on something that is not a regular file.
        Err(error) if is_damage(&error) => {
            set_aside(&dir.lock())?;
            Lock::take(&dir.lock())
        }
        taken => taken,
    }
}
