//! Sessions over HTTP: list, make, change, end, restart, command. Each call asks the files and the session's process.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::{Epoch, SessionId, SessionName};
use bowline_proto::message::SessionInfo;
use bowline_proto::size::Size;
use bowline_session::control::ControlError;
use bowline_session::home::Home;
use bowline_session::registry::{self, Entry, RegistryError};
use bowline_session::remove::Retention;
use bowline_session::start::{self, IfExists, Spec};
use bowline_session::{remove, rename};
use http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::ask;
use crate::extract::{Json, Key, OptionalJson, Query};
use crate::guard::{Reader, Writer};
use crate::problem::{Problem, internal};

/// The longest `Idempotency-Key`.
const MAX_KEY: usize = 256;
/// How long a repeat waits for the first request's session to be whole.
const WHOLE_WITHIN: Duration = Duration::from_secs(10);

/// How long a start or an end waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(10);

/// Runs what reads files or waits for processes beside the runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(internal(&error)))
}

/// As [`blocking`], for what may take seconds: only so many at a time, so that everything else finds a thread.
async fn slowly<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let turn = tokio::time::timeout(TURN_WITHIN, app.slow.acquire()).await;
    let busy = |_| Problem::new("unreachable", "too many sessions are being started or ended").retry_after(5);
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
            return Err(Problem::new("bad_name", format!("{key:?} is neither an id nor a name")));
        }
        Ok(registry::find(&home, &key))
    })
    .await
}

/// All sessions.
#[derive(Serialize, ToSchema)]
pub(crate) struct Listed {
    sessions: Vec<SessionInfo>,
}

/// Every session there is, oldest first.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "sessions", operation_id = "list_sessions",
    responses(
        (status = 200, body = Listed),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `read`"),
    )
)]
pub(crate) async fn list(State(app): State<App>, _: Reader) -> Result<Response, Problem> {
    Ok(Json(Listed { sessions: all(&app).await? }).into_response())
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

/// What to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Create {
    /// A program on a terminal.
    Terminal(CreateTerminal),
}

/// A program on a terminal.
// It is written again for the digest of a key. What nobody asked for is not in that, so that a repeat has the same one also
// after an upgrade to a version that knows more fields.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CreateTerminal {
    /// 1 to 64 of `A-Z a-z 0-9 . _ -`, and a letter or digit first.
    #[serde(skip_serializing_if = "is_default")]
    name: Option<String>,
    /// The program and its arguments; the login shell if empty.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    #[schema(value_type = Option<Vec<String>>)]
    argv: Vec<String>,
    /// An absolute path; the home directory if absent.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(value_type = Option<String>)]
    cwd: Option<PathBuf>,
    /// Variables beside those of a login.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    env: std::collections::BTreeMap<String, String>,
    #[serde(skip_serializing_if = "is_default")]
    #[schema(value_type = Option<Size>)]
    size: Option<Value>,
    /// What to do when a running session has the name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    #[schema(value_type = Option<IfExists>)]
    if_exists: IfExists,
    /// Seconds without a viewer after which it ends; 0 for never.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_default")]
    #[schema(value_type = Option<u64>)]
    detached_ttl: u64,
    /// Bytes of output that it keeps.
    #[serde(skip_serializing_if = "is_default")]
    log_size: Option<u64>,
    /// Lines that it keeps above the screen.
    #[serde(skip_serializing_if = "is_default")]
    scrollback: Option<u32>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What is null is as if it were left out.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

/// Makes a session.
#[utoipa::path(
    post, path = "/v1/sessions", tag = "sessions", operation_id = "create_session", request_body = Create,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeat with the same key returns the first session")),
    responses(
        (status = 201, description = "Made, now or by an earlier request with the same key", body = SessionInfo, headers(("Location" = String, description = "The session"))),
        (status = 200, description = "It was there before: `if_exists`", body = SessionInfo),
        (status = 400, description = "`bad_request`, `bad_name`, `bad_size`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `write`, or it is another machine's session"),
        (status = 409, description = "`name_taken`; `id_reused`: another request had this key"),
        (status = 413, description = "`too_large`"),
        (status = 422, description = "`bad_cwd`, `no_program`"),
        (status = 503, description = "`unreachable`: it did not come to life, or the one to replace does not end"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    Writer(caller): Writer,
    headers: HeaderMap,
    Json(Create::Terminal(wanted)): Json<Create>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers)?.map(|key| derive(caller.id(), key));
    let digest = digest(&wanted).map_err(|error| internal(&error))?;
    let mut spec = spec(&app, wanted).await?;
    let Some(id) = key else { return make(&app, spec).await };
    (spec.id, spec.request) = (Some(id.clone()), Some(digest));
    // A caller that leaves must not let its own repeat in beside the start that goes on.
    let made = tokio::spawn(async move { make_once(&app, id, spec).await });
    made.await.unwrap_or_else(|error| Err(internal(&error)))
}

/// Makes a session of a derived id, unless it was made before.
async fn make_once(app: &App, id: SessionId, spec: Spec) -> Result<Response, Problem> {
    let _making = app.making(&id).lock().await;
    if let Some(first) = first(app, &id).await? {
        if first.meta.request != spec.request {
            return Err(Problem::new("id_reused", "another request had this Idempotency-Key"));
        }
        return Ok(created(ask::describe(first).await));
    }
    make(app, spec).await
}

async fn make(app: &App, spec: Spec) -> Result<Response, Problem> {
    let (home, launcher) = (app.home.clone(), app.settings.launcher.clone());
    let retention = app.settings.sessions.retention;
    let (entry, existed) = slowly(app, move || {
        let started = start::start(&home, &launcher, spec)?;
        Ok((find_and_prune(&home, &started.id, &retention)?, started.existed))
    })
    .await?;
    let info = ask::describe(entry).await;
    Ok(if existed { Json(info).into_response() } else { created(info) })
}

/// The session that was just started, read before housekeeping: it may have ended already, and be forgotten by that.
fn find_and_prune(home: &Home, id: &SessionId, retention: &Retention) -> Result<Entry, RegistryError> {
    let entry = registry::find(home, id.as_str())?;
    // Housekeeping must not get in the way of what was asked for.
    let _ = remove::prune(home, retention, false);
    Ok(entry)
}

/// A new session, and where it is. That is relative to what was called, whose prefix a proxy may have taken off.
fn created(info: SessionInfo) -> Response {
    let place = [(header::LOCATION, format!("sessions/{}", info.id))];
    (StatusCode::CREATED, place, Json(info)).into_response()
}

/// The session of an earlier request with the same key. Its process may just be starting, also after this gateway's
/// predecessor was killed: then it is waited for.
async fn first(app: &App, id: &SessionId) -> Result<Option<Entry>, Problem> {
    let dir = app.home.session(id);
    let until = tokio::time::Instant::now() + WHOLE_WITHIN;
    loop {
        let looked = dir.clone();
        let (entry, starting) = blocking(move || {
            let starting = bowline_session::lock::Lock::is_held(&looked.lock());
            let path = looked.path().to_owned();
            let entry = registry::try_read(looked).map_err(|source| RegistryError::Io { path, source })?;
            Ok((entry, starting))
        })
        .await?;
        if entry.is_some() || !starting {
            return Ok(entry);
        }
        if tokio::time::Instant::now() > until {
            let detail = "an earlier request with this key is still starting its session";
            return Err(Problem::new("unreachable", detail).retry_after(5));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn spec(app: &App, wanted: CreateTerminal) -> Result<Spec, Problem> {
    let name = wanted.name.map(|name| name.parse::<SessionName>());
    let name = name.transpose().map_err(|why| Problem::new("bad_name", why.to_string()))?;
    let size =
        wanted.size.map(Size::deserialize).transpose().map_err(|why| Problem::new("bad_size", why.to_string()))?;
    let defaults = &app.settings.sessions;
    let mut env = app.environment.get().await.clone();
    for (variable, value) in wanted.env {
        if variable.is_empty() || variable.contains(['=', '\0']) || value.contains('\0') {
            return Err(Problem::new("bad_request", format!("{variable:?} cannot be a variable of the environment")));
        }
        env.retain(|(there, _)| *there != *variable);
        env.push((variable.into(), value.into()));
    }
    if wanted.argv.iter().any(|arg| arg.contains('\0')) || wanted.argv.first().is_some_and(String::is_empty) {
        return Err(Problem::new("bad_request", "argv has an empty program or a zero byte"));
    }
    let mut argv: Vec<OsString> = wanted.argv.into_iter().map(OsString::from).collect();
    if argv.is_empty() {
        argv.extend(defaults.shell.clone().map(OsString::from));
    }
    let home = || env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| PathBuf::from(home));
    let cwd = match wanted.cwd {
        Some(cwd) if !cwd.is_absolute() => {
            return Err(Problem::new("bad_cwd", format!("{} is not an absolute path", cwd.display())));
        }
        Some(cwd) => cwd,
        None => home().filter(|home| home.is_absolute()).unwrap_or_else(|| "/".into()),
    };
    Ok(Spec {
        name,
        argv,
        cwd,
        env,
        size: size.unwrap_or_default(),
        log_size: wanted.log_size.unwrap_or(defaults.log_size),
        history: wanted.scrollback.unwrap_or(defaults.history),
        detached_ttl: wanted.detached_ttl,
        if_exists: wanted.if_exists,
        id: None,
        request: None,
        open_files: app.open_files,
    })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&[u8]>, Problem> {
    let key = headers.get("idempotency-key").map(|key| key.as_bytes());
    match key {
        Some(key) if key.is_empty() || key.len() > MAX_KEY => {
            Err(Problem::new("bad_request", format!("an Idempotency-Key has 1 to {MAX_KEY} bytes")))
        }
        key => Ok(key),
    }
}

/// A session's id from who asks and their key: the same after a restart, and nobody else's.
fn derive(caller: &str, key: &[u8]) -> SessionId {
    let digest = Sha256::new().chain_update(caller).chain_update([0]).chain_update(key).finalize();
    let mut random = [0; 12];
    random.copy_from_slice(&digest[..12]);
    SessionId::from_random(random)
}

/// By this, a repeat is told from another request with the same key.
fn digest(wanted: &CreateTerminal) -> serde_json::Result<String> {
    let digest = Sha256::digest(serde_json::to_vec(wanted)?);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What to change.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Change {
    /// A new name.
    name: Option<String>,
    /// Seconds without a viewer after which it ends; 0 for never.
    detached_ttl: Option<u64>,
}

/// Renames a session, or sets how long it waits for a viewer.
#[utoipa::path(
    patch, path = "/v1/sessions/{id}", tag = "sessions", operation_id = "change_session", request_body = Change, params(("id" = String, Path, description = "The session's id or name")),
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
    Json(change): Json<Change>,
) -> Result<Response, Problem> {
    let name = change.name.map(|name| name.parse::<SessionName>());
    let name = name.transpose().map_err(|why| Problem::new("bad_name", why.to_string()))?;
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

/// Which life is meant.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct Restart {
    /// The life that ended; if it is not the last one any more, the session stays as it is now.
    epoch: Option<Epoch>,
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
    let started = slowly(&app, move || Ok(start::restart(&home, &launcher, &entry, restart.epoch.as_ref())?)).await?;
    describe(&app, started.id.as_str()).await
}

/// Something to do once.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Command {
    /// Chosen by the caller, 1 to 64 bytes: a repeat is told from another command by it.
    id: String,
    /// `{"type":"input","text"}` or `{"type":"signal","name"}`.
    #[schema(value_type = Object)]
    command: Value,
}

/// A command that was taken.
#[derive(Serialize, ToSchema)]
pub(crate) struct Taken {
    id: String,
    /// Its place in the session's events.
    seq: u64,
    /// `accepted`, or `duplicate` for a repeat.
    status: &'static str,
}

/// Does something once.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/commands", tag = "sessions", operation_id = "command_session", request_body = Command, params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 202, description = "Accepted", body = Taken),
        (status = 200, description = "Accepted before", body = Taken),
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
    Json(command): Json<Command>,
) -> Result<Response, Problem> {
    let entry = find(&app, &id).await?;
    let request = Request::Command { id: command.id, command: command.command };
    match ask::ask_running(&entry, &request).await? {
        Some(Reply::Accepted { id, seq, duplicate }) => {
            let (code, status) =
                if duplicate { (StatusCode::OK, "duplicate") } else { (StatusCode::ACCEPTED, "accepted") };
            Ok((code, Json(Taken { id, seq, status })).into_response())
        }
        Some(_) => Err(Problem::new("unreachable", "the session process answered with something unexpected")),
        None => Err(Problem::new("session_gone", "the session has ended")),
    }
}

#[cfg(test)]
mod tests {
    use bowline_session::events::{Event, Events};
    use bowline_session::meta::{Meta, this_boot, this_host};

    use super::*;

    #[test]
    fn r28_a_session_that_ends_and_is_forgotten_at_once_was_made() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        home.ensure().unwrap();
        let dir = home.session(&SessionId::from_random([0; 12]));
        std::fs::create_dir(dir.path()).unwrap();
        let (epoch, size) = (Epoch::from_random([0; 4]), Size::default());
        let mut events = Events::open(&dir.events()).unwrap();
        events.record(Event::Started { epoch, offset: 0, size, pid: 1, version: "0.1.0".to_owned() }).unwrap();
        events.record(Event::Exit { code: Some(0), signal: None, offset: 0 }).unwrap();
        let meta = serde_json::json!({
            "id": dir.id(), "name": "s", "kind": "terminal", "argv": ["true"], "cwd": "/", "env": [], "size": size,
            "log_size": 1 << 20, "history": 0, "created": "2026-01-01T00:00:00Z", "host": this_host(), "boot": this_boot(),
        });
        serde_json::from_value::<Meta>(meta).unwrap().write(&dir.meta()).unwrap();
        let entry = find_and_prune(&home, dir.id(), &Retention { max_age: Duration::ZERO, max_bytes: 0 }).unwrap();
        assert_eq!((&entry.info.id, dir.path().exists()), (dir.id(), false), "it is known, and forgotten");
    }

    /// A key is remembered for as long as its session, over upgrades.
    #[test]
    fn r28_a_digest_has_only_what_was_asked_for() {
        let digest = |wanted: Value| digest(&serde_json::from_value(wanted).unwrap()).unwrap();
        let hash = |text: &str| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(digest(serde_json::json!({})), hash("{}"));
        let nothing = serde_json::json!({
            "name": null, "argv": [], "cwd": null, "env": {}, "size": null, "if_exists": null, "detached_ttl": 0,
            "log_size": null, "scrollback": null,
        });
        assert_eq!(digest(nothing), hash("{}"));
        assert_eq!(digest(serde_json::json!({ "name": "a", "argv": ["b"] })), hash(r#"{"name":"a","argv":["b"]}"#));
    }
}
