//! A viewer's end of the link: where it is in the output, what it typed, and what it owes the server.

mod receiving;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::outbox::{NotTaken, Outbox, Unsent};
use crate::Offset;
use crate::close;
use crate::config::{
    ATTACHED_WITHIN, COMMANDS, HEARTBEAT, LONG_SLEEP, OUTBOX, PROBE_AFTER, PROBE_WITHIN, RENDERED_EVERY, RENDERED_IDLE,
    UNSENT_AFTER, death,
};
use crate::ids::{ClientId, Epoch};
use crate::message::{
    Attached, ClientMessage, Cursor, ExitStatus, Grant, Hello, Lag, Missed, Reason, Scope, ServerMessage, Theme,
    VERSION, You,
};
use crate::size::Size;

/// Who a viewer is and what it wants.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// This run of this client.
    pub client: ClientId,
    /// Its id before a page reload.
    pub was: Option<ClientId>,
    /// Where to go on from; none for a fresh start.
    pub cursor: Option<Cursor>,
    /// The size of its window, if it has one.
    pub size: Option<Size>,
    /// What it wants when it cannot keep up.
    pub lag: Lag,
    /// Lines of scrollback in a whole snapshot.
    pub scrollback: u32,
    /// Look only.
    pub observe: bool,
    /// Answers for colour queries.
    pub theme: Option<Theme>,
    /// A browser's origin key.
    pub key: Option<String>,
    /// What a gateway lets this viewer do.
    pub grant: Option<Grant>,
    /// See [`OUTBOX`].
    pub outbox: usize,
    /// See [`RENDERED_EVERY`].
    pub rendered_every: u64,
    /// See [`UNSENT_AFTER`].
    pub unsent_after: Duration,
}

impl ClientConfig {
    /// A viewer without a window, with the ordinary bounds.
    pub fn new(client: ClientId) -> ClientConfig {
        ClientConfig {
            client,
            was: None,
            cursor: None,
            size: None,
            lag: Lag::Skip,
            scrollback: 1000,
            observe: false,
            theme: None,
            key: None,
            grant: None,
            outbox: OUTBOX,
            rendered_every: RENDERED_EVERY,
            unsent_after: UNSENT_AFTER,
        }
    }
}

/// What a viewer's connection is to carry.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientTransmit {
    /// A text message.
    Text(ClientMessage),
    /// A 0x03 payload.
    Input {
        /// Its place in this client's input.
        offset: Offset,
        /// What was typed.
        bytes: Bytes,
    },
    /// Give this connection up: close it, then call [`Client::handle_disconnected`] and dial again.
    Close {
        /// The close code.
        code: u16,
        /// For people and logs.
        reason: &'static str,
    },
}

/// What the viewer is to show or to know, in the order in which it is to be applied.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The server answered the hello. The terminal has `size` from here on; for a snapshot, its parts follow.
    Attached(Box<Attached>),
    /// A snapshot begins. Give the terminal this size; with [`Scope::All`], reset it first.
    SnapshotBegin {
        /// Why.
        reason: Reason,
        /// How much of the terminal.
        scope: Scope,
        /// What is never seen as bytes.
        missed: Option<Missed>,
        /// Where output goes on.
        offset: Offset,
        /// The size in force there.
        size: Size,
        /// Its length.
        bytes: u64,
    },
    /// Bytes of a snapshot, for the terminal.
    SnapshotPart(Bytes),
    /// A snapshot is whole. Call [`Client::handle_rendered`] with the offset once the terminal took it.
    SnapshotEnd {
        /// Where output goes on.
        offset: Offset,
    },
    /// Output, for the terminal.
    Output {
        /// The place of its first byte.
        offset: Offset,
        /// The bytes.
        bytes: Bytes,
    },
    /// The terminal has this size from here on.
    Resize(Size),
    /// The program ended; there is no more output.
    Exit {
        /// How.
        status: ExitStatus,
        /// The end of the output.
        offset: Offset,
    },
    /// The server said, on a transport without close codes, with which one it closes this connection.
    Closing {
        /// The close code.
        code: u16,
        /// For people and logs.
        reason: String,
    },
    /// Titles, notifications, presence, answers to commands, errors.
    Message(ServerMessage),
    /// Typed bytes that were not sent: the session is another, or too much time has passed. Nothing is done with
    /// them until [`Client::send_unsent`] or [`Client::discard_unsent`].
    Unsent(Unsent),
    /// A command that was not resent, for the same reasons. It may have been taken.
    CommandUnsent {
        /// The command's id.
        id: String,
    },
    /// The state changed.
    StateChanged(ClientState),
}

/// Where a viewer's link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// No connection.
    Detached,
    /// Connected, waiting for `attached`.
    Greeting,
    /// Attached.
    Attached,
    /// The session ended, or the user left: no more connections.
    Ended,
}

/// A viewer's end of its link, over all its connections.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    state: ClientState,
    dials: u64,
    /// What the caller has been given, and so what a resume may build on.
    cursor: Option<Cursor>,
    /// The life that this connection speaks of.
    epoch: Option<Epoch>,
    /// The next output byte on this connection.
    next: Offset,
    /// What is still to come of a snapshot.
    painting: Option<Painting>,
    you: You,
    heartbeat: Duration,
    heard: Duration,
    connected: Duration,
    pinged: Option<Duration>,
    pings: u64,
    ping: Option<u64>,
    /// A word must have come by then.
    probe: Option<Duration>,
    pong: Option<u64>,
    rendered: Rendered,
    outbox: Outbox,
    /// Since when there is nobody to send input to.
    away: Option<Duration>,
    commands: VecDeque<(String, Value)>,
    /// How many of `commands` this connection has carried.
    commanded: usize,
    resize: Option<Size>,
    claim: bool,
    repaint: bool,
    /// The width that the caller's terminal has.
    cols: Option<u16>,
    /// That width changed, and the owner's screen has not been painted since: a cut took it away.
    unpainted: bool,
    hello: bool,
    giving_up: Option<(u16, &'static str)>,
    /// Nothing more is read from this connection.
    deaf: bool,
    events: VecDeque<ClientEvent>,
    unpolled: usize,
    now: Duration,
}

#[derive(Debug)]
struct Painting {
    offset: Offset,
    left: u64,
}

/// What the viewer's terminal has taken, and what the server knows of it.
#[derive(Debug, Default)]
struct Rendered {
    offset: Offset,
    acked: Offset,
    /// When to acknowledge what is rendered.
    due: Option<Duration>,
    /// The offset of a snapshot that is to be acknowledged at once.
    snapshot: Option<Offset>,
}

impl Client {
    /// A viewer that is not connected yet.
    pub fn new(config: ClientConfig) -> Client {
        Client {
            cursor: config.cursor.clone(),
            epoch: config.cursor.as_ref().map(|cursor| cursor.epoch.clone()),
            outbox: Outbox::new(config.outbox),
            you: You { write: !config.observe, size: false },
            config,
            state: ClientState::Detached,
            dials: 0,
            next: 0,
            painting: None,
            heartbeat: HEARTBEAT,
            heard: Duration::ZERO,
            connected: Duration::ZERO,
            pinged: None,
            pings: 0,
            ping: None,
            probe: None,
            pong: None,
            rendered: Rendered::default(),
            away: None,
            commands: VecDeque::new(),
            commanded: 0,
            resize: None,
            claim: false,
            repaint: false,
            cols: None,
            unpainted: false,
            hello: false,
            giving_up: None,
            deaf: true,
            events: VecDeque::new(),
            unpolled: 0,
            now: Duration::ZERO,
        }
    }

    /// A transport is open: say hello on it. What earlier connections brought and was not polled is dropped, for
    /// the cursor asks for it again.
    pub fn handle_connected(&mut self, now: Duration) {
        self.tick(now);
        if self.state == ClientState::Ended {
            return;
        }
        self.disconnect();
        self.events.retain(|event| !is_stream(event));
        self.unpolled = 0;
        self.dials += 1;
        (self.heard, self.connected, self.pinged) = (now, now, None);
        (self.hello, self.deaf, self.resize) = (true, false, None);
        self.become_state(ClientState::Greeting);
    }

    /// The transport is gone.
    pub fn handle_disconnected(&mut self, now: Duration) {
        self.tick(now);
        self.disconnect();
        if self.state != ClientState::Ended {
            self.become_state(ClientState::Detached);
        }
    }

    fn disconnect(&mut self) {
        if self.state == ClientState::Attached {
            self.away = Some(self.now);
        }
        self.outbox.disconnected();
        self.commanded = 0;
        (self.hello, self.deaf, self.repaint, self.giving_up) = (false, true, false, None);
        (self.ping, self.pong, self.probe, self.painting) = (None, None, None, None);
        self.rendered = Rendered::default();
    }

    /// Keys were typed. They are kept until the server has written them; returns how many were taken.
    pub fn handle_input(&mut self, bytes: &[u8], now: Duration) -> Result<usize, NotTaken> {
        self.tick(now);
        if self.state == ClientState::Ended {
            return Err(NotTaken::Ended);
        }
        if !self.you.write {
            return Err(NotTaken::ReadOnly);
        }
        if self.state != ClientState::Attached && self.outbox.is_empty() {
            self.away.get_or_insert(now);
        }
        match self.outbox.push(bytes) {
            0 if !bytes.is_empty() => Err(NotTaken::Full),
            taken => Ok(taken),
        }
    }

    /// The terminal took everything up to here.
    pub fn handle_rendered(&mut self, offset: Offset) {
        let Some(cursor) = &self.cursor else { return };
        if self.state != ClientState::Attached {
            return;
        }
        let rendered = &mut self.rendered;
        rendered.offset = rendered.offset.max(offset.min(cursor.offset));
        let snapshot = rendered.snapshot.is_some_and(|at| at <= rendered.offset);
        if snapshot || rendered.offset.saturating_sub(rendered.acked) >= self.config.rendered_every {
            rendered.due = Some(self.now);
        } else if rendered.offset > rendered.acked {
            rendered.due.get_or_insert(self.now + RENDERED_IDLE);
        }
    }

    /// The window has this size now; the terminal follows only on the server's word.
    pub fn handle_resize(&mut self, size: Size) {
        self.config.size = Some(size);
        // Said after `attached`, if the hello is out already.
        self.resize = Some(size).filter(|_| !self.hello);
    }

    /// Ask to be the one whose window decides.
    pub fn claim_size(&mut self, size: Size) {
        self.config.size = Some(size);
        self.claim = true;
    }

    /// Ask for the visible screen again.
    pub fn repaint(&mut self) {
        self.repaint = self.state == ClientState::Attached;
    }

    /// Give a command. It is repeated on the next connection until it is answered.
    pub fn command(&mut self, id: String, command: Value) -> Result<(), NotTaken> {
        if self.state == ClientState::Ended {
            return Err(NotTaken::Ended);
        }
        if self.commands.len() >= COMMANDS {
            return Err(NotTaken::Full);
        }
        if self.state != ClientState::Attached {
            self.away.get_or_insert(self.now);
        }
        self.commands.push_back((id, command));
        Ok(())
    }

    /// Type what was reported unsent after all.
    pub fn send_unsent(&mut self) {
        self.outbox.send_unsent();
    }

    /// Forget what was reported unsent.
    pub fn discard_unsent(&mut self) {
        self.outbox.discard_unsent();
    }

    /// The machine slept, or the page was hidden: a connection that seems open is not believed.
    pub fn handle_wake(&mut self, now: Duration) {
        let slept = now.saturating_sub(self.now);
        self.tick(now);
        if self.deaf {
            return;
        }
        if slept >= LONG_SLEEP {
            self.give_up(close::SILENT, "asleep for too long");
        } else {
            self.start_probe();
        }
    }

    /// The user left, or reconnecting ended for good. What is not written is reported unsent.
    pub fn handle_ended(&mut self, now: Duration) {
        self.tick(now);
        self.end();
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.tick(now);
        if self.deaf {
            return;
        }
        let late = self.state == ClientState::Greeting && self.connected + ATTACHED_WITHIN <= now;
        if self.probe.is_some_and(|at| at <= now) {
            self.give_up(close::SILENT, "no answer to a probe");
        } else if late || self.heard + death(self.heartbeat) <= now {
            self.give_up(close::SILENT, "silence");
        } else if self.probe_at().is_some_and(|at| at <= now) {
            self.start_probe();
        } else if self.ping_at() <= now {
            self.send_ping();
        }
    }

    /// When [`handle_timeout`](Client::handle_timeout) is to be called, at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.deaf {
            return None;
        }
        let late = (self.state == ClientState::Greeting).then(|| self.connected + ATTACHED_WITHIN);
        let due = self.rendered.due.filter(|at| *at > self.now);
        let hard = [Some(self.heard + death(self.heartbeat)), Some(self.ping_at()), late, self.probe, self.probe_at()];
        hard.into_iter().flatten().chain(due).min()
    }

    fn ping_at(&self) -> Duration {
        self.pinged.map_or(self.heard, |pinged| pinged.max(self.heard)) + self.heartbeat
    }

    /// When input without an ack, and nothing heard, calls for a probe.
    fn probe_at(&self) -> Option<Duration> {
        let waiting = self.outbox.waiting().filter(|_| self.probe.is_none())?;
        Some(waiting.max(self.heard) + PROBE_AFTER)
    }

    fn start_probe(&mut self) {
        if self.probe.is_none() {
            self.probe = Some(self.now + PROBE_WITHIN);
            self.send_ping();
        }
    }

    fn send_ping(&mut self) {
        self.pinged = Some(self.now);
        self.pings += 1;
        self.ping = Some(self.pings);
    }

    /// What the connection is to carry next.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<ClientTransmit> {
        self.tick(now);
        if let Some((code, reason)) = self.giving_up.take() {
            return Some(ClientTransmit::Close { code, reason });
        }
        if self.deaf {
            return None;
        }
        if let Some(text) = self.next_text() {
            return Some(ClientTransmit::Text(text));
        }
        if self.state != ClientState::Attached {
            return None;
        }
        let (offset, bytes) = self.outbox.pop(now)?;
        Some(ClientTransmit::Input { offset, bytes })
    }

    fn next_text(&mut self) -> Option<ClientMessage> {
        if std::mem::take(&mut self.hello) {
            return Some(ClientMessage::Hello(self.make_hello()));
        }
        if let Some(n) = self.pong.take() {
            return Some(ClientMessage::Pong { n });
        }
        if let Some(n) = self.ping.take() {
            return Some(ClientMessage::Ping { n });
        }
        if self.state != ClientState::Attached {
            return None;
        }
        if let Some(size) = self.config.size
            && std::mem::take(&mut self.claim)
        {
            self.resize = None;
            return Some(ClientMessage::ClaimSize(size));
        }
        if let Some(size) = self.resize.take() {
            return Some(ClientMessage::Resize(size));
        }
        if std::mem::take(&mut self.repaint) {
            return Some(ClientMessage::Repaint);
        }
        if self.rendered.due.is_some_and(|at| at <= self.now) {
            let rendered = &mut self.rendered;
            rendered.due = None;
            rendered.snapshot = rendered.snapshot.filter(|at| *at > rendered.offset);
            rendered.acked = rendered.offset;
            return Some(ClientMessage::Ack { output: rendered.offset });
        }
        let (id, command) = self.commands.get(self.commanded)?.clone();
        self.commanded += 1;
        Some(ClientMessage::Command { id, command })
    }

    fn make_hello(&self) -> Hello {
        let config = &self.config;
        Hello {
            version: VERSION,
            client: config.client.clone(),
            conn: self.dials,
            was: config.was.clone(),
            cursor: self.cursor.clone(),
            size: config.size,
            lag: config.lag,
            scrollback: config.scrollback,
            observe: config.observe,
            theme: config.theme.clone(),
            key: config.key.clone(),
            grant: config.grant,
        }
    }

    /// What happened, oldest first. The cursor follows what this returns, so the caller must apply each of them.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let event = self.events.pop_front()?;
        self.unpolled = self.unpolled.saturating_sub(weight(&event));
        match &event {
            ClientEvent::Attached(attached) if attached.snapshot.is_none() => {
                self.moved_to(attached.offset);
                self.resized_to(attached.size);
                // The screen that was to follow a change of width may have been lost with the old connection.
                self.repaint |= self.unpainted && self.state == ClientState::Attached;
            }
            // A terminal that is half painted is of no known place.
            ClientEvent::SnapshotBegin { size, .. } => {
                self.cursor = None;
                self.cols = Some(size.cols());
            }
            ClientEvent::SnapshotEnd { offset } => {
                self.unpainted = false;
                self.moved_to(*offset);
            }
            ClientEvent::Resize(size) => self.resized_to(*size),
            ClientEvent::Output { offset, bytes } => self.moved_to(offset + bytes.len() as u64),
            ClientEvent::Attached(_)
            | ClientEvent::SnapshotPart(_)
            | ClientEvent::Exit { .. }
            | ClientEvent::Closing { .. }
            | ClientEvent::Message(_)
            | ClientEvent::Unsent(_)
            | ClientEvent::CommandUnsent { .. }
            | ClientEvent::StateChanged(_) => {}
        }
        Some(event)
    }

    fn moved_to(&mut self, offset: Offset) {
        self.cursor = self.epoch.clone().map(|epoch| Cursor { epoch, offset });
    }

    fn resized_to(&mut self, size: Size) {
        let changed = self.cols.replace(size.cols()).is_some_and(|cols| cols != size.cols());
        self.unpainted |= changed && self.config.lag == Lag::Skip;
    }

    /// Where the viewer is.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }

    /// The state of the link.
    pub fn state(&self) -> ClientState {
        self.state
    }

    /// What this viewer may do and is, as far as it knows.
    pub fn you(&self) -> You {
        self.you
    }

    fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    fn become_state(&mut self, state: ClientState) {
        if self.state != state {
            self.state = state;
            self.events.push_back(ClientEvent::StateChanged(state));
        }
    }

    fn give_up(&mut self, code: u16, reason: &'static str) {
        self.giving_up = Some((code, reason));
        self.deaf = true;
    }

    fn end(&mut self) {
        if self.state != ClientState::Ended {
            self.deaf = true;
            self.become_state(ClientState::Ended);
            self.events.extend(self.outbox.take_all().map(ClientEvent::Unsent));
            self.events.extend(self.commands.drain(..).map(|(id, _)| ClientEvent::CommandUnsent { id }));
        }
    }
}

/// Belongs to one connection's stream, and comes again on the next.
fn is_stream(event: &ClientEvent) -> bool {
    matches!(
        event,
        ClientEvent::Attached(_)
            | ClientEvent::SnapshotBegin { .. }
            | ClientEvent::SnapshotPart(_)
            | ClientEvent::SnapshotEnd { .. }
            | ClientEvent::Output { .. }
            | ClientEvent::Resize(_)
    )
}

fn weight(event: &ClientEvent) -> usize {
    if let ClientEvent::SnapshotPart(bytes) | ClientEvent::Output { bytes, .. } = event { bytes.len() } else { 0 }
}
