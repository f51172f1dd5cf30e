//! Where sessions live on disk: the state directory, one folder a session, and short places for sockets.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bowline_proto::ids::SessionId;

/// The longest path that fits into a unix socket address.
const MAX_SOCKET_PATH: usize = 107;

/// The state and runtime directories of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    state: PathBuf,
    runtime: PathBuf,
}

/// Why there is no usable home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Nothing says where state belongs.
    #[error("neither BOWLINE_STATE_DIR, XDG_STATE_HOME nor HOME is set, so there is no place for sessions")]
    Nowhere,
    /// A directory could not be made or read.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory belongs to somebody else.
    #[error("{0} belongs to another user")]
    NotMine(PathBuf),
}

impl Home {
    /// The places that the environment names.
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

    /// These places, made absolute: the session process runs elsewhere.
    pub fn new(state: impl Into<PathBuf>, runtime: impl Into<PathBuf>) -> Result<Home, HomeError> {
        let absolute =
            |path: PathBuf| std::path::absolute(&path).map_err(|source| HomeError::Io { path: path.clone(), source });
        Ok(Home { state: absolute(state.into())?, runtime: absolute(runtime.into())? })
    }

    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The runtime directory.
    pub fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// The directory with one folder a session.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// The lock under which a name is taken.
    pub fn names_lock(&self) -> PathBuf {
        self.state.join("names.lock")
    }

    /// One session's folder, whether it exists or not.
    pub fn session(&self, id: &SessionId) -> SessionDir {
        SessionDir { path: self.sessions().join(id.as_str()), id: id.clone() }
    }

    /// Makes the state directory, owner-only, and checks that it is ours.
    pub fn ensure(&self) -> Result<(), HomeError> {
        ensure_private(&self.sessions())?;
        ensure_private(&self.state)
    }

    /// Where a session's socket is bound: in its folder, or, where that path is too long for an address, in the
    /// first short owner-only directory.
    pub fn socket_path(&self, dir: &SessionDir) -> Result<PathBuf, HomeError> {
        let direct = dir.sock();
        if fits(&direct) {
            return Ok(direct);
        }
        let name = format!("{}.sock", dir.id);
        for place in [self.runtime.clone(), short_runtime()] {
            if fits(&place.join(&name)) {
                ensure_private(&place)?;
                return Ok(place.join(&name));
            }
        }
        Err(HomeError::Io { path: direct, source: io::Error::from(io::ErrorKind::InvalidFilename) })
    }
}

/// The paths of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDir {
    path: PathBuf,
    id: SessionId,
}

impl SessionDir {
    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }
    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// What was asked.
    pub fn meta(&self) -> PathBuf {
        self.path.join("meta.json")
    }
    /// The ring of terminal output.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }
    /// What happened.
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }
    /// A checkpoint of what happened, for lists.
    pub fn head(&self) -> PathBuf {
        self.path.join("head")
    }
    /// The last screen.
    pub fn screen(&self) -> PathBuf {
        self.path.join("screen")
    }
    /// The socket, or a link to it.
    pub fn sock(&self) -> PathBuf {
        self.path.join("sock")
    }
    /// Held by the living session process.
    pub fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// The address to connect to: `sock` itself, or where its link points.
    pub fn address(&self) -> PathBuf {
        fs::read_link(self.sock()).unwrap_or_else(|_| self.sock())
    }
}

/// Makes `path` and its parents owner-only, or checks that an existing one is ours and closes it to others.
pub fn ensure_private(path: &Path) -> Result<(), HomeError> {
    let io = |source| HomeError::Io { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    // A link of somebody else's may point anywhere, also at something of ours.
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

/// The directory for sockets when the environment names none, or one too long.
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
    fn r51_directories_are_closed_to_others() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("a/b"), temp.path().join("run")).unwrap();
        home.ensure().unwrap();
        fs::set_permissions(home.sessions(), fs::Permissions::from_mode(0o755)).unwrap();
        home.ensure().unwrap();
        assert_eq!(fs::metadata(home.sessions()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(home.state()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_path_too_long_for_a_socket_gets_a_short_one() {
        let temp = tempfile::tempdir().unwrap();
        let id = SessionId::from_random([7; 12]);
        let long = temp.path().join("x".repeat(120));
        let home = Home::new(&long, temp.path().join("run")).unwrap();
        let path = home.socket_path(&home.session(&id)).unwrap();
        assert_eq!(path, temp.path().join("run").join(format!("{id}.sock")));
        let home = Home::new(&long, &long).unwrap();
        let shortest = home.socket_path(&home.session(&id)).unwrap();
        assert!(fits(&shortest));
        let _ = fs::remove_dir(shortest.parent().unwrap()); // unless somebody's sockets are in it
    }
}
