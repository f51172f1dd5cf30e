//! Waits for a condition, with a deadline.

use std::time::{Duration, Instant};

/// No condition takes this long, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Polls `fact` until it returns a value. Panics with `what` after [`PATIENCE`].
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
