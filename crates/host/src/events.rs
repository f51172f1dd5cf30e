//! `events.jsonl`: what happened to a session, a line each, in order. Typed text is never in it.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bowline_proto::Offset;
use bowline_proto::ids::Epoch;
use bowline_proto::message::{Call, CallKind, ExitStatus};
use bowline_proto::size::Size;
use serde::{Deserialize, Serialize};

use crate::files::write_durable;
use crate::timestamp::timestamp;

/// A file longer than this is rewritten with what still matters.
const MAX_FILE: u64 = 1 << 20;
/// How many commands are remembered for telling a repeat.
const MAX_COMMANDS: usize = 1024;
/// How many resizes are remembered for replays.
const MAX_RESIZES: usize = 4096;

/// How much of a notification a list of sessions shows, in characters; the rest is left out.
const MAX_CALL: usize = 200;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A life began.
    Started {
        /// Which.
        epoch: Epoch,
        /// Where its output begins.
        offset: Offset,
        /// The size then.
        size: Size,
        /// The session process.
        pid: u32,
        /// Its version.
        version: String,
    },
    /// The terminal has this size from an offset on.
    Resized {
        /// Where.
        offset: Offset,
        /// The size.
        size: Size,
    },
    /// The title changed.
    Title {
        /// To this.
        title: String,
    },
    /// The shell's directory changed.
    Cwd {
        /// To this.
        cwd: String,
    },
    /// The program asked for attention.
    Notify {
        /// In these words.
        title: String,
        /// And these.
        body: String,
    },
    /// The program rang the bell.
    Bell,
    /// A command was accepted.
    Command {
        /// Its id.
        id: String,
        /// A digest of its content: enough to tell a repeat from a reused id.
        digest: u64,
    },
    /// The log went on in memory.
    Degraded {
        /// Because of this.
        error: String,
    },
    /// The life ended.
    Exit {
        /// With this code,
        code: Option<i32>,
        /// or by this signal,
        signal: Option<String>,
        /// and this much output.
        offset: Offset,
    },
    /// Something newer than this code.
    #[serde(other)]
    Unknown,
}

#[derive(Serialize, Deserialize)]
struct Line<E> {
    seq: u64,
    at: String,
    event: E,
}

/// What the events add up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The number of the next event.
    pub next_seq: u64,
    /// The latest life.
    pub started: Option<Started>,
    /// Sizes by the offset from which they hold, oldest first.
    pub resizes: VecDeque<(Offset, Size)>,
    /// The last title.
    pub title: String,
    /// The last directory that the shell told.
    pub cwd: Option<String>,
    /// Accepted commands: id, digest, number.
    pub commands: VecDeque<(String, u64, u64)>,
    /// The latest life's log is in memory only.
    pub degraded: bool,
    /// How the latest life ended.
    pub exit: Option<(ExitStatus, Offset)>,
    /// The latest life's last notification or bell.
    pub call: Option<Call>,
    /// When the last event happened.
    pub last_at: String,
}

/// The beginning of a life.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// Which.
    pub epoch: Epoch,
    /// Where its output begins.
    pub offset: Offset,
    /// The session process.
    pub pid: u32,
    /// Its version.
    pub version: String,
}

impl History {
    /// Reads a file. A line cut off by a crash, or one that is no event, is passed over.
    pub fn read(path: &Path) -> io::Result<History> {
        let mut history = History::default();
        for line in fs::read(path)?.split(|b| *b == b'\n') {
            if let Ok(line) = serde_json::from_slice::<Line<Event>>(line) {
                history.fold(line);
            }
        }
        Ok(history)
    }

    /// The size in force at the end.
    pub fn size(&self) -> Option<Size> {
        self.resizes.back().map(|(_, size)| *size)
    }

    fn fold(&mut self, line: Line<Event>) {
        self.next_seq = line.seq + 1;
        self.last_at = line.at;
        match line.event {
            Event::Started { epoch, offset, size, pid, version } => {
                self.started = Some(Started { epoch, offset, pid, version });
                self.exit = None;
                self.degraded = false;
                self.call = None;
                self.title.clear();
                self.cwd = None;
                self.resized(offset, size);
            }
            Event::Resized { offset, size } => self.resized(offset, size),
            Event::Title { title } => self.title = title,
            Event::Cwd { cwd } => self.cwd = Some(cwd),
            Event::Command { id, digest } => {
                self.commands.push_back((id, digest, line.seq));
                if self.commands.len() > MAX_COMMANDS {
                    self.commands.pop_front();
                }
            }
            Event::Degraded { .. } => self.degraded = true,
            Event::Exit { code, signal, offset } => self.exit = Some((ExitStatus { code, signal }, offset)),
            Event::Notify { title, body } => {
                let text = call_text(&title, &body);
                self.call = Some(Call { at: self.last_at.clone(), kind: CallKind::Notify, text });
            }
            Event::Bell => {
                self.call = Some(Call { at: self.last_at.clone(), kind: CallKind::Bell, text: String::new() });
            }
            Event::Unknown => {}
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
}

/// A notification in one line, for a list of sessions.
pub fn call_text(title: &str, body: &str) -> String {
    let all = if title.is_empty() || body.is_empty() { format!("{title}{body}") } else { format!("{title}: {body}") };
    all.chars().take(MAX_CALL).collect()
}

/// The writing end, held by the session process.
#[derive(Debug)]
pub struct Events {
    path: PathBuf,
    file: File,
    len: u64,
    history: History,
}

impl Events {
    /// Opens the file for appending, made if need be.
    pub fn open(path: &Path) -> io::Result<Events> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let len = file.metadata()?.len();
        let mut events = Events { path: path.to_owned(), file, len, history: History::read(path)? };
        if len > 0 && !fs::read(path)?.ends_with(b"\n") {
            events.write(b"\n")?; // a crash cut the last line off
        }
        Ok(events)
    }

    /// What the events add up to.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Appends an event and gives its number. On an error nothing was recorded.
    pub fn record(&mut self, event: Event) -> io::Result<u64> {
        let line = Line { seq: self.history.next_seq, at: timestamp(), event };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.write(&text)?;
        let seq = line.seq;
        self.history.fold(line);
        if self.len > MAX_FILE {
            // A failure leaves the long file, which still works; the next event tries again.
            let _ = self.compact();
        }
        Ok(seq)
    }

    /// Makes what was recorded survive a power cut, too.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text).inspect_err(|_| {
            // Half a line would swallow the next one.
            let _ = self.file.set_len(self.len);
        })?;
        self.len += text.len() as u64;
        Ok(())
    }

    /// Rewrites the file with what [`History`] keeps: earlier notices and titles go.
    fn compact(&mut self) -> io::Result<()> {
        let history = &self.history;
        let mut text = Vec::new();
        let mut put_at = |seq: u64, at: &str, event: Event| -> io::Result<()> {
            serde_json::to_writer(&mut text, &Line { seq, at: at.to_owned(), event })?;
            text.push(b'\n');
            Ok(())
        };
        let last = history.next_seq.saturating_sub(1);
        let mut put = |seq, event| put_at(seq, &history.last_at, event);
        let floor = history.commands.front().map_or(history.next_seq, |(_, _, seq)| *seq).saturating_sub(1);
        if let Some(Started { epoch, offset, pid, version }) = history.started.clone() {
            let size = history.resizes.iter().rfind(|(at, _)| *at <= offset).map_or_else(Size::default, |(_, s)| *s);
            put(floor, Event::Started { epoch, offset, size, pid, version })?;
        }
        for (offset, size) in &history.resizes {
            put(floor, Event::Resized { offset: *offset, size: *size })?;
        }
        for (id, digest, seq) in &history.commands {
            put(*seq, Event::Command { id: id.clone(), digest: *digest })?;
        }
        if let Some(Call { at, kind, text }) = &history.call {
            let event = match kind {
                CallKind::Bell => Event::Bell,
                CallKind::Notify | CallKind::Unknown => Event::Notify { title: String::new(), body: text.clone() },
            };
            put_at(last, at, event)?;
        }
        let mut put = |seq, event| put_at(seq, &history.last_at, event);
        put(last, Event::Title { title: history.title.clone() })?;
        if let Some(cwd) = history.cwd.clone() {
            put(last, Event::Cwd { cwd })?;
        }
        if history.degraded {
            put(last, Event::Degraded { error: String::new() })?;
        }
        if let Some((ExitStatus { code, signal }, offset)) = history.exit.clone() {
            put(last, Event::Exit { code, signal, offset })?;
        }
        // On the disk before it takes the old one's place: what was synced in that must not be lost with a power cut.
        write_durable(&self.path, &text)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.len = text.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(offset: Offset) -> Event {
        let epoch = Epoch::from_random([1, 2, 3, 4]);
        Event::Started { epoch, offset, size: Size::default(), pid: 7, version: "0.1.0".into() }
    }

    #[test]
    fn r47_the_file_stays_bounded_and_keeps_what_matters() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut events = Events::open(&path).unwrap();
        events.record(started(0)).unwrap();
        for n in 0..40_000u64 {
            let size = Size::new(80 + (n % 7) as u32, 24).unwrap();
            match n % 4 {
                3 if n % 5 == 0 => events.record(Event::Bell).unwrap(),
                3 => events.record(Event::Notify { title: "t".into(), body: format!("{n}") }).unwrap(),
                0 => events.record(Event::Resized { offset: n, size }).unwrap(),
                1 => events.record(Event::Command { id: format!("c{n}"), digest: n }).unwrap(),
                _ => events.record(Event::Title { title: format!("title {n}") }).unwrap(),
            };
        }
        let called = events.history.call.clone().unwrap();
        // What comes after it makes the file be rewritten, more than once.
        for n in 0..30_000 {
            events.record(Event::Title { title: format!("later title {n}") }).unwrap();
        }
        let seq = events.record(Event::Exit { code: Some(0), signal: None, offset: 40_000 }).unwrap();
        assert_eq!(seq, 70_001);
        assert!(fs::metadata(&path).unwrap().len() < MAX_FILE + 4096);
        let mut read = History::read(&path).unwrap();
        read.last_at.clone_from(&events.history.last_at);
        assert_eq!(read, events.history);
        assert_eq!(read.commands.len(), MAX_COMMANDS);
        assert_eq!(read.call, Some(called), "who called last, and when");
        assert_eq!(read.exit.unwrap().1, 40_000);
    }

    #[test]
    fn a_line_cut_off_by_a_crash_costs_only_itself() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("events.jsonl");
        let mut events = Events::open(&path).unwrap();
        events.record(started(0)).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"seq\":1,\"at\":").unwrap();
        let mut events = Events::open(&path).unwrap();
        assert_eq!(events.record(Event::Title { title: "x".into() }).unwrap(), 1);
        assert_eq!(History::read(&path).unwrap().title, "x");
    }
}
