//! Access checks: `Host` and `Origin` for every request, then the caller and its scope.
//!
//! Handlers look a session up only after these checks, so a caller without access cannot learn which sessions
//! exist.

use std::time::Duration;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bowline_proto::api::TokenScope;
use bowline_proto::problem::Code;
use http::header;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use crate::app::App;
use crate::auth::{Caller, PendingLogin, TOKEN_PREFIX};
use crate::context::{RequestContext, SocketAddrs};
use crate::problem::Problem;
use crate::refusals::Source;
use crate::server::SocketSlot;
use crate::ws;

/// The header with a browser login's key, which the page keeps in its origin's storage.
pub(crate) const KEY_HEADER: &str = "bowline-key";
/// How long a refusal because of too many requests is held back. A client that repeats its request at once would
/// otherwise cost more than before the refusal.
const TOO_MANY_DELAY: Duration = Duration::from_millis(250);
/// The routes that accept WebSockets. A browser cannot read the status of a refused upgrade, so there it gets a
/// close.
const STREAM_ROUTES: [&str; 2] = ["/v1/sessions/{id}/attach", "/v1/events"];

/// Middleware that checks `Host` and `Origin`, passes a [`RequestContext`] on to the handlers, and reports refusals.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Some(addrs) = parts.extensions.get::<SocketAddrs>().copied() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut source = Source { client: addrs.peer.ip().to_canonical(), path: parts.uri.path().to_owned() };
    let mut response = match RequestContext::check(&app.settings, addrs, &parts.uri, &parts.headers) {
        Ok(context) => {
            source.client = context.client;
            parts.extensions.insert(context);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(problem) => {
            if is_stream(&parts) {
                ws::refuse(&mut parts, problem)
            } else {
                problem.into_response()
            }
        }
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        app.refusals.report(&source, &problem);
        hold_back(&problem).await;
    }
    response
}

/// Waits before a refusal because of too many requests is sent.
pub(crate) async fn hold_back(problem: &Problem) {
    if problem.code() == Code::TooMany {
        tokio::time::sleep(TOO_MANY_DELAY).await;
    }
}

/// Whether the request is for a stream. A browser cannot add headers to such a request.
fn is_stream(parts: &Parts) -> bool {
    parts.extensions.get::<MatchedPath>().is_some_and(|path| STREAM_ROUTES.contains(&path.as_str()))
}

/// What the head of a request says about the caller.
pub(crate) enum Identity {
    Caller(Caller),
    /// A browser's cookie without the login's key, which a WebSocket sends in its first message.
    Pending(PendingLogin),
}

/// Identifies the caller. A failure counts against the address that it came from, so above a rate it is 429.
pub(crate) fn identify(app: &App, parts: &Parts) -> Result<Identity, Problem> {
    let identity = find_identity(app, parts).map_err(|problem| refuse_stranger(app, parts, problem))?;
    if let Identity::Caller(_) = identity {
        parts.extensions.get::<SocketSlot>().into_iter().for_each(SocketSlot::keep);
    }
    Ok(identity)
}

fn refuse_stranger(app: &App, parts: &Parts, problem: Problem) -> Problem {
    match parts.extensions.get::<RequestContext>() {
        Some(context) => app.count_failure(context.client, problem),
        None => problem,
    }
}

/// Finds the caller by the first of these that the request has: a token, a ticket, a trusted proxy's user header, or
/// a browser's cookie and key.
fn find_identity(app: &App, parts: &Parts) -> Result<Identity, Problem> {
    let bearer = bearer(&parts.headers);
    let unknown = || match (bearer, ignored_user(app, parts)) {
        (Some(_), _) => Problem::new(Code::NotAuthenticated, "the token is unknown, expired or revoked"),
        (None, Some(ignored)) => Problem::new(Code::NotAuthenticated, ignored),
        (None, None) => Problem::not_authenticated(),
    };
    if let Some(token) = bearer.filter(|token| token.starts_with(TOKEN_PREFIX)) {
        return app.auth.bearer(token).map(Identity::Caller).ok_or_else(unknown);
    }
    // Tickets work for streams only: they are part of URLs, and a leaked URL must not give access to the API.
    if let Some(ticket) = query_value(parts, "ticket").filter(|_| is_stream(parts)) {
        let detail = "the ticket is used, expired or unknown; request a new one with POST /v1/tickets";
        let bad_ticket = || Problem::new(Code::BadTicket, detail);
        return app.auth.redeem_ticket(&ticket).map(Identity::Caller).ok_or_else(bad_ticket);
    }
    if let Some(caller) = forwarded_user(app, parts)? {
        return Ok(Identity::Caller(caller));
    }
    let pending = app.auth.cookies(cookies(&parts.headers, app.auth.cookie_name())).ok_or_else(unknown)?;
    match parts.headers.get(KEY_HEADER) {
        Some(key) => pending.with_key(key.to_str().unwrap_or_default()).map(Identity::Caller).ok_or_else(unknown),
        None => Ok(Identity::Pending(pending)),
    }
}

/// The token of an `Authorization: Bearer` header. Another scheme is ignored, because a proxy that checks passwords
/// passes its own header on.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Whether the request comes from a trusted proxy.
fn is_trusted(parts: &Parts) -> bool {
    parts.extensions.get::<RequestContext>().is_some_and(|context| context.trusted)
}

/// Says why the user header of this request does not count, if the proxy's secret is missing or wrong.
fn ignored_user(app: &App, parts: &Parts) -> Option<String> {
    let forward = app.settings.forward_auth.as_ref()?;
    let secret = forward.secret.as_ref().filter(|_| !is_trusted(parts))?;
    parts.headers.get(&forward.header)?;
    Some(format!(
        "the header {} counts only from a proxy in `proxies` that sends the right secret, once, in the header {}",
        forward.header, secret.header
    ))
}

/// The user that a trusted proxy names, if forward authentication is configured.
fn forwarded_user(app: &App, parts: &Parts) -> Result<Option<Caller>, Problem> {
    let Some(forward) = &app.settings.forward_auth else { return Ok(None) };
    let mut users = parts.headers.get_all(&forward.header).iter();
    let Some(user) = users.next().filter(|_| is_trusted(parts)) else { return Ok(None) };
    if users.next().is_some() {
        // The client may have sent one of them itself.
        let detail =
            format!("the request has more than one {} header; configure the proxy to replace it", forward.header);
        return Err(Problem::new(Code::NotAllowed, detail));
    }
    let user = user.to_str().unwrap_or_default();
    if forward.users.iter().any(|known| known == user) {
        return Ok(Some(Caller::user(user, TokenScope::Admin)));
    }
    Err(Problem::new(Code::NotAllowed, format!("the user {user:?} is not allowed by the gateway's configuration")))
}

/// A caller with at least the scope `read`.
pub(crate) struct Reader(pub(crate) Caller);
/// Like [`Reader`], but not slowed down by its rate of requests: for logging out, and for work that is counted otherwise.
pub(crate) struct UnpacedReader(pub(crate) Caller);
/// A caller with at least the scope `write`.
pub(crate) struct Writer(pub(crate) Caller);
/// A caller with the scope `admin`.
pub(crate) struct Admin(pub(crate) Caller);
/// Like [`Admin`], but not slowed down by its rate of requests, so that a flood with a leaked token cannot delay its
/// revocation.
pub(crate) struct UnpacedAdmin(pub(crate) Caller);

/// Identifies the caller of a plain HTTP request.
pub(crate) fn caller(app: &App, parts: &Parts) -> Result<Caller, Problem> {
    match identify(app, parts)? {
        Identity::Caller(caller) => Ok(caller),
        Identity::Pending(_) => {
            let detail = "the cookie alone is not enough: send the login's key in the Bowline-Key header";
            Err(refuse_stranger(app, parts, Problem::new(Code::NotAuthenticated, detail)))
        }
    }
}

/// Like [`caller`], at the caller's rate of requests.
pub(crate) async fn paced_caller(app: &App, parts: &Parts) -> Result<Caller, Problem> {
    let caller = caller(app, parts)?;
    app.pace(&caller, 1).await?;
    Ok(caller)
}

/// Checks that the caller has the needed scope.
pub(crate) fn allow(caller: Caller, needed: TokenScope) -> Result<Caller, Problem> {
    if caller.allows(needed) {
        return Ok(caller);
    }
    let detail = format!("this needs the scope {needed}; the caller has the scope {}", caller.scope());
    Err(Problem::new(Code::NotAllowed, detail))
}

/// Makes each type an extractor for callers with a scope.
macro_rules! extracts {
    ($($name:ident: $scope:expr, $caller:expr;)*) => {$(
        impl FromRequestParts<App> for $name {
            type Rejection = Problem;
            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
                allow($caller(app, parts).await?, $scope).map($name)
            }
        }
    )*};
}
extracts! {
    Reader: TokenScope::Read, paced_caller;
    UnpacedReader: TokenScope::Read, async |app, parts| caller(app, parts);
    Writer: TokenScope::Write, paced_caller;
    Admin: TokenScope::Admin, paced_caller;
    UnpacedAdmin: TokenScope::Admin, async |app, parts| caller(app, parts);
}

/// The values of all cookies with this name.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let each = all.flat_map(|cookies| cookies.split(';'));
    each.filter_map(move |cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The first value of a query parameter, decoded.
pub(crate) fn query_value(parts: &Parts, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
