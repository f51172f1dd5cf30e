//! Uploads: the files that prompts of an agent session attach, sent and fetched as bytes.
//!
//! An upload is kept in memory until it is whole, because its type is told by its content. So the uploads that arrive at
//! the same time are limited, and shared fairly among callers.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::files;
use bowline_host::uploads::{self, MAX_UPLOAD, MediaType, UploadError, UploadId};
use bowline_proto::api::UploadReply;
use bowline_proto::problem::Code;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;

use crate::app::App;
use crate::auth::Caller;
use crate::control::wrong_machine;
use crate::extract::{FileKey, Json};
use crate::file_stream::{POLICY, file_stream};
use crate::guard::{Reader, Writer};
use crate::problem::Problem;
use crate::sessions::{blocking, find_agent};

/// Uploads that arrive at the same time. One more cuts off the oldest of the caller that has the most.
pub(crate) const MAX_ARRIVING: usize = 16;
/// How long an upload may take in all: a phone on a bad network sends 20 KB a second. A client that sends nothing for
/// the limit `body_within` is cut before.
const UPLOAD_WITHIN: Duration = Duration::from_secs(10 * 60);
/// How much is read of a refused file, for how long, and after which pause of the client no more.
const MAX_DISCARDED: u64 = 64 << 20;
const DISCARD_WITHIN: Duration = Duration::from_secs(10);
const DISCARD_PAUSE: Duration = Duration::from_secs(1);

/// Stores a file that prompts of this agent session can attach. Its type is told by its content.
#[utoipa::path(
    put, path = "/v1/sessions/{id}/uploads/{name}", tag = "sessions", operation_id = "upload_file",
    params(
        ("id" = String, Path, description = "The session's id or name"),
        ("name" = String, Path, description = "The file's name: 1 to 255 bytes, without / and control characters"),
    ),
    request_body(content = String, content_type = "application/octet-stream", description = "The file, at most 10 MiB"),
    responses(
        (status = 201, description = "Stored", body = UploadReply),
        (status = 200, description = "The same file was stored before", body = UploadReply),
        (status = 400, description = "`bad_request`: not an agent session, or a bad or empty file; `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `write` is required, or the session belongs to another machine"),
        (status = 404, description = "`unknown_session`"),
        (status = 408, description = "`too_slow`"),
        (status = 413, description = "`too_large`"),
        (status = 415, description = "`bad_type`: neither an image (PNG, JPEG, GIF, WebP), nor a PDF, nor a text in UTF-8"),
        (status = 429, description = "`too_many` uploads arrive, most of them from this caller"),
        (status = 503, description = "`unreachable`: the file cannot be written right now"),
        (status = 507, description = "`no_space`: the disk is full, or the session has as many uploads as it may have"),
    )
)]
pub(crate) async fn put(
    State(app): State<App>,
    Writer(caller): Writer,
    FileKey(id, name): FileKey,
    headers: HeaderMap,
    mut body: Body,
) -> Result<Response, Problem> {
    let stored = store(&app, caller, &id, name, &mut body).await;
    // A client that expects to be told whether to send the file has not sent it.
    if stored.is_err() && !headers.contains_key(header::EXPECT) {
        discard(body).await;
    }
    stored
}

/// Receives a file and stores it.
async fn store(app: &App, caller: Caller, id: &str, name: String, body: &mut Body) -> Result<Response, Problem> {
    let entry = find_agent(app, &caller, id).await?;
    if !entry.is_local {
        return Err(wrong_machine(&entry));
    }
    uploads::check_name(&name).map_err(|bad| refusal(&bad.into()))?;
    if body.size_hint().lower() > MAX_UPLOAD {
        return Err(refusal(&UploadError::TooLarge));
    }
    let turn = app.turns.upload(&caller).await?;
    let place = app.upload_places.take(caller.id().to_owned());
    let content = tokio::select! {
        content = receive(app, body) => content?,
        () = place.displaced() => return Err(too_many()),
        () = caller.revoked() => return Err(Problem::not_authenticated()),
    };
    caller.check()?;
    let (bytes, given) = (content.len() as u64, name.clone());
    let stored = blocking(move || {
        // Held until the content is freed, even if the caller hangs up.
        let _places = (turn, place);
        uploads::store(&entry.dir, &given, &content).map_err(|error| refusal(&error))
    });
    let stored = stored.await?;
    let status = if stored.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let r#type = stored.media_type.name().to_owned();
    Ok((status, Json(UploadReply { id: stored.id.to_string(), name, r#type, bytes })).into_response())
}

/// Receives a whole body, limited in length and time.
async fn receive(app: &App, body: &mut Body) -> Result<Vec<u8>, Problem> {
    let slow = |_| Problem::new(Code::TooSlow, "the file did not arrive in time");
    let receive = async {
        let mut content = Vec::with_capacity(body.size_hint().lower().min(MAX_UPLOAD) as usize);
        while let Some(frame) =
            tokio::time::timeout(app.settings.limits.body_within, body.frame()).await.map_err(slow)?
        {
            let frame =
                frame.map_err(|error| Problem::new(Code::BadRequest, format!("cannot read the file: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if content.len() as u64 + data.len() as u64 > MAX_UPLOAD {
                return Err(refusal(&UploadError::TooLarge));
            }
            content.extend_from_slice(&data);
        }
        Ok(content)
    };
    tokio::time::timeout(UPLOAD_WITHIN, receive).await.map_err(slow)?
}

/// Reads what is left of a refused file, within bounds. Otherwise the connection would be reset while the client still
/// sends, and it would not see the refusal, but a network error, after which it tries again.
async fn discard(mut body: Body) {
    let read = async {
        let mut left = MAX_DISCARDED;
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(DISCARD_PAUSE, body.frame()).await {
            let len = frame.data_ref().map_or(0, |data| data.len() as u64);
            let Some(rest) = left.checked_sub(len) else { break };
            left = rest;
        }
    };
    let _ = tokio::time::timeout(DISCARD_WITHIN, read).await;
}

/// Returns a file that was uploaded.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/uploads/{name}", tag = "sessions", operation_id = "get_upload",
    params(
        ("id" = String, Path, description = "The session's id or name"),
        ("name" = String, Path, description = "The upload's id"),
    ),
    responses(
        (status = 200, description = "The file", content_type = "application/octet-stream", body = String),
        (status = 400, description = "`bad_request`: not an agent session; `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 404, description = "`unknown_session`; `not_found`: no such upload"),
        (status = 503, description = "`unreachable`: the file cannot be read right now"),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Reader(caller): Reader,
    FileKey(id, upload): FileKey,
) -> Result<Response, Problem> {
    let entry = find_agent(&app, &caller, &id).await?;
    let unknown = || Problem::new(Code::NotFound, "this session has no such upload");
    let upload: UploadId = upload.parse().map_err(|_| unknown())?;
    let name = upload.name().to_owned();
    let opened = blocking(move || match uploads::open(&entry.dir, &upload) {
        Ok(open) => Ok(open),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound || files::is_damage(&error) => Err(unknown()),
        Err(error) => Err(Problem::new(Code::Unreachable, format!("cannot read the upload: {error}")).retry_after(1)),
    });
    let opened = opened.await?;
    let media_type = match opened.media_type {
        MediaType::Text => "text/plain; charset=utf-8",
        other => other.name(),
    };
    let disposition = if opened.media_type.is_image() { "inline" } else { "attachment" };
    let headers = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CONTENT_LENGTH, opened.len.to_string()),
        // The name has no character that needs to be escaped.
        (header::CONTENT_DISPOSITION, format!("{disposition}; filename=\"{name}\"")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_SECURITY_POLICY, POLICY.to_owned()),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin".to_owned()),
    ];
    Ok((headers, Body::from_stream(file_stream(caller, opened.file, 0, opened.len))).into_response())
}

fn refusal(error: &UploadError) -> Problem {
    let problem = Problem::new(error.code(), error.to_string());
    if matches!(error, UploadError::Busy) { problem.retry_after(1) } else { problem }
}

fn too_many() -> Problem {
    let detail = "too many uploads arrive at once, most of them with this token or login; try again later";
    Problem::new(Code::TooMany, detail).retry_after(1)
}

#[cfg(test)]
mod tests;
