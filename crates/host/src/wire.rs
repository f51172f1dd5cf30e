//! Encodes the link's messages as frames for a unix socket.

use bowline_proto::Offset;
use bowline_proto::frame::{self, Binary};
use bowline_proto::link::Transmit;
use bowline_proto::message::ServerMessage;

use crate::log::{Log, ReadOutcome};

/// The result of [`put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The frame was appended.
    Queued,
    /// The frame was appended, and is the last: close the connection after it.
    Last,
    /// The log could not be read; nothing was appended.
    Unreadable,
}

/// Appends a message of the link to `frames`. Output is copied from `newest`, which is in memory, if that has all of
/// it, and otherwise read from the log.
pub fn put<'a>(
    frames: &mut Vec<u8>,
    transmit: Transmit,
    log: &Log,
    newest: impl FnOnce(Offset, usize) -> Option<&'a [u8]>,
) -> PutOutcome {
    match transmit {
        Transmit::Text(message) => put_message(frames, &message),
        Transmit::SnapshotPart(part) => frame::put_binary(frames, &Binary::Snapshot(&part)),
        Transmit::Output { from, len } => {
            let start = frames.len();
            frame::put_output_header(frames, from, len);
            if let Some(bytes) = newest(from, len) {
                frames.extend_from_slice(bytes);
                return PutOutcome::Queued;
            }
            let at = frames.len();
            frames.resize(at + len, 0);
            if !matches!(log.read(from, &mut frames[at..]), Ok(ReadOutcome::Data(n)) if n == len) {
                frames.truncate(start);
                return PutOutcome::Unreadable;
            }
        }
        Transmit::Close { code, reason } => {
            put_message(frames, &ServerMessage::Close { code, reason });
            return PutOutcome::Last;
        }
    }
    PutOutcome::Queued
}

fn put_message(frames: &mut Vec<u8>, message: &ServerMessage) {
    frame::put_text(frames, &serde_json::to_string(message).unwrap_or_default());
}
