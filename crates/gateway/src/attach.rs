//! Attaching: relays between a client's WebSocket and the session's socket, and keeps no state of its own.
//!
//! Both ends of the link are state machines in the session and the client; the gateway only converts frames to
//! messages and back. It intervenes twice: it adds the caller's grant to the hello, and it turns the session's
//! close frame into a WebSocket close.

use bowline_proto::api::TokenScope;
use bowline_proto::problem::Code;
use std::io;
use std::net::IpAddr;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bowline_host::home::SessionDir;
use bowline_host::registry::{self, Entry};
use bowline_host::{repair, session_archive};
use bowline_proto::close;
use bowline_proto::hello::{self, BadHello};
use bowline_proto::message::ServerMessage;
use bowline_proto::session::State as SessionState;
use futures_util::{SinkExt, StreamExt};
use http::header;
use http::request::Parts;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::app::{App, StreamSlot};
use crate::auth::{Caller, PendingLogin, site};
use crate::context::RequestContext;
use crate::extract::Key;
use crate::guard::{self, Identity};
use crate::places::{self, Place};
use crate::problem::Problem;
use crate::refusals::Source;
use crate::relay::{self, Ending};
use crate::sessions::{blocking, find};
use crate::ws::{self, Socket, Upgrade};
use crate::{control, ended, metrics};

/// Attaches to a session over a WebSocket.
///
/// A browser, recognised by its `Origin`, gets each error as a WebSocket close with the code 4000 + the status.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/attach", tag = "streams", operation_id = "attach_session",
    security(("token" = []), ("cookie" = [], "key" = []), ("ticket" = [])),
    params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 400, description = "`bad_request`: not a valid WebSocket handshake; `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: the scope `read` is required, or the session belongs to another machine"),
        (status = 404, description = "`unknown_session`"),
        (status = 425, description = "`bad_ticket`"),
        (status = 426, description = "`no_version`"),
        (status = 429, description = "`too_many` streams or attempts of this caller, or bad credentials from this address"),
        (status = 503, description = "`unreachable`"),
    )
)]
pub(crate) async fn attach(
    State(app): State<App>,
    context: RequestContext,
    Key(id): Key,
    request: Request,
) -> Response {
    let (mut parts, _) = request.into_parts();
    let upgrade = match Upgrade::read(&mut parts) {
        Ok(upgrade) => upgrade,
        Err(problem) => return problem.into_response(),
    };
    let browser = parts.headers.contains_key(header::ORIGIN);
    let admitted = admit(&app, &parts, &upgrade, id).await;
    // A program can get the error as a status now; a page gets it as a close, after its hello.
    let admitted = match admitted {
        Ok(admission) if !browser => admission.check_reachable().await,
        admitted => admitted,
    };
    match admitted {
        Ok(admission) => {
            let max = app.settings.limits.message;
            let source = Source { client: context.client, path: parts.uri.path().to_owned() };
            let tracker = app.streams.clone();
            upgrade.accept(max, move |socket| tracker.track_future(serve(app, socket, admission, source)))
        }
        Err(problem) => ws::refuse_upgrade(upgrade, browser, problem),
    }
}

/// The result of checking an attach request.
enum Admission {
    Admitted {
        caller: Caller,
        slot: StreamSlot,
        entry: Box<Entry>,
    },
    /// A browser whose hello must contain the login's key.
    NeedsKey {
        login: PendingLogin,
        id: String,
    },
}

impl Admission {
    fn needs_key(&self) -> bool {
        matches!(self, Admission::NeedsKey { .. })
    }

    async fn check_reachable(self) -> Result<Admission, Problem> {
        if let Admission::Admitted { entry, .. } = &self
            && entry.info.state == SessionState::Running
            && let Err(error) = control::connect(&entry.dir)
        {
            let dir = entry.dir.clone();
            blocking(move || read_ended(&dir, &error)).await?;
        }
        Ok(self)
    }
}

async fn admit(app: &App, parts: &Parts, upgrade: &Upgrade, id: String) -> Result<Admission, Problem> {
    upgrade.check_version()?;
    match guard::identify(app, parts)? {
        Identity::Caller(caller) => authorize(app, caller, &id).await,
        Identity::Pending(login) => {
            upgrade.keep_socket();
            Ok(Admission::NeedsKey { login, id })
        }
    }
}

async fn authorize(app: &App, caller: Caller, id: &str) -> Result<Admission, Problem> {
    app.check_attach_rate(&caller)?;
    let caller = guard::allow(caller, TokenScope::Read)?;
    let slot = app.reserve_stream(&caller)?;
    let entry = find(app, &caller, id).await?;
    if !entry.is_local {
        return Err(control::wrong_machine(&entry));
    }
    Ok(Admission::Admitted { caller, slot, entry: Box::new(entry) })
}

/// Serves an attachment until it ends.
async fn serve(app: App, mut socket: Socket, admission: Admission, source: Source) {
    let place = admission.needs_key().then(|| app.without_key.take(site(source.client)));
    let attachment = tokio::select! {
        attachment = receive_hello(&app, &mut socket, admission, source.client, place.as_ref()) => attachment,
        () = places::displaced(place.as_ref()) => Err(Problem::without_key_displaced().into()),
        () = app.stop.cancelled() => Err(Refusal::close(close::GOING_AWAY, "the gateway is stopping".to_owned())),
    };
    let (caller, _slot, archive_place, dir, session, hello) = match attachment {
        Ok(attachment) => attachment,
        Err(refusal) => {
            if let Some(problem) = &refusal.problem {
                app.refusals.report(&source, problem);
                tokio::select! {
                    () = guard::hold_back(problem) => {}
                    () = places::displaced(place.as_ref()) => {}
                }
            }
            // Sends the close in any case, but waits for its answer only while it has a place.
            return tokio::select! {
                biased;
                () = refusal.send(socket) => {}
                () = places::displaced(place.as_ref()) => {}
            };
        }
    };
    let _counted = metrics::OpenStream::attachment();
    let ending = tokio::select! {
        ending = relay::run(&mut socket, &session, &hello) => ending,
        () = caller.revoked() => Ending::Close(close::NOT_AUTHENTICATED, "the token or login was revoked".to_owned()),
        () = places::displaced(archive_place.as_ref()) => {
            let detail = "too many viewers of ended sessions; this one was attached for longest";
            let (code, reason) = Problem::new(Code::TooMany, detail).retry_after(1).close();
            Ending::Close(code, reason)
        }
        () = app.stop.cancelled() => Ending::Close(close::GOING_AWAY, "the gateway is stopping".to_owned()),
    };
    match ending {
        Ending::Close(code, reason) => {
            drop(session);
            close(&app, &source, socket, code, &reason).await;
        }
        Ending::Left => {
            relay::leave(&session).await;
            ws::answer_close(socket).await;
        }
        Ending::Closed => ws::answer_close(socket).await,
        Ending::Cut => {}
        Ending::Lost if is_forgotten(dir).await => {
            close(&app, &source, socket, close::FORGOTTEN, "session_gone: the session was forgotten").await;
        }
        Ending::Lost => {
            close(&app, &source, socket, close::INTERNAL, "the session process closed the connection").await;
        }
    }
}

/// Closes an attachment, and reports why unless the close is normal.
async fn close(app: &App, source: &Source, socket: Socket, code: u16, reason: &str) {
    Problem::from_close(code, reason).iter().for_each(|problem| app.refusals.report(source, problem));
    ws::close(socket, code, reason).await;
}

/// Whether the session's files are certainly removed. A failed read proves nothing.
async fn is_forgotten(dir: SessionDir) -> bool {
    matches!(blocking(move || Ok(registry::try_read(dir))).await, Ok(Ok(None)))
}

/// Why an accepted WebSocket is closed before the relay starts.
struct Refusal {
    code: u16,
    reason: String,
    /// What to report. `None` if the close is normal.
    problem: Option<Problem>,
    /// An `error` message that is sent before the close.
    error: Option<(Code, String)>,
}

impl Refusal {
    fn close(code: u16, reason: String) -> Refusal {
        Refusal { problem: Problem::from_close(code, &reason), code, reason, error: None }
    }

    fn bad_hello(bad: &BadHello) -> Refusal {
        let (code, problem) = bad.codes();
        let reported = Some(Problem::new(problem, bad.to_string()));
        Refusal { code, reason: problem.to_string(), problem: reported, error: Some((problem, bad.to_string())) }
    }

    async fn send(self, mut socket: Socket) {
        if let Some((code, message)) = self.error {
            let error = ServerMessage::Error { code, message, fatal: true };
            let text = serde_json::to_string(&error).unwrap_or_default();
            let _ = socket.send(tokio_websockets::Message::text(text)).await;
        }
        ws::close(socket, self.code, &self.reason).await;
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let (code, reason) = problem.close();
        Refusal { code, reason, problem: Some(problem), error: None }
    }
}

/// The caller, its stream slot and, for an ended session, its place; the session's directory and socket, and the
/// client's hello.
type Attachment = (Caller, StreamSlot, Option<Place<String>>, SessionDir, UnixStream, relay::Hello);

async fn receive_hello(
    app: &App,
    socket: &mut Socket,
    admission: Admission,
    client: IpAddr,
    place: Option<&Place<IpAddr>>,
) -> Result<Attachment, Refusal> {
    let arrived = tokio::time::timeout(app.settings.limits.hello_within, first_message(socket)).await;
    let silent = |_| Refusal::close(close::TIMED_OUT, "no hello arrived in time".to_owned());
    let mut hello = arrived.map_err(silent)??;
    let key = hello.remove("key");
    let (caller, slot, entry) = match admission {
        Admission::Admitted { caller, slot, entry } => (caller, slot, entry),
        Admission::NeedsKey { login, id } => {
            let key = key.as_ref().and_then(Value::as_str).unwrap_or_default();
            let caller = app.check_key(&login, key, client, place)?;
            match authorize(app, caller, &id).await? {
                Admission::Admitted { caller, slot, entry } => (caller, slot, entry),
                Admission::NeedsKey { .. } => return Err(Problem::not_authenticated().into()),
            }
        }
    };
    let (write, name) = (caller.allows(TokenScope::Write), app.auth.display_name(&caller));
    let grant = json!({ "write": write, "caller": caller.id(), "name": name });
    hello.insert("grant".to_owned(), grant);
    let dir = entry.dir.clone();
    let (session, place) = connect(app, &caller, *entry).await?;
    let hello = relay::Hello { text: Value::Object(hello).to_string(), at: Instant::now() };
    Ok((caller, slot, place, dir, session, hello))
}

/// Reads the first message, which must be a hello: a session treats any other first message as a control request
/// from its owner.
async fn first_message(socket: &mut Socket) -> Result<serde_json::Map<String, Value>, Refusal> {
    let disconnected = || Refusal::close(close::NORMAL, String::new());
    let message = loop {
        match socket.next().await {
            // Send the pong before reading more, so that pongs do not pile up.
            Some(Ok(message)) if message.is_ping() => socket.flush().await.map_err(|_| disconnected())?,
            Some(Ok(message)) if message.is_pong() => {}
            Some(Ok(message)) => break message,
            Some(Err(error)) => {
                let (code, reason) = relay::close_for(&error);
                return Err(Refusal::close(code, reason));
            }
            None => return Err(disconnected()),
        }
    };
    if message.is_close() {
        return Err(disconnected());
    }
    let text = message.as_text().ok_or(BadHello::NotHello);
    text.and_then(hello::fields).map_err(|bad| Refusal::bad_hello(&bad))
}

/// Connects to the session's socket, or for an ended session to its files, which takes a place. Only the files and
/// the lock show that a session has ended, never a refused connection.
async fn connect(app: &App, caller: &Caller, entry: Entry) -> Result<(UnixStream, Option<Place<String>>), Problem> {
    let entry = match control::connect(&entry.dir) {
        Ok(stream) => return Ok((stream, None)),
        Err(error) => {
            let home = app.home.clone();
            // It may have died since it was found, with open runs that no event would end.
            blocking(move || {
                let entry = repair::repair_if_needed(&home, read_ended(&entry.dir, &error)?);
                entry.ok_or_else(|| unreachable("the session is being changed".to_owned()))
            })
            .await?
        }
    };
    session_archive::check(&entry)?;
    let place = app.archive_viewers.take(caller.id().to_owned());
    Ok((ended::connect(app.clone(), entry).await?, Some(place)))
}

/// Reads a session that refused a connection. An error unless the session has ended.
fn read_ended(dir: &SessionDir, refused: &io::Error) -> Result<Entry, Problem> {
    let entry = registry::try_read(dir.clone()).map_err(|error| unreachable(error.to_string()))?;
    let entry = entry.ok_or_else(|| Problem::new(Code::SessionGone, "the session was forgotten"))?;
    if entry.info.state == SessionState::Running {
        return Err(unreachable(format!("cannot reach the session process: {refused}")));
    }
    Ok(entry)
}

fn unreachable(why: String) -> Problem {
    Problem::new(Code::Unreachable, why).retry_after(1)
}
