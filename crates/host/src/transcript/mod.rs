//! The journal of an agent session: every event, one line each, in one sequence without gaps.
//!
//! The owner of the session's lock appends ([`Transcript`]); any process may read ([`read_state`], [`Lines`]). A checkpoint
//! in `head` (`head.rs`) holds the fold and a sparse index of the lines, so that neither lists nor readers of the end read
//! the whole file.

mod accepted;
mod archive;
mod head;
mod lines;
mod page;
mod ranges;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use bowline_proto::agent::event::{AgentEvent, Blob, Complete, Level, RunError};
use bowline_proto::agent::fold::Fold;
use bowline_proto::ids::Epoch;
use bowline_proto::journal::Record;
use serde::{Deserialize, Serialize};

pub use self::accepted::find_accepted;
pub use self::archive::{Put, ReadPosition, TranscriptArchive, put};
pub use self::lines::{Line, Lines};
pub use self::page::{DEFAULT_EVENTS, MAX_EVENTS, PageQuery, read_page};
use crate::blobs::Blobs;
use crate::checkpoint::may_replace;
use crate::digest::fnv1a;
use crate::files;
use crate::home::SessionDir;
use crate::journal::{Journal, Position};

/// The longest line in bytes. An event that would take more is recorded as a notice of its size.
pub const MAX_LINE: usize = 512 << 10;
/// The most bytes of a damaged end that are kept beside the transcript.
const MAX_DAMAGED: u64 = 256 << 20;
/// A line is put into the index after this many bytes.
const INDEX_EVERY: u64 = 64 << 10;
/// A reader that had to read more than this many bytes writes a checkpoint.
const CHECKPOINT_EVERY: u64 = 64 << 10;

/// The fold of a transcript, and where its lines are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TranscriptState {
    pub fold: Fold,
    /// Some lines: the first number of each, and its position in the file. In order.
    index: Vec<(u64, u64)>,
}

impl TranscriptState {
    fn add(&mut self, record: &Record<AgentEvent>, byte: u64) {
        if self.index.last().is_none_or(|(_, last)| byte >= last + INDEX_EVERY) {
            self.index.push((record.first(), byte));
        }
        self.fold.fold(record);
    }

    /// A position in the file at or before the line with this number, and the first number there.
    pub fn find(&self, seq: u64) -> (u64, u64) {
        let after = self.index.partition_point(|(first, _)| *first <= seq);
        after.checked_sub(1).and_then(|at| self.index.get(at)).copied().unwrap_or_default()
    }
}

/// A transcript opened for appending. Only the owner of the session's lock may have one.
#[derive(Debug)]
pub struct Transcript {
    journal: Journal,
    blobs: Blobs,
    state: TranscriptState,
    head: PathBuf,
    /// What [`Transcript::checkpoint`] wrote last.
    checkpoint: Position,
}

/// What [`Transcript::open`] found.
#[derive(Debug)]
pub struct Opened {
    pub transcript: Transcript,
    /// The end of the file was damaged, and was cut off.
    pub was_cut: bool,
}

impl Transcript {
    /// Opens the file for appending, creating it if necessary. What comes after the last whole line in sequence is cut
    /// off. If that is more than one incomplete line, it is kept in a file beside it.
    pub fn open(dir: &SessionDir) -> io::Result<Opened> {
        let path = dir.events();
        let file = files::open_with(&path, OpenOptions::new().read(true).append(true).create(true).mode(0o600))?;
        let (state, checkpoint, end) = read_from_head(dir, &file)?;
        let len = file.metadata()?.len();
        let was_cut = len > end.byte;
        if was_cut {
            keep_damaged(&file, end.byte, len, &path)?;
            file.set_len(end.byte)?;
        }
        let blobs = Blobs::open(dir, end.seq)?;
        let journal = Journal::continued(path, file, end);
        Ok(Opened { transcript: Transcript { journal, blobs, state, head: dir.head(), checkpoint }, was_cut })
    }

    pub fn state(&self) -> &TranscriptState {
        &self.state
    }

    pub fn fold(&self) -> &Fold {
        &self.state.fold
    }

    /// The position after the last line.
    pub fn end(&self) -> Position {
        self.journal.end()
    }

    pub fn file(&self) -> &File {
        self.journal.file()
    }

    /// Appends an event and returns its number. On error, nothing is appended.
    pub fn append(&mut self, event: AgentEvent) -> io::Result<u64> {
        let byte = self.journal.end().byte;
        let record = self.journal.append_within(event, MAX_LINE, shorter)?;
        self.state.add(&record, byte);
        Ok(record.seq)
    }

    /// Appends a tool call whose output is too long for an event, and writes `output` to its blob. `is_cut` says that
    /// `output` is only the beginning. Returns whether there was room for the blob: without one, the event has the rest.
    /// On error, nothing is appended.
    pub fn append_with_blob(&mut self, mut event: AgentEvent, output: &str, is_cut: bool) -> io::Result<bool> {
        let seq = self.journal.end().seq;
        let written = self.blobs.write(seq, output)?;
        if let (AgentEvent::ToolCall(call) | AgentEvent::ToolUpdate(call), Some(written)) = (&mut event, written) {
            call.blob = Some(Blob { seq, bytes: written.bytes, truncated: is_cut || written.truncated });
        }
        match (self.append(event), written) {
            (Ok(_), written) => Ok(written.is_some()),
            (Err(error), Some(written)) => {
                // The number may be that of another event next.
                self.blobs.remove(seq, written);
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Makes all appended events survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.journal.sync()
    }

    /// Whether events were appended since the last checkpoint.
    pub fn has_news(&self) -> bool {
        self.checkpoint != self.journal.end()
    }

    /// Writes the checkpoint. It may fail: then readers read more of the transcript.
    pub fn checkpoint(&mut self) -> io::Result<()> {
        let end = self.journal.end();
        head::write(&self.head, self.journal.file(), end, &self.state)?;
        self.checkpoint = end;
        Ok(())
    }

    /// Ends what a dead session process left open. With `new_epoch`, a new epoch begins first, because numbers that were
    /// given to viewers may be used again.
    pub fn repair(&mut self, new_epoch: Option<Epoch>) -> io::Result<()> {
        let repaired = new_epoch.map(|epoch| AgentEvent::Repaired { epoch });
        let events: Vec<AgentEvent> = repaired.into_iter().chain(self.fold().interruptions()).collect();
        if events.is_empty() {
            return Ok(());
        }
        for event in events {
            self.append(event)?;
        }
        self.sync()
    }
}

/// Tells a repeat of a command from another with the same id.
pub fn command_digest(command: &serde_json::Value) -> String {
    format!("{:016x}", fnv1a(command.to_string().as_bytes()))
}

/// What is recorded in place of an event that is too long. The end of a run and the outcome of an approval are recorded
/// in any case, without what makes them long.
fn shorter(event: AgentEvent, bytes: usize) -> AgentEvent {
    let why = format!("an event of {bytes} bytes was too large to be recorded (limit {MAX_LINE})");
    match event {
        AgentEvent::Complete(complete) => AgentEvent::Complete(Complete {
            stop_reason: None,
            conversation: None,
            error: complete.error.map(|_| RunError::new("too_long", why)),
            ..complete
        }),
        AgentEvent::ApprovalResolved { approval, outcome, source, .. } => {
            AgentEvent::ApprovalResolved { approval, outcome, option: None, reason: None, source }
        }
        _ => AgentEvent::Notice { level: Level::Warning, text: why },
    }
}

/// Copies the damaged end of a transcript to a file beside it, unless it is only an incomplete line.
fn keep_damaged(file: &File, from: u64, to: u64, path: &std::path::Path) -> io::Result<()> {
    let mut rest = vec![0; (to - from).min(MAX_DAMAGED) as usize];
    file.read_exact_at(&mut rest, from)?;
    if !rest.contains(&b'\n') {
        return Ok(());
    }
    files::write_aside(path, &rest)
}

/// Reads the state of a transcript: from the checkpoint, and the lines after it. Writes nothing.
pub fn read_state(dir: &SessionDir) -> io::Result<TranscriptState> {
    let file = files::open(&dir.events())?;
    Ok(read_from_head(dir, &file)?.0)
}

/// Like [`read_state`], but writes a checkpoint if that saves the next reader enough.
pub fn read_state_and_checkpoint(dir: &SessionDir) -> io::Result<TranscriptState> {
    let file = files::open(&dir.events())?;
    let (state, from, end) = read_from_head(dir, &file)?;
    if end.byte - from.byte >= CHECKPOINT_EVERY && may_replace(dir, head::VERSION) {
        let _ = head::write(&dir.head(), &file, end, &state);
    }
    Ok(state)
}

/// Reads what a list shows of a transcript ([`Fold::listed`]). `may_write` is as in [`read_state_and_checkpoint`].
pub fn read_listed(dir: &SessionDir, may_write: bool) -> io::Result<Fold> {
    let listed = head::read_listed(&dir.head(), &files::open(&dir.events())?);
    let read = if may_write { read_state_and_checkpoint } else { read_state };
    listed.map_or_else(|| Ok(read(dir)?.fold.listed()), Ok)
}

/// Returns the state, and the positions of the checkpoint and of the end.
fn read_from_head(dir: &SessionDir, file: &File) -> io::Result<(TranscriptState, Position, Position)> {
    let (mut state, from) = head::read(&dir.head(), file).unwrap_or_default();
    let mut end = from;
    let mut lines = Lines::new(file, from.byte, from.seq);
    while let Some(line) = lines.next()? {
        let Some(record) = line.parse() else { break };
        end = Position { seq: line.seq + 1, byte: line.end(), last: line.byte };
        state.add(&record, line.byte);
    }
    Ok((state, from, end))
}

#[cfg(test)]
mod tests;
