//! `GET /v1/sessions/{id}/events`: the history of an agent session, in pages.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::files;
use bowline_host::registry::Entry;
use bowline_host::transcript::{DEFAULT_EVENTS, PageQuery, read_page};
use bowline_proto::api::EventPage;
use bowline_proto::problem::Code;
use bowline_proto::session::State as SessionState;
use http::header;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{Key, Query};
use crate::guard::UnpacedReader;
use crate::problem::Problem;
use crate::sessions::{blocking, find_agent};
use crate::text_stream::{text_stream, too_many};

/// How many usual requests a page counts as, in the caller's rate.
const COST: u32 = 2;

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct EventsQuery {
    /// Only events before this number: the last of them.
    before: Option<u64>,
    /// Only events after this number: the first of them.
    after: Option<u64>,
    /// The most events of the page, 1 to 1,000. Default: 200.
    #[param(minimum = 1)]
    limit: Option<u64>,
}

/// Returns a page of the events of an agent session: the last ones, those before a number, or those after one.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/events", tag = "sessions", operation_id = "get_history",
    params(EventsQuery, ("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, body = EventPage),
        (status = 400, description = "`bad_request`, also for a terminal; `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 404, description = "`unknown_session`"),
        (status = 410, description = "`session_gone`: the journal of this ended session is missing or damaged"),
        (status = 429, description = "`too_many` screens and pages of history are on their way, most of them to this caller"),
        (status = 503, description = "`unreachable`: the journal cannot be read right now"),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    UnpacedReader(caller): UnpacedReader,
    Key(id): Key,
    Query(query): Query<EventsQuery>,
) -> Result<Response, Problem> {
    app.pace(&caller, COST).await?;
    let EventsQuery { before, after, limit } = query;
    if limit == Some(0) {
        return Err(Problem::new(Code::BadRequest, "a page has at least 1 event; leave `limit` out for 200"));
    }
    let limit = limit.map_or(DEFAULT_EVENTS, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let entry = find_agent(&app, &caller, &id).await?;
    let place = app.text_places.take(caller.id().to_owned());
    let turn = app.turns.history(&caller).await?;
    let page = blocking(move || {
        // Held until the page is read, even if the caller hangs up.
        let _turn = turn;
        let page = read_page(&entry.dir, entry.is_local, PageQuery { before, after, limit });
        page.map_err(|error| unreadable(&entry, &error))
    });
    let page = tokio::select! {
        page = page => page?,
        () = place.displaced() => return Err(too_many()),
    };
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_LENGTH, page.len().to_string()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, Body::from_stream(text_stream(caller, page, place))).into_response())
}

/// The error for a journal that cannot be read. That of a running session may become whole again.
fn unreadable(entry: &Entry, error: &std::io::Error) -> Problem {
    let is_lost = error.kind() == std::io::ErrorKind::NotFound || files::is_damage(error);
    let detail = format!("cannot read the session's journal: {error}");
    match entry.info.state {
        SessionState::Running => Problem::new(Code::Unreachable, detail).retry_after(1),
        _ if is_lost => Problem::new(Code::SessionGone, detail),
        _ => Problem::new(files::code(error), detail),
    }
}
