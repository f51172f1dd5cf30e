//! Follows the events of one agent session over all its lives, from its process or from its files.
//!
//! A follow holds one number, that of the next event. It reads from the session only when it is polled, so a client
//! that accepts nothing costs the session nothing.

mod connection;
mod event;

use std::time::Duration;

use bowline_host::home::SessionDir;
use bowline_host::registry;
use bowline_proto::board::BoardMessage;
use bowline_proto::ids::{ClientId, Epoch, SessionId};
use bowline_proto::message::{ClientMessage, Cursor, Grant, Hello, Lag, VERSION, Verdict};
use bowline_proto::session::{Kind, SessionInfo, State};
use futures_util::stream::{self, Stream};
use tokio::time::sleep;

use self::connection::{Attached, Connection, SessionMessage};
use self::event::EventText;
use crate::app::App;
use crate::auth::Caller;
use crate::board::{EncodedMessage, ShownSessions};
use crate::sessions::blocking;
use crate::{control, ended};

/// The first wait before a reconnect.
const MIN_RETRY: Duration = Duration::from_millis(10);
/// The longest wait before a reconnect. Waits double up to this.
const MAX_RETRY: Duration = Duration::from_secs(1);

/// A message about a watched session, and the session's cursor after it.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) message: EncodedMessage,
    pub(super) cursor: Cursor,
}

/// What a follow needs to connect.
#[derive(Clone)]
pub(super) struct FollowContext {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) board: ShownSessions,
}

/// Follows a session from this cursor, or from now on. Each item has all messages that were read at once. The stream
/// ends if the session is no agent session of this machine; it does not end when the session does.
pub(super) fn follow(
    context: FollowContext,
    session: SessionId,
    cursor: Option<Cursor>,
) -> impl Stream<Item = Vec<Update>> + Send {
    let follow = Follow {
        dir: context.app.home.session(&session),
        context,
        session,
        cursor,
        is_watched: false,
        client: None,
        dials: 0,
        connection: None,
        past_epoch: None,
        retry: MIN_RETRY,
    };
    stream::unfold(follow, |mut follow| async move {
        let updates = follow.next().await?;
        Some((updates, follow))
    })
}

struct Follow {
    context: FollowContext,
    session: SessionId,
    dir: SessionDir,
    /// The next event; `None` for the events from now on.
    cursor: Option<Cursor>,
    /// The client was sent `watched`.
    is_watched: bool,
    /// Stays the same over all connections, so that a new one takes the place of the last.
    client: Option<ClientId>,
    dials: u64,
    connection: Option<Connection>,
    /// The epoch of the life whose last event was read; `None` if there may be more.
    past_epoch: Option<Epoch>,
    /// The wait before the next reconnect.
    retry: Duration,
}

/// Why a connection ends.
#[derive(Debug)]
enum ConnectionEnd {
    /// The session said so, or the connection broke.
    Closed,
    /// The session sent something invalid.
    Invalid(String),
}

impl From<String> for ConnectionEnd {
    fn from(why: String) -> ConnectionEnd {
        ConnectionEnd::Invalid(why)
    }
}

impl Follow {
    /// Waits for messages. `None` if the session is no agent session of this machine.
    async fn next(&mut self) -> Option<Vec<Update>> {
        loop {
            if self.connection.is_none() {
                self.connect().await?;
            }
            let mut updates = Vec::new();
            if let Err(end) = self.read(&mut updates).await {
                if let ConnectionEnd::Invalid(why) = end {
                    tracing::warn!(session = %self.session, "an agent session sent {why}; connecting again");
                }
                self.disconnect();
            }
            if !updates.is_empty() {
                self.retry = MIN_RETRY;
                return Some(updates);
            }
        }
    }

    /// Connects to the session's process or, once it has ended, to its files, however long this takes.
    async fn connect(&mut self) -> Option<()> {
        loop {
            if self.dials > 0 {
                sleep(self.retry).await;
                self.retry = (self.retry * 2).min(MAX_RETRY);
            }
            let followed = self.context.board.wait_for(&self.session, |info| {
                self.has_more(info).then(|| info.kind == Kind::Agent && info.host.is_none())
            });
            if !followed.await {
                return None;
            }
            self.connection = self.dial().await;
            if self.connection.is_some() {
                return Some(());
            }
        }
    }

    /// Whether a session in this state may have events that were not read. The board may show an earlier state.
    fn has_more(&self, info: &SessionInfo) -> bool {
        let Some(past) = &self.past_epoch else { return true };
        // The journal of a dead session can grow when it is repaired.
        let grown =
            || info.state != State::Running && self.cursor.as_ref().is_none_or(|next| info.offset > next.offset);
        info.epoch != *past || grown()
    }

    /// `None` if there is nothing to connect to at the moment. Only the files and the lock show that a session has
    /// ended, never a refused connection.
    async fn dial(&mut self) -> Option<Connection> {
        self.dials += 1;
        let connection = match control::connect(&self.dir) {
            Ok(stream) => Connection::new(stream, None),
            Err(_) => {
                let dir = self.dir.clone();
                let entry = blocking(move || Ok(registry::try_read(dir))).await.ok()?.ok()??;
                if entry.info.state == State::Running {
                    return None;
                }
                let FollowContext { app, caller, .. } = &self.context;
                let place = app.archive_follows.take(caller.id().to_owned());
                let epoch = entry.info.epoch.clone();
                let stream = ended::connect_while(place, app.clone(), entry).await.ok()?;
                Connection::new(stream, Some(epoch))
            }
        };
        connection.send(&self.hello()?).await.ok()?;
        Some(connection)
    }

    fn hello(&mut self) -> Option<ClientMessage> {
        if self.client.is_none() {
            let mut random = [0; 16];
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).ok()?;
            self.client = Some(ClientId::from_random(random));
        }
        let caller = self.context.caller.id().to_owned();
        Some(ClientMessage::Hello(Hello {
            version: VERSION,
            client: self.client.clone()?,
            conn: self.dials,
            was: None,
            cursor: self.cursor.clone(),
            size: None,
            lag: Lag::default(),
            scrollback: 0,
            observe: true,
            theme: None,
            key: None,
            grant: Some(Grant { write: false, caller: Some(caller), name: None }),
        }))
    }

    fn disconnect(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        // What the files have after the end may already be of the next life, whose process is still to be read. So the
        // epoch of an ended session is the one that it had when it was found to have ended.
        let epoch = connection.ended_epoch.or_else(|| Some(self.cursor.as_ref()?.epoch.clone()));
        self.past_epoch = epoch.filter(|_| connection.exited);
    }

    /// Waits for bytes from the session, and handles all messages that are complete then. `updates` is valid even if
    /// the connection ends.
    async fn read(&mut self, updates: &mut Vec<Update>) -> Result<(), ConnectionEnd> {
        // Reading from a session that floods never waits, so let other tasks run before its next bytes.
        tokio::task::yield_now().await;
        let connection = self.connection.as_mut().ok_or(ConnectionEnd::Closed)?;
        connection.receive().await.map_err(|_| ConnectionEnd::Closed)?;
        let mut ping = None;
        while let Some(text) = self.connection.as_mut().ok_or(ConnectionEnd::Closed)?.take_text()? {
            let text = std::str::from_utf8(&text).map_err(|_| "a text that is not UTF-8".to_owned())?;
            match SessionMessage::parse(text)? {
                None => updates.push(self.handle_event(text)?),
                Some(SessionMessage::Attached(attached)) => updates.extend(self.handle_attached(attached)?),
                Some(SessionMessage::Exit { offset }) => self.handle_exit(offset)?,
                Some(SessionMessage::Ping { n }) => ping = Some(n),
                Some(SessionMessage::Close { code, reason }) => {
                    tracing::debug!(session = %self.session, code, reason, "an agent session closed a follow");
                    return Err(ConnectionEnd::Closed);
                }
                Some(SessionMessage::Other) => {}
            }
        }
        match (ping, &self.connection) {
            (Some(n), Some(connection)) => {
                connection.send(&ClientMessage::Pong { n }).await.map_err(|_| ConnectionEnd::Closed)
            }
            _ => Ok(()),
        }
    }

    /// Returns a `watched` message, unless the client need not know: an exact resume only continues the events.
    fn handle_attached(&mut self, attached: Attached) -> Result<Option<Update>, String> {
        let Attached { epoch, offset, verdict, reason, session } = attached;
        let resumed = self.cursor.as_ref().is_some_and(|cursor| cursor.offset == offset);
        if verdict == Verdict::Exact && !resumed {
            return Err("an exact resume from another event than the next one".to_owned());
        }
        match &mut self.connection {
            Some(connection) if connection.attached_end.is_none() => connection.attached_end = Some(session.offset),
            _ => return Err("attached twice".to_owned()),
        }
        let cursor = Cursor { epoch: epoch.clone(), offset };
        self.cursor = Some(cursor.clone());
        if std::mem::replace(&mut self.is_watched, true) && verdict == Verdict::Exact {
            return Ok(None);
        }
        let session = self.session.clone();
        let watched = BoardMessage::Watched { session, epoch, seq: offset, verdict, reason };
        Ok(Some(Update { message: EncodedMessage::new(&watched), cursor }))
    }

    fn handle_event(&mut self, text: &str) -> Result<Update, String> {
        let attached_end = self.connection.as_ref().and_then(|connection| connection.attached_end);
        let (Some(attached_end), Some(cursor)) = (attached_end, &mut self.cursor) else {
            return Err("an event before attached".to_owned());
        };
        let event = EventText::parse(text).ok_or("a malformed event")?;
        if event.first != cursor.offset {
            return Err(format!("event {} instead of {}", event.first, cursor.offset));
        }
        let next =
            event.seq.checked_add(1).filter(|next| *next > event.first).ok_or("an event with an invalid range")?;
        cursor.offset = next;
        // `attached` named the last epoch that begins in the journal up to its end then. Those that begin before it are
        // older, and a session knows only its latest ones.
        if let Some(epoch) = event.epoch.clone().filter(|_| event.seq >= attached_end) {
            cursor.epoch = epoch;
        }
        Ok(Update { message: event.encode(&self.session), cursor: cursor.clone() })
    }

    fn handle_exit(&mut self, offset: u64) -> Result<(), String> {
        match (&mut self.connection, &self.cursor) {
            (Some(connection), Some(cursor)) if connection.attached_end.is_some() && cursor.offset == offset => {
                connection.exited = true;
                Ok(())
            }
            _ => Err("an exit before the last event".to_owned()),
        }
    }
}
