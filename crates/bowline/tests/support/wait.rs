//! Waiting for facts.

use std::time::{Duration, Instant};

/// No fact takes this long to become true, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until there is something, and names it if it never comes.
#[track_caller]
pub(crate) fn wait_until<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
