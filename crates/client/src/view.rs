//! What is to be seen: the session's output as it comes, pictures of a screen of another size, and lines of our own.

use std::time::Duration;

use bowline_proto::link::Status;
use bowline_proto::message::{Missed, Reason, Scope};
use serde_json::Value;

use crate::attach::Outcome;
use crate::viewer::Viewer;

/// The shortest time between two paintings of a screen of another size.
const MIRROR_EVERY: Duration = Duration::from_millis(100);

/// The painting of a screen of another size.
pub(crate) struct Mirror {
    /// Something changed since the screen was last asked for.
    pub(crate) dirty: bool,
    /// The screen has been asked for, and has not come.
    asked: bool,
    /// Not before this.
    pub(crate) next: Duration,
    /// The last picture, and the line that it was painted with, once it was.
    painted: Option<(Value, Option<String>)>,
}

impl Mirror {
    /// When to look next, if there is something to paint and a session to ask for it.
    pub(crate) fn poll_timeout(&self, status: Status) -> Option<Duration> {
        ((self.dirty || self.asked) && status == Status::Open).then_some(self.next)
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

    /// Shows the session's output as it comes, or, in a window of another size, pictures of its screen.
    pub(crate) fn choose_view(&mut self) {
        let foreign = self.lines.is_foreign(self.display.size());
        match (foreign, self.mirror.is_some()) {
            (true, false) => {
                self.display.set_muted(true);
                self.mirror = Some(Mirror { dirty: true, asked: false, next: Duration::ZERO, painted: None });
            }
            (false, true) => {
                self.display.set_muted(false);
                self.mirror = None;
                self.link.repaint();
            }
            _ => {}
        }
    }

    /// Paints the screen of another size, if it or the line below it changed. The last picture of a program that has
    /// ended waits for nothing, and has no line below it.
    fn show_mirror(&mut self, line: &str) {
        let now = self.clock.now();
        let ended = matches!(self.outcome, Some(Outcome::Exited(_) | Outcome::Lost));
        let Some(mirror) = &mut self.mirror else { return };
        let due = mirror.poll_timeout(self.reconnector.status()).is_some_and(|at| at <= now);
        let mut came = None;
        if ended && mirror.dirty {
            mirror.dirty = false;
            came = self.dial.last_screen();
        } else if due {
            mirror.next = now + MIRROR_EVERY;
            if !mirror.asked {
                self.dial.ask_screen();
                (mirror.asked, mirror.dirty) = (true, false);
            }
            if let Some(screen) = self.dial.take_screen() {
                mirror.asked = false;
                // A screen that cannot be had now is asked for again.
                mirror.dirty |= screen.is_none();
                came = screen;
            }
        }
        if let Some(screen) = came {
            mirror.painted = Some((screen, None));
        }
        let line = if ended { "" } else { line };
        if let Some((screen, below)) = mirror.painted.as_mut().filter(|(_, below)| below.as_deref() != Some(line)) {
            *below = Some(line.to_owned());
            self.display.mirror(screen, line);
        }
    }

    /// Puts the line that is wanted on the bottom row, or takes away the one that is not.
    pub(crate) fn show_line(&mut self) {
        if self.mirror.is_some() {
            let line = self.lines.wanted(self.display.size(), self.clock.now()).unwrap_or_default();
            return self.show_mirror(&line);
        }
        match self.lines.wanted(self.display.size(), self.clock.now()).filter(|_| !self.asking) {
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
    fn a_mirror_wakes_nobody_while_there_is_no_session_to_ask() {
        let at = Duration::from_secs(1);
        let mut mirror = Mirror { dirty: true, asked: false, next: at, painted: None };
        assert_eq!(mirror.poll_timeout(Status::Open), Some(at));
        assert_eq!(mirror.poll_timeout(Status::Reconnecting { attempt: 1, at }), None);
        assert_eq!(mirror.poll_timeout(Status::Offline), None);
        mirror.dirty = false;
        assert_eq!(mirror.poll_timeout(Status::Open), None);
    }
}
