//! The link over a WebSocket.
//!
//! Finding the host, connecting, TLS and the upgrade happen on a thread of their own, so that none of them keeps keys
//! and signals waiting. It hands over a connected socket, or says why there is none; whoever has lost interest by
//! then has dropped the other end, and the socket with it.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use bowline_proto::close::Closed;
use bowline_proto::config::DIAL_WITHIN;
use bowline_proto::frame::{Binary, Frame, MAX_PAYLOAD};
use bowline_proto::link::ClientTransmit;
use bowline_proto::message::ClientMessage;
use http::{HeaderValue, Response};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Error, HandshakeError, Message, WebSocket};

use super::call;
use super::gateway::Gateway;
use super::wire::Wire;
use crate::transport::Transport;

/// A connection with more than this waiting to be sent gets nothing new until it drains.
const HIGH_WATER: usize = 64 << 10;
/// The buffer that frames are cut from.
const READ_BUFFER: usize = 64 << 10;
/// What the server is asked to speak.
const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("bowline.v1");

/// A WebSocket to a gateway, or the attempt to make one.
pub struct WebSocketTransport {
    stage: Stage,
    /// What the server said with its refusal.
    refusal: Option<String>,
}

enum Stage {
    Dialling {
        /// Readable once the thread is done.
        done: UnixStream,
        result: Receiver<Result<WebSocket<Wire>, Refusal>>,
    },
    Open(Box<WebSocket<Wire>>),
}

/// Why there is no connection.
struct Refusal {
    closed: Closed,
    words: Option<String>,
}

impl WebSocketTransport {
    /// Begins to connect to a path of the gateway.
    pub(super) fn dial(gateway: &Gateway, path: &str) -> io::Result<WebSocketTransport> {
        let (done, working) = UnixStream::pair()?;
        let (hand_over, result) = sync_channel(1);
        let (gateway, path) = (gateway.clone(), path.to_owned());
        std::thread::Builder::new().name("dial".into()).spawn(move || {
            let _ = hand_over.send(connect(&gateway, &path));
            drop(working);
        })?;
        Ok(WebSocketTransport { stage: Stage::Dialling { done, result }, refusal: None })
    }

    /// Takes what the thread has made, if it is done.
    fn take_over(&mut self) -> Result<(), Closed> {
        let Stage::Dialling { result, .. } = &self.stage else { return Ok(()) };
        match result.try_recv() {
            Ok(Ok(socket)) => self.stage = Stage::Open(Box::new(socket)),
            Ok(Err(refusal)) => {
                self.refusal = refusal.words;
                return Err(refusal.closed);
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(Closed::Failed),
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
        matches!(&self.stage, Stage::Open(socket) if socket.get_ref().waiting() > 0)
    }

    fn has_room(&self) -> bool {
        matches!(&self.stage, Stage::Open(socket) if socket.get_ref().waiting() < HIGH_WATER)
    }

    fn send(&mut self, transmit: &ClientTransmit) {
        let Stage::Open(socket) = &mut self.stage else { return };
        // An error here is one of the connection, and comes back from the next read.
        let _ = match transmit {
            // On a WebSocket, whoever leaves for good says so by its close.
            ClientTransmit::Text(ClientMessage::Leave) => {
                socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }))
            }
            ClientTransmit::Text(message) => {
                socket.write(Message::text(serde_json::to_string(message).unwrap_or_default()))
            }
            ClientTransmit::Input { offset, bytes } => {
                let mut payload = Vec::with_capacity(bytes.len() + 16);
                Binary::Input(*offset, bytes).encode(&mut payload);
                socket.write(Message::binary(payload))
            }
            ClientTransmit::Close { .. } => Ok(()),
        };
    }

    fn flush(&mut self) -> Result<(), Closed> {
        let Stage::Open(socket) = &mut self.stage else { return Ok(()) };
        match socket.flush() {
            Ok(()) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => Ok(()),
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(Closed::Failed),
        }
    }

    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<(), Closed> {
        self.take_over()?;
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
                // Cut off, too long, or not a WebSocket's language: the next connection resumes.
                Err(_) => return Err(Closed::Failed),
            }
        }
        match filled {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(Closed::Failed),
            _ => Ok(()),
        }
    }

    fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

/// How a close frame reads; an empty one has a code of its own.
fn closed(frame: Option<CloseFrame>) -> Closed {
    let (code, reason) = frame.map_or((1005, String::new()), |frame| (frame.code.into(), frame.reason.to_string()));
    Closed::Code { code, reason, done: false }
}

/// Makes the connection, on the thread.
fn connect(gateway: &Gateway, path: &str) -> Result<WebSocket<Wire>, Refusal> {
    let until = Instant::now() + DIAL_WITHIN;
    let wire = Wire::connect(&gateway.address, gateway.tls.as_ref(), until).map_err(|_| Refusal::FAILED)?;
    let mut request = gateway.address.websocket(path).into_client_request().map_err(|_| Refusal::FAILED)?;
    request.headers_mut().insert("Authorization", gateway.bearer.clone());
    request.headers_mut().insert("Sec-WebSocket-Protocol", SUBPROTOCOL);
    // The longest message that the protocol has; a longer one ends the connection.
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
    socket.get_mut().stop_waiting().map_err(|_| Refusal::FAILED)?;
    Ok(socket)
}

impl Refusal {
    const FAILED: Refusal = Refusal { closed: Closed::Failed, words: None };
}

fn refused(response: &Response<Option<Vec<u8>>>) -> Refusal {
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let closed = Closed::Refused {
        status: response.status().as_u16(),
        ours: header("Bowline-Code").is_some(),
        retry_after: header("Retry-After").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs),
    };
    Refusal { closed, words: response.body().as_deref().and_then(call::problem_words) }
}
