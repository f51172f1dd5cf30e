//! Reads the names of the files below a directory, without those that git ignores.
//!
//! No link is followed, and each directory is opened in the one that contains it. So nothing outside of the directory is
//! listed, even if a directory is replaced by a link meanwhile.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bowline_proto::files::FileKind;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use tokio_util::sync::CancellationToken;

use super::gitignore::{GitFiles, Rules, RulesReader};
use crate::folders::real_path;

/// The names that a walk reads, with those that are left out. After that it ends, and its tree is truncated.
const MAX_NAMES: usize = 50_000;
/// Bytes of the paths of a tree. A walk that has more ends, and its tree is truncated.
const MAX_BYTES: usize = 8 << 20;
/// The longest path of a tree in bytes. Longer ones are left out.
const MAX_PATH: usize = 1024;
/// How long a walk reads names. After that it ends, and its tree is truncated.
const WALK_WITHIN: Duration = Duration::from_secs(1);
/// How long it may compare the names that it has read by then with the rules of git.
const LATE_RULES_WITHIN: Duration = Duration::from_secs(1);

/// The files and folders below a directory, those near its top first.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) files: Vec<TreeFile>,
    /// There is more than could be read.
    pub(super) truncated: bool,
}

/// A file or folder of a tree.
#[derive(Debug)]
pub(super) struct TreeFile {
    /// Relative to the directory.
    pub(super) path: Box<str>,
    pub(super) kind: FileKind,
}

/// Reads what is below a directory, until it is stopped. Files whose names begin with a dot are left out unless
/// `with_hidden`.
pub(super) fn walk(dir: &Path, with_hidden: bool, stop: &CancellationToken) -> io::Result<Tree> {
    walk_with(dir, with_hidden, RulesReader::of_user(), stop)
}

fn walk_with(dir: &Path, with_hidden: bool, reader: RulesReader, stop: &CancellationToken) -> io::Result<Tree> {
    let top = openat(CWD, dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut walk = Walk {
        dir: real_path(top.as_fd())?,
        last_parent: (String::new(), top.try_clone()?),
        top,
        with_hidden,
        reader,
        stop: stop.clone(),
        until: Instant::now() + WALK_WITHIN,
        names: 0,
        bytes: 0,
        folders: VecDeque::new(),
        tree: Tree { files: Vec::new(), truncated: false },
    };
    let above = walk.reader.above(&walk.dir);
    // Only the top has to be readable.
    walk.read(&walk.top.try_clone()?, "", &above)?;
    // Folders are read in the order in which they are found: if there are too many, the deepest are missing.
    while let Some((path, rules)) = walk.folders.pop_front() {
        if walk.tree.truncated {
            break;
        }
        if let Ok(open) = walk.open(&path) {
            let _ = walk.read(&open, &path, &rules);
        }
    }
    Ok(walk.tree)
}

struct Walk {
    /// The absolute path of the directory, without links.
    dir: PathBuf,
    top: OwnedFd,
    /// The folder, with its path, in which the last one was opened. Often the next one is in it, too.
    last_parent: (String, OwnedFd),
    with_hidden: bool,
    reader: RulesReader,
    stop: CancellationToken,
    until: Instant,
    names: usize,
    bytes: usize,
    /// The folders that are not read yet, with the rules of those that contain them.
    folders: VecDeque<(Box<str>, Rules)>,
    tree: Tree,
}

impl Walk {
    /// Adds what is in an open folder.
    fn read(&mut self, open: &OwnedFd, path: &str, outer: &Rules) -> io::Result<()> {
        let (names, has) = self.names(open)?;
        let rules = self.reader.inside(open.as_fd(), &self.dir.join(path), has, outer);
        for (name, kind) in names {
            let path: Box<str> = if path.is_empty() { name.into() } else { format!("{path}/{name}").into() };
            let is_folder = kind == FileKind::Folder;
            if path.len() > MAX_PATH || rules.ignore(&self.dir.join(&*path), is_folder) {
                continue;
            }
            self.bytes += path.len();
            self.tree.truncated |= self.bytes > MAX_BYTES;
            if self.bytes > MAX_BYTES || self.is_late(LATE_RULES_WITHIN) {
                break;
            }
            if is_folder {
                self.folders.push_back((path.clone(), rules.clone()));
            }
            self.tree.files.push(TreeFile { path, kind });
        }
        Ok(())
    }

    /// The names in an open folder that can be listed, in alphabetical order.
    fn names(&mut self, open: &OwnedFd) -> io::Result<(Vec<(String, FileKind)>, GitFiles)> {
        let (mut names, mut has) = (Vec::new(), GitFiles::default());
        for entry in Dir::read_from(open)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.names += 1;
            self.tree.truncated |= self.names > MAX_NAMES;
            if self.names > MAX_NAMES || self.is_late(Duration::ZERO) {
                break;
            }
            has.is_repository |= name.to_bytes() == b".git";
            has.has_rules |= name.to_bytes() == b".gitignore";
            // What is not UTF-8 could not be named in a prompt.
            let Ok(text) = name.to_str() else { continue };
            if text == ".git" || (text.starts_with('.') && !self.with_hidden) {
                continue;
            }
            let file_type = match entry.file_type() {
                FileType::Unknown => match statat(open, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                known => known,
            };
            let kind = match file_type {
                FileType::Directory => FileKind::Folder,
                // Where a link leads is not looked at.
                FileType::RegularFile | FileType::Symlink => FileKind::File,
                _ => continue,
            };
            names.push((text.to_owned(), kind));
        }
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok((names, has))
    }

    /// Opens a folder below the top.
    fn open(&mut self, path: &str) -> io::Result<OwnedFd> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if self.last_parent.0 != parent {
            let mut names = parent.split('/').filter(|name| !name.is_empty());
            let open = names.try_fold(self.top.try_clone()?, |open, name| open_in(&open, name))?;
            self.last_parent = (parent.to_owned(), open);
        }
        open_in(&self.last_parent.1, name)
    }

    /// Whether the walk ends here, because it was stopped or the time is over by more than this.
    fn is_late(&mut self, by: Duration) -> bool {
        let is_late = self.stop.is_cancelled() || Instant::now() >= self.until + by;
        self.tree.truncated |= is_late;
        is_late
    }
}

/// Opens a folder in another one; an error if it is a link.
fn open_in(parent: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests;
