//! What every kind of session has, as its body sees it: files, description, poll and clock.

use std::time::{Duration, Instant};

use bowline_host::home::SessionDir;
use bowline_host::journal::Journal;
use bowline_host::meta::Meta;
use bowline_proto::message::SessionInfo;

use super::poll::Poll;

/// The checkpoint of the journal is at most this old while the session lives.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// What every kind of session has.
pub(super) struct Core {
    pub(super) dir: SessionDir,
    pub(super) meta: Meta,
    pub(super) info: SessionInfo,
    /// The description has changed since viewers and followers last got it.
    pub(super) info_changed: bool,
    pub(super) journal: Journal,
    /// When the journal's checkpoint is written, if something was recorded since the last one.
    pub(super) checkpoint_due: Option<Instant>,
    pub(super) poll: Poll,
    origin: Instant,
}

impl Core {
    pub(super) fn new(dir: SessionDir, meta: Meta, info: SessionInfo, journal: Journal, poll: Poll) -> Core {
        let origin = Instant::now();
        let checkpoint_due = Some(origin + CHECKPOINT_EVERY);
        Core { dir, meta, info, info_changed: false, journal, checkpoint_due, poll, origin }
    }

    /// The time, as the link machine counts it.
    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// A moment of the link machine's time.
    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.origin + at
    }

    /// Something was recorded.
    pub(super) fn checkpoint_later(&mut self) {
        self.checkpoint_due.get_or_insert_with(|| Instant::now() + CHECKPOINT_EVERY);
    }
}
