//! The seam between a session and what runs in it.
//!
//! A [`Session`](super::session::Session) has the socket, the connections, signals and the ending. Its body has what is
//! different for each kind: what it reads and writes, what viewers get, which requests it answers. The session calls the
//! body with what happened (`handle_*`) and asks it for what follows (`poll_*`); the body never touches a connection.

use std::io;
use std::time::Instant;

use bowline_proto::control::{Reply, Request};
use bowline_proto::frame::Frame;
use bowline_proto::link::ConnId;
use bowline_proto::session::ExitStatus;
use rustix::process::{Pid, WaitStatus};

use super::core::Core;
use super::poll::Ready;
use super::terminal::Terminal;

/// What runs in a session.
pub(super) enum Body {
    /// A program on a PTY.
    Terminal(Box<Terminal>),
}

/// Something for the session to do.
pub(super) enum BodyEvent {
    /// So many viewers are attached now.
    Viewers(u32),
    /// A connection gets its last frames.
    Closing { conn: u64, code: u16 },
    /// A request is answered that could not be answered at once.
    Reply { conn: u64, reply: Reply },
}

impl Body {
    /// Adds its descriptors to the poll, with tokens below [`FIRST_CONN`](super::session::FIRST_CONN).
    pub(super) fn register(&self, core: &Core) -> io::Result<()> {
        let Body::Terminal(terminal) = self;
        terminal.register(core)
    }

    /// One of its descriptors is ready.
    pub(super) fn handle_ready(&mut self, core: &mut Core, ready: &Ready) {
        let Body::Terminal(terminal) = self;
        terminal.handle_ready(core, ready);
    }

    // ---- connections ----

    /// A connection was opened. It is a viewer unless it is closed before its first frame.
    pub(super) fn handle_open(&mut self, core: &Core, conn: ConnId) {
        let Body::Terminal(terminal) = self;
        terminal.link.handle_open(conn, core.now());
    }

    /// A viewer sent a frame.
    pub(super) fn handle_frame(&mut self, core: &Core, conn: ConnId, frame: Frame<'_>) {
        let Body::Terminal(terminal) = self;
        terminal.link.handle_frame(conn, frame, core.now());
    }

    /// A connection is gone, or turned out to be no viewer.
    pub(super) fn handle_closed(&mut self, core: &Core, conn: ConnId) {
        let Body::Terminal(terminal) = self;
        terminal.link.handle_closed(conn, core.now());
    }

    /// Appends frames for a viewer until they are `enough` bytes or there are no more; whether the last of them is the
    /// last that the viewer gets.
    pub(super) fn poll_frames(&mut self, core: &mut Core, conn: ConnId, frames: &mut Vec<u8>, enough: usize) -> bool {
        let Body::Terminal(terminal) = self;
        terminal.poll_frames(core, conn, frames, enough)
    }

    /// Answers a request that is not for the session itself; `None` where the answer comes as [`BodyEvent::Reply`].
    pub(super) fn handle_request(&mut self, core: &mut Core, conn: u64, request: Request) -> Option<Reply> {
        let Body::Terminal(terminal) = self;
        terminal.handle_request(core, conn, request)
    }

    // ---- after each wait, in this order ----

    /// Does what follows from what was handled, before viewers get their frames. Whether there was anything.
    pub(super) fn act(&mut self, core: &mut Core) -> bool {
        let Body::Terminal(terminal) = self;
        terminal.act(core)
    }

    /// What the session has to do for it.
    pub(super) fn poll_event(&mut self) -> Option<BodyEvent> {
        let Body::Terminal(terminal) = self;
        terminal.events.pop_front()
    }

    /// Does what can wait until viewers have their frames. Whether that gives viewers more.
    pub(super) fn settle(&mut self, core: &mut Core) -> bool {
        let Body::Terminal(terminal) = self;
        terminal.settle(core)
    }

    /// Tells the poll what to wait for next.
    pub(super) fn watch(&mut self, core: &Core) {
        let Body::Terminal(terminal) = self;
        terminal.watch_pty(core);
    }

    /// Brings its part of the description up to date.
    pub(super) fn describe(&mut self, core: &mut Core) {
        let Body::Terminal(terminal) = self;
        terminal.describe(core);
    }

    /// The description has changed, for viewers to come.
    pub(super) fn handle_info(&mut self, core: &Core) {
        let Body::Terminal(terminal) = self;
        terminal.link.handle_info(core.info.clone());
    }

    // ---- time ----

    /// When [`Body::handle_time`] has something to do.
    pub(super) fn poll_timeout(&self, core: &Core) -> Option<Instant> {
        let Body::Terminal(terminal) = self;
        terminal.poll_timeout(core)
    }

    /// Does what is due.
    pub(super) fn handle_time(&mut self, core: &mut Core, now: Instant) {
        let Body::Terminal(terminal) = self;
        terminal.handle_time(core, now);
    }

    // ---- the end ----

    /// The process of its program, which ending the session never spares.
    pub(super) fn program(&self) -> Pid {
        let Body::Terminal(terminal) = self;
        terminal.pty.child()
    }

    /// A child has ended: the program, or something that it left behind.
    pub(super) fn handle_reaped(&mut self, core: &mut Core, pid: Pid, status: WaitStatus) {
        let Body::Terminal(terminal) = self;
        terminal.handle_reaped(core, pid, status);
    }

    /// How the program ended, if it has.
    pub(super) fn status(&self) -> Option<&ExitStatus> {
        let Body::Terminal(terminal) = self;
        terminal.status.as_ref()
    }

    /// Everything that the session started is gone, or out of reach.
    pub(super) fn handle_tree_gone(&mut self, core: &mut Core) {
        let Body::Terminal(terminal) = self;
        terminal.handle_tree_gone(core);
    }

    /// Whether there is nothing left to come from the program.
    pub(super) fn is_drained(&self, now: Instant) -> bool {
        let Body::Terminal(terminal) = self;
        terminal.is_drained(now)
    }

    /// Records the end and tells viewers.
    pub(super) fn finish(&mut self, core: &mut Core, status: ExitStatus, now: Instant) {
        let Body::Terminal(terminal) = self;
        terminal.finish(core, status, now);
    }
}
