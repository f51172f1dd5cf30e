//! Folds a terminal's events for its session process and for replays, and keeps the journal small.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use bowline_proto::Offset;
use bowline_proto::session::{Call, CallKind, ExitStatus};
use bowline_proto::size::Size;

use crate::events::Event;
use crate::files;
use crate::journal::{Journal, Position, Record, read};
use crate::summary::{RunStart, Summary};

/// A journal longer than this many bytes is compacted.
const MAX_JOURNAL: u64 = 1 << 20;
/// How many commands are kept to recognise repeats; older ones are dropped.
const MAX_COMMANDS: usize = 1024;
/// How many resizes are kept for replays; older ones are dropped.
const MAX_RESIZES: usize = 4096;

/// The fold of a terminal's events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub summary: Summary,
    /// Sizes, each with the offset at which it takes effect, oldest first.
    pub resizes: VecDeque<(Offset, Size)>,
    /// Accepted commands: id, digest, sequence number.
    pub commands: VecDeque<(String, u64, u64)>,
}

impl History {
    /// Reads a whole journal.
    pub fn read(path: &Path) -> io::Result<History> {
        let mut history = History::default();
        read(&files::open(path)?, Position::default(), |record| history.fold(&record))?;
        Ok(history)
    }

    /// Opens a journal to continue it, creating it if it does not exist.
    pub fn open(path: &Path) -> io::Result<(Journal, History)> {
        let mut history = History::default();
        let journal = Journal::open(path, |record| history.fold(&record))?;
        Ok((journal, history))
    }

    /// Appends an event to the journal and returns its sequence number. On error, nothing is recorded.
    pub fn record(&mut self, journal: &mut Journal, event: Event) -> io::Result<u64> {
        let record = journal.append(event)?;
        self.fold(&record);
        if journal.end().byte > MAX_JOURNAL {
            // On failure, the long file remains and still works; the next event tries again.
            let _ = journal.replace(&self.compacted(journal.end().seq));
        }
        Ok(record.seq)
    }

    fn fold(&mut self, record: &Record<Event>) {
        self.summary.fold(record);
        match &record.event {
            Event::Started { offset, size: Some(size), .. } | Event::Resized { offset, size } => {
                self.resized(*offset, *size);
            }
            Event::Command { id, digest } => {
                self.commands.push_back((id.clone(), *digest, record.seq));
                if self.commands.len() > MAX_COMMANDS {
                    self.commands.pop_front();
                }
            }
            _ => {}
        }
    }

    fn resized(&mut self, offset: Offset, size: Size) {
        while self.resizes.back().is_some_and(|(at, _)| *at >= offset) {
            self.resizes.pop_back();
        }
        self.resizes.push_back((offset, size));
        if self.resizes.len() > MAX_RESIZES {
            self.resizes.pop_front();
        }
    }

    /// Records that fold to the same state, without earlier notifications and titles.
    fn compacted(&self, next_seq: u64) -> Vec<Record<Event>> {
        let Summary { started, size: _, title, cwd, degraded, exit, call, last_at } = self.summary.clone();
        let mut records = Vec::new();
        let mut put = |seq: u64, event| records.push(Record::new(seq, last_at.clone(), event));
        let last = next_seq.saturating_sub(1);
        let first = self.commands.front().map_or(next_seq, |(_, _, seq)| *seq).saturating_sub(1);
        if let Some(RunStart { epoch, offset, pid, version }) = started {
            let size = self.resizes.iter().rfind(|(at, _)| *at <= offset).map(|(_, size)| *size);
            put(first, Event::Started { epoch, offset, size, pid, version });
        }
        for (offset, size) in &self.resizes {
            put(first, Event::Resized { offset: *offset, size: *size });
        }
        for (id, digest, seq) in &self.commands {
            put(*seq, Event::Command { id: id.clone(), digest: *digest });
        }
        if let Some(Call { at, kind, text }) = call {
            let event = match kind {
                CallKind::Bell => Event::Bell,
                CallKind::Notify | CallKind::Unknown => Event::Notify { title: String::new(), body: text },
            };
            records.push(Record::new(last, at, event));
        }
        let mut put = |event| records.push(Record::new(last, last_at.clone(), event));
        put(Event::Title { title });
        if let Some(cwd) = cwd {
            put(Event::Cwd { cwd });
        }
        if degraded {
            put(Event::Degraded { error: String::new() });
        }
        if let Some((ExitStatus { code, signal }, offset)) = exit {
            put(Event::Exit { code, signal, offset });
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use bowline_proto::ids::Epoch;

    use super::*;

    fn started(offset: Offset) -> Event {
        let epoch = Epoch::from_random([1, 2, 3, 4]);
        Event::Started { epoch, offset, size: Some(Size::default()), pid: 7, version: "0.1.0".into() }
    }

    #[test]
    fn r47_the_file_stays_bounded_and_compaction_keeps_the_state() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let (mut journal, mut history) = History::open(&path).unwrap();
        let mut record = |event| history.record(&mut journal, event).unwrap();
        record(started(0));
        for n in 0..40_000u64 {
            let size = Size::new(80 + (n % 7) as u32, 24).unwrap();
            match n % 4 {
                3 if n % 5 == 0 => record(Event::Bell),
                3 => record(Event::Notify { title: "t".into(), body: format!("{n}") }),
                0 => record(Event::Resized { offset: n, size }),
                1 => record(Event::Command { id: format!("c{n}"), digest: n }),
                _ => record(Event::Title { title: format!("title {n}") }),
            };
        }
        let called = history.summary.call.clone().unwrap();
        let mut record = |event| history.record(&mut journal, event).unwrap();
        // These events cause the file to be compacted more than once.
        for n in 0..30_000 {
            record(Event::Title { title: format!("later title {n}") });
        }
        let seq = record(Event::Exit { code: Some(0), signal: None, offset: 40_000 });
        assert_eq!(seq, 70_001);
        assert!(std::fs::metadata(&path).unwrap().len() < MAX_JOURNAL + 4096);
        let mut read = History::read(&path).unwrap();
        read.summary.last_at.clone_from(&history.summary.last_at);
        assert_eq!(read, history);
        assert_eq!(read.commands.len(), MAX_COMMANDS);
        assert_eq!(read.summary.call, Some(called), "the last call is kept");
        assert_eq!(read.summary.exit.unwrap().1, 40_000);
    }

    #[test]
    fn only_the_line_cut_off_by_a_crash_is_lost() {
        use std::io::Write;
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let (mut journal, mut history) = History::open(&path).unwrap();
        history.record(&mut journal, started(0)).unwrap();
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"seq\":1,\"at\":").unwrap();
        let (mut journal, mut history) = History::open(&path).unwrap();
        assert_eq!(history.record(&mut journal, Event::Title { title: "x".into() }).unwrap(), 1);
        assert_eq!(History::read(&path).unwrap().summary.title, "x");
    }
}
