//! One connection to a session's socket: sends the hello and reads messages.

use std::io;

use bowline_proto::Offset;
use bowline_proto::frame::{self, HEADER, Header};
use bowline_proto::ids::Epoch;
use bowline_proto::message::{ClientMessage, Reason, Verdict};
use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use tokio::net::UnixStream;

use super::event::EventText;
use crate::relay;

/// A connection to a session process, or to the files of an ended session.
pub(super) struct Connection {
    stream: UnixStream,
    buf: BytesMut,
    /// If the session has ended: its epoch when that was found out.
    pub(super) ended_epoch: Option<Epoch>,
    /// The end of the journal in `attached`; `None` before it.
    pub(super) attached_end: Option<Offset>,
    /// The session has sent all its events and `exit`.
    pub(super) exited: bool,
}

/// A message of the session, other than an event, as far as it matters here.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SessionMessage {
    Attached(Attached),
    Exit {
        offset: Offset,
    },
    Ping {
        n: u64,
    },
    Close {
        code: u16,
        reason: String,
    },
    #[serde(other)]
    Other,
}

/// What counts of the answer to the hello.
#[derive(Debug, Deserialize)]
pub(super) struct Attached {
    pub(super) epoch: Epoch,
    pub(super) offset: Offset,
    pub(super) verdict: Verdict,
    #[serde(default)]
    pub(super) reason: Option<Reason>,
    pub(super) session: AttachedSession,
}

#[derive(Debug, Deserialize)]
pub(super) struct AttachedSession {
    /// The end of the journal.
    pub(super) offset: Offset,
}

impl Connection {
    /// `ended_epoch` is set for the files of an ended session.
    pub(super) fn new(stream: UnixStream, ended_epoch: Option<Epoch>) -> Connection {
        Connection { stream, buf: BytesMut::new(), ended_epoch, attached_end: None, exited: false }
    }

    pub(super) async fn send(&self, message: &ClientMessage) -> io::Result<()> {
        let mut wire = Vec::new();
        frame::put_text(&mut wire, &serde_json::to_string(message)?);
        relay::send(&self.stream, &wire).await
    }

    /// Waits for bytes. The end of the connection is an error.
    pub(super) async fn receive(&mut self) -> io::Result<()> {
        match relay::receive(&self.stream, &mut self.buf).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Takes the first complete text off what was received.
    pub(super) fn take_text(&mut self) -> Result<Option<Bytes>, String> {
        let header = Header::decode(&self.buf).map_err(|why| format!("an invalid frame: {why}"))?;
        let Some(Header { text, len }) = header else { return Ok(None) };
        if self.buf.len() < HEADER + len {
            return Ok(None);
        }
        self.buf.advance(HEADER);
        let payload = self.buf.split_to(len).freeze();
        if text { Ok(Some(payload)) } else { Err("a binary message".to_owned()) }
    }
}

impl SessionMessage {
    /// `None` for an event.
    pub(super) fn parse(text: &str) -> Result<Option<SessionMessage>, String> {
        if EventText::is_event(text) {
            return Ok(None);
        }
        serde_json::from_str(text).map(Some).map_err(|why| format!("a malformed message: {why}"))
    }
}
