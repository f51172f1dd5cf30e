//! Chooses what to paint: output as it arrives, or a mirror of a screen of another size, and the status line.

use std::time::Duration;

use bowline_proto::link::Status;
use bowline_proto::message::{Missed, Reason, Scope};
use serde_json::Value;

use crate::attach::Outcome;
use crate::viewer::Viewer;

/// The shortest time between two paintings of a mirrored screen.
const MIRROR_EVERY: Duration = Duration::from_millis(100);

/// The state of mirroring a session's screen of another size.
pub(crate) struct Mirror {
    /// The screen may have changed since it was last requested.
    pub(crate) dirty: bool,
    /// The screen was requested and has not arrived.
    requested: bool,
    /// The earliest time of the next request or check.
    pub(crate) next: Duration,
    /// The last screen, and the status line that it was painted with; `None` until painted.
    painted: Option<(Value, Option<String>)>,
}

impl Mirror {
    /// When to request or check for a screen next, if one is needed and the session is connected.
    pub(crate) fn poll_timeout(&self, status: Status) -> Option<Duration> {
        ((self.dirty || self.requested) && status == Status::Open).then_some(self.next)
    }
}

impl Viewer<'_> {
    pub(crate) fn begin_snapshot(&mut self, reason: Reason, scope: Scope, missed: Option<Missed>) {
        let skipped = missed.filter(|_| self.painted).map(|missed| {
            let why = if reason == Reason::Epoch { "the session was restarted" } else { "output was skipped" };
            format!("[bowline: {why}, {} bytes not shown]", missed.to.saturating_sub(missed.from))
        });
        self.display.begin_snapshot(scope, skipped.as_deref(), !self.painted);
        self.painted = true;
    }

    /// Switches between showing output as it arrives and, in a window of another size, mirroring the screen.
    pub(crate) fn choose_view(&mut self) {
        let mirrored = self.status_line.is_mirrored(self.display.size());
        match (mirrored, self.mirror.is_some()) {
            (true, false) => {
                self.display.set_muted(true);
                self.mirror = Some(Mirror { dirty: true, requested: false, next: Duration::ZERO, painted: None });
            }
            (false, true) => {
                self.display.set_muted(false);
                self.mirror = None;
                self.link.repaint();
            }
            _ => {}
        }
    }

    /// Paints the mirrored screen if it or the status line changed. After the program has ended, its last screen is
    /// painted at once, without a status line.
    fn show_mirror(&mut self, line: &str) {
        let now = self.clock.now();
        let ended = matches!(self.outcome, Some(Outcome::Exited(_) | Outcome::Lost));
        let Some(mirror) = &mut self.mirror else { return };
        let due = mirror.poll_timeout(self.reconnector.status()).is_some_and(|at| at <= now);
        let mut arrived = None;
        if ended && mirror.dirty {
            mirror.dirty = false;
            arrived = self.dial.last_screen();
        } else if due {
            mirror.next = now + MIRROR_EVERY;
            if !mirror.requested {
                self.dial.request_screen();
                (mirror.requested, mirror.dirty) = (true, false);
            }
            if let Some(screen) = self.dial.take_screen() {
                mirror.requested = false;
                // If the screen could not be fetched, request it again.
                mirror.dirty |= screen.is_none();
                arrived = screen;
            }
        }
        if let Some(screen) = arrived {
            mirror.painted = Some((screen, None));
        }
        let line = if ended { "" } else { line };
        if let Some((screen, shown)) = mirror.painted.as_mut().filter(|(_, shown)| shown.as_deref() != Some(line)) {
            *shown = Some(line.to_owned());
            self.display.mirror(screen, line);
        }
    }

    /// Shows or removes the status line.
    pub(crate) fn show_line(&mut self) {
        if self.mirror.is_some() {
            let line = self.status_line.poll_line(self.display.size(), self.clock.now()).unwrap_or_default();
            return self.show_mirror(&line);
        }
        match self.status_line.poll_line(self.display.size(), self.clock.now()).filter(|_| !self.awaiting_exit) {
            Some(line) => self.display.cover(&line),
            None => {
                if self.display.uncover() {
                    self.link.repaint();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_sets_no_timer_while_disconnected() {
        let at = Duration::from_secs(1);
        let mut mirror = Mirror { dirty: true, requested: false, next: at, painted: None };
        assert_eq!(mirror.poll_timeout(Status::Open), Some(at));
        assert_eq!(mirror.poll_timeout(Status::Reconnecting { attempt: 1, at }), None);
        assert_eq!(mirror.poll_timeout(Status::Offline), None);
        mirror.dirty = false;
        assert_eq!(mirror.poll_timeout(Status::Open), None);
    }
}
