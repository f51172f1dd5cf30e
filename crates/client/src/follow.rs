//! Follows the events of an agent session, over one connection at a time, and resumes after each one that is lost.
//!
//! The state machines decide: `Client` what to send and which event comes next, `Reconnector` when to dial. This file
//! does their IO. It never blocks, except in [`Follower::wait_for_event`] and [`Follower::wait`], and reads only as much
//! as its caller takes.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use bowline_proto::backoff::Backoff;
use bowline_proto::close::{ConnectionEnd, PermanentFailure};
use bowline_proto::follow::{Client, ClientEvent, ClientTransmit, FollowAttached, FollowMessage, FollowerConfig};
use bowline_proto::ids::{ClientId, Epoch};
use bowline_proto::journal::Record;
use bowline_proto::link::{Action, Reconnector, Status};
use bowline_proto::message::{Cursor, Verdict};
use bowline_proto::session::ExitStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use crate::attach::Outcome;
use crate::clock::Clock;
use crate::replay::Replay;
use crate::transport::{Dialer, Transport};

/// Something for the caller to apply or show, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum FollowEvent {
    /// A connection was made. The first one says from where on events follow.
    Attached(Box<FollowAttached>),
    /// The next event of the session.
    Event(Record<Value>),
    /// The end of the journal was lost: the events from this number on that were received are void, and others follow.
    Cut { from: u64 },
    /// An error, or the answer to a command.
    Message(FollowMessage),
    /// The connection was lost, or is back after that: only `Reconnecting`, `Offline` and `Open`.
    Status(Status),
    /// There are no more events.
    Ended(Outcome),
}

/// One follower of a session, across all its connections.
pub struct Follower {
    client: Client,
    reconnector: Reconnector,
    dial: Box<dyn Dialer>,
    connection: Option<Connection>,
    clock: Clock,
    replay: Replay,
    /// What to return before the client's next event.
    pending: VecDeque<FollowEvent>,
    /// The server's last explanation; may be empty.
    reason: String,
    /// The session has ended, and the current dial only fetches the rest.
    awaiting_exit: bool,
    /// The caller was told that the connection is lost.
    shows_loss: bool,
    over: bool,
}

/// A connection, or an attempt to make one.
struct Connection {
    generation: u64,
    transport: Box<dyn Transport>,
    /// The client has been notified that it is open.
    opened: bool,
    /// The close code that the server announced.
    closing: Option<ConnectionEnd>,
    /// Set when the connection has ended. Events received before that still have to be taken.
    ended: Option<ConnectionEnd>,
}

impl Follower {
    /// Follows a session from a cursor on, or from now on without one. Dials when it is first polled.
    pub fn new(dial: Box<dyn Dialer>, cursor: Option<Cursor>, backoff: Backoff) -> io::Result<Follower> {
        let config = FollowerConfig { cursor: cursor.clone(), ..FollowerConfig::new(new_client_id()?) };
        let clock = Clock::start();
        let mut reconnector = Reconnector::new(backoff);
        reconnector.start(clock.now());
        Ok(Follower {
            client: Client::new(config),
            reconnector,
            dial,
            connection: None,
            clock,
            replay: Replay::new(cursor),
            pending: VecDeque::new(),
            reason: String::new(),
            awaiting_exit: false,
            shows_loss: false,
            over: false,
        })
    }

    /// The next event. `None` if there is none yet; then wait until the descriptor is ready or the timeout has passed, and
    /// call [`Follower::handle_ready`]. Always `None` after [`FollowEvent::Ended`].
    pub fn poll_event(&mut self) -> Option<FollowEvent> {
        loop {
            self.act();
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            match self.client.poll_event() {
                Some(event) => self.apply(event),
                None if self.close_ended() => {}
                None => {
                    self.transmit();
                    if self.pending.is_empty() && self.connection_is_settled() {
                        return None;
                    }
                }
            }
        }
    }

    /// Blocks until the next event. `None` after [`FollowEvent::Ended`].
    pub fn wait_for_event(&mut self) -> io::Result<Option<FollowEvent>> {
        loop {
            match self.poll_event() {
                None if !self.over => self.wait(&[], None)?,
                event => return Ok(event),
            }
        }
    }

    /// Blocks until something happens here, one of `others` is readable, or `at_most` has passed. Call it only after
    /// [`Follower::poll_event`] has returned `None`.
    pub fn wait(&mut self, others: &[BorrowedFd<'_>], at_most: Option<Duration>) -> io::Result<()> {
        let timeout = [self.poll_timeout(), at_most].into_iter().flatten().min();
        let timeout =
            timeout.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) });
        let mut fds: Vec<PollFd<'_>> = others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        fds.extend(self.fd().map(|fd| PollFd::from_borrowed_fd(fd, self.poll_flags())));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        drop(fds);
        self.handle_ready();
        Ok(())
    }

    /// The descriptor to poll, while there is a connection.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.connection.as_ref()?.transport.fd())
    }

    /// What to poll the descriptor for.
    pub fn poll_flags(&self) -> PollFlags {
        let wants_write = self.connection.as_ref().is_some_and(|connection| connection.transport.wants_write());
        if wants_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    /// How long to wait at most before [`Follower::handle_ready`] is called.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let at = [self.client.poll_timeout(), self.reconnector.poll_timeout()].into_iter().flatten().min()?;
        Some(at.saturating_sub(self.clock.now()) + Duration::from_millis(1))
    }

    /// Reads what has arrived, and handles timers. May be called at any time, once [`Follower::poll_event`] has returned
    /// `None`.
    pub fn handle_ready(&mut self) {
        let now = self.clock.now();
        if let Some(connection) = self.connection.as_mut().filter(|connection| connection.ended.is_none()) {
            let client = &mut self.client;
            connection.ended = connection.transport.receive(&mut |frame| client.handle_frame(frame, now)).err();
        }
        if self.clock.take_slept() {
            self.client.handle_wake(now);
            self.reconnector.handle_wake(now);
        }
        self.open();
        self.client.handle_timeout(now);
        self.reconnector.handle_timeout(self.clock.jitter(), now);
    }

    /// Dials again at once, if it has given up or waits to do so.
    pub fn retry(&mut self) {
        self.reconnector.handle_wake(self.clock.now());
    }

    /// Carries out the reconnector's actions.
    fn act(&mut self) {
        while let Some(action) = self.reconnector.poll_action() {
            match action {
                Action::Dial { generation, fresh_ticket } => match self.dial.dial(fresh_ticket) {
                    Ok(transport) => {
                        self.connection =
                            Some(Connection { generation, transport, opened: false, closing: None, ended: None });
                        self.open();
                        self.transmit();
                    }
                    Err(closed) => self.closed(generation, &closed),
                },
                Action::Drop { generation } => {
                    if self.connection.take_if(|connection| connection.generation == generation).is_some() {
                        self.client.handle_closed(self.clock.now());
                    }
                }
                Action::Show(status) => self.show(status),
            }
        }
    }

    fn show(&mut self, status: Status) {
        match status {
            Status::Gone(why) => self.end(Outcome::Refused { why, reason: self.reason.clone() }),
            Status::NeedsLogin => self.end(Outcome::NeedsLogin { reason: self.reason.clone() }),
            Status::Ended => self.end(Outcome::Dropped),
            Status::Open if self.shows_loss => {
                self.shows_loss = false;
                self.pending.push_back(FollowEvent::Status(status));
            }
            Status::Reconnecting { .. } | Status::Offline if !self.awaiting_exit => {
                self.shows_loss = true;
                self.pending.push_back(FollowEvent::Status(status));
            }
            Status::Connecting | Status::Open | Status::Reconnecting { .. } | Status::Offline => {}
        }
    }

    fn end(&mut self, outcome: Outcome) {
        if !self.over {
            self.over = true;
            self.connection = None;
            self.pending.push_back(FollowEvent::Ended(outcome));
        }
    }

    fn open(&mut self) {
        let now = self.clock.now();
        if let Some(connection) = &mut self.connection
            && !connection.opened
            && connection.transport.is_open()
        {
            connection.opened = true;
            self.reconnector.handle_opened(connection.generation);
            self.client.handle_open(now);
        }
    }

    fn apply(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Attached(attached) => self.attached(attached),
            ClientEvent::Event(record) => self.replay.take(record, &mut self.pending),
            ClientEvent::Exit { status: ExitStatus { code: None, signal: None }, .. } => self.end(Outcome::Lost),
            ClientEvent::Exit { status, .. } => self.end(Outcome::Exited(status)),
            ClientEvent::Message(message) => self.pending.push_back(FollowEvent::Message(message)),
            ClientEvent::Closing { code, reason } => {
                self.reason.clone_from(&reason);
                if let Some(connection) = &mut self.connection {
                    connection.closing = Some(ConnectionEnd::Code { code, reason, done: false });
                }
            }
            ClientEvent::Lost { .. } => {
                if let Some(connection) = &mut self.connection {
                    connection.ended = Some(ConnectionEnd::Failed);
                }
            }
        }
    }

    fn attached(&mut self, attached: Box<FollowAttached>) {
        let now = self.clock.now();
        if let Some(connection) = &self.connection {
            self.reconnector.handle_attached(connection.generation, now);
        }
        self.awaiting_exit = false;
        self.act();
        if attached.verdict == Verdict::Exact || !self.replay.has_position() {
            self.replay.begin(&attached.epoch, attached.offset);
            return self.pending.push_back(FollowEvent::Attached(attached));
        }
        // The cursor is of no use any more: the whole journal is read again, and what was received before is left out.
        match self.replay.restart().then(new_client_id) {
            Some(Ok(client)) => self.follow_again(client, attached.epoch),
            Some(Err(_)) | None => {
                let reason = "the server cannot continue from any position".to_owned();
                self.end(Outcome::Refused { why: PermanentFailure::Protocol, reason });
            }
        }
    }

    /// Follows the session again from its first event.
    fn follow_again(&mut self, client: ClientId, epoch: Epoch) {
        let cursor = Some(Cursor { epoch, offset: 0 });
        self.client = Client::new(FollowerConfig { cursor, ..FollowerConfig::new(client) });
        // The loss of this connection is no news.
        self.awaiting_exit = true;
        self.reconnector.redial(self.clock.now());
    }

    /// Passes the client's messages to the connection.
    fn transmit(&mut self) {
        let now = self.clock.now();
        let is_live = |connection: &&mut Connection| connection.opened && connection.ended.is_none();
        let Some(connection) = self.connection.as_mut().filter(is_live) else { return };
        while connection.transport.has_room() {
            match self.client.poll_transmit(now) {
                Some(ClientTransmit::Text(message)) => connection.transport.send(&message),
                Some(ClientTransmit::Close { .. }) => {
                    connection.ended = Some(ConnectionEnd::Failed);
                    return;
                }
                None => break,
            }
        }
        connection.ended = connection.transport.flush().err();
    }

    /// Closes a connection that has ended, now that all of its events are taken. Returns whether there was one.
    fn close_ended(&mut self) -> bool {
        let ended =
            self.connection.as_mut().and_then(|connection| Some((connection.generation, connection.ended.take()?)));
        if let Some((generation, closed)) = &ended {
            self.closed(*generation, closed);
        }
        ended.is_some()
    }

    fn connection_is_settled(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.ended.is_none())
    }

    /// Handles a failed dial, or the end of its connection.
    fn closed(&mut self, generation: u64, closed: &ConnectionEnd) {
        let now = self.clock.now();
        let connection = self.connection.take_if(|connection| connection.generation == generation);
        self.client.handle_closed(now);
        if let Some(reason) = connection.as_ref().and_then(|connection| connection.transport.refusal()) {
            reason.clone_into(&mut self.reason);
        }
        let closed = connection.and_then(|connection| connection.closing).unwrap_or_else(|| closed.clone());
        if let ConnectionEnd::Code { reason, .. } = &closed {
            self.reason.clone_from(reason);
        }
        self.reconnector.handle_closed(generation, &closed, self.clock.jitter(), now);
        // The end of a session is not a lost connection: fetch the rest at once.
        let retries = matches!(self.reconnector.status(), Status::Reconnecting { attempt: 1, .. });
        self.awaiting_exit = retries && !self.awaiting_exit && self.dial.has_ended();
        if self.awaiting_exit {
            self.reconnector.redial(self.clock.now());
        }
    }
}

fn new_client_id() -> io::Result<ClientId> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(ClientId::from_random(random))
}

#[cfg(test)]
mod tests;
