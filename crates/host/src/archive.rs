//! Serves a session whose process has ended from its files: the log and the last saved screen.
//!
//! No emulator runs here, so that hostile output is only ever parsed in the process of the session that printed it.

use std::fs;
use std::io::{self, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bowline_proto::Offset;
use bowline_proto::config::ServerConfig;
use bowline_proto::frame::Frame;
use bowline_proto::link::{ConnId, Server, ServerEvent, Snapshot};
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
/// Frames are written to the viewer's socket in batches of about this many bytes.
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

/// Checks that [`serve`] can show a session, so that a viewer can be refused for good before it retries.
pub fn check(entry: &Entry) -> Result<&TerminalInfo, ArchiveError> {
    entry.info.terminal.as_ref().ok_or(ArchiveError::Kind)
}

/// Serves one viewer over `stream`, as the session process would, until the connection ends.
pub fn serve(entry: &Entry, mut stream: UnixStream) -> Result<(), ArchiveError> {
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
    let (conn, origin) = (ConnId(0), Instant::now());
    link.handle_open(conn, origin.elapsed());
    let (mut received, mut chunk, mut frames) = (Vec::new(), vec![0; 16 << 10], Vec::new());
    loop {
        loop {
            while let Some(event) = link.poll_event() {
                if let ServerEvent::NeedSnapshot(kind) = event {
                    link.handle_snapshot(kind, snapshot(&screen, kind.scope));
                }
            }
            frames.clear();
            while let Some(transmit) = link.poll_transmit(conn, origin.elapsed()) {
                let put = wire::put(&mut frames, transmit, &log, |_, _| None);
                if put != PutOutcome::Queued {
                    stream.write_all(&frames)?;
                    return Ok(());
                }
                if frames.len() >= BATCH {
                    break;
                }
            }
            if frames.is_empty() {
                break;
            }
            stream.write_all(&frames)?;
        }
        let wait = link.poll_timeout().map_or(Duration::from_secs(1), |at| at.saturating_sub(origin.elapsed()));
        stream.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => received.extend_from_slice(&chunk[..n]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        let mut used = 0;
        loop {
            match Frame::decode(&received[used..]) {
                Ok(Some((frame, len))) => {
                    link.handle_frame(conn, frame, origin.elapsed());
                    used += len;
                }
                Ok(None) => break,
                Err(_) => return Ok(()), // not our protocol, so there is no way to reply
            }
        }
        received.drain(..used);
        link.handle_timeout(origin.elapsed());
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
