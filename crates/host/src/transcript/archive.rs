//! Serves one viewer of an agent session whose process has ended, from the session's files.

use std::fs::File;
use std::io;
use std::time::Duration;

use bowline_proto::follow::{FollowConfig, FollowMessage, Server, ServerEvent, Transmit};
use bowline_proto::frame::{self, Frame};
use bowline_proto::link::ConnId;
use bowline_proto::problem::Code;
use serde_json::Value;

use super::lines::put_event;
use super::ranges::Ranges;
use super::{Lines, TranscriptState, command_digest, read_state};
use crate::files;
use crate::registry::Entry;

/// Frames are built in batches of about this many bytes.
const BATCH: usize = 64 << 10;
/// A viewer that has at least this many events to read gets fewer of them, with longer texts.
const LAG: u64 = 64;
/// The viewer's connection.
const CONN: ConnId = ConnId(0);

/// The journal of an ended session, and its one viewer. It only reads; its caller does the waiting.
///
/// Times are counted from when it was opened.
#[derive(Debug)]
pub struct TranscriptArchive {
    server: Server,
    file: File,
    state: TranscriptState,
    reading: ReadPosition,
    received: Vec<u8>,
}

impl TranscriptArchive {
    pub fn open(entry: &Entry) -> io::Result<TranscriptArchive> {
        let state = read_state(&entry.dir)?;
        let file = files::open(&entry.dir.events())?;
        let (epochs, end) = (state.fold.epochs.iter().cloned().collect(), state.fold.next_seq);
        let mut server = Server::new(FollowConfig::default(), entry.info.clone(), epochs, end);
        server.handle_exit(entry.info.exit.clone().unwrap_or_default());
        server.handle_open(CONN, Duration::ZERO);
        Ok(TranscriptArchive { server, file, state, reading: ReadPosition::default(), received: Vec::new() })
    }

    /// Takes bytes from the viewer. Returns whether they follow the protocol; if not, there is no way to reply.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Duration) -> bool {
        self.received.extend_from_slice(bytes);
        let mut used = 0;
        loop {
            match Frame::decode(self.received.get(used..).unwrap_or_default()) {
                Ok(Some((frame, len))) => {
                    self.server.handle_frame(CONN, frame, now);
                    used += len;
                }
                Ok(None) => break,
                Err(_) => return false,
            }
        }
        self.received.drain(..used);
        true
    }

    /// Appends frames for the viewer, about 64 KiB at a time; none if there is nothing to send now. Returns whether these
    /// are the last. Call it again once they are written.
    pub fn poll_frames(&mut self, frames: &mut Vec<u8>, now: Duration) -> bool {
        self.server.handle_timeout(now);
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Command { conn, id, command, .. } = event {
                let answer = self.answer(id, &command);
                self.server.handle_command_done(conn, answer);
            }
        }
        while frames.len() < BATCH {
            let Some(transmit) = self.server.poll_transmit(CONN, now) else { return false };
            let sent = put(frames, transmit, &self.file, &self.state, &mut self.reading, BATCH);
            match sent {
                Ok(Put::Message) => {}
                Ok(Put::Events { next }) => self.server.handle_sent(CONN, next),
                Ok(Put::Last) | Err(_) => return true,
            }
        }
        false
    }

    /// The answer to a command: it was accepted before the session ended, or is refused.
    fn answer(&self, id: String, command: &Value) -> FollowMessage {
        let refuse =
            |id, code, message: &str| FollowMessage::Rejected { id, code, message: message.to_owned(), answered: None };
        match self.state.fold.accepted(&id) {
            Some(known) if known.digest == command_digest(command) => {
                let run = known.run.map(|run| run.to_string());
                FollowMessage::Accepted { id, seq: known.seq, run, duplicate: true }
            }
            Some(_) => refuse(id, Code::IdReused, "another command already used this id"),
            None => refuse(id, Code::SessionGone, "the session has ended"),
        }
    }

    /// When to call [`poll_frames`](TranscriptArchive::poll_frames) at the latest.
    pub fn poll_timeout(&self) -> Duration {
        self.server.poll_timeout().unwrap_or(Duration::MAX)
    }
}

/// Where a viewer's next event is in the file, so that it need not be searched for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadPosition {
    seq: u64,
    byte: u64,
}

/// What [`put`] appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    Message,
    /// The events before this number.
    Events {
        next: u64,
    },
    /// The connection's last frame.
    Last,
}

/// Appends the frames of a transmit: of events, until `frames` has `enough` bytes.
pub fn put(
    frames: &mut Vec<u8>,
    transmit: Transmit,
    file: &File,
    state: &TranscriptState,
    position: &mut ReadPosition,
    enough: usize,
) -> io::Result<Put> {
    let (from, to) = match transmit {
        Transmit::Text(message) => {
            put_message(frames, &message);
            return Ok(Put::Message);
        }
        Transmit::Close { code, reason } => {
            put_message(frames, &FollowMessage::Close { code, reason });
            return Ok(Put::Last);
        }
        Transmit::Events { from, to } => (from, to),
    };
    if position.seq != from || (position.byte == 0 && from > 0) {
        let (seq, byte) = state.find(from);
        *position = ReadPosition { seq, byte };
    }
    let next = match to - from {
        LAG.. => put_ranges(frames, file, position, from, to, enough)?,
        _ => put_lines(frames, file, position, from, to, enough)?,
    };
    if next == from {
        return Err(files::damage("the journal does not have the event that follows"));
    }
    Ok(Put::Events { next })
}

/// Appends events as they are. Returns the number after the last.
fn put_lines(
    frames: &mut Vec<u8>,
    file: &File,
    position: &mut ReadPosition,
    from: u64,
    to: u64,
    enough: usize,
) -> io::Result<u64> {
    let mut lines = Lines::new(file, position.byte, position.seq);
    let mut next = from;
    while next < to && (frames.len() < enough || next == from) {
        let Some(line) = lines.next()? else { break };
        *position = ReadPosition { seq: line.seq + 1, byte: line.end() };
        // A cursor in the middle of a range gets the whole line only if the line begins there.
        if line.first < next && line.seq < next {
            continue;
        }
        if line.first != next || !put_event(frames, line.text) {
            break;
        }
        next = line.seq + 1;
    }
    Ok(next)
}

/// The same with fewer events.
fn put_ranges(
    frames: &mut Vec<u8>,
    file: &File,
    position: &mut ReadPosition,
    from: u64,
    to: u64,
    enough: usize,
) -> io::Result<u64> {
    let mut ranges = Ranges::new(file, position.byte, position.seq, from, to);
    let mut next = from;
    while next < to && (frames.len() < enough || next == from) {
        let Some(range) = ranges.next()?.filter(|range| range.first == next) else { break };
        if !put_event(frames, &range.text) {
            break;
        }
        next = range.seq + 1;
        *position = ReadPosition { seq: next, byte: range.end };
    }
    Ok(next)
}

fn put_message(frames: &mut Vec<u8>, message: &FollowMessage) {
    frame::put_text(frames, &serde_json::to_string(message).unwrap_or_default());
}
