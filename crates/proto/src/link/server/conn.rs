//! One transport connection: is the other end there, what must it hear first, and who is it.

use crate::problem::Code;
use std::collections::VecDeque;
use std::time::Duration;

use super::stream::Stream;
use super::typing::Serial;
use crate::Offset;
use crate::config::{MISTAKES, NOTICES, death};
use crate::ids::ClientId;
use crate::message::{ServerMessage, Theme};
use crate::size::Size;

/// A connection, from its opening to its close.
#[derive(Debug)]
pub(super) struct Conn {
    opened: Duration,
    heard: Duration,
    pinged: Option<Duration>,
    pings: u64,
    /// Only the newest ping is answered: its pong says all that the earlier ones would.
    pub(super) pong: Option<u64>,
    errors: VecDeque<ServerMessage>,
    mistakes: u32,
    end: End,
    /// The viewer behind it, from a good hello to the close.
    pub(super) viewer: Option<Viewer>,
}

#[derive(Debug)]
enum End {
    Open,
    Closing { code: u16, reason: String },
    Closed,
}

/// A client that said hello.
#[derive(Debug)]
pub(super) struct Viewer {
    pub(super) serial: Serial,
    pub(super) client: ClientId,
    /// May type, send commands and own the size.
    pub(super) write: bool,
    pub(super) window: Option<Size>,
    pub(super) theme: Option<Theme>,
    pub(super) scrollback: u32,
    /// The order in which viewers came.
    pub(super) rank: u64,
    /// `attached` has been sent.
    pub(super) announced: bool,
    /// What `attached` says about its input.
    pub(super) input: Option<Offset>,
    pub(super) stream: Stream,
    pub(super) owed: Owed,
    /// Commands without an answer.
    pub(super) commands: usize,
    /// It was told about the hole in its input.
    pub(super) hole_told: bool,
}

/// What a viewer is to be told beside its output.
#[derive(Debug, Default)]
pub(super) struct Owed {
    pub(super) title: bool,
    pub(super) cwd: bool,
    pub(super) bell: bool,
    /// Who is here, at this time.
    pub(super) presence: Option<Duration>,
    /// Written input is to be acknowledged, at this time or with output.
    pub(super) ack: Option<Duration>,
    /// Output is on its way: an ack may travel with it.
    pub(super) sending: bool,
    pub(super) notices: VecDeque<ServerMessage>,
    pub(super) dropped: u64,
}

impl Owed {
    pub(super) fn notice(&mut self, notice: ServerMessage) {
        if self.notices.len() >= NOTICES {
            self.notices.pop_front();
            self.dropped += 1;
        }
        self.notices.push_back(notice);
    }

    pub(super) fn next_notice(&mut self) -> Option<ServerMessage> {
        match std::mem::take(&mut self.dropped) {
            0 => self.notices.pop_front(),
            n => Some(error(Code::TooMany, format!("{n} notices were dropped"), false)),
        }
    }
}

impl Conn {
    pub(super) fn new(now: Duration) -> Conn {
        Conn {
            opened: now,
            heard: now,
            pinged: None,
            pings: 0,
            pong: None,
            errors: VecDeque::new(),
            mistakes: 0,
            end: End::Open,
            viewer: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.end, End::Open)
    }

    pub(super) fn heard(&mut self, now: Duration) {
        self.heard = self.heard.max(now);
    }

    /// Tells the other end about a problem; the same words are not queued twice.
    pub(super) fn complain(&mut self, code: Code, message: String, fatal: bool) {
        let error = error(code, message, fatal);
        if self.errors.back() != Some(&error) && self.errors.len() <= MISTAKES as usize {
            self.errors.push_back(error);
        }
    }

    /// Counts a mistake. False when it was one too many.
    pub(super) fn forgive(&mut self, code: Code, message: String) -> bool {
        self.mistakes += 1;
        let forgiven = self.mistakes <= MISTAKES;
        self.complain(code, message, !forgiven);
        forgiven
    }

    /// The first close counts.
    pub(super) fn close(&mut self, code: u16, reason: &str) {
        if self.is_open() {
            self.end = End::Closing { code, reason: reason.to_owned() };
        }
    }

    /// What goes ahead of everything.
    pub(super) fn next_urgent(&mut self) -> Option<ServerMessage> {
        self.pong.take().map(|n| ServerMessage::Pong { n }).or_else(|| self.errors.pop_front())
    }

    pub(super) fn next_close(&mut self) -> Option<(u16, String)> {
        match std::mem::replace(&mut self.end, End::Closed) {
            End::Closing { code, reason } => Some((code, reason)),
            end @ (End::Open | End::Closed) => {
                self.end = end;
                None
            }
        }
    }

    pub(super) fn next_ping(&mut self, heartbeat: Duration, now: Duration) -> Option<ServerMessage> {
        if now < self.ping_at(heartbeat) {
            return None;
        }
        self.pinged = Some(now);
        self.pings += 1;
        Some(ServerMessage::Ping { n: self.pings })
    }

    /// When silence calls for a ping.
    pub(super) fn ping_at(&self, heartbeat: Duration) -> Duration {
        self.pinged.map_or(self.heard, |pinged| pinged.max(self.heard)) + heartbeat
    }

    /// When this connection is over unless something is heard.
    pub(super) fn dead_at(&self, heartbeat: Duration, hello_within: Duration) -> Duration {
        match self.viewer {
            Some(_) => self.heard + death(heartbeat),
            None => self.opened + hello_within,
        }
    }
}

pub(super) fn error(code: Code, message: String, fatal: bool) -> ServerMessage {
    ServerMessage::Error { code, message, fatal }
}
