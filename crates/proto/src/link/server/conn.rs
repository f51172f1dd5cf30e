//! One connection to a server: when it was last heard from, its queued errors, and its viewer after the hello.

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::{MAX_INVALID_MESSAGES, silence_limit};
use crate::message::ServerMessage;
use crate::problem::Code;

/// A connection, from its start to its close.
#[derive(Debug)]
pub(crate) struct Conn<V> {
    opened: Duration,
    last_received: Duration,
    last_ping: Option<Duration>,
    pings: u64,
    /// Only the newest ping is answered.
    pub(crate) pending_pong: Option<u64>,
    errors: VecDeque<ConnMessage>,
    invalid_messages: u32,
    close_state: CloseState,
    /// From a valid hello to the close.
    pub(crate) viewer: Option<V>,
}

#[derive(Debug)]
enum CloseState {
    Open,
    Closing { code: u16, reason: String },
    Closed,
}

/// A message about the connection itself, which servers of all kinds of sessions send.
#[derive(Debug, PartialEq)]
pub(crate) enum ConnMessage {
    Ping { n: u64 },
    Pong { n: u64 },
    Error { code: Code, message: String, fatal: bool },
}

impl From<ConnMessage> for ServerMessage {
    fn from(message: ConnMessage) -> ServerMessage {
        match message {
            ConnMessage::Ping { n } => ServerMessage::Ping { n },
            ConnMessage::Pong { n } => ServerMessage::Pong { n },
            ConnMessage::Error { code, message, fatal } => ServerMessage::Error { code, message, fatal },
        }
    }
}

impl<V> Conn<V> {
    pub(crate) fn new(now: Duration) -> Conn<V> {
        Conn {
            opened: now,
            last_received: now,
            last_ping: None,
            pings: 0,
            pending_pong: None,
            errors: VecDeque::new(),
            invalid_messages: 0,
            close_state: CloseState::Open,
            viewer: None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.close_state, CloseState::Open)
    }

    pub(crate) fn handle_received(&mut self, now: Duration) {
        self.last_received = self.last_received.max(now);
    }

    /// Queues an error for the client, unless it is the same as the last one in the queue.
    pub(crate) fn push_error(&mut self, code: Code, message: String, fatal: bool) {
        let error = ConnMessage::Error { code, message, fatal };
        if self.errors.back() != Some(&error) && self.errors.len() <= MAX_INVALID_MESSAGES as usize {
            self.errors.push_back(error);
        }
    }

    /// Reports an invalid message to the client. Returns false if it has sent more than [`MAX_INVALID_MESSAGES`].
    pub(crate) fn record_invalid(&mut self, code: Code, message: String) -> bool {
        self.invalid_messages += 1;
        let tolerated = self.invalid_messages <= MAX_INVALID_MESSAGES;
        self.push_error(code, message, !tolerated);
        tolerated
    }

    /// Does nothing if the connection is closing already.
    pub(crate) fn close(&mut self, code: u16, reason: &str) {
        if self.is_open() {
            self.close_state = CloseState::Closing { code, reason: reason.to_owned() };
        }
    }

    /// The next message to send before all others: a pong or an error.
    pub(crate) fn next_urgent(&mut self) -> Option<ConnMessage> {
        self.pending_pong.take().map(|n| ConnMessage::Pong { n }).or_else(|| self.errors.pop_front())
    }

    pub(crate) fn next_close(&mut self) -> Option<(u16, String)> {
        match std::mem::replace(&mut self.close_state, CloseState::Closed) {
            CloseState::Closing { code, reason } => Some((code, reason)),
            state @ (CloseState::Open | CloseState::Closed) => {
                self.close_state = state;
                None
            }
        }
    }

    pub(crate) fn next_ping(&mut self, heartbeat: Duration, now: Duration) -> Option<ConnMessage> {
        if now < self.ping_at(heartbeat) {
            return None;
        }
        self.last_ping = Some(now);
        self.pings += 1;
        Some(ConnMessage::Ping { n: self.pings })
    }

    /// When to send a ping, unless something is received.
    pub(crate) fn ping_at(&self, heartbeat: Duration) -> Duration {
        self.last_ping.map_or(self.last_received, |ping| ping.max(self.last_received)) + heartbeat
    }

    /// When to close the connection, unless something is received.
    pub(crate) fn expires_at(&self, heartbeat: Duration, hello_within: Duration) -> Duration {
        match self.viewer {
            Some(_) => self.last_received + silence_limit(heartbeat),
            None => self.opened + hello_within,
        }
    }
}
