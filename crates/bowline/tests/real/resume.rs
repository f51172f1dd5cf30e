//! Coming back: cuts at any moment, several viewers typing, and every byte once.

use std::net::Shutdown;

use serde_json::json;

use super::viewer::{Viewer, contains, hello};
use super::world::World;

/// A small generator, so that a failing seed replays.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A viewer whose connection is cut after a random number of messages, sixty times over, has the log's bytes.
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
            assert_eq!(viewer.attached["input"], 1, "seed {seed}: the Enter was taken once");
        }
        viewer.until("the last line", |viewer| ended(&viewer.output) || ended(&all));
        viewer.type_text("\n");
        viewer.finish();
        all.append(&mut viewer.output);
        let log = world.bowline().args(["log", &id, "--from", &first.to_string()]).output().unwrap().stdout;
        assert!(all == log, "seed {seed}: {} bytes against {} in the log", all.len(), log.len());
    }
}

fn ended(all: &[u8]) -> bool {
    contains(&all[all.len().saturating_sub(100)..], "line 60000 of")
}

/// Three clients type, each in letters of its own, through connections that are cut: each letter arrives once, in order.
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
            // What the session took is what it says; whatever was sent and not taken is sent again.
            done[client] = viewer.attached["input"].as_u64().unwrap() as usize;
            let upto = (done[client] + 1 + random.below(900) as usize).min(text.len());
            viewer.type_text(&text[done[client]..upto]);
            if upto == text.len() {
                done[client] = upto;
                last.push(viewer); // this one stays, so that nothing is cut after the last letter
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
            super::world::wait_until("all letters typed", || {
                (typed(range.clone()).len() >= expected.len()).then_some(())
            });
            assert!(typed(range.clone()) == expected, "seed {seed}: a letter is missing, doubled or out of order");
        }
    }
}

/// Counts upward in letters from `first`, so that a missing or doubled part shows.
fn letters(first: u8, len: usize) -> String {
    let base = if first == b'0' { 10 } else { 26 };
    let digit = |n: usize| char::from(first + (n % base) as u8);
    (0..).flat_map(|n: usize| [digit(n / base / base), digit(n / base), digit(n)]).take(len).collect()
}

/// A stale cursor of an earlier life gets the new life's screen, not bytes that were never there.
#[test]
fn r21_another_life_is_another_epoch() {
    let world = World::new();
    let id = world.shell("echo first life; read stop");
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.until("the first life", |viewer| {
        contains(&viewer.output, "first life") || contains(&viewer.snapshot, "first life")
    });
    let cursor = viewer.cursor();
    world.run(&["kill", "--keep", &id]);
    viewer.finish();
    assert_eq!(viewer.exit.as_ref().map(|exit| &exit["signal"]), Some(&json!("SIGHUP")));
    world.run(&["restart", &id]);
    let viewer = Viewer::attach(&world, &id, &hello(1, 2, json!({ "cursor": cursor })));
    assert_eq!((&viewer.attached["verdict"], &viewer.attached["reason"]), (&json!("snapshot"), &json!("epoch")));
    assert_eq!(viewer.attached["input"], json!(null), "a new life remembers no one's input");
    assert!(viewer.offset >= cursor["offset"].as_u64().unwrap(), "offsets go on over a restart");
}
