//! WebSockets: the handshake, and how one is refused so that a browser can read why.

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
use crate::server::SocketPlace;

/// The subprotocol of an attach.
pub(crate) const PROTOCOL: &str = "bowline.v1";
/// What RFC 6455 has a server add to the client's key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// How long the other side may take to answer a close before the socket goes.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// The longest reason of a close.
const REASON: usize = 123;

/// An open WebSocket.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A request that asks for a WebSocket and may get it.
pub(crate) struct Upgrade {
    upgrade: OnUpgrade,
    accept: HeaderValue,
    /// The subprotocol to agree on: ours, or else the first that was offered, for a browser hears nothing without one.
    protocol: Option<HeaderValue>,
    /// The socket counts until the WebSocket ends.
    place: Option<SocketPlace>,
}

impl Upgrade {
    /// Reads a handshake. A request that is none is a mistake that stays an HTTP error for everybody.
    pub(crate) fn read(parts: &mut Parts) -> Result<Upgrade, Problem> {
        let wrong = |what: &str| Problem::new(Code::BadRequest, format!("this is a WebSocket endpoint: {what}"));
        if parts.method != Method::GET {
            return Err(wrong("the method is GET"));
        }
        if !lists(&parts.headers, &header::CONNECTION, "upgrade")
            || !lists(&parts.headers, &header::UPGRADE, "websocket")
        {
            return Err(wrong("Connection: Upgrade and Upgrade: websocket are missing"));
        }
        if parts.headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
            return Err(wrong("Sec-WebSocket-Version is 13"));
        }
        let key = parts.headers.get(header::SEC_WEBSOCKET_KEY);
        let key = key.filter(|key| BASE64_STANDARD.decode(key).is_ok_and(|key| key.len() == 16));
        let key = key.ok_or_else(|| wrong("Sec-WebSocket-Key is 16 bytes in base64"))?;
        let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
        let accept = HeaderValue::try_from(BASE64_STANDARD.encode(digest)).map_err(|_| wrong("a bad key"))?;
        let offered = parts.headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|offered| offered.to_str().ok());
        let ours = lists(&parts.headers, &header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL).then_some(PROTOCOL);
        let protocol = ours.or_else(|| offered?.split(',').map(str::trim).next());
        let protocol = protocol.and_then(|protocol| HeaderValue::from_str(protocol).ok());
        let upgrade =
            parts.extensions.remove::<OnUpgrade>().ok_or_else(|| wrong("this connection cannot be upgraded"))?;
        let place = parts.extensions.remove::<SocketPlace>();
        Ok(Upgrade { upgrade, accept, protocol, place })
    }

    /// An error when subprotocols were offered, and ours was not among them.
    pub(crate) fn check_version(&self) -> Result<(), Problem> {
        match &self.protocol {
            Some(protocol) if protocol != PROTOCOL => {
                Err(Problem::new(Code::NoVersion, format!("this end speaks {PROTOCOL}")))
            }
            _ => Ok(()),
        }
    }

    /// Accepts, and hands the open socket to `then` once the answer is out.
    pub(crate) fn accept<F>(self, max_message: usize, then: impl FnOnce(Socket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Upgrade { upgrade, accept, protocol, place } = self;
        tokio::spawn(async move {
            // An upgrade that fails is a client that left: there is nobody to tell.
            let Ok(upgraded) = upgrade.await else { return };
            let limits = Limits::default().max_payload_len(Some(max_message));
            let config = Config::default().flush_threshold(usize::MAX).frame_size(usize::MAX);
            let io = TokioIo::new(upgraded);
            then(ServerBuilder::new().limits(limits).config(config).serve(io)).await;
            drop(place);
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

/// Refuses a WebSocket: a browser, known by its Origin, cannot read a refused upgrade, so it gets one and a close.
pub(crate) fn refuse(parts: &mut Parts, problem: Problem) -> Response {
    if !parts.headers.contains_key(header::ORIGIN) {
        return problem.into_response();
    }
    match Upgrade::read(parts) {
        Ok(upgrade) => refuse_upgrade(upgrade, true, problem),
        Err(_) => problem.into_response(),
    }
}

/// As [`refuse`], for a handshake that was read already.
pub(crate) fn refuse_upgrade(upgrade: Upgrade, browser: bool, problem: Problem) -> Response {
    if !browser {
        return problem.into_response();
    }
    crate::metrics::refused(problem.code());
    let (code, reason) = problem.close();
    let mut response = upgrade.accept(1024, async move |socket| close(socket, code, &reason).await);
    response.headers_mut().insert(crate::problem::CODE_HEADER, HeaderValue::from_static(problem.code().name()));
    response
}

/// Answers the other side's close, which the library has ready.
pub(crate) async fn answer_close(mut socket: Socket) {
    let _ = tokio::time::timeout(CLOSE_WITHIN, async { while let Some(Ok(_)) = socket.next().await {} }).await;
}

/// Closes with a code, waits a moment for the answer, and lets go.
pub(crate) async fn close(mut socket: Socket, code: u16, reason: &str) {
    let last = async {
        let sent = socket.send(close_message(code, reason)).await;
        while let Some(Ok(_)) = socket.next().await {}
        if sent.is_err() {
            // The other side broke the rules, and was told so by the library. What more it sends is read and dropped: closing
            // before that would reset the connection, and our close would be lost with it.
            let io = socket.get_mut();
            io.shutdown().await.ok()?;
            while io.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
        }
        Some(())
    };
    let _ = tokio::time::timeout(CLOSE_WITHIN, last).await;
}

/// Pings whose answers wait to be sent; another one makes us read nothing more until they have left.
const PONGS: usize = 16;

/// The answers to pings. The library queues them, and only a flush sends them: whoever pings and never reads must not be
/// able to fill our memory with them.
pub(crate) struct Pongs {
    due: Notify,
    room: Semaphore,
}

impl Pongs {
    pub(crate) fn new() -> Pongs {
        Pongs { due: Notify::new(), room: Semaphore::new(PONGS) }
    }

    /// A ping was read. Waits for room for the next one.
    pub(crate) async fn queued(&self) {
        self.due.notify_one();
        if let Ok(place) = self.room.acquire().await {
            place.forget();
        }
    }

    /// Waits until there is something to flush.
    pub(crate) async fn due(&self) {
        self.due.notified().await;
    }

    /// Everything has been flushed.
    pub(crate) fn sent(&self) {
        self.room.add_permits(PONGS - self.room.available_permits());
    }
}

/// A close, with as much of the reason as fits.
pub(crate) fn close_message(code: u16, reason: &str) -> Message {
    let sendable = CloseCode::try_from(code).ok().filter(|code| !code.is_reserved());
    Message::close(
        Some(sendable.unwrap_or(CloseCode::INTERNAL_SERVER_ERROR)),
        &reason[..reason.floor_char_boundary(REASON)],
    )
}

/// Whether a comma-separated header has this token, in any case.
fn lists(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
}
