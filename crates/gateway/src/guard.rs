//! The door: what every request passes, in this order: Host, Origin, rate, auth, scope. Existence is the handler's.

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bowline_proto::api::TokenScope;
use bowline_proto::problem::Code;
use http::header;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use crate::app::App;
use crate::auth::{Caller, HalfLogin, TOKEN_PREFIX};
use crate::problem::Problem;
use crate::reach::{Ends, Reach};
use crate::ws;

/// The header with the key of a browser's own origin.
pub(crate) const KEY_HEADER: &str = "bowline-key";
/// The routes on which a browser is refused by a close, since it cannot read the status of an upgrade.
const SOCKETS: [&str; 2] = ["/v1/sessions/{id}/attach", "/v1/events"];

/// Checks Host and Origin, and says so to the handlers by an extension, [`Reach`].
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Some(ends) = parts.extensions.get::<Ends>().copied() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    match Reach::check(&app.settings, ends, &parts.headers) {
        Ok(reach) => {
            parts.extensions.insert(reach);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(problem) => {
            if is_stream(&parts) {
                ws::refuse(&mut parts, problem)
            } else {
                problem.into_response()
            }
        }
    }
}

/// Whether the request is for a stream: what a browser cannot add headers to.
fn is_stream(parts: &Parts) -> bool {
    parts.extensions.get::<MatchedPath>().is_some_and(|path| SOCKETS.contains(&path.as_str()))
}

/// Who is calling, as far as the request's head tells.
pub(crate) enum Who {
    /// Known.
    Caller(Caller),
    /// A browser's cookie without the key of its origin, which a WebSocket sends in its first message.
    Half(HalfLogin),
}

/// Reads who is calling: a token, a ticket, a trusted proxy's word, or a browser's cookie (and its key).
pub(crate) fn who(app: &App, parts: &Parts) -> Result<Who, Problem> {
    let bearer = bearer(&parts.headers);
    let unknown = || match bearer {
        Some(_) => Problem::new(
            Code::NotAuthenticated,
            "the token is unknown, expired or revoked; `bowline token create` makes one",
        ),
        None => Problem::not_authenticated(),
    };
    if let Some(token) = bearer.filter(|token| token.starts_with(TOKEN_PREFIX)) {
        return app.auth.bearer(token).map(Who::Caller).ok_or_else(unknown);
    }
    // Nowhere else: a ticket that leaked with an address must not make tokens.
    if let Some(ticket) = query_value(parts, "ticket").filter(|_| is_stream(parts)) {
        let spent = || Problem::new(Code::BadTicket, "the ticket is spent, expired or unknown; fetch another");
        return app.auth.redeem_ticket(&ticket).map(Who::Caller).ok_or_else(spent);
    }
    if let Some(caller) = forwarded_user(app, parts)? {
        return Ok(Who::Caller(caller));
    }
    let half = cookie(&parts.headers, app.auth.cookie_name()).and_then(|cookie| app.auth.cookie(cookie));
    let half = half.ok_or_else(unknown)?;
    match parts.headers.get(KEY_HEADER) {
        Some(key) => half.with_key(key.to_str().unwrap_or_default()).map(Who::Caller).ok_or_else(unknown),
        None => Ok(Who::Half(half)),
    }
}

/// The token of an `Authorization`. Whatever else that says is for somebody before us: a proxy that asks for a password of its own
/// passes it on.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Who a trusted proxy says is calling, where that is configured.
fn forwarded_user(app: &App, parts: &Parts) -> Result<Option<Caller>, Problem> {
    let Some(forward) = &app.settings.forward_auth else { return Ok(None) };
    let trusted = parts.extensions.get::<Reach>().is_some_and(|reach| reach.trusted);
    let mut users = parts.headers.get_all(&forward.header).iter();
    let Some(user) = users.next().filter(|_| trusted) else { return Ok(None) };
    if users.next().is_some() {
        // One of them may be the caller's own.
        let detail = format!("the header {} is there more than once: let the proxy replace it", forward.header);
        return Err(Problem::new(Code::NotAllowed, detail));
    }
    let user = user.to_str().unwrap_or_default();
    if forward.users.iter().any(|known| known == user) {
        return Ok(Some(Caller::user(user, TokenScope::Admin)));
    }
    Err(Problem::new(Code::NotAllowed, format!("the user {user:?} is not in the gateway's list")))
}

/// A caller that may look.
pub(crate) struct Reader(pub(crate) Caller);
/// A caller that may change sessions.
pub(crate) struct Writer(pub(crate) Caller);
/// A caller that may do everything.
pub(crate) struct Admin(pub(crate) Caller);

/// A caller of at least this scope, from a plain call.
pub(crate) fn caller(app: &App, parts: &Parts, needed: TokenScope) -> Result<Caller, Problem> {
    match who(app, parts)? {
        Who::Caller(caller) => allow(caller, needed),
        Who::Half(_) => Err(Problem::new(
            Code::NotAuthenticated,
            "a cookie alone is not enough, for other ports of this host see it: send the login's key in Bowline-Key",
        )),
    }
}

/// The caller, if its scope is enough.
pub(crate) fn allow(caller: Caller, needed: TokenScope) -> Result<Caller, Problem> {
    if caller.allows(needed) {
        return Ok(caller);
    }
    let detail = format!("this needs the scope {needed}, and the caller has {}", caller.scope());
    Err(Problem::new(Code::NotAllowed, detail))
}

/// Makes a scope's type an extractor.
macro_rules! extracts {
    ($($name:ident: $scope:expr),*) => {$(
        impl FromRequestParts<App> for $name {
            type Rejection = Problem;
            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
                caller(app, parts, $scope).map($name)
            }
        }
    )*};
}
extracts!(Reader: TokenScope::Read, Writer: TokenScope::Write, Admin: TokenScope::Admin);

/// A cookie's value.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|cookies| cookies.split(';')).find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

/// A value of the query.
pub(crate) fn query_value(parts: &Parts, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
