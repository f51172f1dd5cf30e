//! Chooses what to send on a connection next: pongs and errors first, then other messages, then output in order.

use std::time::Duration;

use super::input_queue::Serial;
use super::stream::{Announcement, Step};
use super::{ConnId, Server, Transmit};
use crate::close;
use crate::message::{Attached, Permissions, PresenceEntry, ServerMessage, SnapshotLength, Verdict};
use crate::session::SessionInfo;

impl Server {
    /// The next thing to send on a connection. Call it only while the connection's buffer has room.
    pub fn poll_transmit(&mut self, id: ConnId, now: Duration) -> Option<Transmit> {
        self.tick(now);
        let conn = self.conns.get_mut(&id)?;
        if let Some(message) = conn.next_urgent() {
            return Some(Transmit::Text(message.into()));
        }
        if let Some((code, reason)) = conn.next_close() {
            return Some(Transmit::Close { code, reason });
        }
        if !conn.is_open() || conn.viewer.is_none() {
            return None;
        }
        if let Some(ping) = conn.next_ping(self.config.heartbeat, self.now) {
            return Some(Transmit::Text(ping.into()));
        }
        if let Some(message) = self.next_message(id) {
            return Some(Transmit::Text(message));
        }
        let next = self.next_output(id);
        if let Some(viewer) = self.conns.get_mut(&id).and_then(|conn| conn.viewer.as_mut()) {
            viewer.pending.sent_output = matches!(next, Some(Transmit::Output { .. }));
        }
        next
    }

    /// The next message that may overtake output, such as an ack or a title. There is none before `attached`.
    fn next_message(&mut self, id: ConnId) -> Option<ServerMessage> {
        let viewer = self.conns.get_mut(&id)?.viewer.as_mut().filter(|viewer| viewer.announced)?;
        let (pending, serial) = (&mut viewer.pending, viewer.serial);
        let exited = self.output.exit.is_some();
        if pending.ack.is_some_and(|at| at <= self.now || pending.sent_output || exited) {
            pending.ack = None;
            let input = self.input.get(serial).map_or(0, |record| record.written);
            return Some(ServerMessage::Ack { input });
        }
        if std::mem::take(&mut pending.title)
            && let Some(title) = self.title.clone()
        {
            return Some(ServerMessage::Title { title });
        }
        if std::mem::take(&mut pending.cwd)
            && let Some(cwd) = self.cwd.clone()
        {
            return Some(ServerMessage::Cwd { cwd });
        }
        if std::mem::take(&mut pending.bell) {
            return Some(ServerMessage::Bell);
        }
        if let Some(notice) = pending.next_notice() {
            return Some(notice);
        }
        pending.presence.take_if(|at| *at <= self.now).map(|_| self.presence(serial))
    }

    fn next_output(&mut self, id: ConnId) -> Option<Transmit> {
        loop {
            let viewer = self.conns.get_mut(&id)?.viewer.as_mut()?;
            match viewer.stream.poll(&self.output, self.now)? {
                Step::Send(transmit) => return Some(transmit),
                Step::RequestSnapshot => self.request_snapshot(id),
                Step::Announce(announcement) => {
                    viewer.announced = true;
                    return Some(Transmit::Text(self.announce(id, announcement)?));
                }
                Step::Exit => {
                    self.close(id, close::NORMAL, "the session exited");
                    let exit = self.output.exit.clone().unwrap_or_default();
                    let offset = self.output.end();
                    let exit = ServerMessage::Exit { code: exit.code, signal: exit.signal, offset };
                    return Some(Transmit::Text(exit));
                }
            }
        }
    }

    fn announce(&mut self, id: ConnId, at: Announcement) -> Option<ServerMessage> {
        let viewer = self.conns.get(&id).and_then(|conn| conn.viewer.as_ref())?;
        if let Some(reason) = at.reason.filter(|_| !at.first) {
            let Announcement { scope, missed, offset, size, bytes, .. } = at;
            return Some(ServerMessage::Snapshot { reason, scope, missed, offset, size, bytes });
        }
        Some(ServerMessage::Attached(Box::new(Attached {
            session: self.info(),
            epoch: self.config.epoch.clone(),
            offset: at.offset,
            verdict: at.verdict,
            reason: at.reason,
            missed: at.missed,
            snapshot: (at.verdict == Verdict::Snapshot).then_some(SnapshotLength { bytes: at.bytes }),
            size: at.size,
            input: viewer.input,
            you: Permissions { write: viewer.write, size: self.owner.is(&viewer.client) },
            heartbeat: self.config.heartbeat.as_millis() as u64,
            window: self.config.window,
        })))
    }

    /// The session's description, with its current size, offset and number of clients.
    pub fn info(&self) -> SessionInfo {
        let mut info = self.info.clone();
        if let Some(terminal) = &mut info.terminal {
            terminal.size = self.output.size();
        }
        SessionInfo { clients: self.clients(), epoch: self.config.epoch.clone(), offset: self.output.end(), ..info }
    }

    /// The attached clients, for the viewer with this serial.
    fn presence(&self, reader: Serial) -> ServerMessage {
        let mut viewers: Vec<_> = self.conns.values().filter_map(|conn| conn.viewer.as_ref()).collect();
        viewers.sort_by_key(|viewer| viewer.rank);
        let present = viewers.iter().map(|viewer| PresenceEntry {
            client: if viewer.serial == reader { &viewer.client.id } else { &viewer.public_id }.clone(),
            write: viewer.write,
            size: self.owner.is(&viewer.client),
        });
        ServerMessage::Presence { clients: present.collect() }
    }
}
