//! Pages of history, and events that stand for several.

use std::fs::{self, File};

use bowline_proto::agent::event::{AgentEvent, Delta, RunId, ToolCall};
use bowline_proto::agent::fold::Fold;
use bowline_proto::api::EventPage;
use bowline_proto::journal::Record;
use proptest::prelude::*;

use super::super::page::{DEFAULT_EVENTS, MAX_EVENTS, PageQuery, read_page};
use super::super::{Lines, MAX_LINE, Transcript, read_state};
use super::{open, prompt, session, started, text};
use crate::files;
use crate::home::SessionDir;

/// The records of a whole journal.
pub(super) fn records(dir: &SessionDir) -> Vec<Record<AgentEvent>> {
    let file = File::open(dir.events()).unwrap();
    let mut lines = Lines::new(&file, 0, 0);
    let mut records = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        records.push(line.parse().unwrap());
    }
    records
}

/// Checks that these events are those of the journal: each number once and in order, and each text whole.
#[track_caller]
pub(super) fn assert_same(sent: &[Record<AgentEvent>], journal: &[Record<AgentEvent>]) {
    let mut rest = journal.iter();
    for record in sent {
        let meant: Vec<_> = rest.by_ref().take((record.seq - record.first() + 1) as usize).collect();
        let (first, last) = (meant.first().unwrap(), meant.last().unwrap());
        assert_eq!((record.first(), record.seq, &record.at), (first.seq, last.seq, &last.at));
        let mut event = first.event.clone();
        for piece in &meant[1..] {
            match (&mut event, &piece.event) {
                (AgentEvent::Text(whole), AgentEvent::Text(piece))
                | (AgentEvent::Thinking(whole), AgentEvent::Thinking(piece)) => {
                    assert_eq!(
                        (&whole.run, &whole.block, &whole.parent),
                        (&piece.run, &piece.block, &piece.parent),
                        "only pieces of one text become one event"
                    );
                    whole.delta += &piece.delta;
                }
                pair => panic!("{pair:?} became one event"),
            }
        }
        assert_eq!(record.event, event);
    }
    assert_eq!(rest.next(), None, "events are missing at the end");
}

fn events(page: &EventPage) -> Vec<Record<AgentEvent>> {
    page.events.iter().map(|record| serde_json::from_value(serde_json::json!(record)).unwrap()).collect()
}

fn page(dir: &SessionDir, before: Option<u64>, after: Option<u64>, limit: usize) -> EventPage {
    serde_json::from_str(&read_page(dir, true, PageQuery { before, after, limit }).unwrap()).unwrap()
}

fn piece(kind: usize, len: usize) -> AgentEvent {
    let parent = kind.is_multiple_of(3).then(|| "t1".to_owned());
    let delta = Delta { run: Some(RunId(0)), block: format!("b{}", kind % 4), parent, delta: "\u{e9}".repeat(len) };
    if kind.is_multiple_of(2) { AgentEvent::Text(delta) } else { AgentEvent::Thinking(delta) }
}

/// A journal with texts in small pieces, long tool calls and several lives.
fn journal(dir: &SessionDir, events: &[(usize, usize)]) -> Transcript {
    let mut transcript = open(dir);
    transcript.append(started(1)).unwrap();
    for (n, (kind, len)) in events.iter().enumerate() {
        let event = match kind {
            0 => prompt(n as u64),
            1 => AgentEvent::ToolCall(ToolCall { content: Some("y".repeat(len * 40).into()), ..ToolCall::default() }),
            2 => started(n as u8),
            kind => piece(kind / 8, *len),
        };
        transcript.append(event).unwrap();
    }
    transcript
}

fn fold(records: &[Record<AgentEvent>]) -> Fold {
    let mut fold = Fold::default();
    records.iter().for_each(|record| fold.fold(record));
    fold
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Paged in either direction, in steps of any size, a history is the whole journal, and its state the fold of it.
    #[test]
    fn r40_pages_are_the_whole_journal(
        kinds in prop::collection::vec((0..40usize, 0..1500usize), 1..300),
        limit in 1..60usize,
    ) {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let end = journal(&dir, &kinds).end().seq;
        let journal = records(&dir);
        let expected = fold(&journal);

        let mut page = page(&dir, None, None, limit);
        prop_assert_eq!(page.next, end);
        prop_assert_eq!(page.state.as_ref(), Some(&expected.state()));
        let mut backwards = events(&page);
        while page.more {
            let start = page.start;
            page = self::page(&dir, Some(start), None, limit);
            prop_assert!(page.next == start && page.state.is_none() && page.start < start);
            prop_assert!(page.events.len() <= limit);
            backwards.splice(0..0, events(&page));
        }
        prop_assert_eq!(page.start, 0);
        assert_same(&backwards, &journal);
        prop_assert_eq!(fold(&backwards).state(), expected.state());

        let mut forwards = journal[..1].to_vec();
        loop {
            let last = forwards.last().unwrap().seq;
            let page = self::page(&dir, None, Some(last), limit);
            prop_assert_eq!((page.start, &page.epoch), (last + 1, expected.epoch().unwrap()));
            prop_assert_eq!(page.state.is_some(), page.next == end);
            prop_assert_eq!(page.more, page.next < end);
            forwards.extend(events(&page));
            if !page.more {
                break;
            }
        }
        assert_same(&forwards, &journal);
    }

    /// A page never has events outside its bounds, whatever a client asks for.
    #[test]
    fn r40_bounds_are_exclusive(
        kinds in prop::collection::vec((0..40usize, 0..50usize), 1..100),
        before in prop::option::of(0..130u64),
        after in prop::option::of(prop_oneof![0..130u64, Just(u64::MAX)]),
        limit in 0..2000usize,
    ) {
        let temp = tempfile::tempdir().unwrap();
        let dir = session(&temp);
        let end = journal(&dir, &kinds).end().seq;
        let page = page(&dir, before, after, limit);
        let first = after.map_or(0, |after| after.saturating_add(1));
        let last = before.unwrap_or(end).min(end);
        prop_assert!(page.start <= page.next && page.next <= end);
        if first < last {
            prop_assert!(page.start >= first && page.next <= last && page.start < page.next);
        } else {
            prop_assert_eq!((page.events.len(), page.start, page.more), (0, page.next, after.is_none() && last > 0));
        }
        assert_same(&events(&page), &records(&dir)[page.start as usize..page.next as usize]);
    }
}

#[test]
fn r40_a_text_in_many_pieces_is_few_events() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    (0..5000).for_each(|_| _ = transcript.append(text(20)).unwrap());
    let page = page(&dir, None, None, DEFAULT_EVENTS);
    assert_eq!((page.start, page.next, page.more), (0, 5001, false));
    assert!(page.events.len() < 20, "{} events", page.events.len());
    let longest = events(&page).into_iter().map(|record| match record.event {
        AgentEvent::Text(delta) => delta.delta.len(),
        _ => 0,
    });
    assert!(longest.max().unwrap() <= 16 << 10);
}

/// One with a field that this version does not know is sent as it is.
#[test]
fn a_piece_of_a_newer_version_is_not_changed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let lines: Vec<String> = (0..100)
        .map(|n| {
            format!(r#"{{"seq":{n},"at":"t","event":{{"type":"text","run":null,"block":"b","delta":"x","n":{n}}}}}"#)
        })
        .collect();
    let start = r#"{"seq":0,"at":"t","event":{"type":"started","epoch":"00000001","pid":1,"version":"9"}}"#;
    fs::write(dir.events(), format!("{start}\n{}\n", lines[1..].join("\n"))).unwrap();
    let page = read_page(&dir, true, PageQuery { before: None, after: None, limit: MAX_EVENTS }).unwrap();
    assert!(page.contains(&lines[1..].join(",")), "{page}");
}

#[test]
fn r52_a_page_has_at_most_1_mib() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    for len in [30 << 10, MAX_LINE - 1000, 100, MAX_LINE - 1000, 30 << 10, 30 << 10] {
        let content = Some(serde_json::Value::from("y".repeat(len)));
        transcript.append(AgentEvent::ToolCall(ToolCall { content, ..ToolCall::default() })).unwrap();
    }
    let mut before = None;
    let mut pages = 0;
    loop {
        let page = read_page(&dir, true, PageQuery { before, after: None, limit: MAX_EVENTS }).unwrap();
        assert!(page.len() <= 1 << 20);
        let page: EventPage = serde_json::from_str(&page).unwrap();
        pages += 1;
        before = Some(page.start);
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, 2);
}

/// It must not be taken for the end of the history.
#[test]
fn r40_damage_in_the_middle_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let dir = session(&temp);
    let mut transcript = open(&dir);
    transcript.append(started(1)).unwrap();
    (0..200).for_each(|_| _ = transcript.append(text(1000)).unwrap());
    transcript.checkpoint().unwrap();
    let state = read_state(&dir).unwrap();
    let (_, byte) = state.find(150);
    let whole = fs::read(dir.events()).unwrap();
    for damage in [b"{\"seq\":9".as_slice(), b"\xff", b"\n"] {
        let mut events = whole.clone();
        events[byte as usize..byte as usize + damage.len()].copy_from_slice(damage);
        fs::write(dir.events(), events).unwrap();
        let read = |before, after| read_page(&dir, true, PageQuery { before, after, limit: 1 });
        for (before, after) in [(Some(151), None), (None, Some(state.find(150).0 - 1))] {
            let error = read(before, after).unwrap_err();
            assert!(files::is_damage(&error), "{error}");
        }
        assert!(read(None, None).is_ok(), "what comes after it can be read");
    }
}
