//! The loop of an attach: one terminal, one link, one connection at a time, and whatever happens to them.
//!
//! The machines decide (`Client` what is said, `Reconnector` who dials when); this file and [`waiting`] read and write
//! for them, [`view`] paints, [`typing`] takes keys. Neither the session nor the terminal is waited for, but for the
//! moment in which a screen of another size is asked for, so keys and signals always get through.
//!
//! [`waiting`]: crate::waiting
//! [`view`]: crate::view
//! [`typing`]: crate::typing

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use bowline_proto::close::Closed;
use bowline_proto::ids::ClientId;
use bowline_proto::link::{
    Action, Client, ClientConfig, ClientEvent, ClientState, ClientTransmit, Reconnector, Status,
};
use bowline_proto::message::ClientMessage;
use bowline_proto::session::ExitStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::attach::{Options, Outcome};
use crate::clock::Clock;
use crate::display::{Display, Leave};
use crate::keys::Keys;
use crate::lines::Lines;
use crate::signals::Signals;
use crate::transport::{Dial, Transport};
use crate::view::Mirror;

/// How long leaving waits for typed bytes to be on their way.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Everything about one attach.
pub(crate) struct Viewer<'a> {
    pub(crate) options: &'a Options,
    pub(crate) link: Client,
    pub(crate) reconnector: Reconnector,
    pub(crate) display: Display,
    pub(crate) keys: Keys,
    pub(crate) lines: Lines,
    pub(crate) clock: Clock,
    /// How it ended, once it has.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) dial: Box<dyn Dial>,
    pub(crate) connection: Option<Connection>,
    pub(crate) signals: Signals,
    /// A snapshot has been painted.
    pub(crate) painted: bool,
    /// Set while the session has another size than the window: when its screen is to be painted next, if it changed.
    pub(crate) mirror: Option<Mirror>,
    /// The session has ended, and the dial under way is only to hear how.
    pub(crate) asking: bool,
}

/// A connection, or the attempt to make one.
pub(crate) struct Connection {
    pub(crate) generation: u64,
    pub(crate) transport: Box<dyn Transport>,
    /// The link knows of it.
    opened: bool,
    /// What the server said it would close with.
    closing: Option<Closed>,
    /// It ended so. What came before is still to be shown, above all why it ended, as the terminal takes it.
    pub(crate) ended: Option<Closed>,
}

impl<'a> Viewer<'a> {
    pub(crate) fn new(
        dial: Box<dyn Dial>,
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
            keys: Keys::new(options.prefix),
            lines: Lines::new(options.prefix),
            clock: Clock::start(),
            outcome: None,
            dial,
            connection: None,
            signals,
            painted: false,
            asking: false,
            mirror: None,
        }
    }

    /// Until it ends.
    pub(crate) fn run(&mut self) -> io::Result<Outcome> {
        self.reconnector.start(self.clock.now());
        loop {
            self.work()?;
            if let Some(mut outcome) = self.outcome.take() {
                self.say_last_words(&mut outcome);
                return Ok(outcome);
            }
            self.wait()?;
        }
    }

    pub(crate) fn leave(&mut self, leave: Leave) {
        self.display.leave(leave);
    }

    /// Does everything that can be done without waiting.
    fn work(&mut self) -> io::Result<()> {
        loop {
            let acted = self.act() | self.apply_events()?;
            self.choose_view();
            self.show_line();
            // A terminal that takes the rest only now has room for what the link still holds.
            let relieved = self.display.is_waiting() && self.flush()?;
            self.transmit();
            if !(acted || relieved) || self.outcome.is_some() {
                return Ok(());
            }
        }
    }

    /// What the reconnecting machine wants done. True if there was something.
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
                let reason = self.lines.refusal().to_owned();
                self.outcome.get_or_insert(Outcome::Refused { why, reason });
            }
            Status::NeedsLogin => {
                let reason = self.lines.refusal().to_owned();
                self.outcome.get_or_insert(Outcome::NeedsLogin { reason });
            }
            Status::Ended => drop(self.outcome.get_or_insert(Outcome::Dropped)),
            Status::Connecting | Status::Open | Status::Reconnecting { .. } | Status::Offline => {}
        }
        self.lines.status(status, self.clock.now());
    }

    /// What the link has to show or tell, one thing after the other as the terminal takes them: what waits here could
    /// not be skipped any more, and the link counts as rendered only what is told before a snapshot begins. True if
    /// there was something.
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

    /// Lets go of a connection that ended, now that all it brought is shown. True if there was one.
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

    /// Writes to the terminal, and tells the link how far it came. True when nothing waits any more.
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
                self.asking = false;
                self.act();
            }
            ClientEvent::Attached(attached) => {
                self.lines.size(attached.size, attached.you);
                self.choose_view();
                // What covered the screen must be gone before the first byte of output.
                self.show_line();
            }
            ClientEvent::SnapshotBegin { reason, scope, missed, size, .. } => {
                self.lines.size(size, self.link.you());
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
                self.lines.output(now);
                self.display.output(&bytes);
                self.display.mark(offset + bytes.len() as u64);
            }
            ClientEvent::Resize(size) => {
                self.lines.size(size, self.link.you());
                self.choose_view();
                // The terminal moved its lines in its own way.
                self.link.repaint();
            }
            ClientEvent::Exit { status, .. } => self.exited(status),
            ClientEvent::Closing { code, reason } => {
                self.lines.said(&reason);
                if let Some(connection) = &mut self.connection {
                    connection.closing = Some(Closed::Code { code, reason, done: false });
                }
            }
            ClientEvent::Message(_) => self.lines.you(self.link.you()),
            ClientEvent::Unsent(unsent) => self.lines.unsent(unsent),
            ClientEvent::CommandUnsent { .. } | ClientEvent::StateChanged(_) => {}
        }
    }

    fn exited(&mut self, status: ExitStatus) {
        let seen = status.code.is_some() || status.signal.is_some();
        self.outcome = Some(if seen { Outcome::Exited(status) } else { Outcome::Lost });
        if let Some(mirror) = &mut self.mirror {
            mirror.dirty = true;
        }
    }

    /// Gives the connection what the link wants sent.
    fn transmit(&mut self) {
        let now = self.clock.now();
        let live = |connection: &&mut Connection| connection.opened && connection.ended.is_none();
        let Some(connection) = self.connection.as_mut().filter(live) else { return };
        let mut closed = None;
        while connection.transport.has_room() && closed.is_none() {
            match self.link.poll_transmit(now) {
                // The link saw something that makes no sense, or nothing for too long: the next one resumes.
                Some(ClientTransmit::Close { .. }) => closed = Some(Closed::Failed),
                Some(transmit) => connection.transport.send(&transmit),
                None => break,
            }
        }
        let flushed = connection.transport.flush();
        let generation = connection.generation;
        if let Some(closed) = closed.or(flushed.err()) {
            self.closed(generation, &closed);
        }
    }

    /// A dial failed, or its connection ended.
    pub(crate) fn closed(&mut self, generation: u64, closed: &Closed) {
        let now = self.clock.now();
        let said = self.connection.take_if(|connection| connection.generation == generation);
        self.link.handle_disconnected(now);
        if let Some(words) = said.as_ref().and_then(|connection| connection.transport.refusal()) {
            self.lines.said(words);
        }
        let closed = said.and_then(|connection| connection.closing).unwrap_or_else(|| closed.clone());
        if let Closed::Code { reason, .. } = &closed {
            self.lines.said(reason);
        }
        self.reconnector.handle_closed(generation, &closed, self.clock.jitter(), now);
        // The end of a session is not a lost connection: how it ended is asked for at once, and nothing is said before.
        let retries = matches!(self.reconnector.status(), Status::Reconnecting { attempt: 1, .. });
        self.asking = retries && !self.asking && self.dial.has_ended();
        if self.asking {
            self.reconnector.redial(self.clock.now());
        }
    }

    /// What was typed before leaving goes on its way, as far as the session takes it soon.
    fn say_last_words(&mut self, outcome: &mut Outcome) {
        let until = self.clock.now() + LAST_WORDS;
        let detached = matches!(outcome, Outcome::Detached { .. });
        self.transmit();
        while let Some(connection) = self.live().filter(|connection| connection.opened) {
            let (unwritten, unanswered) =
                (connection.transport.wants_write(), detached && self.link.input_waiting() > 0);
            if !(unwritten || unanswered) || self.clock.now() >= until {
                break;
            }
            let on = |wanted: bool, flags: PollFlags| if wanted { flags } else { PollFlags::empty() };
            wait_for(connection.transport.fd(), on(unwritten, PollFlags::OUT) | on(unanswered, PollFlags::IN));
            if unanswered {
                self.receive();
                // Only acknowledgements matter now: each lets more of what was typed go.
                while self.link.poll_event().is_some() {}
            }
            self.transmit();
        }
        if let Outcome::Detached { unsent } = outcome {
            *unsent = self.link.input_waiting();
        }
        // A user who detaches does not come back in a moment: the size is free for the next terminal.
        if detached
            && let Some(connection) = self.connection.as_mut().filter(|connection| connection.ended.is_none())
            && connection.opened
        {
            connection.transport.send(&ClientTransmit::Text(ClientMessage::Leave));
            let _ = connection.transport.flush();
            // Closed with output unread, a socket would take back what was said last: it is read until the other end
            // has heard, and closed.
            while self.clock.now() < until && connection.transport.receive(&mut |_| {}).is_ok() {
                wait_for(connection.transport.fd(), PollFlags::IN);
            }
        }
    }
}

/// Waits a moment for a connection to be read or written.
fn wait_for(fd: BorrowedFd<'_>, flags: PollFlags) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let _ = poll(&mut [PollFd::new(&fd, flags)], Some(&timeout));
}
