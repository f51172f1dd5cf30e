//! `GET /v1/folders`: the folders in a folder, to choose where a session starts.
//!
//! Only what is below the roots of the configuration can be listed. A folder is opened first; where it really is decides
//! whether it may be listed, and what is listed is this open folder. So no link and no `..` leads out of the roots, even if
//! it changes meanwhile.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::files;
use bowline_proto::files::{FolderEntry, FolderList};
use bowline_proto::problem::Code;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, readlink, statat};
use rustix::io::Errno;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{Json, Query};
use crate::guard::Writer;
use crate::problem::Problem;
use crate::sessions::on_thread;
use crate::tilde;

/// The most folders of a list. It is truncated if there are more.
const MAX_FOLDERS: usize = 2000;
/// The names that are read of a folder, and how long. After that the list is truncated.
const MAX_NAMES: usize = 50_000;
const READ_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct FoldersQuery {
    /// An absolute path, or one that starts with `~`. Default: the first root.
    path: Option<String>,
    /// Whether to list folders whose names begin with a dot.
    #[serde(default)]
    hidden: bool,
}

/// Lists the folders in a folder that is below one of the roots.
#[utoipa::path(
    get, path = "/v1/folders", tag = "sessions", operation_id = "list_folders", params(FoldersQuery),
    responses(
        (status = 200, body = FolderList),
        (status = 400, description = "`bad_request`: the path is neither absolute nor starts with `~`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `write` is required, the folder is not below a root, or the gateway may not read it"),
        (status = 404, description = "`not_found`: no such folder"),
        (status = 503, description = "`unreachable`: too many folders are being read, or this one cannot be read right now"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    Writer(caller): Writer,
    Query(query): Query<FoldersQuery>,
) -> Result<Response, Problem> {
    let home = tilde::home(app.environment.get().await);
    let path = query.path.map(|path| wanted(&path, home.as_deref())).transpose()?;
    let roots: Vec<PathBuf> =
        app.settings.roots.iter().filter_map(|root| tilde::expand(root, home.as_deref()).ok()).collect();
    let turn = app.turns.walk(&caller).await?;
    let listed = on_thread(turn, move || {
        caller.check()?;
        Roots::open(&roots).list(path.as_deref(), query.hidden)
    });
    Ok(Json(listed.await?).into_response())
}

/// The path that the caller means.
fn wanted(path: &str, home: Option<&Path>) -> Result<PathBuf, Problem> {
    let bad = |why: String| Problem::new(Code::BadRequest, why);
    if path.contains('\0') {
        return Err(bad("a path has no NUL bytes".to_owned()));
    }
    let expanded = tilde::expand(Path::new(path), home).map_err(|why| bad(why.to_string()))?;
    if !expanded.is_absolute() {
        return Err(bad(format!("{path:?} is not an absolute path")));
    }
    // Without a slash at the end, which would follow a link.
    Ok(expanded.components().collect())
}

/// The folders below which everything may be listed: absolute paths without links.
#[derive(Debug)]
struct Roots(Vec<PathBuf>);

impl Roots {
    /// Those of these folders that exist.
    fn open(roots: &[PathBuf]) -> Roots {
        let mut real: Vec<PathBuf> = Vec::new();
        for root in roots.iter().filter_map(|root| real_path(open_path(root).ok()?.as_fd()).ok()) {
            if !real.contains(&root) {
                real.push(root);
            }
        }
        Roots(real)
    }

    fn contain(&self, path: &Path) -> bool {
        self.0.iter().any(|root| path.starts_with(root))
    }

    /// The folders in the folder at this path, or in the first root.
    fn list(&self, path: Option<&Path>, with_hidden: bool) -> Result<FolderList, Problem> {
        let Some(path) = path.or(self.0.first().map(PathBuf::as_path)) else { return Err(self.outside("a folder")) };
        let shown = format!("{path:?}");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = openat(CWD, path, flags, Mode::empty()).map_err(|error| self.refusal(path, &error.into()))?;
        let real = real_path(open.as_fd()).map_err(|error| self.refusal(path, &error))?;
        if !self.contain(&real) {
            return Err(self.outside(&shown));
        }
        let text = |path: &Path| path.to_str().map(ToOwned::to_owned);
        let not_text =
            || Problem::new(Code::NotFound, format!("the path of {shown} is not UTF-8; choose another folder"));
        let (folders, truncated) = self.read(&open, with_hidden).map_err(|error| unreadable(&shown, &error))?;
        Ok(FolderList {
            path: text(&real).ok_or_else(not_text)?,
            parent: real.parent().filter(|parent| self.contain(parent)).and_then(text),
            roots: self.0.iter().filter_map(|root| text(root)).collect(),
            folders,
            truncated,
        })
    }

    /// The folders in an open folder, and whether there are more.
    fn read(&self, open: &OwnedFd, with_hidden: bool) -> io::Result<(Vec<FolderEntry>, bool)> {
        let until = Instant::now() + READ_WITHIN;
        let (mut found, mut truncated) = (Vec::new(), false);
        for (count, entry) in Dir::read_from(open)?.enumerate() {
            let entry = entry?;
            if count >= MAX_NAMES || Instant::now() >= until {
                truncated = true;
                break;
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            let is_left_out = matches!(name, "." | "..") || (name.starts_with('.') && !with_hidden);
            if !is_left_out && self.is_folder(open, name, entry.file_type()) {
                found.push((name.to_lowercase(), name.to_owned()));
            }
        }
        found.sort_unstable();
        truncated |= found.len() > MAX_FOLDERS;
        found.truncate(MAX_FOLDERS);
        let entry = |(_, name): (String, String)| FolderEntry { git: self.is_repository(open, &name), name };
        Ok((found.into_iter().map(entry).collect(), truncated))
    }

    /// Whether this is a folder, or a link to one that may be listed.
    fn is_folder(&self, parent: &OwnedFd, name: &str, file_type: FileType) -> bool {
        let file_type = match file_type {
            FileType::Unknown => match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return false,
            },
            known => known,
        };
        match file_type {
            FileType::Directory => true,
            FileType::Symlink => self.open_in(parent, name).is_some(),
            _ => false,
        }
    }

    fn is_repository(&self, parent: &OwnedFd, name: &str) -> bool {
        let open = self.open_in(parent, name);
        open.is_some_and(|open| statat(&open, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// Opens a folder in another one, if it may be listed.
    fn open_in(&self, parent: &OwnedFd, name: &str) -> Option<OwnedFd> {
        let open = openat(parent, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        real_path(open.as_fd()).is_ok_and(|real| self.contain(&real)).then_some(open)
    }

    /// The problem of a folder that cannot be opened. What is not below a root is refused in the same way, whether it exists
    /// or not. So is a link that cannot be followed, because it may lead there.
    fn refusal(&self, path: &Path, error: &io::Error) -> Problem {
        let shown = format!("{path:?}");
        for at in path.ancestors() {
            match open_path(at).and_then(|open| real_path(open.as_fd())) {
                Ok(real) if self.contain(&real) => return unreadable(&shown, error),
                Ok(_) => break,
                Err(_) if at.symlink_metadata().is_ok_and(|found| found.is_symlink()) => break,
                Err(_) => {}
            }
        }
        self.outside(&shown)
    }

    fn outside(&self, shown: &str) -> Problem {
        let roots: Vec<String> = self.0.iter().map(|root| root.display().to_string()).collect();
        let allowed = match roots.as_slice() {
            [] => "none of the folders that may be listed exists".to_owned(),
            roots => format!("only what is below {} can be listed", roots.join(", ")),
        };
        let detail = format!("{shown} cannot be listed: {allowed}; `gateway.roots` in the configuration changes that");
        Problem::new(Code::NotAllowed, detail)
    }
}

/// The problem of a folder that may be listed, but cannot be read.
fn unreadable(shown: &str, error: &io::Error) -> Problem {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => Problem::new(Code::NotFound, format!("there is no folder {shown}")),
        Some(Errno::NOTDIR) => Problem::new(Code::NotFound, format!("{shown} is not a folder")),
        Some(Errno::LOOP | Errno::NAMETOOLONG) => {
            Problem::new(Code::NotFound, format!("{shown} is not the path of a folder: {error}"))
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            Problem::new(Code::NotAllowed, format!("the gateway may not read the folder {shown}"))
        }
        _ => Problem::new(files::code(error), format!("cannot read the folder {shown}: {error}")).retry_after(1),
    }
}

/// Opens what is at a path, only to learn where it is.
fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// The absolute path of an open file or folder, without links. An error if it was deleted.
pub(crate) fn real_path(open: BorrowedFd<'_>) -> io::Result<PathBuf> {
    // The kernel marks the path of a deleted file, but a file may also be called so.
    if fstat(open)?.st_nlink == 0 {
        return Err(Errno::NOENT.into());
    }
    let path = readlink(format!("/proc/self/fd/{}", open.as_raw_fd()), Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes())))
}

#[cfg(test)]
mod tests;
