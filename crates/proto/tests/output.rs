//! The output that the server sends to viewers: resumes, replays, skips, repaints and the exit, each at its boundary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    reason = "a test may panic, and this one uses only part of the harness"
)]

mod harness;

use std::time::Duration;

use bowline_proto::frame::Frame;
use bowline_proto::link::{ConnId, ServerEvent, Snapshot, SnapshotKind};
use bowline_proto::message::Scope;
use bowline_proto::session::ExitStatus;
use bowline_proto::size::Size;
use harness::{Harness, cursor, hello};
use serde_json::json;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;
const SCREEN: SnapshotKind = SnapshotKind { scope: Scope::Screen, scrollback: 0 };

#[test]
fn r9_every_resume_gets_a_verdict() {
    let attach = |hello| {
        let mut harness = Harness::with(|config| config.window = 40);
        harness.start = 100;
        harness.print_to(200);
        harness.open(1, hello)[0].clone()
    };
    assert_eq!(attach(hello(1, 1, json!({}))), "snapshot fresh at 200 input 0 owner 80");
    assert_eq!(attach(hello(1, 1, cursor(200))), "exact at 200 input 0 owner 80");
    assert_eq!(attach(hello(1, 1, cursor(120))), "exact at 120 input 0 owner 80");
    assert_eq!(attach(hello(1, 1, cursor(119))), "snapshot lagging at 200 missed 119..200 input 0 owner 80");
    let waiting = |offset| hello(1, 1, json!({"lag": "wait", "cursor": cursor(offset)["cursor"]}));
    assert_eq!(attach(waiting(100)), "exact at 100 input 0 owner 80");
    assert_eq!(attach(waiting(99)), "snapshot trimmed at 200 missed 99..200 input 0 owner 80");
    assert_eq!(attach(hello(1, 1, cursor(201))), "snapshot ahead at 200 input 0 owner 80");
    assert_eq!(attach(hello(1, 1, cursor(u64::MAX))), "snapshot ahead at 200 input 0 owner 80");
    let other = json!({"cursor": {"epoch": "00000000", "offset": 150}});
    assert_eq!(attach(hello(1, 1, other)), "snapshot epoch at 200 input 0 owner 80");
}

#[test]
fn r23_a_replay_resizes_where_the_original_did() {
    let mut harness = Harness::new();
    let size = |cols| Size::new(cols, 24).unwrap();
    harness.print_to(100);
    harness.server.handle_resized(30, size(100));
    harness.server.handle_resized(60, size(90));
    harness.size = size(90);
    let replay = json!({"lag": "wait", "size": null, "cursor": cursor(10)["cursor"]});
    let received = harness.open(1, hello(1, 1, replay));
    assert_eq!(
        received,
        [
            "exact at 10 input 0 writer 80",
            "output 10+20",
            "resize 100 24",
            "output 30+30",
            "resize 90 24",
            "output 60+40",
        ]
    );
    // A viewer that skips gets a snapshot after a change of width, at the offset of the screen.
    let follow = json!({"size": null, "cursor": cursor(40)["cursor"]});
    let received = harness.open(2, hello(2, 1, follow));
    assert_eq!(
        received,
        [
            "exact at 40 input 0 writer 100",
            "output 40+20",
            "resize 90 24",
            "output 60+40",
            "snapshot resize screen at 100 90 +10",
            "part 10",
        ]
    );
}

#[test]
fn r25_a_slow_viewer_gets_the_prompt_soon_after_a_flood() {
    // The viewer receives 100 KB/s of a flood of 5 MB/s, and acknowledges each frame that it has received.
    let mut harness = Harness::new();
    harness.snapshot_len = Some(4000);
    harness.open(1, hello(1, 1, cursor(0)));
    let (mut sent, mut offset, mut acked, mut caught_up) = (0u64, 0u64, 0u64, None);
    let mut in_flight: Vec<(u64, u64)> = Vec::new();
    for ms in 0..6000u64 {
        harness.now = MS(ms);
        if ms < 3000 {
            let end = (ms + 1) * 5000;
            harness.start = end.saturating_sub(8 << 20);
            harness.print_to(end);
        }
        for frame in harness.receive(1) {
            let words: Vec<_> = frame.split([' ', '+']).collect();
            match words[0] {
                "output" => {
                    offset = words[1].parse::<u64>().unwrap() + words[2].parse::<u64>().unwrap();
                    sent += words[2].parse::<u64>().unwrap();
                }
                "snapshot" => offset = words[4].parse().unwrap(),
                "part" => sent += words[1].parse::<u64>().unwrap(),
                "error" | "close" => panic!("{frame}"),
                _ => {}
            }
            in_flight.push((sent, offset));
        }
        // 100 bytes arrive in each millisecond.
        let arrived = ms * 100;
        sent = sent.max(arrived);
        while in_flight.first().is_some_and(|(sent, _)| *sent <= arrived) {
            acked = in_flight.remove(0).1;
            let ack = json!({"type": "ack", "output": acked}).to_string();
            harness.server.handle_frame(ConnId(1), Frame::Text(&ack), harness.now);
        }
        if acked == 15_000_000 && caught_up.is_none() {
            caught_up = Some(ms - 3000);
        }
    }
    let after = caught_up.expect("the viewer catches up");
    println!("the viewer gets the prompt {after} ms after the flood");
    assert!(after <= 1500, "the viewer gets the prompt {after} ms after the flood");
}

#[test]
fn r25_a_fast_viewer_loses_no_scrollback_in_a_burst() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, cursor(0)));
    harness.print_to(1_500_000);
    let mut acked = 0;
    while acked < 1_500_000 {
        harness.now += MS(5);
        for frame in harness.receive(1) {
            let (from, len) = frame.strip_prefix("output ").expect("only output").split_once('+').unwrap();
            acked = from.parse::<u64>().unwrap() + len.parse::<u64>().unwrap();
        }
        harness.server.handle_frame(
            ConnId(1),
            Frame::Text(&json!({"type": "ack", "output": acked}).to_string()),
            harness.now,
        );
    }
    assert!(harness.now < SECS(1), "{:?}", harness.now);
}

#[test]
fn r25_a_stopped_viewer_costs_nothing_and_skips_ahead() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, cursor(0)));
    harness.print_to(40_000);
    assert_eq!(harness.receive(1), ["output 0+32768"], "the most in flight to a viewer that acknowledges nothing");
    harness.start = 90 << 20;
    harness.print_to(100 << 20);
    assert_eq!(harness.receive(1), ["snapshot lagging screen at 104857600 missed 32768..104857600 80 +10", "part 10"]);
    harness.print_to(200 << 20);
    assert!(harness.receive(1).is_empty(), "one snapshot at a time");
    let requests = harness.events.iter().filter(|event| matches!(event, ServerEvent::NeedSnapshot(_))).count();
    assert_eq!(requests, 1, "no other snapshot is made and held");
    assert!(harness.send(1, &json!({"type": "ack", "output": 32_768})).is_empty(), "no output that would be skipped");
    let received = harness.send(1, &json!({"type": "ack", "output": 104_857_600}));
    assert_eq!(received, ["snapshot lagging screen at 209715200 missed 104857600..209715200 80 +10", "part 10"]);
}

#[test]
fn a_viewer_that_waits_skips_only_output_that_the_log_no_longer_has() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({"lag": "wait", "cursor": cursor(0)["cursor"]})));
    harness.print_to(32 << 20);
    assert_eq!(harness.receive(1), ["output 0+32768"]);
    harness.start = 32_768;
    harness.print_to(40 << 20);
    assert!(harness.receive(1).is_empty());
    harness.start = 32_769;
    harness.print_to(40 << 20);
    let received = harness.receive(1);
    assert_eq!(received, ["snapshot trimmed all at 41943040 missed 32768..41943040 80 +10", "part 10"]);
}

#[test]
fn a_repaint_skips_no_output() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({"lag": "wait", "cursor": cursor(0)["cursor"]})));
    harness.print_to(10);
    harness.receive(1);
    harness.snapshot_len = None;
    harness.send(1, &json!({"type": "repaint"}));
    harness.print_to(25);
    assert_eq!(harness.receive(1), ["output 10+15"], "output continues meanwhile");
    let (offset, size, pieces) = (30, harness.size, vec![vec![b's'; 5].into()]);
    harness.print_to(40);
    harness.server.handle_snapshot(SCREEN, Snapshot { offset, size, pieces });
    assert_eq!(harness.receive(1), ["output 25+5", "snapshot repaint screen at 30 80 +5", "part 5", "output 30+10"]);
}

#[test]
fn a_repaint_is_sent_even_if_output_never_pauses() {
    // The emulator is always a little behind the log, and its snapshot one step late, so a viewer at the end of the
    // log is ahead of both.
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, cursor(0)));
    harness.snapshot_len = None;
    let (mut requested, mut received) = (None, Vec::new());
    for step in 1..20u64 {
        harness.end = step * 100;
        harness.server.handle_log(0, harness.end);
        harness.server.handle_screen(harness.end - 60);
        if let Some(offset) = requested.take() {
            let (size, pieces) = (harness.size, vec![vec![b's'; 5].into()]);
            harness.server.handle_snapshot(SCREEN, Snapshot { offset, size, pieces });
        }
        if step == 5 {
            received.extend(harness.send(1, &json!({"type": "repaint"})));
        }
        received.extend(harness.receive(1));
        if harness.events.drain(..).any(|event| matches!(event, ServerEvent::NeedSnapshot(_))) {
            requested = Some(harness.end - 60);
        }
    }
    let repaint = received.iter().position(|frame| frame.starts_with("snapshot repaint")).expect("a repaint");
    assert!(received[repaint + 2..].iter().any(|frame| frame.starts_with("output")), "output continues");
}

#[test]
fn a_viewer_is_closed_if_its_snapshot_is_never_made() {
    let mut harness = Harness::new();
    harness.snapshot_len = None;
    assert!(harness.open(1, hello(1, 1, json!({}))).is_empty());
    harness.wait(SECS(10));
    assert_eq!(harness.receive(1), ["close 1013"]);
}

/// A viewer that waits requested a repaint, and before the snapshot was ready the log was trimmed past its position.
/// It got the snapshot of the screen in place of one of the whole terminal.
#[test]
fn a_late_repaint_is_not_used_as_a_snapshot_of_the_whole_terminal() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({"lag": "wait", "cursor": cursor(0)["cursor"]})));
    harness.snapshot_len = None;
    assert!(harness.send(1, &json!({"type": "repaint"})).is_empty());
    harness.start = 1 << 20;
    harness.print_to(2 << 20);
    assert!(harness.receive(1).is_empty());
    let requested = |harness: &mut Harness| {
        let kinds = harness.events.drain(..).filter_map(|event| match event {
            ServerEvent::NeedSnapshot(kind) => Some(kind),
            _ => None,
        });
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(requested(&mut harness), [SCREEN], "one at a time");
    let (offset, size) = (harness.screen, harness.size);
    let snapshot = |bytes: &'static str| Snapshot { offset, size, pieces: vec![bytes.into()] };
    harness.server.handle_snapshot(SCREEN, snapshot("screen"));
    assert!(harness.receive(1).is_empty());
    let all = SnapshotKind { scope: Scope::All, scrollback: 1000 };
    assert_eq!(requested(&mut harness), [all]);
    harness.server.handle_snapshot(all, snapshot("the whole"));
    assert_eq!(harness.receive(1), ["snapshot trimmed all at 2097152 missed 0..2097152 80 +9", "part 9"]);
}

#[test]
fn a_viewer_of_an_exited_session_gets_its_output_to_the_last_byte() {
    let exit = ExitStatus { code: None, signal: Some("SIGKILL".to_owned()) };
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, cursor(0)));
    harness.print_to(50_000);
    harness.server.handle_exit(exit);
    assert_eq!(harness.receive(1), ["output 0+32768"], "no exit before all output is sent");
    let received = harness.send(1, &json!({"type": "ack", "output": 32_768}));
    assert_eq!(received, ["output 32768+17232", r#"exit null 50000 "SIGKILL""#, "close 1000"]);
    assert_eq!(harness.server.clients(), 0);
    let received = harness.open(2, hello(2, 1, cursor(49_990)));
    assert_eq!(received[1..], ["output 49990+10", r#"exit null 50000 "SIGKILL""#, "close 1000"]);
    assert!(harness.input(2, 0, b"x").is_empty());
}

#[test]
fn the_files_of_a_lost_session_are_served_without_an_emulator() {
    let lost = || {
        let mut harness = Harness::new();
        (harness.start, harness.end, harness.screen) = (100, 1000, 800);
        // The last screen was saved before the last change of width.
        harness.server.handle_resized(900, Size::new(90, 24).unwrap());
        harness.server.handle_log(100, 1000);
        harness.server.handle_screen(800);
        harness.server.handle_exit(ExitStatus::default());
        harness
    };
    let rest = ["resize 90 24", "output 900+100", "exit null 1000 null", "close 1000"];
    let received = lost().open(1, hello(1, 1, json!({})));
    assert_eq!(received[0], "snapshot fresh at 800 input 0 owner 80");
    assert_eq!(received[1..3], ["part 10", "output 800+100"]);
    assert_eq!(received[3..], rest);
    let received = lost().open(1, hello(1, 1, cursor(890)));
    assert_eq!(received[1..], [&["output 890+10"], &rest[..]].concat());
}

/// The server used to ask for a newer screen again and again, which no emulator could make.
#[test]
fn r21_a_cursor_between_an_old_screen_and_the_log_gets_the_old_screen() {
    let mut harness = Harness::new();
    (harness.start, harness.end, harness.screen) = (100, 200, 50);
    harness.snapshot_len = None;
    harness.server.handle_log(100, 200);
    harness.server.handle_screen(50);
    harness.server.handle_exit(ExitStatus::default());
    assert!(harness.open(1, hello(1, 1, cursor(70))).is_empty());
    let kind = SnapshotKind { scope: Scope::All, scrollback: 1000 };
    let requested = harness.events.drain(..).filter(|event| *event == ServerEvent::NeedSnapshot(kind));
    assert_eq!(requested.count(), 1);
    let snapshot = Snapshot { offset: 50, size: harness.size, pieces: vec!["old".into()] };
    harness.server.handle_snapshot(kind, snapshot);
    let received = harness.receive(1);
    assert_eq!(received[..2], ["snapshot trimmed at 100 missed 70..100 input 0 owner 80", "part 3"]);
    assert_eq!(received[2..], ["output 100+100", "exit null 200 null", "close 1000"]);
}
