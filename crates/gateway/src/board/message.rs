//! A message of the event stream in its encoded form.

use bowline_proto::board::BoardMessage;
use bytes::Bytes;

/// A message as it is sent, which all subscribers share: an event for SSE, whose data is a WebSocket's text.
#[derive(Clone, Debug)]
pub(crate) struct EncodedMessage(Bytes);

const BEFORE_DATA: &[u8] = b"data: ";
const AFTER_DATA: &[u8] = b"\n\n";

impl EncodedMessage {
    pub(crate) fn new(message: &BoardMessage) -> EncodedMessage {
        // JSON without line breaks is one line of data.
        let json = serde_json::to_vec(message).unwrap_or_default();
        EncodedMessage([BEFORE_DATA, &json, AFTER_DATA].concat().into())
    }

    /// A message whose JSON is in several parts.
    pub(crate) fn from_parts(parts: &[&str]) -> EncodedMessage {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut event = Vec::with_capacity(BEFORE_DATA.len() + len + AFTER_DATA.len());
        event.extend_from_slice(BEFORE_DATA);
        for part in parts {
            // JSON has line breaks only between its tokens, if at all; in an event they would end the data.
            event.extend(part.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        }
        event.extend_from_slice(AFTER_DATA);
        EncodedMessage(event.into())
    }

    pub(crate) fn sse_event(&self) -> Bytes {
        self.0.clone()
    }

    pub(crate) fn json(&self) -> Bytes {
        self.0.slice(BEFORE_DATA.len()..self.0.len() - AFTER_DATA.len())
    }
}
