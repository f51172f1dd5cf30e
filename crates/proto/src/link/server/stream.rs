//! What one viewer is sent of the output: bytes in order, sizes at their place, snapshots where bytes cannot do.
//!
//! A stream is at `sent`, and next sends the byte there. It leaves that place only by sending output, or by a
//! snapshot of a later place, which says what was skipped. So nothing is repeated and no gap is silent.

use std::time::Duration;

use bytes::Bytes;

use super::flow::Flow;
use super::tape::Tape;
use super::{Snapshot, Transmit};
use crate::Offset;
use crate::config::{LAG_WINDOWS, PACE, SNAPSHOT_RETRIES, ServerConfig};
use crate::message::{Cursor, Lag, Missed, Reason, Scope, ServerMessage, Verdict};
use crate::size::Size;

/// The output side of one viewer.
#[derive(Debug)]
pub(super) struct Stream {
    lag: Lag,
    window: u64,
    chunk: usize,
    sent: Offset,
    /// The size that the viewer's emulator has at `sent`.
    told: Size,
    flow: Flow,
    phase: Phase,
    repaint: Repaint,
    behind_since: Option<Duration>,
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Step {
    /// Tell the viewer where its output goes on from.
    Announce(Announcement),
    /// Ask the screen for a snapshot.
    Ask(Scope),
    /// Send this.
    Send(Transmit),
    /// All output is sent, and there will be no more.
    Exit,
}

/// Where a stream goes on, and why there.
#[derive(Clone, Debug)]
pub(super) struct Announcement {
    /// It answers the hello.
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
    /// Holds its output for a snapshot.
    Wanting(Want),
    /// Has what it needs to say where it goes on.
    Announcing(Announcement, Bytes),
    /// Sends the rest of a snapshot.
    Painting(Bytes),
    /// Sends output.
    Flowing,
    /// Has sent everything.
    Ended,
}

/// A snapshot without which the stream cannot go on.
#[derive(Debug)]
struct Want {
    first: bool,
    reason: Reason,
    scope: Scope,
    /// The first byte that will be missed, if that makes sense for the reason.
    from: Option<Offset>,
    since: Duration,
    ask: Ask,
}

/// One snapshot is outstanding at a time.
#[derive(Debug, Default)]
struct Ask {
    /// Since when it is outstanding, and how much of the terminal it is to have.
    out: Option<(Duration, Scope)>,
    refused: u8,
}

impl Ask {
    /// The answer was of no use.
    fn again(&mut self) {
        *self = Ask { out: None, refused: self.refused.saturating_add(1) };
    }
}

/// A snapshot of the visible screen that is painted when the stream comes by its offset: nothing is held or missed.
#[derive(Debug)]
enum Repaint {
    None,
    Due(Reason, Ask),
    Ready(Reason, Snapshot),
}

impl Stream {
    /// A stream for a hello with this cursor.
    pub(super) fn new(config: &ServerConfig, tape: &Tape, lag: Lag, cursor: Option<&Cursor>, now: Duration) -> Stream {
        let at = cursor.map_or(tape.screen(), |cursor| cursor.offset);
        let window = config.window.max(1);
        let refused = match cursor {
            None => Some((Reason::Fresh, None)),
            Some(cursor) if cursor.epoch != config.epoch => Some((Reason::Epoch, None)),
            Some(_) if at > tape.end() => Some((Reason::Ahead, None)),
            Some(_) if at < tape.start() => Some((Reason::Trimmed, Some(at))),
            Some(_) if lag == Lag::Skip && tape.screen().saturating_sub(at) > LAG_WINDOWS * window => {
                Some((Reason::Lagging, Some(at)))
            }
            Some(_) => None,
        };
        let size = tape.size_at(at);
        let phase = match refused {
            Some((reason, from)) => {
                Phase::Wanting(Want { first: true, reason, scope: Scope::All, from, since: now, ask: Ask::default() })
            }
            None => Phase::Announcing(Announcement::exact(at, size), Bytes::new()),
        };
        Stream {
            lag,
            window,
            chunk: config.chunk.max(1),
            sent: at,
            told: size,
            flow: Flow::new(window, config.chunk as u64, at),
            phase,
            repaint: Repaint::None,
            behind_since: None,
        }
    }

    /// The next step, or nothing until something changes.
    pub(super) fn poll(&mut self, tape: &Tape, now: Duration) -> Option<Step> {
        loop {
            match &mut self.phase {
                Phase::Wanting(want) => {
                    let enough = want.first || tape.screen() >= self.sent;
                    if want.ask.out.is_some() || !enough {
                        return None;
                    }
                    want.ask.out = Some((now, want.scope));
                    return Some(Step::Ask(want.scope));
                }
                Phase::Announcing(announcement, bytes) => {
                    let (announcement, bytes) = (announcement.clone(), std::mem::take(bytes));
                    return Some(Step::Announce(self.announce(announcement, bytes)));
                }
                Phase::Painting(rest) => {
                    let part = rest.split_to(self.chunk.min(rest.len()));
                    if rest.is_empty() {
                        self.phase = Phase::Flowing;
                    }
                    return Some(Step::Send(Transmit::SnapshotPart(part)));
                }
                Phase::Flowing => match self.flow(tape, now) {
                    Flowed::Step(step) => return Some(step),
                    Flowed::Again => {}
                    Flowed::Wait => return None,
                },
                Phase::Ended => return None,
            }
        }
    }

    /// Whether it goes on only when the screen has come further: see [`Server::handle_screen`].
    ///
    /// [`Server::handle_screen`]: super::Server::handle_screen
    pub(super) fn waits_for_screen(&self, tape: &Tape) -> bool {
        let unasked = match (&self.phase, &self.repaint) {
            (Phase::Wanting(want), _) => want.ask.out.is_none(),
            (Phase::Flowing, Repaint::Due(..)) => true,
            _ => false,
        };
        unasked && tape.screen() < tape.end()
    }

    fn announce(&mut self, announcement: Announcement, bytes: Bytes) -> Announcement {
        if announcement.first {
            // The cursor may have been of another life, or of no place at all.
            self.flow = Flow::new(self.window, self.chunk as u64, announcement.offset);
            self.sent = announcement.offset;
        }
        if announcement.verdict == Verdict::Snapshot {
            self.flow.jump(self.sent, announcement.offset, announcement.bytes);
        }
        self.sent = announcement.offset;
        self.told = announcement.size;
        self.behind_since = None;
        self.repaint = Repaint::None;
        self.phase = if bytes.is_empty() { Phase::Flowing } else { Phase::Painting(bytes) };
        announcement
    }

    fn flow(&mut self, tape: &Tape, now: Duration) -> Flowed {
        if self.must_skip(tape, now) {
            return self.skip(tape, now);
        }
        let size = tape.size_at(self.sent);
        if size != self.told {
            // Emulators reflow differently, so a viewer that follows the screen gets the owner's.
            if size.cols() != self.told.cols() && self.lag == Lag::Skip {
                self.want_repaint(Reason::Resize);
            }
            self.told = size;
            return Flowed::Step(Step::Send(Transmit::Text(ServerMessage::Resize(size))));
        }
        if let Some(flowed) = self.paint(tape, now) {
            return flowed;
        }
        if let Some(output) = self.output(tape, now) {
            return Flowed::Step(Step::Send(output));
        }
        // A screen that was asked for is waited for; one that cannot come, in the files of the dead, is not.
        let painting = matches!(&self.repaint, Repaint::Due(_, Ask { out: Some(_), .. }) | Repaint::Ready(..));
        if tape.exit.is_some() && self.sent == tape.end() && !painting {
            self.phase = Phase::Ended;
            return Flowed::Step(Step::Exit);
        }
        Flowed::Wait
    }

    /// The bytes at `sent` are gone, or getting them all would keep the viewer in the past.
    fn must_skip(&mut self, tape: &Tape, now: Duration) -> bool {
        if self.sent < tape.start() {
            return true;
        }
        // The screen is as far as a snapshot can bring it.
        let behind = tape.screen().saturating_sub(self.sent);
        if self.lag == Lag::Wait || behind <= LAG_WINDOWS * self.flow.allowance(now) {
            self.behind_since = None;
            return false;
        }
        let since = *self.behind_since.get_or_insert(now);
        behind > LAG_WINDOWS * self.window || now.saturating_sub(since) >= PACE
    }

    fn skip(&mut self, tape: &Tape, now: Duration) -> Flowed {
        // One snapshot at a time: the next when the viewer has rendered this one.
        if self.flow.is_painting() || tape.screen() < self.sent {
            return Flowed::Wait;
        }
        let (reason, scope) = match self.lag {
            Lag::Wait => (Reason::Trimmed, Scope::All),
            Lag::Skip => (Reason::Lagging, Scope::Screen),
        };
        // An outstanding repaint answers this need as well, unless that is for the whole terminal.
        let ask = match std::mem::replace(&mut self.repaint, Repaint::None) {
            Repaint::Due(_, ask) => ask,
            Repaint::None | Repaint::Ready(..) => Ask::default(),
        };
        let from = Some(self.sent);
        self.phase = Phase::Wanting(Want { first: false, reason, scope, from, since: now, ask });
        Flowed::Again
    }

    /// The screen is to be painted again, as soon as the stream is near it.
    pub(super) fn want_repaint(&mut self, reason: Reason) {
        self.repaint = match std::mem::replace(&mut self.repaint, Repaint::None) {
            Repaint::Due(reason, ask) => Repaint::Due(reason, ask),
            // It may have been made before the request, but it is painted after it.
            ready @ Repaint::Ready(..) if reason == Reason::Repaint => ready,
            Repaint::None | Repaint::Ready(..) => Repaint::Due(reason, Ask::default()),
        };
    }

    fn paint(&mut self, tape: &Tape, now: Duration) -> Option<Flowed> {
        match &mut self.repaint {
            Repaint::Due(_, ask) => {
                let near = tape.screen() >= self.sent && tape.screen() - self.sent <= self.window;
                if ask.out.is_some() || !near || self.flow.is_painting() {
                    return None;
                }
                ask.out = Some((now, Scope::Screen));
                Some(Flowed::Step(Step::Ask(Scope::Screen)))
            }
            Repaint::Ready(reason, snapshot) if snapshot.offset == self.sent => {
                if self.flow.is_painting() {
                    return Some(Flowed::Wait);
                }
                let announcement = Announcement {
                    first: false,
                    verdict: Verdict::Snapshot,
                    reason: Some(*reason),
                    scope: Scope::Screen,
                    missed: None,
                    offset: snapshot.offset,
                    size: snapshot.size,
                    bytes: snapshot.bytes.len() as u64,
                };
                self.phase = Phase::Announcing(announcement, snapshot.bytes.clone());
                Some(Flowed::Again)
            }
            Repaint::None | Repaint::Ready(..) => None,
        }
    }

    fn output(&mut self, tape: &Tape, now: Duration) -> Option<Transmit> {
        let mut ready = tape.run(self.sent);
        match &self.repaint {
            Repaint::Ready(_, snapshot) => ready = ready.min(snapshot.offset.saturating_sub(self.sent)),
            // A viewer that outruns the screen would never be painted: it stays behind it, and waits if that was not
            // enough.
            Repaint::Due(_, ask) if tape.exit.is_none() => {
                let outran = ask.out.is_some() && ask.refused > 0;
                ready = if outran { 0 } else { ready.min(tape.screen().saturating_sub(self.sent)) };
            }
            Repaint::None | Repaint::Due(..) => {}
        }
        let in_flight = self.flow.in_flight(self.sent);
        let room = self.flow.allowance(now).saturating_sub(in_flight);
        let len = ready.min(room).min(self.chunk as u64);
        // A sliver now would make slivers of all that follows: wait for the next ack.
        let sliver = len < ready && len < self.chunk as u64 / 4 && in_flight > 0;
        if len == 0 || sliver {
            return None;
        }
        let from = self.sent;
        self.sent += len;
        Some(Transmit::Output { from, len: len as usize })
    }

    /// A snapshot that was asked for is here. Nothing is done with one that nobody waits for.
    pub(super) fn snapshot(&mut self, snapshot: Snapshot, tape: &Tape) {
        let fits = snapshot.offset <= tape.end() && snapshot.size == tape.size_at(snapshot.offset);
        match &mut self.phase {
            Phase::Wanting(want) if want.ask.out.is_some_and(|(_, scope)| scope != want.scope) => {
                want.ask = Ask::default();
            }
            Phase::Wanting(want) if want.ask.out.is_some() => {
                let useful = match want.first {
                    true => snapshot.offset >= want.from.unwrap_or(0),
                    false => snapshot.offset >= self.sent,
                };
                // In the files of the dead, no newer screen can come.
                let newest = tape.exit.is_some() && tape.screen() < tape.start();
                let replayable = snapshot.offset >= tape.start() || newest;
                if useful && replayable && (fits || want.ask.refused >= SNAPSHOT_RETRIES) {
                    self.phase = accept(want, snapshot, tape);
                } else {
                    want.ask.again();
                }
            }
            Phase::Wanting(_) | Phase::Announcing(..) | Phase::Painting(_) | Phase::Flowing | Phase::Ended => {
                if let Repaint::Due(reason, ask) = &mut self.repaint
                    && ask.out.is_some()
                {
                    if snapshot.offset >= self.sent && (fits || ask.refused >= SNAPSHOT_RETRIES) {
                        self.repaint = Repaint::Ready(*reason, snapshot);
                    } else {
                        ask.again();
                    }
                }
            }
        }
    }

    /// The viewer rendered up to here. False when that is more than it was sent.
    pub(super) fn ack(&mut self, offset: Offset, now: Duration) -> bool {
        // While a snapshot is still being sent, the viewer cannot have rendered it: this is about what came before.
        let early = matches!(self.phase, Phase::Painting(_)) && offset == self.sent;
        if offset <= self.sent && !early {
            self.flow.ack(offset, now);
        }
        offset <= self.sent
    }

    /// When a snapshot must have come, or else the viewer resumes on a new connection.
    pub(super) fn deadline(&self, within: Duration) -> Option<Duration> {
        let since = match (&self.phase, &self.repaint) {
            (Phase::Wanting(want), _) => Some(want.since),
            (_, Repaint::Due(_, ask)) => ask.out.map(|(since, _)| since),
            (_, Repaint::None | Repaint::Ready(..)) => None,
        };
        since.map(|since| since + within)
    }

    /// When the viewer will have been behind for too long, unless it catches up.
    pub(super) fn lag_deadline(&self) -> Option<Duration> {
        let flowing = matches!(self.phase, Phase::Flowing) && !self.flow.is_painting();
        self.behind_since.filter(|_| flowing).map(|since| since + PACE)
    }
}

enum Flowed {
    Step(Step),
    Again,
    Wait,
}

fn accept(want: &Want, snapshot: Snapshot, tape: &Tape) -> Phase {
    // Only files left by a killed session can have a screen older than their log: the bytes between are missed.
    let offset = snapshot.offset.max(tape.start());
    let from = want.from.or((offset > snapshot.offset).then_some(snapshot.offset));
    let announcement = Announcement {
        first: want.first,
        verdict: Verdict::Snapshot,
        reason: Some(want.reason),
        scope: want.scope,
        missed: from.filter(|from| *from < offset).map(|from| Missed { from, to: offset }),
        offset,
        size: snapshot.size,
        bytes: snapshot.bytes.len() as u64,
    };
    Phase::Announcing(announcement, snapshot.bytes)
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
