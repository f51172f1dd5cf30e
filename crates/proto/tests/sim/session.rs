//! The simulated session: a program, its ring log, an emulator that lags behind, and the driver of the server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline_proto::config::ServerConfig;
use bowline_proto::ids::Epoch;
use bowline_proto::link::{Server, ServerEvent, Snapshot, SnapshotKind};
use bowline_proto::session::ExitStatus;
use bowline_proto::size::Size;
use bytes::Bytes;

use super::info::info;
use super::rng::Rng;
use super::terminal::Terminal;

pub(crate) struct Session {
    pub(crate) server: Server,
    pub(crate) config: ServerConfig,
    /// Everything ever printed, in all epochs; the log has `start..` of it.
    pub(crate) log: Vec<u8>,
    pub(crate) start: u64,
    ring: u64,
    /// Where the current epoch starts.
    epoch_start: u64,
    /// What happened in each epoch, because an old connection may still deliver output of an earlier one.
    epochs: Vec<EpochRecord>,
    /// The correct state of the terminal.
    pub(crate) model: Terminal,
    /// The emulator's state, which lags behind.
    screen: Terminal,
    jobs: VecDeque<(Duration, Job)>,
    /// Snapshots that are made and not yet delivered to the server.
    made: VecDeque<(Duration, SnapshotKind, Snapshot)>,
    /// The bytes of all snapshots that are made and not freed.
    snapshot_bytes: Arc<AtomicU64>,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) reading: bool,
    pub(crate) title: Option<String>,
    max_snapshot_len: usize,
}

/// A piece of a snapshot, which counts until it is freed.
struct Piece {
    bytes: Vec<u8>,
    total: Arc<AtomicU64>,
}

impl Piece {
    fn counted(bytes: &[u8], total: &Arc<AtomicU64>) -> Bytes {
        total.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(Piece { bytes: bytes.to_vec(), total: total.clone() })
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

/// What happened in one epoch of the session.
pub(crate) struct EpochRecord {
    epoch: Epoch,
    start: u64,
    /// The state of the terminal after each byte.
    states: Vec<u64>,
    /// Each size that the terminal had, with the offset where it took effect.
    sizes: Vec<(u64, Size)>,
    /// The exit status, and the offset of the end.
    pub(crate) exit: Option<(ExitStatus, u64)>,
}

impl EpochRecord {
    fn new(epoch: Epoch, terminal: &Terminal) -> EpochRecord {
        let Terminal { hash, size, offset } = *terminal;
        EpochRecord { epoch, start: offset, states: vec![hash], sizes: vec![(offset, size)], exit: None }
    }

    /// The state of the terminal at an offset.
    pub(crate) fn state_at(&self, offset: u64) -> u64 {
        self.states[(offset - self.start) as usize]
    }

    /// Whether the terminal ever had this size at this offset.
    pub(crate) fn had_size(&self, offset: u64, size: Size) -> bool {
        let before = self.sizes.iter().rev().find(|(at, _)| *at < offset);
        let there = self.sizes.iter().filter(|(at, _)| *at == offset);
        there.chain(before).any(|(_, other)| *other == size)
    }
}

enum Job {
    Print(u64),
    Resize(Size),
    Snapshot(SnapshotKind, usize),
}

impl Session {
    pub(crate) fn new(rng: &mut Rng) -> Session {
        let size = Size::default();
        let epoch = Epoch::from_random([0; 4]);
        let max_snapshot_len = rng.between(20, 1500) as usize;
        let config = ServerConfig {
            window: [200, 1000, 4000][rng.below(3) as usize],
            chunk: rng.between(16, 200) as usize,
            clients: rng.between(1, 5) as usize,
            resizes: rng.between(2, 20) as usize,
            snapshots: max_snapshot_len as u64 * rng.between(2, 4),
            ..ServerConfig::new(epoch, size)
        };
        Session {
            server: Server::new(config.clone(), info(&config)),
            epochs: vec![EpochRecord::new(config.epoch.clone(), &Terminal::new(0, size))],
            config,
            log: Vec::new(),
            start: 0,
            ring: [300, 2000, 20_000][rng.below(3) as usize],
            epoch_start: 0,
            model: Terminal::new(0, size),
            screen: Terminal::new(0, size),
            jobs: VecDeque::new(),
            made: VecDeque::new(),
            snapshot_bytes: Arc::default(),
            exit: None,
            reading: true,
            title: None,
            max_snapshot_len,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.log.len() as u64
    }

    /// The program prints, unless the emulator is too far behind: then a real session stops reading the PTY as well.
    pub(crate) fn print(&mut self, len: u64, rng: &mut Rng, now: Duration) {
        let len = len.min((self.ring / 2).saturating_sub(self.end() - self.screen.offset));
        if self.exit.is_some() || len == 0 {
            return;
        }
        for _ in 0..len {
            let byte = [rng.next() as u8];
            self.log.push(byte[0]);
            self.model.print(&byte);
            let hash = self.model.hash;
            self.current_epoch().states.push(hash);
        }
        self.start = self.start.max(self.end().saturating_sub(self.ring)).max(self.epoch_start);
        self.server.handle_log(self.start, self.end());
        let end = self.end();
        self.push_job(Job::Print(end), rng, now);
    }

    /// Prints enough to make the log begin one byte before `start`, if possible.
    pub(crate) fn trim_to(&mut self, start: u64, rng: &mut Rng, now: Duration) {
        let wanted = (start + self.ring).saturating_sub(self.end() + 1);
        self.print(wanted, rng, now);
    }

    fn push_job(&mut self, job: Job, rng: &mut Rng, now: Duration) {
        let after = self.jobs.back().map_or(now, |(at, _)| *at).max(now);
        let delay = if rng.one_in(3) { rng.between(0, 30) } else { 0 };
        self.jobs.push_back((after + Duration::from_millis(delay), job));
    }

    pub(crate) fn resize(&mut self, size: Size, rng: &mut Rng, now: Duration) {
        let end = self.end();
        self.model.size = size;
        self.current_epoch().sizes.push((end, size));
        self.server.handle_resized(end, size);
        self.push_job(Job::Resize(size), rng, now);
    }

    pub(crate) fn snapshot(&mut self, kind: SnapshotKind, rng: &mut Rng, now: Duration) {
        let queued = self.jobs.iter().any(|(_, job)| matches!(job, Job::Snapshot(..)));
        assert!(!queued && self.made.is_empty(), "at most one snapshot request at a time");
        let len = rng.between(20, self.max_snapshot_len as u64) as usize;
        self.push_job(Job::Snapshot(kind, len), rng, now);
    }

    /// The bytes of snapshots that the server keeps.
    pub(crate) fn kept_snapshots(&self) -> u64 {
        let made: u64 = self.made.iter().map(|(_, _, snapshot)| snapshot.bytes()).sum();
        self.snapshot_bytes.load(Ordering::Relaxed) - made
    }

    pub(crate) fn next_job(&self) -> Option<Duration> {
        let (job, made) = (self.jobs.front().map(|(at, _)| *at), self.made.front().map(|(at, ..)| *at));
        job.into_iter().chain(made).min()
    }

    /// Runs the emulator jobs that are due. Returns whether there were any.
    pub(crate) fn run_jobs(&mut self, rng: &mut Rng, now: Duration) -> bool {
        let mut busy = false;
        while let Some((_, job)) = self.jobs.pop_front_if(|(at, _)| *at <= now) {
            busy = true;
            match job {
                Job::Print(end) => {
                    let bytes = &self.log[self.screen.offset as usize..end as usize];
                    self.screen.print(bytes);
                    self.server.handle_screen(end);
                }
                Job::Resize(size) => self.screen.size = size,
                Job::Snapshot(kind, len) => {
                    let bytes = self.screen.snapshot(len);
                    let pieces = bytes.chunks(rng.between(1, 700) as usize);
                    let pieces = pieces.map(|piece| Piece::counted(piece, &self.snapshot_bytes)).collect();
                    let Terminal { offset, size, .. } = self.screen;
                    let after = self.made.back().map_or(now, |(at, ..)| *at).max(now);
                    let delay = if rng.one_in(3) { rng.between(0, 50) } else { 0 };
                    let snapshot = Snapshot { offset, size, pieces };
                    self.made.push_back((after + Duration::from_millis(delay), kind, snapshot));
                }
            }
        }
        while let Some((_, kind, snapshot)) = self.made.pop_front_if(|(at, ..)| *at <= now) {
            busy = true;
            self.server.handle_snapshot(kind, snapshot);
        }
        busy
    }

    pub(crate) fn end_program(&mut self, rng: &mut Rng) {
        let exit = ExitStatus { code: Some(rng.below(3) as i32), signal: None };
        self.exit = Some(exit.clone());
        let end = self.end();
        self.current_epoch().exit = Some((exit.clone(), end));
        self.server.handle_exit(exit);
    }

    /// Restarts the session: a new epoch, an empty screen, and offsets that continue.
    pub(crate) fn restart(&mut self) {
        self.epoch_start = self.end();
        self.start = self.epoch_start;
        let size = self.model.size;
        self.config.epoch = Epoch::from_random((self.epochs.len() as u32).to_be_bytes());
        self.config.size = size;
        self.server = Server::new(self.config.clone(), info(&self.config));
        self.server.handle_log(self.start, self.end());
        self.server.handle_screen(self.end());
        self.model = Terminal::new(self.epoch_start, size);
        self.epochs.push(EpochRecord::new(self.config.epoch.clone(), &self.model));
        self.screen = self.model;
        self.jobs.clear();
        self.made.clear();
        self.exit = None;
        self.title = None;
    }

    pub(crate) fn epoch(&self, epoch: &Epoch) -> &EpochRecord {
        self.epochs.iter().find(|record| record.epoch == *epoch).expect("an epoch of this session")
    }

    fn current_epoch(&mut self) -> &mut EpochRecord {
        self.epochs.last_mut().unwrap()
    }

    pub(crate) fn poll_event(&mut self) -> Option<ServerEvent> {
        self.server.poll_event()
    }
}
