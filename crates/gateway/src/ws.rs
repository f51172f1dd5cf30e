//! WebSockets: the handshake, closing, and refusing in a way that a browser can read.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bowline_proto::problem::Code;
use futures_util::{SinkExt, StreamExt};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use sha1::{Digest, Sha1};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};
use tokio_websockets::{CloseCode, Config, Limits, Message, ServerBuilder, WebSocketStream};

use crate::problem::Problem;
use crate::server::SocketSlot;

pub(crate) const PROTOCOL: &str = "bowline.v1";
/// The constant that RFC 6455 appends to the client's key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// How long the client may take to answer a close before the socket is dropped.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest close reason, in bytes.
const MAX_REASON: usize = 123;

pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A valid WebSocket handshake.
pub(crate) struct Upgrade {
    upgrade: OnUpgrade,
    accept: HeaderValue,
    /// The subprotocol to select: ours, or else the first one offered, because a browser fails without one.
    protocol: Option<HeaderValue>,
    /// Held until the WebSocket ends.
    slot: Option<SocketSlot>,
}

impl Upgrade {
    /// Reads the handshake. An invalid one is answered with an HTTP error, for browsers too.
    pub(crate) fn read(parts: &mut Parts) -> Result<Upgrade, Problem> {
        let wrong = |what: &str| Problem::new(Code::BadRequest, format!("not a WebSocket handshake: {what}"));
        if parts.method != Method::GET {
            return Err(wrong("the method must be GET"));
        }
        if !has_token(&parts.headers, &header::CONNECTION, "upgrade")
            || !has_token(&parts.headers, &header::UPGRADE, "websocket")
        {
            return Err(wrong("the headers `Connection: Upgrade` and `Upgrade: websocket` are required"));
        }
        if parts.headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
            return Err(wrong("Sec-WebSocket-Version must be 13"));
        }
        let key = parts.headers.get(header::SEC_WEBSOCKET_KEY);
        let key = key.filter(|key| BASE64_STANDARD.decode(key).is_ok_and(|key| key.len() == 16));
        let key = key.ok_or_else(|| wrong("Sec-WebSocket-Key must be 16 bytes in base64"))?;
        let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
        let accept =
            HeaderValue::try_from(BASE64_STANDARD.encode(digest)).map_err(|_| wrong("invalid Sec-WebSocket-Key"))?;
        let offered = parts.headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|offered| offered.to_str().ok());
        let ours = has_token(&parts.headers, &header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL).then_some(PROTOCOL);
        let protocol = ours.or_else(|| offered?.split(',').map(str::trim).next());
        let protocol = protocol.and_then(|protocol| HeaderValue::from_str(protocol).ok());
        let upgrade =
            parts.extensions.remove::<OnUpgrade>().ok_or_else(|| wrong("this connection cannot be upgraded"))?;
        let slot = parts.extensions.get::<SocketSlot>().cloned();
        Ok(Upgrade { upgrade, accept, protocol, slot })
    }

    /// An error if the client offered subprotocols without ours among them.
    pub(crate) fn check_version(&self) -> Result<(), Problem> {
        match &self.protocol {
            Some(protocol) if protocol != PROTOCOL => {
                Err(Problem::new(Code::NoVersion, format!("the subprotocol must be {PROTOCOL}")))
            }
            _ => Ok(()),
        }
    }

    /// WebSockets have limits of their own, so this socket is never closed to make room.
    pub(crate) fn keep_socket(&self) {
        self.slot.iter().for_each(SocketSlot::keep);
    }

    /// Accepts the handshake, and runs `then` with the open socket once the response is sent.
    pub(crate) fn accept<F>(self, max_message: usize, then: impl FnOnce(Socket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Upgrade { upgrade, accept, protocol, slot } = self;
        tokio::spawn(async move {
            // The upgrade fails only if the client has left.
            let Ok(upgraded) = upgrade.await else { return };
            let limits = Limits::default().max_payload_len(Some(max_message));
            let config = Config::default().flush_threshold(usize::MAX).frame_size(usize::MAX);
            let io = TokioIo::new(upgraded);
            let displaced = async {
                match &slot {
                    Some(slot) => slot.displaced().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = then(ServerBuilder::new().limits(limits).config(config).serve(io)) => {}
                () = displaced => {}
            }
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(protocol) = protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// Refuses a WebSocket. A browser, recognised by its `Origin`, cannot read the response to a refused upgrade, so
/// its upgrade is accepted and then closed.
pub(crate) fn refuse(parts: &mut Parts, problem: Problem) -> Response {
    if !parts.headers.contains_key(header::ORIGIN) {
        return problem.into_response();
    }
    match Upgrade::read(parts) {
        Ok(upgrade) => refuse_upgrade(upgrade, true, problem),
        Err(_) => problem.into_response(),
    }
}

/// Like [`refuse`], for a handshake that has been read.
pub(crate) fn refuse_upgrade(upgrade: Upgrade, browser: bool, problem: Problem) -> Response {
    if !browser {
        return problem.into_response();
    }
    let (code, reason) = problem.close();
    let mut response = upgrade.accept(1024, async move |socket| close(socket, code, &reason).await);
    response.headers_mut().insert(crate::problem::CODE_HEADER, HeaderValue::from_static(problem.code().name()));
    // For `guard::check`, which reports it.
    response.extensions_mut().insert(problem);
    response
}

/// Answers the client's close; the library has the answer ready.
pub(crate) async fn answer_close(mut socket: Socket) {
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, async { while let Some(Ok(_)) = socket.next().await {} }).await;
}

/// Closes with a code and waits for the client's answer, up to [`CLOSE_TIMEOUT`].
pub(crate) async fn close(mut socket: Socket, code: u16, reason: &str) {
    let last = async {
        let sent = socket.send(close_message(code, reason)).await;
        while let Some(Ok(_)) = socket.next().await {}
        if sent.is_err() {
            // The client broke the protocol, and the library has sent a close. Read and drop what follows:
            // closing with unread data would reset the connection and lose that close.
            let io = socket.get_mut();
            io.shutdown().await.ok()?;
            while io.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
        }
        Some(())
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, last).await;
}

/// Queued pongs; at one more, nothing is read from the client until they are sent.
const MAX_PONGS: usize = 16;

/// Bounds the pongs that wait to be sent. The library queues them until a flush, so a client that pings but never
/// reads could otherwise fill the memory.
pub(crate) struct Pongs {
    due: Notify,
    room: Semaphore,
}

impl Pongs {
    pub(crate) fn new() -> Pongs {
        Pongs { due: Notify::new(), room: Semaphore::new(MAX_PONGS) }
    }

    /// Call after reading a ping. Waits until there is room for another pong.
    pub(crate) async fn queued(&self) {
        self.due.notify_one();
        if let Ok(slot) = self.room.acquire().await {
            slot.forget();
        }
    }

    /// Waits until a pong needs flushing.
    pub(crate) async fn due(&self) {
        self.due.notified().await;
    }

    /// Call after a flush.
    pub(crate) fn sent(&self) {
        self.room.add_permits(MAX_PONGS - self.room.available_permits());
    }
}

/// A close message, with the reason cut to [`MAX_REASON`].
pub(crate) fn close_message(code: u16, reason: &str) -> Message {
    let sendable = CloseCode::try_from(code).ok().filter(|code| !code.is_reserved());
    Message::close(
        Some(sendable.unwrap_or(CloseCode::INTERNAL_SERVER_ERROR)),
        &reason[..reason.floor_char_boundary(MAX_REASON)],
    )
}

/// Whether a comma-separated header contains this token, ignoring case.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
}
