//! What a session printed and what it shows, over HTTP: its log as bytes, its screen as text, ANSI or JSON.

use bowline_proto::problem::{Code, Retained};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::archive::{self, ArchiveError, LogFile};
use bowline_host::control::ControlError;
use bowline_host::home::SessionDir;
use bowline_host::registry::Entry;
use bowline_proto::Offset;
use bowline_proto::control::{self, Reply, Request, ScreenFormat};
use bowline_proto::session::State as Life;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use crate::app::App;
use crate::ask;
use crate::auth::Caller;
use crate::extract::{Key, Query};
use crate::guard::Reader;
use crate::problem::{Problem, internal};
use crate::sessions::{blocking, find};

/// How much of a log is read at a time.
const PIECE: u64 = 256 << 10;

/// A part of the log.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct Range {
    /// The first byte; the oldest kept if absent.
    #[param(value_type = Option<u64>)]
    from: Option<Offset>,
    /// Behind the last byte; the end if absent.
    #[param(value_type = Option<u64>)]
    to: Option<Offset>,
}

/// The bytes that a session printed, as far as they are kept.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/log", tag = "sessions", operation_id = "get_log", params(Range, ("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, description = "All of it", content_type = "application/octet-stream", body = String),
        (status = 206, description = "The part that was asked for", content_type = "application/octet-stream", body = String),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `read`"),
        (status = 404, description = "`unknown_session`"),
        (status = 416, description = "`out_of_range`, with the range that is kept in `retained`"),
        (status = 503, description = "`unreachable`: the log is in the session process's memory, and that does not answer"),
    )
)]
pub(crate) async fn log(
    State(app): State<App>,
    Reader(caller): Reader,
    Key(id): Key,
    Query(range): Query<Range>,
) -> Result<Response, Problem> {
    let entry = find(&app, &id).await?;
    let (log, start, end) = Kept::open(entry).await?;
    let (from, to) = (range.from.unwrap_or(start), range.to.unwrap_or(end).min(end));
    if from < start || from > end || to < from {
        let detail = format!("the log keeps bytes {start} to {end}");
        let problem = Problem::new(Code::OutOfRange, detail).retained(Retained { from: start, to: end });
        return Ok(([(header::CONTENT_RANGE, format!("bytes */{end}"))], problem).into_response());
    }
    let shown = if to > from { format!("bytes {from}-{}/{end}", to - 1) } else { format!("bytes */{end}") };
    let part = range.from.is_some() || range.to.is_some();
    let status = if part && to > from { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, (to - from).to_string()),
        (header::CONTENT_RANGE, shown),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((status, headers, Body::from_stream(pieces(caller, log, from, to))).into_response())
}

/// How long a session's process may take to say that its log is in memory: its file would tell of less.
const STATUS_WITHIN: Duration = Duration::from_secs(2);

/// Where a log is kept.
#[derive(Clone)]
enum Kept {
    File(Arc<LogFile>),
    /// In the memory of the session's process, since its file could not be written.
    Memory(SessionDir),
}

impl Kept {
    /// The log, its oldest byte and its end.
    async fn open(entry: Entry) -> Result<(Kept, Offset, Offset), Problem> {
        let (dir, here) = (entry.dir.clone(), entry.here);
        let info = ask::describe_within(entry, STATUS_WITHIN).await;
        if here && info.degraded && info.state == Life::Running {
            let (start, end, _) = remembered(&dir, None, 0).await?;
            return Ok((Kept::Memory(dir), start, end));
        }
        blocking(move || {
            let log = LogFile::open(&dir)?;
            let (start, end) = log.range()?;
            Ok((Kept::File(Arc::new(log)), start, end))
        })
        .await
    }

    /// At most `len` bytes from there; none at the end.
    async fn read(&self, from: Offset, len: u64) -> Result<Vec<u8>, Problem> {
        let len = len.min(PIECE);
        match self {
            Kept::File(log) => {
                let log = log.clone();
                blocking(move || {
                    let mut piece = vec![0; len as usize];
                    let read = log.read(from, &mut piece)?;
                    piece.truncate(read);
                    Ok(piece)
                })
                .await
            }
            Kept::Memory(dir) => Ok(remembered(dir, Some(from), len as u32).await?.2),
        }
    }
}

/// A part of a log in memory, with its oldest byte and its end.
async fn remembered(dir: &SessionDir, from: Option<Offset>, max: u32) -> Result<(Offset, Offset, Vec<u8>), Problem> {
    let reply = ask::ask(dir, &Request::Log { from, max }, ask::WITHIN).await.map_err(|error| match error {
        // An older process keeps it to itself.
        ControlError::Refused { message, .. } => Problem::new(Code::Unreachable, message),
        error => error.into(),
    })?;
    let part = match reply {
        Reply::Log { start, end, bytes } => control::text_to_bytes(&bytes).map(|bytes| (start, end, bytes)),
        _ => None,
    };
    part.ok_or_else(|| Problem::new(Code::Unreachable, "the session process answered with something unexpected"))
}

/// Reads piece by piece, for as long as the caller may. Bytes that the log lost meanwhile, and whoever is revoked, end the answer
/// short of its length, which is an error to every client.
fn pieces(
    caller: Caller,
    log: Kept,
    from: Offset,
    to: Offset,
) -> impl stream::Stream<Item = Result<Bytes, String>> + Send {
    stream::try_unfold((caller, log, from), move |(caller, log, at)| async move {
        if at >= to {
            return Ok(None);
        }
        let read = tokio::select! {
            biased;
            () = caller.revoked() => return Err("the token or login was revoked".to_owned()),
            read = log.read(at, to - at) => read,
        };
        match read {
            Ok(piece) if piece.is_empty() => Err("the log ended early".to_owned()),
            Ok(piece) => {
                let next = at + piece.len() as u64;
                Ok(Some((Bytes::from(piece), (caller, log, next))))
            }
            Err(problem) => Err(problem.close().1),
        }
    })
}

/// How to show a screen.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct Show {
    /// `text` if absent.
    #[serde(default = "text")]
    format: ScreenFormat,
    /// Lines above the screen.
    #[serde(default)]
    scrollback: u32,
}

fn text() -> ScreenFormat {
    ScreenFormat::Text
}

/// What a session shows now, or showed last.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/screen", tag = "sessions", operation_id = "get_screen", params(Show, ("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, description = "The screen", content((String = "text/plain"), (serde_json::Value = "application/json"))),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `read`"),
        (status = 404, description = "`unknown_session`"),
        (status = 410, description = "`session_gone`: it left no screen"),
        (status = 413, description = "`too_large`: ask for less scrollback"),
        (status = 503, description = "`unreachable`: the session process does not answer"),
    )
)]
pub(crate) async fn screen(
    State(app): State<App>,
    _: Reader,
    Key(id): Key,
    Query(show): Query<Show>,
) -> Result<Response, Problem> {
    let entry = find(&app, &id).await?;
    let request = Request::Screen { format: show.format, scrollback: show.scrollback };
    // Of another machine's session, the files that both see have the last screen that it wrote.
    let told = if entry.here { ask::ask_running(&entry, &request).await? } else { None };
    let shown = match told {
        Some(Reply::Screen { screen }) => screen,
        Some(_) => {
            return Err(Problem::new(Code::Unreachable, "the session process answered with something unexpected"));
        }
        None => {
            blocking(move || {
                let saved = archive::read_screen(&entry.dir)?;
                Ok(match show.format {
                    ScreenFormat::Text => saved.text.into(),
                    ScreenFormat::Ansi => saved.ansi.into(),
                    ScreenFormat::Json => saved.json,
                })
            })
            .await?
        }
    };
    let (kind, body) = match shown {
        Value::String(text) => ("text/plain; charset=utf-8", text),
        json => ("application/json", json.to_string()),
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, body).into_response())
}

impl From<ArchiveError> for Problem {
    fn from(error: ArchiveError) -> Problem {
        match error {
            ArchiveError::Trimmed { .. } => Problem::new(Code::OutOfRange, error.to_string()),
            ArchiveError::Kind => Problem::new(Code::NoVersion, error.to_string()),
            ArchiveError::NoScreen => Problem::new(Code::SessionGone, error.to_string()),
            ArchiveError::Io(_) => internal(&error),
        }
    }
}

#[cfg(test)]
mod tests;
