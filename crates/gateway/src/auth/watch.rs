//! Notices, while nobody calls, that another process changed the file or that somebody's time is up.

use std::future::Future;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use bowline_host::watch::{WatchFlags, Watcher};
use tokio::time::{sleep, timeout};

use super::{Auth, AuthError};
use crate::watcher::AsyncWatcher;

/// How often times of use are looked at for being written, and everything else is checked in case a notice was missed.
const TIDY: Duration = Duration::from_secs(60);
/// How often the file is looked at where the kernel sends no notices.
const POLL: Duration = Duration::from_secs(1);

impl Auth {
    /// Runs for as long as callers are to be told that they were revoked. Never returns.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + use<> {
        let auth = self.clone();
        async move {
            let mut watcher = watch(auth.0.store.dir());
            let mut tidied = tokio::time::Instant::now();
            loop {
                let wait = auth.next_end();
                match &watcher {
                    // Whatever changed, the file is cheap to look at.
                    Ok(changes) => {
                        if let Ok(Err(error)) = timeout(wait.min(TIDY), changes.next()).await {
                            watcher = Err(error);
                        }
                    }
                    Err(error) => {
                        tracing::trace!("no notices of changed files: {error}");
                        sleep(wait.min(POLL)).await;
                    }
                }
                auth.end_expired();
                if tidied.elapsed() >= TIDY {
                    tidied = tokio::time::Instant::now();
                    let auth = auth.clone();
                    // It may wait for a disk, and for the lock; those whose time is up are told meanwhile.
                    tokio::task::spawn_blocking(move || {
                        if let Err(error) = auth.tidy() {
                            tracing::error!("{error}");
                        }
                    });
                }
            }
        }
    }

    /// Reads the file if it changed, and ends everybody whose token or login is gone or too old.
    pub(super) fn end_expired(&self) {
        let (mut known, now) = self.known();
        known.end_expired(now);
    }

    /// The time until the next token or login ends by itself.
    fn next_end(&self) -> Duration {
        let (known, now) = self.known();
        // A record that is over stays in the file until the next change; its callers were told.
        let next = known.records.next_end(now).map(|end| end - now);
        next.map_or(Duration::MAX, |wait| wait.try_into().unwrap_or(Duration::ZERO))
    }

    /// Drops old tickets, and writes the times of use that are a day ahead of the file: so a login lives while it is used.
    pub(super) fn tidy(&self) -> Result<(), AuthError> {
        self.tickets().prune(Instant::now());
        let used: Vec<_> = {
            let (known, now) = self.known();
            known.all_used(now).into_iter().filter(|(id, used)| known.records.is_news(id, *used)).collect()
        };
        if used.is_empty() {
            return Ok(());
        }
        self.change(|records| {
            used.iter().for_each(|(id, used)| records.mark_used(id, *used));
            Ok(())
        })
    }
}

fn watch(dir: &Path) -> io::Result<AsyncWatcher> {
    let watcher = Watcher::new()?;
    // The file is only ever replaced or removed.
    let kinds = WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
    watcher.add(dir, kinds | WatchFlags::ONLYDIR)?;
    AsyncWatcher::new(watcher)
}
