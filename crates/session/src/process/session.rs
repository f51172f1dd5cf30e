//! A living session: one loop that waits for everything, hands what happened to the body, and gives viewers what the body
//! has for them, until it is over.
//!
//! One thread does all of this and never waits for a viewer or the program. What is different for each kind of session is
//! behind [`Body`]. The session's own handlers are in `viewers.rs` (connections), `requests.rs` (control requests) and
//! `ending.rs` (signals, deadlines, the end).

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bowline_host::home::SessionDir;
use bowline_host::journal::Journal;
use bowline_host::lock::Lock;
use bowline_host::meta::Meta;
use bowline_host::watch::Watcher;
use bowline_proto::close;
use bowline_proto::config::CROWD;
use bowline_proto::session::SessionInfo;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};

use super::body::{Body, BodyEvent};
use super::conn::Conn;
use super::core::Core;
use super::poll::{Interest, Poll, Ready};
use super::socket::Socket;

/// The most that is read from a connection before others have their turn.
const CONN_READ: usize = 32 << 10;
/// How often a crowd of viewers is served: all of them together, so that what each of them says does not make the loop look
/// at every other one.
const CROWD_EVERY: Duration = Duration::from_millis(2);

/// Tokens of the poll. Those up to `FIRST_CONN` that are not named here are the body's; connections come after them.
pub(super) const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
const WATCHER: u64 = 2;
/// The first of the body's tokens.
pub(super) const FIRST_OF_BODY: u64 = 8;
/// The first token of a connection.
pub(super) const FIRST_CONN: u64 = 16;

/// What a session is made of, made one by one at its birth.
pub(super) struct Parts {
    pub(super) dir: SessionDir,
    pub(super) meta: Meta,
    pub(super) info: SessionInfo,
    pub(super) lock: Lock,
    pub(super) journal: Journal,
    pub(super) body: Body,
    pub(super) socket: Socket,
}

/// A living session.
pub(super) struct Session {
    pub(super) core: Core,
    pub(super) body: Body,
    pub(super) conns: BTreeMap<u64, Conn>,
    pub(super) next_conn: u64,
    pub(super) phase: Phase,
    pub(super) socket: Socket,
    pub(super) signals: UnixStream,
    pub(super) terminate: Arc<AtomicBool>,
    /// Reports when the socket is removed, where the kernel has a watch to spare.
    pub(super) watcher: Option<Watcher>,
    /// When to check whether the socket is still there, where nothing reports it.
    pub(super) socket_check: Option<Instant>,
    pub(super) unattended_since: Option<Instant>,
    /// When all viewers were last given their frames.
    pub(super) served: Instant,
    /// When they are next, if frames may be waiting.
    pub(super) serve_due: Option<Instant>,
    /// What connections are read into.
    pub(super) scratch: Vec<u8>,
    pub(super) frames: Vec<u8>,
    /// Says that this session lives. The last field, so that it goes last: after the socket is taken away.
    _lock: Lock,
}

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// It was told to end; what is left at `kill_at` is killed.
    Ending {
        kill_at: Instant,
    },
    /// It has ended; the last viewers are served.
    Serving {
        until: Instant,
    },
}

impl Session {
    pub(super) fn new(parts: Parts) -> io::Result<Session> {
        let Parts { dir, meta, info, lock, journal, body, socket } = parts;
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
        let watcher = Watcher::new().ok();
        if let Some(watcher) = &watcher {
            socket.watch_by(watcher);
            poll.add(watcher, WATCHER, Interest::READ)?;
        }
        poll.add(&socket.listener, LISTENER, Interest::READ)?;
        poll.add(&signals, SIGNALS, Interest::READ)?;
        let core = Core::new(dir, meta, info, journal, poll);
        body.register(&core)?;
        let now = Instant::now();
        Ok(Session {
            core,
            body,
            conns: BTreeMap::new(),
            next_conn: FIRST_CONN,
            phase: Phase::Running,
            socket,
            signals,
            terminate,
            socket_check: watcher.is_none().then_some(now),
            watcher,
            unattended_since: Some(now),
            served: now,
            serve_due: None,
            scratch: vec![0; CONN_READ],
            frames: Vec::new(),
            _lock: lock,
        })
    }

    /// Serves until the program has ended and its viewers have everything.
    pub(super) fn serve(mut self) {
        let mut ready = Vec::new();
        // A child that ended before its signal was registered would never be noticed.
        self.reap();
        loop {
            self.settle();
            if self.is_over() && self.last_call() {
                return;
            }
            let deadline = self.poll_timeout();
            if self.core.poll.wait(deadline, &mut ready).is_err() {
                return; // the kernel refuses to wait: nothing can be served any more
            }
            for event in &ready {
                self.handle_ready(event);
            }
            self.handle_time();
        }
    }

    fn handle_ready(&mut self, ready: &Ready) {
        match ready.token {
            LISTENER => self.accept(),
            SIGNALS => self.handle_signals(),
            WATCHER => self.handle_watcher(),
            token if token < FIRST_CONN => self.body.handle_ready(&mut self.core, ready),
            conn => self.handle_conn(conn, ready),
        }
    }

    /// Does everything that follows from what was handled, until nothing is left to do.
    fn settle(&mut self) {
        let serves = self.serves_now();
        loop {
            let mut acted = self.body.act(&mut self.core);
            while let Some(event) = self.body.poll_event() {
                self.handle_body_event(event);
            }
            if serves {
                self.serve_viewers();
            }
            acted |= self.body.settle(&mut self.core);
            if !acted {
                break;
            }
        }
        self.body.watch(&self.core);
        if std::mem::take(&mut self.core.info_changed) {
            self.body.describe(&mut self.core);
            self.body.handle_info(&self.core);
            self.send_status();
        }
    }

    /// Whether the viewers have their turn now: a few always have.
    fn serves_now(&mut self) -> bool {
        let next = self.served + CROWD_EVERY;
        let waits = self.conns.len() > CROWD && self.phase == Phase::Running && Instant::now() < next;
        self.serve_due = waits.then_some(next);
        !waits
    }

    fn handle_body_event(&mut self, event: BodyEvent) {
        match event {
            BodyEvent::Viewers(viewers) => {
                self.core.info.clients = viewers;
                self.core.info_changed = true;
                self.unattended_since = (viewers == 0).then(Instant::now);
            }
            // After an exit, a viewer may take as long as the session serves.
            BodyEvent::Closing { conn, code } if code != close::NORMAL || self.phase == Phase::Running => {
                self.cut_later(conn);
            }
            BodyEvent::Closing { .. } => {}
            BodyEvent::Reply { conn, reply } => self.answer(conn, &reply),
        }
    }
}
