//! `GET /v1/sessions/{id}/files`: files and folders below the directory of a session, to complete their names.

mod cache;
mod gitignore;
mod matching;
mod walk;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::files;
use bowline_proto::files::FileList;
use bowline_proto::problem::Code;
use rustix::io::Errno;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use self::cache::TreeKey;
pub(crate) use self::cache::Trees;
use self::matching::Pattern;
use self::walk::{Tree, walk};
use crate::app::App;
use crate::control::wrong_machine;
use crate::extract::{Json, Key, Query};
use crate::guard::UnpacedReader;
use crate::problem::Problem;
use crate::sessions::{find, on_thread};

/// How many usual requests a list of files counts as, in the caller's rate.
const COST: u32 = 2;
/// The longest `q` in bytes; a longer one gets 400 `bad_request`.
const MAX_QUERY: usize = 128;
/// The files of a list without a `limit`, and the most that a list has.
const DEFAULT_FILES: usize = 50;
const MAX_FILES: usize = 200;
/// How long the files of a tree are compared with `q`. What is left after that is left out, and the list says so.
const MATCH_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct FilesQuery {
    /// Characters that a path must contain, in this order, at most 128 bytes. Default: the top of the tree is listed.
    #[serde(default)]
    q: String,
    /// The most files of the list, 1 to 200. Default: 50.
    #[param(minimum = 1)]
    limit: Option<u64>,
}

/// Lists files and folders below the directory that a session was started in, the best matches first.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/files", tag = "sessions", operation_id = "list_files",
    params(FilesQuery, ("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, body = FileList),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required, the session belongs to another machine, or the gateway may not read the directory"),
        (status = 404, description = "`unknown_session`; `not_found`: the directory does not exist any more"),
        (status = 503, description = "`unreachable`: too many directories are being read, or this one cannot be read right now"),
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    UnpacedReader(caller): UnpacedReader,
    Key(id): Key,
    Query(query): Query<FilesQuery>,
) -> Result<Response, Problem> {
    app.pace(&caller, COST).await?;
    let FilesQuery { q, limit } = query;
    if q.len() > MAX_QUERY {
        let detail = format!("`q` has {} bytes; send at most {MAX_QUERY}", q.len());
        return Err(Problem::new(Code::BadRequest, detail));
    }
    if limit == Some(0) {
        let detail = format!("a list has at least 1 file; leave `limit` out for {DEFAULT_FILES}");
        return Err(Problem::new(Code::BadRequest, detail));
    }
    let limit = limit.map_or(DEFAULT_FILES, |limit| usize::try_from(limit).unwrap_or(MAX_FILES).min(MAX_FILES));
    let entry = find(&app, &caller, &id).await?;
    if !entry.is_local {
        return Err(wrong_machine(&entry));
    }
    // The directory that the session was started in. The one that a terminal's program reports (OSC 7) would let that program
    // choose what is listed.
    let dir = PathBuf::from(entry.meta.cwd.as_os());
    let pattern = Pattern::new(&q);
    let key = TreeKey { dir, with_hidden: pattern.names_hidden() };
    // Calls for the same directory come one after another, so that all but the first find its files in the cache.
    let turns = (app.turns.directory(&key.dir).await?, app.turns.walk(&caller).await?);
    let trees = app.trees.clone();
    let listed = until_hang_up(turns, move |stop| {
        let tree = tree(&trees, key, stop)?;
        Ok(matching::best(&tree, &pattern, limit, MATCH_WITHIN, stop))
    });
    Ok(Json(listed.await?).into_response())
}

/// Runs blocking work on a thread. It is stopped when the caller hangs up.
async fn until_hang_up<T: Send + 'static>(
    turns: impl Send + 'static,
    work: impl FnOnce(&CancellationToken) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let stop = CancellationToken::new();
    // Dropped with this call, of which nothing is left once its caller has hung up.
    let _guard = stop.clone().drop_guard();
    on_thread(turns, move || work(&stop)).await
}

/// The files below a directory: from the cache, or from the disk.
fn tree(trees: &Trees, key: TreeKey, stop: &CancellationToken) -> Result<Arc<Tree>, Problem> {
    if let Some(tree) = trees.get(&key) {
        return Ok(tree);
    }
    let tree = walk(&key.dir, key.with_hidden, stop).map_err(|error| unreadable(&key, &error))?;
    let tree = Arc::new(tree);
    if !stop.is_cancelled() {
        trees.put(key, tree.clone());
    }
    Ok(tree)
}

/// The problem of a directory that cannot be read.
fn unreadable(key: &TreeKey, error: &io::Error) -> Problem {
    let dir = key.dir.display();
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
            Problem::new(Code::NotFound, format!("the directory of this session, {dir}, does not exist any more"))
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            Problem::new(Code::NotAllowed, format!("the gateway may not read the directory of this session, {dir}"))
        }
        _ => {
            let detail = format!("cannot read the directory of this session, {dir}: {error}");
            Problem::new(files::code(error), detail).retry_after(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn r52_a_walk_ends_when_its_caller_hangs_up() {
        let (ended, is_ended) = mpsc::channel();
        let (begun, is_begun) = mpsc::channel();
        let mut call = Box::pin(until_hang_up((), move |stop| {
            begun.send(()).unwrap();
            while !stop.is_cancelled() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
            Ok(())
        }));
        assert!(call.as_mut().now_or_never().is_none());
        is_begun.recv().unwrap();
        drop(call);
        is_ended.recv().unwrap();
    }

    #[tokio::test]
    async fn a_walk_that_was_stopped_is_not_kept() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("a"), "").unwrap();
        let (trees, stop) = (Trees::default(), CancellationToken::new());
        let key = TreeKey { dir: temp.path().to_owned(), with_hidden: false };
        stop.cancel();
        assert_eq!(tree(&trees, key.clone(), &stop).unwrap().files.len(), 0);
        assert!(trees.get(&key).is_none());
        let stop = CancellationToken::new();
        assert_eq!(tree(&trees, key.clone(), &stop).unwrap().files.len(), 1);
        std::fs::write(temp.path().join("b"), "").unwrap();
        assert_eq!(tree(&trees, key, &stop).unwrap().files.len(), 1, "from the cache, for a few seconds");
    }
}
