//! `GET /v1/events`: streams the board and its changes, and the events of watched agent sessions, over SSE or a
//! WebSocket. Both carry the same JSON messages.

#[cfg(test)]
mod fake_agent;
mod follow;
mod follows;
mod request;
mod socket;
mod sse;
#[cfg(test)]
mod tests;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bowline_proto::api::TokenScope;
use bowline_proto::board::BoardMessage;
use bowline_proto::ids::{ClientId, SessionId};
use http::header;
use http::request::Parts;

use crate::app::{App, StreamSlot};
use crate::auth::{Caller, PendingLogin};
use crate::board::{EncodedMessage, Subscription};
use crate::context::RequestContext;
use crate::guard::{self, Identity};
use crate::metrics;
use crate::problem::Problem;
use crate::refusals::Source;
use crate::ws::{self, Upgrade};
use follow::{FollowContext, Update};
use follows::{Follows, TooManyWatched};
#[doc(hidden)]
pub use request::sse_cursor;
use request::{StreamRequest, WatchCursors};

/// Streams all sessions and their changes, as Server-Sent Events or, on upgrade, over a WebSocket.
///
/// A browser's WebSocket, recognised by its `Origin`, gets each error as a close with the code 4000 + the status.
#[utoipa::path(
    get, path = "/v1/events", tag = "streams", operation_id = "follow_events",
    security(("token" = []), ("cookie" = [], "key" = []), ("ticket" = [])),
    params(
        ("client" = Option<String>, Query, description = "Identifies the client over its reconnects: a lowercase UUID"),
        ("watch" = Option<String>, Query, description = "Sessions whose own events to include, by id or name: `ID@EPOCH:SEQ,ID2`"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last `id` of an earlier SSE stream, to resume it; overrides `watch`"),
    ),
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 200, description = "A `welcome` message, a `board` message, then changes and events", content_type = "text/event-stream", body = String),
        (status = 400, description = "`bad_request`: invalid `client`, `watch`, `Last-Event-ID` or WebSocket handshake"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required"),
        (status = 404, description = "`unknown_session`: no session has a name in `watch`"),
        (status = 425, description = "`bad_ticket`"),
        (status = 426, description = "`no_version`"),
        (status = 429, description = "`too_many` streams or attempts of this caller, or bad credentials from this address"),
    )
)]
pub(crate) async fn events(State(app): State<App>, context: RequestContext, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    if !parts.headers.contains_key(header::UPGRADE) {
        return admit_sse(&app, &parts).await.unwrap_or_else(IntoResponse::into_response);
    }
    let upgrade = match Upgrade::read(&mut parts) {
        Ok(upgrade) => upgrade,
        Err(problem) => return problem.into_response(),
    };
    let browser = parts.headers.contains_key(header::ORIGIN);
    match admit_socket(&app, &parts, &upgrade).await {
        Ok(admission) => {
            let (max, tracker) = (app.settings.limits.message, app.streams.clone());
            let source = Source { client: context.client, path: parts.uri.path().to_owned() };
            upgrade.accept(max, move |socket| tracker.track_future(socket::serve(app, socket, admission, source)))
        }
        Err(problem) => ws::refuse_upgrade(upgrade, browser, problem),
    }
}

async fn admit_sse(app: &App, parts: &Parts) -> Result<Response, Problem> {
    let caller = guard::caller(app, parts)?;
    Ok(sse::respond(app, Subscriber::open(app, caller, StreamRequest::for_sse(parts)).await?))
}

/// The result of checking a WebSocket request.
enum Admission {
    Admitted(Box<Subscriber>),
    /// A browser whose hello must contain the login's key.
    NeedsKey(PendingLogin, Result<StreamRequest, Problem>),
}

async fn admit_socket(app: &App, parts: &Parts, upgrade: &Upgrade) -> Result<Admission, Problem> {
    upgrade.check_version()?;
    let (identity, request) = (guard::identify(app, parts)?, StreamRequest::for_socket(parts));
    match identity {
        Identity::Caller(caller) => Ok(Admission::Admitted(Box::new(Subscriber::open(app, caller, request).await?))),
        Identity::Pending(login) => {
            upgrade.keep_socket();
            Ok(Admission::NeedsKey(login, request))
        }
    }
}

/// Messages for a subscriber.
enum Batch {
    Board(Vec<EncodedMessage>),
    /// Of a watched session.
    Session(SessionId, Vec<Update>),
}

/// A subscriber to board changes and to the events of the sessions that it watches, over SSE or a WebSocket.
struct Subscriber {
    caller: Caller,
    client: ClientId,
    /// Those of the request.
    cursors: WatchCursors,
    changes: Subscription,
    follows: Follows,
    _slot: StreamSlot,
    _counted: metrics::OpenStream,
}

impl Subscriber {
    /// Makes the remaining checks, in order, and subscribes.
    async fn open(app: &App, caller: Caller, request: Result<StreamRequest, Problem>) -> Result<Subscriber, Problem> {
        app.check_attach_rate(&caller)?;
        let caller = guard::allow(caller, TokenScope::Read)?;
        let request = request?;
        let slot = app.reserve_stream(&caller)?;
        let (client, cursors) = (request.client, request.watch.resolve(app, &caller).await?);
        let (changes, counted) = (app.board.subscribe(), metrics::OpenStream::events());
        let context = FollowContext { app: app.clone(), caller: caller.clone(), board: changes.shown() };
        let mut follows = Follows::new(context);
        follows.watch(cursors.iter()).map_err(|TooManyWatched| request::too_many_watched())?;
        Ok(Subscriber { caller, client, cursors, changes, follows, _slot: slot, _counted: counted })
    }

    /// Waits for messages. Neither a busy board nor a busy session delays the others. Cancel safe.
    async fn next(&mut self) -> Batch {
        tokio::select! {
            messages = self.changes.next() => Batch::Board(messages),
            (session, updates) = self.follows.next() => Batch::Session(session, updates),
        }
    }

    /// The stream's first message.
    fn welcome(&self, app: &App) -> EncodedMessage {
        EncodedMessage::new(&BoardMessage::Welcome {
            client: self.client.clone(),
            epoch: app.epoch.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            heartbeat: app.settings.limits.heartbeat.as_millis() as u64,
        })
    }
}
