//! Folds a session's events into a summary for lists, with a checkpoint in the file `head`.
//!
//! A list must not read whole journals. A checkpoint (`checkpoint.rs`) holds the summary at a position of
//! `events.jsonl`; a reader folds only the events after it.

use std::fs::File;
use std::io;
use std::path::Path;

use bowline_proto::Offset;
use bowline_proto::ids::Epoch;
use bowline_proto::session::{Call, CallKind, ExitStatus};
use bowline_proto::size::Size;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, may_replace};
use crate::events::Event;
use crate::files;
use crate::home::SessionDir;
use crate::journal::{self, Position, Record};

/// A checkpoint is written after this many bytes of events: by the session process, or by a reader that had to read
/// more than that.
pub const CHECKPOINT_EVERY: u64 = 4 << 10;
/// How many characters of a notification are kept for lists.
const MAX_CALL: usize = 200;

/// The fold of a session's events that a list shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The start of the latest run.
    pub started: Option<RunStart>,
    pub size: Option<Size>,
    pub title: String,
    /// The last directory that the shell reported.
    pub cwd: Option<String>,
    /// The log of the latest run is in memory only.
    pub degraded: bool,
    /// The exit status of the latest run, and the end of its log.
    pub exit: Option<(ExitStatus, Offset)>,
    /// The last notification or bell of the latest run.
    pub call: Option<Call>,
    /// The time of the last event.
    pub last_at: String,
}

/// The start of one run of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    pub epoch: Epoch,
    /// The offset of the run's first output.
    pub offset: Offset,
    /// The id of the session process.
    pub pid: u32,
    /// The version of the session process.
    pub version: String,
}

impl Summary {
    /// Reads the summary of a session. Writes a checkpoint if that saves the next reader enough.
    pub fn read_and_checkpoint(dir: &SessionDir) -> io::Result<Summary> {
        let (summary, file, from, end) = Summary::read_from_head(dir)?;
        if end.byte - from.byte >= CHECKPOINT_EVERY && may_replace(dir, HEAD_VERSION) {
            // If it cannot be written, the next reader only has to read as much again.
            let _ = summary.checkpoint(&file, end, &dir.head());
        }
        Ok(summary)
    }

    /// Reads the summary of a session. Writes nothing.
    pub fn read(dir: &SessionDir) -> io::Result<Summary> {
        Ok(Summary::read_from_head(dir)?.0)
    }

    /// Returns the summary, the open journal, and the positions of the checkpoint and of the end.
    fn read_from_head(dir: &SessionDir) -> io::Result<(Summary, File, Position, Position)> {
        let file = files::open(&dir.events())?;
        let head = Checkpoint::read(&dir.head(), &file, HEAD_VERSION, MAX_HEAD);
        let (mut summary, from) = head.map_or_else(Default::default, |head| (head.summary, head.position));
        if file.metadata()?.len() == from.byte {
            return Ok((summary, file, from, from));
        }
        let end = journal::read(&file, from, |record: Record<Event>| summary.fold(&record))?;
        Ok((summary, file, from, end))
    }

    /// Writes this summary, which holds at `position` of the journal, to `head`.
    pub fn checkpoint(&self, events: &File, position: Position, head: &Path) -> io::Result<()> {
        Checkpoint::new(events, HEAD_VERSION, position, self)?.write(head)
    }

    /// Adds one more event.
    pub fn fold(&mut self, record: &Record<Event>) {
        self.last_at.clone_from(&record.at);
        match &record.event {
            Event::Started { epoch, offset, size, pid, version } => {
                let (epoch, version) = (epoch.clone(), version.clone());
                *self = Summary {
                    started: Some(RunStart { epoch, offset: *offset, pid: *pid, version }),
                    size: size.or(self.size),
                    last_at: std::mem::take(&mut self.last_at),
                    ..Summary::default()
                };
            }
            Event::Resized { size, .. } => self.size = Some(*size),
            Event::Title { title } => self.title.clone_from(title),
            Event::Cwd { cwd } => self.cwd = Some(cwd.clone()),
            Event::Degraded { .. } => self.degraded = true,
            Event::Exit { code, signal, offset } => {
                self.exit = Some((ExitStatus { code: *code, signal: signal.clone() }, *offset));
            }
            Event::Notify { title, body } => {
                let text = call_text(title, body);
                self.call = Some(Call { at: record.at.clone(), kind: CallKind::Notify, text });
            }
            Event::Bell => self.call = Some(Call { at: record.at.clone(), kind: CallKind::Bell, text: String::new() }),
            Event::Command { .. } | Event::Unknown => {}
        }
    }
}

/// Formats a notification as one line for lists, cut to 200 characters.
pub fn call_text(title: &str, body: &str) -> String {
    let all = if title.is_empty() || body.is_empty() { format!("{title}{body}") } else { format!("{title}: {body}") };
    all.chars().take(MAX_CALL).collect()
}

/// The most bytes read of `head`. A longer file is ignored.
const MAX_HEAD: u64 = 256 << 10;
/// Increased with each change of the file format or of [`Summary::fold`]. A checkpoint of another version is ignored.
const HEAD_VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use std::fs;

    use bowline_proto::ids::SessionId;
    use proptest::prelude::*;

    use super::*;
    use crate::history::History;
    use crate::home::Home;
    use crate::timestamp::timestamp;

    fn session(temp: &tempfile::TempDir) -> SessionDir {
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        home.ensure().unwrap();
        let dir = home.session(&SessionId::from_random([1; 12]));
        fs::create_dir(dir.path()).unwrap();
        dir
    }

    fn event() -> impl Strategy<Value = Event> {
        let size = (20..200u32, 10..80u32).prop_map(|(cols, rows)| Size::new(cols, rows).unwrap());
        let epoch = any::<[u8; 4]>().prop_map(Epoch::from_random);
        prop_oneof![
            (epoch, any::<u32>(), size.clone()).prop_map(|(epoch, offset, size)| Event::Started {
                epoch,
                offset: offset.into(),
                size: Some(size),
                pid: 7,
                version: "0.1.0".into(),
            }),
            (any::<u32>(), size).prop_map(|(offset, size)| Event::Resized { offset: offset.into(), size }),
            // Long enough that a reader writes a checkpoint.
            (0..4000usize).prop_map(|len| Event::Title { title: "t".repeat(len) }),
            "[a-z/]{0,20}".prop_map(|cwd| Event::Cwd { cwd }),
            ("[a-z]{0,9}", "[a-z]{0,300}").prop_map(|(title, body)| Event::Notify { title, body }),
            Just(Event::Bell),
            Just(Event::Command { id: "c".into(), digest: 1 }),
            Just(Event::Degraded { error: "full".into() }),
            any::<Option<i32>>().prop_map(|code| Event::Exit { code, signal: None, offset: 9 }),
        ]
    }

    /// Something that happens to the files between two reads.
    #[derive(Clone, Debug)]
    enum Step {
        Record(Event),
        Checkpoint,
        Read,
        /// An incomplete line, as a crash leaves it, and a restart.
        Tear,
        /// The journal is replaced by a shorter one.
        Compact,
        /// The checkpoint is cut off, or one of its bytes is changed.
        Damage(usize, u8),
        RemoveHead,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => event().prop_map(Step::Record),
            1 => Just(Step::Checkpoint),
            2 => Just(Step::Read),
            1 => Just(Step::Tear),
            1 => Just(Step::Compact),
            1 => (any::<usize>(), any::<u8>()).prop_map(|(at, bits)| Step::Damage(at, bits)),
            1 => Just(Step::RemoveHead),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        /// Whatever happens to the journal and the checkpoint, a reader gets the fold of all events.
        #[test]
        fn r21_a_summary_is_the_fold_of_the_whole_journal(steps in prop::collection::vec(step(), 1..60)) {
            let temp = tempfile::tempdir().unwrap();
            let dir = session(&temp);
            let (mut journal, mut history) = History::open(&dir.events()).unwrap();
            for step in steps {
                match step {
                    Step::Record(event) => _ = history.record(&mut journal, event).unwrap(),
                    Step::Checkpoint => {
                        history.summary.checkpoint(journal.file(), journal.end(), &dir.head()).unwrap();
                    }
                    Step::Read => {}
                    Step::Tear => {
                        let half = fs::OpenOptions::new().append(true).open(dir.events());
                        io::Write::write_all(&mut half.unwrap(), b"{\"seq\":").unwrap();
                        (journal, history) = History::open(&dir.events()).unwrap();
                    }
                    Step::Compact => {
                        let seq = journal.end().seq.saturating_sub(1);
                        journal.replace(&[Record::new(seq, timestamp(), Event::Bell)]).unwrap();
                        history = History::read(&dir.events()).unwrap();
                    }
                    Step::Damage(at, bits) => {
                        let mut head = fs::read(dir.head()).unwrap_or_default();
                        let at = at % (head.len() + 1);
                        head.truncate(if bits == 0 { at } else { head.len() });
                        if let Some(byte) = head.get_mut(at) {
                            *byte ^= bits;
                        }
                        fs::write(dir.head(), head).unwrap();
                    }
                    Step::RemoveHead => _ = fs::remove_file(dir.head()),
                }
                prop_assert_eq!(&Summary::read_and_checkpoint(&dir).unwrap(), &history.summary);
            }
        }
    }

    /// Events before the checkpoint are overwritten here, and the reader does not notice.
    #[test]
    fn r21_a_list_reads_no_events_before_the_checkpoint() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let (mut journal, mut history) = History::open(&dir.events()).unwrap();
        for n in 0..2000 {
            history.record(&mut journal, Event::Title { title: format!("title {n}") }).unwrap();
        }
        assert_eq!(Summary::read(&dir).unwrap().title, "title 1999", "without a checkpoint");
        assert!(!dir.head().exists());
        assert_eq!(Summary::read_and_checkpoint(&dir).unwrap().title, "title 1999", "this read writes the checkpoint");
        let mut events = fs::read(dir.events()).unwrap();
        let len = events.len();
        events[..len - 1000].fill(b'x');
        fs::write(dir.events(), events).unwrap();
        assert_eq!(Summary::read(&dir).unwrap(), history.summary);
    }

    #[test]
    fn unknown_events_do_not_hide_a_run() {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let lines = [
            r#"{"seq":0,"at":"t0","event":{"type":"started","epoch":"00000001","pid":7,"version":"9"}}"#,
            r#"{"seq":1,"at":"t1","event":{"type":"hologram","beams":[1,2]}}"#,
            r#"{"seq":2,"from":1,"at":"t2","event":{"type":"exit","code":0,"signal":null}}"#,
        ];
        fs::write(dir.events(), lines.map(|line| format!("{line}\n")).concat()).unwrap();
        let summary = Summary::read(&dir).unwrap();
        assert_eq!(summary.started.unwrap().version, "9");
        assert_eq!((summary.exit.unwrap().0.code, summary.last_at.as_str()), (Some(0), "t2"));
    }
}
