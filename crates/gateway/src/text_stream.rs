//! A long text as the body of a response.
//!
//! A screen or a page of history can be a megabyte long, and a client may never read its response. So the texts that are on
//! their way are limited, and shared fairly among callers.

use std::sync::{Arc, Mutex, PoisonError};

use bowline_proto::problem::Code;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::auth::Caller;
use crate::places::Place;
use crate::problem::Problem;

/// Texts that are being requested or sent. One more cuts off the oldest of the caller that has the most.
pub(crate) const MAX_TEXTS: usize = 64;
/// Bytes that are passed to the connection at a time. They are copied, so that what waits there does not keep the whole
/// text in memory.
const PART: usize = 32 << 10;

/// Streams a text in parts. If its place is taken, or the caller's token is revoked, the text is freed at once, and the
/// response ends short of its `Content-Length`, which every client treats as an error.
pub(crate) fn text_stream(
    caller: Caller,
    text: String,
    place: Place<String>,
) -> impl Stream<Item = Result<Bytes, String>> + Send {
    let (len, text) = (text.len(), Arc::new(Mutex::new(Some(text))));
    let (sent, kept) = (CancellationToken::new(), text.clone());
    let guard: DropGuard = sent.clone().drop_guard();
    // A task, because a response that the client does not read is not polled.
    tokio::spawn(async move {
        tokio::select! {
            () = place.displaced() => {}
            () = caller.revoked() => {}
            () = sent.cancelled() => return,
        }
        drop(kept.lock().unwrap_or_else(PoisonError::into_inner).take());
    });
    stream::try_unfold((text, 0, guard), move |(text, at, guard)| async move {
        if at >= len {
            return Ok(None);
        }
        let part = {
            let kept = text.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = kept.as_ref().map(|kept| &kept.as_bytes()[at..len.min(at + PART)]);
            bytes.map(Bytes::copy_from_slice)
        };
        let part = part.ok_or("the response is no longer kept for this client")?;
        let next = at + part.len();
        Ok(Some((part, (text, next, guard))))
    })
}

/// The refusal of a text that has to make room before its response began.
pub(crate) fn too_many() -> Problem {
    let detail = "too many screens and pages of history are requested at once, most of them with this token or login; \
                  try again later";
    Problem::new(Code::TooMany, detail).retry_after(1)
}

#[cfg(test)]
mod tests {
    use bowline_proto::api::TokenScope;
    use futures_util::StreamExt;

    use super::*;
    use crate::auth::Auth;
    use crate::places::Places;
    use crate::testing;

    /// A caller, and the function that revokes it.
    fn caller(temp: &std::path::Path) -> (Caller, impl FnOnce()) {
        let auth = Auth::open(&testing::home(temp)).unwrap();
        let token = auth.create_token("t", TokenScope::Read, None).unwrap();
        (auth.bearer(token.token.reveal()).unwrap(), move || assert!(auth.revoke(&token.id).unwrap()))
    }

    #[tokio::test]
    async fn a_text_is_sent_whole() {
        let temp = tempfile::tempdir().unwrap();
        let text: String = ('a'..='z').cycle().take(3 * PART + 5).collect();
        let (caller, _) = caller(temp.path());
        let sent = text_stream(caller, text.clone(), Places::new(1).take("ann".to_owned()));
        let sent: Vec<Bytes> = sent.map(Result::unwrap).collect().await;
        assert_eq!(sent.concat(), text.as_bytes());
        assert_eq!(sent.len(), 4);
    }

    #[tokio::test]
    async fn r52_a_response_that_nobody_reads_is_freed_for_the_next_one() {
        let temp = tempfile::tempdir().unwrap();
        let ((caller, _), places) = (caller(temp.path()), Places::new(1));
        let mut unread = Box::pin(text_stream(caller.clone(), "x".repeat(2 * PART), places.take("eve".to_owned())));
        assert_eq!(unread.next().await.unwrap().unwrap().len(), PART);
        let next = text_stream(caller, "y".repeat(PART), places.take("eve".to_owned()));
        tokio::task::yield_now().await;
        assert!(unread.next().await.unwrap().is_err(), "it is not taken for a whole text");
        assert_eq!(next.count().await, 1);
    }

    #[tokio::test]
    async fn r48_a_revoked_token_gets_no_more_of_a_long_text() {
        let temp = tempfile::tempdir().unwrap();
        let (caller, revoke) = caller(temp.path());
        let mut cut = Box::pin(text_stream(caller, "x".repeat(2 * PART), Places::new(1).take("eve".to_owned())));
        assert_eq!(cut.next().await.unwrap().unwrap().len(), PART);
        revoke();
        tokio::task::yield_now().await;
        assert!(cut.next().await.unwrap().is_err());
    }
}
