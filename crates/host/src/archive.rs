//! A session whose process is gone, served from its files: the log, and the screen as it was last written.
//!
//! No emulator runs here, so that hostile output stays in the process of the session that printed it.

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
use crate::log::{Log, Read};
use crate::registry::Entry;
use crate::saved::Saved;
use crate::wire::{self, Put};

/// The screen file may be this long; a longer one is not ours.
const MAX_SCREEN: u64 = 64 << 20;
/// How much is queued for the viewer before its socket is written.
const BATCH: usize = 64 << 10;

/// Why something is not in the files.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file cannot be read.
    #[error("cannot read the session's files: {0}")]
    Io(#[from] io::Error),
    /// Part of the range is no longer kept.
    #[error("the log keeps bytes {start} to {end} only")]
    Trimmed {
        /// The oldest byte kept.
        start: Offset,
        /// One past the newest.
        end: Offset,
    },
    /// It is no terminal, and how to show what it is came with a later version.
    #[error("this version of bowline cannot show a session of this kind")]
    Kind,
    /// There is no screen file, or it is damaged.
    #[error("the session's last screen was not written")]
    NoScreen,
}

/// The log of a session, also of one that lives: it is read from the file, and checked afterwards.
#[derive(Debug)]
pub struct LogFile(Log);

impl LogFile {
    /// Opens it.
    pub fn open(dir: &SessionDir) -> Result<LogFile, ArchiveError> {
        Ok(LogFile(Log::open(&dir.log())?))
    }

    /// What is kept now: the oldest byte and one past the newest.
    pub fn range(&self) -> Result<(Offset, Offset), ArchiveError> {
        self.0.refresh()?;
        Ok((self.0.start(), self.0.end()))
    }

    /// Bytes from `from`, at most as many as `buf` takes; 0 at the end.
    pub fn read(&self, from: Offset, buf: &mut [u8]) -> Result<usize, ArchiveError> {
        let read = self.0.read(from, buf)?;
        let (start, end) = self.range()?;
        match read {
            // What was overwritten while it was read does not count.
            Read::Data(_) | Read::CaughtUp | Read::Trimmed { .. } if from < start => {
                Err(ArchiveError::Trimmed { start, end })
            }
            Read::Data(n) => Ok(n),
            Read::CaughtUp => Ok(0),
            Read::Trimmed { .. } | Read::Ahead { .. } => Err(ArchiveError::Trimmed { start, end }),
        }
    }
}

/// The screen as it was last written.
pub fn read_screen(dir: &SessionDir) -> Result<Saved, ArchiveError> {
    let mut bytes = Vec::new();
    fs::File::open(dir.screen()).map_err(|_| ArchiveError::NoScreen)?.take(MAX_SCREEN).read_to_end(&mut bytes)?;
    Saved::decode(&bytes).map_err(|_| ArchiveError::NoScreen)
}

/// Whether [`serve`] can show a session: a viewer that is told so at once does not try again.
pub fn check(entry: &Entry) -> Result<&TerminalInfo, ArchiveError> {
    entry.info.terminal.as_ref().ok_or(ArchiveError::Kind)
}

/// Serves one viewer over `stream` as the session's process would, then returns.
pub fn serve(entry: &Entry, mut stream: UnixStream) -> Result<(), ArchiveError> {
    let terminal = check(entry)?;
    let history = History::read(&entry.dir.events())?;
    let log = Log::open(&entry.dir.log())?;
    let Last { screen: last, start, end } = last(entry, terminal.size, &history, &log);
    let mut link = Server::new(ServerConfig::new(entry.info.epoch.clone(), terminal.size), entry.info.clone());
    for (at, size) in &history.resizes {
        link.handle_resized(*at, *size);
    }
    link.handle_log(start, end);
    link.handle_screen(last.offset);
    link.handle_exit(entry.info.exit.clone().unwrap_or_default());
    let (conn, origin) = (ConnId(0), Instant::now());
    link.handle_open(conn, origin.elapsed());
    let (mut received, mut chunk, mut frames) = (Vec::new(), vec![0; 16 << 10], Vec::new());
    loop {
        loop {
            while let Some(event) = link.poll_event() {
                if let ServerEvent::NeedSnapshot { scope, .. } = event {
                    link.handle_snapshot(conn, snapshot(&last, scope));
                }
            }
            frames.clear();
            while let Some(transmit) = link.poll_transmit(conn, origin.elapsed()) {
                let put = wire::put(&mut frames, transmit, &log, |_, _| None);
                if put != Put::Queued {
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
                Err(_) => return Ok(()), // not our protocol: nothing that could be answered
            }
        }
        received.drain(..used);
        link.handle_timeout(origin.elapsed());
    }
}

/// What the files have of the latest life: its screen, and the bytes that go with it.
struct Last {
    screen: Saved,
    start: Offset,
    end: Offset,
}

fn last(entry: &Entry, size: Size, history: &History, log: &Log) -> Last {
    // Where the events are damaged, no life but the last is known of.
    let started = history.summary.started.as_ref();
    let life = started.map_or(0, |started| started.offset);
    let of_it = |saved: &Saved| started.is_none_or(|started| saved.epoch == started.epoch);
    let (start, end) = (log.start().max(life), log.end().max(life));
    let Some(mut screen) = read_screen(&entry.dir).ok().filter(of_it) else {
        return Last { screen: Saved::blank(&entry.info.epoch, start, size), start, end };
    };
    if screen.offset > end {
        // The log could not be written any more, and its newest bytes went with the process.
        return Last { start: screen.offset, end: screen.offset, screen };
    }
    // Where the log has moved past the last screen that was written, that screen is the nearest there is.
    screen.offset = screen.offset.max(start);
    Last { screen, start, end }
}

fn snapshot(saved: &Saved, scope: Scope) -> Snapshot {
    let bytes = match scope {
        Scope::All => saved.all.clone(),
        Scope::Screen => saved.screen.clone(),
    };
    Snapshot { offset: saved.offset, size: saved.size, bytes: bytes.into() }
}
