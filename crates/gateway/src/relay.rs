//! Relays frames between a WebSocket and a session's socket. Both directions run concurrently, so a Ctrl-C gets
//! through while output floods.
//!
//! There is no buffer in between: while a viewer accepts nothing, nothing is read from its session, whose socket
//! fills up.

use std::io;
use std::time::{Duration, Instant};

use bowline_proto::close;
use bowline_proto::frame::{self, HEADER, Header};
use bowline_proto::message::{ClientMessage, Reason, ServerMessage, Verdict};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::net::UnixStream;
use tokio_websockets::{Error, Message};

use crate::metrics;
use crate::ws::{Pongs, Socket};

/// Bytes read from a session at a time: two full frames.
const READ_SIZE: usize = 64 << 10;

/// Buffer capacity that is kept between messages of the client. A paste may need more for a moment.
const IDLE_CAPACITY: usize = 4 << 10;

/// How an attachment ends.
pub(crate) enum Ending {
    /// The gateway closes with this code and reason.
    Close(u16, String),
    /// The client closed with 1000: it does not reconnect.
    Left,
    /// The client closed with another code: it may reconnect.
    Closed,
    /// The client's connection broke.
    Cut,
    /// The session's connection ended without a close frame.
    Lost,
}

/// The client's first message.
pub(crate) struct Hello {
    pub(crate) text: String,
    /// When it arrived.
    pub(crate) at: Instant,
}

/// Relays until either side ends.
pub(crate) async fn run(socket: &mut Socket, session: &UnixStream, hello: &Hello) -> Ending {
    let (mut sink, mut stream) = socket.split();
    let pongs = Pongs::new();
    let up = async {
        let mut wire = Vec::new();
        frame::put_text(&mut wire, &hello.text);
        loop {
            if send(session, &wire).await.is_err() {
                // The session's last frames are still to be read, so the other direction determines the ending.
                std::future::pending::<()>().await;
            }
            wire.clear();
            wire.shrink_to(IDLE_CAPACITY);
            match stream.next().await {
                Some(Ok(message)) if message.is_close() => return client_close(&message),
                Some(Ok(message)) if message.is_text() => frame::put_payload(&mut wire, true, message.as_payload()),
                Some(Ok(message)) if message.is_binary() => frame::put_payload(&mut wire, false, message.as_payload()),
                Some(Ok(message)) if message.is_ping() => pongs.queued().await,
                Some(Ok(_)) => {}
                Some(Err(Error::Io(_))) | None => return Ending::Cut,
                Some(Err(error)) => {
                    let (code, reason) = close_for(&error);
                    return Ending::Close(code, reason);
                }
            }
        }
    };
    let down = async {
        let mut buf = BytesMut::new();
        loop {
            tokio::select! {
                read = receive(session, &mut buf) => match read {
                    Ok(0) | Err(_) => return Ending::Lost,
                    Ok(read) => metrics::output(read),
                },
                () = pongs.due() => {}
            }
            let last = loop {
                match take_frame(&mut buf, hello.at) {
                    Ok(Some(SessionFrame::Message(message))) => {
                        if sink.feed(message).await.is_err() {
                            return Ending::Cut;
                        }
                    }
                    Ok(Some(SessionFrame::Close(code, reason))) => break Some(Ending::Close(code, reason)),
                    Ok(None) => break None,
                    Err(why) => break Some(Ending::Close(close::INTERNAL, why)),
                }
            };
            // Everything before the session's close frame is sent before the close. The socket itself cuts a
            // connection that accepts nothing for too long.
            match sink.flush().await {
                Ok(()) => pongs.sent(),
                Err(_) => return Ending::Cut,
            }
            if let Some(last) = last {
                return last;
            }
            // Reading from a session that floods never waits, so let other tasks run before its next bytes.
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { ending = up => ending, ending = down => ending }
}

/// Tells the session that its viewer has left for good.
pub(crate) async fn leave(session: &UnixStream) {
    let mut wire = Vec::new();
    frame::put_text(&mut wire, &serde_json::to_string(&ClientMessage::Leave).unwrap_or_default());
    let _ = tokio::time::timeout(Duration::from_secs(1), send(session, &wire)).await;
}

/// The close code and reason for a WebSocket error.
pub(crate) fn close_for(error: &Error) -> (u16, String) {
    match error {
        Error::PayloadTooLong { max_len, .. } => {
            (close::TOO_BIG, format!("the message is larger than the limit of {max_len} bytes"))
        }
        Error::Protocol(tokio_websockets::proto::ProtocolError::InvalidUtf8) => {
            (close::NOT_UTF8, "the text is not UTF-8".to_owned())
        }
        error => (close::PROTOCOL, error.to_string()),
    }
}

fn client_close(message: &Message) -> Ending {
    match message.as_close() {
        Some((code, _)) if u16::from(code) == close::NORMAL => Ending::Left,
        _ => Ending::Closed,
    }
}

pub(crate) async fn send(session: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match session.try_write(bytes) {
            Ok(sent) => bytes.advance(sent),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => session.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for bytes from the session. Frees the buffer while there are none.
pub(crate) async fn receive(session: &UnixStream, buf: &mut BytesMut) -> io::Result<usize> {
    loop {
        buf.reserve(READ_SIZE);
        match session.try_read_buf(buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if buf.is_empty() {
                    *buf = BytesMut::new();
                }
                session.readable().await?;
            }
            read => return read,
        }
    }
}

/// A frame from the session.
enum SessionFrame {
    Message(Message),
    Close(u16, String),
}

/// Takes the first complete frame off the buffer.
fn take_frame(buf: &mut BytesMut, hello_at: Instant) -> Result<Option<SessionFrame>, String> {
    let header = Header::decode(buf).map_err(|why| format!("the session process sent an invalid frame: {why}"))?;
    let Some(Header { text, len }) = header else { return Ok(None) };
    if buf.len() < HEADER + len {
        return Ok(None);
    }
    buf.advance(HEADER);
    let payload: Bytes = buf.split_to(len).freeze();
    if !text {
        return Ok(Some(SessionFrame::Message(Message::binary(payload))));
    }
    if let Some(close) = inspect(&payload, hello_at) {
        return Ok(Some(close));
    }
    Ok(Some(SessionFrame::Message(Message::text(payload))))
}

/// Returns the session's close frame, and counts attaches and lagging snapshots. Other messages are recognised by
/// their type, which comes first, and are not parsed.
fn inspect(payload: &Bytes, hello_at: Instant) -> Option<SessionFrame> {
    let kind = payload.strip_prefix(br#"{"type":""#)?;
    if ![&b"close"[..], b"attached", b"snapshot"].iter().any(|prefix| kind.starts_with(prefix)) {
        return None;
    }
    if kind.starts_with(b"attached") {
        let AttachedVerdict { verdict, reason } = serde_json::from_slice(payload).ok()?;
        metrics::attached(verdict == Verdict::Exact, reason, hello_at.elapsed());
        return None;
    }
    match serde_json::from_slice(payload).ok()? {
        ServerMessage::Close { code, reason } => return Some(SessionFrame::Close(code, reason)),
        ServerMessage::Snapshot { reason: Reason::Lagging, .. } => metrics::lagging(),
        _ => {}
    }
    None
}

/// What is counted of `attached`. All kinds of sessions send it with these fields.
#[derive(Deserialize)]
struct AttachedVerdict {
    verdict: Verdict,
    #[serde(default)]
    reason: Option<Reason>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_verdict_is_read_from_the_attached_message_of_any_kind_of_session() {
        let attached = json!({ "type": "attached", "session": { "kind": "agent" }, "epoch": "9f3c61d2", "offset": 7,
            "verdict": "snapshot", "reason": "fresh", "you": { "write": true }, "heartbeat": 20000 });
        let AttachedVerdict { verdict, reason } = serde_json::from_value(attached).unwrap();
        assert_eq!((verdict, reason), (Verdict::Snapshot, Some(Reason::Fresh)));
        let AttachedVerdict { verdict, reason } = serde_json::from_value(json!({ "verdict": "exact" })).unwrap();
        assert_eq!((verdict, reason), (Verdict::Exact, None));
    }
}
