//! A viewer's end of the link: where it is in the output, what it typed, and what it owes the server.

mod commands;
mod event;
mod hello;
mod place;
mod pulse;
mod receiving;
mod rendered;
mod sending;

use std::time::Duration;

use serde_json::Value;

use self::commands::Commands;
use self::event::Events;
pub use self::event::{ClientEvent, ClientState, ClientTransmit};
use self::place::Place;
use self::pulse::{Context, Pulse};
use self::rendered::Rendered;
use super::outbox::{NotTaken, Outbox};
use crate::Offset;
use crate::close;
use crate::config::ClientConfig;
use crate::message::{Cursor, Lag, You};
use crate::size::Size;

/// A viewer's end of its link, over all its connections.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    state: ClientState,
    dials: u64,
    place: Place,
    pulse: Pulse,
    rendered: Rendered,
    outbox: Outbox,
    commands: Commands,
    events: Events,
    you: You,
    /// Since when there is nobody to send input to. A sleep counts, also when the loss is noticed only after it.
    away: Option<Duration>,
    /// The hello of this connection is to be sent.
    hello: bool,
    resize: Option<Size>,
    claim: bool,
    repaint: bool,
    giving_up: Option<(u16, &'static str)>,
    /// Nothing more is read from this connection.
    deaf: bool,
    now: Duration,
}

impl Client {
    /// A viewer that is not connected yet.
    pub fn new(config: ClientConfig) -> Client {
        Client {
            place: Place::new(config.cursor.clone()),
            pulse: Pulse::new(),
            rendered: Rendered::new(config.rendered_every, 0),
            outbox: Outbox::new(config.outbox),
            commands: Commands::default(),
            events: Events::default(),
            you: You { write: !config.observe, size: false },
            config,
            state: ClientState::Detached,
            dials: 0,
            away: None,
            hello: false,
            resize: None,
            claim: false,
            repaint: false,
            giving_up: None,
            deaf: true,
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
        self.events.drop_stream();
        self.dials += 1;
        self.pulse.handle_connected(self.now);
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
            self.away = Some(self.now.min(self.pulse.answer_due(self.outbox.waiting())));
        }
        self.outbox.disconnected();
        self.place.handle_disconnected();
        self.pulse.handle_disconnected();
        self.commands.handle_disconnected();
        self.rendered = Rendered::new(self.config.rendered_every, 0);
        (self.hello, self.deaf, self.repaint, self.giving_up) = (false, true, false, None);
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

    /// How many typed bytes the server has not written, as far as is known. Those that wait for a decision do not count.
    pub fn input_waiting(&self) -> usize {
        self.outbox.waiting_bytes()
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
        self.rendered.handle_rendered(offset, self.now);
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
    pub fn command(&mut self, id: String, command: Value, now: Duration) -> Result<(), NotTaken> {
        self.tick(now);
        if self.state == ClientState::Ended {
            return Err(NotTaken::Ended);
        }
        if !self.commands.push(id, command) {
            return Err(NotTaken::Full);
        }
        if self.state != ClientState::Attached {
            self.away.get_or_insert(self.now);
        }
        Ok(())
    }

    /// Type what was reported unsent after all: what the last [`ClientEvent::Unsent`] had, and nothing else. Once the session
    /// is over, it stays unsent.
    pub fn send_unsent(&mut self, now: Duration) {
        self.tick(now);
        if self.state == ClientState::Ended {
            return;
        }
        if self.state != ClientState::Attached {
            self.away.get_or_insert(self.now);
        }
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

    /// The machine slept, or the page was hidden: a connection that seems open is not believed.
    pub fn handle_wake(&mut self, now: Duration) {
        let slept = now.saturating_sub(self.now);
        self.tick(now);
        if !self.deaf
            && let Some(reason) = self.pulse.handle_wake(slept, self.now)
        {
            self.give_up(close::SILENT, reason);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.tick(now);
        if !self.deaf
            && let Some(reason) = self.pulse.handle_timeout(self.now, self.pulse_context())
        {
            self.give_up(close::SILENT, reason);
        }
    }

    /// When [`handle_timeout`](Client::handle_timeout) is to be called, at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let ack = self.rendered.poll_timeout(self.now);
        let pulse = self.pulse.poll_timeout(self.pulse_context());
        (!self.deaf).then(|| ack.map_or(pulse, |ack| ack.min(pulse)))
    }

    fn pulse_context(&self) -> Context {
        Context { greeting: self.state == ClientState::Greeting, waiting: self.outbox.waiting() }
    }

    /// What happened, oldest first. The cursor follows what this returns, so the caller must apply each of them.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let Some(event) = self.events.pop() else {
            return self.outbox.poll_unsent().map(ClientEvent::Unsent);
        };
        let repainted = self.config.lag == Lag::Skip;
        match &event {
            ClientEvent::Attached(attached) if attached.snapshot.is_none() => {
                self.given(attached.offset);
                self.place.handle_resized(attached.size, repainted);
                // The screen that was to follow a change of width may have been lost with the old connection.
                self.repaint |= self.place.is_unpainted() && self.state == ClientState::Attached;
            }
            ClientEvent::SnapshotBegin { size, .. } => self.place.handle_paint(*size),
            ClientEvent::SnapshotEnd { offset } => {
                self.place.handle_painted();
                self.given(*offset);
            }
            ClientEvent::Resize(size) => self.place.handle_resized(*size, repainted),
            ClientEvent::Output { offset, bytes } => self.given(offset + bytes.len() as u64),
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

    /// The caller has been given everything up to here.
    fn given(&mut self, offset: Offset) {
        self.place.handle_polled(offset);
        self.rendered.handle_polled(offset);
    }

    /// Where the viewer is.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.place.cursor()
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
            self.events.push(ClientEvent::StateChanged(state));
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
            self.drop_commands();
        }
    }

    fn drop_commands(&mut self) {
        self.commands.take_all().for_each(|id| self.events.push(ClientEvent::CommandUnsent { id }));
    }
}
