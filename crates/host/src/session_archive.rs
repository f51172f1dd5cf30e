//! Serves the one viewer of an ended session of any kind from the session's files.

use std::io::{self, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bowline_proto::session::Kind;

use crate::archive::{Archive, ArchiveError, SharedScreen, check as check_terminal};
use crate::registry::Entry;
use crate::transcript::TranscriptArchive;

/// The files of an ended session, and its one viewer. It only reads; [`serve`] and the gateway do the waiting.
///
/// Times are counted from when it was opened.
#[derive(Debug)]
pub enum SessionArchive {
    Terminal(Box<Archive>),
    Agent(Box<TranscriptArchive>),
}

impl SessionArchive {
    /// Opens the session's files. The viewer of a terminal that acknowledges nothing for `stalled_after` is closed with
    /// 4408.
    pub fn open(
        entry: &Entry,
        stalled_after: Duration,
        shared: &mut SharedScreen,
    ) -> Result<SessionArchive, ArchiveError> {
        if entry.info.kind == Kind::Agent {
            return Ok(SessionArchive::Agent(Box::new(TranscriptArchive::open(entry)?)));
        }
        Ok(SessionArchive::Terminal(Box::new(Archive::open(entry, stalled_after, shared)?)))
    }

    /// Takes bytes from the viewer. Returns whether they follow the protocol; if not, there is no way to reply.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Duration) -> bool {
        match self {
            SessionArchive::Terminal(archive) => archive.handle_bytes(bytes, now),
            SessionArchive::Agent(archive) => archive.handle_bytes(bytes, now),
        }
    }

    /// Appends frames for the viewer; none if there is nothing to send now. Returns whether these are the last.
    pub fn poll_frames(&mut self, frames: &mut Vec<u8>, now: Duration) -> bool {
        match self {
            SessionArchive::Terminal(archive) => archive.poll_frames(frames, now),
            SessionArchive::Agent(archive) => archive.poll_frames(frames, now),
        }
    }

    /// When to call [`poll_frames`](SessionArchive::poll_frames) at the latest.
    pub fn poll_timeout(&self) -> Duration {
        match self {
            SessionArchive::Terminal(archive) => archive.poll_timeout(),
            SessionArchive::Agent(archive) => archive.poll_timeout(),
        }
    }
}

/// Checks that the session is of a kind that can be served, so that a viewer can be refused for good before it retries.
pub fn check(entry: &Entry) -> Result<(), ArchiveError> {
    if entry.info.kind == Kind::Agent { Ok(()) } else { check_terminal(entry).map(drop) }
}

/// Serves one viewer over `stream`, as the session process would, until the connection ends.
pub fn serve(entry: &Entry, mut stream: UnixStream) -> Result<(), ArchiveError> {
    let mut archive = SessionArchive::open(entry, Duration::MAX, &mut SharedScreen::default())?;
    let origin = Instant::now();
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
