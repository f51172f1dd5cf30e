//! What was typed and is not known to be written: sent once, resent from where the server says, or given back.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::Offset;
use crate::config::{INPUT_FRAME, INPUT_WINDOW};

/// Why typed bytes were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// No more can be kept until the server takes some; offer them again later.
    #[error("too much input is waiting to be sent")]
    Full,
    /// This viewer may not type.
    #[error("this viewer may not type")]
    ReadOnly,
    /// The session is over.
    #[error("the session is over")]
    Ended,
}

/// Typed bytes that are not sent by themselves: the user decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// The bytes, oldest first.
    pub bytes: Bytes,
    /// This many of them, from the front, had been sent, and may or may not have been typed.
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
    /// What the user has not decided about.
    unsent: BytesMut,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Outbox {
        Outbox { limit, acked: 0, kept: BytesMut::new(), next: 0, high: 0, waiting: None, unsent: BytesMut::new() }
    }

    /// Keeps as many of the bytes as fit.
    pub(super) fn push(&mut self, bytes: &[u8]) -> usize {
        let room = self.limit.saturating_sub(self.kept.len() + self.unsent.len());
        let taken = bytes.len().min(room);
        self.kept.extend_from_slice(&bytes[..taken]);
        taken
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
    pub(super) fn resume(&mut self, input: Option<Offset>, hold: bool) -> Option<Unsent> {
        match input {
            Some(input) if (self.acked..=self.high).contains(&input) => {
                self.next = input;
                // What the server does not have, it has not typed.
                let unsent = if hold { self.take_from(input) } else { None };
                unsent.map(|unsent| Unsent { doubtful: 0, ..unsent })
            }
            // It does not know this stream: nobody can say which of the bytes in flight were typed.
            input => {
                let unsent = if hold || self.high > self.acked { self.take_all() } else { None };
                let start = input.unwrap_or(0);
                (self.acked, self.next, self.high) = (start, start, start);
                unsent
            }
        }
    }

    /// Takes back everything from `offset` on.
    pub(super) fn take_from(&mut self, offset: Offset) -> Option<Unsent> {
        let offset = offset.max(self.acked);
        let bytes = self.kept.split_off((offset - self.acked) as usize);
        let doubtful = self.high.saturating_sub(offset) as usize;
        self.high = self.high.min(offset);
        self.next = self.next.min(offset);
        if bytes.is_empty() {
            return None;
        }
        self.unsent.extend_from_slice(&bytes);
        Some(Unsent { bytes: bytes.freeze(), doubtful })
    }

    /// Everything that is not known to be written.
    pub(super) fn take_all(&mut self) -> Option<Unsent> {
        self.take_from(self.acked)
    }

    /// The user wants what was unsent to be typed now.
    pub(super) fn send_unsent(&mut self) {
        let unsent = std::mem::take(&mut self.unsent);
        self.kept.extend_from_slice(&unsent);
    }

    /// The user does not.
    pub(super) fn discard_unsent(&mut self) {
        self.unsent.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}
