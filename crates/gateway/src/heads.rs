//! Connections whose next request head is not complete. Anybody can open one without a login, and each has a buffer,
//! so their number is limited.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::places::{Place, Places};

/// Unfinished heads; one more closes the oldest of the address that has the most. Each takes up to 100 KiB.
pub(crate) const MAX_HEADS: usize = 512;
/// The longest head, in bytes; a longer one gets 431.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// The heads of one connection, one after another.
pub(crate) struct ConnectionHeads {
    places: Places<IpAddr>,
    address: IpAddr,
    state: Mutex<State>,
    close: CancellationToken,
}

enum State {
    /// The next head is not complete.
    Unfinished(#[expect(dead_code, reason = "held until drop, never read")] Place<IpAddr>),
    /// A request is being answered.
    Answering,
    /// The whole response is queued, but the client may take long to receive it.
    Sending,
    /// There is no next head.
    Ended,
}

impl ConnectionHeads {
    /// Begins the first head. `address` stands for all that own their places together; `close` is cancelled when the
    /// connection has to make room for another one.
    pub(crate) fn begin(places: Places<IpAddr>, address: IpAddr, close: CancellationToken) -> Arc<ConnectionHeads> {
        let first = places.take_with(address, close.clone());
        Arc::new(ConnectionHeads { places, address, state: Mutex::new(State::Unfinished(first)), close })
    }

    /// The head is complete. The next one begins once the returned value is dropped and the response is sent.
    pub(crate) fn complete(self: &Arc<Self>) -> CompleteHead {
        *self.state() = State::Answering;
        CompleteHead(self.clone())
    }

    /// Nothing more is read as HTTP, although the stream may live on as a WebSocket.
    pub(crate) fn end(&self) {
        *self.state() = State::Ended;
    }

    /// The response is sent, or the client has begun its next request without waiting for it.
    fn begin_next(&self) {
        let mut state = self.state();
        if matches!(*state, State::Sending) {
            *state = State::Unfinished(self.places.take_with(self.address, self.close.clone()));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
pub(crate) struct CompleteHead(Arc<ConnectionHeads>);

impl Drop for CompleteHead {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if matches!(*state, State::Answering) {
            *state = State::Sending;
        }
    }
}

/// The stream of a connection. It notices when a response is sent.
pub(crate) struct HeadStream<S> {
    stream: S,
    heads: Arc<ConnectionHeads>,
}

impl<S> HeadStream<S> {
    pub(crate) fn new(stream: S, heads: Arc<ConnectionHeads>) -> HeadStream<S> {
        HeadStream { stream, heads }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.heads.begin_next();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.heads.begin_next();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    #[test]
    fn r52_an_address_crowds_out_only_its_own_heads() {
        let places = Places::new(MAX_HEADS);
        let begin = |n| ConnectionHeads::begin(places.clone(), address(n), CancellationToken::new());
        let owner = begin(0);
        let crowd: Vec<_> = (0..2 * MAX_HEADS as u32).map(|n| begin(1 + n % 5)).collect();
        let closed = crowd.iter().filter(|connection| connection.close.is_cancelled()).count();
        assert_eq!((closed, owner.close.is_cancelled()), (MAX_HEADS + 1, false));
        assert!(crowd[0].close.is_cancelled() && !crowd[2 * MAX_HEADS - 1].close.is_cancelled());
    }

    #[test]
    fn r52_a_request_that_is_answered_is_not_crowded_out() {
        let places = Places::new(MAX_HEADS);
        let begin = || ConnectionHeads::begin(places.clone(), address(0), CancellationToken::new());
        let busy = begin();
        let request = busy.complete();
        let crowd = || (0..MAX_HEADS).map(|_| begin());
        drop(crowd().collect::<Vec<_>>());
        drop(request);
        drop(crowd().collect::<Vec<_>>());
        assert!(!busy.close.is_cancelled(), "the client may not have received the response yet");
        busy.begin_next();
        let _crowd: Vec<_> = crowd().collect();
        assert!(busy.close.is_cancelled(), "the head of its next request is unfinished");
    }
}
