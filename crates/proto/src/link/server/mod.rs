//! The session's end of the link: all viewers of one life of a session.

mod conn;
mod flow;
mod hello;
mod owner;
mod reading;
mod sending;
mod stream;
mod tape;
mod typing;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use self::conn::Conn;
use self::owner::Owner;
use self::tape::Tape;
use self::typing::Typing;
use crate::Offset;
use crate::close;
use crate::config::{ACK_DELAY, CROWD, PRESENCE_EVERY, ServerConfig};
use crate::message::{Scope, ServerMessage, Theme};
use crate::session::{ExitStatus, SessionInfo};
use crate::size::Size;

/// One transport connection, numbered by the driver and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// The terminal at one place of its output, as bytes that paint it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// How far the screen had come.
    pub offset: Offset,
    /// Its size there.
    pub size: Size,
    /// Escape sequences.
    pub bytes: Bytes,
}

/// What a connection is to carry.
#[derive(Clone, Debug, PartialEq)]
pub enum Transmit {
    /// A text message.
    Text(ServerMessage),
    /// Output to be read from the log: a 0x01 payload. A driver that cannot read it ends the
    /// connection, and the viewer resumes on the next.
    Output {
        /// The first byte.
        from: Offset,
        /// How many.
        len: usize,
    },
    /// A 0x02 payload.
    SnapshotPart(Bytes),
    /// The last thing on this connection. What was handed out before it goes out first.
    Close {
        /// The close code.
        code: u16,
        /// For people and logs.
        reason: String,
    },
}

/// What the driver is to do or to know.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// Resize the terminal; answer with [`Server::handle_resized`].
    Resize(Size),
    /// Make a snapshot; answer with [`Server::handle_snapshot`]. It is asked for after the screen was told all
    /// that the server was told, so a screen that works in order makes one that is new enough.
    NeedSnapshot {
        /// For whom; at most one is outstanding for each connection.
        conn: ConnId,
        /// How much of the terminal.
        scope: Scope,
        /// Lines of scrollback, when it is the whole.
        scrollback: u32,
    },
    /// The size owner's colours.
    Theme(Theme),
    /// A command of a viewer that may write; answer with [`Server::handle_command_done`].
    Command {
        /// Whose.
        conn: ConnId,
        /// The command's id.
        id: String,
        /// What to do.
        command: Value,
    },
    /// This many clients are attached now.
    ClientsChanged(u32),
    /// A connection is being closed. Its [`Transmit::Close`] waits to be polled; one that has no room for it is
    /// to be cut after a moment.
    Closing {
        /// Which.
        conn: ConnId,
        /// The close code.
        code: u16,
    },
}

/// The input queue is full: the terminal does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the terminal does not read its input, and no more of it can be kept")]
pub struct InputFull;

/// The session's end of all its links.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    info: SessionInfo,
    tape: Tape,
    conns: BTreeMap<ConnId, Conn>,
    typing: Typing,
    owner: Owner,
    /// The size asked of the terminal and not confirmed.
    asked: Option<Size>,
    theme: Option<Theme>,
    title: Option<String>,
    cwd: Option<String>,
    ranks: u64,
    /// How many clients the driver knows of.
    counted: u32,
    events: VecDeque<ServerEvent>,
    now: Duration,
}

impl Server {
    /// The end of a session that nobody is attached to.
    pub fn new(config: ServerConfig, info: SessionInfo) -> Server {
        Server {
            tape: Tape::new(config.size, config.resizes),
            typing: Typing::new(config.clients),
            config,
            info,
            conns: BTreeMap::new(),
            owner: Owner::default(),
            asked: None,
            theme: None,
            title: None,
            cwd: None,
            ranks: 0,
            counted: 0,
            events: VecDeque::new(),
            now: Duration::ZERO,
        }
    }

    /// A transport connection was accepted. How many may be open is for the driver to bound: only what says hello is a
    /// viewer, and counts here.
    pub fn handle_open(&mut self, conn: ConnId, now: Duration) {
        self.tick(now);
        self.conns.insert(conn, Conn::new(now));
    }

    /// A transport connection is gone.
    pub fn handle_closed(&mut self, conn: ConnId, now: Duration) {
        self.tick(now);
        self.detach(conn);
        self.conns.remove(&conn);
    }

    /// The log retains this range now. Call it before viewers are polled for what it holds.
    pub fn handle_log(&mut self, start: Offset, end: Offset) {
        self.tape.retain(start, end);
    }

    /// The emulator has come this far.
    pub fn handle_screen(&mut self, offset: Offset) {
        self.tape.screen_at(offset);
    }

    /// The terminal has this size from this offset on. Also tells of earlier changes, when a log is opened again.
    pub fn handle_resized(&mut self, at: Offset, size: Size) {
        if self.asked == Some(size) {
            self.asked = None;
        }
        self.tape.resized(at, size);
    }

    /// The snapshot that was asked for. It is dropped when the connection is gone or no longer needs it.
    pub fn handle_snapshot(&mut self, conn: ConnId, snapshot: Snapshot) {
        if let Some(viewer) = self.conns.get_mut(&conn).and_then(|conn| conn.viewer.as_mut()) {
            viewer.stream.snapshot(snapshot, &self.tape);
        }
    }

    /// The session's description changed. Its size, offset, epoch and number of clients are filled in here.
    pub fn handle_info(&mut self, info: SessionInfo) {
        self.info = info;
    }

    /// Something for everybody attached: a title, a directory, a notification, a link, the bell, an agent's event.
    /// Only the last title, directory and bell are kept for a viewer that has not read them.
    pub fn handle_notice(&mut self, notice: ServerMessage) {
        let viewers = self.conns.values_mut().filter_map(|conn| conn.viewer.as_mut());
        match &notice {
            ServerMessage::Title { title } => {
                self.title = Some(title.clone());
                viewers.for_each(|viewer| viewer.owed.title = true);
            }
            ServerMessage::Cwd { cwd } => {
                self.cwd = Some(cwd.clone());
                viewers.for_each(|viewer| viewer.owed.cwd = true);
            }
            ServerMessage::Bell => viewers.for_each(|viewer| viewer.owed.bell = true),
            ServerMessage::Notify { .. } | ServerMessage::Url { .. } | ServerMessage::Event { .. } => {
                viewers.for_each(|viewer| viewer.owed.notice(notice.clone()));
            }
            // The rest is for the server itself to say.
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

    /// A command's `accepted` or `rejected`, for the connection that gave it.
    pub fn handle_command_done(&mut self, conn: ConnId, answer: ServerMessage) {
        if let Some(viewer) = self.conns.get_mut(&conn).and_then(|conn| conn.viewer.as_mut()) {
            viewer.commands = viewer.commands.saturating_sub(1);
            viewer.owed.notice(answer);
        }
    }

    /// The program ended and its output is read to the end: each viewer gets all of it, then `exit`, then close 1000.
    pub fn handle_exit(&mut self, exit: ExitStatus) {
        self.tape.exit = Some(exit);
        self.typing.clear();
    }

    /// Input that is of no client's stream, such as a command's text: queued behind what was typed before it.
    pub fn handle_typed(&mut self, bytes: &[u8]) -> Result<(), InputFull> {
        if self.typing.type_in(bytes) { Ok(()) } else { Err(InputFull) }
    }

    /// What is to be written to the terminal next.
    pub fn input(&self) -> &[u8] {
        self.typing.queue()
    }

    /// The first `n` bytes of [`input`](Server::input) were written.
    pub fn handle_input_written(&mut self, n: usize, now: Duration) {
        self.tick(now);
        let conns = &mut self.conns;
        self.typing.written(n, |conn| {
            if let Some(viewer) = conns.get_mut(&conn).and_then(|conn| conn.viewer.as_mut()) {
                viewer.owed.ack.get_or_insert(now + ACK_DELAY);
            }
        });
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.tick(now);
        let (heartbeat, hello) = (self.config.heartbeat, self.config.hello_within);
        let within = self.config.snapshot_within;
        let mut over = Vec::new();
        for (id, conn) in self.conns.iter().filter(|(_, conn)| conn.is_open()) {
            if conn.dead_at(heartbeat, hello) <= now {
                let why = if conn.viewer.is_some() { "silence" } else { "no hello" };
                over.push((*id, close::SILENT, why));
            } else if conn.viewer.as_ref().and_then(|viewer| viewer.stream.deadline(within)).is_some_and(|at| at <= now)
            {
                over.push((*id, close::LATER, "the screen did not answer"));
            }
        }
        for (id, code, reason) in over {
            self.close(id, code, reason);
        }
        if self.owner.deadline(self.config.owner_grace).is_some_and(|at| at <= now) {
            self.pass_size();
        }
    }

    /// When [`handle_timeout`](Server::handle_timeout) is to be called, at the latest: at once while an event waits
    /// to be polled.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if !self.events.is_empty() {
            return Some(self.now);
        }
        let (heartbeat, hello) = (self.config.heartbeat, self.config.hello_within);
        let open = self.conns.values().filter(|conn| conn.is_open());
        let of_conns = open.flat_map(|conn| {
            let viewer = conn.viewer.as_ref();
            let stream = viewer.map(|viewer| &viewer.stream);
            // These only call for a poll of the connection, which the driver does once it has room.
            let soft = [
                viewer.map(|_| conn.ping_at(heartbeat)),
                viewer.and_then(|viewer| viewer.owed.ack),
                viewer.and_then(|viewer| viewer.owed.presence),
                stream.and_then(|stream| stream.lag_deadline()),
            ];
            let hard = [
                Some(conn.dead_at(heartbeat, hello)),
                stream.and_then(|stream| stream.deadline(self.config.snapshot_within)),
            ];
            soft.into_iter().flatten().filter(|at| *at > self.now).chain(hard.into_iter().flatten())
        });
        of_conns.chain(self.owner.deadline(self.config.owner_grace)).min()
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Whether a viewer goes on only when [`Server::handle_screen`] tells that the screen has come further. The driver
    /// is to be woken by the screen only then.
    pub fn waits_for_screen(&self) -> bool {
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        viewers.into_iter().any(|viewer| viewer.stream.waits_for_screen(&self.tape))
    }

    /// How many clients are attached.
    pub fn clients(&self) -> u32 {
        self.conns.values().filter(|conn| conn.viewer.is_some()).count() as u32
    }

    fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Nothing more is read from a connection; it is told why, and its viewer is no longer there.
    fn close(&mut self, id: ConnId, code: u16, reason: &str) {
        self.detach(id);
        if let Some(conn) = self.conns.get_mut(&id)
            && conn.is_open()
        {
            conn.close(code, reason);
            self.events.push_back(ServerEvent::Closing { conn: id, code });
        }
    }

    /// A viewer leaves for good: its size is free at once, where a mere drop keeps it for a while.
    fn leave(&mut self, id: ConnId) {
        let viewer = self.conns.get(&id).and_then(|conn| conn.viewer.as_ref());
        let owned = viewer.is_some_and(|viewer| self.owner.is(&viewer.client));
        self.detach(id);
        if owned && self.owner.deadline(Duration::ZERO).is_some() {
            self.pass_size();
        }
        self.close(id, close::NORMAL, "the client left");
    }

    fn detach(&mut self, id: ConnId) {
        let Some(viewer) = self.conns.get_mut(&id).and_then(|conn| conn.viewer.take()) else { return };
        self.typing.detach(viewer.serial, id);
        if self.owner.leave(&viewer.client, self.now) {
            self.follow_owner();
        }
        self.changed();
    }

    /// Who is here, or whose size rules, has changed.
    fn changed(&mut self) {
        let count = self.clients();
        let at = if count as usize > CROWD { self.now + PRESENCE_EVERY } else { self.now };
        for viewer in self.conns.values_mut().filter_map(|conn| conn.viewer.as_mut()) {
            viewer.owed.presence = Some(viewer.owed.presence.map_or(at, |due| due.min(at)));
        }
        if std::mem::replace(&mut self.counted, count) != count {
            self.events.push_back(ServerEvent::ClientsChanged(count));
        }
    }
}
