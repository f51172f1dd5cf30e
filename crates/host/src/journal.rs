//! `events.jsonl`: numbered records, a line of JSON each. One process appends, anyone reads.
//!
//! A record is whole with its newline. What a crash left behind the last newline is cut off when the file is opened for
//! appending, and ignored by readers until then.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::digest::fnv1a;
use crate::files::write_durable;
use crate::timestamp::timestamp;

/// The longest line; a longer one is passed over.
const MAX_LINE: u64 = 1 << 20;
/// More records than a session can ever have, and all that JavaScript can count.
const MAX_SEQ: u64 = 1 << 53;
/// How much of a record tells it from every other: its number and its time stand first.
const FINGERPRINT: u64 = 64;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record<E> {
    /// Counts from 0, and goes on over restarts and compactions.
    pub seq: u64,
    /// When it was written, RFC 3339 UTC.
    pub at: String,
    /// One of the events of this kind of session.
    pub event: E,
}

/// A place between two records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The number of the record that follows.
    pub seq: u64,
    /// Where in the file that record begins.
    pub byte: u64,
    /// Where the record before it begins.
    pub last: u64,
}

/// The writing end.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    end: Position,
}

impl Journal {
    /// Opens the file for appending, created if need be, and hands every record in it to `each`. Half a line at its end is
    /// cut off.
    pub fn open<E: DeserializeOwned>(path: &Path, each: impl FnMut(Record<E>)) -> io::Result<Journal> {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let end = read(&file, Position::default(), each)?;
        if file.metadata()?.len() > end.byte {
            file.set_len(end.byte)?;
        }
        Ok(Journal { path: path.to_owned(), file, end })
    }

    /// Where the next record goes.
    pub fn end(&self) -> Position {
        self.end
    }

    /// The file itself, for a checkpoint.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Appends an event and gives its record. On an error nothing was appended.
    pub fn append<E: Serialize>(&mut self, event: E) -> io::Result<Record<E>> {
        let record = Record { seq: self.end.seq, at: timestamp(), event };
        let mut line = Vec::new();
        put(&mut line, &record)?;
        self.file.write_all(&line).inspect_err(|_| {
            // Half a line would swallow the next one.
            let _ = self.file.set_len(self.end.byte);
        })?;
        self.end = Position { seq: record.seq + 1, byte: self.end.byte + line.len() as u64, last: self.end.byte };
        Ok(record)
    }

    /// Makes what was appended survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Replaces the whole file, in one step, by records that say the same in less space. The numbers go on.
    pub fn replace<E: Serialize>(&mut self, records: &[Record<E>]) -> io::Result<()> {
        let (mut lines, mut last) = (Vec::new(), 0);
        for record in records {
            last = lines.len() as u64;
            put(&mut lines, record)?;
        }
        // On the disk before it takes the old one's place: what was synced in that must not be lost with a power cut.
        write_durable(&self.path, &lines)?;
        self.file = OpenOptions::new().read(true).append(true).open(&self.path)?;
        self.end = Position { seq: self.end.seq, byte: lines.len() as u64, last };
        Ok(())
    }
}

fn put<E: Serialize>(lines: &mut Vec<u8>, record: &Record<E>) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, record)?;
    lines.push(b'\n');
    Ok(())
}

/// Hands every record from `from` on to `each`, and gives the position after the last whole line. A line that is no record,
/// or whose event cannot be read, is passed over.
pub fn read<E: DeserializeOwned>(file: &File, from: Position, mut each: impl FnMut(Record<E>)) -> io::Result<Position> {
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
            // Its number counts, or the next record would get it once more.
            Err(_) => serde_json::from_slice::<Record<IgnoredAny>>(&line).ok().map(|record| record.seq),
        };
        // A number that no session reaches is damage, and must not be counted on from.
        let Some(seq) = seq.filter(|seq| *seq < MAX_SEQ) else { continue };
        (end.seq, end.last) = (seq + 1, start);
        if let Ok(record) = record {
            each(record);
        }
    }
}

/// Reads past the next newline; `None` where there is none.
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

/// A digest of the number and the time of the record before a position. By it, a position can be told to belong to this
/// file, and not to one that has been replaced since.
pub fn fingerprint(file: &File, position: Position) -> io::Result<u64> {
    let mut start = [0; FINGERPRINT as usize];
    let start = &mut start[..FINGERPRINT.min(position.byte.saturating_sub(position.last)) as usize];
    file.read_exact_at(start, position.last)?;
    Ok(fnv1a(start))
}

/// Reads a file from a position of its own, so that several can read it at once.
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

    /// Whatever a crash left behind the last newline, the next record is whole, and has the next number.
    #[test]
    fn a_torn_tail_is_cut_at_every_byte() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut journal = Journal::open(&path, |_: Record<String>| {}).unwrap();
        ["a", "b", "c"].iter().for_each(|event| drop(journal.append(event).unwrap()));
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let kept = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(records(&path).len(), kept, "a reader ignores half a line");
            let mut replayed = 0;
            let mut journal = Journal::open(&path, |_: Record<String>| replayed += 1).unwrap();
            assert_eq!((replayed, journal.end().seq), (kept, kept as u64));
            journal.append("next").unwrap();
            assert_eq!(records(&path).last(), Some(&(kept as u64, "next".to_owned())), "cut at {cut}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_and_its_number_counts() {
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
    fn reading_goes_on_from_a_position() {
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
