//! Watches files for changes with inotify. The caller waits on the descriptor, with poll, epoll or an async runtime.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use rustix::fs::inotify::WatchFlags;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags};
use rustix::io::Errno;

/// Watches files and directories. Its descriptor is readable while there are changes to [`Watcher::take`].
#[derive(Debug)]
pub struct Watcher(OwnedFd);

/// One watched path of a [`Watcher`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WatchId(i32);

/// The changes since the last call to [`Watcher::take`], without duplicates.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The changed entries of watched directories. A change of a watched file itself has no name, and is not listed.
    pub entries: HashSet<(WatchId, OsString)>,
    /// The watches that ended because their path was removed. If it is created again, it needs a new watch.
    pub ended: HashSet<WatchId>,
    /// The kernel dropped reports, so anything may have changed.
    pub overflow: bool,
}

impl Watcher {
    /// Creates a watcher without watches. Fails if the user has no inotify instances left.
    pub fn new() -> io::Result<Watcher> {
        Ok(Watcher(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches a path for these kinds of changes. If the path is watched already, replaces its kinds and keeps its id.
    pub fn add(&self, path: &Path, kinds: WatchFlags) -> io::Result<WatchId> {
        Ok(WatchId(inotify::add_watch(&self.0, path, kinds)?))
    }

    /// Takes all changes reported so far, without blocking.
    pub fn take(&self) -> io::Result<Changes> {
        let mut changes = Changes::default();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(changes),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let id = WatchId(event.wd());
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                changes.overflow = true;
            } else if event.events().contains(ReadFlags::IGNORED) {
                changes.ended.insert(id);
            } else if let Some(name) = event.file_name() {
                changes.entries.insert((id, OsStr::from_bytes(name.to_bytes()).to_owned()));
            }
        }
    }
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Watcher {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(watcher: &Watcher) -> bool {
        poll(&mut [PollFd::new(watcher, PollFlags::IN)], Some(&Timespec::default())).unwrap() > 0
    }

    fn entries<const N: usize>(id: WatchId, names: [&str; N]) -> Changes {
        Changes { entries: names.into_iter().map(|name| (id, name.into())).collect(), ..Changes::default() }
    }

    #[test]
    fn an_entry_that_changes_often_is_reported_once() {
        let temp = tempfile::tempdir().unwrap();
        let watcher = Watcher::new().unwrap();
        let id = watcher.add(temp.path(), WatchFlags::CREATE | WatchFlags::DELETE).unwrap();
        assert!(!is_readable(&watcher));
        assert_eq!(watcher.take().unwrap(), Changes::default(), "take does not block");
        for _ in 0..3 {
            for name in ["a", "b"] {
                fs::write(temp.path().join(name), "").unwrap();
                fs::remove_file(temp.path().join(name)).unwrap();
            }
        }
        assert!(is_readable(&watcher));
        assert_eq!(watcher.take().unwrap(), entries(id, ["a", "b"]));
        assert!(!is_readable(&watcher), "everything was taken");
    }

    #[test]
    fn each_directory_has_its_own_id_and_its_own_kinds() {
        let temp = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| temp.path().join(name));
        [&one, &two].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
        let watcher = Watcher::new().unwrap();
        let created = watcher.add(&one, WatchFlags::CREATE).unwrap();
        let removed = watcher.add(&two, WatchFlags::DELETE).unwrap();
        assert_eq!(watcher.add(&one, WatchFlags::CREATE).unwrap(), created);
        for dir in [one, two] {
            fs::write(dir.join("file"), "").unwrap();
            fs::remove_file(dir.join("file")).unwrap();
        }
        let both = [(created, "file".into()), (removed, "file".into())];
        assert_eq!(watcher.take().unwrap(), Changes { entries: both.into(), ..Changes::default() });
    }

    #[test]
    fn a_watched_file_wakes_the_caller_and_has_no_entry() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        let watcher = Watcher::new().unwrap();
        watcher.add(temp.path(), WatchFlags::MODIFY).unwrap();
        fs::write(temp.path(), "more").unwrap();
        assert!(is_readable(&watcher));
        assert_eq!(watcher.take().unwrap(), Changes::default());
        assert!(!is_readable(&watcher));
    }

    #[test]
    fn removing_a_directory_ends_its_watch_and_a_new_one_can_be_watched() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("dir");
        let watcher = Watcher::new().unwrap();
        let missing = watcher.add(&dir, WatchFlags::CREATE).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        fs::create_dir(&dir).unwrap();
        let first = watcher.add(&dir, WatchFlags::CREATE).unwrap();
        fs::write(dir.join("a"), "").unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(watcher.take().unwrap(), Changes { ended: [first].into(), ..entries(first, ["a"]) });
        fs::create_dir(&dir).unwrap();
        let second = watcher.add(&dir, WatchFlags::CREATE).unwrap();
        assert_ne!(first, second);
        fs::write(dir.join("b"), "").unwrap();
        assert_eq!(watcher.take().unwrap(), entries(second, ["b"]));
    }

    #[test]
    fn a_full_kernel_queue_is_an_overflow_and_later_changes_are_reported() {
        let temp = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| temp.path().join(name));
        let watcher = Watcher::new().unwrap();
        let id = watcher.add(temp.path(), WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM).unwrap();
        let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
        fs::write(&one, "").unwrap();
        for _ in 0..=most / 4 {
            fs::rename(&one, &two).unwrap();
            fs::rename(&two, &one).unwrap();
        }
        assert_eq!(watcher.take().unwrap(), Changes { overflow: true, ..entries(id, ["one", "two"]) });
        fs::rename(&one, &two).unwrap();
        assert_eq!(watcher.take().unwrap(), entries(id, ["one", "two"]));
    }
}
