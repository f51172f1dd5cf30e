//! A session's screen over HTTP, as text, ANSI or JSON.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::archive;
use bowline_host::registry::Entry;
use bowline_proto::control::ScreenFormat;
use http::header;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::auth::Caller;
use crate::control;
use crate::extract::{Key, Query};
use crate::guard::UnpacedReader;
use crate::problem::Problem;
use crate::sessions::{blocking, find_terminal};
use crate::text_stream::{text_stream, too_many};

/// How many usual requests the visible screen counts as, in the caller's rate.
const COST: u32 = 2;
/// The same for a screen with lines above it, of which there can be very many.
const SCROLLBACK_COST: u32 = 10;

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
        (status = 429, description = "`too_many` screens and pages of history are on their way, most of them to this caller"),
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
    let place = app.text_places.take(caller.id().to_owned());
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
    Ok((headers, Body::from_stream(text_stream(caller, screen, place))).into_response())
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
