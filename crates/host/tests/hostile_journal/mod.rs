//! Reads and continues damaged journals of agent sessions. Used by the fuzz target `journal` and by the seeded test
//! `journal_fuzz.rs`.
//!
//! A reference that parses the whole file says which events there are. Times are part of the data, so that the same data
//! gives the same files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use bowline_host::digest::fnv1a;
use bowline_host::home::{Home, SessionDir};
use bowline_host::transcript::{
    Lines, MAX_LINE, Opened, PageQuery, Put, ReadPosition, Transcript, put, read_listed, read_page, read_state,
    read_state_and_checkpoint,
};
use bowline_proto::follow::Transmit;
use bowline_proto::frame::Frame;
use bowline_proto::ids::{Epoch, SessionId};
use serde_json::{Value, json};

/// Reads choices from the data until it is used up.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or_default()
    }

    fn below(&mut self, end: usize) -> usize {
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % end.max(1)
    }

    fn bytes(&mut self) -> &'a [u8] {
        let len = self.below(400).min(self.0.len());
        self.0.split_off(..len).unwrap_or_default()
    }
}

/// A directory for the files of one session.
pub fn session_dir(root: &Path) -> SessionDir {
    let home = Home::new(root.join("s"), root.join("r")).unwrap();
    home.ensure().unwrap();
    let dir = home.session(&SessionId::from_random([1; 12]));
    fs::create_dir_all(dir.path()).unwrap();
    dir
}

/// Lets the data decide what is in `events.jsonl` and `head`, and checks what is read of them and what comes next.
pub fn read_journal(dir: &SessionDir, data: &[u8]) {
    for file in fs::read_dir(dir.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    let source = &mut Source(data);
    let (bytes, head) = match source.byte() % 4 {
        0 => (source.0.to_vec(), None),
        _ => damaged_journal(dir, source),
    };
    let is_trusted = head.as_ref().is_none_or(|head| head.is_true);
    let write = |bytes: &[u8]| {
        fs::write(dir.events(), bytes).unwrap();
        match &head {
            Some(head) => fs::write(dir.head(), &head.text).unwrap(),
            None => _ = fs::remove_file(dir.head()),
        }
    };
    write(&bytes);
    let whole = Reference::new(&bytes);
    check_lines(dir, &whole);
    check_readers(dir, &bytes, is_trusted.then_some(&whole), source);
    write(&bytes);
    if is_trusted {
        check_append(dir, &bytes, &whole);
    }
}

/// The events of a journal, by a second implementation of the rules.
struct Reference {
    /// Each with its first number and its last.
    lines: Vec<(u64, u64, Value)>,
    next: u64,
    /// Their length in bytes.
    len: usize,
    /// Lines that are whole, but whose JSON is damaged, end the journal for those who parse them.
    all_parse: bool,
}

impl Reference {
    fn new(bytes: &[u8]) -> Reference {
        let mut reference = Reference { lines: Vec::new(), next: 0, len: 0, all_parse: true };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(text) = line.strip_suffix(b"\n") else { break };
            let Some((first, seq)) = numbers(text).filter(|(first, seq)| *first == reference.next && seq >= first)
            else {
                break;
            };
            let Some(event) = record(text) else {
                reference.all_parse = false;
                break;
            };
            reference.lines.push((first, seq, event));
            (reference.next, reference.len) = (seq + 1, reference.len + line.len());
        }
        reference
    }

    /// The events of these numbers as one.
    fn event(&self, first: u64, seq: u64) -> Option<Value> {
        let covered = |line: &&(u64, u64, Value)| line.0 >= first && line.1 <= seq;
        let lines: Vec<_> = self.lines.iter().filter(covered).collect();
        joined(first, seq, &lines)
    }
}

/// Several pieces of a text as one event.
fn joined(first: u64, seq: u64, lines: &[&(u64, u64, Value)]) -> Option<Value> {
    let mut next = first;
    for line in lines {
        if line.0 != next {
            return None;
        }
        next = line.1 + 1;
    }
    let mut event = lines.first()?.2.clone();
    if lines.len() > 1 {
        let delta: String = lines.iter().map(|line| line.2["delta"].as_str().unwrap()).collect();
        event["delta"] = json!(delta);
    }
    (next == seq + 1).then_some(event)
}

/// The first and the last number of a line, in the form in which Bowline writes them.
fn numbers(text: &[u8]) -> Option<(u64, u64)> {
    let start = String::from_utf8_lossy(&text[..text.len().min(100)]).into_owned();
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let rest = start.strip_prefix("{\"seq\":")?;
    let seq = digits(rest);
    let from = rest[seq.len()..].strip_prefix(",\"from\":").map(digits);
    let number = |digits: &str| digits.parse::<u64>().ok().filter(|number| *number < 1 << 53);
    let seq = number(&seq)?;
    let first = from.map_or(Some(seq), |from| number(&from))?;
    text.ends_with(b"}").then_some((first, seq))
}

/// The event of a line that is a record.
fn record(text: &[u8]) -> Option<Value> {
    // Not as a `Value`, which accepts a key that is there twice.
    let record: bowline_proto::journal::Record<serde::de::IgnoredAny> = serde_json::from_slice(text).ok()?;
    let value: Value = serde_json::from_slice(text).ok()?;
    (value["seq"] == record.seq).then(|| value["event"].clone())
}

/// A checkpoint.
struct Head {
    text: Vec<u8>,
    /// It is one of this journal, and nothing before it was damaged; or it can be told that it is not.
    is_true: bool,
}

/// A journal as a session writes it, then damaged, and perhaps a checkpoint.
fn damaged_journal(dir: &SessionDir, source: &mut Source<'_>) -> (Vec<u8>, Option<Head>) {
    let count = 1 + source.below(60);
    let mut lines: Vec<Vec<u8>> = (0..count as u64).map(|seq| line(seq, source)).collect();
    let checkpoint_at = source.below(count + 1);
    let true_head = head_of(dir, &lines[..checkpoint_at]);
    let checkpoint_len: usize = lines[..checkpoint_at].iter().map(Vec::len).sum();
    // The head of a journal that went another way: the same beginning, then other events at other times.
    let shared = source.below(checkpoint_at + 1);
    let mut other = lines[..shared].to_vec();
    other.extend((shared as u64..checkpoint_at as u64).map(|seq| line_at(seq, "2027", source)));
    let head = match source.byte() % 6 {
        0 => None,
        1 => Some(Head { text: true_head, is_true: true }),
        2 => Some(Head { text: head_of(dir, &other), is_true: true }),
        3 => {
            let mut text = true_head;
            let at = source.below(text.len());
            text[at] ^= 1 << (source.byte() % 8);
            Some(Head { text, is_true: true })
        }
        4 => Some(Head { text: source.bytes().to_vec(), is_true: true }),
        _ => Some(Head { text: lie(&true_head, source), is_true: false }),
    };
    for _ in 0..source.below(3) {
        let at = source.below(lines.len() + 1);
        match source.byte() % 5 {
            0 if at < lines.len() => _ = lines.remove(at),
            1 if at < lines.len() => lines.insert(at, lines[at].clone()),
            2 => {
                let with = source.below(lines.len());
                if at < lines.len() {
                    lines.swap(at, with);
                }
            }
            3 => lines.insert(at, [source.bytes(), b"\n"].concat()),
            _ => lines.insert(at.min(lines.len()), line_at(at as u64, "2028", source)),
        }
    }
    let undamaged: usize = lines.iter().zip(0..).take_while(|(line, seq)| numbers_of(line) == Some(*seq)).count();
    let mut bytes = lines.concat();
    let mut damaged_from = lines[..undamaged].iter().map(Vec::len).sum::<usize>();
    for _ in 0..source.below(3) {
        let at = source.below(bytes.len());
        match source.byte() % 3 {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << (source.byte() % 8),
            _ => bytes.splice(at..at, source.bytes().iter().copied()).for_each(drop),
        }
        damaged_from = damaged_from.min(at);
    }
    // Readers do not look at what comes before the checkpoint, so damage there is found when it is read.
    let hides_damage = damaged_from < checkpoint_len && checkpoint_at > 0;
    let head = head.map(|head| Head { is_true: head.is_true && !hides_damage, ..head });
    (bytes, head)
}

fn numbers_of(line: &[u8]) -> Option<u64> {
    Some(numbers(line.strip_suffix(b"\n")?)?.1)
}

fn line(seq: u64, source: &mut Source<'_>) -> Vec<u8> {
    line_at(seq, "2026", source)
}

fn line_at(seq: u64, year: &str, source: &mut Source<'_>) -> Vec<u8> {
    let event = match source.byte() % 8 {
        _ if seq == 0 => json!({"type": "started", "epoch": "0000000a", "pid": 7, "version": "0.1.0"}),
        0 => json!({"type": "prompt", "run": format!("r{seq}"), "command": format!("c{seq}"), "digest": "d",
            "by": "local", "text": "hi", "attachments": []}),
        1 => json!({"type": "notice", "level": "info", "text": format!("n{seq}")}),
        2 => json!({"type": "repaired", "epoch": format!("{seq:08x}")}),
        // Long enough for an index.
        3 => json!({"type": "text", "run": "r0", "block": "b", "delta": "x".repeat(source.below(20_000))}),
        4 => json!({"type": "a_later_version", "n": seq}),
        5 => json!({"type": "thinking", "run": null, "block": "b", "delta": format!("t{seq} ")}),
        _ => json!({"type": "text", "run": "r0", "block": "b", "delta": format!("d{seq} ")}),
    };
    let mut text = format!("{{\"seq\":{seq},\"at\":\"{year}-01-01T00:00:{:02}.{seq:03}Z\",\"event\":", seq % 60);
    // The type first, as in every journal.
    let Value::Object(mut fields) = event else { unreachable!() };
    let kind = fields.remove("type").unwrap();
    text += &format!("{{\"type\":{kind}");
    for (key, value) in fields {
        text += &format!(",{}:{value}", json!(key));
    }
    text += "}}\n";
    text.into_bytes()
}

/// The checkpoint at the end of these lines.
fn head_of(dir: &SessionDir, lines: &[Vec<u8>]) -> Vec<u8> {
    fs::write(dir.events(), lines.concat()).unwrap();
    let _ = fs::remove_file(dir.head());
    let Opened { mut transcript, was_cut } = Transcript::open(dir).unwrap();
    assert!(!was_cut, "a whole journal");
    transcript.checkpoint().unwrap();
    let head = fs::read(dir.head()).unwrap();
    fs::remove_file(dir.head()).unwrap();
    head
}

/// Changes a number in one line of a checkpoint, or in both, and makes their checksums right again.
fn lie(head: &[u8], source: &mut Source<'_>) -> Vec<u8> {
    let lying = 1 + source.below(3);
    let lines = String::from_utf8(head.to_vec()).unwrap();
    let lines = lines.lines().enumerate().map(|(n, line)| match lying & (n + 1) {
        0 => line.to_owned(),
        _ => lie_in_line(line, source),
    });
    lines.collect::<Vec<_>>().join("\n").into_bytes()
}

fn lie_in_line(line: &str, source: &mut Source<'_>) -> String {
    let mut text = line.to_owned();
    let numbers: Vec<usize> = text
        .char_indices()
        .filter(|(at, char)| char.is_ascii_digit() && !text[..*at].ends_with(|char: char| char.is_ascii_digit()))
        .map(|(at, _)| at)
        .collect();
    let at = numbers[source.below(numbers.len())];
    let len = text[at..].chars().take_while(char::is_ascii_digit).count();
    text.replace_range(at..at + len, &source.below(5000).to_string());
    let part = |from: &str, to: &str| {
        let start = text.find(from)? + from.len();
        Some(text.get(start..text.rfind(to)?)?.to_owned())
    };
    let parts = || {
        let version = part("{\"version\":", ",\"position\":")?;
        let position = part("\"position\":", ",\"fingerprint\":")?;
        let fingerprint = part(",\"fingerprint\":", ",\"summary\":")?;
        Some((version, position, fingerprint, part(",\"summary\":", ",\"checksum\":")?))
    };
    let Some((version, position, fingerprint, summary)) = parts() else { return text };
    let sum = fnv1a(format!("[{version},{position},{fingerprint},{summary}]").as_bytes());
    let end = text.rfind(",\"checksum\":").unwrap();
    text.replace_range(end.., &format!(",\"checksum\":{sum}}}"));
    text
}

/// What is read from the start is what the reference has.
fn check_lines(dir: &SessionDir, whole: &Reference) {
    let file = File::open(dir.events()).unwrap();
    let mut lines = Lines::new(&file, 0, 0);
    for (first, seq, event) in &whole.lines {
        let line = lines.next().unwrap().expect("a whole line");
        assert_eq!((line.first, line.seq), (*first, *seq));
        assert!(line.parse().is_some() && record(line.text).as_ref() == Some(event));
    }
    let after = lines.next().unwrap().map(|line| (line.parse(), String::from_utf8_lossy(line.text).into_owned()));
    assert!(
        after.as_ref().is_none_or(|(parsed, _)| !whole.all_parse && parsed.is_none()),
        "after the last whole line: {after:?}"
    );
}

/// Checks what readers return. Without a reference, the checkpoint may lie: then all that counts is that every event that
/// is returned is in the file, under its number.
fn check_readers(dir: &SessionDir, bytes: &[u8], whole: Option<&Reference>, source: &mut Source<'_>) {
    let state = read_state(dir).unwrap();
    let listed = read_listed(dir, false).unwrap();
    if let Some(whole) = whole {
        assert_eq!(state.fold.next_seq, whole.next);
        assert_eq!(listed, state.fold.listed());
    }
    let mut by_first: BTreeMap<u64, Vec<(u64, u64, Value)>> = BTreeMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(((first, seq), event)) = numbers(line).zip(record(line)) {
            by_first.entry(first).or_default().push((first, seq, event));
        }
    }
    let check = |first: u64, seq: u64, event: &Value| match whole {
        Some(whole) => assert_eq!(whole.event(first, seq).as_ref(), Some(event), "{first} to {seq}"),
        None => assert!(is_in_file(&by_first, first, seq, event), "{first} to {seq} is not in the file: {event}"),
    };
    let end = state.fold.next_seq;
    for _ in 0..3 {
        let bound = |source: &mut Source<'_>| (source.byte() < 128).then(|| source.below(end as usize + 3) as u64);
        let query = PageQuery { before: bound(source), after: bound(source), limit: 1 + source.below(40) };
        let Ok(page) = read_page(dir, source.byte() < 64, query) else { continue };
        let page: Value = serde_json::from_str(&page).expect("a page is JSON");
        let mut next = page["start"].as_u64().unwrap();
        for record in page["events"].as_array().unwrap() {
            let seq = record["seq"].as_u64().unwrap();
            assert_eq!(record["from"].as_u64().unwrap_or(seq), next, "a page has no gaps");
            check(next, seq, &record["event"]);
            next = seq + 1;
        }
        assert_eq!(next, page["next"], "{query:?}");
    }
    let file = File::open(dir.events()).unwrap();
    let from = source.below(end as usize + 1) as u64;
    let (mut next, mut position) = (from, ReadPosition::default());
    while next < end {
        let mut frames = Vec::new();
        let enough = 1 + source.below(20_000);
        let sent = put(&mut frames, Transmit::Events { from: next, to: end }, &file, &state, &mut position, enough);
        let Ok(Put::Events { next: after }) = sent else {
            assert!(whole.is_none(), "all events can be read");
            break;
        };
        let mut rest = &frames[..];
        while let Some((Frame::Text(text), used)) = Frame::decode(rest).unwrap() {
            rest = &rest[used..];
            let Ok(record) = serde_json::from_str::<Value>(text) else {
                assert!(whole.is_none(), "{text}");
                return;
            };
            let seq = record["seq"].as_u64().unwrap();
            assert_eq!(record["from"].as_u64().unwrap_or(seq), next);
            if whole.is_some() {
                check(next, seq, &record["event"]);
            }
            next = seq + 1;
        }
        assert_eq!(next, after);
    }
    // A reader that writes a checkpoint writes one that says the same.
    let again = read_state_and_checkpoint(dir).unwrap();
    assert_eq!(again.fold, state.fold);
    assert_eq!(read_state(dir).unwrap().fold, state.fold);
}

/// Whether some lines of the file, one after the other, give this event.
fn is_in_file(by_first: &BTreeMap<u64, Vec<(u64, u64, Value)>>, first: u64, seq: u64, event: &Value) -> bool {
    let whole = event["delta"].as_str();
    by_first.get(&first).into_iter().flatten().any(|line| match (line.1, whole, line.2["delta"].as_str()) {
        (last, ..) if last == seq => line.2 == *event,
        (last, Some(whole), Some(start)) if last < seq && whole.starts_with(start) => {
            let mut rest = event.clone();
            rest["delta"] = json!(whole[start.len()..]);
            is_in_file(by_first, last + 1, seq, &rest)
        }
        _ => false,
    })
}

/// A session that continues the journal keeps all whole lines, and begins an epoch if others were cut off.
fn check_append(dir: &SessionDir, bytes: &[u8], whole: &Reference) {
    let Opened { mut transcript, was_cut } = Transcript::open(dir).unwrap();
    assert_eq!(was_cut, whole.len < bytes.len());
    assert_eq!(transcript.end().seq, whole.next);
    assert_eq!(fs::read(dir.events()).unwrap(), &bytes[..whole.len]);
    let aside = dir.path().join("events.jsonl.damaged");
    let rest = &bytes[whole.len..];
    assert_eq!(fs::read(aside).ok(), rest.contains(&b'\n').then(|| rest.to_vec()), "what was cut off");
    let epoch = Epoch::from_random([0xee; 4]);
    transcript.repair(was_cut.then(|| epoch.clone())).unwrap();
    assert!(!was_cut || transcript.fold().epoch() == Some(&epoch), "a new epoch");
    assert!(transcript.fold().open.is_empty(), "no run is open");
    let text = fs::read(dir.events()).unwrap();
    let again = Reference::new(&text);
    assert!(text.starts_with(&bytes[..whole.len]) && again.len == text.len(), "all lines are whole");
    assert_eq!(again.next, transcript.end().seq);
    assert_eq!(read_state(dir).unwrap().fold, *transcript.fold());
    assert!(text.split(|byte| *byte == b'\n').all(|line| line.len() <= MAX_LINE));
}
