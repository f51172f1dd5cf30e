//! The thread that folds the log into a screen, beside the data path.
//!
//! It reads the log at its own pace, so viewers get bytes at the speed of the PTY while the screen may lag. Only when
//! it is [`max_lag`] behind does the PTY reader wait for it. A panic in here costs the screen, never the session.

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
use bowline_proto::link::Snapshot;
use bowline_proto::message::{Scope, Theme};
use bowline_proto::size::Size;
use rustix::event::{EventfdFlags, eventfd};

use crate::screen::{self, Rgb, Screen, ScreenEvent};
use bowline_host::files::write_whole;
use bowline_host::log::{Log, Read};

/// How much is folded before looking whether somebody asks for something.
const SLICE: usize = 64 << 10;
/// The screen file is written at most this often,
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// after output paused for this long,
const SAVE_QUIET: Duration = Duration::from_millis(200);
/// or after this long of output without a pause.
const SAVE_LATEST: Duration = Duration::from_secs(10);

/// How far the screen may fall behind before the PTY reader waits for it: 1 MiB, or half of a small log.
pub fn max_lag(log: &Log) -> u64 {
    (1 << 20).min(log.size() / 2)
}

/// What the thread may be asked.
#[derive(Debug)]
pub enum Ask {
    /// The screen as escape sequences.
    Snapshot {
        /// Comes back with the answer.
        ticket: u64,
        /// How much of it.
        scope: Scope,
        /// With this many lines above.
        scrollback: u32,
    },
    /// The screen for people and scripts.
    Show {
        /// Comes back with the answer.
        ticket: u64,
        /// In which form.
        format: ScreenFormat,
        /// With this many lines above.
        scrollback: u32,
    },
    /// The colours that queries answer.
    Theme(Theme),
}

/// What the thread gives back.
#[derive(Debug)]
pub enum Done {
    /// The answer to [`Ask::Snapshot`].
    Snapshot(u64, Snapshot),
    /// The answer to [`Ask::Show`].
    Shown(u64, serde_json::Value),
    /// Answers to the program's queries, for the PTY.
    Replies(Vec<u8>),
    /// Something that the program told its terminal.
    Event(ScreenEvent),
}

/// The owner's handle on the thread.
#[derive(Debug)]
pub struct Emulator {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    log: Arc<Log>,
    todo: Mutex<Todo>,
    wake: Condvar,
    offset: AtomicU64,
    done: Mutex<Vec<Done>>,
    /// Readable when `done` has something, or when a reader that waited may go on.
    ready: OwnedFd,
}

#[derive(Debug, Default)]
struct Todo {
    tail: Offset,
    resizes: VecDeque<(Offset, Size)>,
    /// What is asked, and how far the screen must have come to answer it.
    asks: VecDeque<(Offset, Ask)>,
    asleep: bool,
    reader_waits: bool,
    owner_waits: bool,
    flush: Option<SyncSender<()>>,
}

impl Emulator {
    /// Starts the thread at the end of `log`, with an empty screen.
    pub fn start(log: Arc<Log>, epoch: Epoch, size: Size, history: usize, file: PathBuf) -> io::Result<Emulator> {
        let offset = log.end();
        let shared = Arc::new(Shared {
            log,
            todo: Mutex::new(Todo { tail: offset, ..Todo::default() }),
            wake: Condvar::new(),
            offset: AtomicU64::new(offset),
            done: Mutex::default(),
            ready: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let mut folder = Folder {
            shared: shared.clone(),
            screen: Screen::new(size, history),
            history,
            epoch,
            offset,
            file,
            dirty: true,
            saved: None,
            moved: Instant::now(),
        };
        // It lives as long as the process: late viewers may ask for the screen of a program that has ended.
        std::thread::Builder::new().name("bowline-screen".into()).spawn(move || folder.run())?;
        Ok(Emulator { shared })
    }

    /// How far the screen has come.
    pub fn offset(&self) -> Offset {
        self.shared.offset.load(Ordering::Acquire)
    }

    /// The log has grown to `tail`.
    pub fn advance(&self, tail: Offset) {
        self.change(|todo| todo.tail = tail);
    }

    /// The terminal has this size from `at` on.
    pub fn resize(&self, at: Offset, size: Size) {
        self.change(|todo| todo.resizes.push_back((at, size)));
    }

    /// Asks for something; the answer comes by [`Emulator::take`], and knows everything that the log has now.
    pub fn ask(&self, ask: Ask) {
        let after = self.shared.log.end();
        self.change(|todo| {
            todo.tail = after;
            todo.asks.push_back((after, ask));
        });
    }

    /// Whether the PTY reader must wait; if so, [`Emulator::ready`] tells when it may go on.
    pub fn must_wait(&self) -> bool {
        let limit = max_lag(&self.shared.log);
        let mut todo = lock(&self.shared.todo);
        todo.reader_waits = self.shared.log.end().saturating_sub(self.offset()) >= limit;
        todo.reader_waits
    }

    /// Asks to be woken when all that it was told of is folded; `false` when it is already.
    pub fn wake_when_caught_up(&self) -> bool {
        let mut todo = lock(&self.shared.todo);
        todo.owner_waits = self.offset() < todo.tail;
        todo.owner_waits
    }

    /// What came back since the last call.
    pub fn take(&self) -> Vec<Done> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.shared.ready, &mut count);
        std::mem::take(&mut *lock(&self.shared.done))
    }

    /// Readable when there is something to [`Emulator::take`].
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.shared.ready.as_fd()
    }

    /// Waits until the whole log is folded and the screen file is written.
    pub fn flush(&self) {
        let (flushed, wait) = std::sync::mpsc::sync_channel(1);
        self.change(|todo| todo.flush = Some(flushed));
        let _ = wait.recv(); // an error means that the thread is gone, and then there is nothing to wait for
    }

    fn change(&self, act: impl FnOnce(&mut Todo)) {
        let mut todo = lock(&self.shared.todo);
        act(&mut todo);
        let asleep = std::mem::take(&mut todo.asleep);
        drop(todo);
        if asleep {
            self.shared.wake.notify_one();
        }
    }
}

/// The thread's own state.
struct Folder {
    shared: Arc<Shared>,
    screen: Screen,
    history: usize,
    epoch: Epoch,
    offset: Offset,
    file: PathBuf,
    /// The screen has changed since it was written.
    dirty: bool,
    saved: Option<Instant>,
    /// When output last came.
    moved: Instant,
}

/// What to do next.
enum Step {
    Resize(Size),
    Answer(Ask),
    Fold(usize),
    Save,
    Flush(SyncSender<()>),
}

impl Folder {
    fn run(&mut self) {
        let mut buf = vec![0; SLICE];
        loop {
            match self.next_step() {
                Step::Resize(size) => _ = self.guarded(|folder| folder.screen.resize(size)),
                Step::Answer(ask) => {
                    // Somebody waits for the answer: where the old screen could not give it, the fresh one does.
                    if !self.guarded(|folder| folder.answer(&ask)) {
                        self.guarded(|folder| folder.answer(&ask));
                    }
                }
                Step::Fold(len) => self.fold(&mut buf[..len]),
                Step::Save => _ = self.guarded(Folder::save),
                Step::Flush(flushed) => {
                    self.guarded(Folder::save);
                    let _ = flushed.send(());
                }
            }
        }
    }

    /// Waits for the next thing to do. A resize goes exactly at its offset; what is asked is answered as soon as the
    /// screen has come to where it was asked, before any later output.
    fn next_step(&mut self) -> Step {
        let shared = self.shared.clone();
        let mut todo = lock(&shared.todo);
        loop {
            if let Some((_, size)) = todo.resizes.pop_front_if(|(at, _)| *at <= self.offset) {
                self.dirty = true;
                return Step::Resize(size);
            }
            if let Some((_, ask)) = todo.asks.pop_front_if(|(after, _)| *after <= self.offset) {
                return Step::Answer(ask);
            }
            let until = todo.resizes.front().map_or(todo.tail, |(at, _)| *at.min(&todo.tail));
            if until > self.offset {
                if self.save_due(SAVE_LATEST).is_some_and(|wait| wait.is_zero()) {
                    return Step::Save;
                }
                return Step::Fold(SLICE.min((until - self.offset) as usize));
            }
            if let Some(flushed) = todo.flush.take() {
                return Step::Flush(flushed);
            }
            todo.asleep = true;
            todo = match self.save_due(SAVE_EVERY) {
                Some(Duration::ZERO) => return Step::Save,
                Some(wait) => shared.wake.wait_timeout(todo, wait).unwrap_or_else(PoisonError::into_inner).0,
                None => shared.wake.wait(todo).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// How long until the screen should be written, if it should.
    fn save_due(&self, every: Duration) -> Option<Duration> {
        let since = |at: Instant, wait: Duration| wait.saturating_sub(at.elapsed());
        let quiet = if every == SAVE_EVERY { since(self.moved, SAVE_QUIET) } else { Duration::ZERO };
        self.dirty.then(|| self.saved.map_or(Duration::ZERO, |at| since(at, every)).max(quiet))
    }

    fn fold(&mut self, buf: &mut [u8]) {
        let from = self.offset;
        match self.shared.log.read(from, buf) {
            Ok(Read::Data(n)) => {
                self.guarded(|folder| folder.screen.advance(&buf[..n]));
                self.moved_to(from + n as u64);
            }
            // Cannot happen while the PTY reader waits for us; if it does, the screen goes on with what there is.
            Ok(Read::Trimmed { oldest }) => self.moved_to(oldest),
            Ok(Read::CaughtUp | Read::Ahead { .. }) => {}
            Err(_) => self.moved_to(from + buf.len() as u64),
        }
    }

    fn moved_to(&mut self, offset: Offset) {
        self.offset = offset;
        self.dirty = true;
        self.moved = Instant::now();
        self.shared.offset.store(offset, Ordering::Release);
        let replies = self.screen.take_replies();
        let mut done: Vec<Done> = self.screen.take_events().into_iter().map(Done::Event).collect();
        if !replies.is_empty() {
            done.push(Done::Replies(replies));
        }
        let go_on = {
            let mut todo = lock(&self.shared.todo);
            let near = todo.tail.saturating_sub(offset) <= max_lag(&self.shared.log) / 2;
            let caught_up = offset >= todo.tail;
            (near && std::mem::take(&mut todo.reader_waits)) | (caught_up && std::mem::take(&mut todo.owner_waits))
        };
        if go_on || !done.is_empty() {
            self.deliver(done);
        }
    }

    fn answer(&mut self, ask: &Ask) {
        match *ask {
            Ask::Snapshot { ticket, scope, scrollback } => {
                let scope = match scope {
                    Scope::Screen => screen::Scope::Screen,
                    Scope::All => screen::Scope::All,
                };
                let bytes = self.screen.snapshot(scope, scrollback as usize).into();
                let snapshot = Snapshot { offset: self.offset, size: self.screen.size(), bytes };
                self.deliver(vec![Done::Snapshot(ticket, snapshot)]);
            }
            Ask::Show { ticket, format, scrollback } => {
                let screen = match format {
                    ScreenFormat::Text => self.screen.text(scrollback as usize).into(),
                    ScreenFormat::Ansi => String::from_utf8_lossy(&self.screen.ansi(scrollback as usize)).into(),
                    ScreenFormat::Json => self.screen.json(scrollback as usize),
                };
                self.deliver(vec![Done::Shown(ticket, screen)]);
            }
            Ask::Theme(ref theme) => {
                if let (Some(fg), Some(bg)) = (colour(&theme.fg), colour(&theme.bg)) {
                    self.screen.set_theme(screen::Theme { fg, bg, cursor: fg });
                }
            }
        }
    }

    fn save(&mut self) {
        if !std::mem::replace(&mut self.dirty, false) {
            return;
        }
        // A full disk costs the file, which only serves when the process is gone; the next save tries again.
        let _ = write_whole(&self.file, &self.screen.save(&self.epoch, self.offset).encode());
        self.saved = Some(Instant::now());
    }

    /// Runs something on the screen; if the emulator panics, the session goes on with an empty screen.
    fn guarded(&mut self, act: impl FnOnce(&mut Folder)) -> bool {
        let whole = catch_unwind(AssertUnwindSafe(|| act(self))).is_ok();
        if !whole {
            let size = self.screen.size();
            self.screen = Screen::new(size, self.history);
        }
        whole
    }

    fn deliver(&self, done: Vec<Done>) {
        lock(&self.shared.done).extend(done);
        let _ = rustix::io::write(&self.shared.ready, &1u64.to_ne_bytes());
    }
}

/// `#rrggbb`.
fn colour(text: &str) -> Option<Rgb> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    Some(Rgb { r: part(0)?, g: part(2)?, b: part(4)? })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
