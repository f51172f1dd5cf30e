//! Carries the link over a WebSocket.
//!
//! Name resolution, connecting, TLS and the upgrade run on a thread, so that keys and signals are not delayed. The
//! thread sends back a connected socket or an error. If the transport has been dropped by then, so is the socket.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use bowline_proto::Offset;
use bowline_proto::close::ConnectionEnd;
use bowline_proto::config::DIAL_WITHIN;
use bowline_proto::frame::{Binary, Frame, MAX_PAYLOAD};
use bowline_proto::message::ClientMessage;
use http::{HeaderValue, Response};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Error, HandshakeError, Message, WebSocket};

use super::api;
use super::gateway::Gateway;
use super::wire::Wire;
use crate::transport::Transport;

/// While more bytes than this are unsent, [`Transport::has_room`] is false.
const HIGH_WATER: usize = 64 << 10;
const READ_BUFFER: usize = 64 << 10;
const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("bowline.v1");

/// A WebSocket to a gateway, or an attempt to make one.
pub struct WebSocketTransport {
    stage: Stage,
    /// The server's message, if it refused the upgrade.
    refusal: Option<String>,
}

enum Stage {
    Dialling {
        /// Becomes readable when the thread is done.
        done: UnixStream,
        result: Receiver<Result<WebSocket<Wire>, Refusal>>,
    },
    Open(Box<WebSocket<Wire>>),
}

/// A failed attempt to connect.
struct Refusal {
    closed: ConnectionEnd,
    /// The server's message.
    message: Option<String>,
}

impl WebSocketTransport {
    /// Starts to connect to a path on the gateway.
    pub(super) fn dial(gateway: &Gateway, path: &str) -> io::Result<WebSocketTransport> {
        let (done, working) = UnixStream::pair()?;
        let (sender, result) = sync_channel(1);
        let (gateway, path) = (gateway.clone(), path.to_owned());
        std::thread::Builder::new().name("dial".into()).spawn(move || {
            let _ = sender.send(connect(&gateway, &path));
            drop(working);
        })?;
        Ok(WebSocketTransport { stage: Stage::Dialling { done, result }, refusal: None })
    }

    /// Takes the thread's result, if it is done.
    fn take_result(&mut self) -> Result<(), ConnectionEnd> {
        let Stage::Dialling { result, .. } = &self.stage else { return Ok(()) };
        match result.try_recv() {
            Ok(Ok(socket)) => self.stage = Stage::Open(Box::new(socket)),
            Ok(Err(refusal)) => {
                self.refusal = refusal.message;
                return Err(refusal.closed);
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(ConnectionEnd::Failed),
        }
        Ok(())
    }
}

impl Transport for WebSocketTransport {
    fn fd(&self) -> BorrowedFd<'_> {
        match &self.stage {
            Stage::Dialling { done, .. } => done.as_fd(),
            Stage::Open(socket) => socket.get_ref().fd(),
        }
    }

    fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    fn wants_write(&self) -> bool {
        matches!(&self.stage, Stage::Open(socket) if socket.get_ref().unsent() > 0)
    }

    fn has_room(&self) -> bool {
        matches!(&self.stage, Stage::Open(socket) if socket.get_ref().unsent() < HIGH_WATER)
    }

    fn send(&mut self, message: &ClientMessage) {
        let Stage::Open(socket) = &mut self.stage else { return };
        // An error here is an error of the connection, which the next read reports.
        let _ = match message {
            // On a WebSocket, leaving is a normal close.
            ClientMessage::Leave => socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })),
            message => socket.write(Message::text(serde_json::to_string(message).unwrap_or_default())),
        };
    }

    fn send_input(&mut self, offset: Offset, bytes: &[u8]) {
        let Stage::Open(socket) = &mut self.stage else { return };
        let mut payload = Vec::with_capacity(bytes.len() + 16);
        Binary::Input(offset, bytes).encode(&mut payload);
        let _ = socket.write(Message::binary(payload));
    }

    fn flush(&mut self) -> Result<(), ConnectionEnd> {
        let Stage::Open(socket) = &mut self.stage else { return Ok(()) };
        match socket.flush() {
            Ok(()) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => Ok(()),
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(ConnectionEnd::Failed),
        }
    }

    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<(), ConnectionEnd> {
        self.take_result()?;
        let Stage::Open(socket) = &mut self.stage else { return Ok(()) };
        let filled = socket.get_mut().fill();
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => take(Frame::Text(text.as_str())),
                Ok(Message::Binary(bytes)) => take(Frame::Binary(&bytes)),
                Ok(Message::Close(frame)) => {
                    let _ = socket.flush();
                    return Err(closed(frame));
                }
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                // Cut off, too long, or invalid: the next connection resumes.
                Err(_) => return Err(ConnectionEnd::Failed),
            }
        }
        match filled {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(ConnectionEnd::Failed),
            _ => Ok(()),
        }
    }

    fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

/// Converts a close frame; one without a code counts as 1005.
fn closed(frame: Option<CloseFrame>) -> ConnectionEnd {
    let (code, reason) = frame.map_or((1005, String::new()), |frame| (frame.code.into(), frame.reason.to_string()));
    ConnectionEnd::Code { code, reason, done: false }
}

/// Connects. Blocks; runs on the thread.
fn connect(gateway: &Gateway, path: &str) -> Result<WebSocket<Wire>, Refusal> {
    let deadline = Instant::now() + DIAL_WITHIN;
    let wire = Wire::connect(&gateway.address, gateway.tls.as_ref(), deadline).map_err(|_| Refusal::FAILED)?;
    let mut request = gateway.address.websocket(path).into_client_request().map_err(|_| Refusal::FAILED)?;
    request.headers_mut().insert("Authorization", gateway.bearer.clone());
    request.headers_mut().insert("Sec-WebSocket-Protocol", SUBPROTOCOL);
    // No message of the protocol is longer; a longer one ends the connection.
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(MAX_PAYLOAD))
        .max_frame_size(Some(MAX_PAYLOAD));
    let (mut socket, _) = match tungstenite::client::client_with_config(request, wire, Some(config)) {
        Ok(connected) => connected,
        Err(HandshakeError::Failure(Error::Http(response))) => return Err(refused(&response)),
        Err(_) => return Err(Refusal::FAILED),
    };
    socket.get_mut().stop_blocking().map_err(|_| Refusal::FAILED)?;
    Ok(socket)
}

impl Refusal {
    const FAILED: Refusal = Refusal { closed: ConnectionEnd::Failed, message: None };
}

fn refused(response: &Response<Option<Vec<u8>>>) -> Refusal {
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let closed = ConnectionEnd::Refused {
        status: response.status().as_u16(),
        from_gateway: header("Bowline-Code").is_some(),
        retry_after: header("Retry-After").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs),
    };
    Refusal { closed, message: response.body().as_deref().and_then(api::problem_message) }
}
