//! What every kind of session has, as its body sees it: files, description, poll and clock.

use std::time::{Duration, Instant};

use bowline_host::home::SessionDir;
use bowline_host::journal::Journal;
use bowline_host::meta::Meta;
use bowline_proto::session::SessionInfo;

use super::poll::Poll;

/// What every kind of session has.
pub(super) struct Core {
    pub(super) dir: SessionDir,
    pub(super) meta: Meta,
    pub(super) info: SessionInfo,
    /// The description has changed since viewers and followers last got it.
    pub(super) info_changed: bool,
    pub(super) journal: Journal,
    pub(super) poll: Poll,
    origin: Instant,
}

impl Core {
    pub(super) fn new(dir: SessionDir, meta: Meta, info: SessionInfo, journal: Journal, poll: Poll) -> Core {
        Core { dir, meta, info, info_changed: false, journal, poll, origin: Instant::now() }
    }

    /// The time, as the link machine counts it.
    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// A moment of the link machine's time.
    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.origin + at
    }
}
