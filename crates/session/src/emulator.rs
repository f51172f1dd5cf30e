//! The emulator thread, which parses the log into a screen, off the path from the PTY to the viewers.
//!
//! It reads the log at its own pace, so viewers get output at the speed of the PTY while the screen may
//! lag. The PTY reader waits for it only when it is [`max_lag`] behind. A panic in this thread loses the
//! screen, not the session.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bowline_proto::Offset;
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::Epoch;
use bowline_proto::link::{Snapshot, SnapshotKind};
use bowline_proto::message::Theme;
use bowline_proto::size::Size;
use rustix::event::{EventfdFlags, eventfd};

use crate::screen::{self, Rgb, Screen, ScreenEvent};
use bowline_host::files::write_whole;
use bowline_host::log::{Log, ReadOutcome};

/// The most that is parsed before checking for jobs.
const SLICE: usize = 64 << 10;
/// The shortest time between two writes of the screen file.
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// The screen file is written once output has paused for this long.
const SAVE_QUIET: Duration = Duration::from_millis(200);
/// While output does not pause, the screen file is written this often.
const SAVE_LATEST: Duration = Duration::from_secs(10);

/// How far the screen may lag behind the log before the PTY reader waits for it: 1 MiB, or half of a small log.
pub fn max_lag(log: &Log) -> u64 {
    (1 << 20).min(log.size() / 2)
}

/// Work for the emulator thread.
#[derive(Debug)]
pub enum Job {
    /// Writes the screen as escape sequences, for a viewer.
    Snapshot(SnapshotKind),
    /// Renders the screen, for control requests.
    Render(Rendering),
    /// Sets the colours that colour queries report.
    SetTheme(Theme),
}

/// What a rendering of the screen contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendering {
    pub format: ScreenFormat,
    /// The most lines of scrollback to include.
    pub scrollback: u32,
}

/// A result or an event from the emulator thread.
#[derive(Debug)]
pub enum EmulatorEvent {
    /// The result of [`Job::Snapshot`].
    Snapshot(SnapshotKind, Snapshot),
    /// The result of [`Job::Render`] as JSON: a string for the formats `text` and `ansi`, an object for `json`. `None` if
    /// the emulator fails to make one.
    Rendered(Option<String>),
    /// Replies to the program's terminal queries, to be written to the PTY.
    QueryReplies(Vec<u8>),
    Screen(ScreenEvent),
}

/// The session loop's handle to the emulator thread.
#[derive(Debug)]
pub struct Emulator {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    log: Arc<Log>,
    queue: Mutex<WorkQueue>,
    wake: Condvar,
    /// How far the log is parsed.
    offset: AtomicU64,
    events: Mutex<Vec<EmulatorEvent>>,
    /// An eventfd. Readable when `events` is not empty, when the wait that `reader_waits` or `loop_waits` stands
    /// for is over, or after a resize.
    ready: OwnedFd,
}

#[derive(Debug, Default)]
struct WorkQueue {
    /// The end of the output that the thread is to parse.
    tail: Offset,
    resizes: VecDeque<(Offset, Size)>,
    /// The screen does not have the last of `resizes` yet, or is taking it over.
    resizing: bool,
    /// Each job, with the offset up to which the log must be parsed first.
    jobs: VecDeque<(Offset, Job)>,
    /// The thread waits for `wake`.
    asleep: bool,
    /// The PTY reader waits until the lag is half of [`max_lag`].
    reader_waits: bool,
    /// The session loop waits until the log is parsed up to `tail`.
    loop_waits: bool,
    flush: Option<SyncSender<()>>,
}

impl Emulator {
    /// Starts the thread at the end of `log`, with a blank screen that is saved to `file`.
    pub fn start(log: Arc<Log>, epoch: Epoch, size: Size, scrollback: usize, file: PathBuf) -> io::Result<Emulator> {
        let offset = log.end();
        let shared = Arc::new(Shared {
            log,
            queue: Mutex::new(WorkQueue { tail: offset, ..WorkQueue::default() }),
            wake: Condvar::new(),
            offset: AtomicU64::new(offset),
            events: Mutex::default(),
            ready: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let mut worker = Worker {
            shared: shared.clone(),
            screen: Screen::new(size, scrollback),
            scrollback,
            epoch,
            offset,
            file,
            dirty: true,
            last_save: None,
            last_output: Instant::now(),
        };
        // The thread runs until the process exits: viewers may request the screen after the program has ended.
        std::thread::Builder::new().name("bowline-screen".into()).spawn(move || worker.run())?;
        Ok(Emulator { shared })
    }

    /// How far the log is parsed.
    pub fn offset(&self) -> Offset {
        self.shared.offset.load(Ordering::Acquire)
    }

    /// Notifies the thread that the log has grown to `tail`.
    pub fn advance(&self, tail: Offset) {
        self.update(|queue| queue.tail = tail);
    }

    /// Resizes the screen once the log is parsed up to `at`. [`Emulator::ready`] becomes readable when it is done.
    pub fn resize(&self, at: Offset, size: Size) {
        self.update(|queue| {
            queue.resizes.push_back((at, size));
            queue.resizing = true;
        });
    }

    /// Whether the screen does not yet have the size of the last [`Emulator::resize`].
    pub fn is_resizing(&self) -> bool {
        lock(&self.shared.queue).resizing
    }

    /// Queues a job. It runs once everything that the log holds now is parsed; [`Emulator::take_events`]
    /// returns its result.
    pub fn submit(&self, job: Job) {
        let after = self.shared.log.end();
        self.update(|queue| {
            queue.tail = after;
            queue.jobs.push_back((after, job));
        });
    }

    /// Whether the PTY reader must wait for the screen. If so, [`Emulator::ready`] becomes readable when it
    /// need not any more.
    pub fn reader_must_wait(&self) -> bool {
        let limit = max_lag(&self.shared.log);
        let mut queue = lock(&self.shared.queue);
        queue.reader_waits = self.shared.log.end().saturating_sub(self.offset()) >= limit;
        queue.reader_waits
    }

    /// Makes [`Emulator::ready`] readable once all output that [`Emulator::advance`] reported is parsed. Returns
    /// `false` if it is already.
    pub fn wake_when_caught_up(&self) -> bool {
        let mut queue = lock(&self.shared.queue);
        queue.loop_waits = self.offset() < queue.tail;
        queue.loop_waits
    }

    /// Takes the events since the last call, and clears [`Emulator::ready`].
    pub fn take_events(&self) -> Vec<EmulatorEvent> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.shared.ready, &mut count);
        std::mem::take(&mut *lock(&self.shared.events))
    }

    /// Readable when [`Emulator::take_events`] may return something, or when a wait is over.
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.shared.ready.as_fd()
    }

    /// Blocks until the log is parsed as far as [`Emulator::advance`] reported, and the screen file is written.
    pub fn flush(&self) {
        let (flushed, wait) = std::sync::mpsc::sync_channel(1);
        self.update(|queue| queue.flush = Some(flushed));
        let _ = wait.recv(); // an error means that the thread has ended, so there is nothing to wait for
    }

    /// Changes the queue, and wakes the thread if it sleeps.
    fn update(&self, change: impl FnOnce(&mut WorkQueue)) {
        let mut queue = lock(&self.shared.queue);
        change(&mut queue);
        let asleep = std::mem::take(&mut queue.asleep);
        drop(queue);
        if asleep {
            self.shared.wake.notify_one();
        }
    }
}

/// The state of the emulator thread.
struct Worker {
    shared: Arc<Shared>,
    screen: Screen,
    scrollback: usize,
    epoch: Epoch,
    offset: Offset,
    file: PathBuf,
    /// The screen has changed since it was saved.
    dirty: bool,
    last_save: Option<Instant>,
    last_output: Instant,
}

enum Step {
    Resize(Size),
    Run(Job),
    /// Parse this many bytes of the log.
    Parse(usize),
    Save,
    Flush(SyncSender<()>),
}

impl Worker {
    fn run(&mut self) {
        let mut buf = vec![0; SLICE];
        loop {
            match self.next_step() {
                Step::Resize(size) => {
                    self.guarded(|worker| worker.screen.resize(size));
                    let mut queue = lock(&self.shared.queue);
                    queue.resizing = !queue.resizes.is_empty();
                    drop(queue);
                    self.deliver(Vec::new());
                }
                Step::Run(job) => {
                    // A connection waits for the result: after a panic, try again on the blank screen.
                    let ran =
                        self.guarded(|worker| worker.run_job(&job)) || self.guarded(|worker| worker.run_job(&job));
                    if let (false, Job::Render(_)) = (ran, &job) {
                        self.deliver(vec![EmulatorEvent::Rendered(None)]);
                    }
                }
                Step::Parse(len) => self.parse(&mut buf[..len]),
                Step::Save => _ = self.guarded(Worker::save),
                Step::Flush(flushed) => {
                    // Even if the screen has not changed, because its file may be damaged, or was never written.
                    self.dirty = true;
                    self.guarded(Worker::save);
                    let _ = flushed.send(());
                }
            }
        }
    }

    /// Waits for the next step. A resize happens exactly at its offset. A job runs as soon as the log is
    /// parsed up to its offset, before any later output.
    fn next_step(&mut self) -> Step {
        let shared = self.shared.clone();
        let mut queue = lock(&shared.queue);
        loop {
            if let Some((_, size)) = queue.resizes.pop_front_if(|(at, _)| *at <= self.offset) {
                self.dirty = true;
                return Step::Resize(size);
            }
            if let Some((_, job)) = queue.jobs.pop_front_if(|(after, _)| *after <= self.offset) {
                return Step::Run(job);
            }
            let until = queue.resizes.front().map_or(queue.tail, |(at, _)| *at.min(&queue.tail));
            if until > self.offset {
                if self.save_due(SAVE_LATEST).is_some_and(|wait| wait.is_zero()) {
                    return Step::Save;
                }
                return Step::Parse(SLICE.min((until - self.offset) as usize));
            }
            if let Some(flushed) = queue.flush.take() {
                return Step::Flush(flushed);
            }
            queue.asleep = true;
            queue = match self.save_due(SAVE_EVERY) {
                Some(Duration::ZERO) => return Step::Save,
                Some(wait) => shared.wake.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0,
                None => shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// How long until the screen should be saved; `None` if it has not changed.
    fn save_due(&self, every: Duration) -> Option<Duration> {
        let remaining = |since: Instant, wait: Duration| wait.saturating_sub(since.elapsed());
        let quiet = if every == SAVE_EVERY { remaining(self.last_output, SAVE_QUIET) } else { Duration::ZERO };
        self.dirty.then(|| self.last_save.map_or(Duration::ZERO, |at| remaining(at, every)).max(quiet))
    }

    fn parse(&mut self, buf: &mut [u8]) {
        let from = self.offset;
        match self.shared.log.read(from, buf) {
            Ok(ReadOutcome::Data(n)) => {
                self.guarded(|worker| worker.screen.advance(&buf[..n]));
                self.advance_to(from + n as u64);
            }
            // Cannot happen while the PTY reader waits for this thread; if it does, continue with what is left.
            Ok(ReadOutcome::Trimmed { oldest }) => self.advance_to(oldest),
            Ok(ReadOutcome::CaughtUp | ReadOutcome::Ahead { .. }) => {}
            Err(_) => self.advance_to(from + buf.len() as u64),
        }
    }

    fn advance_to(&mut self, offset: Offset) {
        self.offset = offset;
        self.dirty = true;
        self.last_output = Instant::now();
        self.shared.offset.store(offset, Ordering::Release);
        let replies = self.screen.take_replies();
        let mut events: Vec<_> = self.screen.take_events().into_iter().map(EmulatorEvent::Screen).collect();
        if !replies.is_empty() {
            events.push(EmulatorEvent::QueryReplies(replies));
        }
        let wait_over = {
            let mut queue = lock(&self.shared.queue);
            let near = queue.tail.saturating_sub(offset) <= max_lag(&self.shared.log) / 2;
            let caught_up = offset >= queue.tail;
            (near && std::mem::take(&mut queue.reader_waits)) | (caught_up && std::mem::take(&mut queue.loop_waits))
        };
        if wait_over || !events.is_empty() {
            self.deliver(events);
        }
    }

    fn run_job(&mut self, job: &Job) {
        match *job {
            Job::Snapshot(kind) => {
                let pieces = self.screen.snapshot_pieces(kind.scope, kind.scrollback as usize);
                let snapshot = Snapshot { offset: self.offset, size: self.screen.size(), pieces };
                self.deliver(vec![EmulatorEvent::Snapshot(kind, snapshot)]);
            }
            Job::Render(Rendering { format, scrollback }) => {
                let scrollback = scrollback as usize;
                let screen = match format {
                    ScreenFormat::Text => serde_json::to_string(&self.screen.text(scrollback)).ok(),
                    ScreenFormat::Ansi => {
                        serde_json::to_string(&String::from_utf8_lossy(&self.screen.ansi(scrollback))).ok()
                    }
                    ScreenFormat::Json => Some(self.screen.json(scrollback)),
                };
                self.deliver(vec![EmulatorEvent::Rendered(screen)]);
            }
            Job::SetTheme(ref theme) => {
                if let (Some(fg), Some(bg)) = (parse_colour(&theme.fg), parse_colour(&theme.bg)) {
                    self.screen.set_theme(screen::Theme { fg, bg, cursor: fg });
                }
            }
        }
    }

    fn save(&mut self) {
        if !self.dirty {
            return;
        }
        // If the disk is full the file is not written, and the next save tries again. After the exit, readers
        // notice that the file is older than the exit.
        self.dirty = write_whole(&self.file, &self.screen.save(&self.epoch, self.offset).encode()).is_err();
        self.last_save = Some(Instant::now());
    }

    /// Runs `act`; if it panics, the session continues with a blank screen. Returns whether it completed.
    fn guarded(&mut self, act: impl FnOnce(&mut Worker)) -> bool {
        let completed = catch_unwind(AssertUnwindSafe(|| act(self))).is_ok();
        if !completed {
            let size = self.screen.size();
            self.screen = Screen::new(size, self.scrollback);
        }
        completed
    }

    fn deliver(&self, events: Vec<EmulatorEvent>) {
        lock(&self.shared.events).extend(events);
        let _ = rustix::io::write(&self.shared.ready, &1u64.to_ne_bytes());
    }
}

/// Parses `#rrggbb`.
fn parse_colour(text: &str) -> Option<Rgb> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    Some(Rgb { r: part(0)?, g: part(2)?, b: part(4)? })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_that_could_not_be_written_is_written_later() {
        let temp = tempfile::tempdir().unwrap();
        let log = Arc::new(Log::create(&temp.path().join("log"), bowline_host::log::MIN_SIZE, 0).unwrap());
        let file = temp.path().join("missing").join("screen");
        let epoch = Epoch::from_random([0; 4]);
        let emulator = Emulator::start(log.clone(), epoch, Size::default(), 0, file.clone()).unwrap();
        log.append(b"output").unwrap();
        emulator.advance(log.end());
        emulator.flush(); // it cannot be written
        std::fs::create_dir(temp.path().join("missing")).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !file.exists() {
            assert!(Instant::now() < deadline, "it is not written, although it can be");
            std::thread::yield_now();
        }
    }
}
