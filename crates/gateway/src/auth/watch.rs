//! Notices in the background that another process changed the files, or that a token or login expired, and writes what
//! could not be written before.

use std::future::Future;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use bowline_host::watch::{Changes, WatchFlags, Watcher};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{Auth, AuthError};
use crate::watcher::AsyncWatcher;

/// How often last-use times are written if needed, and the file is checked in case a notification was missed.
const TIDY_INTERVAL: Duration = Duration::from_secs(60);
/// How often to try again to record a revocation.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// How often the file is checked if the kernel sends no notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Auth {
    /// Revokes callers whose token or login is revoked or expires. Never returns; drop it to stop.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + use<> {
        let auth = self.clone();
        async move {
            let mut watcher = watch(auth.0.store.dir());
            let mut tidied = tokio::time::Instant::now();
            let mut tidying: Option<JoinHandle<()>> = None;
            loop {
                let (wait, interval) = (auth.next_expiry(), auth.tidy_interval());
                match &watcher {
                    Ok(changes) => {
                        if let Ok(Err(error)) = timeout(wait.min(interval), changed(changes)).await {
                            watcher = Err(error);
                        }
                    }
                    Err(error) => {
                        tracing::trace!("no notifications of changed files: {error}");
                        sleep(wait.min(POLL_INTERVAL)).await;
                    }
                }
                auth.revoke_expired();
                if tidied.elapsed() >= interval && tidying.as_ref().is_none_or(JoinHandle::is_finished) {
                    tidied = tokio::time::Instant::now();
                    let auth = auth.clone();
                    // Outside this loop, because it may wait for the lock or the disk, and expiry must not wait.
                    tidying = Some(tokio::task::spawn_blocking(move || {
                        if let Err(error) = auth.tidy() {
                            tracing::error!("{error}");
                        }
                    }));
                }
            }
        }
    }

    /// Reads the file if it changed, and revokes the callers whose token or login is gone or expired.
    pub(super) fn revoke_expired(&self) {
        let (mut cache, now) = self.cache();
        cache.revoke_expired(now);
    }

    fn tidy_interval(&self) -> Duration {
        if self.cache().0.unrecorded.is_empty() { TIDY_INTERVAL } else { RETRY_INTERVAL }
    }

    /// The time until the next token or login expires.
    fn next_expiry(&self) -> Duration {
        let (cache, now) = self.cache();
        // Expired records stay in the file until the next change, and do not count here.
        let next = cache.records.next_expiry(now).map(|end| end - now);
        next.map_or(Duration::MAX, |wait| wait.try_into().unwrap_or(Duration::ZERO))
    }

    /// Drops expired tickets, records revocations that could not be recorded, and writes last-use times that are a day
    /// newer than in the file, which keeps logins in use from expiring.
    pub(super) fn tidy(&self) -> Result<(), AuthError> {
        self.tickets().prune(Instant::now());
        self.record_revocations()?;
        let (used, is_behind): (Vec<_>, bool) = {
            let (cache, now) = self.cache();
            let used = cache.all_used(now).into_iter().filter(|(id, used)| cache.records.should_write_use(id, *used));
            (used.collect(), cache.is_behind)
        };
        self.0.store.reserve()?;
        if used.is_empty() && !is_behind {
            return Ok(());
        }
        self.change(|records| {
            used.iter().for_each(|(id, used)| records.mark_used(id, *used));
            Ok(())
        })
    }
}

/// Waits until one of the files may have changed.
async fn changed(watcher: &AsyncWatcher) -> io::Result<()> {
    while !concerns(&watcher.next().await?) {}
    Ok(())
}

/// Whether a change can be one of the files. A process that waits for a lock in the same directory opens and closes
/// it many times a second.
fn concerns(changes: &Changes) -> bool {
    let named = changes.entries.iter().any(|(_, name)| name == "auth.json" || name == "auth.revoked");
    named || changes.overflow || !changes.ended.is_empty()
}

fn watch(dir: &Path) -> io::Result<AsyncWatcher> {
    let watcher = Watcher::new()?;
    // `auth.json` is only ever replaced or removed, and `auth.revoked` is also written in place.
    let kinds = WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE | WatchFlags::CLOSE_WRITE;
    watcher.add(dir, kinds | WatchFlags::ONLYDIR)?;
    AsyncWatcher::new(watcher)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bowline_host::files::write_durable;
    use bowline_host::lock::Lock;

    use super::*;

    #[tokio::test]
    async fn only_changes_of_the_files_wake_the_watcher() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        fs::write(path("auth.revoked"), "").unwrap();
        let watcher = watch(temp.path()).unwrap();
        let is_woken = || {
            let changes = watcher.get().take().unwrap();
            assert!(!changes.entries.is_empty());
            concerns(&changes)
        };
        drop(Lock::take(&path("auth.lock")).unwrap().unwrap());
        assert!(!is_woken(), "a lock");
        write_durable(&path("auth.json"), b"").unwrap();
        assert!(is_woken(), "a new auth.json");
        fs::write(path("auth.revoked"), "more").unwrap();
        assert!(is_woken(), "auth.revoked is written in place");
        fs::remove_file(path("auth.json")).unwrap();
        assert!(is_woken(), "auth.json is removed");
    }
}
