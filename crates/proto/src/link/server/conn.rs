//! One connection to the server: when it was last heard from, its queued errors, and its viewer after the hello.

use std::collections::VecDeque;
use std::time::Duration;

use super::caller::ClientKey;
use super::input_queue::Serial;
use super::stream::Stream;
use crate::Offset;
use crate::config::{MAX_INVALID_MESSAGES, NOTICES, silence_limit};
use crate::ids::ClientId;
use crate::message::{ServerMessage, Theme};
use crate::problem::Code;
use crate::size::Size;

/// A connection, from its start to its close.
#[derive(Debug)]
pub(super) struct Conn {
    opened: Duration,
    last_received: Duration,
    last_ping: Option<Duration>,
    pings: u64,
    /// Only the newest ping is answered.
    pub(super) pending_pong: Option<u64>,
    errors: VecDeque<ServerMessage>,
    invalid_messages: u32,
    close_state: CloseState,
    /// From a valid hello to the close.
    pub(super) viewer: Option<Viewer>,
}

#[derive(Debug)]
enum CloseState {
    Open,
    Closing { code: u16, reason: String },
    Closed,
}

/// An attached client.
#[derive(Debug)]
pub(super) struct Viewer {
    pub(super) serial: Serial,
    pub(super) client: ClientKey,
    /// The id that other viewers see. The client's own would let others with the same caller take its place.
    pub(super) public_id: ClientId,
    /// May type, send commands and own the size.
    pub(super) write: bool,
    pub(super) window: Option<Size>,
    pub(super) theme: Option<Theme>,
    pub(super) scrollback: u32,
    /// Viewers are numbered in the order in which they attached.
    pub(super) rank: u64,
    /// `attached` was sent.
    pub(super) announced: bool,
    /// The value of `input` in `attached`.
    pub(super) input: Option<Offset>,
    pub(super) stream: Stream,
    pub(super) pending: PendingMessages,
    pub(super) unanswered_commands: usize,
    /// The viewer was sent an error for the current hole in its input.
    pub(super) gap_reported: bool,
}

/// The messages to send to a viewer besides its output.
#[derive(Debug, Default)]
pub(super) struct PendingMessages {
    pub(super) title: bool,
    pub(super) cwd: bool,
    pub(super) bell: bool,
    /// When to send the list of attached clients.
    pub(super) presence: Option<Duration>,
    /// When to acknowledge written input, unless output is sent earlier.
    pub(super) ack: Option<Duration>,
    /// The last frame was output, so an acknowledgement can be sent with it.
    pub(super) sent_output: bool,
    pub(super) notices: VecDeque<ServerMessage>,
    pub(super) dropped_notices: u64,
}

impl PendingMessages {
    /// Queues a notice; past [`NOTICES`] the oldest one is dropped.
    pub(super) fn push_notice(&mut self, notice: ServerMessage) {
        if self.notices.len() >= NOTICES {
            self.notices.pop_front();
            self.dropped_notices += 1;
        }
        self.notices.push_back(notice);
    }

    pub(super) fn next_notice(&mut self) -> Option<ServerMessage> {
        match std::mem::take(&mut self.dropped_notices) {
            0 => self.notices.pop_front(),
            n => Some(error(Code::TooMany, format!("{n} notices were dropped because the viewer was too slow"), false)),
        }
    }
}

impl Conn {
    pub(super) fn new(now: Duration) -> Conn {
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

    pub(super) fn is_open(&self) -> bool {
        matches!(self.close_state, CloseState::Open)
    }

    pub(super) fn handle_received(&mut self, now: Duration) {
        self.last_received = self.last_received.max(now);
    }

    /// Queues an error for the client, unless it is the same as the last one in the queue.
    pub(super) fn push_error(&mut self, code: Code, message: String, fatal: bool) {
        let error = error(code, message, fatal);
        if self.errors.back() != Some(&error) && self.errors.len() <= MAX_INVALID_MESSAGES as usize {
            self.errors.push_back(error);
        }
    }

    /// Reports an invalid message to the client. Returns false if it has sent more than [`MAX_INVALID_MESSAGES`].
    pub(super) fn record_invalid(&mut self, code: Code, message: String) -> bool {
        self.invalid_messages += 1;
        let tolerated = self.invalid_messages <= MAX_INVALID_MESSAGES;
        self.push_error(code, message, !tolerated);
        tolerated
    }

    /// Does nothing if the connection is closing already.
    pub(super) fn close(&mut self, code: u16, reason: &str) {
        if self.is_open() {
            self.close_state = CloseState::Closing { code, reason: reason.to_owned() };
        }
    }

    /// The next message to send before all others: a pong or an error.
    pub(super) fn next_urgent(&mut self) -> Option<ServerMessage> {
        self.pending_pong.take().map(|n| ServerMessage::Pong { n }).or_else(|| self.errors.pop_front())
    }

    pub(super) fn next_close(&mut self) -> Option<(u16, String)> {
        match std::mem::replace(&mut self.close_state, CloseState::Closed) {
            CloseState::Closing { code, reason } => Some((code, reason)),
            state @ (CloseState::Open | CloseState::Closed) => {
                self.close_state = state;
                None
            }
        }
    }

    pub(super) fn next_ping(&mut self, heartbeat: Duration, now: Duration) -> Option<ServerMessage> {
        if now < self.ping_at(heartbeat) {
            return None;
        }
        self.last_ping = Some(now);
        self.pings += 1;
        Some(ServerMessage::Ping { n: self.pings })
    }

    /// When to send a ping, unless something is received.
    pub(super) fn ping_at(&self, heartbeat: Duration) -> Duration {
        self.last_ping.map_or(self.last_received, |ping| ping.max(self.last_received)) + heartbeat
    }

    /// When to close the connection, unless something is received.
    pub(super) fn expires_at(&self, heartbeat: Duration, hello_within: Duration) -> Duration {
        match self.viewer {
            Some(_) => self.last_received + silence_limit(heartbeat),
            None => self.opened + hello_within,
        }
    }
}

pub(super) fn error(code: Code, message: String, fatal: bool) -> ServerMessage {
    ServerMessage::Error { code, message, fatal }
}
