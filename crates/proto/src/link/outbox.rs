//! The bytes that a client typed and that the server has not confirmed as written.
//!
//! Each byte is sent once, resent from the offset that the server expects, or reported unsent.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::Offset;
use crate::config::{INPUT_FRAME, INPUT_WINDOW};

/// Why input or a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// There is no room until the server confirms earlier bytes or commands, or the user decides about unsent bytes.
    #[error("too much input is waiting to be sent")]
    Full,
    #[error("this viewer is read-only")]
    ReadOnly,
    #[error("the session has ended")]
    Ended,
}

/// All typed bytes that are not sent automatically. The user sends or discards them together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// Oldest first.
    pub bytes: Bytes,
    /// How many of the bytes were sent once without a confirmation, so the program may have read them.
    pub doubtful: usize,
}

/// A client's input, from the first byte that the server has not confirmed as written.
#[derive(Debug)]
pub(super) struct Outbox {
    limit: usize,
    /// The server has written everything before this offset.
    acked: Offset,
    /// The bytes from `acked` on.
    buffer: BytesMut,
    /// The next byte to send on this connection.
    next: Offset,
    /// One past the last byte ever sent.
    max_sent: Offset,
    /// Since when the oldest byte in flight has been unacknowledged.
    unacked_since: Option<Duration>,
    /// Reported unsent; the user has not decided yet.
    reported: Unsent,
    /// To be reported, oldest first, none empty. A decision never applies to these, because the user has not seen
    /// them.
    unreported: VecDeque<Unsent>,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Outbox {
        Outbox {
            limit,
            acked: 0,
            buffer: BytesMut::new(),
            next: 0,
            max_sent: 0,
            unacked_since: None,
            reported: Unsent::default(),
            unreported: VecDeque::new(),
        }
    }

    /// Adds all the bytes, or returns false and adds none, so that no tail is sent without its head.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.room();
        if fits {
            self.buffer.extend_from_slice(bytes);
        }
        fits
    }

    /// The number of bytes that are not confirmed; unsent bytes do not count.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// How many more bytes fit.
    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.buffer.len() + self.undecided())
    }

    fn undecided(&self) -> usize {
        self.reported.bytes.len() + self.unreported.iter().map(|unsent| unsent.bytes.len()).sum::<usize>()
    }

    fn end(&self) -> Offset {
        self.acked + self.buffer.len() as u64
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
        self.max_sent = self.max_sent.max(self.next);
        self.unacked_since.get_or_insert(now);
        Some((at, Bytes::copy_from_slice(&self.buffer[start..start + len])))
    }

    /// The server has written everything before `offset`. Returns false if that much was never sent.
    pub(super) fn handle_ack(&mut self, offset: Offset, now: Duration) -> bool {
        if offset > self.max_sent {
            return false;
        }
        if offset > self.acked {
            self.buffer.advance((offset - self.acked) as usize);
            self.acked = offset;
            self.next = self.next.max(offset);
            self.unacked_since = (self.next > offset).then_some(now);
        }
        true
    }

    /// Since when the oldest byte in flight has been unacknowledged.
    pub(super) fn unacked_since(&self) -> Option<Duration> {
        self.unacked_since
    }

    pub(super) fn handle_disconnected(&mut self) {
        self.unacked_since = None;
    }

    /// Continues on a new connection, on which the server expects `input` next. With `hold`, the bytes that the server
    /// does not have are reported unsent instead of sent.
    pub(super) fn resume(&mut self, input: Option<Offset>, hold: bool) {
        match input {
            Some(input) if (self.acked..=self.max_sent).contains(&input) => {
                self.next = input;
                if hold {
                    // The server did not receive these bytes, so none of them is doubtful.
                    self.max_sent = input;
                    self.withdraw_from(input);
                }
            }
            // The server has forgotten this client: it is unknown which of the bytes in flight were written.
            input => {
                if hold || self.max_sent > self.acked {
                    self.withdraw_all();
                }
                let start = input.unwrap_or(0);
                (self.acked, self.next, self.max_sent) = (start, start, start);
            }
        }
    }

    /// Withdraws everything from `offset` on, to be reported unsent.
    fn withdraw_from(&mut self, offset: Offset) {
        let bytes = self.buffer.split_off((offset - self.acked) as usize).freeze();
        let doubtful = self.max_sent.saturating_sub(offset) as usize;
        self.max_sent = self.max_sent.min(offset);
        self.next = self.next.min(offset);
        if !bytes.is_empty() {
            self.unreported.push_back(Unsent { bytes, doubtful });
        }
    }

    /// Withdraws everything that is not confirmed, to be reported unsent.
    pub(super) fn withdraw_all(&mut self) {
        self.withdraw_from(self.acked);
    }

    /// All unsent bytes, if there are more than were reported before.
    pub(super) fn poll_unsent(&mut self) -> Option<Unsent> {
        let more = self.unreported.pop_front()?;
        self.reported.bytes = [&self.reported.bytes[..], &more.bytes].concat().into();
        self.reported.doubtful += more.doubtful;
        Some(self.reported.clone())
    }

    /// The user wants the reported bytes to be sent.
    pub(super) fn send_unsent(&mut self) {
        let unsent = std::mem::take(&mut self.reported);
        self.buffer.extend_from_slice(&unsent.bytes);
    }

    /// The user discards the reported bytes.
    pub(super) fn discard_unsent(&mut self) {
        self.reported = Unsent::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn r16_a_decision_applies_only_to_the_bytes_that_were_reported() {
        let mut outbox = Outbox::new(100);
        outbox.push(b"ab");
        outbox.resume(Some(0), true);
        assert_eq!(outbox.poll_unsent().map(|unsent| unsent.bytes), Some("ab".into()));
        outbox.push(b"cd");
        outbox.resume(Some(0), true);
        // The user has seen "ab", and not yet "cd".
        outbox.send_unsent();
        assert_eq!(outbox.pop(NOW), Some((0, "ab".into())));
        assert_eq!(outbox.poll_unsent().map(|unsent| unsent.bytes), Some("cd".into()));
        outbox.discard_unsent();
        assert_eq!((outbox.pop(NOW), outbox.poll_unsent(), outbox.undecided()), (None, None, 0));
    }

    #[test]
    fn r16_a_later_report_includes_the_earlier_bytes_and_all_of_them_take_room() {
        let mut outbox = Outbox::new(4);
        outbox.push(b"ab");
        outbox.resume(Some(0), true);
        assert_eq!(outbox.poll_unsent(), Some(Unsent { bytes: "ab".into(), doubtful: 0 }));
        assert!(!outbox.push(b"cde"), "undecided bytes take room");
        assert_eq!((outbox.pop(NOW), outbox.room()), (None, 2), "input that does not fit is refused as a whole");
        assert!(outbox.push(b"cd"));
        assert_eq!(outbox.pop(NOW), Some((0, "cd".into())));
        outbox.withdraw_all();
        assert_eq!(outbox.poll_unsent(), Some(Unsent { bytes: "abcd".into(), doubtful: 2 }));
    }
}
