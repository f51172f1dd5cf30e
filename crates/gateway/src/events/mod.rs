//! `GET /v1/events`: which sessions there are and what changes, as SSE or, on upgrade, as JSON over a WebSocket. Both say
//! the same messages.

mod asked;
mod socket;
mod sse;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bowline_proto::api::TokenScope;
use bowline_proto::board::BoardMessage;
use bowline_proto::ids::ClientId;
use http::header;
use http::request::Parts;

use crate::app::{App, Place};
use crate::auth::{Caller, HalfLogin};
use crate::board::Subscription;
use crate::guard::{self, Who};
use crate::metrics;
use crate::problem::Problem;
use crate::reach::Reach;
use crate::ws::{self, Upgrade};
use asked::{Asked, Watched};

/// Tells which sessions there are and what changes: as Server-Sent Events, or over a WebSocket on upgrade.
///
/// A browser's WebSocket, known by its `Origin`, gets each refusal as a close with 4000 + the status.
#[utoipa::path(
    get, path = "/v1/events", tag = "streams", operation_id = "follow_events",
    security(("token" = []), ("cookie" = [], "key" = []), ("ticket" = [])),
    params(
        ("client" = Option<String>, Query, description = "This run of the client: a UUID in lower case"),
        ("watch" = Option<String>, Query, description = "Sessions whose own events are wanted, by id or name: `ID@EPOCH:SEQ,ID2`"),
        ("Last-Event-ID" = Option<String>, Header, description = "Where an SSE stream was left; overrides `watch`"),
    ),
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 200, description = "`welcome`, `board`, and then changes", content_type = "text/event-stream", body = String),
        (status = 400, description = "`bad_request`: the client id, what to watch, or the handshake"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `read`"),
        (status = 404, description = "`unknown_session`: no session has a name that is to be watched"),
        (status = 425, description = "`bad_ticket`"),
        (status = 426, description = "`no_version`"),
        (status = 429, description = "`too_many`: streams, or attempts from this address"),
    )
)]
pub(crate) async fn events(State(app): State<App>, request: Request) -> Response {
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
            upgrade.accept(max, move |socket| tracker.track_future(socket::serve(app, socket, admission)))
        }
        Err(problem) => ws::refuse_upgrade(upgrade, browser, problem),
    }
}

async fn admit_sse(app: &App, parts: &Parts) -> Result<Response, Problem> {
    check_rate(app, parts)?;
    let caller = guard::caller(app, parts, TokenScope::Read)?;
    let asked = Asked::of_sse(parts)?;
    Ok(sse::respond(app, Told::open(app, caller, asked).await?))
}

/// Who was let in.
enum Admission {
    /// Somebody known.
    Whole(Box<Told>),
    /// A browser that has yet to show the key of its origin.
    Half(HalfLogin, Asked),
}

async fn admit_socket(app: &App, parts: &Parts, upgrade: &Upgrade) -> Result<Admission, Problem> {
    check_rate(app, parts)?;
    upgrade.check_version()?;
    let caller = match guard::who(app, parts)? {
        Who::Caller(caller) => guard::allow(caller, TokenScope::Read)?,
        Who::Half(login) => return Ok(Admission::Half(login, Asked::of_socket(parts)?)),
    };
    Ok(Admission::Whole(Box::new(Told::open(app, caller, Asked::of_socket(parts)?).await?)))
}

fn check_rate(app: &App, parts: &Parts) -> Result<(), Problem> {
    parts.extensions.get::<Reach>().map_or(Ok(()), |reach| app.check_attach_rate(reach.client))
}

/// One who is told, in whichever form.
struct Told {
    caller: Caller,
    client: ClientId,
    watched: Watched,
    news: Subscription,
    _place: Place,
    _counted: metrics::OpenStream,
}

impl Told {
    async fn open(app: &App, caller: Caller, asked: Asked) -> Result<Told, Problem> {
        let place = app.take_place(&caller)?;
        let (client, watched) = (asked.client, asked.wanted.find(app).await?);
        let (news, counted) = (app.board.subscribe(), metrics::OpenStream::events());
        Ok(Told { caller, client, watched, news, _place: place, _counted: counted })
    }

    /// The first message.
    fn welcome(&self, app: &App) -> BoardMessage {
        BoardMessage::Welcome {
            client: self.client.clone(),
            epoch: app.epoch.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            heartbeat: app.settings.limits.heartbeat.as_millis() as u64,
        }
    }
}

fn text(message: &BoardMessage) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
