//! The session's listening socket, and the paths that lead to it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use bowline_host::files::set_aside;
use bowline_host::home::{Home, SessionDir, ensure_private};
use bowline_host::watch::{WatchFlags, Watcher};

use super::StartError;

/// The listening socket. Dropping it removes its paths.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    /// Where the socket is bound.
    path: PathBuf,
    /// `sock` in the session's directory: the same as `path`, or a symlink to it where that path would be too long.
    dir_path: PathBuf,
}

impl Socket {
    /// Binds the session's socket. This process holds the session's lock and so owns the path: a stale
    /// socket is removed.
    pub(super) fn bind(home: &Home, dir: &SessionDir) -> Result<Socket, StartError> {
        let path = home.socket_path(dir)?;
        Ok(Socket { listener: listen(&path, &dir.sock())?, path, dir_path: dir.sock() })
    }

    /// Binds the socket again if one of its paths is no longer a socket. Another one in its place, such as a proxy's, is
    /// left alone. Returns whether it did.
    pub(super) fn rebind(&mut self) -> io::Result<bool> {
        let is_socket = |path: &Path| fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if is_socket(&self.path) && is_socket(&self.dir_path) {
            return Ok(false);
        }
        self.listener = listen(&self.path, &self.dir_path)?;
        Ok(true)
    }

    /// Makes `watcher` report when the socket or the symlink to it is removed.
    pub(super) fn watch_with(&self, watcher: &Watcher) {
        for dir in [self.path.parent(), self.dir_path.parent()].into_iter().flatten() {
            let _ = watcher.add(dir, WatchFlags::DELETE | WatchFlags::MOVED_FROM);
        }
    }

    /// Removes the paths, so that no new connection can be made.
    pub(super) fn unlink(&self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.dir_path);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.unlink();
    }
}

fn listen(path: &Path, dir_path: &Path) -> io::Result<UnixListener> {
    for old in [path, dir_path] {
        match fs::remove_file(old) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => set_aside(old)?,
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
    if path != dir_path {
        symlink(path, dir_path)?;
    }
    Ok(listener)
}
