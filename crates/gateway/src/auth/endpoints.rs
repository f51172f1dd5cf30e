//! Endpoints for logging in and out, tokens, login codes and tickets.

use bowline_host::files;
use bowline_proto::api::{CodeReply, Login, LoginReply, NewToken, Revoked, TicketReply, TokenList, TokenReply};
use bowline_proto::problem::Code;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, State};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{delete, get, post};
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::browser::browser_name;
use super::{AuthError, LoginError, Maker};
use crate::app::App;
use crate::context::RequestContext;
use crate::extract::{Json, Key, OptionalJson, Query, SmallJson};
use crate::guard::{Admin, Reader, UnpacedAdmin, UnpacedReader};
use crate::problem::{Problem, internal, unwritable};
use crate::router::Route;
use crate::sessions::on_thread;

/// The cookie's `Max-Age`: the longest that browsers allow. The login behind it expires sooner, unless it is used.
const COOKIE_SECONDS: u32 = 400 * 24 * 3600;

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

impl FromRequestParts<App> for RequestContext {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<RequestContext, Problem> {
        context(parts)
    }
}

fn context(parts: &Parts) -> Result<RequestContext, Problem> {
    let found = parts.extensions.get::<RequestContext>().cloned();
    found.ok_or_else(|| internal(&io::Error::other("the Host and Origin of this request were not checked")))
}

/// Logs a browser in with a one-time code.
#[utoipa::path(
    post, path = "/v1/login", tag = "auth", security(()), request_body = Login,
    responses(
        (status = 200, body = LoginReply, headers(("Set-Cookie" = String))),
        (status = 401, description = "`not_authenticated`: the code is used, expired or unknown"),
        (status = 413, description = "`too_large`"),
        (status = 429, description = "`too_many` wrong codes from this address"),
        (status = 503, description = "`unreachable`: another process holds the lock on `auth.json` for too long"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn login(
    State(app): State<App>,
    context: RequestContext,
    headers: HeaderMap,
    SmallJson(Login { code }): SmallJson<Login>,
) -> Result<Response, Problem> {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let (auth, label) = (app.auth.clone(), agent.map_or_else(|| "a browser".to_owned(), browser_name));
    // Before it waits for a turn, because any stranger can send one.
    auth.check_code(code.reveal()).map_err(|error| refuse_login(&app, &context, error))?;
    let turn = app.turns.auth_change().await?;
    let login = on_thread(turn, move || Ok(auth.login(code.reveal(), &label))).await?;
    let login = login.map_err(|error| refuse_login(&app, &context, error))?;
    tracing::info!(login = login.id, from = %context.client, "a browser logged in");
    let cookie = cookie(&app, &context, login.cookie.reveal(), COOKIE_SECONDS);
    Ok((AppendHeaders([(header::SET_COOKIE, cookie)]), Json(LoginReply { key: login.key })).into_response())
}

/// Counts a wrong code. The right one is never counted nor refused: strangers with the same address could otherwise
/// keep the owner from logging in. Codes are too long to be guessed at any rate.
fn refuse_login(app: &App, context: &RequestContext, error: LoginError) -> Problem {
    let LoginError::BadCode = error else { return error.into() };
    match app.login_rate.count(context.client, Instant::now()) {
        Ok(()) => error.into(),
        Err(wait) => {
            let rate = app.settings.limits.login_rate;
            let detail = format!("more than {rate} wrong login codes per minute from this address; try again later");
            Problem::new(Code::TooMany, detail).retry_after(wait.as_secs() + 1)
        }
    }
}

/// Logs this browser out and closes its connections.
#[utoipa::path(
    post, path = "/v1/logout", tag = "auth",
    responses(
        (status = 204),
        (status = 400, description = "`bad_request`: the caller is not a browser login"),
        (status = 401, description = "`not_authenticated`"),
        (status = 503, description = "`unreachable`: another process holds the lock on `auth.json` for too long, or too many tokens and logins are being changed; the revocation holds, but is not recorded yet"),
        (status = 507, description = "`no_space`: the revocation holds, but is not recorded yet"),
    )
)]
pub(crate) async fn logout(
    State(app): State<App>,
    UnpacedReader(caller): UnpacedReader,
    context: RequestContext,
) -> Result<Response, Problem> {
    app.auth.logout_here(&caller)?;
    record_revocations(&app).await?;
    let cookie = cookie(&app, &context, "", 0);
    Ok((StatusCode::NO_CONTENT, AppendHeaders([(header::SET_COOKIE, cookie)])).into_response())
}

/// The `Set-Cookie` value, limited to the gateway's path and hidden from scripts.
fn cookie(app: &App, context: &RequestContext, value: &str, seconds: u32) -> String {
    let name = app.auth.cookie_name();
    let path = if context.prefix.is_empty() { "/" } else { &context.prefix };
    let secure = if context.secure { "; Secure" } else { "" };
    format!("{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Lists tokens and browser logins.
#[utoipa::path(
    get, path = "/v1/tokens", tag = "auth",
    responses(
        (status = 200, body = TokenList),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `admin` is required"),
    )
)]
pub(crate) async fn list_tokens(State(app): State<App>, _: Admin) -> Response {
    Json(TokenList { tokens: app.auth.tokens() }).into_response()
}

/// Creates a token.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "auth", request_body = NewToken,
    responses(
        (status = 201, body = TokenReply),
        (status = 400, description = "`bad_request`, `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `admin` is required"),
        (status = 429, description = "`too_many` tokens"),
        (status = 503, description = "`unreachable`: another process holds the lock on `auth.json` for too long"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn create_token(
    State(app): State<App>,
    Admin(caller): Admin,
    Json(request): Json<NewToken>,
) -> Result<Response, Problem> {
    let (auth, ttl) = (app.auth.clone(), request.ttl.map(Duration::from_secs));
    let turn = app.turns.auth_change().await?;
    let by = caller.id().to_owned();
    let maker = Maker::Caller(caller);
    // At once, so that those who wait with a revoked token do not delay others.
    maker.check()?;
    let created = on_thread(turn, move || Ok(auth.create_token_by(&maker, &request.name, request.scope, ttl)?)).await?;
    tracing::info!(token = created.id, by, "created a token");
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct RevokeQuery {
    /// Whether to revoke also the tokens and logins that were made under it, directly or not.
    with_made: Option<bool>,
}

/// Revokes a token or a browser login and closes its connections.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", tag = "auth", params(RevokeQuery, ("id" = String, Path)),
    responses(
        (status = 204, description = "Revoked; without `with_made`"),
        (status = 200, description = "Revoked; with `with_made`", body = Revoked),
        (status = 400, description = "`bad_request`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `admin` is required"),
        (status = 404, description = "`not_found`"),
        (status = 503, description = "`unreachable`: another process holds the lock on `auth.json` for too long, or too many tokens and logins are being changed; the revocation holds, but is not recorded yet"),
        (status = 507, description = "`no_space`: the revocation holds, but is not recorded yet"),
    )
)]
pub(crate) async fn revoke_token(
    State(app): State<App>,
    UnpacedAdmin(caller): UnpacedAdmin,
    Key(id): Key,
    Query(RevokeQuery { with_made }): Query<RevokeQuery>,
) -> Result<Response, Problem> {
    let mut revoked = BTreeSet::new();
    loop {
        let found = app.auth.revoke_here(&id, with_made == Some(true));
        // Again, because a request of a revoked caller may have made another one just before.
        if found.is_empty() {
            break;
        }
        for token in found.difference(&revoked) {
            tracing::info!(token, by = caller.id(), "revoked a token or login");
        }
        revoked.extend(found);
        record_revocations(&app).await?;
    }
    if revoked.is_empty() {
        return Err(Problem::new(Code::NotFound, "no token or browser login has this id"));
    }
    if with_made.is_none() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let revoked = revoked.into_iter().collect();
    Ok(Json(Revoked { revoked, made: app.auth.made_under(&id) }).into_response())
}

/// Creates a one-time code that logs one browser in.
#[utoipa::path(
    post, path = "/v1/codes", tag = "auth",
    responses(
        (status = 201, body = CodeReply),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `admin` is required"),
        (status = 503, description = "`unreachable`: another process holds the lock on `auth.json` for too long"),
        (status = 507, description = "`no_space`"),
    )
)]
pub(crate) async fn create_code(State(app): State<App>, Admin(caller): Admin) -> Result<Response, Problem> {
    let auth = app.auth.clone();
    let turn = app.turns.auth_change().await?;
    let by = caller.id().to_owned();
    let maker = Maker::Caller(caller);
    // At once, so that those who wait with a revoked token do not delay others.
    maker.check()?;
    let created = on_thread(turn, move || Ok(auth.new_code_by(&maker)?)).await?;
    tracing::info!(by, "created a login code");
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

/// Has no fields.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct TicketRequest {}

/// Issues a ticket for one WebSocket or event stream that can send neither a cookie nor a header.
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

/// Records what was revoked. Only this waits for a turn, because an attacker with a leaked token can take
/// all turns.
async fn record_revocations(app: &App) -> Result<(), Problem> {
    let turn = app.turns.auth_change().await;
    let turn = turn.map_err(|busy| not_recorded(busy.code(), "", busy.loggable_detail()))?;
    let auth = app.auth.clone();
    let record = move || {
        auth.record_revocations().map_err(|error| match &error {
            AuthError::Busy { .. } => not_recorded(Code::Unreachable, "", &error.to_string()),
            AuthError::Io { .. } => not_recorded(Code::NoSpace, "; free disk space", &error.to_string()),
            _ => error.into(),
        })
    };
    on_thread(turn, record).await
}

/// Says that a revocation holds although it could not be recorded.
fn not_recorded(code: Code, remedy: &str, why: &str) -> Problem {
    let detail = format!(
        "the gateway no longer accepts it, but cannot record that, and keeps trying; until that works, it would be \
         valid again after a restart of the gateway{remedy} ({why})"
    );
    Problem::new(code, detail).retry_after(5)
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Problem {
        match &error {
            AuthError::BadName(_) => Problem::new(Code::BadName, error.to_string()),
            AuthError::BadTtl | AuthError::NotALogin => Problem::new(Code::BadRequest, error.to_string()),
            AuthError::Revoked => Problem::new(Code::NotAuthenticated, error.to_string()),
            AuthError::TooManyTokens => Problem::new(Code::TooMany, error.to_string()),
            AuthError::Busy { .. } => Problem::new(Code::Unreachable, error.to_string()).retry_after(5),
            AuthError::Io { source, .. } => unwritable(files::code(source), &error),
            AuthError::Home(home) => unwritable(home.code(), &error),
            AuthError::Damaged { .. } | AuthError::Newer { .. } | AuthError::NoRandom(_) => internal(&error),
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
