//! The snapshots of one session: each is made once for all viewers that wait for it, and those on their way are
//! bounded in bytes.
//!
//! A viewer that does not read keeps its snapshot in memory. So viewers share them, and when there are too many bytes,
//! the viewers that hold the least useful one are closed. A new snapshot never waits for a viewer.

use std::cmp::Reverse;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;

use super::caller::Caller;
use super::output_index::OutputIndex;
use super::viewer::Viewer;
use super::{ConnId, Server, ServerEvent};
use crate::Offset;
use crate::close;
use crate::config::LAG_WINDOWS;
use crate::message::Scope;
use crate::size::Size;

/// The state of the terminal at one offset, as bytes that restore it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub offset: Offset,
    /// The terminal's size at `offset`.
    pub size: Size,
    /// Escape sequences, in order. In pieces, because one long buffer would be copied while it grows.
    pub pieces: Vec<Bytes>,
}

impl Snapshot {
    /// The sum over all pieces.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }
}

/// What a snapshot contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotKind {
    pub scope: Scope,
    /// The most lines of scrollback to include; 0 for [`Scope::Screen`].
    pub scrollback: u32,
}

/// The snapshot that is being made, and those that viewers hold.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// What the driver makes now, and since when. It makes one at a time, so that a viewer that matters more never
    /// waits for more than one.
    making: Option<(Shared, Duration)>,
    /// Freed when the last viewer has sent it.
    held: Vec<(Shared, Weak<Snapshot>)>,
}

/// What viewers must have in common to share a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    kind: SnapshotKind,
    /// How often the terminal had been resized when the snapshot was requested. A resize changes the screen, even if it is
    /// undone at the same offset.
    resizes: u64,
}

impl Snapshots {
    /// The snapshots that viewers hold and others can share.
    fn shared(&self, shared: Shared) -> impl Iterator<Item = Arc<Snapshot>> {
        self.held.iter().filter(move |(other, _)| *other == shared).filter_map(|(_, snapshot)| snapshot.upgrade())
    }

    fn held_bytes(&mut self) -> u64 {
        self.held.retain(|(_, snapshot)| snapshot.strong_count() > 0);
        self.held.iter().filter_map(|(_, snapshot)| snapshot.upgrade()).map(|snapshot| snapshot.bytes()).sum()
    }
}

/// A part of a snapshot on its way to one viewer.
#[derive(Debug)]
pub(super) struct Sending {
    snapshot: Arc<Snapshot>,
    /// The next piece to send, and how much of it is sent.
    piece: usize,
    at: usize,
}

impl Sending {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> Sending {
        let mut sending = Sending { snapshot, piece: 0, at: 0 };
        sending.skip_sent();
        sending
    }

    /// The next part, of at most `max` bytes; `None` once all are sent.
    pub(super) fn next_part(&mut self, max: usize) -> Option<Bytes> {
        let piece = self.snapshot.pieces.get(self.piece)?;
        let part = piece.slice(self.at..piece.len().min(self.at.saturating_add(max)));
        self.at += part.len();
        self.skip_sent();
        Some(part)
    }

    pub(super) fn is_done(&self) -> bool {
        self.piece >= self.snapshot.pieces.len()
    }

    pub(super) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    fn skip_sent(&mut self) {
        while self.snapshot.pieces.get(self.piece).is_some_and(|piece| piece.len() == self.at) {
            (self.piece, self.at) = (self.piece + 1, 0);
        }
    }
}

/// Whose snapshot is made first, and taken away last.
fn priority(viewer: &Viewer) -> u8 {
    match (&viewer.client.caller, viewer.write) {
        (Caller::Owner, _) => 2,
        (Caller::Gateway(_), true) => 1,
        (Caller::Gateway(_), false) => 0,
    }
}

impl Server {
    /// A requested snapshot is ready. It is dropped if no viewer waits for it.
    pub fn handle_snapshot(&mut self, kind: SnapshotKind, snapshot: Snapshot) {
        // A late one may be from before every resize.
        let made = self.snapshots.making.take_if(|(made, _)| made.kind == kind);
        let shared = made.map_or(Shared { kind, resizes: 0 }, |(made, _)| made);
        let waits = |viewer: &Viewer| viewer.wanted_snapshot().is_some_and(|(_, wanted)| wanted == kind);
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        let most = viewers.filter(|viewer| waits(viewer)).map(priority).max();
        if let Some(most) = most
            && !self.make_room_for(snapshot.bytes(), most)
        {
            let viewers = self.conns.iter().filter_map(|(id, conn)| Some((*id, conn.viewer.as_ref()?)));
            let waiting: Vec<ConnId> = viewers.filter(|(_, viewer)| waits(viewer)).map(|(id, _)| id).collect();
            for id in waiting {
                self.close(id, close::TRY_AGAIN_LATER, "viewers that may do more hold too many snapshots");
            }
        } else if most.is_some() {
            let snapshot = Arc::new(snapshot);
            let viewers = self.conns.values_mut().filter_map(|conn| conn.viewer.as_mut());
            for viewer in viewers.filter(|viewer| waits(viewer)) {
                viewer.stream.handle_snapshot(&snapshot, &self.output, self.now);
            }
            self.snapshots.held.push((shared, Arc::downgrade(&snapshot)));
        }
        self.make_next_snapshot();
    }

    /// A viewer waits for a snapshot: one that another viewer holds, if it is recent, or else a new one.
    pub(super) fn request_snapshot(&mut self, id: ConnId) {
        let Some(viewer) = self.conns.get_mut(&id).and_then(|conn| conn.viewer.as_mut()) else { return };
        let Some((_, kind)) = viewer.wanted_snapshot() else { return };
        let shared = Shared { kind, resizes: self.resizes };
        let newest = self.snapshots.shared(shared).max_by_key(|snapshot| snapshot.offset);
        let behind = LAG_WINDOWS * self.config.chunk as u64;
        if let Some(snapshot) = newest.filter(|snapshot| is_recent(snapshot, &self.output, behind))
            && viewer.stream.can_use(&snapshot, &self.output)
        {
            return viewer.stream.handle_snapshot(&snapshot, &self.output, self.now);
        }
        self.make_next_snapshot();
    }

    /// When to ask for another snapshot, unless the one that is being made is ready by then.
    pub(super) fn making_deadline(&self) -> Option<Duration> {
        let mut viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        let (_, since) = self.snapshots.making?;
        viewers.any(|viewer| viewer.wanted_snapshot().is_some()).then_some(since + self.config.snapshot_within)
    }

    /// Asks the driver for the next snapshot, if it makes none and a viewer waits.
    pub(super) fn make_next_snapshot(&mut self) {
        let within = self.config.snapshot_within;
        if self.snapshots.making.is_some_and(|(_, since)| self.now < since + within) {
            return;
        }
        let viewers = self.conns.values().filter_map(|conn| conn.viewer.as_ref());
        let waiting = viewers.filter_map(|viewer| Some((viewer, viewer.wanted_snapshot()?)));
        let next = waiting.max_by_key(|(viewer, (since, _))| (priority(viewer), Reverse((*since, viewer.rank))));
        self.snapshots.making = next.map(|(_, (_, kind))| (Shared { kind, resizes: self.resizes }, self.now));
        if let Some((made, _)) = self.snapshots.making {
            self.events.push_back(ServerEvent::NeedSnapshot(made.kind));
        }
    }

    /// Closes viewers that hold snapshots until one for viewers of this priority fits. Those of readers go first, and of
    /// those the one whose viewers have not read for longest. Returns false if only viewers of a higher priority are left.
    fn make_room_for(&mut self, bytes: u64, most: u8) -> bool {
        while self.snapshots.held_bytes() + bytes > self.config.snapshots {
            let viewers = || self.conns.iter().filter_map(|(id, conn)| Some((id, conn.viewer.as_ref()?)));
            let holders = |snapshot: &Arc<Snapshot>| {
                let snapshot = Arc::as_ptr(snapshot);
                viewers()
                    .filter(move |(_, viewer)| viewer.stream.holds().is_some_and(|held| Arc::as_ptr(held) == snapshot))
            };
            let held = self.snapshots.held.iter().filter_map(|(_, snapshot)| snapshot.upgrade());
            let priority_of = |snapshot: &Arc<Snapshot>| holders(snapshot).map(|(_, viewer)| priority(viewer)).max();
            let last_part =
                |snapshot: &Arc<Snapshot>| holders(snapshot).map(|(_, viewer)| viewer.stream.last_part).max();
            let victim = held.min_by_key(|snapshot| (priority_of(snapshot), last_part(snapshot)));
            if victim.as_ref().and_then(priority_of).is_some_and(|priority| priority > most) {
                return false;
            }
            let closing: Vec<ConnId> = victim.iter().flat_map(holders).map(|(id, _)| *id).collect();
            if closing.is_empty() {
                break;
            }
            for id in closing {
                self.close(id, close::TRY_AGAIN_LATER, "the snapshot was not read in time");
            }
        }
        true
    }
}

/// Whether a viewer that starts with this snapshot is not behind the others for long.
fn is_recent(snapshot: &Snapshot, output: &OutputIndex, behind: u64) -> bool {
    output.screen().saturating_sub(snapshot.offset) <= behind && snapshot.size == output.size()
}

impl Viewer {
    /// The snapshot that the viewer waits for, and since when.
    fn wanted_snapshot(&self) -> Option<(Duration, SnapshotKind)> {
        let (since, scope) = self.stream.wanted_snapshot()?;
        let scrollback = if scope == Scope::All { self.scrollback } else { 0 };
        Some((since, SnapshotKind { scope, scrollback }))
    }
}
