//! A viewer's end of the link: where it is in the output, what it typed, and what it owes the server.

mod event;
mod pulse;
mod receiving;
mod sending;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

pub use self::event::{ClientEvent, ClientState, ClientTransmit};
use super::outbox::{NotTaken, Outbox};
use crate::Offset;
use crate::config::{COMMANDS, ClientConfig, HEARTBEAT, RENDERED_IDLE};
use crate::ids::Epoch;
use crate::message::{Cursor, Lag, You};
use crate::size::Size;

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
    /// Since when there is nobody to send input to. A sleep counts, also when the loss is noticed only after it.
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
    /// How far the caller was given output on this connection, also while a later snapshot is half given.
    polled: Offset,
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
        self.events.retain(|event| !event.is_stream());
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
            self.away = Some(self.now.min(self.answer_due()));
        }
        self.outbox.disconnected();
        self.commanded = 0;
        (self.hello, self.deaf, self.repaint, self.giving_up) = (false, true, false, None);
        (self.ping, self.pong, self.probe, self.painting) = (None, None, None, None);
        self.rendered = Rendered::default();
    }

    /// Keys were typed. They are kept until the server has written them, all of them or none.
    pub fn handle_input(&mut self, bytes: &[u8], now: Duration) -> Result<(), NotTaken> {
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
        if self.outbox.push(bytes) { Ok(()) } else { Err(NotTaken::Full) }
    }

    /// How many more typed bytes can be kept.
    pub fn input_room(&self) -> usize {
        self.outbox.room()
    }

    /// The terminal took everything up to here.
    pub fn handle_rendered(&mut self, offset: Offset) {
        if self.state != ClientState::Attached {
            return;
        }
        let rendered = &mut self.rendered;
        rendered.offset = rendered.offset.max(offset.min(rendered.polled));
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

    /// Type what was reported unsent after all: what the last [`ClientEvent::Unsent`] had, and nothing else.
    pub fn send_unsent(&mut self) {
        self.outbox.send_unsent();
    }

    /// Forget what was reported unsent.
    pub fn discard_unsent(&mut self) {
        self.outbox.discard_unsent();
    }

    /// The user left, or reconnecting ended for good. What is not written is reported unsent.
    pub fn handle_ended(&mut self, now: Duration) {
        self.tick(now);
        self.end();
    }

    /// What happened, oldest first. The cursor follows what this returns, so the caller must apply each of them.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let Some(event) = self.events.pop_front() else {
            return self.outbox.poll_unsent().map(ClientEvent::Unsent);
        };
        self.unpolled = self.unpolled.saturating_sub(event.weight());
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
        self.rendered.polled = offset;
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
            self.outbox.take_all();
            self.events.extend(self.commands.drain(..).map(|(id, _)| ClientEvent::CommandUnsent { id }));
        }
    }
}
