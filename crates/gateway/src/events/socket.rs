//! The event stream over a WebSocket.

use bowline_proto::problem::Code;
use std::net::IpAddr;
use std::time::Duration;

use bowline_proto::board::{BoardClientMessage, BoardMessage, WatchedSession};
use bowline_proto::close;
use bowline_proto::ids::SessionId;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_websockets::{Error, Message};

use super::follows::{Follows, MAX_WATCHED, TooManyWatched};
use super::{Admission, Batch, Subscriber};
use crate::app::App;
use crate::auth::site;
use crate::board::EncodedMessage;
use crate::guard;
use crate::places::{self, Place};
use crate::problem::Problem;
use crate::refusals::Source;
use crate::relay::close_for;
use crate::ws::{self, Pongs, Socket};

/// How a stream ends.
enum Ending {
    /// The gateway refuses the client.
    Refused(Problem),
    /// The gateway closes with this code and reason.
    Close(u16, String),
    /// The client closed it.
    Closed,
    /// The connection broke, or the client accepted nothing for too long.
    Cut,
}

impl From<Problem> for Ending {
    fn from(problem: Problem) -> Ending {
        Ending::Refused(problem)
    }
}

/// Serves a stream until it ends.
pub(super) async fn serve(app: App, mut socket: Socket, admission: Admission, source: Source) {
    let needs_key = matches!(admission, Admission::NeedsKey(..));
    let place = needs_key.then(|| app.without_key.take(site(source.client)));
    let subscriber = tokio::select! {
        subscriber = receive_hello(&app, &mut socket, admission, source.client, place.as_ref()) => subscriber,
        () = places::displaced(place.as_ref()) => Err(Problem::without_key_displaced().into()),
        () = app.stop.cancelled() => Err(stopping()),
    };
    let ending = match subscriber {
        Ok(subscriber) => {
            let ending = run(&app, &mut socket, *subscriber).await;
            return end(&app, &source, socket, ending).await;
        }
        Err(ending) => ending,
    };
    if let Ending::Refused(problem) = &ending {
        tokio::select! {
            () = guard::hold_back(problem) => {}
            () = places::displaced(place.as_ref()) => {}
        }
    }
    // Sends the close in any case, but waits for its answer only while it has a place.
    tokio::select! {
        biased;
        () = end(&app, &source, socket, ending) => {}
        () = places::displaced(place.as_ref()) => {}
    }
}

async fn end(app: &App, source: &Source, socket: Socket, ending: Ending) {
    match ending {
        Ending::Refused(problem) => {
            app.refusals.report(source, &problem);
            let (code, reason) = problem.close();
            ws::close(socket, code, &reason).await;
        }
        Ending::Close(code, reason) => {
            Problem::from_close(code, &reason).iter().for_each(|problem| app.refusals.report(source, problem));
            ws::close(socket, code, &reason).await;
        }
        Ending::Closed => ws::answer_close(socket).await,
        Ending::Cut => {}
    }
}

fn stopping() -> Ending {
    Ending::Close(close::GOING_AWAY, "the gateway is stopping".to_owned())
}

/// Completes the admission: a browser that sent only a cookie must send its key first.
async fn receive_hello(
    app: &App,
    socket: &mut Socket,
    admission: Admission,
    client: IpAddr,
    place: Option<&Place<IpAddr>>,
) -> Result<Box<Subscriber>, Ending> {
    let (login, request) = match admission {
        Admission::Admitted(subscriber) => return Ok(subscriber),
        Admission::NeedsKey(login, request) => (login, request),
    };
    let silent = |_| Ending::Close(close::TIMED_OUT, "no hello arrived in time".to_owned());
    let received = tokio::time::timeout(app.settings.limits.hello_within, next_message(socket)).await;
    let BoardClientMessage::Hello { key } = received.map_err(silent)?? else {
        let detail = "the first message must be hello, with the login's key";
        return Err(app.count_failure(client, Problem::new(Code::NotAuthenticated, detail)).into());
    };
    let caller = app.check_key(&login, &key, client, place)?;
    Ok(Box::new(Subscriber::open(app, caller, request).await?))
}

/// Runs both directions until one ends.
async fn run(app: &App, socket: &mut Socket, mut subscriber: Subscriber) -> Ending {
    let heartbeat = app.settings.limits.heartbeat;
    let caller = subscriber.caller.clone();
    let (sink, stream) = socket.split();
    // Only the newest ping gets a reply.
    let (ping_sender, pings) = watch::channel(None);
    // While one change waits, nothing more is read from the client.
    let (change_sender, changes) = mpsc::channel(1);
    let pongs = Pongs::new();
    tokio::select! {
        ending = up(stream, heartbeat, ping_sender, change_sender, &pongs) => ending,
        ending = down(app, sink, &mut subscriber, pings, changes, &pongs) => ending,
        () = caller.revoked() => Ending::Close(close::NOT_AUTHENTICATED, "the token or login was revoked".to_owned()),
        () = app.stop.cancelled() => stopping(),
    }
}

/// A change of the watched sessions.
enum WatchChange {
    Watch(Vec<WatchedSession>),
    Unwatch(Vec<SessionId>),
}

impl WatchChange {
    /// Makes the change. Returns what to tell the client.
    fn apply(self, follows: &mut Follows) -> Option<BoardMessage> {
        match self {
            WatchChange::Unwatch(sessions) => {
                follows.unwatch(&sessions);
                None
            }
            WatchChange::Watch(sessions) => {
                let watched = follows.watch(sessions.into_iter().map(|session| (session.id, session.cursor)));
                let TooManyWatched = watched.err()?;
                let message = format!("a stream can watch at most {MAX_WATCHED} sessions; none was added");
                Some(BoardMessage::Error { code: Code::TooMany, message })
            }
        }
    }
}

async fn up(
    mut stream: SplitStream<&mut Socket>,
    heartbeat: Duration,
    pings: watch::Sender<Option<u64>>,
    changes: mpsc::Sender<WatchChange>,
    pongs: &Pongs,
) -> Ending {
    let timeout = heartbeat * 9 / 4;
    loop {
        let Ok(message) = tokio::time::timeout(timeout, stream.next()).await else {
            return Ending::Close(close::TIMED_OUT, "the client was silent for too long".to_owned());
        };
        if is_ping(&message) {
            pongs.queued().await;
        }
        let change = match read(message) {
            Ok(Some(BoardClientMessage::Watch { sessions })) => WatchChange::Watch(sessions),
            Ok(Some(BoardClientMessage::Unwatch { sessions })) => WatchChange::Unwatch(sessions),
            Ok(Some(BoardClientMessage::Ping { n })) => {
                pings.send_replace(Some(n));
                continue;
            }
            Ok(_) => continue,
            Err(ending) => return ending,
        };
        // It fails only after the other direction has ended.
        let _ = changes.send(change).await;
    }
}

async fn down(
    app: &App,
    mut sink: SplitSink<&mut Socket, Message>,
    subscriber: &mut Subscriber,
    mut pings: watch::Receiver<Option<u64>>,
    mut changes: mpsc::Receiver<WatchChange>,
    pongs: &Pongs,
) -> Ending {
    let heartbeat = app.settings.limits.heartbeat;
    // Pings are sent even while there are changes: a client that receives enough sends no pings, and only its
    // replies show that it is alive.
    let mut heartbeats = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
    heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut batch = vec![subscriber.welcome(app)];
    let mut n = 0;
    loop {
        for message in batch {
            // Sent by the flush below.
            if sink.feed(Message::text(message.json())).await.is_err() {
                return Ending::Cut;
            }
        }
        // The socket itself cuts a connection that accepts nothing for too long.
        if sink.flush().await.is_err() {
            return Ending::Cut;
        }
        pongs.sent();
        // In this order, so that nothing of an unwatched session follows the pong of a ping that was sent after `unwatch`.
        batch = tokio::select! {
            biased;
            Ok(()) = pings.changed() => {
                pings.borrow_and_update().map(|n| EncodedMessage::new(&BoardMessage::Pong { n })).into_iter().collect()
            }
            () = pongs.due() => Vec::new(),
            _ = heartbeats.tick() => {
                n += 1;
                vec![EncodedMessage::new(&BoardMessage::Ping { n })]
            }
            Some(change) = changes.recv() => {
                change.apply(&mut subscriber.follows).iter().map(EncodedMessage::new).collect()
            }
            batch = subscriber.next() => match batch {
                Batch::Board(messages) => messages,
                Batch::Session(_, updates) => updates.into_iter().map(|update| update.message).collect(),
            },
        };
    }
}

async fn next_message(socket: &mut Socket) -> Result<BoardClientMessage, Ending> {
    loop {
        let message = socket.next().await;
        // Send the pong before reading more, so that pongs do not pile up.
        if is_ping(&message) && socket.flush().await.is_err() {
            return Err(Ending::Cut);
        }
        if let Some(message) = read(message)? {
            return Ok(message);
        }
    }
}

fn is_ping(message: &Option<Result<Message, Error>>) -> bool {
    matches!(message, Some(Ok(message)) if message.is_ping())
}

/// Parses a message from the client; `None` for a WebSocket ping or pong.
fn read(message: Option<Result<Message, Error>>) -> Result<Option<BoardClientMessage>, Ending> {
    let message = match message {
        Some(Ok(message)) => message,
        Some(Err(Error::Io(_))) | None => return Err(Ending::Cut),
        Some(Err(error)) => {
            let (code, reason) = close_for(&error);
            return Err(Ending::Close(code, reason));
        }
    };
    if message.is_close() {
        return Err(Ending::Closed);
    }
    if message.is_ping() || message.is_pong() {
        return Ok(None);
    }
    let malformed = |why: String| Ending::Refused(Problem::new(Code::BadRequest, why).private());
    let text = message.as_text().ok_or_else(|| malformed("messages must be JSON text".to_owned()))?;
    serde_json::from_str(text).map(Some).map_err(|why| malformed(why.to_string()))
}
