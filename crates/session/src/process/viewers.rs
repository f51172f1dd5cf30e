//! The session and its connections: accepting them, reading them, giving them what the body has for them.

use std::time::{Duration, Instant};

use bowline_proto::config::VIEWERS;
use bowline_proto::frame::Frame;
use bowline_proto::link::ConnId;

use super::conn::{Conn, HIGH_WATER, Input, Role};
use super::poll::{Interest, Ready};
use super::session::Session;

/// How long a connection that is being closed may take to read its last frames.
const CUT_AFTER: Duration = Duration::from_secs(10);
/// Connections at once, where the limit of open files allows them; one more is closed at once.
const MAX_CONNS: usize = 4096;
/// Connections that viewers leave to control requests: an owner can end a session however many watch it.
const FOR_REQUESTS: usize = 64;
/// Descriptors that are not connections. Without room for one more, accepting would fail without end.
const OTHER_FILES: usize = 64;

/// How many viewers there is room for.
pub(super) fn max_viewers() -> usize {
    VIEWERS.min(max_conns().saturating_sub(FOR_REQUESTS))
}

fn max_conns() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    files.map_or(MAX_CONNS, |files| MAX_CONNS.min((files as usize).saturating_sub(OTHER_FILES)))
}

impl Session {
    pub(super) fn accept(&mut self) {
        let max = max_conns();
        while let Ok((stream, _)) = self.socket.listener.accept() {
            let peer = rustix::net::sockopt::socket_peercred(&stream).map(|peer| peer.uid);
            let mine = peer.is_ok_and(|uid| uid == rustix::process::geteuid() || uid.is_root());
            if !mine || self.conns.len() >= max {
                continue;
            }
            let Ok(conn) = Conn::new(stream) else { continue };
            let id = self.next_conn;
            self.next_conn += 1;
            if self.core.poll.add(&conn.stream, id, Interest::READ).is_ok() {
                self.conns.insert(id, conn);
                self.body.handle_open(&self.core, ConnId(id));
            }
        }
    }

    pub(super) fn handle_conn(&mut self, id: u64, ready: &Ready) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        if ready.write {
            if conn.flush().is_err() {
                return self.drop_conn(id);
            }
            self.watch_conn(id);
        }
        let Some(conn) = self.conns.get_mut(&id).filter(|_| ready.read) else { return };
        if conn.closing {
            if ready.hung_up || conn.read(&mut self.scratch) == Input::Closed {
                return self.drop_conn(id);
            }
            conn.received.clear(); // nothing more is heard from it
            return;
        }
        let input = conn.read(&mut self.scratch);
        self.handle_frames(id);
        if input == Input::Closed {
            self.drop_conn(id);
        }
    }

    fn handle_frames(&mut self, id: u64) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let received = std::mem::take(&mut conn.received);
        let mut at = 0;
        loop {
            let open = self.conns.get(&id).is_some_and(|conn| !conn.closing);
            match Frame::decode(&received[at..]) {
                Ok(Some((frame, used))) if open => {
                    at += used;
                    self.handle_frame(id, frame);
                }
                Ok(_) => break,
                Err(_) => return self.drop_conn(id), // not our protocol: what follows cannot be told apart
            }
        }
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.received = received;
            conn.consume(at);
        }
    }

    fn handle_frame(&mut self, id: u64, frame: Frame<'_>) {
        let role = self.conns.get(&id).map_or(Role::New, |conn| conn.role);
        match (role, frame) {
            (Role::Control { .. }, Frame::Text(text)) => self.handle_request(id, text),
            (Role::Control { .. }, Frame::Binary(_)) => self.drop_conn(id),
            (Role::New, Frame::Text(text)) if Session::is_request(text) => {
                self.body.handle_closed(&self.core, ConnId(id)); // not a viewer
                self.set_role(id, Role::Control { follows: false });
                self.handle_request(id, text);
            }
            (Role::New | Role::Viewer, frame) => {
                self.set_role(id, Role::Viewer);
                self.body.handle_frame(&self.core, ConnId(id), frame);
            }
        }
    }

    pub(super) fn set_role(&mut self, id: u64, role: Role) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.role = role;
        }
    }

    /// Gives all viewers what the body has for them.
    pub(super) fn serve_viewers(&mut self) {
        for id in self.conns.keys().copied().collect::<Vec<_>>() {
            self.pump(id);
        }
        self.served = Instant::now();
    }

    /// Gives a viewer what the body has for it, as long as its socket takes it.
    fn pump(&mut self, id: u64) {
        let mut frames = std::mem::take(&mut self.frames);
        loop {
            match self.conns.get(&id) {
                Some(conn) if conn.closing && conn.is_drained() => {
                    self.drop_conn(id);
                    break;
                }
                Some(conn) if !conn.closing && conn.has_room() => {}
                Some(_) | None => break,
            }
            frames.clear();
            let last = self.body.poll_frames(&mut self.core, ConnId(id), &mut frames, HIGH_WATER);
            if frames.is_empty() && !last {
                break;
            }
            let sent = self.conns.get_mut(&id).is_some_and(|conn| {
                conn.closing = last;
                conn.send(&frames).is_ok()
            });
            if !sent {
                self.drop_conn(id);
                break;
            }
        }
        self.frames = frames;
        self.watch_conn(id);
    }

    fn watch_conn(&mut self, id: u64) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let wanted = Interest { read: true, write: !conn.is_drained() };
        if wanted != conn.interest && self.core.poll.modify(&conn.stream, id, wanted).is_ok() {
            conn.interest = wanted;
        }
    }

    /// A connection is being closed: what it is still to be sent has this long to leave.
    pub(super) fn cut_later(&mut self, id: u64) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.cut_at.get_or_insert(Instant::now() + CUT_AFTER);
        }
    }

    /// Cuts connections whose time is up.
    pub(super) fn cut_overdue(&mut self, now: Instant) {
        let overdue = |conn: &Conn| conn.cut_at.is_some_and(|at| now >= at);
        let ids: Vec<u64> = self.conns.iter().filter(|(_, conn)| overdue(conn)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.drop_conn(id));
    }

    pub(super) fn drop_conn(&mut self, id: u64) {
        if let Some(conn) = self.conns.remove(&id) {
            self.core.poll.remove(&conn.stream);
            self.body.handle_closed(&self.core, ConnId(id));
        }
    }
}
