//! Attaching: a WebSocket on one side, the session's socket on the other, and nothing kept in between.
//!
//! The link's machines are in the session and in the client; here frames become messages and back. The gateway takes part
//! in two things only: it says in the hello what the caller may do, and it turns the session's last word into a close.

use bowline_proto::api::TokenScope;
use bowline_proto::problem::Code;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bowline_host::archive;
use bowline_host::home::SessionDir;
use bowline_host::registry::{self, Entry};
use bowline_proto::close;
use bowline_proto::hello::{self, BadHello};
use bowline_proto::message::ServerMessage;
use bowline_proto::session::State as Life;
use futures_util::{SinkExt, StreamExt};
use http::header;
use http::request::Parts;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::app::{App, Place};
use crate::auth::{Caller, HalfLogin};
use crate::extract::Key;
use crate::guard::{self, Who};
use crate::problem::Problem;
use crate::reach::Reach;
use crate::relay::{self, Ending};
use crate::sessions::{blocking, find};
use crate::ws::{self, Socket, Upgrade};
use crate::{ask, metrics};

/// Attaches to a session, over a WebSocket.
///
/// A browser, known by its `Origin`, gets each refusal as a close with 4000 + the status.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/attach", tag = "streams", operation_id = "attach_session", security(("token" = []), ("cookie" = [], "key" = []), ("ticket" = [])),
    params(("id" = String, Path, description = "The session's id or name")),
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 400, description = "`bad_request`: not a WebSocket request; `bad_name`"),
        (status = 401, description = "`not_authenticated`"),
        (status = 403, description = "`not_allowed`: this needs the scope `read`"),
        (status = 404, description = "`unknown_session`"),
        (status = 425, description = "`bad_ticket`"),
        (status = 426, description = "`no_version`"),
        (status = 429, description = "`too_many`: streams, or attempts from this address"),
        (status = 503, description = "`unreachable`"),
    )
)]
pub(crate) async fn attach(State(app): State<App>, Key(id): Key, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let upgrade = match Upgrade::read(&mut parts) {
        Ok(upgrade) => upgrade,
        Err(problem) => return problem.into_response(),
    };
    let browser = parts.headers.contains_key(header::ORIGIN);
    let admitted = admit(&app, &parts, &upgrade, id).await;
    // A program can still be told by a status; a page hears it after its hello.
    let admitted = match admitted {
        Ok(admission) if !browser => admission.check_reachable().await,
        admitted => admitted,
    };
    match admitted {
        Ok(admission) => {
            let max = app.settings.limits.message;
            let tracker = app.streams.clone();
            upgrade.accept(max, move |socket| tracker.track_future(serve(app, socket, admission)))
        }
        Err(problem) => ws::refuse_upgrade(upgrade, browser, problem),
    }
}

/// Who was let in, and to what.
enum Admission {
    /// Somebody known, to a session that exists.
    Whole { caller: Caller, place: Place, entry: Box<Entry> },
    /// A browser that has yet to show the key of its origin.
    Half { login: HalfLogin, id: String },
}

impl Admission {
    async fn check_reachable(self) -> Result<Admission, Problem> {
        if let Admission::Whole { entry, .. } = &self
            && entry.info.state == Life::Running
            && let Err(error) = ask::connect(&entry.dir)
        {
            let dir = entry.dir.clone();
            blocking(move || ended(&dir, &error)).await?;
        }
        Ok(self)
    }
}

async fn admit(app: &App, parts: &Parts, upgrade: &Upgrade, id: String) -> Result<Admission, Problem> {
    if let Some(reach) = parts.extensions.get::<Reach>() {
        app.check_attach_rate(reach.client)?;
    }
    upgrade.check_version()?;
    match guard::who(app, parts)? {
        Who::Caller(caller) => let_in(app, caller, &id).await,
        Who::Half(login) => Ok(Admission::Half { login, id }),
    }
}

async fn let_in(app: &App, caller: Caller, id: &str) -> Result<Admission, Problem> {
    let caller = guard::allow(caller, TokenScope::Read)?;
    let place = app.take_place(&caller)?;
    let entry = find(app, id).await?;
    if !entry.here {
        return Err(ask::elsewhere(&entry));
    }
    Ok(Admission::Whole { caller, place, entry: Box::new(entry) })
}

/// Serves an attachment to its end.
async fn serve(app: App, mut socket: Socket, admission: Admission) {
    let greeted = tokio::select! {
        greeted = greet(&app, &mut socket, admission) => greeted,
        () = app.stop.cancelled() => Err(Refusal::going()),
    };
    let (caller, _place, dir, session, hello) = match greeted {
        Ok(greeted) => greeted,
        Err(refusal) => return refusal.tell(socket).await,
    };
    let _counted = metrics::OpenStream::attachment();
    let ending = tokio::select! {
        ending = relay::run(&mut socket, &session, &hello) => ending,
        () = caller.revoked() => Ending::Close(close::NOT_AUTHENTICATED, "the token or login was revoked".to_owned()),
        () = app.stop.cancelled() => Ending::Close(close::GOING, "the gateway is stopping".to_owned()),
    };
    match ending {
        Ending::Close(code, reason) => {
            drop(session);
            ws::close(socket, code, &reason).await;
        }
        Ending::Left => {
            relay::leave(&session).await;
            ws::answer_close(socket).await;
        }
        Ending::Closed => ws::answer_close(socket).await,
        Ending::Cut => {}
        Ending::Lost if is_forgotten(dir).await => {
            ws::close(socket, close::FORGOTTEN, "session_gone: the session was forgotten").await;
        }
        Ending::Lost => ws::close(socket, close::INTERNAL, "the session process is gone").await,
    }
}

/// Whether a session is proven to be gone, with its files.
async fn is_forgotten(dir: SessionDir) -> bool {
    matches!(blocking(move || Ok(registry::try_read(dir))).await, Ok(Ok(None)))
}

/// Why an accepted WebSocket goes no further.
struct Refusal {
    code: u16,
    reason: String,
    /// Said before the close, where the protocol has it so.
    error: Option<(Code, String)>,
}

impl Refusal {
    fn going() -> Refusal {
        Refusal { code: close::GOING, reason: "the gateway is stopping".to_owned(), error: None }
    }

    fn bad_hello(bad: &BadHello) -> Refusal {
        let (code, problem) = bad.codes();
        Refusal { code, reason: problem.to_string(), error: Some((problem, bad.to_string())) }
    }

    async fn tell(self, mut socket: Socket) {
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
        metrics::refused(problem.code());
        let (code, reason) = problem.close();
        Refusal { code, reason, error: None }
    }
}

/// Who sends the hello, the session's files, the way to it, and the hello itself.
type Greeted = (Caller, Place, SessionDir, UnixStream, relay::Hello);

async fn greet(app: &App, socket: &mut Socket, admission: Admission) -> Result<Greeted, Refusal> {
    let arrived = tokio::time::timeout(app.settings.limits.hello_within, first_message(socket)).await;
    let silent = |_| Refusal { code: close::SILENT, reason: "no hello in time".to_owned(), error: None };
    let mut hello = arrived.map_err(silent)??;
    let key = hello.remove("key");
    let (caller, place, entry) = match admission {
        Admission::Whole { caller, place, entry } => (caller, place, entry),
        Admission::Half { login, id } => {
            let key = key.as_ref().and_then(Value::as_str).and_then(|key| login.with_key(key));
            let caller = key.ok_or_else(Problem::not_authenticated)?;
            match let_in(app, caller, &id).await? {
                Admission::Whole { caller, place, entry } => (caller, place, entry),
                Admission::Half { .. } => return Err(Problem::not_authenticated().into()),
            }
        }
    };
    let grant = json!({ "write": caller.allows(TokenScope::Write) });
    hello.insert("grant".to_owned(), grant);
    let dir = entry.dir.clone();
    let session = connect(app, *entry).await?;
    let hello = relay::Hello { text: Value::Object(hello).to_string(), at: Instant::now() };
    Ok((caller, place, dir, session, hello))
}

/// The first message, which has to be a hello: on the session's own socket, anything else would be a request of its owner.
async fn first_message(socket: &mut Socket) -> Result<serde_json::Map<String, Value>, Refusal> {
    let gone = || Refusal { code: close::NORMAL, reason: String::new(), error: None };
    let message = loop {
        match socket.next().await {
            // Its answer has to leave before more is read, so that no answers pile up.
            Some(Ok(message)) if message.is_ping() => socket.flush().await.map_err(|_| gone())?,
            Some(Ok(message)) if message.is_pong() => {}
            Some(Ok(message)) => break message,
            Some(Err(error)) => {
                let (code, reason) = relay::close_of(&error);
                return Err(Refusal { code, reason, error: None });
            }
            None => return Err(gone()),
        }
    };
    if message.is_close() {
        return Err(gone());
    }
    let text = message.as_text().ok_or(BadHello::NotHello);
    text.and_then(hello::fields).map_err(|bad| Refusal::bad_hello(&bad))
}

/// The session's socket, or one that its files are served over. Whether it is gone is for its files and its lock to say,
/// never for a refused connection.
async fn connect(app: &App, entry: Entry) -> Result<UnixStream, Problem> {
    let entry = match ask::connect(&entry.dir) {
        Ok(stream) => return Ok(stream),
        Err(error) => blocking(move || ended(&entry.dir, &error)).await?,
    };
    archive::check(&entry)?;
    let Ok(permit) = app.archives.clone().try_acquire_owned() else {
        return Err(unreachable("too many viewers of ended sessions at a time".to_owned()));
    };
    let pair = || {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        std::thread::Builder::new().name("bowline-archive".to_owned()).spawn(move || {
            // A viewer that leaves early is no failure, and nobody is left to be told of another.
            let _ = archive::serve(&entry, theirs);
            drop(permit);
        })?;
        UnixStream::from_std(ours)
    };
    pair().map_err(|error: io::Error| unreachable(error.to_string()))
}

/// The session that did not take a connection, if that is because it has ended.
fn ended(dir: &SessionDir, refused: &io::Error) -> Result<Entry, Problem> {
    let entry = registry::try_read(dir.clone()).map_err(|error| unreachable(error.to_string()))?;
    let entry = entry.ok_or_else(|| Problem::new(Code::SessionGone, "the session was forgotten"))?;
    if entry.info.state == Life::Running {
        return Err(unreachable(format!("the session process cannot be reached: {refused}")));
    }
    Ok(entry)
}

fn unreachable(why: String) -> Problem {
    Problem::new(Code::Unreachable, why).retry_after(1)
}
