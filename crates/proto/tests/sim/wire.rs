//! A connection as a virtual wire: bytes with delay and a speed, that may stall, or be cut at any byte.

use std::collections::VecDeque;
use std::time::Duration;

use bowline_proto::frame::Frame;
use bowline_proto::link::ConnId;

use super::rng::Rng;

/// One direction.
pub(crate) struct Pipe {
    chunks: VecDeque<(Duration, Vec<u8>)>,
    pub(crate) held: usize,
    free_at: Duration,
    latency: Duration,
    bytes_per_ms: u64,
    stalled: Duration,
    /// The end of the stream, after all that is in the pipe.
    end: Option<Duration>,
    /// The other end hears nothing more, not even the end.
    mute: bool,
    /// What arrived and is not a whole frame yet.
    partial: Vec<u8>,
}

/// What comes out of a pipe.
pub(crate) enum Arrival {
    Bytes,
    End,
    Nothing,
}

impl Pipe {
    fn new(rng: &mut Rng) -> Pipe {
        Pipe {
            chunks: VecDeque::new(),
            held: 0,
            free_at: Duration::ZERO,
            latency: Duration::from_millis(rng.between(0, 150)),
            bytes_per_ms: [2, 10, 100, 100_000][rng.below(4) as usize],
            stalled: Duration::ZERO,
            end: None,
            mute: false,
            partial: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: Vec<u8>, now: Duration) {
        if self.end.is_some() || self.mute {
            return;
        }
        self.free_at = self.free_at.max(now) + Duration::from_micros(bytes.len() as u64 * 1000 / self.bytes_per_ms);
        self.held += bytes.len();
        self.chunks.push_back((self.free_at + self.latency, bytes));
    }

    /// Ends the stream in order.
    pub(crate) fn finish(&mut self, now: Duration) {
        let last = self.chunks.back().map_or(now, |(at, _)| *at);
        self.end.get_or_insert(last.max(now) + self.latency);
    }

    /// Cuts the stream: some prefix of what is in it still arrives, to the byte.
    pub(crate) fn cut(&mut self, silent: bool, rng: &mut Rng, now: Duration) {
        let mut keep = rng.below(self.held as u64 + 1) as usize;
        for (_, bytes) in &mut self.chunks {
            bytes.truncate(keep);
            keep -= bytes.len();
        }
        self.chunks.retain(|(_, bytes)| !bytes.is_empty());
        self.held = self.chunks.iter().map(|(_, bytes)| bytes.len()).sum();
        if silent {
            self.mute = true;
        } else {
            self.finish(now);
        }
    }

    pub(crate) fn stall(&mut self, until: Duration) {
        self.stalled = until;
    }

    pub(crate) fn heal(&mut self) {
        self.stalled = Duration::ZERO;
    }

    pub(crate) fn next_at(&self) -> Option<Duration> {
        let next = self.chunks.front().map(|(at, _)| *at).or(self.end)?;
        Some(next.max(self.stalled))
    }

    /// Takes what has arrived.
    pub(crate) fn receive(&mut self, now: Duration) -> Arrival {
        if self.stalled > now {
            return Arrival::Nothing;
        }
        let mut some = false;
        while let Some((_, bytes)) = self.chunks.pop_front_if(|(at, _)| *at <= now) {
            self.held -= bytes.len();
            self.partial.extend_from_slice(&bytes);
            some = true;
        }
        match self.end {
            _ if some => Arrival::Bytes,
            Some(at) if at <= now && self.chunks.is_empty() => {
                self.end = None;
                self.mute = true;
                Arrival::End
            }
            _ => Arrival::Nothing,
        }
    }

    /// Hands over the whole frames that have arrived.
    pub(crate) fn frames(&mut self, mut take: impl FnMut(Frame<'_>)) {
        let mut at = 0;
        while let Some((frame, used)) = Frame::decode(&self.partial[at..]).unwrap() {
            take(frame);
            at += used;
        }
        self.partial.drain(..at);
    }
}

/// Both directions of one connection.
pub(crate) struct Wire {
    pub(crate) conn: ConnId,
    pub(crate) viewer: usize,
    pub(crate) generation: u64,
    /// When the transport is open at both ends.
    pub(crate) opens: Option<Duration>,
    pub(crate) up: Pipe,
    pub(crate) down: Pipe,
    /// The server still has this connection.
    pub(crate) served: bool,
    /// The client still has it.
    pub(crate) viewed: bool,
    /// The close code that the client was told.
    pub(crate) code: Option<u16>,
    /// What the viewer has acknowledged, as far as the server can know; nothing while a snapshot is not acknowledged.
    pub(crate) acked: Option<u64>,
    /// The snapshot that is not acknowledged.
    pub(crate) painting: Option<u64>,
}

impl Wire {
    /// An ack arrived at the server.
    pub(crate) fn heard_ack(&mut self, output: u64) {
        if self.painting.is_none_or(|at| at <= output) {
            self.painting = None;
            self.acked = self.acked.max(Some(output));
        }
    }

    /// Output may go on from here, with a snapshot on its way or not.
    pub(crate) fn goes_on(&mut self, offset: u64, snapshot: bool) {
        assert!(self.painting.is_none() || !snapshot, "one snapshot at a time");
        self.painting = snapshot.then_some(offset);
        self.acked = (!snapshot).then_some(offset);
    }

    pub(crate) fn new(conn: ConnId, viewer: usize, generation: u64, opens: Duration, rng: &mut Rng) -> Wire {
        Wire {
            conn,
            viewer,
            generation,
            opens: Some(opens),
            up: Pipe::new(rng),
            down: Pipe::new(rng),
            served: false,
            viewed: false,
            code: None,
            acked: None,
            painting: None,
        }
    }
}
