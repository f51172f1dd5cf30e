//! Session endpoints: get, change, end, restart and command. `list.rs` lists sessions, `create.rs` starts new ones.

use bowline_proto::problem::Code;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::change_lock::ChangeKey;
use bowline_host::control::ControlError;
use bowline_host::registry::{self, Entry, RegistryError};
use bowline_host::{remove, rename, repair, start, transcript};
use bowline_proto::api::{CommandAccepted, NewCommand, Restart, SessionChange};
use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::{Kind, SessionInfo};
use http::StatusCode;
use serde::Deserialize;
use tokio::sync::Semaphore;
use utoipa::IntoParams;

use crate::app::App;
use crate::auth::Caller;
use crate::changes;
use crate::control;
use crate::extract::{Json, Key, OptionalJson, Query};
use crate::guard::{Reader, Writer};
use crate::problem::{Problem, internal};

/// Concurrent work on files; more waits. Far less than the runtime's 512 threads, so that starts always find one. More
/// threads would not make the files faster, but delay everything else.
pub(crate) const MAX_FILE_WORK: usize = 32;
/// How long a call waits to work on files. After that it gets 503 `unreachable`.
const FILE_WORK_TIMEOUT: Duration = Duration::from_secs(10);

static FILE_WORK: Semaphore = Semaphore::const_new(MAX_FILE_WORK);

/// Runs short blocking work, such as reading files, outside the async runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let slot = tokio::time::timeout(FILE_WORK_TIMEOUT, FILE_WORK.acquire()).await;
    let busy = |_| {
        let detail = "too many requests are reading or writing files; try again in a few seconds";
        Problem::new(Code::Unreachable, detail).retry_after(5)
    };
    let slot = slot.map_err(busy)?.map_err(|error| internal(&error))?;
    on_thread(slot, work).await
}

/// Runs blocking work that may take seconds. The thread holds `turn` until the work is done: if the client hangs up,
/// the work goes on, and has to count as long as it does.
pub(crate) async fn on_thread<T: Send + 'static>(
    turn: impl Send + 'static,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let work = move || {
        let result = work();
        drop(turn);
        result
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(internal(&error)))
}

/// Finds a session by id or name.
pub(crate) async fn find(app: &App, caller: &Caller, key: &str) -> Result<Entry, Problem> {
    Ok(try_find(app, caller, key).await??)
}

/// Like [`find`], for a call that makes sense only for a terminal.
pub(crate) async fn find_terminal(app: &App, caller: &Caller, key: &str) -> Result<Entry, Problem> {
    let entry = find(app, caller, key).await?;
    if entry.meta.kind == Kind::Agent {
        let detail = "an agent session has neither a screen nor a log; follow its events instead";
        return Err(Problem::new(Code::BadRequest, detail));
    }
    Ok(entry)
}

/// Like [`find`], for a call that makes sense only for an agent session.
pub(crate) async fn find_agent(app: &App, caller: &Caller, key: &str) -> Result<Entry, Problem> {
    let entry = find(app, caller, key).await?;
    if entry.meta.kind != Kind::Agent {
        let detail = "this call is for agent sessions, and the session is a terminal";
        return Err(Problem::new(Code::BadRequest, detail));
    }
    Ok(entry)
}

/// Like [`find`], but returns the registry's error for the caller to inspect.
async fn try_find(app: &App, caller: &Caller, key: &str) -> Result<Result<Entry, RegistryError>, Problem> {
    let turn = app.turns.search(caller).await?;
    let (home, key) = (app.home.clone(), key.to_owned());
    blocking(move || {
        // Held until the search is done, even if the caller hangs up.
        let _turn = turn;
        if key.parse::<SessionId>().is_err() && key.parse::<SessionName>().is_err() {
            return Err(Problem::new(Code::BadName, format!("{key:?} is not a valid session id or name")));
        }
        Ok(registry::find(&home, &key).and_then(|entry| {
            let id = entry.info.id.clone();
            // The runs of a session whose process died are ended by the first that looks at it. If another process
            // changes it meanwhile, it may be running again.
            repair::repair_if_needed(&home, entry).map_or_else(|| registry::find(&home, id.as_str()), Ok)
        }))
    })
    .await
}

/// Describes one session.
#[utoipa::path(
    get, path = "/v1/sessions/{id}", tag = "sessions", operation_id = "get_session",
    params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, body = SessionInfo),
        (status = 400, description = "`bad_name`: not a valid id or name"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 404, description = "`unknown_session`"),
        (status = 503, description = "`unreachable`: the session's files cannot be read right now; it may still exist"),
    )
)]
pub(crate) async fn get(State(app): State<App>, Reader(caller): Reader, Key(id): Key) -> Result<Response, Problem> {
    describe(&app, &caller, &id).await
}

async fn describe(app: &App, caller: &Caller, id: &str) -> Result<Response, Problem> {
    Ok(Json(control::describe(find(app, caller, id).await?).await).into_response())
}

/// Renames a session, or sets its TTL: how long it keeps running without a viewer.
#[utoipa::path(
    patch, path = "/v1/sessions/{id}", tag = "sessions", operation_id = "change_session", request_body = SessionChange,
    params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, body = SessionInfo),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `write` is required, or the session belongs to another machine"),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`name_taken`"),
        (status = 410, description = "`session_gone`: the session has ended, so its TTL cannot be set"),
        (status = 503, description = "`unreachable`: the session process does not answer"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn change(
    State(app): State<App>,
    Writer(caller): Writer,
    Key(id): Key,
    Json(change): Json<SessionChange>,
) -> Result<Response, Problem> {
    let name = change.name.map(|name| name.parse::<SessionName>());
    let name = name.transpose().map_err(|why| Problem::new(Code::BadName, why.to_string()))?;
    let entry = find(&app, &caller, &id).await?;
    let id = entry.info.id.clone();
    match (name, change.detached_ttl) {
        (Some(name), ttl) => {
            changes::rename(&app, caller.clone(), entry, name, ttl).await?;
        }
        (None, Some(_)) => {
            caller.check()?;
            let request = Request::Set { name: None, detached_ttl: change.detached_ttl };
            match control::request_running(&entry, &request).await? {
                Some(Reply::Done) => {}
                Some(_) => return Err(ControlError::Unexpected.into()),
                None => return Err(rename::RenameError::Ended.into()),
            }
        }
        (None, None) => {}
    }
    describe(&app, &caller, id.as_str()).await
}

#[derive(Debug, Default, Deserialize, IntoParams)]
pub(crate) struct EndQuery {
    /// Keep the session's files, so that its log and screen can still be read and it can be restarted.
    #[serde(default)]
    keep: bool,
    /// Seconds between SIGHUP and SIGKILL.
    grace: Option<u64>,
}

/// Ends a session and removes its files.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", tag = "sessions", operation_id = "end_session",
    params(EndQuery, ("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 204, description = "The session has ended; its files are removed unless `keep` is set"),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `write` is required, or the session belongs to another machine"),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`id_reused`: the session was restarted in the meantime"),
        (status = 503, description = "`unreachable`: the session process does not answer"),
    )
)]
pub(crate) async fn end(
    State(app): State<App>,
    Writer(caller): Writer,
    Key(id): Key,
    Query(query): Query<EndQuery>,
) -> Result<Response, Problem> {
    match try_find(&app, &caller, &id).await? {
        // A session with damaged files has ended; its files can be removed without being parsed.
        Err(RegistryError::Damaged { dir, .. }) if !query.keep => {
            let forget = move || {
                caller.check()?;
                Ok(remove::forget_damaged(&dir)?)
            };
            blocking(forget).await?;
        }
        found => {
            let entry = found?;
            let grace = query.grace.map_or_else(|| remove::default_grace(entry.meta.kind), Duration::from_secs);
            changes::end(&app, caller, entry, grace, query.keep).await?;
        }
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Restarts an exited or lost session, which gets a new epoch.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/restart", tag = "sessions", operation_id = "restart_session", request_body = Option<Restart>,
    params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 200, body = SessionInfo),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `write` is required, or the session belongs to another machine"),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`name_taken`: another running session has its name"),
        (status = 422, description = "`bad_cwd`, `no_program`"),
        (status = 426, description = "`no_version`: this version cannot run a session of that kind"),
        (status = 503, description = "`unreachable`: the session process did not start"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn restart(
    State(app): State<App>,
    Writer(caller): Writer,
    Key(id): Key,
    OptionalJson(restart): OptionalJson<Restart>,
) -> Result<Response, Problem> {
    let entry = find(&app, &caller, &id).await?;
    let session = app.turns.change(&ChangeKey::Session(entry.info.id.clone())).await?;
    let name = match entry.meta.name.clone() {
        Some(name) => Some(app.turns.change(&ChangeKey::Name(name)).await?),
        None => None,
    };
    let turns = (session, name, app.turns.start().await?);
    let (home, launcher) = (app.home.clone(), app.settings.launcher.clone());
    let agents = app.settings.agents.clone();
    let start = move || {
        caller.check()?;
        Ok(start::restart(&home, &launcher, &entry, restart.epoch.as_ref(), &agents)?)
    };
    let entry = on_thread(turns, start).await?;
    Ok(Json(control::describe(entry).await).into_response())
}

/// Runs a command in a session, at most once for each command id.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/commands", tag = "sessions", operation_id = "command_session", request_body = NewCommand,
    params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 202, description = "Accepted", body = CommandAccepted),
        (status = 200, description = "Accepted by an earlier request with the same id", body = CommandAccepted),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `write` is required, or the session belongs to another machine"),
        (status = 404, description = "`unknown_session`; `not_found`: no such approval"),
        (status = 409, description = "`id_reused`: a different command already has this id; `not_running`: the run is not open; `already_answered`: `outcome` and `by` say how"),
        (status = 410, description = "`session_gone`"),
        (status = 413, description = "`too_large`"),
        (status = 422, description = "`not_allowed_mode`: the server does not allow this mode of the agent"),
        (status = 429, description = "`too_many`: the program has not read its earlier input yet, or too many prompts wait"),
        (status = 503, description = "`unreachable`: the session process does not answer"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn command(
    State(app): State<App>,
    Writer(caller): Writer,
    Key(id): Key,
    Json(command): Json<NewCommand>,
) -> Result<Response, Problem> {
    let entry = find(&app, &caller, &id).await?;
    caller.check()?;
    let NewCommand { id, command } = command;
    let by = Some(app.auth.display_name(&caller));
    let request = Request::Command { id: id.clone(), command: command.clone(), by };
    match control::request_running(&entry, &request).await? {
        Some(Reply::Accepted { id, seq, run, duplicate }) => {
            let code = if duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
            Ok((code, Json(CommandAccepted::new(id, seq, run, duplicate))).into_response())
        }
        Some(_) => Err(Problem::new(Code::Unreachable, ControlError::Unexpected.to_string())),
        None => {
            let accepted = blocking(move || Ok(transcript::find_accepted(&entry, id, &command)?)).await?;
            Ok(Json(accepted).into_response())
        }
    }
}

#[cfg(test)]
mod tests;
