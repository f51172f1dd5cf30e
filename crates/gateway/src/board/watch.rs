//! DirWatcher which sessions exist, by inotify and by periodic scans of the directory.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowline_host::watch::{WatchFlags, WatchId, Watcher};
use bowline_proto::ids::SessionId;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Shared, track};
use crate::watcher::AsyncWatcher;

/// How often all sessions are scanned, in case a notification was missed.
const SCAN_INTERVAL: Duration = Duration::from_secs(30);
/// How often they are scanned if the kernel sends no notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The file that is written last when a session is created, restarted or renamed.
const LAST_WRITTEN: &str = "meta.json";

/// Tracks all sessions until the future is dropped.
pub(super) async fn run(shared: Arc<Shared>) {
    if let Err(error) = shared.home.ensure() {
        tracing::error!(%error, "cannot create the sessions' directory");
    }
    let notices = DirWatcher::new(&shared.home.sessions());
    let mut tracker = Tracker { notices, nudges: HashMap::new(), shared };
    // Dropping it ends all tasks.
    let mut tasks = JoinSet::new();
    loop {
        tracker.scan(&mut tasks).await;
        let interval = if tracker.notices.is_ok() { SCAN_INTERVAL } else { POLL_INTERVAL };
        let next_scan = tokio::time::sleep(interval);
        tokio::pin!(next_scan);
        loop {
            tokio::select! {
                () = &mut next_scan => break,
                notice = next_change(&mut tracker.notices) => match notice {
                    Ok(FileChange::Sessions(ids)) => ids.into_iter().for_each(|id| tracker.refresh(id, &mut tasks)),
                    Ok(FileChange::Overflow) => break,
                    Err(error) => {
                        tracing::warn!(%error, "no notifications of changed sessions; scanning for them instead");
                        tracker.notices = Err(error);
                        break;
                    }
                },
                Some(ended) = tasks.join_next() => {
                    if let Ok(id) = ended {
                        tracker.ended(id, &mut tasks);
                    }
                }
            }
        }
    }
}

/// Starts a task for each session, and nudges it when the session's files may have changed.
struct Tracker {
    shared: Arc<Shared>,
    notices: io::Result<DirWatcher>,
    nudges: HashMap<SessionId, Arc<Notify>>,
}

impl Tracker {
    /// Lists all sessions, and refreshes each of them.
    async fn scan(&mut self, tasks: &mut JoinSet<SessionId>) {
        let directory = self.shared.home.sessions();
        let listed = tokio::task::spawn_blocking(move || ids(&directory)).await;
        let found = match listed.unwrap_or_else(|error| Err(error.into())) {
            Ok(found) => found,
            // Do not show an empty board; the next scan may succeed.
            Err(error) => return tracing::error!(%error, "cannot list the sessions"),
        };
        self.shared.state().expect(found.clone());
        let all: HashSet<SessionId> = found.into_iter().chain(self.nudges.keys().cloned()).collect();
        all.into_iter().for_each(|id| self.refresh(id, tasks));
    }

    /// Reads a session again, or starts to track it.
    fn refresh(&mut self, id: SessionId, tasks: &mut JoinSet<SessionId>) {
        if let Some(nudge) = self.nudges.get(&id) {
            nudge.notify_one();
            return;
        }
        let dir = self.shared.home.session(&id);
        // Watch before the task reads the files, so that a change in between is noticed.
        if let Ok(notices) = &mut self.notices
            && let Err(error) = notices.watch(dir.path(), &id)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "no notifications of changed sessions; scanning for them instead");
            self.notices = Err(error);
        }
        let nudge = Arc::new(Notify::new());
        self.nudges.insert(id.clone(), nudge.clone());
        let tracking = track::track(self.shared.clone(), dir, nudge);
        tasks.spawn(async move {
            tracking.await;
            id
        });
    }

    /// Handles the end of a session's task: its directory was removed, but may exist again.
    fn ended(&mut self, id: SessionId, tasks: &mut JoinSet<SessionId>) {
        self.nudges.remove(&id);
        if self.shared.home.session(&id).path().exists() {
            self.refresh(id, tasks);
        }
    }
}

/// The ids of all session directories, complete or not.
fn ids(directory: &Path) -> io::Result<HashSet<SessionId>> {
    let directory = match std::fs::read_dir(directory) {
        Ok(directory) => directory,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(error) => return Err(error),
    };
    let names = directory.filter_map(|found| found.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

/// Waits for a notice; forever if the kernel sends none.
async fn next_change(notices: &mut io::Result<DirWatcher>) -> io::Result<FileChange> {
    match notices {
        Ok(notices) => notices.next().await,
        Err(_) => std::future::pending().await,
    }
}

/// A notification from the kernel.
enum FileChange {
    /// These sessions may have changed.
    Sessions(HashSet<SessionId>),
    /// Notifications were dropped, so any session may have changed.
    Overflow,
}

/// Watches the directory of all sessions and each session's own.
struct DirWatcher {
    watcher: AsyncWatcher,
    all: WatchId,
    each: HashMap<WatchId, SessionId>,
}

impl DirWatcher {
    fn new(directory: &Path) -> io::Result<DirWatcher> {
        let watcher = Watcher::new()?;
        let kinds = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM;
        let all = watcher.add(directory, kinds | WatchFlags::ONLYDIR)?;
        Ok(DirWatcher { watcher: AsyncWatcher::new(watcher)?, all, each: HashMap::new() })
    }

    fn watch(&mut self, directory: &Path, id: &SessionId) -> io::Result<()> {
        let watch = self.watcher.get().add(directory, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR)?;
        self.each.insert(watch, id.clone());
        Ok(())
    }

    async fn next(&mut self) -> io::Result<FileChange> {
        let changes = self.watcher.next().await?;
        let mut ids = HashSet::new();
        for (watch, name) in &changes.entries {
            if *watch == self.all {
                ids.extend(name.to_str().and_then(|name| name.parse().ok()));
            } else if name == LAST_WRITTEN {
                ids.extend(self.each.get(watch).cloned());
            }
        }
        for watch in &changes.ended {
            self.each.remove(watch);
        }
        if changes.ended.contains(&self.all) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the sessions' directory was removed"));
        }
        Ok(if changes.overflow { FileChange::Overflow } else { FileChange::Sessions(ids) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a first successful scan, the board would never be sent.
    #[test]
    fn r46_a_missing_directory_means_no_sessions() {
        let temp = tempfile::tempdir().unwrap();
        assert!(ids(&temp.path().join("none")).unwrap().is_empty());
        let file = temp.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(ids(&file).is_err(), "a listing that fails is an error, not an empty list");
    }
}
