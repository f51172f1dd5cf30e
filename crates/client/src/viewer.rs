//! The main loop of an attach: one terminal, one link, and one connection at a time.
//!
//! The state machines decide: `Client` what to send, `Reconnector` when to dial. This file and [`poll`] do their IO,
//! [`view`] paints, [`input`] handles keys. The loop never blocks on the session or the terminal, except briefly to
//! fetch a mirrored screen, so keys and signals are always handled.
//!
//! [`poll`]: mod@crate::poll
//! [`view`]: crate::view
//! [`input`]: crate::input

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use bowline_proto::close::ConnectionEnd;
use bowline_proto::ids::ClientId;
use bowline_proto::link::{
    Action, Client, ClientConfig, ClientEvent, ClientState, ClientTransmit, Reconnector, Status,
};
use bowline_proto::message::ClientMessage;
use bowline_proto::session::ExitStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::attach::{Options, Outcome};
use crate::clock::Clock;
use crate::display::{Display, LeavePosition};
use crate::keys::Keys;
use crate::signals::Signals;
use crate::status_line::StatusLine;
use crate::transport::{Dialer, Transport};
use crate::view::Mirror;

/// How long detaching waits for typed bytes to be sent and acknowledged.
const FLUSH_WITHIN: Duration = Duration::from_millis(500);

/// The state of one attach.
pub(crate) struct Viewer<'a> {
    pub(crate) options: &'a Options,
    pub(crate) link: Client,
    pub(crate) reconnector: Reconnector,
    pub(crate) display: Display,
    pub(crate) keys: Keys,
    pub(crate) status_line: StatusLine,
    pub(crate) clock: Clock,
    /// Set once the attach has ended.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) dial: Box<dyn Dialer>,
    pub(crate) connection: Option<Connection>,
    pub(crate) signals: Signals,
    /// A snapshot has been painted.
    pub(crate) painted: bool,
    /// Set while another viewer owns the size and it differs from the window's.
    pub(crate) mirror: Option<Mirror>,
    /// The session has ended, and the current dial only fetches its exit status.
    pub(crate) awaiting_exit: bool,
}

/// A connection, or an attempt to make one.
pub(crate) struct Connection {
    pub(crate) generation: u64,
    pub(crate) transport: Box<dyn Transport>,
    /// The link has been notified that it is open.
    opened: bool,
    /// The close code that the server announced.
    closing: Option<ConnectionEnd>,
    /// Set when the connection has ended. Events received before that still have to be shown.
    pub(crate) ended: Option<ConnectionEnd>,
}

impl<'a> Viewer<'a> {
    pub(crate) fn new(
        dial: Box<dyn Dialer>,
        options: &'a Options,
        client: ClientId,
        display: Display,
        signals: Signals,
    ) -> Viewer<'a> {
        let size = display.size();
        let config = ClientConfig {
            size: (!options.observe).then_some(size),
            scrollback: options.scrollback,
            observe: options.observe,
            ..ClientConfig::new(client)
        };
        let mut link = Client::new(config);
        if options.claim && !options.observe {
            link.claim_size(size);
        }
        Viewer {
            options,
            link,
            reconnector: Reconnector::new(options.backoff),
            display,
            keys: Keys::new(options.detach_key),
            status_line: StatusLine::new(options.detach_key),
            clock: Clock::start(),
            outcome: None,
            dial,
            connection: None,
            signals,
            painted: false,
            awaiting_exit: false,
            mirror: None,
        }
    }

    /// Runs until the attach ends.
    pub(crate) fn run(&mut self) -> io::Result<Outcome> {
        self.reconnector.start(self.clock.now());
        loop {
            self.work()?;
            if let Some(mut outcome) = self.outcome.take() {
                self.finish_sending(&mut outcome);
                return Ok(outcome);
            }
            self.wait()?;
        }
    }

    pub(crate) fn leave(&mut self, position: LeavePosition) {
        self.display.leave(position);
    }

    /// Does everything that can be done without blocking.
    fn work(&mut self) -> io::Result<()> {
        loop {
            let acted = self.act() | self.apply_events()?;
            self.choose_view();
            self.show_line();
            // If the terminal accepts the rest only now, it has room for the events that the link still holds.
            let relieved = self.display.is_waiting() && self.flush()?;
            self.transmit();
            if !(acted || relieved) || self.outcome.is_some() {
                return Ok(());
            }
        }
    }

    /// Carries out the reconnector's actions. True if there were any.
    fn act(&mut self) -> bool {
        let mut acted = false;
        while let Some(action) = self.reconnector.poll_action() {
            acted = true;
            match action {
                Action::Dial { generation, fresh_ticket } => match self.dial.dial(fresh_ticket) {
                    Ok(transport) => {
                        self.connection =
                            Some(Connection { generation, transport, opened: false, closing: None, ended: None });
                        self.open();
                    }
                    Err(closed) => self.closed(generation, &closed),
                },
                Action::Drop { generation } => {
                    if self.connection.take_if(|connection| connection.generation == generation).is_some() {
                        self.link.handle_disconnected(self.clock.now());
                    }
                }
                Action::Show(status) => self.show_status(status),
            }
        }
        acted
    }

    pub(crate) fn open(&mut self) {
        let now = self.clock.now();
        if let Some(connection) = &mut self.connection
            && !connection.opened
            && connection.transport.is_open()
        {
            connection.opened = true;
            self.reconnector.handle_opened(connection.generation);
            self.link.handle_connected(now);
        }
    }

    fn show_status(&mut self, status: Status) {
        match status {
            Status::Gone(why) => {
                let reason = self.status_line.reason().to_owned();
                self.outcome.get_or_insert(Outcome::Refused { why, reason });
            }
            Status::NeedsLogin => {
                let reason = self.status_line.reason().to_owned();
                self.outcome.get_or_insert(Outcome::NeedsLogin { reason });
            }
            Status::Ended => drop(self.outcome.get_or_insert(Outcome::Dropped)),
            Status::Connecting | Status::Open | Status::Reconnecting { .. } | Status::Offline => {}
        }
        self.status_line.set_status(status, self.clock.now());
    }

    /// Applies the link's events one by one, each only after the terminal has accepted the output of the one before:
    /// output queued in the display could no longer be skipped by a snapshot, and the link must learn what was
    /// rendered before a snapshot begins. True if there were any events.
    fn apply_events(&mut self) -> io::Result<bool> {
        let mut applied = false;
        while self.outcome.is_none() && self.flush()? {
            let Some(event) = self.link.poll_event() else {
                applied |= self.close_ended();
                break;
            };
            applied = true;
            self.apply(event);
        }
        Ok(applied)
    }

    /// Closes a connection that has ended, now that all of its events are applied. True if there was one.
    fn close_ended(&mut self) -> bool {
        let ended =
            self.connection.as_mut().and_then(|connection| Some((connection.generation, connection.ended.take()?)));
        if let Some((generation, closed)) = &ended {
            self.closed(*generation, closed);
        }
        ended.is_some()
    }

    /// The connection, unless it has ended.
    pub(crate) fn live(&self) -> Option<&Connection> {
        self.connection.as_ref().filter(|connection| connection.ended.is_none())
    }

    /// Writes to the terminal, and reports the rendered offset to the link. True when everything is written.
    fn flush(&mut self) -> io::Result<bool> {
        if let Some(offset) = self.display.flush()? {
            self.link.handle_rendered(offset);
        }
        Ok(!self.display.is_waiting())
    }

    pub(crate) fn apply(&mut self, event: ClientEvent) {
        let now = self.clock.now();
        match event {
            ClientEvent::StateChanged(ClientState::Attached) => {
                if let Some(connection) = &self.connection {
                    self.reconnector.handle_attached(connection.generation, now);
                }
                self.awaiting_exit = false;
                self.act();
            }
            ClientEvent::Attached(attached) => {
                self.status_line.set_session(attached.size, attached.you);
                self.choose_view();
                // A line that covers the screen must be removed before the first byte of output.
                self.show_line();
            }
            ClientEvent::SnapshotBegin { reason, scope, missed, size, .. } => {
                self.status_line.set_session(size, self.link.permissions());
                self.choose_view();
                self.begin_snapshot(reason, scope, missed);
            }
            ClientEvent::SnapshotPart(bytes) => self.display.output(&bytes),
            ClientEvent::SnapshotEnd { offset } => {
                if let Some(mirror) = &mut self.mirror {
                    mirror.dirty = true;
                }
                self.display.end_snapshot();
                self.display.mark(offset);
            }
            ClientEvent::Output { offset, bytes } => {
                match &mut self.mirror {
                    Some(mirror) => mirror.dirty = true,
                    None if self.display.uncover() => self.link.repaint(),
                    None => {}
                }
                self.status_line.handle_output(now);
                self.display.output(&bytes);
                self.display.mark(offset + bytes.len() as u64);
            }
            ClientEvent::Resize(size) => {
                self.status_line.set_session(size, self.link.permissions());
                self.choose_view();
                // The terminal reflowed its lines in its own way.
                self.link.repaint();
            }
            ClientEvent::Exit { status, .. } => self.exited(status),
            ClientEvent::Closing { code, reason } => {
                self.status_line.set_reason(&reason);
                if let Some(connection) = &mut self.connection {
                    connection.closing = Some(ConnectionEnd::Code { code, reason, done: false });
                }
            }
            ClientEvent::Message(_) => self.status_line.set_permissions(self.link.permissions()),
            ClientEvent::Unsent(unsent) => self.status_line.set_unsent(unsent),
            ClientEvent::CommandUnsent { .. } | ClientEvent::StateChanged(_) => {}
        }
    }

    fn exited(&mut self, status: ExitStatus) {
        let is_known = status.code.is_some() || status.signal.is_some();
        self.outcome = Some(if is_known { Outcome::Exited(status) } else { Outcome::Lost });
        if let Some(mirror) = &mut self.mirror {
            mirror.dirty = true;
        }
    }

    /// Passes the link's messages to the connection.
    fn transmit(&mut self) {
        let now = self.clock.now();
        let live = |connection: &&mut Connection| connection.opened && connection.ended.is_none();
        let Some(connection) = self.connection.as_mut().filter(live) else { return };
        let mut closed = None;
        while connection.transport.has_room() && closed.is_none() {
            match self.link.poll_transmit(now) {
                // The link received an invalid message, or nothing for too long: the next connection resumes.
                Some(ClientTransmit::Close { .. }) => closed = Some(ConnectionEnd::Failed),
                Some(ClientTransmit::Text(message)) => connection.transport.send(&message),
                Some(ClientTransmit::Input { offset, bytes }) => connection.transport.send_input(offset, &bytes),
                None => break,
            }
        }
        let flushed = connection.transport.flush();
        let generation = connection.generation;
        if let Some(closed) = closed.or(flushed.err()) {
            self.closed(generation, &closed);
        }
    }

    /// Handles a failed dial, or the end of its connection.
    pub(crate) fn closed(&mut self, generation: u64, closed: &ConnectionEnd) {
        let now = self.clock.now();
        let connection = self.connection.take_if(|connection| connection.generation == generation);
        self.link.handle_disconnected(now);
        if let Some(reason) = connection.as_ref().and_then(|connection| connection.transport.refusal()) {
            self.status_line.set_reason(reason);
        }
        let closed = connection.and_then(|connection| connection.closing).unwrap_or_else(|| closed.clone());
        if let ConnectionEnd::Code { reason, .. } = &closed {
            self.status_line.set_reason(reason);
        }
        self.reconnector.handle_closed(generation, &closed, self.clock.jitter(), now);
        // The end of a session is not a lost connection: fetch the exit status at once, without a status line.
        let retries = matches!(self.reconnector.status(), Status::Reconnecting { attempt: 1, .. });
        self.awaiting_exit = retries && !self.awaiting_exit && self.dial.has_ended();
        if self.awaiting_exit {
            self.reconnector.redial(self.clock.now());
        }
    }

    /// Sends typed bytes before leaving, as far as the session accepts them within [`FLUSH_WITHIN`].
    fn finish_sending(&mut self, outcome: &mut Outcome) {
        let until = self.clock.now() + FLUSH_WITHIN;
        let detached = matches!(outcome, Outcome::Detached { .. });
        self.transmit();
        while let Some(connection) = self.live().filter(|connection| connection.opened) {
            let (unwritten, unanswered) =
                (connection.transport.wants_write(), detached && self.link.unconfirmed_input() > 0);
            if !(unwritten || unanswered) || self.clock.now() >= until {
                break;
            }
            let on = |wanted: bool, flags: PollFlags| if wanted { flags } else { PollFlags::empty() };
            wait_for(connection.transport.fd(), on(unwritten, PollFlags::OUT) | on(unanswered, PollFlags::IN));
            if unanswered {
                self.receive();
                // Only acknowledgements matter now: each allows more input to be sent.
                while self.link.poll_event().is_some() {}
            }
            self.transmit();
        }
        if let Outcome::Detached { unsent } = outcome {
            *unsent = self.link.unconfirmed_input();
        }
        // A user who detaches does not reconnect in a moment, so the session need not reserve the size for it.
        if detached
            && let Some(connection) = self.connection.as_mut().filter(|connection| connection.ended.is_none())
            && connection.opened
        {
            connection.transport.send(&ClientMessage::Leave);
            let _ = connection.transport.flush();
            // Closing a socket with unread output would discard the last message. So read until the other end has
            // received it, and closed.
            while self.clock.now() < until && connection.transport.receive(&mut |_| {}).is_ok() {
                wait_for(connection.transport.fd(), PollFlags::IN);
            }
        }
    }
}

/// Waits at most 50 ms for a connection to become ready.
fn wait_for(fd: BorrowedFd<'_>, flags: PollFlags) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let _ = poll(&mut [PollFd::new(&fd, flags)], Some(&timeout));
}
