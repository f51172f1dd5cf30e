//! What was typed and is not with the link: what waits for room there, and what waits for the user's word.

use bowline_proto::link::Unsent;

/// Typed bytes that wait because the link takes no more. Past it, keys are left in the terminal's own queue while there
/// is a connection; without one, where the detach key must be heard, they are counted as lost, and the user is told.
const TYPED_AHEAD: usize = 1 << 20;
/// Typed bytes that wait for a decision. What is beyond is counted as lost.
const HELD: usize = 8 << 20;

/// Typed bytes on their way to the link.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    rest: Vec<u8>,
    held: Vec<u8>,
    doubtful: usize,
    lost: usize,
}

impl Backlog {
    /// Keys were typed; `away` when there is no connection.
    pub(crate) fn push(&mut self, bytes: &[u8], away: bool) {
        if away && self.is_full() {
            self.lost += bytes.len();
        } else {
            self.rest.extend_from_slice(bytes);
        }
    }

    /// What waits for room, oldest first.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rest.len() >= TYPED_AHEAD
    }

    /// The link took this many of the rest.
    pub(crate) fn taken(&mut self, count: usize) {
        self.rest.drain(..count);
    }

    /// Nobody takes the rest any more, and the user knows.
    pub(crate) fn forget_rest(&mut self) {
        self.rest.clear();
    }

    /// The link gave this back: it waits for a decision, and so does all that was typed after it. The tail of a paste must
    /// not go where its head did not.
    pub(crate) fn hold(&mut self, unsent: &Unsent) {
        for bytes in [&unsent.bytes[..], &self.rest] {
            let kept = bytes.len().min(HELD.saturating_sub(self.held.len()));
            self.held.extend_from_slice(&bytes[..kept]);
            self.lost += bytes.len() - kept;
        }
        self.doubtful += unsent.doubtful;
        self.rest.clear();
    }

    /// What waits for a decision.
    pub(crate) fn held(&self) -> &[u8] {
        &self.held
    }

    /// This many of what is held had been sent, and may have been typed.
    pub(crate) fn doubtful(&self) -> usize {
        self.doubtful
    }

    /// This many did not fit anywhere.
    pub(crate) fn lost(&self) -> usize {
        self.lost
    }

    /// The user wants what is held to be typed now.
    pub(crate) fn send(&mut self) {
        self.rest.append(&mut self.held);
        self.discard();
    }

    /// The user does not.
    pub(crate) fn discard(&mut self) {
        self.held.clear();
        (self.doubtful, self.lost) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsent(bytes: &'static [u8], doubtful: usize) -> Unsent {
        Unsent { bytes: bytes.into(), doubtful }
    }

    #[test]
    fn r16_what_was_typed_after_unsent_keys_waits_with_them() {
        let mut backlog = Backlog::default();
        backlog.push(b"the tail", true);
        backlog.hold(&unsent(b"the head, ", 3));
        assert_eq!((backlog.held(), backlog.doubtful(), backlog.rest()), (&b"the head, the tail"[..], 3, &b""[..]));
        // Keys that are typed now go at once; a second absence adds to what waits.
        backlog.push(b"q", false);
        assert_eq!(backlog.rest(), b"q");
        backlog.taken(1);
        backlog.hold(&unsent(b" and more", 0));
        assert_eq!(backlog.held(), b"the head, the tail and more");
        backlog.send();
        assert_eq!(
            (backlog.rest(), backlog.held(), backlog.doubtful()),
            (&b"the head, the tail and more"[..], &b""[..], 0)
        );
    }

    #[test]
    fn r16_without_a_connection_what_does_not_fit_is_counted() {
        let mut backlog = Backlog::default();
        backlog.push(&[b'x'; TYPED_AHEAD], true);
        backlog.push(b"one more", true);
        assert_eq!((backlog.rest().len(), backlog.lost()), (TYPED_AHEAD, 8));
        // With one, the terminal's queue holds back what follows this read.
        backlog.push(b"one more", false);
        assert_eq!((backlog.rest().len(), backlog.lost()), (TYPED_AHEAD + 8, 8));
        backlog.discard();
        assert_eq!((backlog.rest().len(), backlog.lost()), (TYPED_AHEAD + 8, 0));
    }

    #[test]
    fn r16_what_waits_for_a_decision_is_bounded() {
        let mut backlog = Backlog::default();
        let paste = Unsent { bytes: vec![b'x'; HELD - 1].into(), doubtful: 0 };
        backlog.hold(&paste);
        backlog.hold(&unsent(b"yz", 0));
        assert_eq!((backlog.held().len(), backlog.held().last(), backlog.lost()), (HELD, Some(&b'y'), 1));
    }
}
