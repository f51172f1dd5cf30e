//! `events.jsonl`: numbered records, one line of JSON each. One process appends; any process may read.
//!
//! A record is complete once its newline is written. An incomplete line, left by a crash, is ignored by readers, and
//! cut off when the file is next opened for appending.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use bowline_proto::journal::Record;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::digest::fnv1a;
use crate::files::{self, damage, write_durable};
use crate::timestamp::timestamp;

/// The longest line in bytes; a longer one is skipped. Titles, directories and notifications are far shorter.
const MAX_LINE: u64 = 64 << 10;
/// A longer file is not read. The session process replaces it by a shorter one long before.
const MAX_FILE: u64 = 16 << 20;
/// Larger sequence numbers count as damage. No session reaches this, and JavaScript can represent all below it.
const MAX_SEQ: u64 = 1 << 53;
/// How many bytes of a record identify it: they contain its sequence number and its time.
const FINGERPRINT: u64 = 64;

/// A position between two records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The sequence number of the next record.
    pub seq: u64,
    /// The file offset of the next record.
    pub byte: u64,
    /// The file offset of the previous record.
    pub last: u64,
}

/// A journal opened for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    end: Position,
}

impl Journal {
    /// Opens the file for appending, creating it if necessary, and passes every record in it to `each`. An incomplete
    /// last line is cut off.
    pub fn open<E: DeserializeOwned>(path: &Path, each: impl FnMut(Record<E>)) -> io::Result<Journal> {
        let file = files::open_with(path, OpenOptions::new().read(true).append(true).create(true).mode(0o600))?;
        let end = read(&file, Position::default(), each)?;
        if file.metadata()?.len() > end.byte {
            file.set_len(end.byte)?;
        }
        Ok(Journal { path: path.to_owned(), file, end })
    }

    /// Continues a file whose last complete line ends at `end`, where the file ends, too.
    pub(crate) fn continued(path: PathBuf, file: File, end: Position) -> Journal {
        Journal { path, file, end }
    }

    pub fn end(&self) -> Position {
        self.end
    }

    /// The open file, for a checkpoint.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Appends an event and returns its record. On error, nothing is appended.
    pub fn append<E: Serialize>(&mut self, event: E) -> io::Result<Record<E>> {
        let record = Record::new(self.end.seq, timestamp(), event);
        let mut line = Vec::new();
        put_line(&mut line, &record)?;
        self.append_line(record, &line)
    }

    /// Like [`Journal::append`], but an event whose line is longer than `max` is replaced by what `replacement` makes of
    /// it and of the length of that line.
    pub fn append_within<E: Serialize>(
        &mut self,
        event: E,
        max: usize,
        replacement: impl FnOnce(E, usize) -> E,
    ) -> io::Result<Record<E>> {
        let mut record = Record::new(self.end.seq, timestamp(), event);
        let mut line = Vec::new();
        put_line(&mut line, &record)?;
        if line.len() > max {
            record.event = replacement(record.event, line.len());
            line.clear();
            put_line(&mut line, &record)?;
        }
        self.append_line(record, &line)
    }

    fn append_line<E>(&mut self, record: Record<E>, line: &[u8]) -> io::Result<Record<E>> {
        self.file.write_all(line).inspect_err(|_| {
            // After an incomplete line, the next record would be unreadable.
            let _ = self.file.set_len(self.end.byte);
        })?;
        self.end = Position { seq: record.seq + 1, byte: self.end.byte + line.len() as u64, last: self.end.byte };
        Ok(record)
    }

    /// Makes all appended records survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Atomically replaces the whole file with records that fold to the same state. Sequence numbers continue.
    pub fn replace<E: Serialize>(&mut self, records: &[Record<E>]) -> io::Result<()> {
        let (mut lines, mut last) = (Vec::new(), 0);
        for record in records {
            last = lines.len() as u64;
            put_line(&mut lines, record)?;
        }
        // Durable, because records that were synced in the old file must survive a power cut.
        write_durable(&self.path, &lines)?;
        self.file = files::open_with(&self.path, OpenOptions::new().read(true).append(true))?;
        self.end = Position { seq: self.end.seq, byte: lines.len() as u64, last };
        Ok(())
    }
}

fn put_line<E: Serialize>(lines: &mut Vec<u8>, record: &Record<E>) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, record)?;
    lines.push(b'\n');
    Ok(())
}

/// Passes every record from `from` on to `each`, and returns the position after the last complete line. Lines that
/// are not records, or whose event cannot be parsed, are skipped.
pub fn read<E: DeserializeOwned>(file: &File, from: Position, mut each: impl FnMut(Record<E>)) -> io::Result<Position> {
    if file.metadata()?.len() > MAX_FILE {
        return Err(damage("the journal is too long"));
    }
    let mut reader = BufReader::new(ReadFrom { file, at: from.byte });
    let (mut line, mut end) = (Vec::new(), from);
    loop {
        line.clear();
        let mut len = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)? as u64;
        if len == MAX_LINE && !line.ends_with(b"\n") {
            line.clear();
            let Some(rest) = skip_line(&mut reader)? else { return Ok(end) };
            len += rest;
        } else if !line.ends_with(b"\n") {
            return Ok(end);
        }
        let start = end.byte;
        end.byte += len;
        let record = serde_json::from_slice::<Record<E>>(&line);
        let seq = match &record {
            Ok(record) => Some(record.seq),
            // Count its sequence number, or the next record would reuse it.
            Err(_) => serde_json::from_slice::<Record<IgnoredAny>>(&line).ok().map(|record| record.seq),
        };
        // An impossible sequence number is damage, and must not be continued from.
        let Some(seq) = seq.filter(|seq| *seq < MAX_SEQ) else { continue };
        (end.seq, end.last) = (seq + 1, start);
        if let Ok(record) = record {
            each(record);
        }
    }
}

/// Reads past the next newline and returns the number of bytes skipped; `None` if there is no newline.
fn skip_line(reader: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut skipped = 0;
    loop {
        let chunk = reader.fill_buf()?;
        let (used, done) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (chunk.len(), false),
        };
        reader.consume(used);
        skipped += used as u64;
        if done {
            return Ok(Some(skipped));
        }
        if used == 0 {
            return Ok(None);
        }
    }
}

/// A digest of the sequence number and time of the record before a position. It shows whether a position belongs to
/// this file, or to one that has since been replaced.
pub fn fingerprint(file: &File, position: Position) -> io::Result<u64> {
    let mut start = [0; FINGERPRINT as usize];
    let start = &mut start[..FINGERPRINT.min(position.byte.saturating_sub(position.last)) as usize];
    file.read_exact_at(start, position.last)?;
    Ok(fnv1a(start))
}

/// A reader with its own position in a shared file.
struct ReadFrom<'a> {
    file: &'a File,
    at: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(path: &Path) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        read(&File::open(path).unwrap(), Position::default(), |record: Record<String>| {
            found.push((record.seq, record.event));
        })
        .unwrap();
        found
    }

    /// After a crash in the middle of a line, the next record is complete, and has the next sequence number.
    #[test]
    fn an_incomplete_last_line_is_cut_off_wherever_it_ends() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut journal = Journal::open(&path, |_: Record<String>| {}).unwrap();
        ["a", "b", "c"].iter().for_each(|event| drop(journal.append(event).unwrap()));
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let kept = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(records(&path).len(), kept, "a reader ignores an incomplete line");
            let mut replayed = 0;
            let mut journal = Journal::open(&path, |_: Record<String>| replayed += 1).unwrap();
            assert_eq!((replayed, journal.end().seq), (kept, kept as u64));
            journal.append("next").unwrap();
            assert_eq!(records(&path).last(), Some(&(kept as u64, "next".to_owned())), "cut at {cut}");
        }
    }

    #[test]
    fn unreadable_lines_are_skipped_and_their_numbers_count() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let long = "x".repeat(2 * MAX_LINE as usize);
        let lines = format!(
            "{{\"seq\":18446744073709551615,\"at\":\"\",\"event\":\"z\"}}\n{{\"seq\":0,\"at\":\"\",\"event\":\"a\"}}\nnonsense\n\n{{\"seq\":1,\"at\":\"\",\"event\":7}}\n{long}\n"
        );
        std::fs::write(&path, lines).unwrap();
        let mut journal = Journal::open(&path, |_: Record<String>| {}).unwrap();
        assert_eq!((journal.end().seq, journal.end().byte), (2, std::fs::metadata(&path).unwrap().len()));
        journal.append("b").unwrap();
        assert_eq!(records(&path), [(0, "a".to_owned()), (2, "b".to_owned())]);
    }

    #[test]
    fn reading_continues_from_a_position() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut journal = Journal::open(&path, |_: Record<String>| {}).unwrap();
        journal.append("a").unwrap();
        let from = journal.end();
        journal.append("b").unwrap();
        let mut found = Vec::new();
        let end = read(journal.file(), from, |record: Record<String>| found.push(record.event)).unwrap();
        assert_eq!((found, end), (vec!["b".to_owned()], journal.end()));
    }
}
