//! The session's end: it serves all followers of one journal, and keeps one number for each, the next event.

mod epochs;
mod follower;
mod hello;
mod reading;
mod sending;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

pub use self::epochs::EpochStart;
use self::epochs::Epochs;
use self::follower::Follower;
use super::FollowMessage;
use crate::close;
use crate::config::{HEARTBEAT, HELLO_WITHIN, VIEWERS};
use crate::link::ConnId;
use crate::link::server::conn::Conn;
use crate::session::{ExitStatus, SessionInfo};

/// The settings of the session's end.
#[derive(Clone, Debug)]
pub struct FollowConfig {
    /// See [`HEARTBEAT`].
    pub heartbeat: Duration,
    /// See [`HELLO_WITHIN`].
    pub hello_within: Duration,
    /// See [`VIEWERS`].
    pub viewers: usize,
}

impl Default for FollowConfig {
    fn default() -> FollowConfig {
        FollowConfig { heartbeat: HEARTBEAT, hello_within: HELLO_WITHIN, viewers: VIEWERS }
    }
}

/// Something for the driver to do with a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Transmit {
    /// Send a text message.
    Text(FollowMessage),
    /// Read these events from the journal and send as many as fit, at least one, then call [`Server::handle_sent`].
    ///
    /// Adjacent events may be sent as one that stands for several, but the first number sent is always `from`. If the
    /// driver cannot read the events, it must close the connection; the follower then resumes on the next one.
    Events {
        from: u64,
        /// Exclusive.
        to: u64,
    },
    /// Close the connection, after everything before this has been sent.
    Close { code: u16, reason: String },
}

/// Something for the driver to do or to record.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Run a command of a follower that may write, then call [`Server::handle_command_done`].
    Command {
        conn: ConnId,
        id: String,
        command: Value,
        /// The name of the token or login that sent it, or `local`.
        by: String,
    },
    /// The number of attached clients changed.
    ClientsChanged(u32),
    /// A connection is closing, and its [`Transmit::Close`] can be polled. If the connection has no room for it, the
    /// driver should cut the connection after a short time.
    Closing { conn: ConnId, code: u16 },
}

/// The session's end of the connections to all its followers.
#[derive(Debug)]
pub struct Server {
    config: FollowConfig,
    info: SessionInfo,
    epochs: Epochs,
    /// The number of the next event of the journal.
    end: u64,
    exit: Option<ExitStatus>,
    conns: BTreeMap<ConnId, Conn<Follower>>,
    /// The number of clients last reported to the driver.
    reported_clients: u32,
    events: VecDeque<ServerEvent>,
    now: Duration,
}

impl Server {
    /// `epochs` are those of the journal, oldest first; the last one is the current one. `end` is the number of the
    /// next event.
    pub fn new(config: FollowConfig, info: SessionInfo, epochs: Vec<EpochStart>, end: u64) -> Server {
        Server {
            config,
            epochs: Epochs::new(epochs, &info.epoch),
            info,
            end,
            exit: None,
            conns: BTreeMap::new(),
            reported_clients: 0,
            events: VecDeque::new(),
            now: Duration::ZERO,
        }
    }

    /// A connection was accepted. The driver limits the number of open connections; the server counts a connection as
    /// a follower only after its hello.
    pub fn handle_open(&mut self, conn: ConnId, now: Duration) {
        self.tick(now);
        self.conns.insert(conn, Conn::new(now));
    }

    /// A connection was closed or lost.
    pub fn handle_closed(&mut self, conn: ConnId, now: Duration) {
        self.tick(now);
        self.detach(conn);
        self.conns.remove(&conn);
    }

    /// The journal has the events before `end` now. It grows only: [`handle_epoch`](Server::handle_epoch) reports that
    /// events were cut.
    ///
    /// A description that these events change must be reported with [`handle_info`](Server::handle_info) before
    /// connections are polled, because `attached` says that it is true at the end.
    pub fn handle_end(&mut self, end: u64) {
        self.end = self.end.max(end);
    }

    /// An epoch begins. If it begins before the end, the events from there on were cut, and followers that were sent
    /// one of them are closed with 1013: their next hello gets a `snapshot`.
    pub fn handle_epoch(&mut self, start: EpochStart) {
        self.end = self.end.min(start.seq);
        self.epochs.begin(start);
        let followers = self.conns.iter().filter_map(|(id, conn)| Some((*id, conn.viewer.as_ref()?)));
        let cut: Vec<_> = followers.filter(|(_, follower)| follower.next > self.end).map(|(id, _)| id).collect();
        for id in cut {
            self.close_after_cut(id);
        }
    }

    /// The session's description changed. The server fills in the epoch, offset and number of clients itself.
    pub fn handle_info(&mut self, info: SessionInfo) {
        self.info = info;
    }

    /// The session ended, and its last event is in the journal. Each follower gets the rest of the events, then
    /// `exit`, then a close with 1000.
    pub fn handle_exit(&mut self, exit: ExitStatus) {
        self.exit = Some(exit);
    }

    /// Sends the `accepted` or `rejected` of a command to the connection that sent the command.
    pub fn handle_command_done(&mut self, conn: ConnId, answer: FollowMessage) {
        if let Some(follower) = self.follower(conn) {
            follower.handle_command_done(answer);
        }
    }

    /// The events of the last [`Transmit::Events`] before `next` were sent.
    pub fn handle_sent(&mut self, conn: ConnId, next: u64) {
        let end = self.end;
        let Some(follower) = self.follower(conn) else { return };
        follower.next = follower.next.max(next);
        if follower.next > end {
            self.close_after_cut(conn);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.tick(now);
        let (heartbeat, hello) = (self.config.heartbeat, self.config.hello_within);
        let open = self.conns.iter().filter(|(_, conn)| conn.is_open());
        let expired = open.filter(|(_, conn)| conn.expires_at(heartbeat, hello) <= now);
        let expired: Vec<_> = expired.map(|(id, conn)| (*id, conn.viewer.is_some())).collect();
        for (id, attached) in expired {
            let reason = if attached { "no message for too long" } else { "no hello in time" };
            self.close(id, close::TIMED_OUT, reason);
        }
    }

    /// When to call [`handle_timeout`](Server::handle_timeout), at the latest; at once while an event can be polled.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if !self.events.is_empty() {
            return Some(self.now);
        }
        let (heartbeat, hello) = (self.config.heartbeat, self.config.hello_within);
        let open = self.conns.values().filter(|conn| conn.is_open());
        let deadlines = open.flat_map(|conn| {
            // A ping only needs a poll of the connection, which the driver makes as soon as it has room.
            let ping = conn.viewer.as_ref().map(|_| conn.ping_at(heartbeat)).filter(|at| *at > self.now);
            ping.into_iter().chain([conn.expires_at(heartbeat, hello)])
        });
        deadlines.min()
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// The number of attached clients.
    pub fn clients(&self) -> u32 {
        self.followers().count() as u32
    }

    /// The session's description, with its current epoch, offset and number of clients.
    pub fn info(&self) -> SessionInfo {
        SessionInfo {
            clients: self.clients(),
            epoch: self.epochs.current().clone(),
            offset: self.end,
            ..self.info.clone()
        }
    }

    fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    fn followers(&self) -> impl Iterator<Item = &Follower> {
        self.conns.values().filter_map(|conn| conn.viewer.as_ref())
    }

    fn follower(&mut self, id: ConnId) -> Option<&mut Follower> {
        self.conns.get_mut(&id).and_then(|conn| conn.viewer.as_mut())
    }

    /// Detaches the follower and closes the connection. Nothing more is read from it.
    fn close(&mut self, id: ConnId, code: u16, reason: &str) {
        self.detach(id);
        if let Some(conn) = self.conns.get_mut(&id)
            && conn.is_open()
        {
            conn.close(code, reason);
            self.events.push_back(ServerEvent::Closing { conn: id, code });
        }
    }

    /// A follower has events that the journal no longer has.
    fn close_after_cut(&mut self, id: ConnId) {
        self.close(id, close::TRY_AGAIN_LATER, "the end of the journal was cut");
    }

    fn detach(&mut self, id: ConnId) {
        if self.conns.get_mut(&id).and_then(|conn| conn.viewer.take()).is_some() {
            self.clients_changed();
        }
    }

    fn clients_changed(&mut self) {
        let count = self.clients();
        if std::mem::replace(&mut self.reported_clients, count) != count {
            self.events.push_back(ServerEvent::ClientsChanged(count));
        }
    }
}
