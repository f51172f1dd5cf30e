//! Resuming: connections are cut at any moment, and every byte of output and input arrives once.

use std::net::Shutdown;

use serde_json::json;

use super::viewer::{Viewer, contains, hello};
use super::world::World;

/// A small random number generator with a seed, so that a failure can be replayed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A viewer whose connection is cut sixty times, after random numbers of messages, receives exactly the bytes of the log.
#[test]
fn r9_cuts_at_any_message_lose_and_repeat_nothing() {
    for seed in 1..=6u64 {
        let world = World::new();
        let id = world.shell("read go; seq -f 'line %.0f of the output that must not have a hole' 1 60000; read stop");
        let mut random = Random(seed * 0x9e37_79b9);
        let mut all = Vec::new();
        let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
        let first = viewer.offset;
        viewer.type_text("\n");
        for conn in 2..=60 {
            for _ in 0..random.below(12) {
                if !ended(&viewer.output) && !ended(&all) {
                    viewer.step();
                }
            }
            let _ = viewer.stream().shutdown(Shutdown::Both);
            all.append(&mut viewer.output);
            let cursor = viewer.cursor();
            viewer = Viewer::attach(&world, &id, &hello(1, conn, json!({ "cursor": cursor })));
            assert_eq!(viewer.attached["verdict"], "exact", "seed {seed}, dial {conn}");
            assert_eq!(viewer.attached["input"], 1, "seed {seed}: the Enter was accepted once");
        }
        viewer.until("the last line", |viewer| ended(&viewer.output) || ended(&all));
        viewer.type_text("\n");
        viewer.finish();
        all.append(&mut viewer.output);
        let log = world.bowline().args(["log", &id, "--from", &first.to_string()]).output().unwrap().stdout;
        assert!(all == log, "seed {seed}: received {} bytes, the log has {}", all.len(), log.len());
    }
}

fn ended(all: &[u8]) -> bool {
    contains(&all[all.len().saturating_sub(100)..], "line 60000 of")
}

/// Three clients type different letters through connections that are cut. Each letter arrives once, in order.
#[test]
fn r16_keys_of_several_clients_arrive_exactly_once() {
    let world = World::new();
    let id = world.shell("stty raw -echo; echo ready; cat");
    world.wait_for_screen(&id, "ready");
    let start = world.info(&id)["offset"].as_u64().unwrap();
    for seed in 1..=4u64 {
        let mut random = Random(seed * 0x517c_c1b7);
        let texts = [b'a', b'A', b'0'].map(|first| letters(first, 4000));
        let (mut conns, mut done, mut last) = ([0u64; 3], [0usize; 3], Vec::new());
        while last.len() < 3 {
            let client = random.below(3) as usize;
            let text = &texts[client];
            if done[client] == text.len() {
                continue;
            }
            conns[client] += 1;
            let number = seed * 10 + client as u64;
            let hello = hello(number, conns[client], json!({"scrollback": 0, "lag": "skip"}));
            let mut viewer = Viewer::attach(&world, &id, &hello);
            // The session says how much it has accepted; the rest is sent again.
            done[client] = viewer.attached["input"].as_u64().unwrap() as usize;
            let upto = (done[client] + 1 + random.below(900) as usize).min(text.len());
            viewer.type_text(&text[done[client]..upto]);
            if upto == text.len() {
                done[client] = upto;
                last.push(viewer); // stays open, so that the last letters are not lost
            } else {
                let _ = viewer.stream().shutdown(Shutdown::Both);
            }
        }
        let typed = |range: std::ops::RangeInclusive<u8>| -> String {
            let log = world.bowline().args(["log", &id, "--from", &start.to_string()]).output().unwrap().stdout;
            log.into_iter().filter(|b| range.contains(b)).map(char::from).collect()
        };
        for (text, range) in texts.iter().zip([b'a'..=b'z', b'A'..=b'Z', b'0'..=b'9']) {
            let expected = text.repeat(seed as usize);
            super::world::wait_until("all letters are in the log", || {
                (typed(range.clone()).len() >= expected.len()).then_some(())
            });
            assert!(typed(range.clone()) == expected, "seed {seed}: a letter is missing, repeated or out of order");
        }
    }
}

/// Counts upward in letters from `first`, so that a missing or repeated part is noticed.
fn letters(first: u8, len: usize) -> String {
    let base = if first == b'0' { 10 } else { 26 };
    let digit = |n: usize| char::from(first + (n % base) as u8);
    (0..).flat_map(|n: usize| [digit(n / base / base), digit(n / base), digit(n)]).take(len).collect()
}

/// A cursor of an earlier epoch gets a snapshot of the new epoch's screen.
#[test]
fn r21_a_restart_starts_another_epoch() {
    let world = World::new();
    let id = world.shell("echo first run; read stop");
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.until("the output of the first run", |viewer| {
        contains(&viewer.output, "first run") || contains(&viewer.snapshot, "first run")
    });
    let cursor = viewer.cursor();
    world.run(&["kill", "--keep", &id]);
    viewer.finish();
    assert_eq!(viewer.exit.as_ref().map(|exit| &exit["signal"]), Some(&json!("SIGHUP")));
    world.run(&["restart", &id]);
    let viewer = Viewer::attach(&world, &id, &hello(1, 2, json!({ "cursor": cursor })));
    assert_eq!((&viewer.attached["verdict"], &viewer.attached["reason"]), (&json!("snapshot"), &json!("epoch")));
    assert_eq!(viewer.attached["input"], json!(null), "a new epoch has no input positions");
    assert!(viewer.offset >= cursor["offset"].as_u64().unwrap(), "offsets continue after a restart");
}
