//! Paces changes of size: while they come fast, only the latest one is applied.
//!
//! Each costs the emulator a reflow of the whole scrollback, the program a SIGWINCH, and the journal a line.

use std::time::{Duration, Instant};

use bowline_proto::size::Size;

/// The shortest time between two changes of size. The latest request waits, and replaces those before it.
const RESIZE_EVERY: Duration = Duration::from_millis(100);

/// The size that the terminal is to have.
#[derive(Debug, Default)]
pub(super) struct Resizes {
    wanted: Option<Size>,
    /// When the next change may be applied.
    not_before: Option<Instant>,
}

impl Resizes {
    pub(super) fn handle_request(&mut self, size: Size) {
        self.wanted = Some(size);
    }

    /// Takes the size to apply now. While the screen is still `busy` with the last one there is none, so that no queue
    /// of reflows delays viewers.
    pub(super) fn take_due(&mut self, busy: bool, now: Instant) -> Option<Size> {
        if busy || self.not_before.is_some_and(|at| now < at) {
            return None;
        }
        let size = self.wanted.take()?;
        self.not_before = Some(now + RESIZE_EVERY);
        Some(size)
    }

    /// When to call [`Resizes::take_due`] again. If the screen is busy, that is when it reports that it is not.
    pub(super) fn poll_timeout(&self, busy: bool) -> Option<Instant> {
        self.not_before.filter(|_| self.wanted.is_some() && !busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cols: u32) -> Size {
        Size::new(cols, 24).unwrap()
    }

    #[test]
    fn r23_of_a_flood_of_resizes_the_first_and_the_latest_are_applied() {
        let (mut resizes, start) = (Resizes::default(), Instant::now());
        resizes.handle_request(size(80));
        assert_eq!(resizes.take_due(false, start), Some(size(80)), "one resize is applied at once");
        assert_eq!(resizes.poll_timeout(false), None);
        for cols in 81..=200 {
            resizes.handle_request(size(cols));
            assert_eq!(resizes.take_due(false, start), None);
        }
        let due = start + RESIZE_EVERY;
        assert_eq!(resizes.poll_timeout(false), Some(due));
        assert_eq!(resizes.take_due(false, due), Some(size(200)));
        assert_eq!(resizes.take_due(false, due + RESIZE_EVERY), None);
    }

    #[test]
    fn a_resize_waits_until_the_screen_has_the_last_one() {
        let (mut resizes, start) = (Resizes::default(), Instant::now());
        resizes.handle_request(size(80));
        assert_eq!((resizes.take_due(true, start), resizes.poll_timeout(true)), (None, None));
        assert_eq!(resizes.take_due(false, start), Some(size(80)));
    }
}
