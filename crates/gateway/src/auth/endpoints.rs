//! Logging in and out, tokens and tickets, over HTTP.

use bowline_proto::api::{CodeReply, Login, LoginReply, NewToken, TicketReply, TokenList, TokenReply};
use bowline_proto::problem::Code;
use std::io;
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, State};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{delete, get, post};
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{AuthError, LoginError};
use crate::app::App;
use crate::extract::{Json, Key, OptionalJson};
use crate::guard::{Admin, Reader};
use crate::problem::{Problem, internal};
use crate::reach::Reach;
use crate::router::Route;
use crate::sessions::blocking;

/// How long a browser keeps the cookie: the longest that browsers allow. How long it is good for is the login's matter, and
/// every use extends that.
const COOKIE_SECONDS: u32 = 400 * 24 * 3600;

/// The paths of this file.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        ("/v1/login", post(login)),
        ("/v1/logout", post(logout)),
        ("/v1/tokens", get(list_tokens).post(create_token)),
        ("/v1/tokens/{id}", delete(revoke_token)),
        ("/v1/codes", post(create_code)),
        ("/v1/tickets", post(issue_ticket)),
    ]
}

/// A request to log in that is not one too many. It is counted before anything of it is read.
pub(crate) struct Attempt(Reach);

impl FromRequestParts<App> for Attempt {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Attempt, Problem> {
        let reach = reach(parts)?;
        app.login_rate.check(reach.client, Instant::now()).map_err(|wait| {
            let detail = format!("more than {} logins a minute from this address", app.settings.limits.login_rate);
            Problem::new(Code::TooMany, detail).retry_after(wait.as_secs() + 1)
        })?;
        Ok(Attempt(reach))
    }
}

impl FromRequestParts<App> for Reach {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Reach, Problem> {
        reach(parts)
    }
}

fn reach(parts: &Parts) -> Result<Reach, Problem> {
    let found = parts.extensions.get::<Reach>().cloned();
    found.ok_or_else(|| internal(&io::Error::other("the request passed no check of Host and Origin")))
}

/// Log a browser in.
#[utoipa::path(
    post, path = "/v1/login", tag = "auth", security(()), request_body = Login,
    responses(
        (status = 200, body = LoginReply, headers(("Set-Cookie" = String))),
        (status = 401, description = "`not_authenticated`: the code was used, is too old or is unknown"),
        (status = 429, description = "`too_many`: tries from this address"),
        (status = 503, description = "`unreachable`: another process that changes `auth.json` does not come to an end"),
    )
)]
pub(crate) async fn login(
    State(app): State<App>,
    Attempt(reach): Attempt,
    headers: HeaderMap,
    Json(Login { code }): Json<Login>,
) -> Result<Response, Problem> {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let (auth, label) = (app.auth.clone(), agent.unwrap_or("a browser").to_owned());
    let login = blocking(move || Ok(auth.login(code.reveal(), &label)?)).await?;
    tracing::info!(login = login.id, from = %reach.client, "logged a browser in");
    let cookie = cookie(&app, &reach, login.cookie.reveal(), COOKIE_SECONDS);
    Ok((AppendHeaders([(header::SET_COOKIE, cookie)]), Json(LoginReply { key: login.key })).into_response())
}

/// Log this browser out, and close its connections.
#[utoipa::path(
    post, path = "/v1/logout", tag = "auth",
    responses(
        (status = 204),
        (status = 400, description = "`bad_request`: the caller is no browser login"),
        (status = 401, description = "`not_authenticated`"),
        (status = 503, description = "`unreachable`: another process that changes `auth.json` does not come to an end"),
    )
)]
pub(crate) async fn logout(State(app): State<App>, Reader(caller): Reader, reach: Reach) -> Result<Response, Problem> {
    let auth = app.auth.clone();
    blocking(move || Ok(auth.logout(&caller)?)).await?;
    let cookie = cookie(&app, &reach, "", 0);
    Ok((StatusCode::NO_CONTENT, AppendHeaders([(header::SET_COOKIE, cookie)])).into_response())
}

/// The cookie, for this gateway's own path and for nobody's script.
fn cookie(app: &App, reach: &Reach, value: &str, seconds: u32) -> String {
    let name = app.auth.cookie_name();
    let path = if reach.prefix.is_empty() { "/" } else { &reach.prefix };
    let secure = if reach.secure { "; Secure" } else { "" };
    format!("{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// List tokens, and browsers that have logged in.
#[utoipa::path(
    get, path = "/v1/tokens", tag = "auth",
    responses(
        (status = 200, body = TokenList),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `admin`"),
    )
)]
pub(crate) async fn list_tokens(State(app): State<App>, _: Admin) -> Response {
    Json(TokenList { tokens: app.auth.tokens() }).into_response()
}

/// Make a token.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "auth", request_body = NewToken,
    responses(
        (status = 201, body = TokenReply),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `admin`"),
        (status = 429, description = "`too_many`: tokens"),
        (status = 503, description = "`unreachable`: another process that changes `auth.json` does not come to an end"),
    )
)]
pub(crate) async fn create_token(
    State(app): State<App>,
    Admin(caller): Admin,
    Json(wanted): Json<NewToken>,
) -> Result<Response, Problem> {
    let (auth, ttl) = (app.auth.clone(), wanted.ttl.map(Duration::from_secs));
    let made = blocking(move || Ok(auth.create_token(&wanted.name, wanted.scope, ttl)?)).await?;
    tracing::info!(token = made.id, by = caller.id(), "made a token");
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Revoke a token or a browser login, and close its connections.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", tag = "auth", params(("id" = String, Path)),
    responses(
        (status = 204),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `admin`"),
        (status = 404, description = "`not_found`"),
        (status = 503, description = "`unreachable`: another process that changes `auth.json` does not come to an end"),
    )
)]
pub(crate) async fn revoke_token(
    State(app): State<App>,
    Admin(caller): Admin,
    Key(id): Key,
) -> Result<StatusCode, Problem> {
    let auth = app.auth.clone();
    blocking(move || {
        if !auth.revoke(&id)? {
            return Err(Problem::new(Code::NotFound, "no token and no browser login has this id"));
        }
        tracing::info!(token = id, by = caller.id(), "revoked a token or login");
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Make a code that logs one browser in.
#[utoipa::path(
    post, path = "/v1/codes", tag = "auth",
    responses(
        (status = 201, body = CodeReply),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `admin`"),
        (status = 503, description = "`unreachable`: another process that changes `auth.json` does not come to an end"),
    )
)]
pub(crate) async fn create_code(State(app): State<App>, Admin(caller): Admin) -> Result<Response, Problem> {
    let auth = app.auth.clone();
    let made = blocking(move || Ok(auth.new_code()?)).await?;
    tracing::info!(by = caller.id(), "made a login code");
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Nothing yet.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct TicketRequest {}

/// Get a ticket for a WebSocket or event stream that can send neither cookie nor header.
#[utoipa::path(
    post, path = "/v1/tickets", tag = "auth", request_body = TicketRequest,
    responses((status = 200, body = TicketReply), (status = 401, description = "`not_authenticated`"))
)]
pub(crate) async fn issue_ticket(
    State(app): State<App>,
    Reader(caller): Reader,
    OptionalJson(TicketRequest {}): OptionalJson<TicketRequest>,
) -> Result<Response, Problem> {
    Ok(Json(app.auth.issue_ticket(&caller)?).into_response())
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Problem {
        match &error {
            AuthError::BadName(_) => Problem::new(Code::BadName, error.to_string()),
            AuthError::BadTtl | AuthError::NotALogin => Problem::new(Code::BadRequest, error.to_string()),
            AuthError::TooManyTokens => Problem::new(Code::TooMany, error.to_string()),
            AuthError::Busy { .. } => Problem::new(Code::Unreachable, error.to_string()).retry_after(5),
            AuthError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Problem::new(Code::NoSpace, error.to_string())
            }
            AuthError::Home(_)
            | AuthError::Io { .. }
            | AuthError::Damaged { .. }
            | AuthError::Newer { .. }
            | AuthError::NoRandom(_) => internal(&error),
        }
    }
}

impl From<LoginError> for Problem {
    fn from(error: LoginError) -> Problem {
        match error {
            LoginError::BadCode => Problem::new(Code::NotAuthenticated, error.to_string()),
            LoginError::Auth(error) => error.into(),
        }
    }
}
