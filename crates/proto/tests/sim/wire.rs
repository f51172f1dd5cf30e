//! A simulated connection with latency and limited speed, which can stall or be cut at any byte.

use std::collections::VecDeque;
use std::time::Duration;

use bowline_proto::frame::Frame;
use bowline_proto::link::ConnId;

use super::rng::Rng;

/// One direction of a connection.
pub(crate) struct Pipe {
    chunks: VecDeque<(Duration, Vec<u8>)>,
    pub(crate) held: usize,
    free_at: Duration,
    latency: Duration,
    bytes_per_ms: u64,
    stalled: Duration,
    /// When the receiver sees the end of the stream, after all bytes in the pipe.
    end: Option<Duration>,
    /// The receiver gets nothing more, not even the end of the stream.
    silent: bool,
    /// Received bytes that are not a whole frame yet.
    partial: Vec<u8>,
}

/// What arrived at the end of a pipe.
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
            silent: false,
            partial: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: Vec<u8>, now: Duration) {
        if self.end.is_some() || self.silent {
            return;
        }
        self.free_at = self.free_at.max(now) + Duration::from_micros(bytes.len() as u64 * 1000 / self.bytes_per_ms);
        self.held += bytes.len();
        self.chunks.push_back((self.free_at + self.latency, bytes));
    }

    /// Ends the stream after all bytes in the pipe.
    pub(crate) fn finish(&mut self, now: Duration) {
        let last = self.chunks.back().map_or(now, |(at, _)| *at);
        self.end.get_or_insert(last.max(now) + self.latency);
    }

    /// Cuts the stream: a random prefix of the bytes in the pipe still arrives. With `silent`, the receiver does not
    /// notice.
    pub(crate) fn cut(&mut self, silent: bool, rng: &mut Rng, now: Duration) {
        let mut keep = rng.below(self.held as u64 + 1) as usize;
        for (_, bytes) in &mut self.chunks {
            bytes.truncate(keep);
            keep -= bytes.len();
        }
        self.chunks.retain(|(_, bytes)| !bytes.is_empty());
        self.held = self.chunks.iter().map(|(_, bytes)| bytes.len()).sum();
        if silent {
            self.silent = true;
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

    /// Moves what has arrived to `partial`.
    pub(crate) fn receive(&mut self, now: Duration) -> Arrival {
        if self.stalled > now {
            return Arrival::Nothing;
        }
        let mut received = false;
        while let Some((_, bytes)) = self.chunks.pop_front_if(|(at, _)| *at <= now) {
            self.held -= bytes.len();
            self.partial.extend_from_slice(&bytes);
            received = true;
        }
        match self.end {
            _ if received => Arrival::Bytes,
            Some(at) if at <= now && self.chunks.is_empty() => {
                self.end = None;
                self.silent = true;
                Arrival::End
            }
            _ => Arrival::Nothing,
        }
    }

    /// Passes each whole frame that has arrived to `handle`.
    pub(crate) fn frames(&mut self, mut handle: impl FnMut(Frame<'_>)) {
        let mut at = 0;
        while let Some((frame, used)) = Frame::decode(&self.partial[at..]).unwrap() {
            handle(frame);
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
    /// When the connection opens; `None` once it is open.
    pub(crate) opens: Option<Duration>,
    pub(crate) up: Pipe,
    pub(crate) down: Pipe,
    pub(crate) open_at_server: bool,
    pub(crate) open_at_client: bool,
    /// The close code that the client received.
    pub(crate) code: Option<u16>,
    /// The acknowledged offset that the server has received; `None` while a snapshot is unacknowledged.
    pub(crate) acked: Option<u64>,
    /// The offset of the unacknowledged snapshot.
    pub(crate) unacked_snapshot: Option<u64>,
}

impl Wire {
    pub(crate) fn new(conn: ConnId, viewer: usize, generation: u64, opens: Duration, rng: &mut Rng) -> Wire {
        Wire {
            conn,
            viewer,
            generation,
            opens: Some(opens),
            up: Pipe::new(rng),
            down: Pipe::new(rng),
            open_at_server: false,
            open_at_client: false,
            code: None,
            acked: None,
            unacked_snapshot: None,
        }
    }

    /// An ack arrived at the server.
    pub(crate) fn handle_ack(&mut self, output: u64) {
        if self.unacked_snapshot.is_none_or(|at| at <= output) {
            self.unacked_snapshot = None;
            self.acked = self.acked.max(Some(output));
        }
    }

    /// The server announced where output continues, with or without a snapshot.
    pub(crate) fn handle_announced(&mut self, offset: u64, snapshot: bool) {
        assert!(self.unacked_snapshot.is_none() || !snapshot, "one snapshot at a time");
        self.unacked_snapshot = snapshot.then_some(offset);
        self.acked = (!snapshot).then_some(offset);
    }
}
