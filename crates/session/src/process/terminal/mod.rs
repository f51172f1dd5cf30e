//! A terminal session: a program on a PTY, the log of its output, its screen, and the link to its viewers.
//!
//! In the order that a byte takes: `pty_io.rs` reads it; the link decides who gets it (`poll_frames` here builds the frames,
//! from memory where it is the newest); it is appended to the log before the loop waits again; the screen's thread
//! ([`crate::emulator`]) is told of it a moment later. `birth.rs` starts it, `requests.rs` answers what
//! only a terminal can, `ending.rs` is its end.

mod birth;
mod ending;
mod newest;
mod notices;
mod pace;
mod pty_io;
mod replies;
mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bowline_host::events::Event;
use bowline_host::history::History;
use bowline_host::log::Log;
use bowline_host::summary::CHECKPOINT_EVERY;
use bowline_host::timestamp::{timestamp, timestamp_of};
use bowline_host::wire::{self, Put};
use bowline_proto::Offset;
use bowline_proto::config::ServerConfig;
use bowline_proto::link::{ConnId, Server, ServerEvent, Transmit};
use bowline_proto::message::ServerMessage;
use bowline_proto::session::{Call, ExitStatus, SessionInfo};

pub(super) use self::birth::Prepared;
use self::newest::Newest;
use self::notices::{Notice, Notices};
use self::pace::Pace;
use self::pty_io::PtyWatch;
use self::replies::Replies;
use super::body::BodyEvent;
use super::core::Core;
use super::poll::{Interest, Ready};
use super::session::FIRST_OF_BODY;
use super::viewers::max_viewers;
use crate::emulator::{Ask, Done, Emulator};
use crate::pty::Pty;

/// Tokens of the poll.
const PTY: u64 = FIRST_OF_BODY;
const SCREEN: u64 = FIRST_OF_BODY + 1;

/// Output below this waits for [`SCREEN_DELAY`] before the screen is told of it.
const SCREEN_SOON: u64 = 32 << 10;
/// How far the screen may be behind in time. A program that queries its terminal waits this long at most.
const SCREEN_DELAY: Duration = Duration::from_millis(4);

/// A program on a PTY.
pub(super) struct Terminal {
    pub(super) link: Server,
    pub(super) pty: Pty,
    /// How the program ended, once it was reaped.
    pub(super) status: Option<ExitStatus>,
    /// What the session has to do for it.
    pub(super) events: VecDeque<BodyEvent>,
    log: Arc<Log>,
    history: History,
    /// Where in the journal the last checkpoint was written.
    checkpointed: u64,
    emulator: Emulator,
    replies: Replies,
    /// Screens that control connections wait for: ticket to connection.
    screens: BTreeMap<u64, u64>,
    next_ticket: u64,
    notices: Notices,
    watch: PtyWatch,
    last_output: Instant,
    /// The output that the description's `active` is about.
    active_of: Option<Instant>,
    /// When the description was last brought up to date.
    described: Instant,
    /// How much output the screen has been told of.
    screen_told: Offset,
    /// When it is told of the rest.
    screen_due: Option<Instant>,
    newest: Newest,
    pace: Pace,
    /// When the program is read again after a flood.
    rest_due: Option<Instant>,
    /// Where this life's output begins; a cursor of this epoch never points before it.
    life_start: Offset,
}

impl Terminal {
    /// A terminal whose program was just started, as `info` describes it.
    pub(super) fn new(info: &SessionInfo, log: Arc<Log>, history: History, pty: Pty, emulator: Emulator) -> Terminal {
        let size = info.terminal.as_ref().map(|terminal| terminal.size).unwrap_or_default();
        let mut config = ServerConfig::new(info.epoch.clone(), size);
        config.viewers = max_viewers();
        let mut link = Server::new(config, info.clone());
        let (now, offset) = (Instant::now(), info.offset);
        link.handle_log(offset, offset);
        link.handle_screen(offset);
        Terminal {
            link,
            pty,
            status: None,
            events: VecDeque::new(),
            log,
            history,
            checkpointed: 0,
            emulator,
            replies: Replies::default(),
            screens: BTreeMap::new(),
            next_ticket: 0,
            notices: Notices::new(now),
            watch: PtyWatch::For(Interest::READ),
            last_output: now,
            active_of: None,
            described: now,
            screen_told: offset,
            screen_due: None,
            newest: Newest::new(offset),
            pace: Pace::new(now),
            rest_due: None,
            life_start: offset,
        }
    }

    pub(super) fn register(&self, core: &Core) -> io::Result<()> {
        core.poll.add(&self.pty, PTY, Interest::READ)?;
        core.poll.add(self.emulator.ready(), SCREEN, Interest::READ)
    }

    pub(super) fn handle_ready(&mut self, core: &mut Core, ready: &Ready) {
        match ready.token {
            PTY if ready.read => self.read_pty(core, ready.hung_up),
            SCREEN => self.handle_screen(core),
            _ => {}
        }
    }

    pub(super) fn act(&mut self, core: &mut Core) -> bool {
        self.link.handle_screen(self.emulator.offset());
        self.write_pty(core);
        let mut acted = false;
        while let Some(event) = self.link.poll_event() {
            self.handle_link_event(core, event);
            acted = true;
        }
        acted
    }

    pub(super) fn settle(&mut self, core: &mut Core) -> bool {
        self.log_newest(core);
        let awaited = self.link.waits_for_screen();
        self.tell_screen(awaited);
        let caught_up = awaited && !self.emulator.wake_when_caught_up();
        if caught_up {
            self.link.handle_screen(self.emulator.offset());
        }
        caught_up
    }

    pub(super) fn poll_frames(&mut self, core: &mut Core, conn: ConnId, frames: &mut Vec<u8>, enough: usize) -> bool {
        let now = core.now();
        while frames.len() < enough {
            let Some(transmit) = self.link.poll_transmit(conn, now) else { return false };
            if let Transmit::Output { from, len } = transmit
                && self.newest.get(from, len).is_none()
            {
                self.log_newest(core);
            }
            // A log that cannot be read ends the connection; the viewer comes back and tries again.
            if wire::put(frames, transmit, &self.log, |from, len| self.newest.get(from, len)) != Put::Queued {
                return true;
            }
        }
        false
    }

    pub(super) fn poll_timeout(&self, core: &Core) -> Option<Instant> {
        let times = [
            self.pty_timeout(),
            self.link.poll_timeout().map(|at| core.instant(at)),
            self.notices.poll_timeout(),
            self.screen_due,
            self.rest_due,
        ];
        times.into_iter().flatten().min()
    }

    pub(super) fn handle_time(&mut self, core: &mut Core, now: Instant) {
        self.link.handle_timeout(core.now());
        for event in self.notices.due(now, false) {
            self.record(core, event);
        }
        if let Some(message) = self.notices.left_out(now) {
            self.link.handle_notice(message);
        }
        self.watch_parked_pty(core, now);
    }

    fn handle_link_event(&mut self, core: &mut Core, event: ServerEvent) {
        match event {
            ServerEvent::Resize(size) => self.resize(core, size),
            ServerEvent::NeedSnapshot { conn, scope, scrollback } => {
                self.emulator.ask(Ask::Snapshot { ticket: conn.0, scope, scrollback });
            }
            ServerEvent::Theme(theme) => self.emulator.ask(Ask::Theme(theme)),
            ServerEvent::Command { conn, id, command } => {
                let answer = self.command(core, id, &command);
                self.link.handle_command_done(conn, answer);
            }
            ServerEvent::ClientsChanged(viewers) => self.events.push_back(BodyEvent::Viewers(viewers)),
            ServerEvent::Closing { conn, code } => self.events.push_back(BodyEvent::Closing { conn: conn.0, code }),
        }
    }

    // ---- the screen ----

    fn handle_screen(&mut self, core: &mut Core) {
        for done in self.emulator.take() {
            match done {
                Done::Snapshot(conn, snapshot) => self.link.handle_snapshot(ConnId(conn), snapshot),
                Done::Shown(ticket, screen) => self.handle_shown(ticket, screen),
                Done::Replies(bytes) => self.replies.push(&bytes),
                Done::Event(event) => {
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

    /// Tells the screen of new output: viewers come first, so little of it may wait a moment. Waking the other thread for
    /// each key would cost the key's echo a third of its time.
    fn tell_screen(&mut self, awaited: bool) {
        let untold = self.log.end() - self.screen_told;
        let now = Instant::now();
        if awaited || untold >= SCREEN_SOON || self.screen_due.is_some_and(|due| now >= due) {
            self.screen_told = self.log.end();
            self.screen_due = None;
            self.emulator.advance(self.screen_told);
        } else if untold > 0 {
            self.screen_due.get_or_insert(now + SCREEN_DELAY);
        }
    }

    // ---- description and journal ----

    pub(super) fn describe(&mut self, core: &mut Core) {
        core.info.offset = self.log.end();
        // Worked out once for each output: two clocks are read one after the other, and the difference varies.
        if self.active_of != Some(self.last_output) {
            let last = SystemTime::now().checked_sub(self.last_output.elapsed());
            core.info.active = last.map(timestamp_of);
            self.active_of = Some(self.last_output);
        }
        self.described = Instant::now();
    }

    /// Records an event; a disk that does not take it makes the session degraded, not dead.
    fn record(&mut self, core: &mut Core, event: Event) {
        if let Err(error) = self.try_record(core, event) {
            self.degrade(core, &error);
        }
    }

    /// Records an event and gives its number.
    fn try_record(&mut self, core: &mut Core, event: Event) -> io::Result<u64> {
        let seq = self.history.record(&mut core.journal, event)?;
        let end = core.journal.end();
        // After a compaction the journal is shorter than it was.
        if end.byte.abs_diff(self.checkpointed) >= CHECKPOINT_EVERY {
            self.checkpointed = end.byte;
            // A list that finds no checkpoint reads the events instead.
            let _ = self.history.summary.checkpoint(core.journal.file(), end, &core.dir.head());
        }
        Ok(seq)
    }

    fn degrade(&mut self, core: &mut Core, error: &io::Error) {
        if std::mem::replace(&mut core.info.degraded, true) {
            return;
        }
        core.info_changed = true;
        let _ = self.try_record(core, Event::Degraded { error: error.to_string() });
        let body = format!("the session's files cannot be written ({error}); its history is kept in memory only");
        self.link.handle_notice(ServerMessage::Notify { title: "bowline".into(), body });
    }
}
