//! A running session: one loop that waits for events, passes them to the body, and sends viewers their frames.
//!
//! One thread does all of this, and never blocks on a viewer or the program. [`Body`] holds what differs
//! between kinds of sessions. The session's own handlers are in `viewers.rs` (connections), `requests.rs`
//! (control requests) and `ending.rs` (signals, deadlines, the end).

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bowline_host::home::SessionDir;
use bowline_host::lock::Lock;
use bowline_host::meta::Meta;
use bowline_host::watch::Watcher;
use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::close;
use bowline_proto::config::CROWD_THRESHOLD;
use bowline_proto::session::SessionInfo;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};

use super::StartError;
use super::body::{Body, BodyEvent};
use super::conn::Conn;
use super::core::Core;
use super::end_checks::EndChecks;
use super::poll::{Interest, Poll, Ready};
use super::socket::Socket;

/// The most bytes that are read from a connection before others get their turn.
const CONN_READ: usize = 32 << 10;
/// More than [`CROWD_THRESHOLD`] connections are served together, at most this often. Otherwise each message from one
/// of them would make the loop go through all the others.
const CROWD_EVERY: Duration = Duration::from_millis(2);

// Tokens of the poll. The body uses `FIRST_OF_BODY` up to `FIRST_CONN`; connections come after that.
pub(super) const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
const WATCHER: u64 = 2;
pub(super) const FIRST_OF_BODY: u64 = 8;
pub(super) const FIRST_CONN: u64 = 16;

/// What [`Session::new`] needs.
pub(super) struct Parts {
    pub(super) dir: SessionDir,
    pub(super) meta: Meta,
    pub(super) info: SessionInfo,
    pub(super) lock: Lock,
    pub(super) body: Body,
    pub(super) socket: Socket,
}

pub(super) struct Session {
    pub(super) core: Core,
    pub(super) body: Body,
    pub(super) conns: BTreeMap<u64, Conn>,
    pub(super) next_conn: u64,
    pub(super) phase: Phase,
    pub(super) socket: Socket,
    pub(super) signals: UnixStream,
    pub(super) terminate: Arc<AtomicBool>,
    /// Reports when the socket, the lock or `meta.json` is removed. `None` if the user's inotify limit is reached.
    pub(super) watcher: Option<Watcher>,
    /// When to check whether they still exist, if no watcher reports it.
    pub(super) path_check: Option<Instant>,
    pub(super) unattended_since: Option<Instant>,
    /// When all viewers were last sent their frames.
    pub(super) last_served: Instant,
    /// When they are served next, if this was put off.
    pub(super) serve_due: Option<Instant>,
    /// The read buffer that all connections share.
    pub(super) scratch: Vec<u8>,
    /// The buffer in which frames are built, for one connection at a time.
    pub(super) frames: Vec<u8>,
    /// Marks the session as running. It is the last field so that it is dropped last, after the socket is removed.
    pub(super) lock: Lock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// The program and its process tree got SIGHUP; what is left after the grace period gets SIGKILL.
    Ending(EndChecks),
    /// The program has ended; viewers may read the rest until this time.
    Serving {
        until: Instant,
    },
}

impl Session {
    pub(super) fn new(parts: Parts) -> io::Result<Session> {
        let Parts { dir, meta, info, lock, body, socket } = parts;
        let poll = Poll::new()?;
        let (signals, signal_end) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, signal_end.try_clone()?)?;
        let terminate = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, terminate.clone())?;
            signal_hook::low_level::pipe::register(signal, signal_end.try_clone()?)?;
        }
        // The number of inotify instances per user is small; without one, its paths are checked periodically.
        let watcher = Watcher::new().ok();
        if let Some(watcher) = &watcher {
            socket.watch_with(watcher);
            poll.add(watcher, WATCHER, Interest::READ)?;
        }
        poll.add(&socket.listener, LISTENER, Interest::READ)?;
        poll.add(&signals, SIGNALS, Interest::READ)?;
        let core = Core::new(dir, meta, info, poll);
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
            path_check: watcher.is_none().then_some(now),
            watcher,
            unattended_since: Some(now),
            last_served: now,
            serve_due: None,
            scratch: vec![0; CONN_READ],
            frames: Vec::new(),
            lock,
        })
    }

    /// Begins an agent's conversation, with its first prompt if there is one.
    pub(super) fn begin(&mut self, prompt: Option<&(FirstPrompt, String)>) -> Result<(), StartError> {
        match &mut self.body {
            Body::Terminal(_) => Ok(()),
            Body::Agent(agent) => agent.begin(&mut self.core, prompt),
        }
    }

    /// Serves until the program has ended and its viewers have all of its output.
    pub(super) fn serve(mut self) {
        let mut ready = Vec::new();
        // A child may have exited before the SIGCHLD handler was registered.
        self.reap();
        loop {
            self.settle();
            if self.is_over() && self.accept_pending() {
                return;
            }
            let deadline = self.poll_timeout();
            if self.core.poll.wait(deadline, &mut ready).is_err() {
                return; // epoll failed: nothing can be served any more
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

    /// Carries out what the handled events led to, until nothing is left to do: the body's work, frames for
    /// viewers, then what the body puts off until viewers are served, such as appending output to the log.
    fn settle(&mut self) {
        let serve_now = self.should_serve_now();
        loop {
            let mut again = self.body.before_serving(&mut self.core);
            while let Some(event) = self.body.poll_event() {
                self.handle_body_event(event);
            }
            if serve_now {
                self.serve_viewers();
            }
            again |= self.body.after_serving(&mut self.core);
            if !again {
                break;
            }
        }
        self.body.update_interest(&self.core);
        if std::mem::take(&mut self.core.info_changed) {
            self.body.update_info(&mut self.core);
            self.body.handle_info(&self.core);
            self.send_status();
        }
    }

    /// Whether to serve the viewers now: always for up to [`CROWD_THRESHOLD`] connections, at most every
    /// [`CROWD_EVERY`] for more.
    fn should_serve_now(&mut self) -> bool {
        let next = self.last_served + CROWD_EVERY;
        let wait = self.conns.len() > CROWD_THRESHOLD && self.phase == Phase::Running && Instant::now() < next;
        self.serve_due = wait.then_some(next);
        !wait
    }

    fn handle_body_event(&mut self, event: BodyEvent) {
        match event {
            BodyEvent::Viewers(viewers) => {
                self.core.info.clients = viewers;
                self.core.info_changed = true;
                self.unattended_since = (viewers == 0).then(Instant::now);
            }
            // After the program's exit, a viewer may read until the session stops serving.
            BodyEvent::Closing { conn, code } if code != close::NORMAL || self.phase == Phase::Running => {
                self.set_close_deadline(conn);
            }
            BodyEvent::Closing { .. } => {}
            BodyEvent::Reply { conn, reply } => self.send_text(conn, &reply),
        }
    }
}
