//! The session's one loop: bytes from the PTY into the log and on to the viewers, keys back, until it is over.
//!
//! One thread does all of this and never waits for a viewer, a disk or the program; the screen has a thread of its
//! own ([`crate::emulator`]). Everything about viewers is decided by the link machine; this loop only carries out. Its
//! handlers live in `terminal.rs`, `viewers.rs`, `asks.rs` and `ending.rs`.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use bowline_proto::Offset;
use bowline_proto::close;
use bowline_proto::config::{CROWD, ServerConfig};
use bowline_proto::link::{ConnId, Server, ServerEvent};
use bowline_proto::message::{Call, CallKind, ExitStatus, ServerMessage, SessionInfo};
use rustix::fs::inotify;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};

use super::Socket;
use super::conn::Conn;
use super::newest::Newest;
use super::notices::Notices;
use super::pace::Pace;
use super::poll::{Interest, Poll, Ready};
use super::typed::Typed;
use super::viewers::max_viewers;
use crate::emulator::{Ask, Done, Emulator};
use crate::pty::Pty;
use bowline_host::events::{Event, Events, call_text};
use bowline_host::home::SessionDir;
use bowline_host::lock::Lock;
use bowline_host::log::Log;
use bowline_host::meta::Meta;
use bowline_host::timestamp::{timestamp, timestamp_of};

/// The most that is read from a connection before others have their turn.
const CONN_READ: usize = 32 << 10;
/// Output below this waits for [`SCREEN_DELAY`] before the screen is told of it.
const SCREEN_SOON: u64 = 32 << 10;
/// How far the screen may be behind in time. A program that asks its terminal something waits this long at most.
const SCREEN_DELAY: Duration = Duration::from_millis(4);
/// How often a crowd of viewers is served: all of them together, so that what each of them says does not make the loop look
/// at every other one.
const CROWD_EVERY: Duration = Duration::from_millis(2);

/// Tokens of the poll; connections come after them.
pub(super) const PTY: u64 = 0;
pub(super) const LISTENER: u64 = 1;
const SIGNALS: u64 = 2;
const SCREEN: u64 = 3;
const WATCH: u64 = 4;
const FIRST_CONN: u64 = 16;

/// What a session is made of, made one by one at its birth.
pub(super) struct Parts {
    pub(super) dir: SessionDir,
    pub(super) meta: Meta,
    pub(super) info: SessionInfo,
    pub(super) lock: Lock,
    pub(super) log: Arc<Log>,
    pub(super) events: Events,
    pub(super) pty: Pty,
    pub(super) emulator: Emulator,
    pub(super) socket: Socket,
}

/// A living session.
pub(crate) struct Session {
    pub(super) dir: SessionDir,
    pub(super) meta: Meta,
    pub(super) info: SessionInfo,
    pub(super) log: Arc<Log>,
    pub(super) events: Events,
    pub(super) link: Server,
    pub(super) emulator: Emulator,
    pub(super) typed: Typed,
    pub(super) conns: BTreeMap<u64, Conn>,
    /// Who waits for a screen to be shown: ticket to connection.
    pub(super) shows: BTreeMap<u64, u64>,
    pub(super) next_ticket: u64,
    pub(super) phase: Phase,
    pub(super) pty: Pty,
    pub(super) socket: Socket,
    pub(super) poll: Poll,
    pub(super) signals: UnixStream,
    pub(super) terminate: Arc<AtomicBool>,
    pub(super) watch: Option<OwnedFd>,
    /// When to look whether the socket is still there, where nothing tells.
    pub(super) socket_look: Option<Instant>,
    pub(super) notices: Notices,
    pub(super) next_conn: u64,
    pub(super) origin: Instant,
    pub(super) terminal: Terminal,
    pub(super) status: Option<ExitStatus>,
    pub(super) last_output: Instant,
    /// The output that the description's `active` tells of.
    pub(super) active_of: Option<Instant>,
    pub(super) unattended_since: Option<Instant>,
    pub(super) info_changed: bool,
    /// When the description was last brought up to date.
    pub(super) described: Instant,
    /// How much output the screen knows of.
    pub(super) screen_told: Offset,
    /// When it is told of the rest.
    pub(super) screen_due: Option<Instant>,
    /// When all viewers were last given what the link has for them.
    pub(super) served: Instant,
    /// When they are next, if something may wait for them.
    pub(super) serve_due: Option<Instant>,
    pub(super) newest: Newest,
    pub(super) pace: Pace,
    /// When a flood has rested.
    pub(super) rest_due: Option<Instant>,
    /// Where this life's output begins; a cursor of this epoch never points before it.
    pub(super) life_start: Offset,
    /// What connections are read into.
    pub(super) scratch: Vec<u8>,
    pub(super) frames: Vec<u8>,
    /// Says that this session lives. The last field, so that it goes last: after the socket is taken away.
    _lock: Lock,
}

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The program runs.
    Running,
    /// It was told to end.
    Ending {
        /// When what is left is killed.
        kill_at: Instant,
    },
    /// It has ended; the last viewers are served.
    Serving {
        /// Until then.
        until: Instant,
    },
}

/// What the poll waits for at the PTY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terminal {
    /// These.
    Watched(Interest),
    /// Nothing: nobody holds the other side now, and the poll would report that without end.
    Parked {
        /// When to look again.
        look: Instant,
    },
    /// Nothing ever again.
    Finished,
}

impl Session {
    pub(super) fn new(parts: Parts) -> io::Result<Session> {
        let Parts { dir, meta, info, lock, log, events, pty, emulator, socket } = parts;
        let poll = Poll::new()?;
        let (signals, signal_end) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, signal_end.try_clone()?)?;
        let terminate = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, terminate.clone())?;
            signal_hook::low_level::pipe::register(signal, signal_end.try_clone()?)?;
        }
        // A user has some hundred watches for everything; a session goes without where they are used up.
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok();
        if let Some(watch) = &watch {
            socket.watch_by(watch);
            poll.add(watch, WATCH, Interest::READ)?;
        }
        poll.add(&pty, PTY, Interest::READ)?;
        poll.add(&socket.listener, LISTENER, Interest::READ)?;
        poll.add(&signals, SIGNALS, Interest::READ)?;
        poll.add(emulator.ready(), SCREEN, Interest::READ)?;
        let size = info.terminal.as_ref().map(|terminal| terminal.size).unwrap_or_default();
        let mut config = ServerConfig::new(info.epoch.clone(), size);
        config.viewers = max_viewers();
        let mut link = Server::new(config, info.clone());
        link.handle_log(info.offset, info.offset);
        link.handle_screen(info.offset);
        let (now, offset) = (Instant::now(), info.offset);
        Ok(Session {
            dir,
            meta,
            info,
            log,
            events,
            link,
            emulator,
            typed: Typed::default(),
            conns: BTreeMap::new(),
            shows: BTreeMap::new(),
            next_ticket: 0,
            phase: Phase::Running,
            pty,
            _lock: lock,
            socket,
            poll,
            signals,
            terminate,
            socket_look: watch.is_none().then_some(now),
            watch,
            notices: Notices::new(now),
            next_conn: FIRST_CONN,
            origin: now,
            terminal: Terminal::Watched(Interest::READ),
            status: None,
            last_output: now,
            active_of: None,
            unattended_since: Some(now),
            info_changed: false,
            described: now,
            screen_told: offset,
            screen_due: None,
            served: now,
            serve_due: None,
            pace: Pace::new(Instant::now()),
            rest_due: None,
            newest: Newest::new(offset),
            life_start: offset,
            scratch: vec![0; CONN_READ],
            frames: Vec::new(),
        })
    }

    /// Serves until the program has ended and its viewers have everything.
    pub(crate) fn serve(mut self) {
        let mut ready = Vec::new();
        // A child that ended before its signal was registered would never be noticed.
        self.reap();
        loop {
            self.settle();
            if self.is_over() && self.last_call() {
                return;
            }
            let deadline = self.poll_timeout();
            if self.poll.wait(deadline, &mut ready).is_err() {
                return; // the kernel refuses to wait: nothing can be served any more
            }
            for event in &ready {
                self.handle_ready(event);
            }
            self.handle_time();
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn handle_ready(&mut self, ready: &Ready) {
        match ready.token {
            PTY => {
                if ready.read {
                    self.read_pty(ready.hung_up);
                }
            }
            LISTENER => self.accept(),
            SIGNALS => self.handle_signals(),
            SCREEN => self.handle_screen(),
            WATCH => self.handle_watch(),
            conn => self.handle_conn(conn, ready),
        }
    }

    // ---- the screen ----

    pub(super) fn handle_screen(&mut self) {
        for done in self.emulator.take() {
            match done {
                Done::Snapshot(conn, snapshot) => self.link.handle_snapshot(ConnId(conn), snapshot),
                Done::Shown(ticket, screen) => self.show(ticket, screen),
                Done::Replies(bytes) => self.typed.reply(&bytes),
                Done::Event(event) => {
                    let (message, record) = self.notices.handle(event, Instant::now());
                    self.note(message);
                    if let Some(record) = record {
                        self.record(record);
                    }
                }
            }
        }
        self.link.handle_screen(self.emulator.offset());
    }

    pub(super) fn note(&mut self, message: Option<ServerMessage>) {
        let Some(message) = message else { return };
        match &message {
            ServerMessage::Title { title } => self.info.title.clone_from(title),
            ServerMessage::Cwd { cwd } => self.info.cwd.clone_from(cwd),
            ServerMessage::Bell => self.called(CallKind::Bell, String::new()),
            ServerMessage::Notify { title, body } => self.called(CallKind::Notify, call_text(title, body)),
            _ => return self.link.handle_notice(message),
        }
        self.info_changed = true;
        self.link.handle_notice(message);
    }

    fn called(&mut self, kind: CallKind, text: String) {
        self.info.call = Some(Call { at: timestamp(), kind, text });
    }

    /// Brings the description up to now.
    pub(super) fn describe(&mut self) {
        self.info.offset = self.log.end();
        // Worked out once for each output: the two clocks are read one after the other, and never twice the same apart.
        if self.active_of != Some(self.last_output) {
            let last = SystemTime::now().checked_sub(self.last_output.elapsed());
            self.info.active = last.map(timestamp_of);
            self.active_of = Some(self.last_output);
        }
        self.described = Instant::now();
    }

    // ---- carrying out ----

    /// Does everything that follows from what was handled, until nothing is left to do.
    fn settle(&mut self) {
        self.link.handle_screen(self.emulator.offset());
        let serves = self.serves_now();
        loop {
            self.write_pty();
            let mut acted = false;
            while let Some(event) = self.link.poll_event() {
                self.act(event);
                acted = true;
            }
            if serves {
                self.serve_viewers();
            }
            self.log_newest();
            let awaited = self.link.waits_for_screen();
            self.tell_screen(awaited);
            if awaited && !self.emulator.wake_when_caught_up() {
                self.link.handle_screen(self.emulator.offset());
                acted = true;
            }
            if !acted {
                break;
            }
        }
        self.watch_pty();
        if std::mem::take(&mut self.info_changed) {
            self.describe();
            self.link.handle_info(self.info.clone());
            self.tell_followers();
        }
    }

    /// Whether the viewers have their turn now: a few always have.
    fn serves_now(&mut self) -> bool {
        let next = self.served + CROWD_EVERY;
        let waits = self.conns.len() > CROWD && self.phase == Phase::Running && Instant::now() < next;
        self.serve_due = waits.then_some(next);
        !waits
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

    fn act(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Resize(size) => self.resize(size),
            ServerEvent::NeedSnapshot { conn, scope, scrollback } => {
                self.emulator.ask(Ask::Snapshot { ticket: conn.0, scope, scrollback });
            }
            ServerEvent::Theme(theme) => self.emulator.ask(Ask::Theme(theme)),
            ServerEvent::Command { conn, id, command } => {
                let answer = self.command(id, &command);
                self.link.handle_command_done(conn, answer);
            }
            ServerEvent::ClientsChanged(clients) => {
                self.info.clients = clients;
                self.info_changed = true;
                self.unattended_since = (clients == 0).then(Instant::now);
            }
            // After an exit, a viewer may take as long as the session serves.
            ServerEvent::Closing { conn, code } if code != close::NORMAL || self.phase == Phase::Running => {
                self.cut_later(conn.0);
            }
            ServerEvent::Verdict { .. } | ServerEvent::Closing { .. } => {}
        }
    }

    /// Records an event; a disk that does not take it makes the session degraded, not dead.
    pub(super) fn record(&mut self, event: Event) {
        if let Err(error) = self.events.record(event) {
            self.degrade(&error);
        }
    }

    pub(super) fn degrade(&mut self, error: &io::Error) {
        if std::mem::replace(&mut self.info.degraded, true) {
            return;
        }
        self.info_changed = true;
        let _ = self.events.record(Event::Degraded { error: error.to_string() });
        let body = format!("the session's files cannot be written ({error}); its history is kept in memory only");
        self.link.handle_notice(ServerMessage::Notify { title: "bowline".into(), body });
    }
}
