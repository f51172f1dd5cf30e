//! The event stream as JSON over a WebSocket.

use bowline_proto::api::TokenScope;
use bowline_proto::problem::Code;
use std::time::Duration;

use bowline_proto::board::{BoardClientMessage, BoardMessage};
use bowline_proto::close;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_websockets::{Error, Message};

use super::{Admission, Told, text};
use crate::app::App;
use crate::problem::Problem;
use crate::relay::close_of;
use crate::ws::{self, Pongs, Socket};
use crate::{guard, metrics};

/// How a stream ends.
enum Ending {
    /// Closed with this code and reason.
    Close(u16, String),
    /// The client closed it.
    Closed,
    /// The client is gone, or takes nothing.
    Cut,
}

impl From<Problem> for Ending {
    fn from(problem: Problem) -> Ending {
        metrics::refused(problem.code());
        let (code, reason) = problem.close();
        Ending::Close(code, reason)
    }
}

/// Serves a stream to its end.
pub(super) async fn serve(app: App, mut socket: Socket, admission: Admission) {
    let told = tokio::select! {
        told = greet(&app, &mut socket, admission) => told,
        () = app.stop.cancelled() => Err(going()),
    };
    let ending = match told {
        Ok(told) => run(&app, &mut socket, *told).await,
        Err(ending) => ending,
    };
    match ending {
        Ending::Close(code, reason) => ws::close(socket, code, &reason).await,
        Ending::Closed => ws::answer_close(socket).await,
        Ending::Cut => {}
    }
}

fn going() -> Ending {
    Ending::Close(close::GOING, "the gateway is stopping".to_owned())
}

/// Who is there: a browser that came with a cookie alone says its key first.
async fn greet(app: &App, socket: &mut Socket, admission: Admission) -> Result<Box<Told>, Ending> {
    let (login, asked) = match admission {
        Admission::Whole(told) => return Ok(told),
        Admission::Half(login, asked) => (login, asked),
    };
    let silent = |_| Ending::Close(close::SILENT, "no hello in time".to_owned());
    let said = tokio::time::timeout(app.settings.limits.hello_within, hear(socket)).await.map_err(silent)??;
    let BoardClientMessage::Hello { key } = said else {
        return Err(Problem::new(Code::NotAuthenticated, "the first message is hello, with the login's key").into());
    };
    let caller = login.with_key(&key).ok_or_else(Problem::not_authenticated)?;
    let caller = guard::allow(caller, TokenScope::Read)?;
    Ok(Box::new(Told::open(app, caller, asked).await?))
}

/// Both directions, until one ends.
async fn run(app: &App, socket: &mut Socket, mut told: Told) -> Ending {
    let heartbeat = app.settings.limits.heartbeat;
    let caller = told.caller.clone();
    let (sink, stream) = socket.split();
    // Only the newest ping is answered.
    let (asked, pings) = watch::channel(None);
    let pongs = Pongs::new();
    tokio::select! {
        ending = up(stream, heartbeat, asked, &pongs) => ending,
        ending = down(app, sink, &mut told, pings, &pongs) => ending,
        () = caller.revoked() => Ending::Close(close::NOT_AUTHENTICATED, "the token or login was revoked".to_owned()),
        () = app.stop.cancelled() => going(),
    }
}

async fn up(
    mut stream: SplitStream<&mut Socket>,
    heartbeat: Duration,
    asked: watch::Sender<Option<u64>>,
    pongs: &Pongs,
) -> Ending {
    let patience = heartbeat * 9 / 4;
    loop {
        let Ok(message) = tokio::time::timeout(patience, stream.next()).await else {
            return Ending::Close(close::SILENT, "nothing was heard for too long".to_owned());
        };
        if is_ping(&message) {
            pongs.queued().await;
        }
        match read(message) {
            Ok(Some(BoardClientMessage::Ping { n })) => drop(asked.send_replace(Some(n))),
            Ok(_) => {}
            Err(ending) => return ending,
        }
    }
}

async fn down(
    app: &App,
    mut sink: SplitSink<&mut Socket, Message>,
    told: &mut Told,
    mut pings: watch::Receiver<Option<u64>>,
    pongs: &Pongs,
) -> Ending {
    let heartbeat = app.settings.limits.heartbeat;
    // Whatever else is sent: a client that hears enough asks nothing, so that only its answers show that it is there.
    let mut beats = tokio::time::interval_at(Instant::now() + heartbeat, heartbeat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut batch = vec![told.welcome(app)];
    let mut n = 0;
    loop {
        for message in &batch {
            // Nothing goes out before the flush.
            if sink.feed(Message::text(text(message))).await.is_err() {
                return Ending::Cut;
            }
        }
        // A connection that takes nothing for too long is cut by the socket itself.
        if sink.flush().await.is_err() {
            return Ending::Cut;
        }
        pongs.sent();
        batch = tokio::select! {
            biased;
            Ok(()) = pings.changed() => {
                pings.borrow_and_update().map(|n| BoardMessage::Pong { n }).into_iter().collect()
            }
            () = pongs.due() => Vec::new(),
            _ = beats.tick() => {
                n += 1;
                vec![BoardMessage::Ping { n }]
            }
            news = told.news.news() => news,
        };
    }
}

/// The client's next message.
async fn hear(socket: &mut Socket) -> Result<BoardClientMessage, Ending> {
    loop {
        let message = socket.next().await;
        // An answer leaves before more is read, so that none pile up.
        if is_ping(&message) && socket.flush().await.is_err() {
            return Err(Ending::Cut);
        }
        if let Some(said) = read(message)? {
            return Ok(said);
        }
    }
}

fn is_ping(message: &Option<Result<Message, Error>>) -> bool {
    matches!(message, Some(Ok(message)) if message.is_ping())
}

/// Reads a message of the client's; `None` for what is only about the connection.
fn read(message: Option<Result<Message, Error>>) -> Result<Option<BoardClientMessage>, Ending> {
    let message = match message {
        Some(Ok(message)) => message,
        Some(Err(Error::Io(_))) | None => return Err(Ending::Cut),
        Some(Err(error)) => {
            let (code, reason) = close_of(&error);
            return Err(Ending::Close(code, reason));
        }
    };
    if message.is_close() {
        return Err(Ending::Closed);
    }
    if message.is_ping() || message.is_pong() {
        return Ok(None);
    }
    let malformed = |why: String| Ending::from(Problem::new(Code::BadRequest, why));
    let text = message.as_text().ok_or_else(|| malformed("messages are JSON texts".to_owned()))?;
    serde_json::from_str(text).map(Some).map_err(|why| malformed(why.to_string()))
}
