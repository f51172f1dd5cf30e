//! Shows a conversation on the terminal of this process, and sends what the user types.
//!
//! Everything happens inline: finished lines scroll up into the terminal's own history, and a few live rows stay at the
//! bottom. One loop polls the keys, the followed session, the deliveries and the signals.

use std::io;
use std::time::{Duration, SystemTime};

use bowline_proto::api::EventPage;
use bowline_proto::ids::SessionId;
use bowline_proto::journal::Record;
use bowline_proto::link::Status;
use bowline_proto::message::Cursor;
use bowline_proto::post::State;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use signal_hook::consts::SIGHUP;

use super::key_reader::KeyReader;
use super::live_area::LiveArea;
use super::text::Style;
use super::view::{Action, View, ViewOptions};
use crate::attach::{AttachError, Outcome};
use crate::clock::Clock;
use crate::follow::{FollowEvent, Follower};
use crate::keys::DetachKey;
use crate::poll::MAX_READ;
use crate::post::{Change, Poster};
use crate::signals::Signals;
use crate::tty::Tty;

/// The shortest time between two paintings that no key caused.
const PAINT_EVERY: Duration = Duration::from_millis(33);
/// How many events are applied before the terminal is painted and keys are read.
const MAX_EVENTS: usize = 256;
/// How long leaving waits for prompts that are on their way.
const DELIVER_WITHIN: Duration = Duration::from_secs(2);

/// How a conversation is shown.
#[derive(Clone, Copy, Debug)]
pub struct ConversationOptions {
    /// Only watch: nothing is sent.
    pub observe: bool,
    /// This key and then `d` leave, too.
    pub detach_key: Option<DetachKey>,
    /// Whether to use colours.
    pub color: bool,
}

/// Where a conversation comes from.
pub trait ConversationSource {
    /// The latest page of the history. It ends where the journal does.
    fn latest(&mut self) -> Result<EventPage, SourceError>;
    /// Follows the session from this cursor on.
    fn follow(&mut self, cursor: Cursor) -> Result<Follower, SourceError>;
}

/// The history of a conversation cannot be read.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// How the view of a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationEnd {
    pub outcome: Outcome,
    /// Commands that the session has not accepted, as far as is known.
    pub undelivered: usize,
}

/// Shows a conversation until the user leaves or the session ends, then restores the terminal.
pub fn attach_conversation(
    session: &SessionId,
    source: &mut dyn ConversationSource,
    poster: Poster,
    options: ConversationOptions,
) -> Result<ConversationEnd, ConversationError> {
    // Before the terminal is taken over, so that an error is printed as usual.
    let page = source.latest().map_err(ConversationError::Source)?;
    let signals = Signals::listen().map_err(AttachError::from)?;
    let tty = Tty::open().map_err(AttachError::from)?;
    let mut conversation = Conversation::new(session, source, poster, options, signals, tty);
    let outcome = conversation.show_page(page).and_then(|()| conversation.run());
    conversation.leave();
    Ok(ConversationEnd { outcome: outcome?, undelivered: conversation.view.undelivered() })
}

#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("cannot read the conversation: {0}")]
    Source(#[source] SourceError),
}

impl From<io::Error> for ConversationError {
    fn from(error: io::Error) -> ConversationError {
        AttachError::from(error).into()
    }
}

/// A conversation on the terminal.
struct Conversation<'a> {
    session: &'a SessionId,
    source: &'a mut dyn ConversationSource,
    poster: Poster,
    options: ConversationOptions,
    view: View,
    follower: Option<Follower>,
    keys: KeyReader,
    area: LiveArea,
    tty: Tty,
    signals: Signals,
    clock: Clock,
    outcome: Option<Outcome>,
    /// The earliest time of the next painting; `None` if nothing changed.
    paint_at: Option<Duration>,
    painted_at: Duration,
}

impl<'a> Conversation<'a> {
    fn new(
        session: &'a SessionId,
        source: &'a mut dyn ConversationSource,
        poster: Poster,
        options: ConversationOptions,
        signals: Signals,
        tty: Tty,
    ) -> Conversation<'a> {
        let style = style(&tty, options);
        let view = View::new(ViewOptions { observe: options.observe, detach_key: options.detach_key, style });
        Conversation {
            session,
            source,
            poster,
            options,
            view,
            follower: None,
            keys: KeyReader::default(),
            area: LiveArea::default(),
            tty,
            signals,
            clock: Clock::start(),
            outcome: None,
            paint_at: None,
            painted_at: Duration::ZERO,
        }
    }

    /// Shows the latest page of the history, and follows what comes after it.
    fn show_page(&mut self, page: EventPage) -> Result<(), ConversationError> {
        let cursor = Cursor { epoch: page.epoch, offset: page.next };
        let records: Vec<Record<Value>> = page
            .events
            .into_iter()
            .map(|record| Record { seq: record.seq, from: record.from, at: record.at, event: record.event })
            .collect();
        for record in &records {
            self.report_recorded(record);
        }
        self.view.handle_page(&records, page.state.unwrap_or_default(), page.more);
        self.follower = Some(self.source.follow(cursor).map_err(ConversationError::Source)?);
        Ok(())
    }

    fn run(&mut self) -> Result<Outcome, ConversationError> {
        // Bracketed paste: line breaks of a paste do not send it.
        self.tty.write_all(b"\x1b[?2004h")?;
        self.paint()?;
        loop {
            self.view.handle_time(self.clock.now());
            let has_more = self.take_events()?;
            self.take_deliveries();
            self.act()?;
            if let Some(outcome) = self.outcome.take() {
                return Ok(outcome);
            }
            if self.view.has_left() {
                return Ok(Outcome::Detached { unsent: 0 });
            }
            if self.paint_at.is_some_and(|at| at <= self.clock.now()) {
                self.paint()?;
            }
            self.wait(has_more)?;
        }
    }

    /// Applies what the session sent, at most [`MAX_EVENTS`] events. Returns whether there may be more.
    fn take_events(&mut self) -> Result<bool, ConversationError> {
        for _ in 0..MAX_EVENTS {
            let Some(event) = self.follower.as_mut().and_then(Follower::poll_event) else { return Ok(false) };
            self.apply(event)?;
            self.paint_soon();
        }
        Ok(true)
    }

    fn apply(&mut self, event: FollowEvent) -> Result<(), ConversationError> {
        match event {
            FollowEvent::Event(record) => {
                self.report_recorded(&record);
                self.view.handle_record(&record);
            }
            FollowEvent::Attached(attached) => self.view.handle_permission(attached.you.write),
            FollowEvent::Message(_) => {}
            // What was shown since then is void; it stays in the terminal's history, with a line that says so.
            FollowEvent::Cut { .. } => {
                let page = self.source.latest().map_err(ConversationError::Source)?;
                self.view.handle_cut();
                self.show_page(page)?;
            }
            FollowEvent::Status(status) => self.view.handle_connection(match status {
                Status::Reconnecting { .. } => Some("connection lost, reconnecting"),
                Status::Offline => Some("connection lost: Ctrl-L tries again"),
                Status::Open | Status::Connecting | Status::Gone(_) | Status::NeedsLogin | Status::Ended => None,
            }),
            FollowEvent::Ended(outcome) => self.outcome = Some(outcome),
        }
        Ok(())
    }

    /// The event of a command proves that it was delivered, whatever became of its response.
    fn report_recorded(&self, record: &Record<Value>) {
        if let Some(command) = record.event["command"].as_str() {
            let run = record.event["run"].as_str();
            self.poster.handle_recorded(self.session.as_str(), command, record.seq, run);
        }
    }

    fn take_deliveries(&mut self) {
        while let Some(change) = self.poster.poll_change() {
            if let Change::Shown(entry) = change {
                // The server can be reached again.
                if let (State::Delivered(_), Some(follower)) = (&entry.state, &mut self.follower)
                    && self.view.is_disconnected()
                {
                    follower.retry();
                }
                self.view.handle_state(&entry.id, entry.state);
            }
            self.paint_soon();
        }
    }

    /// Does what the user wants done.
    fn act(&mut self) -> Result<(), ConversationError> {
        while let Some(action) = self.view.poll_action() {
            match action {
                Action::Send(command) => match self.poster.send(self.session.as_str(), json!(command)) {
                    Ok(id) => self.view.handle_posted(id, command),
                    Err(error) => self.view.handle_refused(command, &error.to_string()),
                },
                Action::SendAgain(id) => {
                    // The token may be accepted again.
                    self.poster.handle_login();
                    self.poster.send_again(&id);
                }
                Action::Discard(id) => _ = self.poster.discard(&id),
                Action::Repaint => {
                    self.area.forget();
                    self.tty.write_all(b"\x1b[H\x1b[J")?;
                    self.paint()?;
                    self.poster.handle_login();
                    self.poster.handle_wake();
                    if let Some(follower) = &mut self.follower {
                        follower.retry();
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for the next key, event or timer, and takes what has arrived.
    fn wait(&mut self, has_more: bool) -> io::Result<()> {
        let now = self.clock.now();
        let timers = [self.paint_at, self.keys.poll_timeout(), self.view.poll_timeout(now)];
        let timers = timers.into_iter().flatten().map(|at| at.saturating_sub(now) + Duration::from_millis(1));
        let follower = self.follower.as_ref().and_then(Follower::poll_timeout);
        let timeout = if has_more { Some(Duration::ZERO) } else { timers.chain(follower).min() };
        let timeout =
            timeout.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) });
        let mut fds: Vec<PollFd<'_>> = [self.signals.fd(), self.tty.input(), self.poster.fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .into();
        if let Some(follower) = &self.follower
            && let Some(fd) = follower.fd()
        {
            fds.push(PollFd::from_borrowed_fd(fd, follower.poll_flags()));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has_keys = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        self.handle_signals()?;
        if has_keys {
            self.read_keys()?;
        }
        if !has_more && let Some(follower) = &mut self.follower {
            follower.handle_ready();
        }
        self.handle_time()
    }

    fn handle_time(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        if let Some(key) = self.keys.handle_timeout(now) {
            self.view.handle_key(&key, now);
            self.paint_now();
        }
        if self.view.poll_timeout(self.painted_at).is_some_and(|at| at <= now) {
            self.paint_now();
        }
        Ok(())
    }

    fn handle_signals(&mut self) -> io::Result<()> {
        self.signals.drain();
        if let Some(signal) = self.signals.ending() {
            self.outcome = Some(Outcome::Signalled(signal));
        }
        if self.signals.take_continued() {
            // A shell may have changed the terminal's settings, and printed something, while this process was stopped.
            let _ = self.tty.make_raw();
            self.area.forget();
            self.tty.write_all(b"\x1b[?2004h\r\n")?;
            self.paint_now();
        }
        if self.signals.take_resized() {
            self.view.handle_style(style(&self.tty, self.options));
            self.paint_now();
        }
        Ok(())
    }

    fn read_keys(&mut self) -> io::Result<()> {
        let mut bytes = [0; MAX_READ];
        let read = match rustix::io::read(self.tty.input(), &mut bytes) {
            Ok(0) | Err(rustix::io::Errno::IO) => {
                self.outcome = Some(Outcome::Signalled(SIGHUP));
                return Ok(());
            }
            Ok(read) => read,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let now = self.clock.now();
        for key in self.keys.handle_input(&bytes[..read], now) {
            self.view.handle_key(&key, now);
        }
        self.paint_now();
        Ok(())
    }

    /// Something changed that no key caused: painted soon, and not more often than a person can see.
    fn paint_soon(&mut self) {
        self.paint_at.get_or_insert(self.painted_at + PAINT_EVERY);
    }

    fn paint_now(&mut self) {
        self.paint_at = Some(Duration::ZERO);
    }

    fn paint(&mut self) -> io::Result<()> {
        self.paint_at = None;
        self.painted_at = self.clock.now();
        let size = self.tty.size();
        let lines: Vec<String> = std::iter::from_fn(|| self.view.poll_line()).collect();
        let height = usize::from(size.rows()).saturating_sub(1);
        let live = self.view.live_rows(height, self.painted_at, SystemTime::now());
        self.tty.write_all(&self.area.paint(&lines, live.rows, live.cursor, usize::from(size.cols())))
    }

    /// Waits a moment for prompts that are on their way, prints what is left, and removes the live rows.
    fn leave(&mut self) {
        let until = self.clock.now() + DELIVER_WITHIN;
        while self.view.is_delivering() && self.clock.now() < until && self.signals.ending().is_none() {
            let poster = self.poster.fd();
            let left = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let _ = poll(&mut [PollFd::from_borrowed_fd(poster, PollFlags::IN)], Some(&left));
            self.take_deliveries();
        }
        self.view.finish();
        let columns = usize::from(self.tty.size().cols());
        let mut out = self.area.clear(columns);
        for line in std::iter::from_fn(|| self.view.poll_line()) {
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\x1b[?2004l");
        let _ = self.tty.write_all(&out);
    }
}

/// Lines are narrower than the window, so that the terminal wraps none.
fn style(tty: &Tty, options: ConversationOptions) -> Style {
    Style { width: Some(tty.size().cols().saturating_sub(1)), color: options.color }
}
