//! Writes and checks `fixtures/agent/fold.json`: journals, and what each event changes in the state of the conversation.
//! The TypeScript fold is held to the same file.
//!
//! `BOWLINE_BLESS=1 cargo test -p bowline-proto --test fold` writes it again; review the difference before you commit it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod fold_journals;

use std::fs;

use bowline_proto::agent::config::{Choices, Config};
use bowline_proto::agent::event::AgentEvent;
use bowline_proto::agent::fold::Fold;
use bowline_proto::journal::Record;
use fold_journals::{Journal, random, written};
use serde_json::{Map, Value, json};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/agent/fold.json");
const CAPTURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/agents");

#[test]
#[allow(clippy::disallowed_methods, reason = "the developer decides whether to write the vectors again")]
fn r35_the_fold_matches_its_vectors() {
    let vectors = vectors();
    if std::env::var_os("BOWLINE_BLESS").is_some() {
        return fs::write(VECTORS, vectors).unwrap();
    }
    let committed = fs::read_to_string(VECTORS).unwrap_or_default();
    let differs = vectors.lines().zip(committed.lines()).find(|(now, before)| now != before);
    assert!(
        vectors == committed,
        "fixtures/agent/fold.json differs from what the fold does now, first at {differs:?}. Write it again and review \
         the difference:\nBOWLINE_BLESS=1 cargo test -p bowline-proto --test fold"
    );
}

#[test]
fn r35_a_list_shows_the_same_as_the_whole_fold() {
    let journals = written().into_iter().chain([random(7, 700)]).chain(captured());
    for Journal { name, records } in journals {
        let mut whole = Fold::default();
        for record in records.iter().map(read) {
            whole.fold(&record);
            let listed = whole.listed();
            assert_eq!((listed.epoch(), listed.activity()), (whole.epoch(), whole.activity()), "{name} {}", record.seq);
            assert_eq!(
                (listed.next_seq, &listed.last_at, &listed.process),
                (whole.next_seq, &whole.last_at, &whole.process)
            );
            let (mut shown, mut all) = (listed.state(), whole.state());
            // Only the newest tool is part of the activity, and only the current mode and model are shown.
            let current = |choices: &Option<Choices>| choices.as_ref().and_then(|choices| choices.current.clone());
            let settings =
                |config: Option<Config>| config.map(|config| (current(&config.modes), current(&config.models)));
            assert_eq!(settings(shown.config.take()), settings(all.config.take()));
            (shown.tools, all.tools) = (Vec::new(), Vec::new());
            assert_eq!(shown, all, "{name} {}", record.seq);
        }
    }
}

/// The whole file: one line for each event, so that a difference can be read.
fn vectors() -> String {
    let own = written().into_iter().chain([random(7, 700)]).map(|Journal { name, records }| {
        let changes = changes(&records);
        let steps = records.iter().zip(changes).map(|(record, then)| json!({"record": record, "then": then}));
        format!("{{\"name\":{},\"steps\":[\n{}\n]}}", json!(name), lines(steps))
    });
    let captured = captured().into_iter().map(|Journal { name, records }| {
        format!("{{\"file\":{},\"then\":[\n{}\n]}}", json!(name), lines(changes(&records).into_iter().map(Value::from)))
    });
    let about = "Journals, and the fields of the state that each event changes; null for an optional field that it \
        removes. The events of `captured` are the lines with a `type` in fixtures/agents, numbered from 0, at `tN`.";
    format!(
        "{{\"about\":{},\n\"written\":[\n{}\n],\n\"captured\":[\n{}\n]}}\n",
        json!(about),
        own.collect::<Vec<_>>().join(",\n"),
        captured.collect::<Vec<_>>().join(",\n")
    )
}

fn lines(values: impl Iterator<Item = Value>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(",\n")
}

/// What the adapters make of captured streams.
fn captured() -> Vec<Journal> {
    let mut files: Vec<String> = fs::read_dir(CAPTURED)
        .unwrap()
        .map(|folder| folder.unwrap().path())
        .filter(|folder| folder.is_dir())
        .flat_map(|folder| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()))
        .map(|file| file.strip_prefix(CAPTURED).unwrap().to_str().unwrap().to_owned())
        .filter(|name| name.ends_with(".events.jsonl"))
        .collect();
    files.sort();
    let read = |name: String| {
        let text = fs::read_to_string(format!("{CAPTURED}/{name}")).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        Journal::new(name, events.filter(|event| event.get("type").is_some()).collect())
    };
    files.into_iter().map(read).collect()
}

/// Folds a journal. Returns the fields that each event changes.
fn changes(records: &[Value]) -> Vec<Map<String, Value>> {
    let mut fold = Fold::default();
    let mut before = Map::new();
    let mut changes = Vec::new();
    for record in records {
        fold.fold(&read(record));
        let Value::Object(state) = json!(fold.state()) else { panic!("a state is an object") };
        let mut changed = state.clone();
        changed.retain(|key, value| before.get(key) != Some(value));
        changed.extend(before.keys().filter(|key| !state.contains_key(*key)).map(|key| (key.clone(), Value::Null)));
        changes.push(changed);
        before = state;
    }
    changes
}

/// As the readers of journals do: an event of a shape that this version does not know is `unknown`.
fn read(record: &Value) -> Record<AgentEvent> {
    serde_json::from_value(record.clone()).unwrap_or_else(|_| {
        let Record { seq, from, at, event: _ } = serde_json::from_value::<Record<Value>>(record.clone()).unwrap();
        Record { seq, from, at, event: AgentEvent::Unknown }
    })
}
