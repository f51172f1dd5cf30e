//! From what the link wants sent to bytes on a unix socket.

use bowline_proto::frame::{self, Binary};
use bowline_proto::link::Transmit;
use bowline_proto::message::ServerMessage;

use crate::log::{Log, Read};

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

/// Appends what the link wants sent to `frames`, with output read straight from the log.
pub(crate) fn put(frames: &mut Vec<u8>, transmit: Transmit, log: &Log) -> Put {
    match transmit {
        Transmit::Text(message) => put_message(frames, &message),
        Transmit::SnapshotPart(part) => frame::put_binary(frames, &Binary::Snapshot(&part)),
        Transmit::Output { from, len } => {
            let start = frames.len();
            frame::put_output_header(frames, from, len);
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
