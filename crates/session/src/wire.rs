//! From what the link wants sent to bytes on a unix socket.

use bowline_proto::Offset;
use bowline_proto::frame::{self, Binary};
use bowline_proto::link::Transmit;
use bowline_proto::message::ServerMessage;

use crate::log::{Log, Read, SLACK};

/// The newest output, still in the buffer it was read into: most viewers want just that, and are spared a read of the log.
#[derive(Debug)]
pub(crate) struct Newest {
    /// Where it begins.
    from: Offset,
    len: usize,
    buf: Vec<u8>,
}

impl Newest {
    /// Nothing yet, with room for as much as one append of the log takes.
    pub(crate) fn new(at: Offset) -> Newest {
        Newest { from: at, len: 0, buf: vec![0; SLACK as usize] }
    }

    /// Room for the next output, which is [`Newest::filled`] afterwards.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.len = 0;
        &mut self.buf
    }

    /// The room now begins with output from `from`.
    pub(crate) fn filled(&mut self, from: Offset, len: usize) {
        (self.from, self.len) = (from, len);
    }

    /// Whether it has all of this output.
    pub(crate) fn has(&self, from: Offset, len: usize) -> bool {
        self.get(from, len).is_some()
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// One past its last byte.
    pub(crate) fn end(&self) -> Offset {
        self.from + self.len as u64
    }

    fn get(&self, from: Offset, len: usize) -> Option<&[u8]> {
        let at = from.checked_sub(self.from)? as usize;
        self.buf[..self.len].get(at..at.checked_add(len)?)
    }
}

/// What became of something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is in the buffer.
    Queued,
    /// It was the last: the connection is to be closed after it.
    Last,
    /// The log could not be read; nothing was added.
    Unreadable,
}

/// Appends what the link wants sent to `frames`, with output from memory or straight from the log.
pub(crate) fn put(frames: &mut Vec<u8>, transmit: Transmit, log: &Log, newest: Option<&Newest>) -> Put {
    match transmit {
        Transmit::Text(message) => put_message(frames, &message),
        Transmit::SnapshotPart(part) => frame::put_binary(frames, &Binary::Snapshot(&part)),
        Transmit::Output { from, len } => {
            let start = frames.len();
            frame::put_output_header(frames, from, len);
            if let Some(bytes) = newest.and_then(|newest| newest.get(from, len)) {
                frames.extend_from_slice(bytes);
                return Put::Queued;
            }
            let at = frames.len();
            frames.resize(at + len, 0);
            if !matches!(log.read(from, &mut frames[at..]), Ok(Read::Data(n)) if n == len) {
                frames.truncate(start);
                return Put::Unreadable;
            }
        }
        Transmit::Close { code, reason } => {
            put_message(frames, &ServerMessage::Close { code, reason });
            return Put::Last;
        }
    }
    Put::Queued
}

fn put_message(frames: &mut Vec<u8>, message: &ServerMessage) {
    frame::put_text(frames, &serde_json::to_string(message).unwrap_or_default());
}
