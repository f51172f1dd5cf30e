//! A session's screen over HTTP, as text, ANSI or JSON.
//!
//! A screen can be a megabyte long, and a client may never read its response. So the screens that are on their way are
//! limited, and shared fairly among callers.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::archive;
use bowline_host::registry::Entry;
use bowline_proto::control::ScreenFormat;
use bowline_proto::problem::Code;
use bytes::Bytes;
use futures_util::stream;
use http::header;
use serde::Deserialize;
use tokio_util::sync::{CancellationToken, DropGuard};
use utoipa::IntoParams;

use crate::app::App;
use crate::auth::Caller;
use crate::control;
use crate::extract::{Key, Query};
use crate::guard::UnpacedReader;
use crate::places::Place;
use crate::problem::Problem;
use crate::sessions::{blocking, find_terminal};

/// Screens that are being requested or sent. One more cuts off the oldest of the caller that has the most.
pub(crate) const MAX_SCREENS: usize = 64;
/// How many usual requests the visible screen counts as, in the caller's rate.
const COST: u32 = 2;
/// The same for a screen with lines above it, of which there can be very many.
const SCROLLBACK_COST: u32 = 10;
/// Bytes of a screen that are passed to the connection at a time. They are copied, so that what waits there does not
/// keep the whole screen in memory.
const PART: usize = 32 << 10;

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct ScreenQuery {
    /// Default: `text`.
    #[serde(default = "text")]
    format: ScreenFormat,
    /// How many lines above the screen to include.
    #[serde(default)]
    scrollback: u32,
}

fn text() -> ScreenFormat {
    ScreenFormat::Text
}

/// Returns the session's current screen, or the last one if it has ended.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/screen", tag = "sessions", operation_id = "get_screen",
    params(ScreenQuery, ("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, description = "The screen", content((String = "text/plain"), (serde_json::Value = "application/json"))),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 404, description = "`unknown_session`"),
        (status = 410, description = "`session_gone`: the session left no last screen, or it is damaged"),
        (status = 413, description = "`too_large`: request less scrollback"),
        (status = 429, description = "`too_many` screens are on their way, most of them to this caller"),
        (status = 503, description = "`unreachable`: the session process does not answer"),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    UnpacedReader(caller): UnpacedReader,
    Key(id): Key,
    Query(query): Query<ScreenQuery>,
) -> Result<Response, Problem> {
    app.pace(&caller, if query.scrollback == 0 { COST } else { SCROLLBACK_COST }).await?;
    let entry = find_terminal(&app, &caller, &id).await?;
    let place = app.screen_places.take(caller.id().to_owned());
    let screen = tokio::select! {
        screen = read(&app, &caller, entry, &query) => screen?,
        () = place.displaced() => return Err(too_many()),
    };
    let kind = match query.format {
        ScreenFormat::Text | ScreenFormat::Ansi => "text/plain; charset=utf-8",
        ScreenFormat::Json => "application/json",
    };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_LENGTH, screen.len().to_string()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, Body::from_stream(parts(caller, screen, place))).into_response())
}

async fn read(app: &App, caller: &Caller, entry: Entry, query: &ScreenQuery) -> Result<String, Problem> {
    let format = query.format;
    // For a session on another machine, only the last screen in its files is available.
    if entry.is_local
        && let Some(screen) = control::screen(&entry, format, query.scrollback).await?
    {
        return Ok(screen);
    }
    let turn = app.turns.last_screen(caller).await?;
    blocking(move || {
        // Held until the file is read, even if the caller hangs up.
        let _turn = turn;
        Ok(archive::last_screen(&entry.dir)?.into_format(format))
    })
    .await
}

/// Streams a screen in parts. If its place is taken, or the caller's token is revoked, the screen is freed at once, and
/// the response ends short of its `Content-Length`, which every client treats as an error.
fn parts(
    caller: Caller,
    screen: String,
    place: Place<String>,
) -> impl stream::Stream<Item = Result<Bytes, String>> + Send {
    let (len, screen) = (screen.len(), Arc::new(Mutex::new(Some(screen))));
    let (sent, kept) = (CancellationToken::new(), screen.clone());
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
    stream::try_unfold((screen, 0, guard), move |(screen, at, guard)| async move {
        if at >= len {
            return Ok(None);
        }
        let part = {
            let kept = screen.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = kept.as_ref().map(|kept| &kept.as_bytes()[at..len.min(at + PART)]);
            bytes.map(Bytes::copy_from_slice)
        };
        let part = part.ok_or("the screen is no longer kept for this client")?;
        let next = at + part.len();
        Ok(Some((part, (screen, next, guard))))
    })
}

fn too_many() -> Problem {
    let detail = "too many screens are requested at once, most of them with this token or login; try again later";
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
    async fn a_screen_is_sent_whole() {
        let temp = tempfile::tempdir().unwrap();
        let screen: String = ('a'..='z').cycle().take(3 * PART + 5).collect();
        let (caller, _) = caller(temp.path());
        let sent = parts(caller, screen.clone(), Places::new(1).take("ann".to_owned()));
        let sent: Vec<Bytes> = sent.map(Result::unwrap).collect().await;
        assert_eq!(sent.concat(), screen.as_bytes());
        assert_eq!(sent.len(), 4);
    }

    #[tokio::test]
    async fn r52_a_screen_that_nobody_reads_is_freed_for_the_next_one() {
        let temp = tempfile::tempdir().unwrap();
        let ((caller, _), places) = (caller(temp.path()), Places::new(1));
        let mut unread = Box::pin(parts(caller.clone(), "x".repeat(2 * PART), places.take("eve".to_owned())));
        assert_eq!(unread.next().await.unwrap().unwrap().len(), PART);
        let next = parts(caller, "y".repeat(PART), places.take("eve".to_owned()));
        tokio::task::yield_now().await;
        assert!(unread.next().await.unwrap().is_err(), "it is not taken for a whole screen");
        assert_eq!(next.count().await, 1);
    }

    #[tokio::test]
    async fn r48_a_revoked_token_gets_no_more_of_a_screen() {
        let temp = tempfile::tempdir().unwrap();
        let (caller, revoke) = caller(temp.path());
        let mut cut = Box::pin(parts(caller, "x".repeat(2 * PART), Places::new(1).take("eve".to_owned())));
        assert_eq!(cut.next().await.unwrap().unwrap().len(), PART);
        revoke();
        tokio::task::yield_now().await;
        assert!(cut.next().await.unwrap().is_err());
    }
}
