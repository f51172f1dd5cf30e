//! What was typed and is not known to be written: sent once, resent from where the server says, or given back.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::Offset;
use crate::config::{INPUT_FRAME, INPUT_WINDOW};

/// Why typed bytes were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// There is no room for all of them until the server takes some, or the user decides about what is unsent.
    #[error("too much input is waiting to be sent")]
    Full,
    /// This viewer may not type.
    #[error("this viewer may not type")]
    ReadOnly,
    /// The session is over.
    #[error("the session is over")]
    Ended,
}

/// Everything typed that is not sent by itself: the user decides about all of it at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// The bytes, oldest first.
    pub bytes: Bytes,
    /// This many of them had been sent, and may or may not have been typed.
    pub doubtful: usize,
}

/// A client's input stream from the first byte that is not known to be written.
#[derive(Debug)]
pub(super) struct Outbox {
    limit: usize,
    /// Written by the server.
    acked: Offset,
    /// From `acked` on.
    kept: BytesMut,
    /// The next byte to send on this connection.
    next: Offset,
    /// One past the last byte that was ever sent.
    high: Offset,
    /// Since when the oldest byte in flight waits.
    waiting: Option<Duration>,
    /// Reported unsent, and not decided about.
    reported: Unsent,
    /// To be reported, oldest first, none empty: a decision is never about these, for the user has not seen them.
    unreported: VecDeque<Unsent>,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Outbox {
        Outbox {
            limit,
            acked: 0,
            kept: BytesMut::new(),
            next: 0,
            high: 0,
            waiting: None,
            reported: Unsent::default(),
            unreported: VecDeque::new(),
        }
    }

    /// Keeps the bytes. False when they do not all fit; then none is kept, so that no tail is sent without its head.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.room();
        if fits {
            self.kept.extend_from_slice(bytes);
        }
        fits
    }

    /// How many bytes are not known to be written.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.kept.len()
    }

    /// How many more bytes can be kept.
    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.kept.len() + self.undecided())
    }

    fn undecided(&self) -> usize {
        self.reported.bytes.len() + self.unreported.iter().map(|unsent| unsent.bytes.len()).sum::<usize>()
    }

    fn end(&self) -> Offset {
        self.acked + self.kept.len() as u64
    }

    /// The next frame to send.
    pub(super) fn pop(&mut self, now: Duration) -> Option<(Offset, Bytes)> {
        let room = INPUT_WINDOW.saturating_sub(self.next - self.acked);
        let len = (self.end() - self.next).min(room).min(INPUT_FRAME as u64) as usize;
        if len == 0 {
            return None;
        }
        let (at, start) = (self.next, (self.next - self.acked) as usize);
        self.next += len as u64;
        self.high = self.high.max(self.next);
        self.waiting.get_or_insert(now);
        Some((at, Bytes::copy_from_slice(&self.kept[start..start + len])))
    }

    /// The server has written up to here. False when that was never sent.
    pub(super) fn ack(&mut self, offset: Offset, now: Duration) -> bool {
        if offset > self.high {
            return false;
        }
        if offset > self.acked {
            self.kept.advance((offset - self.acked) as usize);
            self.acked = offset;
            self.next = self.next.max(offset);
            self.waiting = (self.next > offset).then_some(now);
        }
        true
    }

    /// Since when something in flight waits for its ack.
    pub(super) fn waiting(&self) -> Option<Duration> {
        self.waiting
    }

    /// The connection is gone: what was in flight may be sent again.
    pub(super) fn disconnected(&mut self) {
        self.waiting = None;
    }

    /// A new connection, where the server wants the byte `input` next. With `hold`, what it does not have is not sent.
    pub(super) fn resume(&mut self, input: Option<Offset>, hold: bool) {
        match input {
            Some(input) if (self.acked..=self.high).contains(&input) => {
                self.next = input;
                if hold {
                    // What the server does not have, it has not typed.
                    self.high = input;
                    self.take_from(input);
                }
            }
            // It does not know this stream: nobody can say which of the bytes in flight were typed.
            input => {
                if hold || self.high > self.acked {
                    self.take_all();
                }
                let start = input.unwrap_or(0);
                (self.acked, self.next, self.high) = (start, start, start);
            }
        }
    }

    /// Takes back everything from `offset` on, to be reported.
    fn take_from(&mut self, offset: Offset) {
        let bytes = self.kept.split_off((offset - self.acked) as usize).freeze();
        let doubtful = self.high.saturating_sub(offset) as usize;
        self.high = self.high.min(offset);
        self.next = self.next.min(offset);
        if !bytes.is_empty() {
            self.unreported.push_back(Unsent { bytes, doubtful });
        }
    }

    /// Takes back everything that is not known to be written.
    pub(super) fn take_all(&mut self) {
        self.take_from(self.acked);
    }

    /// All that is to be decided about, if there is more of it than was reported before.
    pub(super) fn poll_unsent(&mut self) -> Option<Unsent> {
        let more = self.unreported.pop_front()?;
        self.reported.bytes = [&self.reported.bytes[..], &more.bytes].concat().into();
        self.reported.doubtful += more.doubtful;
        Some(self.reported.clone())
    }

    /// The user wants what was reported to be typed now.
    pub(super) fn send_unsent(&mut self) {
        let unsent = std::mem::take(&mut self.reported);
        self.kept.extend_from_slice(&unsent.bytes);
    }

    /// The user does not.
    pub(super) fn discard_unsent(&mut self) {
        self.reported = Unsent::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn r16_a_decision_is_about_what_was_reported_and_nothing_else() {
        let mut outbox = Outbox::new(100);
        outbox.push(b"ab");
        outbox.resume(Some(0), true);
        assert_eq!(outbox.poll_unsent().map(|unsent| unsent.bytes), Some("ab".into()));
        outbox.push(b"cd");
        outbox.resume(Some(0), true);
        // "ab" is on the screen, "cd" is not yet.
        outbox.send_unsent();
        assert_eq!(outbox.pop(NOW), Some((0, "ab".into())));
        assert_eq!(outbox.poll_unsent().map(|unsent| unsent.bytes), Some("cd".into()));
        outbox.discard_unsent();
        assert_eq!((outbox.pop(NOW), outbox.poll_unsent(), outbox.undecided()), (None, None, 0));
    }

    #[test]
    fn r16_a_later_report_has_the_earlier_bytes_too_and_all_of_them_count() {
        let mut outbox = Outbox::new(4);
        outbox.push(b"ab");
        outbox.resume(Some(0), true);
        assert_eq!(outbox.poll_unsent(), Some(Unsent { bytes: "ab".into(), doubtful: 0 }));
        assert!(!outbox.push(b"cde"), "what waits for a decision takes room");
        assert_eq!((outbox.pop(NOW), outbox.room()), (None, 2), "what does not fit whole is refused whole");
        assert!(outbox.push(b"cd"));
        assert_eq!(outbox.pop(NOW), Some((0, "cd".into())));
        outbox.take_all();
        assert_eq!(outbox.poll_unsent(), Some(Unsent { bytes: "abcd".into(), doubtful: 2 }));
    }
}
