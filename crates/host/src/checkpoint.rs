//! The file `head`: the fold of a journal up to a position, so that readers need not read the whole journal.
//!
//! It is just a cache. If it is missing, damaged, or belongs to a journal that has been replaced, its reader starts from
//! the first event. Any process may write it at any time: a reader only uses one that belongs to the journal it finds.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::alive::is_alive;
use crate::digest::fnv1a;
use crate::files::{self, write_shared};
use crate::home::SessionDir;
use crate::journal::{self, Position};

/// Whether a reader of this version may replace the checkpoint. One of a newer version is left to its session process:
/// that would write it again and again, and neither could use what the other wrote.
pub(crate) fn may_replace(dir: &SessionDir, version: u32) -> bool {
    found_version(&dir.head()).is_none_or(|found| found <= version) || !is_alive(dir)
}

/// The version in the file, which every version writes first. The rest may be of any form or length.
fn found_version(head: &Path) -> Option<u32> {
    let mut start = String::new();
    files::open(head).ok()?.take(32).read_to_string(&mut start).ok()?;
    let rest = start.strip_prefix(r#"{"version":"#)?;
    rest.split_once(|char: char| !char.is_ascii_digit())?.0.parse().ok()
}

/// A checkpoint. The file has one, or several lines with one each.
// `version` stays the first field: see `found_version`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Checkpoint<S> {
    version: u32,
    pub(crate) position: Position,
    /// See [`journal::fingerprint`].
    fingerprint: u64,
    /// The fold of all events before `position`.
    pub(crate) summary: S,
    /// See [`Checkpoint::sum`].
    checksum: u64,
}

impl<S: Serialize> Checkpoint<S> {
    /// A checkpoint of this journal.
    pub(crate) fn new(events: &File, version: u32, position: Position, summary: S) -> io::Result<Checkpoint<S>> {
        let fingerprint = journal::fingerprint(events, position)?;
        let mut checkpoint = Checkpoint { version, position, fingerprint, summary, checksum: 0 };
        checkpoint.checksum = checkpoint.sum()?;
        Ok(checkpoint)
    }

    /// Writes a file with only this checkpoint.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        write_shared(path, &serde_json::to_vec(self)?)
    }

    /// The checksum of the other fields. It detects damage, not an attacker, who could write any events anyway.
    fn sum(&self) -> io::Result<u64> {
        Ok(fnv1a(&serde_json::to_vec(&(self.version, self.position, self.fingerprint, &self.summary))?))
    }

    /// Whether the checkpoint belongs to this journal.
    fn is_of(&self, events: &File) -> bool {
        let fits = events.metadata().is_ok_and(|found| found.len() >= self.position.byte);
        fits && journal::fingerprint(events, self.position).is_ok_and(|found| found == self.fingerprint)
    }
}

impl<S: Serialize + DeserializeOwned> Checkpoint<S> {
    /// Reads a file with only a checkpoint; `None` if there is none of this journal and version, or the file has more than
    /// `max` bytes.
    pub(crate) fn read(path: &Path, events: &File, version: u32, max: u64) -> Option<Checkpoint<S>> {
        Checkpoint::parse(&files::read(path, max).ok()?, events, version)
    }

    /// Parses a checkpoint; `None` if it is damaged, or not of this journal and version.
    pub(crate) fn parse(json: &[u8], events: &File, version: u32) -> Option<Checkpoint<S>> {
        let head: Checkpoint<S> = serde_json::from_slice(json).ok()?;
        let is_whole = head.version == version && head.sum().is_ok_and(|sum| sum == head.checksum);
        (is_whole && head.is_of(events)).then_some(head)
    }
}
