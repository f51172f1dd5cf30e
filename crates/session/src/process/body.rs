//! The interface between a session and its body, the part that differs between kinds of sessions.
//!
//! A [`Session`](super::session::Session) owns the socket, the connections, signals and the ending. Its
//! body decides what is read and written, what viewers get, and how kind-specific requests are answered.
//! The session reports what happened (`handle_*`) and fetches what to do (`poll_*`); the body never touches
//! a connection.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_proto::control::{Reply, Request};
use bowline_proto::frame::Frame;
use bowline_proto::link::ConnId;
use bowline_proto::session::ExitStatus;
use rustix::process::{Pid, WaitStatus};

use super::agent::Agent;
use super::core::Core;
use super::poll::Ready;
use super::terminal::Terminal;

pub(super) enum Body {
    /// A program on a PTY.
    Terminal(Box<Terminal>),
    /// A conversation with an agent.
    Agent(Box<Agent>),
}

/// A change that the session has to act on.
pub(super) enum BodyEvent {
    /// The number of attached viewers has changed to this.
    Viewers(u32),
    /// The next frames of this connection are its last.
    Closing { conn: u64, code: u16 },
    /// The text of the reply to a request for which [`Body::handle_request`] returned `None`.
    Reply { conn: u64, reply: Arc<str> },
}

impl Body {
    /// Adds the body's descriptors to the poll, with tokens from
    /// [`FIRST_OF_BODY`](super::session::FIRST_OF_BODY) up to [`FIRST_CONN`](super::session::FIRST_CONN).
    pub(super) fn register(&self, core: &Core) -> io::Result<()> {
        match self {
            Body::Terminal(terminal) => terminal.register(core),
            Body::Agent(agent) => agent.register(core),
        }
    }

    pub(super) fn handle_ready(&mut self, core: &mut Core, ready: &Ready) {
        match self {
            Body::Terminal(terminal) => terminal.handle_ready(core, ready),
            Body::Agent(agent) => agent.handle_ready(core, ready),
        }
    }

    // ---- connections ----

    /// A connection was opened. It counts as a viewer unless [`Body::handle_closed`] comes before its first frame.
    pub(super) fn handle_open(&mut self, core: &Core, conn: ConnId) {
        match self {
            Body::Terminal(terminal) => terminal.link.handle_open(conn, core.now()),
            Body::Agent(agent) => agent.follow.handle_open(conn, core.now()),
        }
    }

    pub(super) fn handle_frame(&mut self, core: &Core, conn: ConnId, frame: Frame<'_>) {
        match self {
            Body::Terminal(terminal) => terminal.link.handle_frame(conn, frame, core.now()),
            Body::Agent(agent) => agent.follow.handle_frame(conn, frame, core.now()),
        }
    }

    /// A connection was closed, or sends control requests and so is not a viewer.
    pub(super) fn handle_closed(&mut self, core: &Core, conn: ConnId) {
        match self {
            Body::Terminal(terminal) => terminal.handle_closed(core, conn),
            Body::Agent(agent) => agent.handle_closed(core, conn),
        }
    }

    /// Appends frames for a viewer, until `frames` has `enough` bytes or there are no more. Returns whether
    /// the connection is to be closed after them.
    pub(super) fn poll_frames(&mut self, core: &mut Core, conn: ConnId, frames: &mut Vec<u8>, enough: usize) -> bool {
        match self {
            Body::Terminal(terminal) => terminal.poll_frames(core, conn, frames, enough),
            Body::Agent(agent) => agent.poll_frames(core, conn, frames, enough),
        }
    }

    /// Handles a request that the session itself does not. Returns `None` if the reply follows as
    /// [`BodyEvent::Reply`].
    pub(super) fn handle_request(&mut self, core: &mut Core, conn: u64, request: Request) -> Option<Reply> {
        match self {
            Body::Terminal(terminal) => terminal.handle_request(core, conn, request),
            Body::Agent(agent) => Some(agent.handle_request(core, request)),
        }
    }

    // ---- after each wait, in this order, with the viewers served before `after_serving` ----

    /// Does the work that comes before viewers get their frames. Returns whether there was any.
    pub(super) fn before_serving(&mut self, core: &mut Core) -> bool {
        match self {
            Body::Terminal(terminal) => terminal.before_serving(core),
            Body::Agent(agent) => agent.before_serving(core),
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<BodyEvent> {
        match self {
            Body::Terminal(terminal) => terminal.events.pop_front(),
            Body::Agent(agent) => agent.events.pop_front(),
        }
    }

    /// Does the work that can wait until viewers have their frames. Returns whether there are new frames now.
    pub(super) fn after_serving(&mut self, core: &mut Core) -> bool {
        match self {
            Body::Terminal(terminal) => terminal.after_serving(core),
            Body::Agent(_) => false,
        }
    }

    /// Updates what the poll waits for.
    pub(super) fn update_interest(&mut self, core: &Core) {
        match self {
            Body::Terminal(terminal) => terminal.update_pty_interest(core),
            Body::Agent(agent) => agent.update_interest(core),
        }
    }

    /// Updates the body's part of `core.info`.
    pub(super) fn update_info(&mut self, core: &mut Core) {
        match self {
            Body::Terminal(terminal) => terminal.update_info(core),
            Body::Agent(agent) => agent.update_info(core),
        }
    }

    /// `core.info` has changed; viewers that attach from now on get the new one.
    pub(super) fn handle_info(&mut self, core: &Core) {
        match self {
            Body::Terminal(terminal) => terminal.link.handle_info(core.info.clone()),
            Body::Agent(agent) => agent.follow.handle_info(core.info.clone()),
        }
    }

    // ---- time ----

    /// When [`Body::handle_time`] must be called next.
    pub(super) fn poll_timeout(&self, core: &Core) -> Option<Instant> {
        match self {
            Body::Terminal(terminal) => terminal.poll_timeout(core),
            Body::Agent(agent) => agent.poll_timeout(core),
        }
    }

    pub(super) fn handle_time(&mut self, core: &mut Core, now: Instant) {
        match self {
            Body::Terminal(terminal) => terminal.handle_time(core, now),
            Body::Agent(agent) => agent.handle_time(core, now),
        }
    }

    // ---- the end ----

    /// The program's process, which is never spared when the session is ended. An agent's program may be absent.
    pub(super) fn program(&self) -> Option<Pid> {
        match self {
            Body::Terminal(terminal) => Some(terminal.pty.child()),
            Body::Agent(agent) => agent.program(),
        }
    }

    /// Begins to end the program and everything that it started. What is left after the grace is killed.
    pub(super) fn handle_ending(&mut self, core: &mut Core, grace: Duration) {
        match self {
            Body::Terminal(terminal) => terminal.handle_ending(),
            Body::Agent(agent) => agent.handle_ending(core, grace),
        }
    }

    /// The session is being ended, and now has less time for it.
    pub(super) fn handle_shorter_grace(&mut self, core: &mut Core, grace: Duration) {
        match self {
            Body::Terminal(_) => {}
            Body::Agent(agent) => agent.handle_ending(core, grace),
        }
    }

    /// A child was reaped: the program, or an orphaned descendant.
    pub(super) fn handle_reaped(&mut self, core: &mut Core, pid: Pid, status: WaitStatus) {
        match self {
            Body::Terminal(terminal) => terminal.handle_reaped(core, pid, status),
            Body::Agent(agent) => agent.handle_reaped(core, pid, status),
        }
    }

    /// Whether the program was reaped, or is absent.
    pub(super) fn is_reaped(&self) -> bool {
        match self {
            Body::Terminal(terminal) => terminal.exit_status.is_some(),
            Body::Agent(agent) => agent.is_reaped(),
        }
    }

    /// The session's exit status, once it is known: that of a terminal's program when it was reaped; an agent session
    /// goes on until it is ended.
    pub(super) fn exit_status(&self) -> Option<&ExitStatus> {
        match self {
            Body::Terminal(terminal) => terminal.exit_status.as_ref(),
            Body::Agent(agent) => agent.exit_status(),
        }
    }

    /// Every process that the session started has ended, or cannot be signalled.
    pub(super) fn handle_tree_ended(&mut self, core: &mut Core) {
        match self {
            Body::Terminal(terminal) => terminal.handle_tree_ended(core),
            Body::Agent(agent) => agent.handle_tree_ended(core),
        }
    }

    /// Whether all of the program's output was read.
    pub(super) fn is_drained(&self, now: Instant) -> bool {
        match self {
            Body::Terminal(terminal) => terminal.is_drained(now),
            Body::Agent(_) => true,
        }
    }

    /// Records the exit and reports it to viewers.
    pub(super) fn finish(&mut self, core: &mut Core, status: ExitStatus, now: Instant) {
        match self {
            Body::Terminal(terminal) => terminal.finish(core, status, now),
            Body::Agent(agent) => agent.finish(core, status),
        }
    }
}
