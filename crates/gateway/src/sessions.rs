//! Sessions over HTTP: list, change, end, restart, command; `create.rs` makes them. Each call asks the files and the session's process.

use bowline_proto::problem::Code;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::control::ControlError;
use bowline_host::registry::{self, Entry, RegistryError};
use bowline_host::{remove, rename, start};
use bowline_proto::api::{CommandAccepted, NewCommand, Restart, SessionChange, SessionList};
use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::SessionInfo;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::ask;
use crate::extract::{Json, Key, OptionalJson, Query};
use crate::guard::{Reader, Writer};
use crate::problem::{Problem, internal};

/// How long a start or an end waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(10);

/// Runs what reads files or waits for processes beside the runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(internal(&error)))
}

/// As [`blocking`], for what may take seconds: only so many at a time, so that everything else finds a thread.
pub(crate) async fn slowly<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = tokio::time::timeout(TURN_WITHIN, app.slow.acquire()).await;
    let busy = |_| Problem::new(Code::Unreachable, "too many sessions are being started or ended").retry_after(5);
    let _turn = turn.map_err(busy)?.map_err(|error| internal(&error))?;
    blocking(work).await
}

/// The session of this id or name.
pub(crate) async fn find(app: &App, key: &str) -> Result<Entry, Problem> {
    Ok(look(app, key).await??)
}

/// The same, or why it was not found.
async fn look(app: &App, key: &str) -> Result<Result<Entry, RegistryError>, Problem> {
    let (home, key) = (app.home.clone(), key.to_owned());
    blocking(move || {
        if key.parse::<SessionId>().is_err() && key.parse::<SessionName>().is_err() {
            return Err(Problem::new(Code::BadName, format!("{key:?} is neither an id nor a name")));
        }
        Ok(registry::find(&home, &key))
    })
    .await
}

/// Every session there is, oldest first.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "sessions", operation_id = "list_sessions",
    responses(
        (status = 200, body = SessionList),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `read`"),
    )
)]
pub(crate) async fn list(State(app): State<App>, _: Reader) -> Result<Response, Problem> {
    Ok(Json(SessionList { sessions: all(&app).await? }).into_response())
}

/// Every session, described.
pub(crate) async fn all(app: &App) -> Result<Vec<SessionInfo>, Problem> {
    let home = app.home.clone();
    let entries = blocking(move || Ok(registry::list_files(&home)?)).await?;
    Ok(ask::describe_all(entries).await)
}

/// One session.
#[utoipa::path(
    get, path = "/v1/sessions/{id}", tag = "sessions", operation_id = "get_session", params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, body = SessionInfo),
        (status = 400, description = "`bad_name`: neither an id nor a name"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `read`"),
        (status = 404, description = "`unknown_session`"),
        (status = 503, description = "`unreachable`: its files cannot be read, which does not prove that it is not there"),
    )
)]
pub(crate) async fn get(State(app): State<App>, _: Reader, Key(id): Key) -> Result<Response, Problem> {
    describe(&app, &id).await
}

async fn describe(app: &App, id: &str) -> Result<Response, Problem> {
    Ok(Json(ask::describe(find(app, id).await?).await).into_response())
}

/// Renames a session, or sets how long it waits for a viewer.
#[utoipa::path(
    patch, path = "/v1/sessions/{id}", tag = "sessions", operation_id = "change_session", request_body = SessionChange, params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, body = SessionInfo),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `write`, or it is another machine's session"),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`name_taken`"),
        (status = 410, description = "`session_gone`: only a running session can be given a TTL"),
        (status = 503, description = "`unreachable`: the session process does not answer"),
    )
)]
pub(crate) async fn change(
    State(app): State<App>,
    _: Writer,
    Key(id): Key,
    Json(change): Json<SessionChange>,
) -> Result<Response, Problem> {
    let name = change.name.map(|name| name.parse::<SessionName>());
    let name = name.transpose().map_err(|why| Problem::new(Code::BadName, why.to_string()))?;
    let entry = find(&app, &id).await?;
    let id = entry.info.id.clone();
    match (name, change.detached_ttl) {
        (Some(name), ttl) => {
            let home = app.home.clone();
            blocking(move || Ok(rename::rename(&home, &entry, &name, ttl)?)).await?;
        }
        (None, Some(_)) => {
            let request = Request::Set { name: None, detached_ttl: change.detached_ttl };
            match ask::ask_running(&entry, &request).await? {
                Some(Reply::Done) => {}
                Some(_) => return Err(ControlError::Unexpected.into()),
                None => return Err(rename::RenameError::Ended.into()),
            }
        }
        (None, None) => {}
    }
    describe(&app, id.as_str()).await
}

/// How to end.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(crate) struct End {
    /// Its files stay.
    #[serde(default)]
    keep: bool,
    /// Seconds between SIGHUP and SIGKILL.
    grace: Option<u64>,
}

/// Ends a session and forgets it.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", tag = "sessions", operation_id = "end_session", params(End, ("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 204, description = "Ended, and forgotten unless `keep`"),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `write`, or it is another machine's session"),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`id_reused`: it was started again meanwhile"),
        (status = 503, description = "`unreachable`: the session process does not answer"),
    )
)]
pub(crate) async fn end(
    State(app): State<App>,
    _: Writer,
    Key(id): Key,
    Query(how): Query<End>,
) -> Result<Response, Problem> {
    let grace = how.grace.map_or(remove::DEFAULT_GRACE, Duration::from_secs);
    match look(&app, &id).await? {
        // It has ended; what is left of it can be forgotten, whatever it was.
        Err(RegistryError::Damaged { dir, .. }) if !how.keep => {
            slowly(&app, move || Ok(remove::forget_damaged(&dir)?)).await?;
        }
        found => {
            let entry = found?;
            slowly(&app, move || Ok(remove::end(&entry, grace, how.keep)?)).await?;
        }
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Gives an exited or lost session a new life.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/restart", tag = "sessions", operation_id = "restart_session", request_body = Option<Restart>, params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, body = SessionInfo),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `write`, or it is another machine's session"),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`name_taken`: another running session has its name"),
        (status = 422, description = "`bad_cwd`, `no_program`"),
        (status = 503, description = "`unreachable`: it did not come to life"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn restart(
    State(app): State<App>,
    _: Writer,
    Key(id): Key,
    OptionalJson(restart): OptionalJson<Restart>,
) -> Result<Response, Problem> {
    let entry = find(&app, &id).await?;
    let (home, launcher) = (app.home.clone(), app.settings.launcher.clone());
    let entry = slowly(&app, move || Ok(start::restart(&home, &launcher, &entry, restart.epoch.as_ref())?)).await?;
    Ok(Json(ask::describe(entry).await).into_response())
}

/// Does something once.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/commands", tag = "sessions", operation_id = "command_session", request_body = NewCommand, params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 202, description = "Accepted", body = CommandAccepted),
        (status = 200, description = "Accepted before", body = CommandAccepted),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `write`, or it is another machine's session"),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`id_reused`: another command had this id"),
        (status = 410, description = "`session_gone`"),
        (status = 413, description = "`too_large`"),
        (status = 429, description = "`too_many`: the program has not read what was sent before"),
        (status = 503, description = "`unreachable`: the session process does not answer"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn command(
    State(app): State<App>,
    _: Writer,
    Key(id): Key,
    Json(command): Json<NewCommand>,
) -> Result<Response, Problem> {
    let entry = find(&app, &id).await?;
    let request = Request::Command { id: command.id, command: command.command };
    match ask::ask_running(&entry, &request).await? {
        Some(Reply::Accepted { id, seq, duplicate }) => {
            let code = if duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
            Ok((code, Json(CommandAccepted::new(id, seq, duplicate))).into_response())
        }
        Some(_) => Err(Problem::new(Code::Unreachable, "the session process answered with something unexpected")),
        None => Err(Problem::new(Code::SessionGone, "the session has ended")),
    }
}
