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

use super::following::{Followed, Following};
use super::key_reader::{Key, KeyReader};
use super::printer::Printer;
use super::text::Style;
use super::view::{Action, View, ViewOptions};
use crate::attach::{AttachError, Outcome};
use crate::clock::Clock;
use crate::escape::one_line;
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
    /// Returns what reads the latest page of the history. The page ends where the journal does.
    fn latest(&self) -> PageReader;
    /// Follows the session from this cursor on.
    fn follow(&mut self, cursor: Cursor) -> Result<Follower, SourceError>;
}

/// Reads a page of the history. It may block, and may be called on another thread.
pub type PageReader = Box<dyn FnOnce() -> Result<EventPage, SourceError> + Send>;

/// The history of a conversation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It may be readable later.
    #[error("{0}")]
    Temporary(#[source] Cause),
    /// No later try can succeed, for example because the session was forgotten or the token revoked.
    #[error("{0}")]
    Permanent(#[source] Cause),
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

impl From<io::Error> for SourceError {
    fn from(error: io::Error) -> SourceError {
        SourceError::Temporary(error.into())
    }
}

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
    let (following, page) = Following::start(source).map_err(ConversationError::Source)?;
    let signals = Signals::listen().map_err(AttachError::from)?;
    let tty = Tty::open().map_err(AttachError::from)?;
    let mut conversation = Conversation::new(session, following, poster, options, signals, tty);
    conversation.show_page(page);
    let outcome = conversation.run();
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
    following: Following<'a>,
    poster: Poster,
    options: ConversationOptions,
    view: View,
    keys: KeyReader,
    printer: Printer,
    tty: Tty,
    signals: Signals,
    clock: Clock,
    outcome: Option<Result<Outcome, ConversationError>>,
    /// The earliest time of the next painting; `None` if nothing changed.
    paint_at: Option<Duration>,
    painted_at: Duration,
}

impl<'a> Conversation<'a> {
    fn new(
        session: &'a SessionId,
        following: Following<'a>,
        poster: Poster,
        options: ConversationOptions,
        signals: Signals,
        tty: Tty,
    ) -> Conversation<'a> {
        let style = style(&tty, options);
        let view = View::new(ViewOptions { observe: options.observe, detach_key: options.detach_key, style });
        Conversation {
            session,
            following,
            poster,
            options,
            view,
            keys: KeyReader::default(),
            printer: Printer::default(),
            tty,
            signals,
            clock: Clock::start(),
            outcome: None,
            paint_at: None,
            painted_at: Duration::ZERO,
        }
    }

    /// Shows the latest page of the history.
    fn show_page(&mut self, page: EventPage) {
        let records: Vec<Record<Value>> = page
            .events
            .into_iter()
            .map(|record| Record { seq: record.seq, from: record.from, at: record.at, event: record.event })
            .collect();
        for record in &records {
            self.report_recorded(record);
        }
        self.view.handle_page(&records, page.state.unwrap_or_default(), page.more);
    }

    fn run(&mut self) -> Result<Outcome, ConversationError> {
        // Bracketed paste: line breaks of a paste do not send it.
        self.printer.put(b"\x1b[?2004h");
        self.paint();
        loop {
            self.view.handle_time(self.clock.now());
            let has_more = self.take_events();
            self.take_deliveries();
            self.act();
            if let Some(outcome) = self.outcome.take() {
                return outcome;
            }
            if self.view.has_left() {
                return Ok(Outcome::Detached { unsent: 0 });
            }
            if self.paint_at.is_some_and(|at| at <= self.clock.now()) && !self.printer.is_waiting() {
                self.paint();
            }
            self.printer.flush(|bytes| self.tty.write(bytes))?;
            self.wait(has_more)?;
        }
    }

    /// Applies what the session sent, at most [`MAX_EVENTS`] events. Returns whether there may be more.
    fn take_events(&mut self) -> bool {
        for _ in 0..MAX_EVENTS {
            if self.printer.is_full() {
                return true;
            }
            let Some(followed) = self.following.poll(self.clock.now()) else { return false };
            self.apply(followed);
            self.take_lines();
            self.paint_soon();
        }
        true
    }

    fn apply(&mut self, followed: Followed) {
        match followed {
            Followed::Event(event) => self.apply_event(event),
            Followed::Cut => self.view.handle_connection(Some("the history is being read again".to_owned())),
            // What was shown since the cut stays in the terminal's history, with a line that says so.
            Followed::Page(page) => {
                self.view.handle_connection(None);
                self.view.handle_cut();
                self.show_page(*page);
            }
            Followed::Unreadable(why) => {
                let why = format!("the history cannot be read, Ctrl-L tries again: {}", one_line(&why));
                self.view.handle_connection(Some(why));
            }
            Followed::Failed(error) => self.outcome = Some(Err(ConversationError::Source(error))),
        }
    }

    fn apply_event(&mut self, event: FollowEvent) {
        match event {
            FollowEvent::Event(record) => {
                self.report_recorded(&record);
                self.view.handle_record(&record);
            }
            FollowEvent::Attached(attached) => self.view.handle_permission(attached.you.write),
            FollowEvent::Message(_) | FollowEvent::Cut { .. } => {}
            FollowEvent::Status(status) => self.view.handle_connection(match status {
                Status::Reconnecting { .. } => Some("connection lost, reconnecting".to_owned()),
                Status::Offline => Some("connection lost: Ctrl-L tries again".to_owned()),
                Status::Open | Status::Connecting | Status::Gone(_) | Status::NeedsLogin | Status::Ended => None,
            }),
            FollowEvent::Ended(outcome) => self.outcome = Some(Ok(outcome)),
        }
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
                if matches!(entry.state, State::Delivered(_)) && self.view.is_disconnected() {
                    self.following.retry(self.clock.now());
                }
                self.view.handle_state(&entry.id, entry.state);
            }
            self.paint_soon();
        }
    }

    /// Does what the user wants done.
    fn act(&mut self) {
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
                    self.printer.start_over(b"\x1b[H\x1b[J");
                    self.paint_now();
                    self.poster.handle_login();
                    self.poster.handle_wake();
                    self.following.retry(self.clock.now());
                }
            }
        }
    }

    /// Waits for the next key, event or timer, and takes what has arrived.
    fn wait(&mut self, has_more: bool) -> io::Result<()> {
        let now = self.clock.now();
        let (is_waiting, is_full) = (self.printer.is_waiting(), self.printer.is_full());
        let painting = [self.paint_at, self.view.poll_timeout(now)].into_iter().flatten().filter(|_| !is_waiting);
        let timers = painting.chain(self.keys.poll_timeout());
        let timers = timers.map(|at| at.saturating_sub(now) + Duration::from_millis(1));
        // A session that is not read waits, too: nothing piles up here while the terminal accepts nothing.
        let following = self.following.poll_timeout(now).filter(|_| !is_full);
        let has_more = has_more && !is_full;
        let timeout = if has_more { Some(Duration::ZERO) } else { timers.chain(following).min() };
        let timeout =
            timeout.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) });
        let mut fds: Vec<PollFd<'_>> = [self.signals.fd(), self.tty.input(), self.poster.fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .into();
        let output = if is_waiting { PollFlags::OUT } else { PollFlags::empty() };
        fds.push(PollFd::from_borrowed_fd(self.tty.output(), output));
        if let Some((fd, flags)) = self.following.fd().filter(|_| !is_full) {
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        drop(fds);
        self.handle_signals();
        if ready.get(1).is_some_and(|flags| !flags.is_empty()) {
            self.read_keys()?;
        }
        if ready.get(3).is_some_and(|flags| flags.intersects(PollFlags::HUP | PollFlags::ERR)) {
            self.outcome.get_or_insert(Ok(Outcome::Signalled(SIGHUP)));
        }
        if !has_more && !is_full {
            self.following.handle_ready();
        }
        self.handle_time();
        Ok(())
    }

    fn handle_time(&mut self) {
        let now = self.clock.now();
        if let Some(key) = self.keys.handle_timeout(now) {
            self.type_keys(&[key], now);
        }
        if self.view.poll_timeout(self.painted_at).is_some_and(|at| at <= now) {
            self.paint_now();
        }
    }

    fn handle_signals(&mut self) {
        self.signals.drain();
        if let Some(signal) = self.signals.ending() {
            self.outcome = Some(Ok(Outcome::Signalled(signal)));
        }
        if self.signals.take_continued() {
            // A shell may have changed the terminal's settings, and printed something, while this process was stopped.
            let _ = self.tty.make_raw();
            self.printer.start_over(b"\x1b[?2004h\r\n");
            self.paint_now();
        }
        if self.signals.take_resized() {
            self.view.handle_style(style(&self.tty, self.options));
            self.paint_now();
        }
    }

    fn read_keys(&mut self) -> io::Result<()> {
        let mut bytes = [0; MAX_READ];
        let read = match rustix::io::read(self.tty.input(), &mut bytes) {
            Ok(0) | Err(rustix::io::Errno::IO) => {
                self.outcome = Some(Ok(Outcome::Signalled(SIGHUP)));
                return Ok(());
            }
            Ok(read) => read,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let now = self.clock.now();
        let keys = self.keys.handle_input(&bytes[..read], now);
        self.type_keys(&keys, now);
        Ok(())
    }

    fn type_keys(&mut self, keys: &[Key], now: Duration) {
        for key in keys {
            self.view.handle_key(key, now);
        }
        if self.keys.is_paste_incomplete() {
            self.view.handle_incomplete_paste(now);
        }
        self.paint_now();
    }

    /// Something changed that no key caused: painted soon, and not more often than a person can see.
    fn paint_soon(&mut self) {
        self.paint_at.get_or_insert(self.painted_at + PAINT_EVERY);
    }

    fn paint_now(&mut self) {
        self.paint_at = Some(Duration::ZERO);
    }

    fn take_lines(&mut self) {
        while let Some(line) = self.view.poll_line() {
            self.printer.push_line(line);
        }
    }

    fn paint(&mut self) {
        self.paint_at = None;
        self.painted_at = self.clock.now();
        self.take_lines();
        let size = self.tty.size();
        let height = usize::from(size.rows()).saturating_sub(1);
        let live = self.view.live_rows(height, self.painted_at, SystemTime::now());
        self.printer.paint(live, usize::from(size.cols()));
    }

    /// Waits a moment for commands that are on their way, prints what is left, and removes the live rows.
    fn leave(&mut self) {
        let until = self.clock.now() + DELIVER_WITHIN;
        while self.view.is_delivering() && self.clock.now() < until && self.signals.ending().is_none() {
            self.act();
            let poster = self.poster.fd();
            let left = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let _ = poll(&mut [PollFd::from_borrowed_fd(poster, PollFlags::IN)], Some(&left));
            self.take_deliveries();
        }
        self.act();
        self.view.finish();
        self.take_lines();
        let mut out = std::mem::take(&mut self.printer).finish(usize::from(self.tty.size().cols()));
        out.extend_from_slice(b"\x1b[?2004l");
        let _ = self.tty.write_all(&out);
    }
}

/// Lines are narrower than the window, so that the terminal wraps none.
fn style(tty: &Tty, options: ConversationOptions) -> Style {
    Style { width: Some(tty.size().cols().saturating_sub(1)), color: options.color }
}
