//! A viewer's end of the link: its position in the output, its input, and the messages it has to send.

mod commands;
mod event;
mod hello;
pub(crate) mod liveness;
mod output_acks;
mod position;
mod receiving;
mod sending;

use std::time::Duration;

use serde_json::Value;

use self::commands::Commands;
use self::event::Events;
pub use self::event::{ClientEvent, ClientState, ClientTransmit};
use self::liveness::{Context, Liveness};
use self::output_acks::OutputAcks;
use self::position::Position;
use super::outbox::{Outbox, SubmitError};
use crate::Offset;
use crate::close;
use crate::config::ClientConfig;
use crate::message::{Cursor, Lag, Permissions};
use crate::size::Size;

/// A viewer's end of its link, across all its connections.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    state: ClientState,
    dials: u64,
    position: Position,
    liveness: Liveness,
    acks: OutputAcks,
    outbox: Outbox,
    commands: Commands,
    events: Events,
    you: Permissions,
    /// Since when input could not reach the server. Includes a sleep, even if the loss is noticed only afterwards.
    offline_since: Option<Duration>,
    hello_pending: bool,
    pending_resize: Option<Size>,
    claim_pending: bool,
    repaint_pending: bool,
    pending_close: Option<(u16, &'static str)>,
    /// There is no connection, or it is about to be closed: frames are ignored and no messages are sent.
    inactive: bool,
    now: Duration,
}

impl Client {
    pub fn new(config: ClientConfig) -> Client {
        Client {
            position: Position::new(config.cursor.clone()),
            liveness: Liveness::new(),
            acks: OutputAcks::new(config.rendered_every, 0),
            outbox: Outbox::new(config.outbox),
            commands: Commands::default(),
            events: Events::default(),
            you: Permissions { write: !config.observe, size: false },
            config,
            state: ClientState::Detached,
            dials: 0,
            offline_since: None,
            hello_pending: false,
            pending_resize: None,
            claim_pending: false,
            repaint_pending: false,
            pending_close: None,
            inactive: true,
            now: Duration::ZERO,
        }
    }

    /// A transport is open. The client sends its hello on it, and drops the unpolled output of earlier connections,
    /// which the server sends again.
    pub fn handle_connected(&mut self, now: Duration) {
        self.tick(now);
        if self.state == ClientState::Ended {
            return;
        }
        self.disconnect();
        self.events.drop_stream();
        self.dials += 1;
        self.liveness.handle_connected(self.now);
        (self.hello_pending, self.inactive, self.pending_resize) = (true, false, None);
        self.set_state(ClientState::Greeting);
    }

    /// The transport was closed.
    pub fn handle_disconnected(&mut self, now: Duration) {
        self.tick(now);
        self.disconnect();
        if self.state != ClientState::Ended {
            self.set_state(ClientState::Detached);
        }
    }

    fn disconnect(&mut self) {
        if self.state == ClientState::Attached {
            self.offline_since = Some(self.now.min(self.liveness.loss_bound(self.outbox.unacked_since())));
        }
        self.outbox.handle_disconnected();
        self.position.handle_disconnected();
        self.liveness.handle_disconnected();
        self.commands.handle_disconnected();
        self.acks = OutputAcks::new(self.config.rendered_every, 0);
        (self.hello_pending, self.inactive, self.repaint_pending, self.pending_close) = (false, true, false, None);
    }

    /// The user typed. The bytes are kept until the server has written them; they are accepted all together or not at
    /// all.
    pub fn handle_input(&mut self, bytes: &[u8], now: Duration) -> Result<(), SubmitError> {
        self.tick(now);
        if self.state == ClientState::Ended {
            return Err(SubmitError::Ended);
        }
        if !self.you.write {
            return Err(SubmitError::ReadOnly);
        }
        if self.state != ClientState::Attached && self.outbox.is_empty() {
            self.offline_since.get_or_insert(now);
        }
        if self.outbox.push(bytes) { Ok(()) } else { Err(SubmitError::Full) }
    }

    /// The number of typed bytes that the server has not confirmed as written; unsent bytes do not count.
    pub fn unconfirmed_input(&self) -> usize {
        self.outbox.len()
    }

    /// How many more typed bytes fit.
    pub fn input_room(&self) -> usize {
        self.outbox.room()
    }

    /// The terminal has rendered everything before `offset`.
    pub fn handle_rendered(&mut self, offset: Offset) {
        if self.state != ClientState::Attached {
            return;
        }
        self.acks.handle_rendered(offset, self.now);
    }

    /// The window has this size now. The terminal changes only when the server sends [`ClientEvent::Resize`].
    pub fn handle_resize(&mut self, size: Size) {
        self.config.size = Some(size);
        // A hello that is not sent yet has the new size.
        self.pending_resize = Some(size).filter(|_| !self.hello_pending);
    }

    /// Requests ownership of the size, with this size.
    pub fn claim_size(&mut self, size: Size) {
        self.config.size = Some(size);
        self.claim_pending = true;
    }

    /// Requests a snapshot of the visible screen.
    pub fn repaint(&mut self) {
        self.repaint_pending = self.state == ClientState::Attached;
    }

    /// Sends a command. It is repeated on each new connection until it is answered.
    pub fn command(&mut self, id: String, command: Value, now: Duration) -> Result<(), SubmitError> {
        self.tick(now);
        if self.state == ClientState::Ended {
            return Err(SubmitError::Ended);
        }
        if !self.commands.push(id, command) {
            return Err(SubmitError::Full);
        }
        if self.state != ClientState::Attached {
            self.offline_since.get_or_insert(self.now);
        }
        Ok(())
    }

    /// Sends the bytes of the last [`ClientEvent::Unsent`] after all, and no others. Does nothing once the session has
    /// ended.
    pub fn send_unsent(&mut self, now: Duration) {
        self.tick(now);
        if self.state == ClientState::Ended {
            return;
        }
        if self.state != ClientState::Attached {
            self.offline_since.get_or_insert(self.now);
        }
        self.outbox.send_unsent();
    }

    /// Discards the bytes of the last [`ClientEvent::Unsent`].
    pub fn discard_unsent(&mut self) {
        self.outbox.discard_unsent();
    }

    /// The user detached, or reconnecting ended for good. Bytes that are not confirmed as written are reported unsent.
    pub fn handle_ended(&mut self, now: Duration) {
        self.tick(now);
        self.end();
    }

    /// The machine slept, or the page was hidden: checks whether the connection still works.
    pub fn handle_wake(&mut self, now: Duration) {
        let slept = now.saturating_sub(self.now);
        self.tick(now);
        if !self.inactive
            && let Some(reason) = self.liveness.handle_wake(slept, self.now)
        {
            self.close_connection(close::TIMED_OUT, reason);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.tick(now);
        if !self.inactive
            && let Some(reason) = self.liveness.handle_timeout(self.now, self.liveness_context())
        {
            self.close_connection(close::TIMED_OUT, reason);
        }
    }

    /// When to call [`handle_timeout`](Client::handle_timeout), at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let ack = self.acks.poll_timeout(self.now);
        let liveness = self.liveness.poll_timeout(self.liveness_context());
        (!self.inactive).then(|| ack.map_or(liveness, |ack| ack.min(liveness)))
    }

    fn liveness_context(&self) -> Context {
        Context { greeting: self.state == ClientState::Greeting, unacked_since: self.outbox.unacked_since() }
    }

    /// The next event, oldest first. The cursor advances with the events returned, so the caller must apply each one.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let Some(event) = self.events.pop() else {
            return self.outbox.poll_unsent().map(ClientEvent::Unsent);
        };
        let expect_repaint = self.config.lag == Lag::Skip;
        match &event {
            ClientEvent::Attached(attached) if attached.snapshot.is_none() => {
                self.mark_polled(attached.offset);
                self.position.handle_resized(attached.size, expect_repaint);
                // The snapshot that follows a change of width may have been lost with the old connection.
                self.repaint_pending |= self.position.needs_repaint() && self.state == ClientState::Attached;
            }
            ClientEvent::SnapshotBegin { size, .. } => self.position.begin_snapshot(*size),
            ClientEvent::SnapshotEnd { offset } => {
                self.position.end_snapshot();
                self.mark_polled(*offset);
            }
            ClientEvent::Resize(size) => self.position.handle_resized(*size, expect_repaint),
            ClientEvent::Output { offset, bytes } => self.mark_polled(offset + bytes.len() as u64),
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

    /// The caller has polled everything before `offset`.
    fn mark_polled(&mut self, offset: Offset) {
        self.position.handle_polled(offset);
        self.acks.handle_polled(offset);
    }

    /// The position from which a new link could resume.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.position.cursor()
    }

    pub fn state(&self) -> ClientState {
        self.state
    }

    /// What this viewer may do, and whether it owns the size, according to the server's last message.
    pub fn permissions(&self) -> Permissions {
        self.you
    }

    fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    fn set_state(&mut self, state: ClientState) {
        if self.state != state {
            self.state = state;
            self.events.push(ClientEvent::StateChanged(state));
        }
    }

    fn close_connection(&mut self, code: u16, reason: &'static str) {
        self.pending_close = Some((code, reason));
        self.inactive = true;
    }

    fn end(&mut self) {
        if self.state != ClientState::Ended {
            self.inactive = true;
            self.set_state(ClientState::Ended);
            self.outbox.withdraw_all();
            self.drop_commands();
        }
    }

    fn drop_commands(&mut self) {
        self.commands.drain().for_each(|id| self.events.push(ClientEvent::CommandUnsent { id }));
    }
}
