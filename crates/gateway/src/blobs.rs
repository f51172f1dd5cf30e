//! Large output of an agent's tools over HTTP.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::blobs::{self, parse_seq};
use bowline_proto::problem::{Code, Retained};
use http::{StatusCode, header};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::{FileKey, Query};
use crate::file_stream::{POLICY, file_stream};
use crate::guard::Reader;
use crate::problem::Problem;
use crate::sessions::{blocking, find_agent};

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct BlobQuery {
    /// The first byte. Default: 0.
    from: Option<u64>,
    /// The byte after the last one. Default: the end.
    to: Option<u64>,
}

/// Returns the whole output of a tool, of which an event has only the beginning and the end.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/blobs/{seq}", tag = "sessions", operation_id = "get_blob",
    params(
        BlobQuery,
        ("id" = String, Path, description = "The session's id or name"),
        ("seq" = u64, Path, description = "The `seq` in the event's `blob`"),
    ),
    responses(
        (status = 200, description = "The output", content_type = "text/plain", body = String),
        (status = 206, description = "The requested range", content_type = "text/plain", body = String),
        (status = 400, description = "`bad_request`: not a number, or not an agent session; `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 404, description = "`unknown_session`; `not_found`: no event with this number has a blob"),
        (status = 416, description = "`out_of_range`; `retained` has the range of the blob"),
        (status = 503, description = "`unreachable`: the blob cannot be read right now"),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Reader(caller): Reader,
    FileKey(id, seq): FileKey,
    Query(range): Query<BlobQuery>,
) -> Result<Response, Problem> {
    let entry = find_agent(&app, &caller, &id).await?;
    let seq = parse_seq(&seq).ok_or_else(|| Problem::new(Code::BadRequest, "a blob is named by a number"))?;
    let (blob, end) = blocking(move || {
        let open = || {
            let file = blobs::open(&entry.dir, seq)?;
            let end = file.metadata()?.len();
            Ok((file, end))
        };
        open().map_err(|error| unreadable(&error))
    })
    .await?;
    let (from, to) = (range.from.unwrap_or(0), range.to.unwrap_or(end).min(end));
    if from > end || to < from {
        let problem = Problem::new(Code::OutOfRange, format!("the blob has bytes 0 to {end}"));
        let problem = problem.retained(Retained { from: 0, to: end });
        return Ok(([(header::CONTENT_RANGE, format!("bytes */{end}"))], problem).into_response());
    }
    let is_part = range.from.is_some() || range.to.is_some();
    let content_range = if to > from { format!("bytes {from}-{}/{end}", to - 1) } else { format!("bytes */{end}") };
    let status = if is_part && to > from { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_LENGTH, (to - from).to_string()),
        (header::CONTENT_RANGE, content_range),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        // What a tool printed may be a page with a script. A browser must neither guess that nor run it.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_SECURITY_POLICY, POLICY.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"output-{seq}.txt\"")),
    ];
    Ok((status, headers, Body::from_stream(file_stream(caller, blob, from, to))).into_response())
}

/// The problem of a blob that cannot be opened.
fn unreadable(error: &std::io::Error) -> Problem {
    match error.kind() {
        std::io::ErrorKind::NotFound => Problem::new(Code::NotFound, "no event with this number has a blob"),
        _ => Problem::new(Code::Unreachable, format!("the blob cannot be read: {error}")).retry_after(1),
    }
}
