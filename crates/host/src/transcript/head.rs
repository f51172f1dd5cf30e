//! The checkpoint of a transcript, `head`: a line with what a list shows, then a line with the whole state.
//!
//! The whole state grows with the conversation: it has the ids of thousands of commands. A list of hundreds of sessions
//! reads only the first line of each.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bowline_proto::agent::fold::Fold;

use super::TranscriptState;
use crate::checkpoint::Checkpoint;
use crate::files::{self, write_shared};
use crate::journal::Position;

/// Increased with each change of the file format or of the fold. A checkpoint of another version is ignored. Those of
/// terminals have versions below 1000.
pub(super) const VERSION: u32 = 1003;
/// The most bytes read of the file. A longer one is ignored.
pub(super) const MAX: u64 = 8 << 20;
/// The first line has fewer bytes, unless approvals with long texts wait.
const LISTED: usize = 4 << 10;

/// Writes a checkpoint of this journal.
pub(super) fn write(path: &Path, events: &File, position: Position, state: &TranscriptState) -> io::Result<()> {
    let mut lines = Vec::new();
    serde_json::to_writer(&mut lines, &Checkpoint::new(events, VERSION, position, state.fold.listed())?)?;
    lines.push(b'\n');
    serde_json::to_writer(&mut lines, &Checkpoint::new(events, VERSION, position, state)?)?;
    write_shared(path, &lines)
}

/// Reads the state and its position; `None` if there is no checkpoint of this journal and version.
pub(super) fn read(path: &Path, events: &File) -> Option<(TranscriptState, Position)> {
    let lines = files::read(path, MAX).ok()?;
    let second = lines.iter().position(|byte| *byte == b'\n')? + 1;
    let head = Checkpoint::parse(lines.get(second..)?, events, VERSION)?;
    Some((head.summary, head.position))
}

/// Reads what a list shows of this journal; `None` if no checkpoint has it, or events were appended since.
pub(super) fn read_listed(path: &Path, events: &File) -> Option<Fold> {
    let file = files::open(path).ok()?;
    let mut start = [0; LISTED];
    let read = file.read_at(&mut start, 0).ok()?;
    let start = start.get(..read)?;
    let all;
    let line = match start.iter().position(|byte| *byte == b'\n') {
        Some(end) => start.get(..end)?,
        None => {
            all = files::read_open(&file, MAX).ok()?;
            all.split(|byte| *byte == b'\n').next()?
        }
    };
    let head = Checkpoint::parse(line, events, VERSION)?;
    (events.metadata().ok()?.len() == head.position.byte).then_some(head.summary)
}
