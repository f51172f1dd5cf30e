//! The sockets: accepting, the bounds that hold before a request is read, and stopping without losing a word.

use bowline_proto::problem::Code;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::app::App;
use crate::reach::Ends;
use crate::tls::Tls;

/// How long a refused socket may take to hear why.
const REFUSE_WITHIN: Duration = Duration::from_secs(1);
/// Sockets that are told why they are refused, at a time; one more is closed without a word.
const REFUSALS: usize = 64;

/// Accepts until the gateway stops, then lets what is under way come to its end, for a while.
pub(crate) async fn run(app: App, listener: TcpListener, router: Router, tls: Option<Tls>) {
    let places = Arc::new(Semaphore::new(app.settings.limits.sockets));
    let refusals = Arc::new(Semaphore::new(REFUSALS));
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
        let Ok(place) = places.clone().try_acquire_owned() else {
            crate::metrics::refused(Code::TooMany);
            // Nobody who expects TLS could read why.
            if tls.is_none()
                && let Ok(turn) = refusals.clone().try_acquire_owned()
            {
                tokio::spawn(async move {
                    refuse(stream).await;
                    drop(turn);
                });
            }
            continue;
        };
        let place = SocketPlace(Arc::new(place));
        let (app, router, tls) = (app.clone(), router.clone(), tls.clone());
        sockets.spawn(async move { serve(&app, stream, peer, router, tls, place).await });
    }
    drop(listener);
    sockets.close();
    app.streams.close();
    let drained = async {
        app.streams.wait().await;
        sockets.wait().await;
    };
    if tokio::time::timeout(app.settings.limits.drain, drained).await.is_err() {
        tracing::warn!("some connections did not close in time and are cut");
    }
}

/// Out of descriptors, accepting again at once would only spin.
async fn pause_after(error: &io::Error) {
    if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) {
        tracing::error!(%error, "cannot accept");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Says why, then reads what the other side had to say: closing before that would reset the connection, and the answer
/// would be lost with it.
async fn refuse(mut stream: TcpStream) {
    let told = async {
        stream.write_all(full().as_bytes()).await?;
        stream.shutdown().await?;
        while stream.read(&mut [0; 4096]).await? > 0 {}
        Ok::<(), io::Error>(())
    };
    let _ = tokio::time::timeout(REFUSE_WITHIN, told).await;
}

/// What a socket over the limit hears.
fn full() -> String {
    let code = Code::TooMany;
    let body = format!(r#"{{"status":503,"code":"{code}","detail":"the gateway has too many open sockets"}}"#);
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nBowline-Code: {code}\r\nRetry-After: 5\r\nConnection: close\r\n\
         Content-Type: application/problem+json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A socket that counts, for as long as anything is done on it: a WebSocket outlives its request.
#[derive(Clone)]
pub(crate) struct SocketPlace(#[expect(dead_code, reason = "it is held, not looked at")] Arc<OwnedSemaphorePermit>);

async fn serve(app: &App, stream: TcpStream, peer: SocketAddr, router: Router, tls: Option<Tls>, place: SocketPlace) {
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    let ends = Ends { peer, local };
    match tls {
        None => speak(app, stream, ends, router, place).await,
        Some(tls) => match tokio::time::timeout(app.settings.limits.head_within, tls.accept(stream)).await {
            Ok(Ok(stream)) => speak(app, stream, ends, router, place).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "no TLS"),
            Err(_) => tracing::debug!(%peer, "no TLS in time"),
        },
    }
}

/// HTTP on one socket. One that takes nothing for too long is cut, whatever is sent on it.
async fn speak<S>(app: &App, stream: S, ends: Ends, router: Router, place: SocketPlace)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(app.settings.limits.stalled_after));
    let stream = Box::pin(stream);
    let base = app.settings.base_path.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ends);
        request.extensions_mut().insert(place.clone());
        strip(&base, &mut request);
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.settings.limits.head_within)
        .max_buf_size(64 << 10)
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
        tracing::debug!(%error, peer = %ends.peer, "a connection failed");
    }
}

/// The base path was asked for without a slash at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithoutSlash;

/// Takes the base path off. A proxy may have done so already.
fn strip(base: &str, request: &mut Request<Incoming>) {
    let Some(rest) = request.uri().path().strip_prefix(base).filter(|_| !base.is_empty()) else { return };
    let bare = rest.is_empty();
    let path = match rest {
        "" => "/",
        rest if rest.starts_with('/') => rest,
        _ => return,
    };
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    if let Ok(uri) = format!("{path}{query}").parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    if bare {
        request.extensions_mut().insert(WithoutSlash);
    }
}
