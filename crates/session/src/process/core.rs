//! The part of a session that its body shares, whatever its kind: files, description, poll and clock.

use std::time::{Duration, Instant};

use bowline_host::home::SessionDir;
use bowline_host::meta::Meta;
use bowline_proto::session::SessionInfo;

use super::poll::Poll;

pub(super) struct Core {
    pub(super) dir: SessionDir,
    pub(super) meta: Meta,
    pub(super) info: SessionInfo,
    /// `info` has changed since it was last sent to the link and to control connections that follow it.
    pub(super) info_changed: bool,
    pub(super) poll: Poll,
    origin: Instant,
}

impl Core {
    pub(super) fn new(dir: SessionDir, meta: Meta, info: SessionInfo, poll: Poll) -> Core {
        Core { dir, meta, info, info_changed: false, poll, origin: Instant::now() }
    }

    /// The time since the session started, which is the link's clock.
    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Converts a time of the link's clock.
    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.origin + at
    }
}
