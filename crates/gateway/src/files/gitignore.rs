//! What git ignores: the rules that apply in a directory, collected on the way down to it.
//!
//! Whatever runs in a directory can write rules there. So their files are read within bounds, and never through links.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bowline_host::files;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use rustix::fs::{Mode, OFlags, openat};

/// The longest file with rules, in bytes. The rules of a longer one do not count.
const MAX_FILE: u64 = 256 << 10;
/// The rules of one walk. More do not count: each costs time and memory while the walk goes on.
const MAX_RULES: usize = 5000;
/// The longest file that says where the files of a repository are, in bytes; a longer one is not used.
const MAX_LINK: u64 = 4 << 10;

/// The rules that apply in a directory. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Rules(Option<Arc<Layer>>);

/// The rules of one file, and those that apply where it has none.
#[derive(Debug)]
struct Layer {
    own: Gitignore,
    outer: Option<Arc<Layer>>,
}

impl Rules {
    /// Those outside of all repositories, where git ignores nothing.
    pub(super) fn none() -> Rules {
        Rules(None)
    }

    /// Whether git ignores what is at this absolute path, in the directory of these rules.
    pub(super) fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        let mut layer = self.0.as_deref();
        while let Some(Layer { own, outer }) = layer {
            let found = own.matched(path, is_folder);
            if !found.is_none() {
                return found.is_ignore();
            }
            layer = outer.as_deref();
        }
        false
    }

    fn with(&self, own: Gitignore) -> Rules {
        if own.is_empty() {
            return self.clone();
        }
        Rules(Some(Arc::new(Layer { own, outer: self.0.clone() })))
    }
}

/// Reads rules, as many as one walk may have.
#[derive(Debug)]
pub(super) struct RulesReader {
    left: usize,
    /// Where the user's rules for all repositories are.
    global: Option<PathBuf>,
}

/// What a directory has for git.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GitFiles {
    /// It is the top of a repository or of a worktree.
    pub(super) is_repository: bool,
    pub(super) has_rules: bool,
}

impl RulesReader {
    /// `global` is the file with the user's rules for all repositories.
    pub(super) fn new(global: Option<PathBuf>) -> RulesReader {
        RulesReader { left: MAX_RULES, global }
    }

    /// The reader with the rules that git's configuration names.
    pub(super) fn of_user() -> RulesReader {
        RulesReader::new(gitconfig_excludes_path())
    }

    /// The rules that a directory gets from those above it, up to the top of its repository.
    pub(super) fn above(&mut self, dir: &Path) -> Rules {
        let above: Vec<&Path> = dir.ancestors().skip(1).collect();
        let Some(top) = above.iter().position(|dir| dir.join(".git").symlink_metadata().is_ok()) else {
            return Rules::none();
        };
        let mut rules = self.of_repository(above[top]);
        for dir in above[..=top].iter().rev() {
            let text = files::read(&dir.join(".gitignore"), MAX_FILE).unwrap_or_default();
            rules = rules.with(self.parse(dir, &text));
        }
        rules
    }

    /// The rules in a directory, which is open: those of the directory that contains it, and its own.
    pub(super) fn inside(&mut self, open: BorrowedFd<'_>, dir: &Path, has: GitFiles, outer: &Rules) -> Rules {
        let rules = if has.is_repository { self.of_repository(dir) } else { outer.clone() };
        if rules.0.is_none() || !has.has_rules {
            return rules;
        }
        let text = read_in(open, ".gitignore").unwrap_or_default();
        rules.with(self.parse(dir, &text))
    }

    /// The rules that a whole repository has besides those in its directories.
    fn of_repository(&mut self, top: &Path) -> Rules {
        let global = self.global.as_deref().and_then(|path| read_of_user(path).ok()).unwrap_or_default();
        let exclude = common_dir(top).and_then(|dir| files::read(&dir.join("info/exclude"), MAX_FILE).ok());
        let global = Layer { own: self.parse(top, &global), outer: None };
        Rules(Some(Arc::new(global))).with(self.parse(top, &exclude.unwrap_or_default()))
    }

    /// Parses rules. A bad one does not count, as in git.
    fn parse(&mut self, dir: &Path, text: &[u8]) -> Gitignore {
        let text = String::from_utf8_lossy(text);
        let lines = text.trim_start_matches('\u{feff}').lines();
        let mut builder = GitignoreBuilder::new(dir);
        for line in lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')).take(self.left) {
            self.left -= 1;
            let _ = builder.add_line(None, line);
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }
}

/// Reads a file of an open directory.
fn read_in(dir: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    read_regular(&File::from(openat(dir.as_fd(), name, flags, Mode::empty())?))
}

/// Reads the user's own file, which may be a link.
fn read_of_user(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    read_regular(&OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?)
}

fn read_regular(file: &File) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(files::damage("not a regular file"));
    }
    files::read_open(file, MAX_FILE)
}

/// The directory with the files that all worktrees of a repository share.
fn common_dir(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.symlink_metadata().ok()?.is_dir() {
        return Some(git);
    }
    let line = |path: &Path| {
        let text = String::from_utf8(files::read(path, MAX_LINK).ok()?).ok()?;
        Some(text.trim_end_matches(['\r', '\n']).to_owned())
    };
    let own = top.join(line(&git)?.strip_prefix("gitdir: ")?);
    Some(match line(&own.join("commondir")) {
        Some(common) => own.join(common),
        None => own,
    })
}
