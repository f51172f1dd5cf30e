//! Serves a session whose process has ended from its files: the log and the last saved screen.
//!
//! No emulator runs here, so that hostile output is only ever parsed in the process of the session that printed it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bowline_proto::Offset;
use bowline_proto::close;
use bowline_proto::config::{SNAPSHOT_RETRIES, ServerConfig};
use bowline_proto::frame::Frame;
use bowline_proto::ids::Epoch;
use bowline_proto::link::{ConnId, Server, ServerEvent, Snapshot, Transmit};
use bowline_proto::message::{Scope, ServerMessage};
use bowline_proto::session::TerminalInfo;
use bowline_proto::size::Size;
use bytes::Bytes;

use crate::files;
use crate::history::History;
use crate::home::SessionDir;
use crate::log::{Log, ReadOutcome};
use crate::registry::Entry;
use crate::saved::SavedScreen;
use crate::summary::Summary;
use crate::wire::{self, PutOutcome};

/// The most bytes of a screen file. A longer one is damaged.
const MAX_SCREEN: u64 = 64 << 20;
/// Frames are written to a viewer's socket in batches of about this many bytes.
const BATCH: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("cannot read the session's files: {0}")]
    Io(#[from] io::Error),
    /// Part of the requested range is not in the log. `end` is one past the newest byte.
    #[error("the log only has bytes {start} to {end}")]
    Trimmed { start: Offset, end: Offset },
    /// The session is not a terminal, but of a kind added by a newer version.
    #[error("this version of bowline cannot show a session of this kind")]
    Kind,
    #[error("the session left no last screen, or it is damaged; its log may have the output")]
    NoScreen,
    #[error("the session's log is missing or damaged; its last screen may be there")]
    NoLog,
}

/// The log file of a session, which may still be running. After each read, it is checked that the bytes were not
/// overwritten meanwhile.
#[derive(Debug)]
pub struct LogFile(Log);

impl LogFile {
    pub fn open(dir: &SessionDir) -> Result<LogFile, ArchiveError> {
        let summary = Summary::read(dir).unwrap_or_default();
        open_log(dir, &summary)
            .map(LogFile)
            .map_err(|error| if is_lost(&error) { ArchiveError::NoLog } else { error.into() })
    }

    /// A log without any bytes, in place of a file that cannot be read.
    pub fn empty() -> LogFile {
        LogFile(Log::empty(0))
    }

    /// The current start and end of the log; the end is one past the newest byte.
    pub fn range(&self) -> Result<(Offset, Offset), ArchiveError> {
        self.0.refresh()?;
        Ok((self.0.start(), self.0.end()))
    }

    /// Reads bytes from `from` on into `buf`. Returns how many; 0 at the end of the log.
    pub fn read(&self, from: Offset, buf: &mut [u8]) -> Result<usize, ArchiveError> {
        let read = self.0.read(from, buf)?;
        let (start, end) = self.range()?;
        match read {
            // The bytes were overwritten during the read.
            ReadOutcome::Data(_) | ReadOutcome::CaughtUp | ReadOutcome::Trimmed { .. } if from < start => {
                Err(ArchiveError::Trimmed { start, end })
            }
            ReadOutcome::Data(n) => Ok(n),
            ReadOutcome::CaughtUp => Ok(0),
            ReadOutcome::Trimmed { .. } | ReadOutcome::Ahead { .. } => Err(ArchiveError::Trimmed { start, end }),
        }
    }
}

/// Opens the log, and checks that it does not claim more than was recorded at the session's exit.
pub fn open_log(dir: &SessionDir, summary: &Summary) -> io::Result<Log> {
    let log = Log::open(&dir.log())?;
    let is_too_long = |summary: &Summary| summary.exit.as_ref().is_some_and(|(_, end)| log.end() > *end);
    // If the session was restarted after `summary` was read, the log may have grown since.
    if is_too_long(summary) && Summary::read(dir).map_or(true, |now| is_too_long(&now)) {
        return Err(files::damage("the log is longer than its session's output"));
    }
    Ok(log)
}

/// Reads the last saved screen.
pub fn read_screen(dir: &SessionDir) -> Result<SavedScreen, ArchiveError> {
    match files::read(&dir.screen(), MAX_SCREEN) {
        Ok(bytes) => SavedScreen::decode(&bytes).map_err(|_| ArchiveError::NoScreen),
        Err(error) if is_lost(&error) => Err(ArchiveError::NoScreen),
        Err(error) => Err(error.into()),
    }
}

/// Reads the screen that a session showed last. A screen of an earlier run is not one, and neither is one from before the
/// exit: it could not be written at the end.
pub fn last_screen(dir: &SessionDir) -> Result<SavedScreen, ArchiveError> {
    let screen = read_screen(dir)?;
    let summary = if_whole(Summary::read(dir))?.unwrap_or_default();
    let is_of_run = summary.started.is_none_or(|started| started.epoch == screen.epoch);
    let is_last = summary.exit.is_none_or(|(_, end)| screen.offset >= end);
    if is_of_run && is_last { Ok(screen) } else { Err(ArchiveError::NoScreen) }
}

/// Whether a file is missing or damaged, so that reading it again would fail again.
fn is_lost(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || files::is_damage(error)
}

/// `None` if the file that was read is missing or damaged.
fn if_whole<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(whole) => Ok(Some(whole)),
        Err(error) if is_lost(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Checks that [`Archive`] can show a session, so that a viewer can be refused for good before it retries.
pub fn check(entry: &Entry) -> Result<&TerminalInfo, ArchiveError> {
    entry.info.terminal.as_ref().ok_or(ArchiveError::Kind)
}

/// The last screen of a session, which all its viewers keep in memory together while there are any.
#[derive(Debug, Default)]
pub struct SharedScreen(Weak<LastScreen>);

impl SharedScreen {
    pub fn is_held(&self) -> bool {
        self.0.strong_count() > 0
    }

    fn read(&mut self, dir: &SessionDir) -> Result<Arc<LastScreen>, ArchiveError> {
        // Before the file is read, so that a change meanwhile is noticed the next time.
        let version = fs::symlink_metadata(dir.screen()).ok().map(|file| (file.ino(), file.ctime(), file.ctime_nsec()));
        if let Some(screen) = self.0.upgrade().filter(|screen| version.is_some() && screen.version == version) {
            return Ok(screen);
        }
        let screen = Arc::new(LastScreen { version, ..read_screen(dir)?.into() });
        self.0 = Arc::downgrade(&screen);
        Ok(screen)
    }
}

/// The last saved screen, as far as viewers get it. A snapshot of it copies no bytes.
#[derive(Debug)]
struct LastScreen {
    /// The inode of the file, and when that was last changed.
    version: Option<(u64, i64, i64)>,
    offset: Offset,
    epoch: Epoch,
    size: Size,
    all: Bytes,
    screen: Bytes,
}

impl From<SavedScreen> for LastScreen {
    fn from(saved: SavedScreen) -> LastScreen {
        let SavedScreen { offset, epoch, size, all, screen, .. } = saved;
        LastScreen { version: None, offset, epoch, size, all: all.into(), screen: screen.into() }
    }
}

impl LastScreen {
    fn snapshot(&self, scope: Scope) -> Snapshot {
        let bytes = match scope {
            Scope::All => &self.all,
            Scope::Screen => &self.screen,
        };
        Snapshot { offset: self.offset, size: self.size, pieces: vec![bytes.clone()] }
    }
}

/// An ended session and its one viewer. It only reads the session's files; its caller does the waiting.
///
/// Times are counted from when it was opened.
#[derive(Debug)]
pub struct Archive {
    link: Server,
    log: Log,
    screen: Arc<LastScreen>,
    /// Tells the viewer what is missing, once it is attached.
    notice: Option<String>,
    received: Vec<u8>,
    stalled_after: Duration,
    /// When the viewer last accepted output or a part of a snapshot.
    progress: Duration,
    /// Whether the last frames had any of these.
    sent_data: bool,
}

/// The viewer's connection.
const CONN: ConnId = ConnId(0);

impl Archive {
    /// Opens the session's files. A viewer that acknowledges nothing for `stalled_after`, although there is more for
    /// it, is closed with 4408.
    pub fn open(entry: &Entry, stalled_after: Duration, shared: &mut SharedScreen) -> Result<Archive, ArchiveError> {
        let terminal = check(entry)?;
        let LastRun { history, log, screen, start, end, notice } = last_run(entry, terminal.size, shared)?;
        let mut link = Server::new(ServerConfig::new(entry.info.epoch.clone(), terminal.size), entry.info.clone());
        for (at, size) in history.resizes.iter().filter(|(at, _)| *at <= end) {
            link.handle_resized(*at, *size);
        }
        link.handle_log(start, end);
        link.handle_screen(screen.offset);
        link.handle_exit(entry.info.exit.clone().unwrap_or_default());
        link.handle_open(CONN, Duration::ZERO);
        let progress = Duration::ZERO;
        Ok(Archive { link, log, screen, notice, received: Vec::new(), stalled_after, progress, sent_data: false })
    }

    /// Takes bytes from the viewer. Returns whether they follow the protocol; if not, there is no way to reply.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Duration) -> bool {
        self.received.extend_from_slice(bytes);
        let mut used = 0;
        loop {
            match Frame::decode(&self.received[used..]) {
                Ok(Some((frame, len))) => {
                    self.link.handle_frame(CONN, frame, now);
                    used += len;
                }
                Ok(None) => break,
                Err(_) => return false,
            }
        }
        self.received.drain(..used);
        if self.link.clients() > 0
            && let Some(body) = self.notice.take()
        {
            self.link.handle_notice(ServerMessage::Notify { title: "bowline".into(), body });
        }
        true
    }

    /// Appends frames for the viewer, about 64 KiB at a time; none if there is nothing to send now. Returns
    /// whether these are the last. Call it again once they are written.
    pub fn poll_frames(&mut self, frames: &mut Vec<u8>, now: Duration) -> bool {
        if std::mem::take(&mut self.sent_data) {
            self.progress = now;
        }
        self.link.handle_timeout(now);
        // The snapshot is always the same, so one that is still rejected after these is left to the link's deadline.
        let mut retries = 0..=SNAPSHOT_RETRIES;
        while frames.len() < BATCH {
            let Some(transmit) = self.link.poll_transmit(CONN, now) else {
                if self.take_requested_snapshot() && retries.next().is_some() {
                    continue;
                }
                return self.close_stalled(frames, now);
            };
            self.sent_data |= matches!(transmit, Transmit::Output { .. } | Transmit::SnapshotPart(_));
            if wire::put(frames, transmit, &self.log, |_, _| None) != PutOutcome::Queued {
                return true;
            }
        }
        false
    }

    /// When to call [`poll_frames`](Archive::poll_frames) at the latest.
    pub fn poll_timeout(&self) -> Duration {
        let stalled = self.progress.saturating_add(self.stalled_after);
        self.link.poll_timeout().map_or(stalled, |at| at.min(stalled))
    }

    /// Gives the link the snapshot that it requested. Returns whether it did.
    fn take_requested_snapshot(&mut self) -> bool {
        let mut given = false;
        while let Some(event) = self.link.poll_event() {
            if let ServerEvent::NeedSnapshot(kind) = event {
                self.link.handle_snapshot(kind, self.screen.snapshot(kind.scope));
                given = true;
            }
        }
        given
    }

    /// Appends a close for a viewer that has stalled. Returns whether it did.
    fn close_stalled(&self, frames: &mut Vec<u8>, now: Duration) -> bool {
        if self.sent_data || now.saturating_sub(self.progress) < self.stalled_after {
            return false;
        }
        let reason = "the viewer acknowledged nothing for too long".to_owned();
        wire::put(frames, Transmit::Close { code: close::TIMED_OUT, reason }, &self.log, |_, _| None);
        true
    }
}

/// What the files say about the last run of a session.
struct LastRun {
    history: History,
    log: Log,
    screen: Arc<LastScreen>,
    /// The range of the run's output in the log.
    start: Offset,
    end: Offset,
    /// Tells the viewer what is missing.
    notice: Option<String>,
}

/// Reads the last run. A file that is missing or damaged is replaced by an empty one, and reported in the notice.
fn last_run(entry: &Entry, size: Size, shared: &mut SharedScreen) -> Result<LastRun, ArchiveError> {
    let dir = &entry.dir;
    let history = if_whole(History::read(&dir.events()))?.unwrap_or_default();
    let started = history.summary.started.as_ref();
    // Without events, the whole log is treated as one run.
    let run_start = started.map_or(0, |started| started.offset);
    let is_of_run = |screen: &Arc<LastScreen>| started.is_none_or(|started| screen.epoch == started.epoch);
    let screen = match shared.read(dir) {
        Ok(screen) => Some(screen).filter(is_of_run),
        Err(ArchiveError::NoScreen) => None,
        Err(error) => return Err(error),
    };
    let log = if_whole(open_log(dir, &history.summary))?;
    let has_log = log.is_some();
    let recorded_end = history.summary.exit.as_ref().map_or(run_start, |(_, end)| *end);
    let log = log.unwrap_or_else(|| Log::empty(screen.as_ref().map_or(recorded_end, |screen| screen.offset)));
    let (start, end) = (log.start().max(run_start), log.end().max(run_start));
    let has_whole_log = has_log && start == run_start;
    let notice = match (&screen, has_log) {
        (Some(_), false) => Some("the log of this session is missing or damaged; this is its last screen"),
        (None, false) => Some("the log and the last screen of this session are missing or damaged"),
        (None, true) if !has_whole_log => {
            Some("the last screen of this session is missing or damaged; this is the output that its log still has")
        }
        (_, true) if started.is_none() => {
            Some("the events of this session are missing or damaged, so it is not known how its program ended")
        }
        (_, true) => None,
    };
    let notice = notice.map(str::to_owned);
    Ok(match screen {
        None => {
            let screen = Arc::new(SavedScreen::blank(&entry.info.epoch, start, size).into());
            LastRun { screen, history, log, start, end, notice }
        }
        // The log file could not be written at the end, so its newest bytes were lost with the process.
        Some(screen) if screen.offset > end => {
            let offset = screen.offset;
            LastRun { start: offset, end: offset, screen, history, log, notice }
        }
        // If the log no longer reaches back to this screen, the link reports the bytes in between as missed.
        Some(screen) => LastRun { screen, history, log, start, end, notice },
    })
}

#[cfg(test)]
mod tests {
    use bowline_proto::ids::{Epoch, SessionId};

    use super::*;
    use crate::events::Event;
    use crate::home::Home;
    use crate::log::MIN_SIZE;

    #[test]
    fn r21_a_log_that_a_restart_makes_longer_is_not_damaged() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        home.ensure().unwrap();
        let dir = home.session(&SessionId::from_random([0; 12]));
        std::fs::create_dir(dir.path()).unwrap();
        let log = Log::create(&dir.log(), MIN_SIZE, 0).unwrap();
        let (mut journal, mut history) = History::open(&dir.events()).unwrap();
        let mut record = |event| history.record(&mut journal, event).unwrap();
        let started = |n| Event::Started {
            epoch: Epoch::from_random([n; 4]),
            offset: log.end(),
            size: Some(Size::default()),
            pid: 1,
            version: "0.1.0".into(),
        };
        record(started(1));
        record(Event::Exit { code: Some(0), signal: None, offset: 0 });
        let before = Summary::read(&dir).unwrap();
        assert!(open_log(&dir, &before).is_ok());
        log.append(b"more than was recorded").unwrap();
        assert!(open_log(&dir, &before).is_err_and(|error| files::is_damage(&error)));
        record(started(2));
        assert!(open_log(&dir, &before).is_ok(), "it is of the next run");
    }
}
