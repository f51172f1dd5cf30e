//! The journal of an agent session: cuts, damage, checkpoints, and reading from any number.

mod heads;
mod pages;

use std::fs;
use std::io::Write;
use std::time::Duration;

use bowline_proto::agent::event::{CommandSource, Delta, Level, RunId, ToolCall};
use bowline_proto::follow::{FollowMessage, Transmit};
use bowline_proto::frame::Frame;
use bowline_proto::ids::SessionId;
use proptest::prelude::*;

use super::archive::{Put, ReadPosition, put};
use super::*;
use crate::home::Home;

fn session(temp: &tempfile::TempDir) -> SessionDir {
    let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
    home.ensure().unwrap();
    let dir = home.session(&SessionId::from_random([1; 12]));
    fs::create_dir(dir.path()).unwrap();
    dir
}

fn epoch(n: u8) -> Epoch {
    Epoch::from_random([n; 4])
}

fn started(n: u8) -> AgentEvent {
    AgentEvent::Started { epoch: epoch(n), pid: 7, version: "0.1.0".into() }
}

fn prompt(run: u64) -> AgentEvent {
    let source = CommandSource { command: format!("c{run}"), digest: "d".into(), by: "local".into() };
    AgentEvent::Prompt { run: RunId(run), source, text: "hi".into(), attachments: vec![] }
}

fn text(len: usize) -> AgentEvent {
    AgentEvent::Text(Delta { run: Some(RunId(0)), block: "b".into(), parent: None, delta: "x".repeat(len) })
}

fn open(dir: &SessionDir) -> Transcript {
    Transcript::open(dir).unwrap().transcript
}

/// The numbers of all whole lines.
fn numbers(dir: &SessionDir) -> Vec<u64> {
    let file = File::open(dir.events()).unwrap();
    let mut lines = Lines::new(&file, 0, 0);
    let mut numbers = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        numbers.push(line.seq);
    }
    numbers
}

fn tool_update() -> AgentEvent {
    AgentEvent::ToolUpdate(ToolCall { call: "c1".into(), truncated: true, ..ToolCall::default() })
}

/// The events of all whole lines, as JSON.
fn events(dir: &SessionDir) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(dir.events()).unwrap();
    text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].clone()).collect()
}

#[test]
fn r40_a_blob_has_the_number_of_its_event() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    assert!(transcript.append_with_blob(tool_update(), "the whole", false).unwrap());
    assert!(transcript.append_with_blob(tool_update(), "the beginning", true).unwrap());
    assert_eq!(events(&dir)[1]["blob"], serde_json::json!({"seq": 1, "bytes": 9}));
    assert_eq!(events(&dir)[2]["blob"], serde_json::json!({"seq": 2, "bytes": 13, "truncated": true}));
    assert_eq!(fs::read_to_string(dir.blobs().join("1")).unwrap(), "the whole");
    transcript.blobs.limit = 25;
    assert!(!transcript.append_with_blob(tool_update(), "more than 3", false).unwrap());
    assert_eq!(events(&dir)[3]["blob"], serde_json::Value::Null, "there is no room");
    assert_eq!(events(&dir)[3]["truncated"], true);
    assert!(transcript.append_with_blob(tool_update(), "few", false).unwrap());
}

/// The tail of the journal is cut off, and its numbers belong to other events now.
#[test]
fn r40_a_blob_of_an_event_that_was_cut_off_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    for text in ["one", "two"] {
        transcript.append_with_blob(tool_update(), text, false).unwrap();
    }
    let len = fs::metadata(dir.events()).unwrap().len();
    File::options().write(true).open(dir.events()).unwrap().set_len(len - 1).unwrap();
    let mut transcript = open(&dir);
    assert_eq!(transcript.append(prompt(0)).unwrap(), 2);
    assert!(crate::blobs::open(&dir, 1).is_ok() && crate::blobs::open(&dir, 2).is_err());
}

/// What could not be appended is tried again, perhaps after another event.
#[test]
fn r52_a_blob_whose_event_cannot_be_appended_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    // A file that is open for reading only cannot be appended to.
    let broken = Journal::continued(dir.events(), File::open(dir.events()).unwrap(), transcript.end());
    let journal = std::mem::replace(&mut transcript.journal, broken);
    assert!(transcript.append_with_blob(tool_update(), "the whole", false).is_err());
    assert_eq!(fs::read_dir(dir.blobs()).unwrap().count(), 0);
    transcript.journal = journal;
    transcript.blobs.limit = 9;
    transcript.append(prompt(0)).unwrap();
    assert!(transcript.append_with_blob(tool_update(), "the whole", false).unwrap(), "it does not count twice");
    assert_eq!(events(&dir)[2]["blob"]["seq"], 2);
}

/// A crash can cut the file anywhere. No whole line is lost, and the next number follows the last one.
#[test]
fn r40_a_cut_tail_is_removed_wherever_it_is_cut() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    for event in [started(1), prompt(0), text(5)] {
        transcript.append(event).unwrap();
    }
    let whole = fs::read(dir.events()).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
    for cut in 0..=whole.len() {
        fs::write(dir.events(), &whole[..cut]).unwrap();
        let kept = ends.iter().filter(|end| **end <= cut).count();
        let is_whole = cut == 0 || ends.contains(&cut);
        let Opened { mut transcript, was_cut } = Transcript::open(&dir).unwrap();
        assert_eq!(was_cut, !is_whole, "cut at {cut}");
        assert_eq!(transcript.end().seq, kept as u64, "cut at {cut}");
        transcript.repair(was_cut.then(|| epoch(2))).unwrap();
        transcript.append(started(3)).unwrap();
        assert_eq!(numbers(&dir), (0..transcript.end().seq).collect::<Vec<_>>(), "cut at {cut}");
        assert!(transcript.fold().open.is_empty(), "the open run was ended, cut at {cut}");
        assert_eq!(transcript.fold().epochs.iter().any(|start| start.epoch == epoch(2)), was_cut);
        assert!(!dir.path().join("events.jsonl.damaged").exists(), "an incomplete line is not worth keeping");
    }
}

#[test]
fn r40_lines_after_a_damaged_one_are_kept_aside() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    (0..4).for_each(|run| _ = transcript.append(prompt(run)).unwrap());
    let whole = fs::read_to_string(dir.events()).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for damage in ["not json", "{\"seq\":7,\"at\":\"\",\"event\":{\"type\":\"x\"}}", "{\"seq\":1,}", ""] {
        let damaged = format!("{}\n{damage}\n{}\n{}\n", lines[0], lines[2], lines[3]);
        fs::write(dir.events(), &damaged).unwrap();
        let Opened { transcript, was_cut } = Transcript::open(&dir).unwrap();
        assert!(was_cut && transcript.end().seq == 1, "{damage:?}");
        let aside = dir.path().join("events.jsonl.damaged");
        assert_eq!(fs::read_to_string(&aside).unwrap(), damaged[lines[0].len() + 1..], "{damage:?}");
        fs::remove_file(aside).unwrap();
    }
}

#[test]
fn r52_an_event_that_is_too_long_is_replaced_by_a_notice() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    let value = serde_json::Value::from("y".repeat(MAX_LINE));
    let raw = AgentEvent::Raw { source: "acp".into(), message: value, truncated: false };
    assert_eq!(transcript.append(raw).unwrap(), 0);
    transcript.append(prompt(0)).unwrap();
    assert_eq!(numbers(&dir), [0, 1]);
    let file = File::open(dir.events()).unwrap();
    let event = Lines::new(&file, 0, 0).next().unwrap().unwrap().parse().unwrap().event;
    assert!(
        matches!(&event, AgentEvent::Notice { level: Level::Warning, text } if text.contains("too large")),
        "{event:?}"
    );
}

#[test]
fn r33_the_end_of_a_run_is_recorded_however_long_its_texts_are() {
    let temp = tempfile::tempdir().unwrap();
    let mut transcript = open(&session(&temp));
    transcript.append(prompt(0)).unwrap();
    let long = Some("y".repeat(MAX_LINE));
    let error = Some(RunError::new("agent_error", "z".repeat(MAX_LINE)));
    transcript.append(AgentEvent::Complete(Complete { stop_reason: long, error, ..Complete::default() })).unwrap();
    assert!(transcript.fold().open.is_empty());
}

#[test]
fn events_of_a_newer_version_count_and_are_served() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let newer = r#"{"seq":0,"at":"t","event":{"type":"hologram","beams":[1]}}"#;
    let changed = r#"{"seq":1,"at":"t","event":{"type":"prompt","run":7}}"#;
    let range = r#"{"seq":5,"from":2,"at":"t","event":{"type":"text","run":null,"block":"b","delta":"abcd"}}"#;
    fs::write(dir.events(), format!("{newer}\n{changed}\n{range}\n")).unwrap();
    let state = read_state(&dir).unwrap();
    assert_eq!(state.fold.next_seq, 6);
    assert_eq!(numbers(&dir), [0, 1, 5]);
    assert!(!Transcript::open(&dir).unwrap().was_cut);
}

/// A bit of a text flips, and it is not UTF-8 any more. Such a line counted as an event of a newer version, which no viewer
/// could be sent, so that none got past it.
#[test]
fn r40_a_text_with_damaged_characters_is_not_an_event_of_a_newer_version() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    for event in [started(1), text(5), prompt(0)] {
        transcript.append(event).unwrap();
    }
    let mut bytes = fs::read(dir.events()).unwrap();
    let at = bytes.windows(5).position(|part| part == b"xxxxx").unwrap();
    bytes[at] ^= 0x80;
    fs::write(dir.events(), &bytes).unwrap();
    assert_eq!(read_state(&dir).unwrap().fold.next_seq, 1);
    let Opened { transcript, was_cut } = Transcript::open(&dir).unwrap();
    assert!(was_cut && transcript.end().seq == 1);
    assert_eq!(send_from(&transcript, 0, 1000).len(), 1);
}

/// A restart by this version neither changes nor drops what a newer one recorded.
#[test]
fn r20_events_of_a_newer_version_survive_a_restart_and_are_passed_on_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let newer = [
        r#"{"seq":0,"at":"t","event":{"type":"started","epoch":"00000001","pid":7,"version":"9","mood":{}},"lane":2}"#,
        r#"{"seq":1,"at":"t","event":{"type":"hologram","beams":[1.0e2],"text":"\u0041"}}"#,
        r#"{"seq":2,"at":"t","lane":1,"event":{"type":"notice","level":"fatal","text":"x"}}"#,
        r#"{"seq":5,"from":3,"at":"t","event":{"type":"hologram_part","beams":3}}"#,
        r#"{"seq":6,"at":"t","event":{"type":"run_started","run":"r0","cause":"clock"}}"#,
        r#"{"seq":7,"at":"t","event":{"type":"text","run":"r0","block":"b","delta":"x","tone":"dry"}}"#,
        r#"{"seq":8,"at":"t","event":{"type":"text","run":"r0","block":"b","delta":"y","tone":"dry"}}"#,
    ];
    let lines: String = newer.iter().map(|line| format!("{line}\n")).collect();
    fs::write(dir.events(), &lines).unwrap();
    let Opened { mut transcript, was_cut } = Transcript::open(&dir).unwrap();
    assert!(!was_cut);
    assert_eq!(transcript.append(started(2)).unwrap(), 9);
    transcript.checkpoint().unwrap();
    assert!(fs::read_to_string(dir.events()).unwrap().starts_with(&lines));
    // Enough that pages and viewers get adjacent texts as one event.
    (0..LAGGING).for_each(|_| _ = transcript.append(text(3)).unwrap());
    let query = PageQuery { before: Some(9), after: None, limit: MAX_EVENTS };
    let page = read_page(&dir, true, query).unwrap();
    assert!(page.contains(&format!("[{}]", newer.join(","))), "{page}");
    let mut frames = Vec::new();
    let transmit = Transmit::Events { from: 0, to: transcript.end().seq };
    put(&mut frames, transmit, transcript.file(), transcript.state(), &mut ReadPosition::default(), 1 << 20).unwrap();
    for line in newer {
        let (frame, len) = Frame::decode(&frames).unwrap().unwrap();
        assert_eq!(frame, Frame::Text(&format!(r#"{{"type":"event",{}"#, &line[1..])));
        frames.drain(..len);
    }
    assert_eq!(transcript.fold().activity().unwrap().text, "Writing");
}

/// More events than a viewer gets one by one.
const LAGGING: usize = 80;

/// Sends everything from a number on, as a viewer with little room gets it.
fn send_from(transcript: &Transcript, from: u64, enough: usize) -> Vec<Record<AgentEvent>> {
    let (mut position, mut next, mut sent) = (ReadPosition::default(), from, Vec::new());
    let end = transcript.end().seq;
    while next < end {
        let mut frames = Vec::new();
        let transmit = Transmit::Events { from: next, to: end };
        let put = put(&mut frames, transmit, transcript.file(), transcript.state(), &mut position, enough);
        let Put::Events { next: after } = put.unwrap() else { panic!("no events") };
        let mut at = 0;
        while let Some((Frame::Text(text), used)) = Frame::decode(&frames[at..]).unwrap() {
            let message = serde_json::from_str(text).unwrap();
            let FollowMessage::Event { seq, from, at: time, event } = message else { panic!("{text}") };
            sent.push(Record { seq, from, at: time, event: serde_json::from_value(event).unwrap() });
            at += used;
        }
        assert!(after > next && at == frames.len());
        next = after;
    }
    sent
}

#[test]
fn r40_a_viewer_gets_every_event_from_any_number_on() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    for n in 0..300 {
        transcript.append(text(n * 37 % 2000)).unwrap();
    }
    assert!(transcript.state().index.len() > 3, "the journal is long enough for an index");
    for from in (0..=301).step_by(7) {
        for enough in [1, 700, 64 << 10] {
            pages::assert_same(&send_from(&transcript, from, enough), &pages::records(&dir)[from as usize..]);
        }
    }
    transcript.checkpoint().unwrap();
    let reopened = open(&dir);
    assert_eq!(reopened.state(), transcript.state());
    assert_eq!(send_from(&reopened, 250, 1000).len(), 51, "one that follows closely gets each event as it is");
    assert!(send_from(&reopened, 0, 1000).len() < 100, "one that lags gets fewer");
}

/// Something that happens to the files between two reads.
#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Checkpoint,
    Restart,
    /// The file is cut at a random place, as a crash does.
    Cut(usize),
    DamageHead(usize),
    RemoveHead,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..20_000usize).prop_map(Step::Append),
        2 => Just(Step::Checkpoint),
        2 => Just(Step::Restart),
        1 => any::<usize>().prop_map(Step::Cut),
        1 => any::<usize>().prop_map(Step::DamageHead),
        1 => Just(Step::RemoveHead),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Whatever happens to the journal and the checkpoint, a reader gets the fold of all whole lines.
    #[test]
    fn r40_the_state_is_the_fold_of_the_whole_journal(steps in prop::collection::vec(step(), 1..40)) {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let mut transcript = open(&dir);
        let mut lives = 0u8;
        for step in steps {
            match step {
                Step::Append(len) => drop(transcript.append(if len % 5 == 0 { prompt(len as u64) } else { text(len) })),
                Step::Checkpoint => transcript.checkpoint().unwrap(),
                Step::Restart => {
                    lives = lives.wrapping_add(1);
                    transcript = open(&dir);
                    transcript.append(started(lives)).unwrap();
                }
                Step::Cut(at) => {
                    let len = fs::metadata(dir.events()).unwrap().len();
                    File::options().write(true).open(dir.events()).unwrap().set_len(at as u64 % (len + 1)).unwrap();
                    let opened = Transcript::open(&dir).unwrap();
                    transcript = opened.transcript;
                    transcript.repair(opened.was_cut.then(|| epoch(9))).unwrap();
                }
                Step::DamageHead(at) => {
                    let mut head = fs::read(dir.head()).unwrap_or_default();
                    let at = at % (head.len() + 1);
                    if let Some(byte) = head.get_mut(at) {
                        *byte ^= 1;
                    }
                    File::create(dir.head()).unwrap().write_all(&head).unwrap();
                }
                Step::RemoveHead => _ = fs::remove_file(dir.head()),
            }
            let mut whole = TranscriptState::default();
            let file = File::open(dir.events()).unwrap();
            let mut lines = Lines::new(&file, 0, 0);
            while let Some(line) = lines.next().unwrap() {
                whole.add(&line.parse().unwrap(), line.byte);
            }
            prop_assert_eq!(&read_state(&dir).unwrap(), &whole);
            prop_assert_eq!(&read_listed(&dir, false).unwrap(), &whole.fold.listed());
            prop_assert_eq!(transcript.state(), &whole);
        }
    }
}

#[test]
fn r33_a_repair_is_made_once() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    for event in [started(1), prompt(0), prompt(1)] {
        transcript.append(event).unwrap();
    }
    for _ in 0..2 {
        let mut transcript = open(&dir);
        transcript.repair(None).unwrap();
        assert_eq!(transcript.end().seq, 5, "one end for each run");
    }
}

/// A viewer of an ended session gets the rest of its events, then the exit.
#[test]
fn r40_an_ended_session_is_served_from_its_files() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    let digest = command_digest(&serde_json::json!({"type": "prompt", "text": "hi"}));
    let source = CommandSource { command: "c0".into(), digest, by: "local".into() };
    let prompt = AgentEvent::Prompt { run: RunId(0), source, text: "hi".into(), attachments: vec![] };
    for event in [started(1), prompt, text(3), AgentEvent::Exit { code: Some(0), signal: None }] {
        transcript.append(event).unwrap();
    }
    let meta = serde_json::json!({
        "id": dir.id(), "name": null, "kind": "agent", "cwd": "/", "created": "", "boot": crate::machine::this_boot(),
        "host": crate::machine::this_host(), "agent": "fake", "protocol": "acp", "command": ["x"], "agent_env": [],
    });
    fs::write(dir.meta(), meta.to_string()).unwrap();
    let entry = crate::registry::try_read(dir.clone()).unwrap().unwrap();
    assert_eq!((entry.info.offset, entry.info.epoch.clone()), (4, epoch(1)));
    let mut archive = TranscriptArchive::open(&entry).unwrap();
    let hello = serde_json::json!({
        "type": "hello", "version": 1, "client": "00000000-0000-4000-8000-000000000001", "conn": 1,
        "cursor": {"epoch": epoch(1), "offset": 1},
    });
    let mut wire = Vec::new();
    bowline_proto::frame::put_text(&mut wire, &hello.to_string());
    // Commands that arrive before the end was sent are answered: a known id is a duplicate, whatever the state.
    for (id, text) in [("c0", "hi"), ("c0", "other"), ("new", "hi")] {
        let command = serde_json::json!({"type": "command", "id": id, "command": {"type": "prompt", "text": text}});
        bowline_proto::frame::put_text(&mut wire, &command.to_string());
    }
    assert!(archive.handle_bytes(&wire, Duration::ZERO));
    let mut frames = Vec::new();
    assert!(archive.poll_frames(&mut frames, Duration::ZERO), "the last frame is the close");
    let (mut at, mut kinds) = (0, Vec::new());
    while let Some((Frame::Text(text), used)) = Frame::decode(&frames[at..]).unwrap() {
        let message: serde_json::Value = serde_json::from_str(text).unwrap();
        kinds.push(format!("{} {} {}", message["type"].as_str().unwrap(), message["seq"], message["code"]));
        at += used;
    }
    let answers: Vec<String> =
        kinds.extract_if(.., |kind| kind.starts_with("accepted") || kind.starts_with("rejected")).collect();
    assert_eq!(answers, ["accepted 1 null", r#"rejected null "id_reused""#, r#"rejected null "session_gone""#]);
    let rest = ["attached null null", "event 1 null", "event 2 null", "event 3 null", "exit null 0", "close null 1000"];
    assert_eq!(kinds, rest);
}
