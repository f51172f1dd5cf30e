//! The session's connections: accepts them, reads them, and sends viewers their frames.

use std::time::{Duration, Instant};

use bowline_proto::config::VIEWERS;
use bowline_proto::frame::Frame;
use bowline_proto::link::ConnId;

use super::conn::{BATCH, Conn, ConnRead, Role};
use super::poll::{Interest, Ready};
use super::session::Session;

/// How long a connection that is being closed may take to read its last frames.
const CLOSE_AFTER: Duration = Duration::from_secs(10);
/// The most connections at once, if the limit of open files allows. Further ones are closed at once.
const MAX_CONNS: usize = 4096;
/// Connections reserved for control requests, so that the owner can end a session however many viewers it has.
const RESERVED_CONNS: usize = 64;
/// Descriptors reserved for other uses. Without a free one `accept` would fail, and the poll would report
/// the listener over and over.
const RESERVED_FILES: usize = 64;

/// The most viewers at once.
pub(super) fn max_viewers() -> usize {
    VIEWERS.min(max_conns().saturating_sub(RESERVED_CONNS))
}

fn max_conns() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    files.map_or(MAX_CONNS, |files| MAX_CONNS.min((files as usize).saturating_sub(RESERVED_FILES)))
}

impl Session {
    pub(super) fn accept(&mut self) {
        let max = max_conns();
        while let Ok((stream, _)) = self.socket.listener.accept() {
            let peer = rustix::net::sockopt::socket_peercred(&stream).map(|peer| peer.uid);
            let is_owner = peer.is_ok_and(|uid| uid == rustix::process::geteuid() || uid.is_root());
            if !is_owner || self.conns.len() >= max {
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
            self.update_conn_interest(id);
        }
        let Some(conn) = self.conns.get_mut(&id).filter(|_| ready.read) else { return };
        if conn.closing {
            if ready.hung_up || conn.read(&mut self.scratch) == ConnRead::Closed {
                return self.drop_conn(id);
            }
            conn.received.clear(); // a closing connection's messages are ignored
            return;
        }
        let input = conn.read(&mut self.scratch);
        self.handle_frames(id);
        if input == ConnRead::Closed {
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
                Err(_) => return self.drop_conn(id), // not our protocol: the next frame's start is unknown
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
                self.set_role(id, Role::Control { follows: false, brief: false });
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

    /// Sends all viewers their frames.
    pub(super) fn serve_viewers(&mut self) {
        for id in self.conns.keys().copied().collect::<Vec<_>>() {
            self.send_frames(id);
        }
        self.last_served = Instant::now();
    }

    /// Sends a viewer its frames, until there are no more or its buffer is full.
    fn send_frames(&mut self, id: u64) {
        let mut frames = std::mem::take(&mut self.frames);
        loop {
            match self.conns.get(&id) {
                Some(conn) if conn.closing && conn.is_drained() => {
                    self.drop_conn(id);
                    break;
                }
                Some(conn) if !conn.closing && conn.is_drained() => {}
                Some(_) | None => break,
            }
            frames.clear();
            let last = self.body.poll_frames(&mut self.core, ConnId(id), &mut frames, BATCH);
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
        self.update_conn_interest(id);
    }

    fn update_conn_interest(&mut self, id: u64) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let wanted = Interest { read: true, write: !conn.is_drained() };
        if wanted != conn.interest && self.core.poll.modify(&conn.stream, id, wanted).is_ok() {
            conn.interest = wanted;
        }
    }

    /// Limits how long a connection that is being closed may take to read the rest.
    pub(super) fn set_close_deadline(&mut self, id: u64) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.close_deadline.get_or_insert(Instant::now() + CLOSE_AFTER);
        }
    }

    /// Closes connections whose deadline has passed.
    pub(super) fn close_overdue(&mut self, now: Instant) {
        let overdue = |conn: &Conn| conn.close_deadline.is_some_and(|at| now >= at);
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
