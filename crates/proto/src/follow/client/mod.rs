//! One follower's end: it keeps the cursor across all its connections, and checks that events arrive in order.
//!
//! The driver dials, with [`Reconnector`](crate::link::Reconnector) or by itself, and sends commands by HTTP. There is
//! no window: a driver whose caller is slow stops reading from the connection.

mod event;
mod receiving;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::event::{ClientEvent, ClientState, ClientTransmit};
use crate::close;
use crate::follow::Position;
use crate::ids::ClientId;
use crate::link::client::liveness::{Context, Liveness};
use crate::message::{ClientMessage, Cursor, Grant, Hello, Lag, VERSION};

/// The settings of a follower. See [`Hello`] for the fields that it sends.
#[derive(Clone, Debug)]
pub struct FollowerConfig {
    pub client: ClientId,
    pub cursor: Option<Cursor>,
    pub observe: bool,
    pub key: Option<String>,
    pub grant: Option<Grant>,
}

impl FollowerConfig {
    /// A follower without a cursor.
    pub fn new(client: ClientId) -> FollowerConfig {
        FollowerConfig { client, cursor: None, observe: false, key: None, grant: None }
    }
}

/// A follower's end, across all its connections.
#[derive(Debug)]
pub struct Client {
    config: FollowerConfig,
    state: ClientState,
    dials: u64,
    /// After the last event that the caller has polled.
    polled: Position,
    /// After the last event that was received on this connection.
    received: Position,
    liveness: Liveness,
    events: VecDeque<ClientEvent>,
    hello_pending: bool,
    leave_pending: bool,
    pending_close: Option<(u16, &'static str)>,
    /// There is no connection, or it is about to be closed: frames are ignored and no messages are sent.
    inactive: bool,
    now: Duration,
}

impl Client {
    pub fn new(config: FollowerConfig) -> Client {
        Client {
            polled: Position::new(config.cursor.clone()),
            received: Position::default(),
            config,
            state: ClientState::Detached,
            dials: 0,
            liveness: Liveness::new(),
            events: VecDeque::new(),
            hello_pending: false,
            leave_pending: false,
            pending_close: None,
            inactive: true,
            now: Duration::ZERO,
        }
    }

    /// A transport is open. The client sends its hello on it, and drops the unpolled events of earlier connections,
    /// which the server sends again.
    pub fn handle_open(&mut self, now: Duration) {
        self.tick(now);
        if self.state == ClientState::Ended {
            return;
        }
        self.disconnect();
        self.events.retain(|event| !event.belongs_to_connection());
        self.received = self.polled.clone();
        self.dials += 1;
        self.liveness.handle_connected(self.now);
        (self.hello_pending, self.inactive) = (true, false);
        self.state = ClientState::Greeting;
    }

    /// The transport was closed.
    pub fn handle_closed(&mut self, now: Duration) {
        self.tick(now);
        self.disconnect();
        if self.state != ClientState::Ended {
            self.state = ClientState::Detached;
        }
    }

    fn disconnect(&mut self) {
        self.liveness.handle_disconnected();
        (self.hello_pending, self.leave_pending, self.pending_close, self.inactive) = (false, false, None, true);
    }

    /// The user detaches for good: the server is told, if there is a connection, and no more events arrive.
    pub fn leave(&mut self) {
        if self.state != ClientState::Ended {
            self.leave_pending = !self.inactive && !self.hello_pending;
            self.end();
        }
    }

    /// The machine slept, or the page was hidden: checks whether the connection still works.
    pub fn handle_wake(&mut self, now: Duration) {
        let slept = now.saturating_sub(self.now);
        self.tick(now);
        if !self.inactive
            && let Some(reason) = self.liveness.handle_wake(slept, self.now)
        {
            self.lose(close::TIMED_OUT, reason);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.tick(now);
        if !self.inactive
            && let Some(reason) = self.liveness.handle_timeout(self.now, self.liveness_context())
        {
            self.lose(close::TIMED_OUT, reason);
        }
    }

    /// When to call [`handle_timeout`](Client::handle_timeout), at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        (!self.inactive).then(|| self.liveness.poll_timeout(self.liveness_context()))
    }

    fn liveness_context(&self) -> Context {
        Context { greeting: self.state == ClientState::Greeting, unacked_since: None }
    }

    /// The next thing to send. Call it only while the connection's buffer has room.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<ClientTransmit> {
        self.tick(now);
        if std::mem::take(&mut self.leave_pending) {
            return Some(ClientTransmit::Text(ClientMessage::Leave));
        }
        if let Some((code, reason)) = self.pending_close.take() {
            return Some(ClientTransmit::Close { code, reason });
        }
        if self.inactive {
            return None;
        }
        if std::mem::take(&mut self.hello_pending) {
            return Some(ClientTransmit::Text(ClientMessage::Hello(self.hello())));
        }
        self.liveness.poll_transmit().map(ClientTransmit::Text)
    }

    fn hello(&self) -> Hello {
        Hello {
            version: VERSION,
            client: self.config.client.clone(),
            conn: self.dials,
            was: None,
            cursor: self.polled.cursor().cloned(),
            size: None,
            lag: Lag::Wait,
            scrollback: 0,
            observe: self.config.observe,
            theme: None,
            key: self.config.key.clone(),
            grant: self.config.grant.clone(),
        }
    }

    /// The next event, oldest first. The cursor advances with the events returned, so the caller must apply each one.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let event = self.events.pop_front()?;
        let moved = match &event {
            ClientEvent::Attached(attached) => {
                self.polled.handle_verdict(attached.verdict, &attached.epoch, attached.offset)
            }
            ClientEvent::Event(record) => self.polled.handle_record(record),
            ClientEvent::Exit { .. }
            | ClientEvent::Message(_)
            | ClientEvent::Closing { .. }
            | ClientEvent::Lost { .. } => Ok(()),
        };
        debug_assert_eq!(moved, Ok(()), "it was checked when it was received");
        Some(event)
    }

    /// The position from which the next connection resumes.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.polled.cursor()
    }

    pub fn state(&self) -> ClientState {
        self.state
    }

    fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Gives up the connection. The next one resumes from the cursor.
    fn lose(&mut self, code: u16, reason: &'static str) {
        self.pending_close = Some((code, reason));
        self.inactive = true;
        self.events.push_back(ClientEvent::Lost { code, reason });
    }

    fn end(&mut self) {
        self.inactive = true;
        self.state = ClientState::Ended;
    }
}
