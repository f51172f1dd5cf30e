//! Notices which sessions there are: by the kernel's word, and by looking again now and then.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowline_host::watch::{WatchFlags, WatchId, Watcher};
use bowline_proto::ids::SessionId;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Shared, keep};
use crate::watcher::AsyncWatcher;

/// How often everything is looked at, in case a notice was missed.
const LOOK: Duration = Duration::from_secs(30);
/// How often, where the kernel sends no notices.
const LOOK_DEAF: Duration = Duration::from_secs(2);
/// The file that is written last when a session is made, raised or renamed.
const LAST_WRITTEN: &str = "meta.json";

/// Keeps the board, until it is dropped.
pub(super) async fn run(shared: Arc<Shared>) {
    if let Err(error) = shared.home.ensure() {
        tracing::error!(%error, "the sessions cannot be watched");
    }
    let mut watched = Watched { notices: Notices::of(&shared.home.sessions()), keepers: HashMap::new(), shared };
    // Dropping it ends them all.
    let mut tasks = JoinSet::new();
    loop {
        watched.look(&mut tasks).await;
        let next = tokio::time::sleep(if watched.notices.is_ok() { LOOK } else { LOOK_DEAF });
        tokio::pin!(next);
        loop {
            tokio::select! {
                () = &mut next => break,
                heard = hear(&mut watched.notices) => match heard {
                    Ok(Heard::Sessions(ids)) => ids.into_iter().for_each(|id| watched.look_at(id, &mut tasks)),
                    Ok(Heard::TooMuch) => break,
                    Err(error) => {
                        tracing::warn!(%error, "no notices of changed sessions; looking for them instead");
                        watched.notices = Err(error);
                        break;
                    }
                },
                Some(ended) = tasks.join_next() => {
                    if let Ok(id) = ended {
                        watched.ended(id, &mut tasks);
                    }
                }
            }
        }
    }
}

/// The sessions that are kept.
struct Watched {
    shared: Arc<Shared>,
    notices: io::Result<Notices>,
    keepers: HashMap<SessionId, Arc<Notify>>,
}

impl Watched {
    /// Looks at everything.
    async fn look(&mut self, tasks: &mut JoinSet<SessionId>) {
        let folder = self.shared.home.sessions();
        let listed = tokio::task::spawn_blocking(move || ids(&folder)).await;
        let found = match listed.unwrap_or_else(|error| Err(error.into())) {
            Ok(found) => found,
            // The next look may find them; a board that says "none" would be a lie.
            Err(error) => return tracing::error!(%error, "the sessions cannot be listed"),
        };
        self.shared.known().expect(found.clone());
        let all: HashSet<SessionId> = found.into_iter().chain(self.keepers.keys().cloned()).collect();
        all.into_iter().for_each(|id| self.look_at(id, tasks));
    }

    /// Something may have changed about a session.
    fn look_at(&mut self, id: SessionId, tasks: &mut JoinSet<SessionId>) {
        if let Some(nudge) = self.keepers.get(&id) {
            nudge.notify_one();
            return;
        }
        let dir = self.shared.home.session(&id);
        // First the watch, then the files: what happens in between is noticed.
        if let Ok(notices) = &mut self.notices
            && let Err(error) = notices.watch(dir.path(), &id)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "no notices of changed sessions; looking for them instead");
            self.notices = Err(error);
        }
        let nudge = Arc::new(Notify::new());
        self.keepers.insert(id.clone(), nudge.clone());
        let keeping = keep::keep(self.shared.clone(), dir, nudge);
        tasks.spawn(async move {
            keeping.await;
            id
        });
    }

    /// A session's folder is gone, unless it came back meanwhile.
    fn ended(&mut self, id: SessionId, tasks: &mut JoinSet<SessionId>) {
        self.keepers.remove(&id);
        if self.shared.home.session(&id).path().exists() {
            self.look_at(id, tasks);
        }
    }
}

/// The ids of all sessions, whole or not.
fn ids(folder: &Path) -> io::Result<HashSet<SessionId>> {
    let folder = match std::fs::read_dir(folder) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(error) => return Err(error),
    };
    let names = folder.filter_map(|found| found.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

/// Waits for notices; for ever, where there are none.
async fn hear(notices: &mut io::Result<Notices>) -> io::Result<Heard> {
    match notices {
        Ok(notices) => notices.next().await,
        Err(_) => std::future::pending().await,
    }
}

/// What the kernel said.
enum Heard {
    /// Something happened to these sessions.
    Sessions(HashSet<SessionId>),
    /// More than it could keep.
    TooMuch,
}

/// The kernel's notices about the folder of sessions and each session's own.
struct Notices {
    watcher: AsyncWatcher,
    all: WatchId,
    each: HashMap<WatchId, SessionId>,
}

impl Notices {
    fn of(folder: &Path) -> io::Result<Notices> {
        let watcher = Watcher::new()?;
        let kinds = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM;
        let all = watcher.add(folder, kinds | WatchFlags::ONLYDIR)?;
        Ok(Notices { watcher: AsyncWatcher::new(watcher)?, all, each: HashMap::new() })
    }

    fn watch(&mut self, folder: &Path, id: &SessionId) -> io::Result<()> {
        let watch = self.watcher.get().add(folder, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR)?;
        self.each.insert(watch, id.clone());
        Ok(())
    }

    async fn next(&mut self) -> io::Result<Heard> {
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
            return Err(io::Error::new(io::ErrorKind::NotFound, "the folder of sessions was removed"));
        }
        Ok(if changes.overflow { Heard::TooMuch } else { Heard::Sessions(ids) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without its first look, a board would never be announced.
    #[test]
    fn r46_no_folder_is_no_sessions_and_no_failure() {
        let temp = tempfile::tempdir().unwrap();
        assert!(ids(&temp.path().join("none")).unwrap().is_empty());
        let file = temp.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(ids(&file).is_err(), "what cannot be listed is not empty");
    }
}
