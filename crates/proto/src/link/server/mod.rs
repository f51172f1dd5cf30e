//! The session's end of the link: it serves all viewers of one epoch.

pub(crate) mod caller;
pub(crate) mod conn;
mod flow;
mod hello;
mod input_queue;
mod output_index;
mod owner;
pub(crate) mod places;
mod reading;
mod sending;
mod snapshots;
mod stream;
mod viewer;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use self::conn::Conn;
use self::input_queue::InputQueue;
use self::output_index::OutputIndex;
use self::owner::SizeOwner;
use self::snapshots::Snapshots;
pub use self::snapshots::{Snapshot, SnapshotKind};
use self::viewer::Viewer;
use crate::Offset;
use crate::close;
use crate::config::{ACK_DELAY, CROWD_THRESHOLD, PRESENCE_EVERY, ServerConfig};
use crate::message::{ServerMessage, Theme};
use crate::session::{ExitStatus, SessionInfo};
use crate::size::Size;

/// A connection. The driver numbers them, and never uses a number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// Something for the driver to do with a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Transmit {
    /// Send a text message.
    Text(ServerMessage),
    /// Read this range from the log, and send it as a 0x01 payload. If the driver cannot read it, it must close the
    /// connection; the viewer then resumes on the next one.
    Output { from: Offset, len: usize },
    /// Send a 0x02 payload.
    SnapshotPart(Bytes),
    /// Close the connection, after everything before this has been sent.
    Close { code: u16, reason: String },
}

/// Something for the driver to do or to record.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Resize the terminal, then call [`Server::handle_resized`].
    Resize(Size),
    /// Make a snapshot of this kind, then call [`Server::handle_snapshot`]. There is one such request at a time.
    ///
    /// The driver must first give the emulator all output and resizes that it has reported here, so that the snapshot
    /// is new enough.
    NeedSnapshot(SnapshotKind),
    /// The size owner's colours changed.
    Theme(Theme),
    /// Run a command of a viewer that may write, then call [`Server::handle_command_done`].
    Command { conn: ConnId, id: String, command: Value },
    /// The number of attached clients changed.
    ClientsChanged(u32),
    /// A connection is closing, and its [`Transmit::Close`] can be polled. If the connection has no room for it, the
    /// driver should cut the connection after a short time.
    Closing { conn: ConnId, code: u16 },
}

/// The input queue is full, because the program does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program does not read its input, and the queue is full")]
pub struct InputFull;

/// The session's end of the links to all its viewers.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    info: SessionInfo,
    output: OutputIndex,
    conns: BTreeMap<ConnId, Conn<Viewer>>,
    input: InputQueue,
    snapshots: Snapshots,
    /// How often the terminal was resized.
    resizes: u64,
    owner: SizeOwner,
    /// The size requested for the terminal and not yet confirmed.
    requested_size: Option<Size>,
    theme: Option<Theme>,
    title: Option<String>,
    cwd: Option<String>,
    last_rank: u64,
    /// The number of clients last reported to the driver.
    reported_clients: u32,
    events: VecDeque<ServerEvent>,
    now: Duration,
}

impl Server {
    pub fn new(config: ServerConfig, info: SessionInfo) -> Server {
        Server {
            output: OutputIndex::new(config.size, config.resizes),
            input: InputQueue::new(config.clients),
            config,
            info,
            conns: BTreeMap::new(),
            snapshots: Snapshots::default(),
            resizes: 0,
            owner: SizeOwner::default(),
            requested_size: None,
            theme: None,
            title: None,
            cwd: None,
            last_rank: 0,
            reported_clients: 0,
            events: VecDeque::new(),
            now: Duration::ZERO,
        }
    }

    /// A connection was accepted. The driver limits the number of open connections; the server counts a connection as
    /// a viewer only after its hello.
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

    /// The log has this range now. Must be called before connections are polled for output in it.
    pub fn handle_log(&mut self, start: Offset, end: Offset) {
        self.output.retain(start, end);
    }

    /// The emulator has processed everything before `offset`.
    pub fn handle_screen(&mut self, offset: Offset) {
        self.output.set_screen(offset);
    }

    /// The terminal has this size from `at` on. Also reports earlier changes of size, when a log is opened again.
    pub fn handle_resized(&mut self, at: Offset, size: Size) {
        if self.requested_size == Some(size) {
            self.requested_size = None;
        }
        self.resizes += 1;
        self.output.record_resize(at, size);
    }

    /// The session's description changed. The server fills in the size, offset, epoch and number of clients itself.
    pub fn handle_info(&mut self, info: SessionInfo) {
        self.info = info;
    }

    /// Sends a title, directory, notification, link or bell to all viewers. Other messages are ignored.
    ///
    /// For a viewer that does not read, only the last title, directory and bell are kept, and at most
    /// [`NOTICES`](crate::config::NOTICES) others.
    pub fn handle_notice(&mut self, notice: ServerMessage) {
        let viewers = self.conns.values_mut().filter_map(|conn| conn.viewer.as_mut());
        match &notice {
            ServerMessage::Title { title } => {
                self.title = Some(title.clone());
                viewers.for_each(|viewer| viewer.pending.title = true);
            }
            ServerMessage::Cwd { cwd } => {
                self.cwd = Some(cwd.clone());
                viewers.for_each(|viewer| viewer.pending.cwd = true);
            }
            ServerMessage::Bell => viewers.for_each(|viewer| viewer.pending.bell = true),
            ServerMessage::Notify { .. } | ServerMessage::Url { .. } => {
                viewers.for_each(|viewer| viewer.pending.push_notice(notice.clone()));
            }
            // Only the server itself sends these.
            ServerMessage::Attached(_)
            | ServerMessage::Resize(_)
            | ServerMessage::Ack { .. }
            | ServerMessage::Snapshot { .. }
            | ServerMessage::Presence { .. }
            | ServerMessage::Exit { .. }
            | ServerMessage::Accepted { .. }
            | ServerMessage::Rejected { .. }
            | ServerMessage::Error { .. }
            | ServerMessage::Ping { .. }
            | ServerMessage::Pong { .. }
            | ServerMessage::Close { .. }
            | ServerMessage::Unknown => {}
        }
    }

    /// Sends the `accepted` or `rejected` of a command to the connection that sent the command.
    pub fn handle_command_done(&mut self, conn: ConnId, answer: ServerMessage) {
        if let Some(viewer) = self.conns.get_mut(&conn).and_then(|conn| conn.viewer.as_mut()) {
            viewer.unanswered_commands = viewer.unanswered_commands.saturating_sub(1);
            viewer.pending.push_notice(answer);
        }
    }

    /// The program ended, and its output is in the log to the last byte. Each viewer gets all of it, then `exit`, then
    /// a close with 1000.
    pub fn handle_exit(&mut self, exit: ExitStatus) {
        self.output.exit = Some(exit);
        self.input.clear();
    }

    /// Queues input that is not part of a client's stream, such as the text of a command.
    pub fn handle_command_input(&mut self, bytes: &[u8]) -> Result<(), InputFull> {
        if self.input.push_other(bytes) { Ok(()) } else { Err(InputFull) }
    }

    /// The input to write to the terminal.
    pub fn input(&self) -> &[u8] {
        self.input.bytes()
    }

    /// The first `n` bytes of [`input`](Server::input) were written.
    pub fn handle_input_written(&mut self, n: usize, now: Duration) {
        self.tick(now);
        let conns = &mut self.conns;
        self.input.handle_written(n, |conn| {
            if let Some(viewer) = conns.get_mut(&conn).and_then(|conn| conn.viewer.as_mut()) {
                viewer.pending.ack.get_or_insert(now + ACK_DELAY);
            }
        });
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.tick(now);
        let (heartbeat, hello) = (self.config.heartbeat, self.config.hello_within);
        let within = self.config.snapshot_within;
        let mut expired = Vec::new();
        for (id, conn) in self.conns.iter().filter(|(_, conn)| conn.is_open()) {
            let snapshot_deadline = conn.viewer.as_ref().and_then(|viewer| viewer.stream.snapshot_deadline(within));
            if conn.expires_at(heartbeat, hello) <= now {
                let reason = if conn.viewer.is_some() { "no message for too long" } else { "no hello in time" };
                expired.push((*id, close::TIMED_OUT, reason));
            } else if snapshot_deadline.is_some_and(|at| at <= now) {
                expired.push((*id, close::TRY_AGAIN_LATER, "no snapshot in time"));
            }
        }
        for (id, code, reason) in expired {
            self.close(id, code, reason);
        }
        self.make_next_snapshot();
        if self.owner.deadline(self.config.owner_grace).is_some_and(|at| at <= now) {
            self.pass_size_on();
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
            let viewer = conn.viewer.as_ref();
            let stream = viewer.map(|viewer| &viewer.stream);
            // These only need a poll of the connection, which the driver makes as soon as it has room.
            let poll_at = [
                viewer.map(|_| conn.ping_at(heartbeat)),
                viewer.and_then(|viewer| viewer.pending.ack),
                viewer.and_then(|viewer| viewer.pending.presence),
                stream.and_then(|stream| stream.lag_deadline()),
            ];
            let close_at = [
                Some(conn.expires_at(heartbeat, hello)),
                stream.and_then(|stream| stream.snapshot_deadline(self.config.snapshot_within)),
            ];
            poll_at.into_iter().flatten().filter(|at| *at > self.now).chain(close_at.into_iter().flatten())
        });
        deadlines.chain(self.owner.deadline(self.config.owner_grace)).chain(self.making_deadline()).min()
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Whether a viewer can continue only after the next [`Server::handle_screen`]. The emulator needs to wake the
    /// driver only then.
    pub fn has_viewer_awaiting_screen(&self) -> bool {
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        viewers.into_iter().any(|viewer| viewer.stream.has_viewer_awaiting_screen(&self.output))
    }

    pub fn clients(&self) -> u32 {
        self.conns.values().filter(|conn| conn.viewer.is_some()).count() as u32
    }

    fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Detaches the viewer and closes the connection. Nothing more is read from it.
    fn close(&mut self, id: ConnId, code: u16, reason: &str) {
        self.detach(id);
        if let Some(conn) = self.conns.get_mut(&id)
            && conn.is_open()
        {
            conn.close(code, reason);
            self.events.push_back(ServerEvent::Closing { conn: id, code });
        }
    }

    /// A viewer detaches for good, and gives up the size at once instead of after the grace period.
    fn leave(&mut self, id: ConnId) {
        let viewer = self.conns.get(&id).and_then(|conn| conn.viewer.as_ref());
        let owned = viewer.is_some_and(|viewer| self.owner.is(&viewer.client));
        self.detach(id);
        if owned && self.owner.deadline(Duration::ZERO).is_some() {
            self.pass_size_on();
        }
        self.close(id, close::NORMAL, "the client detached");
    }

    fn detach(&mut self, id: ConnId) {
        let Some(viewer) = self.conns.get_mut(&id).and_then(|conn| conn.viewer.take()) else { return };
        self.input.detach(viewer.serial, id);
        if self.owner.detach(&viewer.client, self.now) {
            self.apply_owner_size();
        }
        self.presence_changed();
    }

    /// The attached clients or the size owner changed.
    fn presence_changed(&mut self) {
        let count = self.clients();
        let at = if count as usize > CROWD_THRESHOLD { self.now + PRESENCE_EVERY } else { self.now };
        for viewer in self.conns.values_mut().filter_map(|conn| conn.viewer.as_mut()) {
            viewer.pending.presence = Some(viewer.pending.presence.map_or(at, |due| due.min(at)));
        }
        if std::mem::replace(&mut self.reported_clients, count) != count {
            self.events.push_back(ServerEvent::ClientsChanged(count));
        }
    }
}
