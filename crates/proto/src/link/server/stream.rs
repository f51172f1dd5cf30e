//! The output to one viewer: bytes in order, each change of size at its offset, and snapshots where bytes are skipped.
//!
//! A stream sends the byte at `sent` next. That offset advances only by sending output, or by a snapshot at a later
//! offset, which announces what it skips. So no byte is repeated, and no gap is silent.

use std::sync::Arc;
use std::time::Duration;

use super::flow::Flow;
use super::output_index::OutputIndex;
use super::snapshots::Sending;
use super::{Snapshot, Transmit};
use crate::Offset;
use crate::config::{LAG_WINDOWS, PACE, SNAPSHOT_RETRIES, ServerConfig};
use crate::message::{Cursor, Lag, Missed, Reason, Scope, ServerMessage, Verdict};
use crate::size::Size;

/// The state of the output to one viewer.
#[derive(Debug)]
pub(super) struct Stream {
    lag: Lag,
    window: u64,
    chunk: usize,
    /// The next byte to send.
    sent: Offset,
    /// The size of the viewer's terminal at `sent`.
    viewer_size: Size,
    flow: Flow,
    phase: Phase,
    repaint: Repaint,
    behind_since: Option<Duration>,
    /// When a part of a snapshot was last received or sent.
    pub(super) last_part: Duration,
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Step {
    /// Send `attached` or `snapshot`.
    Announce(Announcement),
    /// A snapshot is needed, see [`Stream::wanted_snapshot`].
    RequestSnapshot,
    Send(Transmit),
    /// All output is sent, and there will be no more.
    Exit,
}

/// Where the output to a viewer continues, and why.
#[derive(Clone, Debug)]
pub(super) struct Announcement {
    /// This is the answer to the hello.
    pub(super) first: bool,
    pub(super) verdict: Verdict,
    pub(super) reason: Option<Reason>,
    pub(super) scope: Scope,
    pub(super) missed: Option<Missed>,
    pub(super) offset: Offset,
    pub(super) size: Size,
    pub(super) bytes: u64,
}

#[derive(Debug)]
enum Phase {
    /// Sends nothing until a snapshot is ready.
    AwaitingSnapshot(RequiredSnapshot),
    /// Next sends the announcement, then the snapshot. An exact resume has none.
    Announcing(Announcement, Option<Arc<Snapshot>>),
    SendingSnapshot(Sending),
    SendingOutput,
    /// Everything is sent, including the exit.
    Ended,
}

/// A snapshot without which the stream cannot continue.
#[derive(Debug)]
struct RequiredSnapshot {
    /// It answers the hello.
    first: bool,
    reason: Reason,
    scope: Scope,
    /// The first byte that the snapshot skips; `None` if the viewer had no position in this output.
    from: Option<Offset>,
    since: Duration,
    request: SnapshotRequest,
}

/// The request for a snapshot. A stream has at most one pending at a time.
#[derive(Debug, Default)]
struct SnapshotRequest {
    /// When the pending request was made, and its scope.
    pending: Option<(Duration, Scope)>,
    /// How many snapshots were received and could not be used.
    rejected: u8,
}

impl SnapshotRequest {
    /// The snapshot received cannot be used; request another one.
    fn retry(&mut self) {
        *self = SnapshotRequest { pending: None, rejected: self.rejected.saturating_add(1) };
    }
}

/// A snapshot of the visible screen that is sent when the stream reaches its offset, so that no output is skipped.
#[derive(Debug)]
enum Repaint {
    None,
    Due(Reason, SnapshotRequest),
    Ready(Reason, Arc<Snapshot>),
}

impl Stream {
    /// A stream that resumes at `cursor`.
    pub(super) fn new(
        config: &ServerConfig,
        output: &OutputIndex,
        lag: Lag,
        cursor: Option<&Cursor>,
        now: Duration,
    ) -> Stream {
        let at = cursor.map_or(output.screen(), |cursor| cursor.offset);
        let window = config.window.max(1);
        let snapshot_reason = match cursor {
            None => Some((Reason::Fresh, None)),
            Some(cursor) if cursor.epoch != config.epoch => Some((Reason::Epoch, None)),
            Some(_) if at > output.end() => Some((Reason::Ahead, None)),
            Some(_) if at < output.start() => Some((Reason::Trimmed, Some(at))),
            Some(_) if lag == Lag::Skip && output.screen().saturating_sub(at) > LAG_WINDOWS * window => {
                Some((Reason::Lagging, Some(at)))
            }
            Some(_) => None,
        };
        let size = output.size_at(at);
        let phase = match snapshot_reason {
            Some((reason, from)) => Phase::AwaitingSnapshot(RequiredSnapshot {
                first: true,
                reason,
                scope: Scope::All,
                from,
                since: now,
                request: SnapshotRequest::default(),
            }),
            None => Phase::Announcing(Announcement::exact(at, size), None),
        };
        Stream {
            lag,
            window,
            chunk: config.chunk.max(1),
            sent: at,
            viewer_size: size,
            flow: Flow::new(window, config.chunk as u64, at),
            phase,
            repaint: Repaint::None,
            behind_since: None,
            last_part: now,
        }
    }

    /// The next step, or `None` until something changes.
    pub(super) fn poll(&mut self, output: &OutputIndex, now: Duration) -> Option<Step> {
        loop {
            match &mut self.phase {
                Phase::AwaitingSnapshot(required) => {
                    let screen_ready = required.first || output.screen() >= self.sent;
                    if required.request.pending.is_some() || !screen_ready {
                        return None;
                    }
                    required.request.pending = Some((now, required.scope));
                    return Some(Step::RequestSnapshot);
                }
                Phase::Announcing(announcement, snapshot) => {
                    let (announcement, snapshot) = (announcement.clone(), snapshot.take());
                    return Some(Step::Announce(self.announce(announcement, snapshot)));
                }
                Phase::SendingSnapshot(sending) => {
                    let part = sending.next_part(self.chunk);
                    if sending.is_done() {
                        self.phase = Phase::SendingOutput;
                    }
                    if let Some(part) = part {
                        self.last_part = now;
                        return Some(Step::Send(Transmit::SnapshotPart(part)));
                    }
                }
                Phase::SendingOutput => match self.poll_output(output, now) {
                    Progress::Step(step) => return Some(step),
                    Progress::PhaseChanged => {}
                    Progress::Wait => return None,
                },
                Phase::Ended => return None,
            }
        }
    }

    /// Whether the stream can continue only after the next [`Server::handle_screen`].
    ///
    /// [`Server::handle_screen`]: super::Server::handle_screen
    pub(super) fn has_viewer_awaiting_screen(&self, output: &OutputIndex) -> bool {
        let waits = match (&self.phase, &self.repaint) {
            (Phase::AwaitingSnapshot(required), _) => required.request.pending.is_none(),
            (Phase::SendingOutput, Repaint::Due(..)) => true,
            _ => false,
        };
        waits && output.screen() < output.end()
    }

    fn announce(&mut self, announcement: Announcement, snapshot: Option<Arc<Snapshot>>) -> Announcement {
        if announcement.first {
            // The cursor may have been from another epoch, or past the end.
            self.flow = Flow::new(self.window, self.chunk as u64, announcement.offset);
            self.sent = announcement.offset;
        }
        if announcement.verdict == Verdict::Snapshot {
            self.flow.begin_snapshot(self.sent, announcement.offset, announcement.bytes);
        }
        self.sent = announcement.offset;
        self.viewer_size = announcement.size;
        self.behind_since = None;
        self.repaint = Repaint::None;
        self.phase = match snapshot {
            None => Phase::SendingOutput,
            Some(snapshot) => Phase::SendingSnapshot(Sending::new(snapshot)),
        };
        announcement
    }

    fn poll_output(&mut self, output: &OutputIndex, now: Duration) -> Progress {
        if self.must_skip(output, now) {
            return self.skip(output, now);
        }
        let size = output.size_at(self.sent);
        if size != self.viewer_size {
            // Emulators reflow differently, so a viewer that follows the screen gets a snapshot of it.
            if size.cols() != self.viewer_size.cols() && self.lag == Lag::Skip {
                self.request_repaint(Reason::Resize);
            }
            self.viewer_size = size;
            return Progress::Step(Step::Send(Transmit::Text(ServerMessage::Resize(size))));
        }
        if let Some(progress) = self.poll_repaint(output, now) {
            return progress;
        }
        if let Some(transmit) = self.next_output(output, now) {
            return Progress::Step(Step::Send(transmit));
        }
        // Wait for a pending repaint before the exit. Without an emulator, a repaint may never be requested.
        let repainting = match &self.repaint {
            Repaint::None => false,
            Repaint::Due(_, request) => request.pending.is_some(),
            Repaint::Ready(..) => true,
        };
        if output.exit.is_some() && self.sent == output.end() && !repainting {
            self.phase = Phase::Ended;
            return Progress::Step(Step::Exit);
        }
        Progress::Wait
    }

    /// Whether to skip ahead: the log no longer has the byte at `sent`, or the viewer is too far behind.
    fn must_skip(&mut self, output: &OutputIndex, now: Duration) -> bool {
        if self.sent < output.start() {
            return true;
        }
        // A snapshot cannot take the viewer further than the screen.
        let behind = output.screen().saturating_sub(self.sent);
        if self.lag == Lag::Wait || behind <= LAG_WINDOWS * self.flow.allowance(now) {
            self.behind_since = None;
            return false;
        }
        let since = *self.behind_since.get_or_insert(now);
        behind > LAG_WINDOWS * self.window || now.saturating_sub(since) >= PACE
    }

    fn skip(&mut self, output: &OutputIndex, now: Duration) -> Progress {
        // One snapshot at a time: the next one only after the viewer has rendered this one.
        if self.flow.snapshot_in_flight() || output.screen() < self.sent {
            return Progress::Wait;
        }
        let (reason, scope) = match self.lag {
            Lag::Wait => (Reason::Trimmed, Scope::All),
            Lag::Skip => (Reason::Lagging, Scope::Screen),
        };
        // A pending repaint can be used for this as well, if it has the same scope.
        let request = match std::mem::replace(&mut self.repaint, Repaint::None) {
            Repaint::Due(_, request) => request,
            Repaint::None | Repaint::Ready(..) => SnapshotRequest::default(),
        };
        let from = Some(self.sent);
        let required = RequiredSnapshot { first: false, reason, scope, from, since: now, request };
        self.phase = Phase::AwaitingSnapshot(required);
        Progress::PhaseChanged
    }

    /// Sends the visible screen again, as soon as the stream is close to it.
    pub(super) fn request_repaint(&mut self, reason: Reason) {
        self.repaint = match std::mem::replace(&mut self.repaint, Repaint::None) {
            due @ Repaint::Due(..) => due,
            // This snapshot was made before the request, but the viewer gets it afterwards.
            ready @ Repaint::Ready(..) if reason == Reason::Repaint => ready,
            Repaint::None | Repaint::Ready(..) => Repaint::Due(reason, SnapshotRequest::default()),
        };
    }

    fn poll_repaint(&mut self, output: &OutputIndex, now: Duration) -> Option<Progress> {
        match &mut self.repaint {
            Repaint::Due(_, request) => {
                let near = output.screen() >= self.sent && output.screen() - self.sent <= self.window;
                if request.pending.is_some() || !near || self.flow.snapshot_in_flight() {
                    return None;
                }
                request.pending = Some((now, Scope::Screen));
                Some(Progress::Step(Step::RequestSnapshot))
            }
            Repaint::Ready(reason, snapshot) if snapshot.offset == self.sent => {
                if self.flow.snapshot_in_flight() {
                    return Some(Progress::Wait);
                }
                let announcement = Announcement {
                    first: false,
                    verdict: Verdict::Snapshot,
                    reason: Some(*reason),
                    scope: Scope::Screen,
                    missed: None,
                    offset: snapshot.offset,
                    size: snapshot.size,
                    bytes: snapshot.bytes(),
                };
                self.phase = Phase::Announcing(announcement, Some(snapshot.clone()));
                Some(Progress::PhaseChanged)
            }
            Repaint::None | Repaint::Ready(..) => None,
        }
    }

    fn next_output(&mut self, output: &OutputIndex, now: Duration) -> Option<Transmit> {
        let mut ready = output.len_at_same_size(self.sent);
        match &self.repaint {
            Repaint::Ready(_, snapshot) => ready = ready.min(snapshot.offset.saturating_sub(self.sent)),
            // A viewer that is ahead of the screen would never get a repaint. So it stays behind the screen, and waits
            // for the snapshot if an earlier one came too late.
            Repaint::Due(_, request) if output.exit.is_none() => {
                let too_late = request.pending.is_some() && request.rejected > 0;
                ready = if too_late { 0 } else { ready.min(output.screen().saturating_sub(self.sent)) };
            }
            Repaint::None | Repaint::Due(..) => {}
        }
        let in_flight = self.flow.in_flight(self.sent);
        let room = self.flow.allowance(now).saturating_sub(in_flight);
        let len = ready.min(room).min(self.chunk as u64);
        // A tiny frame now would make all later frames tiny, so wait for the next ack.
        let tiny = len < ready && len < self.chunk as u64 / 4 && in_flight > 0;
        if len == 0 || tiny {
            return None;
        }
        let from = self.sent;
        self.sent += len;
        Some(Transmit::Output { from, len: len as usize })
    }

    /// The scope of the snapshot that the stream waits for, and since when.
    pub(super) fn wanted_snapshot(&self) -> Option<(Duration, Scope)> {
        match (&self.phase, &self.repaint) {
            (Phase::AwaitingSnapshot(required), _) => required.request.pending,
            (_, Repaint::Due(_, request)) => request.pending,
            (_, Repaint::None | Repaint::Ready(..)) => None,
        }
    }

    /// The snapshot that the stream keeps in memory.
    pub(super) fn holds(&self) -> Option<&Arc<Snapshot>> {
        match (&self.phase, &self.repaint) {
            (Phase::Announcing(_, Some(snapshot)), _) | (_, Repaint::Ready(_, snapshot)) => Some(snapshot),
            (Phase::SendingSnapshot(sending), _) => Some(sending.snapshot()),
            _ => None,
        }
    }

    /// Whether [`Stream::handle_snapshot`] would use this snapshot, so that no other one need be made.
    pub(super) fn can_use(&self, snapshot: &Snapshot, output: &OutputIndex) -> bool {
        fits(snapshot, output) && snapshot.offset >= self.oldest_useful().max(output.start())
    }

    /// An older snapshot would take the viewer back.
    fn oldest_useful(&self) -> Offset {
        match &self.phase {
            Phase::AwaitingSnapshot(required) if required.first => required.from.unwrap_or(0),
            _ => self.sent,
        }
    }

    /// A requested snapshot is ready. It is ignored if no request is pending.
    pub(super) fn handle_snapshot(&mut self, snapshot: &Arc<Snapshot>, output: &OutputIndex, now: Duration) {
        self.last_part = now;
        let (fits, useful) = (fits(snapshot, output), snapshot.offset >= self.oldest_useful());
        match &mut self.phase {
            Phase::AwaitingSnapshot(required)
                if required.request.pending.is_some_and(|(_, scope)| scope != required.scope) =>
            {
                required.request = SnapshotRequest::default();
            }
            Phase::AwaitingSnapshot(required) if required.request.pending.is_some() => {
                // An ended session has no emulator to make a newer one. What it skips is announced as missed.
                let newest = output.exit.is_some() && output.screen() < output.start();
                let usable = newest || (useful && snapshot.offset >= output.start());
                if usable && (fits || required.request.rejected >= SNAPSHOT_RETRIES) {
                    self.phase = announce_snapshot(required, snapshot.clone(), output);
                } else {
                    required.request.retry();
                }
            }
            Phase::AwaitingSnapshot(_)
            | Phase::Announcing(..)
            | Phase::SendingSnapshot(_)
            | Phase::SendingOutput
            | Phase::Ended => {
                if let Repaint::Due(reason, request) = &mut self.repaint
                    && request.pending.is_some()
                {
                    if useful && (fits || request.rejected >= SNAPSHOT_RETRIES) {
                        self.repaint = Repaint::Ready(*reason, snapshot.clone());
                    } else {
                        request.retry();
                    }
                }
            }
        }
    }

    /// The viewer has rendered everything before `offset`. Returns false if that is more than was sent.
    pub(super) fn handle_ack(&mut self, offset: Offset, now: Duration) -> bool {
        // A viewer cannot have rendered a snapshot that is still being sent; the ack is for the output before it.
        let early = matches!(self.phase, Phase::SendingSnapshot(_)) && offset == self.sent;
        if offset <= self.sent && !early {
            self.flow.ack(offset, now);
        }
        offset <= self.sent
    }

    /// When to close the connection, unless a pending snapshot is ready by then.
    pub(super) fn snapshot_deadline(&self, within: Duration) -> Option<Duration> {
        let since = match (&self.phase, &self.repaint) {
            (Phase::AwaitingSnapshot(required), _) => Some(required.since),
            (_, Repaint::Due(_, request)) => request.pending.map(|(since, _)| since),
            (_, Repaint::None | Repaint::Ready(..)) => None,
        };
        since.map(|since| since + within)
    }

    /// When to skip ahead, unless the viewer catches up.
    pub(super) fn lag_deadline(&self) -> Option<Duration> {
        let sending = matches!(self.phase, Phase::SendingOutput) && !self.flow.snapshot_in_flight();
        self.behind_since.filter(|_| sending).map(|since| since + PACE)
    }
}

/// The result of an attempt to send output.
enum Progress {
    Step(Step),
    PhaseChanged,
    /// Nothing can be sent until something changes.
    Wait,
}

/// Whether the snapshot has the size that the output has there.
fn fits(snapshot: &Snapshot, output: &OutputIndex) -> bool {
    snapshot.offset <= output.end() && snapshot.size == output.size_at(snapshot.offset)
}

fn announce_snapshot(required: &RequiredSnapshot, snapshot: Arc<Snapshot>, output: &OutputIndex) -> Phase {
    // After a crash, the last saved screen may be older than the log. The bytes in between are missed.
    let offset = snapshot.offset.max(output.start());
    let from = required.from.or((offset > snapshot.offset).then_some(snapshot.offset));
    let announcement = Announcement {
        first: required.first,
        verdict: Verdict::Snapshot,
        reason: Some(required.reason),
        scope: required.scope,
        missed: from.filter(|from| *from < offset).map(|from| Missed { from, to: offset }),
        offset,
        size: snapshot.size,
        bytes: snapshot.bytes(),
    };
    Phase::Announcing(announcement, Some(snapshot))
}

impl Announcement {
    fn exact(offset: Offset, size: Size) -> Announcement {
        Announcement {
            first: true,
            verdict: Verdict::Exact,
            reason: None,
            scope: Scope::All,
            missed: None,
            offset,
            size,
            bytes: 0,
        }
    }
}
