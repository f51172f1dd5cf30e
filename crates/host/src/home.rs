//! The state directory, with one directory per session, and short directories for sockets.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bowline_proto::ids::SessionId;
use bowline_proto::problem::Code;
use rustix::fs::{Access, StatVfs, access, statvfs};

use crate::files;

/// With fewer free bytes, the disk counts as full: the smallest log and the tokens need more.
const MIN_FREE: u64 = 64 << 10;
/// The longest path, in bytes, that fits into a unix socket address.
const MAX_SOCKET_PATH: usize = 107;

/// The state and runtime directories of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    state: PathBuf,
    runtime: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("no state directory: none of BOWLINE_STATE_DIR, XDG_STATE_HOME and HOME is set")]
    Nowhere,
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{0} belongs to another user")]
    NotMine(PathBuf),
}

impl HomeError {
    /// The problem code of the protocol for this error.
    pub fn code(&self) -> Code {
        match self {
            HomeError::Io { source, .. } => files::code(source),
            HomeError::Nowhere | HomeError::NotMine(_) => Code::Unreachable,
        }
    }
}

impl Home {
    /// Uses the directories that the environment names.
    pub fn from_env() -> Result<Home, HomeError> {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let state = match (var("BOWLINE_STATE_DIR"), var("XDG_STATE_HOME"), var("HOME")) {
            (Some(dir), _, _) => PathBuf::from(dir),
            (None, Some(xdg), _) => Path::new(&xdg).join("bowline"),
            (None, None, Some(home)) => Path::new(&home).join(".local/state/bowline"),
            (None, None, None) => return Err(HomeError::Nowhere),
        };
        let runtime = match (var("BOWLINE_RUNTIME_DIR"), var("XDG_RUNTIME_DIR")) {
            (Some(dir), _) => PathBuf::from(dir),
            (None, Some(xdg)) => Path::new(&xdg).join("bowline"),
            (None, None) => short_runtime(),
        };
        Home::new(state, runtime)
    }

    /// Uses these directories, made absolute because the session process changes its working directory.
    pub fn new(state: impl Into<PathBuf>, runtime: impl Into<PathBuf>) -> Result<Home, HomeError> {
        let absolute =
            |path: PathBuf| std::path::absolute(&path).map_err(|source| HomeError::Io { path: path.clone(), source });
        Ok(Home { state: absolute(state.into())?, runtime: absolute(runtime.into())? })
    }

    pub fn state(&self) -> &Path {
        &self.state
    }

    pub fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// The directory with one subdirectory per session.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// The lock file for names and for changes to sessions.
    pub fn names_lock(&self) -> PathBuf {
        self.state.join("names.lock")
    }

    /// The directory of one session, whether it exists or not.
    pub fn session(&self, id: &SessionId) -> SessionDir {
        SessionDir { path: self.sessions().join(id.as_str()), id: id.clone() }
    }

    /// Creates the state directory, owner-only, or checks that the existing one belongs to this user.
    pub fn ensure(&self) -> Result<(), HomeError> {
        ensure_private(&self.sessions())?;
        ensure_private(&self.state)
    }

    /// Checks that files can be written in the state directory: it is writable, and its disk has some space. Writes
    /// nothing.
    pub fn check_writable(&self) -> Result<(), HomeError> {
        for path in [self.state.clone(), self.sessions()] {
            let io = |source: io::Error| HomeError::Io { path: path.clone(), source };
            access(&path, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| io(errno.into()))?;
            let disk = statvfs(&path).map_err(|errno| io(errno.into()))?;
            if !has_space(&disk) {
                return Err(io(io::ErrorKind::StorageFull.into()));
            }
        }
        Ok(())
    }

    /// The path at which a session binds its socket: in its directory, or, if that path is too long for an address, in
    /// the runtime directory or one below `/tmp`.
    pub fn socket_path(&self, dir: &SessionDir) -> Result<PathBuf, HomeError> {
        let direct = dir.sock();
        if fits(&direct) {
            return Ok(direct);
        }
        let name = format!("{}.sock", dir.id);
        for dir in [self.runtime.clone(), short_runtime()] {
            if fits(&dir.join(&name)) {
                ensure_private(&dir)?;
                return Ok(dir.join(&name));
            }
        }
        Err(HomeError::Io { path: direct, source: io::Error::from(io::ErrorKind::InvalidFilename) })
    }
}

/// Whether files can be created. A file system without a fixed size, or number of inodes, reports 0 of 0.
fn has_space(disk: &StatVfs) -> bool {
    let has_blocks = disk.f_blocks == 0 || disk.f_bavail.saturating_mul(disk.f_frsize) >= MIN_FREE;
    has_blocks && (disk.f_files == 0 || disk.f_favail > 0)
}

/// The paths of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDir {
    path: PathBuf,
    id: SessionId,
}

impl SessionDir {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// See [`crate::meta`].
    pub fn meta(&self) -> PathBuf {
        self.path.join("meta.json")
    }

    /// The ring of terminal output; see [`crate::log`].
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The journal; see [`crate::journal`].
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// Large output of an agent's tools; see [`crate::blobs`].
    pub fn blobs(&self) -> PathBuf {
        self.path.join("blobs")
    }

    /// The checkpoint of the journal; see [`crate::summary`].
    pub fn head(&self) -> PathBuf {
        self.path.join("head")
    }

    /// The last screen; see [`crate::saved`].
    pub fn screen(&self) -> PathBuf {
        self.path.join("screen")
    }

    /// The process of an agent session's program; see [`crate::leftovers`].
    pub fn agent(&self) -> PathBuf {
        self.path.join("agent")
    }

    /// The directory of an agent session's attachments; see [`crate::uploads`].
    pub fn uploads(&self) -> PathBuf {
        self.path.join("uploads")
    }

    /// The socket, or a symbolic link to it.
    pub fn sock(&self) -> PathBuf {
        self.path.join("sock")
    }

    /// Held by the session process while it runs.
    pub fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// The address to connect to: `sock` itself, or the target of its link.
    pub fn address(&self) -> PathBuf {
        fs::read_link(self.sock()).unwrap_or_else(|_| self.sock())
    }
}

/// Creates the directory `path` and its parents, owner-only. An existing one must belong to this user, and is made
/// owner-only.
pub fn ensure_private(path: &Path) -> Result<(), HomeError> {
    let io = |source| HomeError::Io { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    // A link that belongs to another user may point anywhere, even to a directory of this user.
    let me = rustix::process::geteuid().as_raw();
    let (link, found) = (fs::symlink_metadata(path).map_err(io)?, fs::metadata(path).map_err(io)?);
    if link.uid() != me || found.uid() != me {
        return Err(HomeError::NotMine(path.to_owned()));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io)?;
    }
    Ok(())
}

/// The directory for sockets if the environment names none, or its path is too long.
fn short_runtime() -> PathBuf {
    let mut name = OsString::from("/tmp/bowline-");
    name.push(rustix::process::geteuid().as_raw().to_string());
    PathBuf::from(name)
}

fn fits(path: &Path) -> bool {
    path.as_os_str().as_bytes().len() <= MAX_SOCKET_PATH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r51_directories_are_made_owner_only() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("a/b"), temp.path().join("run")).unwrap();
        home.ensure().unwrap();
        fs::set_permissions(home.sessions(), fs::Permissions::from_mode(0o755)).unwrap();
        home.ensure().unwrap();
        assert_eq!(fs::metadata(home.sessions()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(home.state()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_system_that_reports_no_size_is_not_full() {
        let disk = statvfs("/proc").unwrap();
        assert_eq!((disk.f_blocks, disk.f_bavail), (0, 0));
        assert!(has_space(&disk));
    }

    #[test]
    fn a_socket_path_that_is_too_long_is_replaced_by_a_short_one() {
        let temp = tempfile::tempdir().unwrap();
        let id = SessionId::from_random([7; 12]);
        let long = temp.path().join("x".repeat(120));
        let home = Home::new(&long, temp.path().join("run")).unwrap();
        let path = home.socket_path(&home.session(&id)).unwrap();
        assert_eq!(path, temp.path().join("run").join(format!("{id}.sock")));
        let home = Home::new(&long, &long).unwrap();
        let shortest = home.socket_path(&home.session(&id)).unwrap();
        assert!(fits(&shortest));
        let _ = fs::remove_dir(shortest.parent().unwrap()); // fails if it has other sockets
    }
}
