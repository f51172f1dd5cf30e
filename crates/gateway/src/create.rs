//! A session is made over HTTP: what was asked for, checked and completed, and once for each `Idempotency-Key`.

use bowline_proto::api::{Checked, NewSession, NewTerminal};
use bowline_proto::problem::Code;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bowline_host::registry::{self, Entry, RegistryError};
use bowline_host::start::{self, BodySpec, Spec, TerminalSpec};
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::SessionInfo;
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::ask;
use crate::extract::Json;
use crate::guard::Writer;
use crate::problem::{Problem, internal};
use crate::sessions::{blocking, slowly};

/// The longest `Idempotency-Key`.
const MAX_KEY: usize = 256;
/// How long a repeat waits for the first request's session to be whole.
const WHOLE_WITHIN: Duration = Duration::from_secs(10);

/// Makes a session.
#[utoipa::path(
    post, path = "/v1/sessions", tag = "sessions", operation_id = "create_session", request_body = NewSession,
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeat with the same key returns the first session")),
    responses(
        (status = 201, description = "Made, now or by an earlier request with the same key", body = SessionInfo, headers(("Location" = String, description = "The session"))),
        (status = 200, description = "`if_exists: return` found it running, with the same command and directory", body = SessionInfo),
        (status = 400, description = "`bad_request`, `bad_name`, `bad_size`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `write`, or it is another machine's session"),
        (status = 409, description = "`name_taken`: a running session has the name, and `detail` says what it runs; `id_reused`: another request had this key"),
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
    Json(NewSession::Terminal(wanted)): Json<NewSession>,
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
            return Err(Problem::new(Code::IdReused, "another request had this Idempotency-Key"));
        }
        return Ok(created(ask::describe(first).await));
    }
    make(app, spec).await
}

async fn make(app: &App, spec: Spec) -> Result<Response, Problem> {
    let (home, launcher) = (app.home.clone(), app.settings.launcher.clone());
    let retention = app.settings.sessions.retention;
    let started = slowly(app, move || Ok(start::start(&home, &launcher, spec, &retention)?)).await?;
    let info = ask::describe(started.entry).await;
    Ok(if started.existed { Json(info).into_response() } else { created(info) })
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
            let starting = bowline_host::lock::Lock::is_held(&looked.lock());
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
            return Err(Problem::new(Code::Unreachable, detail).retry_after(5));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn spec(app: &App, wanted: NewTerminal) -> Result<Spec, Problem> {
    let name = wanted.name.map(|name| name.parse::<SessionName>());
    let name = name.transpose().map_err(|why| Problem::new(Code::BadName, why.to_string()))?;
    let size = wanted.size.map(Checked::get);
    let size = size.transpose().map_err(|why| Problem::new(Code::BadSize, why.to_string()))?;
    let defaults = &app.settings.sessions;
    let mut env = app.environment.get().await.clone();
    for (variable, value) in wanted.env {
        if variable.is_empty() || variable.contains(['=', '\0']) || value.contains('\0') {
            return Err(Problem::new(
                Code::BadRequest,
                format!("{variable:?} cannot be a variable of the environment"),
            ));
        }
        env.retain(|(there, _)| *there != *variable);
        env.push((variable.into(), value.into()));
    }
    if wanted.argv.iter().any(|arg| arg.contains('\0')) || wanted.argv.first().is_some_and(String::is_empty) {
        return Err(Problem::new(Code::BadRequest, "argv has an empty program or a zero byte"));
    }
    let mut argv: Vec<OsString> = wanted.argv.into_iter().map(OsString::from).collect();
    if argv.is_empty() {
        argv.extend(defaults.shell.clone().map(OsString::from));
    }
    let home = || env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| PathBuf::from(home));
    let cwd = match wanted.cwd.map(PathBuf::from) {
        Some(cwd) if !cwd.is_absolute() => {
            return Err(Problem::new(Code::BadCwd, format!("{} is not an absolute path", cwd.display())));
        }
        Some(cwd) => cwd,
        None => home().filter(|home| home.is_absolute()).unwrap_or_else(|| "/".into()),
    };
    Ok(Spec {
        name,
        cwd,
        detached_ttl: wanted.detached_ttl,
        if_exists: wanted.if_exists,
        id: None,
        request: None,
        open_files: app.open_files,
        body: BodySpec::Terminal(TerminalSpec {
            argv,
            env,
            size: size.unwrap_or_default(),
            log_size: wanted.log_size.unwrap_or(defaults.log_size),
            history: wanted.scrollback.unwrap_or(defaults.history),
        }),
    })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&[u8]>, Problem> {
    let key = headers.get("idempotency-key").map(|key| key.as_bytes());
    match key {
        Some(key) if key.is_empty() || key.len() > MAX_KEY => {
            Err(Problem::new(Code::BadRequest, format!("an Idempotency-Key has 1 to {MAX_KEY} bytes")))
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
fn digest(wanted: &NewTerminal) -> serde_json::Result<String> {
    let digest = Sha256::digest(serde_json::to_vec(wanted)?);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key is remembered for as long as its session, over upgrades.
    #[test]
    fn r28_a_digest_has_only_what_was_asked_for() {
        let digest = |wanted: serde_json::Value| digest(&serde_json::from_value(wanted).unwrap()).unwrap();
        let hash = |text: &str| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(digest(serde_json::json!({})), hash("{}"));
        assert_eq!(digest(serde_json::json!({ "name": "a", "argv": ["b"] })), hash(r#"{"name":"a","argv":["b"]}"#));
        let all = r#"{"name":"a","argv":["b"],"cwd":"/","env":{"C":"d"},"size":{"cols":100,"rows":30},"if_exists":"return","detached_ttl":1,"log_size":2,"scrollback":3}"#;
        assert_eq!(digest(serde_json::from_str(all).unwrap()), hash(all));
    }
}
