//! A session's output over HTTP, as the bytes of its log.

use bowline_proto::problem::{Code, Retained};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::archive::{ArchiveError, LogFile};
use bowline_host::control::ControlError;
use bowline_host::home::SessionDir;
use bowline_host::registry::Entry;
use bowline_proto::Offset;
use bowline_proto::control::{Reply, Request, text_to_bytes};
use bowline_proto::session::State as SessionState;
use bytes::Bytes;
use futures_util::stream;
use http::{StatusCode, header};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::auth::Caller;
use crate::control;
use crate::extract::{Key, Query};
use crate::guard::Reader;
use crate::problem::Problem;
use crate::sessions::{blocking, find_terminal};

/// Bytes of the log that are read at a time. A client that does not read its response keeps one or two of these in
/// memory.
const CHUNK: u64 = 32 << 10;

/// How often the log is opened, if its oldest bytes are overwritten before they are read.
const MAX_TRIES: u32 = 3;

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct LogQuery {
    /// Offset of the first byte. Default: the oldest byte that the log retains.
    #[param(value_type = Option<u64>)]
    from: Option<Offset>,
    /// Offset after the last byte. Default: the end of the log.
    #[param(value_type = Option<u64>)]
    to: Option<Offset>,
}

/// Returns the session's output, as far as its log retains it.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/log", tag = "sessions", operation_id = "get_log",
    params(LogQuery, ("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, description = "Everything that the log retains", content_type = "application/octet-stream", body = String),
        (status = 206, description = "The requested range", content_type = "application/octet-stream", body = String),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 404, description = "`unknown_session`"),
        (status = 410, description = "`session_gone`: the log of this ended session is missing or damaged"),
        (status = 416, description = "`out_of_range`; `retained` has the range that the log retains"),
        (status = 503, description = "`unreachable`: the session process, which holds the log in memory, does not answer; or the log cannot be read right now"),
    )
)]
pub(crate) async fn get(
    State(app): State<App>,
    Reader(caller): Reader,
    Key(id): Key,
    Query(range): Query<LogQuery>,
) -> Result<Response, Problem> {
    let entry = find_terminal(&app, &caller, &id).await?;
    let mut tries = 0;
    let (log, from, to, end, first) = loop {
        let (log, start, end) = LogSource::open(entry.clone()).await?;
        let (from, to) = (range.from.unwrap_or(start), range.to.unwrap_or(end).min(end));
        if from < start || from > end || to < from {
            let detail = format!("the log only retains bytes {start} to {end}");
            let problem = Problem::new(Code::OutOfRange, detail).retained(Retained { from: start, to: end });
            return Ok(([(header::CONTENT_RANGE, format!("bytes */{end}"))], problem).into_response());
        }
        // Before the response begins, so that a log that cannot be read is an error, and not an empty response.
        match log.read(from, to - from).await {
            Ok(first) if first.is_empty() && to > from => return Err(ended_early(&entry)),
            Ok(first) => break (log, from, to, end, first),
            // The oldest bytes were overwritten meanwhile.
            Err(problem) if problem.code() == Code::OutOfRange && range.from.is_none() => {
                tries += 1;
                if tries == MAX_TRIES {
                    let detail = "the session prints too fast for its oldest output to be read; try again later";
                    return Err(Problem::new(Code::Unreachable, detail).retry_after(1));
                }
            }
            Err(problem) => return Err(problem),
        }
    };
    let content_range = if to > from { format!("bytes {from}-{}/{end}", to - 1) } else { format!("bytes */{end}") };
    let partial = range.from.is_some() || range.to.is_some();
    let status = if partial && to > from { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, (to - from).to_string()),
        (header::CONTENT_RANGE, content_range),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((status, headers, Body::from_stream(chunks(caller, log, from, to, first))).into_response())
}

/// The error for a log that has fewer bytes than its header says. That of a running session may become whole again.
fn ended_early(entry: &Entry) -> Problem {
    let code = if entry.info.state == SessionState::Running { Code::Unreachable } else { Code::SessionGone };
    Problem::new(code, "the session's log is damaged: it ends early")
}

/// How long to wait for the session process to say whether its log is in memory. After that the log file is read,
/// which may hold less.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a log is read from.
#[derive(Clone)]
enum LogSource {
    File(Arc<LogFile>),
    /// In the session process, because it could not write the file, or the file was damaged since.
    Memory(SessionDir),
}

impl LogSource {
    /// Opens the log. Returns it with its oldest retained offset and its end.
    async fn open(entry: Entry) -> Result<(LogSource, Offset, Offset), Problem> {
        let (dir, here) = (entry.dir.clone(), entry.is_local);
        let info = control::describe_within(entry, STATUS_TIMEOUT).await;
        if here && info.degraded && info.state == SessionState::Running {
            let (start, end, _) = read_memory_log(&dir, None, 0).await?;
            return Ok((LogSource::Memory(dir), start, end));
        }
        let file = dir.clone();
        let opened = blocking(move || {
            let open = || {
                let log = LogFile::open(&file)?;
                let (start, end) = log.range()?;
                Ok((LogSource::File(Arc::new(log)), start, end))
            };
            Ok(open())
        });
        match opened.await? {
            // The file was removed or damaged, but the process still has it open.
            Err(ArchiveError::NoLog) if here && info.state == SessionState::Running => {
                let (start, end, _) = read_memory_log(&dir, None, 0).await?;
                Ok((LogSource::Memory(dir), start, end))
            }
            opened => Ok(opened?),
        }
    }

    /// Reads at most `len` bytes at `from`; none at the end of the log.
    async fn read(&self, from: Offset, len: u64) -> Result<Vec<u8>, Problem> {
        let len = len.min(CHUNK);
        match self {
            LogSource::File(log) => {
                let log = log.clone();
                blocking(move || {
                    let mut chunk = vec![0; len as usize];
                    let read = log.read(from, &mut chunk)?;
                    chunk.truncate(read);
                    Ok(chunk)
                })
                .await
            }
            LogSource::Memory(dir) => Ok(read_memory_log(dir, Some(from), len as u32).await?.2),
        }
    }
}

/// Reads from a log in memory. Returns its oldest retained offset, its end, and the bytes.
async fn read_memory_log(
    dir: &SessionDir,
    from: Option<Offset>,
    max: u32,
) -> Result<(Offset, Offset, Vec<u8>), Problem> {
    let reply = control::request(dir, &Request::Log { from, max }, control::REQUEST_TIMEOUT).await.map_err(
        |error| match error {
            // A session process of an older version does not support this request.
            ControlError::Refused { message, .. } => Problem::new(Code::Unreachable, message),
            error => error.into(),
        },
    )?;
    let part = match reply {
        Reply::Log { start, end, bytes } => text_to_bytes(&bytes).map(|bytes| (start, end, bytes)),
        _ => None,
    };
    part.ok_or_else(|| Problem::new(Code::Unreachable, ControlError::Unexpected.to_string()))
}

/// Streams the log in chunks, of which the first has been read. If the log drops bytes of the range, or the caller's
/// token is revoked, the response ends short of its `Content-Length`, which every client treats as an error.
fn chunks(
    caller: Caller,
    log: LogSource,
    from: Offset,
    to: Offset,
    first: Vec<u8>,
) -> impl stream::Stream<Item = Result<Bytes, String>> + Send {
    stream::try_unfold((caller, log, from, Some(first)), move |(caller, log, at, first)| async move {
        if at >= to {
            return Ok(None);
        }
        let read = async {
            match first {
                Some(first) => Ok(first),
                None => log.read(at, to - at).await,
            }
        };
        let read = tokio::select! {
            biased;
            () = caller.revoked() => return Err("the token or login was revoked".to_owned()),
            read = read => read,
        };
        match read {
            Ok(chunk) if chunk.is_empty() => Err("the log ended early".to_owned()),
            Ok(chunk) => {
                let next = at + chunk.len() as u64;
                Ok(Some((Bytes::from(chunk), (caller, log, next, None))))
            }
            Err(problem) => Err(problem.close().1),
        }
    })
}

impl From<ArchiveError> for Problem {
    fn from(error: ArchiveError) -> Problem {
        match error {
            ArchiveError::Trimmed { .. } => Problem::new(Code::OutOfRange, error.to_string()),
            ArchiveError::Kind => Problem::new(Code::NoVersion, error.to_string()),
            ArchiveError::NoScreen | ArchiveError::NoLog => Problem::new(Code::SessionGone, error.to_string()),
            ArchiveError::Io(_) => Problem::new(Code::Unreachable, error.to_string()).retry_after(1),
        }
    }
}

#[cfg(test)]
mod tests;
