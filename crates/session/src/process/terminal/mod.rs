//! A terminal session: a program on a PTY, the log of its output, its screen, and the link to its viewers.
//!
//! The path of output, from one wait of the loop to the next:
//!
//! 1. [`Terminal::read_pty`] (`pty_io.rs`) reads up to 64 KiB into [`LatestOutput`], and reports the new
//!    end to the link.
//! 2. [`Terminal::poll_frames`] builds each viewer's frames: from [`LatestOutput`], or from the log for a
//!    viewer that is further behind. The session writes them to the viewer's socket.
//! 3. [`Terminal::after_serving`] appends the read to the log, and notifies the emulator thread
//!    ([`crate::emulator`]) at once or within [`SCREEN_DELAY`].
//!
//! `start.rs` starts a terminal, `requests.rs` handles its requests and commands, `ending.rs` ends it.

mod ending;
mod latest_output;
mod notices;
mod pty_io;
mod query_replies;
mod requests;
mod resizes;
mod screen_requests;
mod start;
mod throttle;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bowline_host::events::Event;
use bowline_host::history::History;
use bowline_host::journal::Journal;
use bowline_host::log::Log;
use bowline_host::summary::CHECKPOINT_EVERY;
use bowline_host::timestamp::{timestamp, timestamp_of};
use bowline_host::wire::{self, PutOutcome};
use bowline_proto::Offset;
use bowline_proto::config::ServerConfig;
use bowline_proto::link::{ConnId, Server, ServerEvent, Transmit};
use bowline_proto::message::ServerMessage;
use bowline_proto::session::{Call, ExitStatus, SessionInfo};

use self::latest_output::LatestOutput;
use self::notices::{Notice, Notices};
use self::pty_io::PtyWatch;
use self::query_replies::QueryReplies;
use self::resizes::Resizes;
use self::screen_requests::ScreenRequests;
pub(super) use self::start::PreparedTerminal;
use self::throttle::Throttle;
use super::body::BodyEvent;
use super::core::Core;
use super::poll::{Interest, Ready};
use super::session::FIRST_OF_BODY;
use super::viewers::max_viewers;
use crate::emulator::{Emulator, EmulatorEvent, Job};
use crate::pty::Pty;

// Tokens of the poll.
const PTY: u64 = FIRST_OF_BODY;
const EMULATOR: u64 = FIRST_OF_BODY + 1;

/// The emulator is notified at once of this much new output, and after [`SCREEN_DELAY`] of less.
const SCREEN_SOON: u64 = 32 << 10;
/// How long new output may wait before the emulator parses it. It also delays replies to terminal queries.
const SCREEN_DELAY: Duration = Duration::from_millis(4);

/// A program on a PTY.
pub(super) struct Terminal {
    pub(super) link: Server,
    pub(super) pty: Pty,
    /// Set once the program was reaped.
    pub(super) exit_status: Option<ExitStatus>,
    /// Queued for [`Body::poll_event`](super::body::Body::poll_event).
    pub(super) events: VecDeque<BodyEvent>,
    log: Arc<Log>,
    journal: Journal,
    history: History,
    /// How long the journal was at the last checkpoint, in bytes.
    last_checkpoint: u64,
    emulator: Emulator,
    query_replies: QueryReplies,
    resizes: Resizes,
    screen_requests: ScreenRequests,
    notices: Notices,
    watch: PtyWatch,
    last_output: Instant,
    /// The `last_output` that `info.active` was computed from.
    active_from: Option<Instant>,
    /// When `info` was last updated.
    info_updated: Instant,
    /// The end of the output that the emulator was notified of.
    emulator_tail: Offset,
    /// When to notify it of the rest.
    emulator_due: Option<Instant>,
    latest: LatestOutput,
    throttle: Throttle,
    /// When the PTY is read again, if the throttle pauses it.
    pause_end: Option<Instant>,
    /// Where the output of this epoch begins; no cursor of this epoch points before it.
    epoch_start: Offset,
}

impl Terminal {
    /// A terminal whose program has just been started, with the size and offset in `info`.
    pub(super) fn new(
        info: &SessionInfo,
        scrollback: u32,
        public_ids: [u8; 16],
        log: Arc<Log>,
        (journal, history): (Journal, History),
        pty: Pty,
        emulator: Emulator,
    ) -> Terminal {
        let size = info.terminal.as_ref().map(|terminal| terminal.size).unwrap_or_default();
        let mut config = ServerConfig::new(info.epoch.clone(), size);
        (config.viewers, config.scrollback, config.public_ids) = (max_viewers(), scrollback, public_ids);
        let mut link = Server::new(config, info.clone());
        let (now, offset) = (Instant::now(), info.offset);
        link.handle_log(offset, offset);
        link.handle_screen(offset);
        Terminal {
            link,
            pty,
            exit_status: None,
            events: VecDeque::new(),
            log,
            journal,
            history,
            last_checkpoint: 0,
            emulator,
            query_replies: QueryReplies::default(),
            resizes: Resizes::default(),
            screen_requests: ScreenRequests::default(),
            notices: Notices::new(now),
            watch: PtyWatch::Polled(Interest::READ),
            last_output: now,
            active_from: None,
            info_updated: now,
            emulator_tail: offset,
            emulator_due: None,
            latest: LatestOutput::new(offset),
            throttle: Throttle::new(now),
            pause_end: None,
            epoch_start: offset,
        }
    }

    pub(super) fn register(&self, core: &Core) -> io::Result<()> {
        core.poll.add(&self.pty, PTY, Interest::READ)?;
        core.poll.add(self.emulator.ready(), EMULATOR, Interest::READ)
    }

    pub(super) fn handle_ready(&mut self, core: &mut Core, ready: &Ready) {
        match ready.token {
            PTY if ready.read => self.read_pty(core, ready.hung_up),
            EMULATOR => self.handle_emulator(core),
            _ => {}
        }
    }

    pub(super) fn before_serving(&mut self, core: &mut Core) -> bool {
        self.link.handle_screen(self.emulator.offset());
        self.write_pty(core);
        let mut had_events = false;
        while let Some(event) = self.link.poll_event() {
            self.handle_link_event(core, event);
            had_events = true;
        }
        if let Some(size) = self.resizes.take_due(self.emulator.is_resizing(), Instant::now()) {
            self.resize(core, size);
        }
        had_events
    }

    pub(super) fn after_serving(&mut self, core: &mut Core) -> bool {
        self.log_latest(core);
        let awaited = self.link.has_viewer_awaiting_screen();
        self.notify_emulator(awaited);
        let caught_up = awaited && !self.emulator.wake_when_caught_up();
        if caught_up {
            self.link.handle_screen(self.emulator.offset());
        }
        caught_up
    }

    pub(super) fn handle_closed(&mut self, core: &Core, conn: ConnId) {
        self.link.handle_closed(conn, core.now());
        self.screen_requests.forget(conn.0);
    }

    pub(super) fn poll_frames(&mut self, core: &mut Core, conn: ConnId, frames: &mut Vec<u8>, enough: usize) -> bool {
        let now = core.now();
        while frames.len() < enough {
            let Some(transmit) = self.link.poll_transmit(conn, now) else { return false };
            if let Transmit::Output { from, len } = transmit
                && self.latest.get(from, len).is_none()
            {
                self.log_latest(core);
            }
            match wire::put(frames, transmit, &self.log, |from, len| self.latest.get(from, len)) {
                PutOutcome::Queued => {}
                PutOutcome::Last => return true,
                // The connection is closed. When the client reconnects, it gets a snapshot instead of these bytes.
                PutOutcome::Unreadable => {
                    self.link.handle_log(self.log.end(), self.log.end());
                    return true;
                }
            }
        }
        false
    }

    pub(super) fn poll_timeout(&self, core: &Core) -> Option<Instant> {
        let times = [
            self.pty_timeout(),
            self.link.poll_timeout().map(|at| core.instant(at)),
            self.notices.poll_timeout(),
            self.emulator_due,
            self.pause_end,
            self.resizes.poll_timeout(self.emulator.is_resizing()),
        ];
        times.into_iter().flatten().min()
    }

    pub(super) fn handle_time(&mut self, core: &mut Core, now: Instant) {
        self.link.handle_timeout(core.now());
        for event in self.notices.take_records(now, false) {
            self.record(core, event);
        }
        if let Some(message) = self.notices.take_suppressed(now) {
            self.link.handle_notice(message);
        }
        self.check_parked_pty(core, now);
    }

    fn handle_link_event(&mut self, core: &mut Core, event: ServerEvent) {
        match event {
            ServerEvent::Resize(size) => self.resizes.handle_request(size),
            ServerEvent::NeedSnapshot(kind) => self.emulator.submit(Job::Snapshot(kind)),
            ServerEvent::Theme(theme) => self.emulator.submit(Job::SetTheme(theme)),
            ServerEvent::Command { conn, id, command } => {
                let reply = self.command(core, id, &command);
                self.link.handle_command_done(conn, reply);
            }
            ServerEvent::ClientsChanged(viewers) => self.events.push_back(BodyEvent::Viewers(viewers)),
            ServerEvent::Closing { conn, code } => self.events.push_back(BodyEvent::Closing { conn: conn.0, code }),
        }
    }

    // ---- the emulator ----

    fn handle_emulator(&mut self, core: &mut Core) {
        for event in self.emulator.take_events() {
            match event {
                EmulatorEvent::Snapshot(kind, snapshot) => self.link.handle_snapshot(kind, snapshot),
                EmulatorEvent::Rendered(screen) => self.handle_rendered(screen),
                EmulatorEvent::QueryReplies(bytes) => self.query_replies.push(&bytes),
                EmulatorEvent::Screen(event) => {
                    let notice = self.notices.handle(event, Instant::now());
                    self.handle_notice(core, notice);
                }
            }
        }
        self.link.handle_screen(self.emulator.offset());
    }

    fn handle_notice(&mut self, core: &mut Core, notice: Notice) {
        if let Some((kind, text)) = notice.call {
            core.info.call = Some(Call { at: timestamp(), kind, text });
            core.info_changed = true;
        }
        if let Some(message) = notice.message {
            match &message {
                ServerMessage::Title { title } => core.info.title.clone_from(title),
                ServerMessage::Cwd { cwd } => core.info.cwd.clone_from(cwd),
                _ => {}
            }
            core.info_changed |= matches!(message, ServerMessage::Title { .. } | ServerMessage::Cwd { .. });
            self.link.handle_notice(message);
        }
        if let Some(event) = notice.record {
            self.record(core, event);
        }
    }

    /// Notifies the emulator of new output: at once if a viewer waits for the screen (`awaited`) or there
    /// is much of it, otherwise within [`SCREEN_DELAY`]. Waking the thread for each key would add about a
    /// third to the time of its echo.
    fn notify_emulator(&mut self, awaited: bool) {
        let new = self.log.end() - self.emulator_tail;
        let now = Instant::now();
        if awaited || new >= SCREEN_SOON || self.emulator_due.is_some_and(|due| now >= due) {
            self.emulator_tail = self.log.end();
            self.emulator_due = None;
            self.emulator.advance(self.emulator_tail);
        } else if new > 0 {
            self.emulator_due.get_or_insert(now + SCREEN_DELAY);
        }
    }

    // ---- description and journal ----

    pub(super) fn update_info(&mut self, core: &mut Core) {
        core.info.offset = self.log.end();
        // Computed once per output: it combines two clocks, so computing it again would give a slightly
        // different time.
        if self.active_from != Some(self.last_output) {
            let last = SystemTime::now().checked_sub(self.last_output.elapsed());
            core.info.active = last.map(timestamp_of);
            self.active_from = Some(self.last_output);
        }
        self.info_updated = Instant::now();
    }

    /// Records an event. If the disk fails, the session is degraded but keeps running.
    fn record(&mut self, core: &mut Core, event: Event) {
        if let Err(error) = self.try_record(core, event) {
            self.degrade(core, &error);
        }
    }

    /// Records an event and returns its sequence number.
    fn try_record(&mut self, core: &mut Core, event: Event) -> io::Result<u64> {
        let seq = self.history.record(&mut self.journal, event)?;
        let end = self.journal.end();
        // `abs_diff`, since a compaction makes the journal shorter.
        if end.byte.abs_diff(self.last_checkpoint) >= CHECKPOINT_EVERY {
            self.last_checkpoint = end.byte;
            // An error is harmless: without a checkpoint, a list reads the whole journal.
            let _ = self.history.summary.checkpoint(self.journal.file(), end, &core.dir.head());
        }
        Ok(seq)
    }

    /// Marks the session as degraded and notifies viewers, once.
    fn degrade(&mut self, core: &mut Core, error: &io::Error) {
        if std::mem::replace(&mut core.info.degraded, true) {
            return;
        }
        core.info_changed = true;
        let _ = self.try_record(core, Event::Degraded { error: error.to_string() });
        let body = format!("cannot write the session's files ({error}); new output is kept in memory only");
        self.link.handle_notice(ServerMessage::Notify { title: "bowline".into(), body });
    }
}
