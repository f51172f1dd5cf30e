//! `POST /v1/sessions`: validates the request, fills in defaults, and starts one session per `Idempotency-Key`.

use bowline_proto::api::{Checked, IfExists, NewAgent, NewSession, NewTerminal};
use bowline_proto::problem::Code;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::change_lock::ChangeKey;
use bowline_host::registry::{self, Entry, RegistryError};
use bowline_host::spec::{AgentSpec, BodySpec, Spec, TerminalSpec};
use bowline_host::start;
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::SessionInfo;
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::auth::Caller;
use crate::control;
use crate::extract::Json;
use crate::guard::Writer;
use crate::problem::{Problem, internal};
use crate::sessions::{blocking, on_thread};
use crate::tilde;
use crate::turns::Turn;

/// The longest `Idempotency-Key`, in bytes; a longer one gets 400 `bad_request`.
const MAX_KEY: usize = 256;
/// How long a repeated request waits for the first one to finish starting its session.
const EARLIER_START_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts a session.
#[utoipa::path(
    post, path = "/v1/sessions", tag = "sessions", operation_id = "create_session", request_body = NewSession,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated request with the same key returns the session that the first one started")),
    responses(
        (status = 201, description = "Started, by this request or an earlier one with the same key", body = SessionInfo, headers(("Location" = String, description = "The session, relative to this URL"))),
        (status = 200, description = "`if_exists: return` found a running session with the same name, command and directory", body = SessionInfo),
        (status = 400, description = "`bad_request`, `bad_name`, `bad_size`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `write` is required, or the session to replace belongs to another machine"),
        (status = 409, description = "`name_taken`: a running session has this name, and `detail` says what it runs; `id_reused`: a different request used this key"),
        (status = 413, description = "`too_large`"),
        (status = 422, description = "`bad_cwd`, `no_program`, `not_allowed_mode`"),
        (status = 503, description = "`unreachable`: the session process did not start, or the session to replace did not end"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    Writer(caller): Writer,
    headers: HeaderMap,
    Json(request): Json<NewSession>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers)?.map(|key| derive_id(caller.id(), key));
    let digest = match &request {
        NewSession::Terminal(terminal) => digest(terminal),
        NewSession::Agent(_) => digest(&request),
    };
    let digest = digest.map_err(|error| internal(&error))?;
    let mut spec = match request {
        NewSession::Terminal(terminal) => terminal_spec(&app, &caller, terminal).await?,
        NewSession::Agent(agent) => agent_spec(&app, &caller, agent).await?,
    };
    let Some(id) = key else { return start_session(&app, caller, spec, None).await };
    (spec.id, spec.request) = (Some(id.clone()), Some(digest));
    let turn = app.turns.create(&id, EARLIER_START_TIMEOUT).await?.ok_or_else(still_starting)?;
    if let Some(earlier) = find_earlier(&app, &id).await? {
        earlier.check_meta()?;
        if earlier.meta.request != spec.request {
            return Err(Problem::new(Code::IdReused, "this Idempotency-Key was already used for a different request"));
        }
        return Ok(created(control::describe(earlier).await));
    }
    start_session(&app, caller, spec, Some(turn)).await
}

/// Starts a session. `turn` is held until then, even if the client disconnects, so that a repeat of the request waits
/// for it.
async fn start_session(app: &App, caller: Caller, spec: Spec, turn: Option<Turn>) -> Result<Response, Problem> {
    let name = match spec.name.clone() {
        Some(name) => Some(app.turns.change(&ChangeKey::Name(name)).await?),
        None => None,
    };
    let turns = (turn, name, app.turns.start().await?);
    let (home, launcher) = (app.home.clone(), app.settings.launcher.clone());
    let retention = app.settings.sessions.retention;
    let start = move || {
        caller.check()?;
        Ok(start::start(&home, &launcher, spec, &retention)?)
    };
    let started = on_thread(turns, start).await?;
    let info = control::describe(started.entry).await;
    Ok(if started.existed { Json(info).into_response() } else { created(info) })
}

/// A 201 response. `Location` is relative to the request's URL, because a proxy may have stripped a prefix from it.
fn created(info: SessionInfo) -> Response {
    let location = [(header::LOCATION, format!("sessions/{}", info.id))];
    (StatusCode::CREATED, location, Json(info)).into_response()
}

/// The session that an earlier request with the same key started. Waits while its process is still starting, which
/// it may do even if the gateway that launched it was killed.
async fn find_earlier(app: &App, id: &SessionId) -> Result<Option<Entry>, Problem> {
    let dir = app.home.session(id);
    let deadline = tokio::time::Instant::now() + EARLIER_START_TIMEOUT;
    loop {
        let dir = dir.clone();
        let (entry, starting) = blocking(move || {
            let starting = bowline_host::alive::is_alive(&dir);
            let path = dir.path().to_owned();
            let entry = registry::try_read(dir).map_err(|source| RegistryError::Io { path, source })?;
            Ok((entry, starting))
        })
        .await?;
        if entry.is_some() || !starting {
            return Ok(entry);
        }
        if tokio::time::Instant::now() > deadline {
            return Err(still_starting());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn still_starting() -> Problem {
    let detail =
        "an earlier request with this Idempotency-Key is still starting its session; try again in a few seconds";
    Problem::new(Code::Unreachable, detail).retry_after(5)
}

fn session_name(name: Option<String>) -> Result<Option<SessionName>, Problem> {
    let name = name.map(|name| name.parse::<SessionName>());
    name.transpose().map_err(|why| Problem::new(Code::BadName, why.to_string()))
}

/// The working directory that a caller gives.
fn absolute(cwd: &str, home: Option<&Path>) -> Result<PathBuf, Problem> {
    let bad = |why: &str| Problem::new(Code::BadCwd, format!("the working directory {cwd}: {why}"));
    let expanded = tilde::expand(Path::new(cwd), home).map_err(|why| bad(&why.to_string()))?;
    match expanded.is_absolute() {
        true => Ok(expanded),
        false => Err(Problem::new(Code::BadCwd, format!("the working directory {cwd} is not an absolute path"))),
    }
}

async fn agent_spec(app: &App, caller: &Caller, request: NewAgent) -> Result<Spec, Problem> {
    let name = session_name(request.name.clone())?;
    let cwd = request.cwd.clone();
    let agent = AgentSpec::new(request, &app.settings.agents, || app.auth.display_name(caller))?;
    let env = app.environment.get().await.clone();
    Ok(Spec {
        name,
        cwd: absolute(&cwd, tilde::home(&env).as_deref())?,
        detached_ttl: 0,
        if_exists: IfExists::Fail,
        id: None,
        request: None,
        makers: app.auth.makers(caller),
        open_files: app.open_files,
        body: BodySpec::Agent(AgentSpec { env, ..agent }),
    })
}

async fn terminal_spec(app: &App, caller: &Caller, request: NewTerminal) -> Result<Spec, Problem> {
    let name = session_name(request.name)?;
    let size = request.size.map(Checked::get);
    let size = size.transpose().map_err(|why| Problem::new(Code::BadSize, why.to_string()))?;
    let defaults = &app.settings.sessions;
    let mut env = app.environment.get().await.clone();
    for (variable, value) in request.env {
        if variable.is_empty() || variable.contains(['=', '\0']) || value.contains('\0') {
            let detail = format!(
                "{variable:?} is not a valid environment variable: a name must not be empty or contain `=`, and \
                 neither a name nor a value may contain a NUL byte"
            );
            return Err(Problem::new(Code::BadRequest, detail).private());
        }
        env.retain(|(existing, _)| *existing != *variable);
        env.push((variable.into(), value.into()));
    }
    if request.argv.iter().any(|arg| arg.contains('\0')) || request.argv.first().is_some_and(String::is_empty) {
        return Err(Problem::new(Code::BadRequest, "argv must start with a program and must not contain NUL bytes"));
    }
    let mut argv: Vec<OsString> = request.argv.into_iter().map(OsString::from).collect();
    if argv.is_empty() {
        argv.extend(defaults.shell.clone().map(OsString::from));
    }
    let home = tilde::home(&env);
    let cwd = match request.cwd {
        Some(cwd) => absolute(&cwd, home.as_deref())?,
        None => home.unwrap_or_else(|| "/".into()),
    };
    Ok(Spec {
        name,
        cwd,
        detached_ttl: request.detached_ttl,
        if_exists: request.if_exists,
        id: None,
        request: None,
        makers: app.auth.makers(caller),
        open_files: app.open_files,
        body: BodySpec::Terminal(TerminalSpec {
            argv,
            env,
            size: size.unwrap_or_default(),
            log_size: request.log_size.unwrap_or(defaults.log_size),
            scrollback: request.scrollback.unwrap_or(defaults.scrollback),
        }),
    })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&[u8]>, Problem> {
    let key = headers.get("idempotency-key").map(|key| key.as_bytes());
    match key {
        Some(key) if key.is_empty() || key.len() > MAX_KEY => {
            Err(Problem::new(Code::BadRequest, format!("an Idempotency-Key must have 1 to {MAX_KEY} bytes")))
        }
        key => Ok(key),
    }
}

/// Derives a session id from the caller and the key, so that a repeat finds the session even after a gateway
/// restart and another caller's key never does.
fn derive_id(caller: &str, key: &[u8]) -> SessionId {
    let digest = Sha256::new().chain_update(caller).chain_update([0]).chain_update(key).finalize();
    let mut random = [0; 12];
    random.copy_from_slice(&digest[..12]);
    SessionId::from_random(random)
}

/// A digest of the request, to tell a repeat from a different request with the same key.
fn digest(request: &impl Serialize) -> serde_json::Result<String> {
    let digest = Sha256::digest(serde_json::to_vec(request)?);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digests are stored with the session, so they must not change between versions.
    #[test]
    fn r28_a_digest_covers_only_the_fields_that_were_sent() {
        let terminal = |request| serde_json::from_value::<NewTerminal>(request).unwrap();
        let digest = |request: serde_json::Value| digest(&terminal(request)).unwrap();
        let hash = |text: &str| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(digest(serde_json::json!({})), hash("{}"));
        assert_eq!(digest(serde_json::json!({ "name": "a", "argv": ["b"] })), hash(r#"{"name":"a","argv":["b"]}"#));
        let all = r#"{"name":"a","argv":["b"],"cwd":"/","env":{"C":"d"},"size":{"cols":100,"rows":30},"if_exists":"return","detached_ttl":1,"log_size":2,"scrollback":3}"#;
        assert_eq!(digest(serde_json::from_str(all).unwrap()), hash(all));
    }
}
