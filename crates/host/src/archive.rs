//! Serves a session whose process has ended from its files: the log and the last saved screen.
//!
//! No emulator runs here, so that hostile output is only ever parsed in the process of the session that printed it.

use std::fs;
use std::io::{self, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bowline_proto::Offset;
use bowline_proto::close;
use bowline_proto::config::ServerConfig;
use bowline_proto::frame::Frame;
use bowline_proto::link::{ConnId, Server, ServerEvent, Snapshot, Transmit};
use bowline_proto::message::Scope;
use bowline_proto::session::TerminalInfo;
use bowline_proto::size::Size;

use crate::history::History;
use crate::home::SessionDir;
use crate::log::{Log, ReadOutcome};
use crate::registry::Entry;
use crate::saved::SavedScreen;
use crate::wire::{self, PutOutcome};

/// The most bytes read of a screen file. A longer file fails its checksum.
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
    #[error("the session's last screen is missing or damaged")]
    NoScreen,
}

/// The log file of a session, which may still be running. After each read, it is checked that the bytes were not
/// overwritten meanwhile.
#[derive(Debug)]
pub struct LogFile(Log);

impl LogFile {
    pub fn open(dir: &SessionDir) -> Result<LogFile, ArchiveError> {
        Ok(LogFile(Log::open(&dir.log())?))
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

/// Reads the last saved screen.
pub fn read_screen(dir: &SessionDir) -> Result<SavedScreen, ArchiveError> {
    let mut bytes = Vec::new();
    fs::File::open(dir.screen()).map_err(|_| ArchiveError::NoScreen)?.take(MAX_SCREEN).read_to_end(&mut bytes)?;
    SavedScreen::decode(&bytes).map_err(|_| ArchiveError::NoScreen)
}

/// Checks that [`Archive`] can show a session, so that a viewer can be refused for good before it retries.
pub fn check(entry: &Entry) -> Result<&TerminalInfo, ArchiveError> {
    entry.info.terminal.as_ref().ok_or(ArchiveError::Kind)
}

/// Serves one viewer over `stream`, as the session process would, until the connection ends.
pub fn serve(entry: &Entry, mut stream: UnixStream) -> Result<(), ArchiveError> {
    let (mut archive, origin) = (Archive::open(entry, Duration::MAX)?, Instant::now());
    let (mut chunk, mut frames) = (vec![0; 16 << 10], Vec::new());
    loop {
        loop {
            frames.clear();
            let last = archive.poll_frames(&mut frames, origin.elapsed());
            stream.write_all(&frames)?;
            if last {
                return Ok(());
            }
            if frames.is_empty() {
                break;
            }
        }
        let wait = archive.poll_timeout().saturating_sub(origin.elapsed());
        stream.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) if !archive.handle_bytes(&chunk[..n], origin.elapsed()) => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// An ended session and its one viewer. It only reads the session's files; [`serve`] and the gateway do the waiting.
///
/// Times are counted from when it was opened.
#[derive(Debug)]
pub struct Archive {
    link: Server,
    log: Log,
    screen: SavedScreen,
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
    pub fn open(entry: &Entry, stalled_after: Duration) -> Result<Archive, ArchiveError> {
        let terminal = check(entry)?;
        let history = History::read(&entry.dir.events())?;
        let log = Log::open(&entry.dir.log())?;
        let LastRun { screen, start, end } = last_run(entry, terminal.size, &history, &log);
        let mut link = Server::new(ServerConfig::new(entry.info.epoch.clone(), terminal.size), entry.info.clone());
        for (at, size) in &history.resizes {
            link.handle_resized(*at, *size);
        }
        link.handle_log(start, end);
        link.handle_screen(screen.offset);
        link.handle_exit(entry.info.exit.clone().unwrap_or_default());
        link.handle_open(CONN, Duration::ZERO);
        let progress = Duration::ZERO;
        Ok(Archive { link, log, screen, received: Vec::new(), stalled_after, progress, sent_data: false })
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
        true
    }

    /// Appends frames for the viewer, about [`BATCH`] bytes at a time; none if there is nothing to send now. Returns
    /// whether these are the last. Call it again once they are written.
    pub fn poll_frames(&mut self, frames: &mut Vec<u8>, now: Duration) -> bool {
        if std::mem::take(&mut self.sent_data) {
            self.progress = now;
        }
        self.link.handle_timeout(now);
        while frames.len() < BATCH {
            let Some(transmit) = self.link.poll_transmit(CONN, now) else {
                if self.take_requested_snapshot() {
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
                self.link.handle_snapshot(kind, snapshot(&self.screen, kind.scope));
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

/// The last run of a session: its screen, and the range of its output in the log.
struct LastRun {
    screen: SavedScreen,
    start: Offset,
    end: Offset,
}

fn last_run(entry: &Entry, size: Size, history: &History, log: &Log) -> LastRun {
    // If the events are damaged, the whole log is treated as one run.
    let started = history.summary.started.as_ref();
    let run_start = started.map_or(0, |started| started.offset);
    let is_of_run = |saved: &SavedScreen| started.is_none_or(|started| saved.epoch == started.epoch);
    let (start, end) = (log.start().max(run_start), log.end().max(run_start));
    let Some(screen) = read_screen(&entry.dir).ok().filter(is_of_run) else {
        return LastRun { screen: SavedScreen::blank(&entry.info.epoch, start, size), start, end };
    };
    if screen.offset > end {
        // The log file could not be written at the end, so its newest bytes were lost with the process.
        return LastRun { start: screen.offset, end: screen.offset, screen };
    }
    // If the log no longer reaches back to this screen, the link reports the bytes in between as missed.
    LastRun { screen, start, end }
}

fn snapshot(saved: &SavedScreen, scope: Scope) -> Snapshot {
    let bytes = match scope {
        Scope::All => saved.all.clone(),
        Scope::Screen => saved.screen.clone(),
    };
    Snapshot { offset: saved.offset, size: saved.size, pieces: vec![bytes.into()] }
}
