//! Waits for file changes on the async runtime.

use std::io;

use bowline_host::watch::{Changes, Watcher};
use tokio::io::unix::AsyncFd;

/// A [`Watcher`] that can be awaited.
pub(crate) struct AsyncWatcher(AsyncFd<Watcher>);

impl AsyncWatcher {
    pub(crate) fn new(watcher: Watcher) -> io::Result<AsyncWatcher> {
        #[allow(
            deprecated,
            reason = "its replacement is unsafe, for descriptors that may change; a Watcher's never does"
        )]
        AsyncFd::new(watcher).map(AsyncWatcher)
    }

    /// Waits for changes and returns them. Cancel safe.
    pub(crate) async fn next(&self) -> io::Result<Changes> {
        let mut ready = self.0.readable().await?;
        let changes = ready.get_inner().take()?;
        ready.clear_ready();
        Ok(changes)
    }

    pub(crate) fn get(&self) -> &Watcher {
        self.0.get_ref()
    }
}
