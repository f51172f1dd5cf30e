//! The session's listening socket, and the path it is bound to.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use bowline_host::home::{Home, SessionDir, ensure_private};
use bowline_host::watch::{WatchFlags, Watcher};

use super::BirthError;

/// The listening socket and the path it is bound to.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    link: PathBuf,
}

impl Socket {
    /// Binds the session's socket. The process that holds the lock owns the path, so a stale socket there goes.
    pub(super) fn bind(home: &Home, dir: &SessionDir) -> Result<Socket, BirthError> {
        let path = home.socket_path(dir)?;
        Ok(Socket { listener: listen(&path, &dir.sock())?, path, link: dir.sock() })
    }

    /// Binds again where the path no longer leads here: something cleaned up. Whether it did.
    pub(super) fn rebind(&mut self) -> io::Result<bool> {
        if self.path.exists() && self.link.exists() {
            return Ok(false);
        }
        self.listener = listen(&self.path, &self.link)?;
        Ok(true)
    }

    /// Has the watcher report when the socket or the link to it is removed.
    pub(super) fn watch_by(&self, watcher: &Watcher) {
        for place in [self.path.parent(), self.link.parent()].into_iter().flatten() {
            let _ = watcher.add(place, WatchFlags::DELETE | WatchFlags::MOVED_FROM);
        }
    }

    /// Takes the path away, so that no one connects any more.
    pub(super) fn unlink(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.link);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.unlink();
    }
}

fn listen(path: &Path, link: &Path) -> io::Result<UnixListener> {
    for old in [path, link] {
        match fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if let Some(parent) = path.parent() {
        ensure_private(parent).map_err(io::Error::other)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    if path != link {
        symlink(path, link)?;
    }
    Ok(listener)
}
