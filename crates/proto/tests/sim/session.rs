//! The session under test: a program, its ring log, an emulator that lags behind it, and the server's driver.

use std::collections::VecDeque;
use std::time::Duration;

use bowline_proto::config::ServerConfig;
use bowline_proto::ids::Epoch;
use bowline_proto::link::{ConnId, Server, ServerEvent, Snapshot};
use bowline_proto::session::ExitStatus;
use bowline_proto::size::Size;

use super::info::info;
use super::rng::Rng;
use super::terminal::Terminal;

pub(crate) struct Session {
    pub(crate) server: Server,
    pub(crate) config: ServerConfig,
    /// Everything ever printed, in all lives; `start..` of it is retained.
    pub(crate) log: Vec<u8>,
    pub(crate) start: u64,
    ring: u64,
    /// Where this life began.
    pub(crate) born: u64,
    /// What really happened, in each life: what an old connection still carries is of the life before.
    lives: Vec<Life>,
    /// The terminal as it is, without any delay.
    pub(crate) model: Terminal,
    /// The emulator, which takes its time.
    screen: Terminal,
    jobs: VecDeque<(Duration, Job)>,
    /// Snapshots that are made and on their way to the server.
    made: VecDeque<(Duration, ConnId, Snapshot)>,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) reading: bool,
    pub(crate) title: Option<String>,
    /// The longest snapshot it makes.
    pub(crate) largest: usize,
}

/// One life of the session, as it really was.
pub(crate) struct Life {
    epoch: Epoch,
    born: u64,
    /// The state of the terminal after each byte.
    states: Vec<u64>,
    /// Each size that was in force at some time, with where it began.
    sizes: Vec<(u64, Size)>,
    /// How it ended, and where.
    pub(crate) exit: Option<(ExitStatus, u64)>,
}

impl Life {
    fn new(epoch: Epoch, terminal: &Terminal) -> Life {
        let Terminal { hash, size, offset } = *terminal;
        Life { epoch, born: offset, states: vec![hash], sizes: vec![(offset, size)], exit: None }
    }

    /// What the terminal's state was at an offset.
    pub(crate) fn state_at(&self, offset: u64) -> u64 {
        self.states[(offset - self.born) as usize]
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
    Snapshot(ConnId, usize),
}

impl Session {
    pub(crate) fn new(rng: &mut Rng) -> Session {
        let size = Size::default();
        let epoch = Epoch::from_random([0; 4]);
        let config = ServerConfig {
            window: [200, 1000, 4000][rng.below(3) as usize],
            chunk: rng.between(16, 200) as usize,
            clients: rng.between(1, 5) as usize,
            resizes: rng.between(2, 20) as usize,
            ..ServerConfig::new(epoch, size)
        };
        Session {
            server: Server::new(config.clone(), info(&config)),
            lives: vec![Life::new(config.epoch.clone(), &Terminal::new(0, size))],
            config,
            log: Vec::new(),
            start: 0,
            ring: [300, 2000, 20_000][rng.below(3) as usize],
            born: 0,
            model: Terminal::new(0, size),
            screen: Terminal::new(0, size),
            jobs: VecDeque::new(),
            made: VecDeque::new(),
            exit: None,
            reading: true,
            title: None,
            largest: rng.between(20, 1500) as usize,
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.log.len() as u64
    }

    /// The program prints, unless the emulator is too far behind: then the PTY waits, as it does for real.
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
            self.life_mut().states.push(hash);
        }
        self.start = self.start.max(self.end().saturating_sub(self.ring)).max(self.born);
        self.server.handle_log(self.start, self.end());
        let end = self.end();
        self.job(Job::Print(end), rng, now);
    }

    /// Prints just as much as makes the log begin one byte before `start`, if it can.
    pub(crate) fn trim_to(&mut self, start: u64, rng: &mut Rng, now: Duration) {
        let wanted = (start + self.ring).saturating_sub(self.end() + 1);
        self.print(wanted, rng, now);
    }

    fn job(&mut self, job: Job, rng: &mut Rng, now: Duration) {
        let after = self.jobs.back().map_or(now, |(at, _)| *at).max(now);
        let delay = if rng.one_in(3) { rng.between(0, 30) } else { 0 };
        self.jobs.push_back((after + Duration::from_millis(delay), job));
    }

    pub(crate) fn resize(&mut self, size: Size, rng: &mut Rng, now: Duration) {
        let end = self.end();
        self.model.size = size;
        self.life_mut().sizes.push((end, size));
        self.server.handle_resized(end, size);
        self.job(Job::Resize(size), rng, now);
    }

    pub(crate) fn snapshot(&mut self, conn: ConnId, rng: &mut Rng, now: Duration) {
        let asked = self.jobs.iter().any(|(_, job)| matches!(job, Job::Snapshot(other, _) if *other == conn));
        let made = self.made.iter().any(|(_, other, _)| *other == conn);
        assert!(!asked && !made, "at most one snapshot is asked for at a time for each connection");
        let len = rng.between(20, self.largest as u64) as usize;
        self.job(Job::Snapshot(conn, len), rng, now);
    }

    pub(crate) fn next_job(&self) -> Option<Duration> {
        let (job, made) = (self.jobs.front().map(|(at, _)| *at), self.made.front().map(|(at, ..)| *at));
        job.into_iter().chain(made).min()
    }

    /// The emulator does what is due. True when it did something.
    pub(crate) fn run_jobs(&mut self, rng: &mut Rng, now: Duration) -> bool {
        let mut some = false;
        while let Some((_, job)) = self.jobs.pop_front_if(|(at, _)| *at <= now) {
            some = true;
            match job {
                Job::Print(end) => {
                    let bytes = &self.log[self.screen.offset as usize..end as usize];
                    self.screen.print(bytes);
                    self.server.handle_screen(end);
                }
                Job::Resize(size) => self.screen.size = size,
                Job::Snapshot(conn, len) => {
                    let bytes = self.screen.snapshot(len).into();
                    let Terminal { offset, size, .. } = self.screen;
                    let after = self.made.back().map_or(now, |(at, ..)| *at).max(now);
                    let delay = if rng.one_in(3) { rng.between(0, 50) } else { 0 };
                    let snapshot = Snapshot { offset, size, bytes };
                    self.made.push_back((after + Duration::from_millis(delay), conn, snapshot));
                }
            }
        }
        while let Some((_, conn, snapshot)) = self.made.pop_front_if(|(at, ..)| *at <= now) {
            some = true;
            self.server.handle_snapshot(conn, snapshot);
        }
        some
    }

    pub(crate) fn end_program(&mut self, rng: &mut Rng) {
        let exit = ExitStatus { code: Some(rng.below(3) as i32), signal: None };
        self.exit = Some(exit.clone());
        let end = self.end();
        self.life_mut().exit = Some((exit.clone(), end));
        self.server.handle_exit(exit);
    }

    /// A new life: another epoch, an empty screen, offsets that go on.
    pub(crate) fn restart(&mut self) {
        self.born = self.end();
        self.start = self.born;
        let size = self.model.size;
        self.config.epoch = Epoch::from_random((self.lives.len() as u32).to_be_bytes());
        self.config.size = size;
        self.server = Server::new(self.config.clone(), info(&self.config));
        self.server.handle_log(self.start, self.end());
        self.server.handle_screen(self.end());
        self.model = Terminal::new(self.born, size);
        self.lives.push(Life::new(self.config.epoch.clone(), &self.model));
        self.screen = self.model;
        self.jobs.clear();
        self.made.clear();
        self.exit = None;
        self.title = None;
    }

    pub(crate) fn life(&self, epoch: &Epoch) -> &Life {
        self.lives.iter().find(|life| life.epoch == *epoch).expect("an epoch that was")
    }

    fn life_mut(&mut self) -> &mut Life {
        self.lives.last_mut().unwrap()
    }

    pub(crate) fn poll_event(&mut self) -> Option<ServerEvent> {
        self.server.poll_event()
    }
}
