//! Bytes between a WebSocket and a session's socket, both ways at once: whoever floods us still gets its Ctrl-C through.
//!
//! Nothing is kept: a viewer that takes nothing makes us read nothing, and the session sees that its socket is full.

use std::io;
use std::time::{Duration, Instant};

use bowline_proto::close;
use bowline_proto::frame::{self, HEADER, Header};
use bowline_proto::message::{ClientMessage, Reason, ServerMessage, Verdict};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use tokio::net::UnixStream;
use tokio_websockets::{Error, Message};

use crate::metrics;
use crate::ws::{Pongs, Socket};

/// How much is read from a session at a time: two full frames.
const READ: usize = 64 << 10;

/// What a connection keeps for the next message of its client; a paste may take more for a moment.
const WIRE: usize = 4 << 10;

/// How an attachment ended.
pub(crate) enum Ending {
    /// Close with this code and reason.
    Close(u16, String),
    /// The client closed 1000: it leaves for good.
    Left,
    /// The client closed with another code: it may come back.
    Closed,
    /// It is gone already.
    Cut,
    /// The session's side broke off without a last word.
    Lost,
}

/// The first frame for the session.
pub(crate) struct Hello {
    pub(crate) text: String,
    /// When the client had sent it.
    pub(crate) at: Instant,
}

/// Relays until one side ends.
pub(crate) async fn run(socket: &mut Socket, session: &UnixStream, hello: &Hello) -> Ending {
    let (mut sink, mut stream) = socket.split();
    let pongs = Pongs::new();
    let up = async {
        let mut wire = Vec::new();
        frame::put_text(&mut wire, &hello.text);
        loop {
            if send(session, &wire).await.is_err() {
                // What the session said last is still to be read: the other direction tells how it ended.
                std::future::pending::<()>().await;
            }
            wire.clear();
            wire.shrink_to(WIRE);
            match stream.next().await {
                Some(Ok(message)) if message.is_close() => return left(&message),
                Some(Ok(message)) if message.is_text() => frame::put_payload(&mut wire, true, message.as_payload()),
                Some(Ok(message)) if message.is_binary() => frame::put_payload(&mut wire, false, message.as_payload()),
                Some(Ok(message)) if message.is_ping() => pongs.queued().await,
                Some(Ok(_)) => {}
                Some(Err(Error::Io(_))) | None => return Ending::Cut,
                Some(Err(error)) => {
                    let (code, reason) = close_of(&error);
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
                match take(&mut buf, hello.at) {
                    Ok(Some(Taken::Message(message))) => {
                        if sink.feed(message).await.is_err() {
                            return Ending::Cut;
                        }
                    }
                    Ok(Some(Taken::Close(code, reason))) => break Some(Ending::Close(code, reason)),
                    Ok(None) => break None,
                    Err(why) => break Some(Ending::Close(close::INTERNAL, why)),
                }
            };
            // What came before the session's last word goes out before it. A connection that takes nothing for too long is
            // cut by the socket itself.
            match sink.flush().await {
                Ok(()) => pongs.sent(),
                Err(_) => return Ending::Cut,
            }
            if let Some(last) = last {
                return last;
            }
            // A session that floods never makes us wait; others have their turn before its next bytes.
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { ending = up => ending, ending = down => ending }
}

/// Tells the session that its viewer does not come back in a moment.
pub(crate) async fn leave(session: &UnixStream) {
    let mut wire = Vec::new();
    frame::put_text(&mut wire, &serde_json::to_string(&ClientMessage::Leave).unwrap_or_default());
    let _ = tokio::time::timeout(Duration::from_secs(1), send(session, &wire)).await;
}

/// How a connection that broke the rules of WebSockets is closed.
pub(crate) fn close_of(error: &Error) -> (u16, String) {
    match error {
        Error::PayloadTooLong { max_len, .. } => (close::TOO_BIG, format!("a message has at most {max_len} bytes")),
        Error::Protocol(tokio_websockets::proto::ProtocolError::InvalidUtf8) => (1007, "text is not UTF-8".to_owned()),
        error => (close::PROTOCOL, error.to_string()),
    }
}

fn left(message: &Message) -> Ending {
    match message.as_close() {
        Some((code, _)) if u16::from(code) == close::NORMAL => Ending::Left,
        _ => Ending::Closed,
    }
}

async fn send(session: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match session.try_write(bytes) {
            Ok(sent) => bytes.advance(sent),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => session.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for bytes of the session. While there are none, there is no buffer either.
async fn receive(session: &UnixStream, buf: &mut BytesMut) -> io::Result<usize> {
    loop {
        buf.reserve(READ);
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

/// A frame of the session's, for the client.
enum Taken {
    Message(Message),
    Close(u16, String),
}

/// Takes the first whole frame.
fn take(buf: &mut BytesMut, hello_at: Instant) -> Result<Option<Taken>, String> {
    let header =
        Header::decode(buf).map_err(|why| format!("the session process sent something that is no frame: {why}"))?;
    let Some(Header { text, len }) = header else { return Ok(None) };
    if buf.len() < HEADER + len {
        return Ok(None);
    }
    buf.advance(HEADER);
    let payload: Bytes = buf.split_to(len).freeze();
    if !text {
        return Ok(Some(Taken::Message(Message::binary(payload))));
    }
    if let Some(taken) = overhear(&payload, hello_at) {
        return Ok(Some(taken));
    }
    Ok(Some(Taken::Message(Message::text(payload))))
}

/// Few texts concern the gateway: the last word, and what is counted. All others pass unread; the type comes first.
fn overhear(payload: &Bytes, hello_at: Instant) -> Option<Taken> {
    let kind = payload.strip_prefix(br#"{"type":""#)?;
    if ![&b"close"[..], b"attached", b"snapshot"].iter().any(|known| kind.starts_with(known)) {
        return None;
    }
    match serde_json::from_slice(payload).ok()? {
        ServerMessage::Close { code, reason } => return Some(Taken::Close(code, reason)),
        ServerMessage::Attached(attached) => {
            metrics::attached(attached.verdict == Verdict::Exact, attached.reason, hello_at.elapsed());
        }
        ServerMessage::Snapshot { reason: Reason::Lagging, .. } => metrics::lagging(),
        _ => {}
    }
    None
}
