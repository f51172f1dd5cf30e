//! Sockets: accepting, the limits that apply before a request is read, and graceful shutdown.

use bowline_proto::problem::Code;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::app::App;
use crate::auth::site;
use crate::context::SocketAddrs;
use crate::heads::{ConnectionHeads, HeadStream, MAX_HEAD, MAX_HEADS};
use crate::places::{Place, Places};
use crate::problem::Problem;
use crate::refusals::Source;
use crate::tls::Tls;

/// How long a refused client may take to read the response.
const REFUSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Refused sockets that get a response concurrently; one more is closed without a response.
const MAX_REFUSALS: usize = 64;
/// Why a socket is refused.
const OVER_LIMIT: &str = "the gateway has too many open sockets; try again later";

/// Accepts connections until the gateway stops, then waits for open ones to finish, up to the limit `drain`.
pub(crate) async fn run(app: App, listener: TcpListener, router: Router, tls: Option<Tls>) {
    let slots = SocketSlots::new(app.settings.limits.sockets);
    let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
    let heads = Places::new(MAX_HEADS);
    let sockets = TaskTracker::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            },
            () = app.stop.cancelled() => break,
        };
        let Some(slot) = slots.take(peer).await else {
            let source = Source { client: peer.ip().to_canonical(), path: String::new() };
            app.refusals.report(&source, &Problem::new(Code::TooMany, OVER_LIMIT));
            // A client that expects TLS could not read the response.
            if tls.is_none()
                && let Ok(permit) = refusals.clone().try_acquire_owned()
            {
                tokio::spawn(async move {
                    refuse(stream).await;
                    drop(permit);
                });
            }
            continue;
        };
        let (app, router, tls, heads) = (app.clone(), router.clone(), tls.clone(), heads.clone());
        let connection = Connection { stream, peer, router, tls, slot, heads };
        sockets.spawn(async move { serve(&app, connection).await });
    }
    drop(listener);
    sockets.close();
    app.streams.close();
    let drained = async {
        app.streams.wait().await;
        sockets.wait().await;
    };
    if tokio::time::timeout(app.settings.limits.drain, drained).await.is_err() {
        tracing::warn!("some connections did not close in time and were cut");
    }
}

/// Pauses after a failed accept: without free descriptors, retrying at once would only spin.
async fn pause_after(error: &io::Error) {
    if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) {
        tracing::error!(%error, "cannot accept a connection");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Sends the refusal, then reads to the end: closing with unread data would reset the connection and lose the
/// response.
async fn refuse(mut stream: TcpStream) {
    let exchange = async {
        stream.write_all(over_limit_response().as_bytes()).await?;
        stream.shutdown().await?;
        while stream.read(&mut [0; 4096]).await? > 0 {}
        Ok::<(), io::Error>(())
    };
    let _ = tokio::time::timeout(REFUSE_TIMEOUT, exchange).await;
}

/// The response to a socket over the limit.
fn over_limit_response() -> String {
    let code = Code::TooMany;
    let body = format!(
        r#"{{"type":"about:blank","title":"Service Unavailable","status":503,"code":"{code}","detail":"{OVER_LIMIT}"}}"#
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nBowline-Code: {code}\r\nRetry-After: 5\r\nConnection: close\r\n\
         Content-Type: application/problem+json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Counts sockets. Those of strangers make room for others.
struct SocketSlots {
    all: Arc<Semaphore>,
    /// Sockets without an authenticated request.
    strangers: Places<IpAddr>,
}

impl SocketSlots {
    fn new(max: usize) -> SocketSlots {
        SocketSlots { all: Arc::new(Semaphore::new(max)), strangers: Places::new(max) }
    }

    /// Counts one more socket. Over the limit, it closes the oldest stranger of the address that has the most; `None`
    /// if there are no strangers.
    async fn take(&self, peer: SocketAddr) -> Option<SocketSlot> {
        let permit = match self.all.clone().try_acquire_owned() {
            Ok(permit) => permit,
            // What is displaced is closed at once.
            Err(_) if self.strangers.displace() => self.all.clone().acquire_owned().await.ok()?,
            Err(_) => return None,
        };
        let displaced = CancellationToken::new();
        let stranger = Mutex::new(Some(self.strangers.take_with(site(peer.ip()), displaced.clone())));
        Some(SocketSlot(Arc::new(Slot { _permit: permit, stranger, displaced })))
    }
}

/// One socket in the count. It is held until the socket closes, because a WebSocket outlives its request.
#[derive(Clone)]
pub(crate) struct SocketSlot(Arc<Slot>);

struct Slot {
    _permit: OwnedSemaphorePermit,
    /// The place among the strangers.
    stranger: Mutex<Option<Place<IpAddr>>>,
    displaced: CancellationToken,
}

impl SocketSlot {
    /// The socket no longer makes room for others.
    pub(crate) fn keep(&self) {
        self.0.stranger.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits until the socket has to make room for another one.
    pub(crate) async fn displaced(&self) {
        self.0.displaced.cancelled().await;
    }
}

/// Waits for the first byte on a socket.
async fn sent_something(app: &App, stream: &TcpStream) -> bool {
    tokio::select! {
        ready = tokio::time::timeout(app.settings.limits.head_within, stream.readable()) => matches!(ready, Ok(Ok(()))),
        () = app.stop.cancelled() => false,
    }
}

/// An accepted socket, and what serving it needs.
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    tls: Option<Tls>,
    slot: SocketSlot,
    heads: Places<IpAddr>,
}

/// Serves one socket until it closes or has to make room for another one.
async fn serve(app: &App, connection: Connection) {
    let (peer, displaced) = (connection.peer, connection.slot.clone());
    let serve = async {
        // Boxed: a socket takes little memory until its first byte arrives.
        if sent_something(app, &connection.stream).await {
            Box::pin(serve_connection(app, connection)).await;
        }
    };
    tokio::select! {
        () = serve => {}
        () = displaced.displaced() => tracing::debug!(%peer, "closed a connection to make room for others"),
    }
    app.closed_sockets.fetch_add(1, Ordering::Relaxed);
}

async fn serve_connection(app: &App, connection: Connection) {
    let Connection { stream, peer, router, tls, slot, heads } = connection;
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    let addrs = SocketAddrs { peer, local };
    let heads = ConnectionHeads::begin(heads, site(peer.ip()), slot.0.displaced.clone());
    match tls {
        None => serve_http(app, stream, addrs, router, slot, &heads).await,
        Some(tls) => match tokio::time::timeout(app.settings.limits.head_within, tls.accept(stream)).await {
            Ok(Ok(stream)) => serve_http(app, stream, addrs, router, slot, &heads).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "the TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "the TLS handshake timed out"),
        },
    }
    heads.end();
}

/// Serves HTTP on one socket. A client that accepts no data for too long is cut off.
async fn serve_http<S>(
    app: &App,
    stream: S,
    addrs: SocketAddrs,
    router: Router,
    slot: SocketSlot,
    heads: &Arc<ConnectionHeads>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(app.settings.limits.stalled_after));
    let stream = HeadStream::new(Box::pin(stream), heads.clone());
    let base = app.settings.base_path.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(addrs);
        request.extensions_mut().insert(slot.clone());
        strip_base_path(&base, &mut request);
        let (head, response) = (heads.complete(), router.clone().oneshot(request.map(Body::new)));
        // Held until the whole response is queued.
        let hold = move |body: Body| {
            body.map_frame(move |frame| {
                let _ = &head;
                frame
            })
        };
        async move { response.await.map(|response| response.map(hold)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.settings.limits.head_within)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = app.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, peer = %addrs.peer, "a connection failed");
    }
}

/// Marks a request for the base path without its trailing slash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissingSlash;

/// Removes the base path. A proxy may have done so already.
fn strip_base_path(base: &str, request: &mut Request<Incoming>) {
    let Some(rest) = request.uri().path().strip_prefix(base).filter(|_| !base.is_empty()) else { return };
    let bare = rest.is_empty();
    let path = match rest {
        "" => "/",
        rest if rest.starts_with('/') => rest,
        _ => return,
    };
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    // The rest stays, because the host in the target is checked later.
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = format!("{path}{query}").parse().ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    if bare {
        request.extensions_mut().insert(MissingSlash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// The client is slow, and shares its address with strangers.
    #[tokio::test]
    async fn r52_a_response_that_is_being_sent_is_not_crowded_out() {
        // More than the sockets hold, so most of it waits in the gateway until the client reads.
        const LEN: usize = 32 << 20;
        let temp = tempfile::tempdir().unwrap();
        let app = testing::app(temp.path(), |_| {});
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let (heads, router) = (Places::new(MAX_HEADS), Router::new().fallback(async || vec![0; LEN]));
        let slot = SocketSlots::new(1).take(peer).await.unwrap();
        let connection = Connection { stream, peer, router, tls: None, slot, heads: heads.clone() };
        let serving = tokio::spawn(async move { serve(&app, connection).await });
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        client.read_exact(&mut [0]).await.unwrap();
        let crowd = || {
            let begin = || ConnectionHeads::begin(heads.clone(), site(peer.ip()), CancellationToken::new());
            (0..MAX_HEADS).map(|_| begin()).collect::<Vec<_>>()
        };
        drop(crowd());
        let (mut read, mut piece) = (1, vec![0; 1 << 20]);
        while read < LEN {
            let more = client.read(&mut piece).await.unwrap();
            assert_ne!(more, 0, "the response ends after {read} bytes");
            read += more;
        }
        // The rest is the length of the head. Until it is read, the response is not sent.
        while !serving.is_finished() {
            let _crowd = crowd();
            let _ = client.read(&mut piece).await;
        }
    }
}
