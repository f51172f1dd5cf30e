//! The server's rules one by one, at their edges.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may stop at the first surprise"
)]

mod desk;

use std::time::Duration;

use bowline_proto::config::{COMMANDS, INPUT_FRAME, INPUT_WINDOW, MISTAKES, NOTICES};
use bowline_proto::frame::Frame;
use bowline_proto::link::{ConnId, ServerEvent, Snapshot};
use bowline_proto::message::{Scope, ServerMessage};
use bowline_proto::session::ExitStatus;
use bowline_proto::size::Size;
use desk::{Desk, client, cursor, hello};
use serde_json::json;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn r9_every_resume_gets_a_verdict() {
    let attach = |hello| {
        let mut desk = Desk::with(|config| config.window = 40);
        desk.start = 100;
        desk.printed(200);
        desk.open(1, hello)[0].clone()
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
fn r52_a_bad_hello_is_told_why_and_closed() {
    let refused = |message: &str| {
        let mut desk = Desk::new();
        desk.server.handle_open(ConnId(1), desk.now);
        desk.server.handle_frame(ConnId(1), Frame::Text(message), desk.now);
        desk.hear(1).join(", ")
    };
    for bad in [
        json!({"type": "ping", "n": 1}),
        json!({"type": "hello"}),
        json!([]),
        hello(1, 1, json!({"client": "00000000-0000-4000-8000-00000000000A"})),
        hello(1, 1, json!({"size": {"cols": 1, "rows": 24}})),
        hello(1, 1, json!({"theme": {"fg": "#ffffff", "bg": "\u{1b}]0;x\u{7}"}})),
        hello(1, 1, json!({"version": "1"})),
    ] {
        assert_eq!(refused(&bad.to_string()), "error bad_request fatal, close 4400", "{bad}");
    }
    assert_eq!(refused("{"), "error bad_request fatal, close 4400");
    // A later version may have changed every other field.
    let later = json!({"type": "hello", "version": 2, "client": 7, "size": "huge"});
    assert_eq!(refused(&later.to_string()), "error no_version fatal, close 4426");
    let mut desk = Desk::new();
    desk.server.handle_open(ConnId(1), desk.now);
    assert_eq!(desk.input(1, 0, b"x"), ["error bad_request fatal", "close 4400"]);
}

/// Presence shows every id to everybody; who may only look must not be able to push a writer out with it.
#[test]
fn r26_a_reader_cannot_take_a_writers_place() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({"grant": {"write": true}})));
    assert_eq!(
        desk.open(2, hello(1, 2, json!({"grant": {"write": false}}))),
        ["error not_allowed fatal", "close 4403"]
    );
    assert_eq!(desk.input(1, 0, b"x"), Vec::<String>::new());
    // One that may write takes over its own.
    assert!(desk.open(3, hello(1, 3, json!({"grant": {"write": true}})))[0].starts_with("snapshot"));
    assert_eq!(desk.hear(1), ["close 4409"]);
}

#[test]
fn a_connection_without_a_hello_is_closed_after_ten_seconds() {
    let mut desk = Desk::new();
    desk.server.handle_open(ConnId(1), desk.now);
    desk.wait(MS(9_999));
    assert!(desk.hear(1).is_empty());
    desk.wait(MS(1));
    assert_eq!(desk.hear(1), ["close 4408"]);
}

#[test]
fn an_older_connection_is_fenced_and_closed() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({})));
    desk.input(1, 0, b"ab");
    assert_eq!(desk.open(2, hello(1, 2, cursor(0))), ["exact at 0 input 2 owner 80", "ack 0"]);
    assert_eq!(desk.input(1, 2, b"cd"), ["close 4409"], "nothing more is read from it");
    assert_eq!(desk.server.input(), b"ab");
    assert_eq!(desk.open(3, hello(1, 1, json!({}))), ["close 4409"], "a late dial of the past");
    assert!(desk.input(2, 2, b"ef").is_empty());
    assert_eq!(desk.server.input(), b"abef");
}

#[test]
fn silence_is_pinged_and_then_death() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({})));
    desk.wait(SECS(20));
    assert_eq!(desk.hear(1), ["ping 1"]);
    desk.wait(SECS(20));
    assert_eq!(desk.hear(1), ["ping 2"]);
    desk.wait(MS(4_999));
    assert!(desk.hear(1).is_empty());
    desk.wait(MS(1));
    assert_eq!(desk.hear(1), ["close 4408"]);
    assert_eq!(desk.server.clients(), 0);
}

#[test]
fn a_ping_is_answered_ahead_of_everything() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, cursor(0)));
    desk.printed(10);
    assert_eq!(desk.say(1, &json!({"type": "ping", "n": 9})), ["pong 9", "output 0+10"]);
}

#[test]
fn r52_mistakes_are_forgiven_a_bounded_number_of_times() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({})));
    for _ in 0..MISTAKES {
        assert_eq!(desk.say(1, &json!({"type": "resize", "cols": 0, "rows": 0})), ["error bad_request"]);
    }
    assert!(desk.say(1, &json!({"type": "wave"})).is_empty(), "what is new is not a mistake");
    assert_eq!(desk.say(1, &json!({"type": "ack", "output": 99})), ["error bad_request fatal", "close 4400"]);
    assert!(desk.resized.is_empty() && desk.server.input().is_empty());
}

#[test]
fn r26_who_may_not_write_does_not() {
    for more in [json!({"observe": true}), json!({"grant": {"write": false}})] {
        let mut desk = Desk::new();
        assert_eq!(desk.open(1, hello(1, 1, more))[0], "snapshot fresh at 0 input 0 reader 80");
        for _ in 0..=MISTAKES {
            assert_eq!(desk.input(1, 0, b"rm -rf /\n"), ["error not_allowed"]);
        }
        assert_eq!(desk.say(1, &json!({"type": "claim_size", "cols": 90, "rows": 20})), ["error not_allowed"]);
        assert!(desk.say(1, &json!({"type": "resize", "cols": 90, "rows": 20})).is_empty());
        let command = json!({"type": "command", "id": "a", "command": {}});
        assert_eq!(desk.say(1, &command), [r#"rejected "not_allowed" "a" "this viewer may not write""#]);
        assert!(desk.server.input().is_empty() && desk.resized.is_empty());
    }
}

#[test]
fn a_hole_in_the_input_names_the_expected_offset_once() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({})));
    assert!(desk.input(1, 0, b"ab").is_empty());
    assert_eq!(desk.input(1, 3, b"d"), ["error input_hole 2, not 3"]);
    assert!(desk.input(1, 4, b"e").is_empty(), "said once");
    assert!(desk.input(1, 2, b"c").is_empty());
    assert_eq!(desk.input(1, 9, b"x"), ["error input_hole 3, not 9"]);
    assert_eq!(desk.server.input(), b"abc");
}

#[test]
fn r52_too_much_input_is_closed() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({})));
    assert_eq!(desk.input(1, 0, &vec![b'x'; INPUT_FRAME + 1]), ["error too_large fatal", "close 1009"]);
    desk.open(2, hello(2, 1, json!({})));
    let frame = vec![b'x'; INPUT_FRAME];
    for offset in (0..INPUT_WINDOW).step_by(INPUT_FRAME) {
        assert!(desk.input(2, offset, &frame).is_empty());
    }
    assert_eq!(desk.input(2, INPUT_WINDOW, b"x"), ["error too_large fatal", "close 1008"]);
    assert_eq!(desk.server.input().len() as u64, INPUT_WINDOW, "what was taken is still written");
}

#[test]
fn an_ack_of_input_travels_with_the_echo() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, cursor(0)));
    desk.input(1, 0, b"a");
    desk.server.handle_input_written(1, desk.now);
    assert!(desk.hear(1).is_empty(), "it waits for the echo");
    desk.printed(1);
    assert_eq!(desk.hear(1), ["output 0+1", "ack 1"]);
    desk.input(1, 1, b"b");
    desk.server.handle_input_written(1, desk.now);
    desk.wait(MS(5));
    assert_eq!(desk.hear(1), ["ack 2"], "but not for long");
}

#[test]
fn a_client_that_was_forgotten_is_told_until_it_knows() {
    // The first answer was lost with its connection; the second must not be `input: 0`, or the client would type again
    // what it has in flight.
    let mut desk = Desk::with(|config| config.clients = 1);
    desk.open(1, hello(1, 1, cursor(0)));
    desk.input(1, 0, b"rm x\n");
    desk.server.handle_closed(ConnId(1), desk.now);
    for n in 2..4 {
        desk.open(n, hello(n as u8, 1, json!({})));
        desk.server.handle_closed(ConnId(n), desk.now);
    }
    assert_eq!(desk.open(10, hello(1, 2, cursor(0)))[0], "exact at 0 input null owner 80");
    desk.server.handle_closed(ConnId(10), desk.now);
    assert_eq!(desk.open(11, hello(1, 3, cursor(0)))[0], "exact at 0 input null owner 80");
    desk.say(11, &json!({"type": "ack", "output": 0}));
    assert_eq!(desk.open(12, hello(1, 4, cursor(0)))[0], "exact at 0 input 0 owner 80");
}

#[test]
fn r23_the_size_belongs_to_one_viewer() {
    let mut desk = Desk::new();
    let sized = |cols: u16| json!({"cursor": cursor(0)["cursor"], "size": {"cols": cols, "rows": 24}});
    desk.open(1, hello(1, 1, json!({"observe": true})));
    assert_eq!(desk.open(2, hello(2, 1, sized(100)))[0], "exact at 0 input 0 owner 80");
    assert_eq!(desk.open(3, hello(3, 1, sized(120)))[0], "exact at 0 input 0 writer 100");
    assert_eq!(desk.resized, [Size::new(100, 24).unwrap()]);
    assert!(desk.say(3, &json!({"type": "resize", "cols": 130, "rows": 24})).is_empty());
    assert_eq!(desk.resized.len(), 1, "others letterbox");
    // It survives a drop...
    desk.server.handle_closed(ConnId(2), desk.now);
    for _ in 0..5 {
        desk.wait(MS(11_999));
        desk.say(3, &json!({"type": "pong", "n": 1}));
    }
    assert_eq!(desk.open(4, hello(2, 2, sized(100)))[0], "exact at 0 input 0 owner 100");
    // ...but not for ever: the writer here longest has it then.
    desk.server.handle_closed(ConnId(4), desk.now);
    for _ in 0..6 {
        desk.say(3, &json!({"type": "pong", "n": 1}));
        desk.wait(SECS(10));
    }
    assert_eq!(desk.resized.last(), Some(&Size::new(130, 24).unwrap()));
    assert_eq!(desk.open(5, hello(2, 3, sized(100)))[0], "exact at 0 input 0 writer 130");
    desk.say(5, &json!({"type": "claim_size", "cols": 90, "rows": 24}));
    assert_eq!(desk.resized.last(), Some(&Size::new(90, 24).unwrap()));
}

#[test]
fn r23_an_owner_that_comes_back_to_look_only_passes_the_size_on() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, cursor(0)));
    desk.open(2, hello(2, 1, json!({"size": {"cols": 120, "rows": 24}})));
    let looking = json!({"observe": true, "cursor": cursor(0)["cursor"]});
    assert_eq!(desk.open(3, hello(1, 2, looking))[0], "exact at 0 input 0 reader 80");
    assert_eq!(desk.resized, [Size::new(120, 24).unwrap()]);
}

#[test]
fn r23_a_reloaded_page_keeps_the_size() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, cursor(0)));
    let reloaded = json!({"was": client(1), "cursor": cursor(0)["cursor"]});
    assert_eq!(desk.open(2, hello(2, 1, reloaded))[0], "exact at 0 input 0 writer 80", "the old page may still live");
    desk.server.handle_closed(ConnId(1), desk.now);
    assert_eq!(desk.open(3, hello(2, 2, cursor(0)))[0], "exact at 0 input 0 owner 80");
}

#[test]
fn r23_a_replay_resizes_where_the_original_did() {
    let mut desk = Desk::new();
    let size = |cols| Size::new(cols, 24).unwrap();
    desk.printed(100);
    desk.server.handle_resized(30, size(100));
    desk.server.handle_resized(60, size(90));
    desk.size = size(90);
    let replay = json!({"lag": "wait", "size": null, "cursor": cursor(10)["cursor"]});
    let heard = desk.open(1, hello(1, 1, replay));
    assert_eq!(
        heard,
        [
            "exact at 10 input 0 writer 80",
            "output 10+20",
            "resize 100 24",
            "output 30+30",
            "resize 90 24",
            "output 60+40",
        ]
    );
    // Who follows the screen gets the owner's after a change of width, at the place the screen is at.
    let follow = json!({"size": null, "cursor": cursor(40)["cursor"]});
    let heard = desk.open(2, hello(2, 1, follow));
    assert_eq!(
        heard,
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
fn r25_a_slow_link_sees_the_prompt_soon_after_the_flood() {
    // 100 KB/s against a flood of 5 MB/s, with an ack for each frame that has crossed the wire.
    let mut desk = Desk::new();
    desk.paints = Some(4000);
    desk.open(1, hello(1, 1, cursor(0)));
    let (mut wire, mut at, mut seen, mut flood_over) = (0u64, 0u64, 0u64, None);
    let mut crossing: Vec<(u64, u64)> = Vec::new();
    for ms in 0..6000u64 {
        desk.now = MS(ms);
        if ms < 3000 {
            let end = (ms + 1) * 5000;
            desk.start = end.saturating_sub(8 << 20);
            desk.printed(end);
        }
        for heard in desk.hear(1) {
            let words: Vec<_> = heard.split([' ', '+']).collect();
            match words[0] {
                "output" => {
                    at = words[1].parse::<u64>().unwrap() + words[2].parse::<u64>().unwrap();
                    wire += words[2].parse::<u64>().unwrap();
                }
                "snapshot" => at = words[4].parse().unwrap(),
                "part" => wire += words[1].parse::<u64>().unwrap(),
                "error" | "close" => panic!("{heard}"),
                _ => {}
            }
            crossing.push((wire, at));
        }
        // 100 bytes cross in each millisecond.
        let carried = ms * 100;
        wire = wire.max(carried);
        while crossing.first().is_some_and(|(sent, _)| *sent <= carried) {
            seen = crossing.remove(0).1;
            let ack = json!({"type": "ack", "output": seen}).to_string();
            desk.server.handle_frame(ConnId(1), Frame::Text(&ack), desk.now);
        }
        if seen == 15_000_000 && flood_over.is_none() {
            flood_over = Some(ms - 3000);
        }
    }
    let after = flood_over.expect("it catches up");
    println!("the prompt is seen {after} ms after the flood");
    assert!(after <= 1500, "the prompt is seen {after} ms after the flood");
}

#[test]
fn r25_a_fast_viewer_loses_no_scrollback_in_a_burst() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, cursor(0)));
    desk.printed(1_500_000);
    let mut acked = 0;
    while acked < 1_500_000 {
        desk.now += MS(5);
        for heard in desk.hear(1) {
            let (from, len) = heard.strip_prefix("output ").expect("only output").split_once('+').unwrap();
            acked = from.parse::<u64>().unwrap() + len.parse::<u64>().unwrap();
        }
        desk.server.handle_frame(
            ConnId(1),
            Frame::Text(&json!({"type": "ack", "output": acked}).to_string()),
            desk.now,
        );
    }
    assert!(desk.now < SECS(1), "{:?}", desk.now);
}

#[test]
fn r25_a_stopped_viewer_costs_nothing_and_skips_ahead() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, cursor(0)));
    desk.printed(40_000);
    assert_eq!(desk.hear(1), ["output 0+32768"], "what may be in flight to a viewer that acknowledges nothing");
    desk.start = 90 << 20;
    desk.printed(100 << 20);
    assert_eq!(desk.hear(1), ["snapshot lagging screen at 104857600 missed 32768..104857600 80 +10", "part 10"]);
    desk.printed(200 << 20);
    assert!(desk.hear(1).is_empty(), "one snapshot at a time");
    let asked = desk.events.iter().filter(|event| matches!(event, ServerEvent::NeedSnapshot { .. })).count();
    assert_eq!(asked, 1, "nor is another made and held for it");
    assert!(desk.say(1, &json!({"type": "ack", "output": 32_768})).is_empty(), "nor output that would be skipped");
    let heard = desk.say(1, &json!({"type": "ack", "output": 104_857_600}));
    assert_eq!(heard, ["snapshot lagging screen at 209715200 missed 104857600..209715200 80 +10", "part 10"]);
}

#[test]
fn a_waiting_viewer_is_skipped_only_when_the_log_overtakes_it() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({"lag": "wait", "cursor": cursor(0)["cursor"]})));
    desk.printed(32 << 20);
    assert_eq!(desk.hear(1), ["output 0+32768"]);
    desk.start = 32_768;
    desk.printed(40 << 20);
    assert!(desk.hear(1).is_empty());
    desk.start = 32_769;
    desk.printed(40 << 20);
    let heard = desk.hear(1);
    assert_eq!(heard, ["snapshot trimmed all at 41943040 missed 32768..41943040 80 +10", "part 10"]);
}

#[test]
fn a_repaint_paints_the_screen_and_skips_nothing() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({"lag": "wait", "cursor": cursor(0)["cursor"]})));
    desk.printed(10);
    desk.hear(1);
    desk.paints = None;
    desk.say(1, &json!({"type": "repaint"}));
    desk.printed(25);
    assert_eq!(desk.hear(1), ["output 10+15"], "output goes on meanwhile");
    let (offset, size, bytes) = (30, desk.size, vec![b's'; 5].into());
    desk.printed(40);
    desk.server.handle_snapshot(ConnId(1), bowline_proto::link::Snapshot { offset, size, bytes });
    assert_eq!(desk.hear(1), ["output 25+5", "snapshot repaint screen at 30 80 +5", "part 5", "output 30+10"]);
}

#[test]
fn a_repaint_comes_also_while_output_never_pauses() {
    // The screen is always a little behind the log, and its answer one step late: a viewer at the tail outruns both.
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, cursor(0)));
    desk.paints = None;
    let (mut asked, mut heard) = (None, Vec::new());
    for step in 1..20u64 {
        desk.end = step * 100;
        desk.server.handle_log(0, desk.end);
        desk.server.handle_screen(desk.end - 60);
        if let Some(offset) = asked.take() {
            let (size, bytes) = (desk.size, vec![b's'; 5].into());
            desk.server.handle_snapshot(ConnId(1), bowline_proto::link::Snapshot { offset, size, bytes });
        }
        if step == 5 {
            heard.extend(desk.say(1, &json!({"type": "repaint"})));
        }
        heard.extend(desk.hear(1));
        if desk.events.drain(..).any(|event| matches!(event, ServerEvent::NeedSnapshot { .. })) {
            asked = Some(desk.end - 60);
        }
    }
    let painted = heard.iter().position(|what| what.starts_with("snapshot repaint")).expect("painted at last");
    assert!(heard[painted + 2..].iter().any(|what| what.starts_with("output")), "and output goes on");
}

#[test]
fn a_screen_that_does_not_answer_is_no_deadlock() {
    let mut desk = Desk::new();
    desk.paints = None;
    assert!(desk.open(1, hello(1, 1, json!({}))).is_empty());
    desk.wait(SECS(10));
    assert_eq!(desk.hear(1), ["close 1013"]);
}

/// A viewer that waits asked for its screen again, and was overtaken by the log before that came: it was given the screen
/// alone in place of the whole terminal.
#[test]
fn a_repaint_that_comes_late_is_not_taken_for_the_whole_terminal() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({"lag": "wait", "cursor": cursor(0)["cursor"]})));
    desk.paints = None;
    assert!(desk.say(1, &json!({"type": "repaint"})).is_empty());
    desk.start = 1 << 20;
    desk.printed(2 << 20);
    assert!(desk.hear(1).is_empty());
    let asked = |desk: &mut Desk| {
        let scopes = desk.events.drain(..).filter_map(|event| match event {
            ServerEvent::NeedSnapshot { scope, .. } => Some(scope),
            _ => None,
        });
        scopes.collect::<Vec<_>>()
    };
    assert_eq!(asked(&mut desk), [Scope::Screen], "one at a time");
    let (offset, size) = (desk.screen, desk.size);
    let snapshot = |bytes: &'static str| Snapshot { offset, size, bytes: bytes.into() };
    desk.server.handle_snapshot(ConnId(1), snapshot("screen"));
    assert!(desk.hear(1).is_empty());
    assert_eq!(asked(&mut desk), [Scope::All]);
    desk.server.handle_snapshot(ConnId(1), snapshot("the whole"));
    assert_eq!(desk.hear(1), ["snapshot trimmed all at 2097152 missed 0..2097152 80 +9", "part 9"]);
}

#[test]
fn an_exited_session_is_served_to_the_last_byte() {
    let exit = ExitStatus { code: None, signal: Some("SIGKILL".to_owned()) };
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, cursor(0)));
    desk.printed(50_000);
    desk.server.handle_exit(exit);
    assert_eq!(desk.hear(1), ["output 0+32768"], "not before all output is sent");
    let heard = desk.say(1, &json!({"type": "ack", "output": 32_768}));
    assert_eq!(heard, ["output 32768+17232", r#"exit null 50000 "SIGKILL""#, "close 1000"]);
    assert_eq!(desk.server.clients(), 0);
    let heard = desk.open(2, hello(2, 1, cursor(49_990)));
    assert_eq!(heard[1..], ["output 49990+10", r#"exit null 50000 "SIGKILL""#, "close 1000"]);
    assert!(desk.input(2, 0, b"x").is_empty());
}

#[test]
fn the_files_of_a_lost_session_are_served_without_an_emulator() {
    let lost = || {
        let mut desk = Desk::new();
        (desk.start, desk.end, desk.screen) = (100, 1000, 800);
        // The last screen was written before the last change of width.
        desk.server.handle_resized(900, Size::new(90, 24).unwrap());
        desk.server.handle_log(100, 1000);
        desk.server.handle_screen(800);
        desk.server.handle_exit(ExitStatus::default());
        desk
    };
    let rest = ["resize 90 24", "output 900+100", "exit null 1000 null", "close 1000"];
    let heard = lost().open(1, hello(1, 1, json!({})));
    assert_eq!(heard[0], "snapshot fresh at 800 input 0 owner 80");
    assert_eq!(heard[1..3], ["part 10", "output 800+100"]);
    assert_eq!(heard[3..], rest);
    let heard = lost().open(1, hello(1, 1, cursor(890)));
    assert_eq!(heard[1..], [&["output 890+10"], &rest[..]].concat());
}

#[test]
fn notices_reach_the_late_and_do_not_pile_up() {
    let mut desk = Desk::new();
    desk.server.handle_notice(ServerMessage::Title { title: "one".to_owned() });
    desk.server.handle_notice(ServerMessage::Title { title: "two".to_owned() });
    let heard = desk.open(1, hello(1, 1, cursor(0)));
    assert_eq!(heard[1..], [r#"title "two""#]);
    for n in 0..NOTICES + 3 {
        desk.server.handle_notice(ServerMessage::Notify { title: String::new(), body: n.to_string() });
        desk.server.handle_notice(ServerMessage::Bell);
    }
    let heard = desk.hear(1);
    assert_eq!(heard[..3], ["bell", "error too_many", r#"notify "3" """#]);
    assert_eq!(heard.len(), NOTICES + 2);
}

#[test]
fn commands_are_passed_on_and_bounded() {
    let mut desk = Desk::new();
    desk.open(1, hello(1, 1, json!({})));
    for n in 0..COMMANDS {
        assert!(desk.say(1, &json!({"type": "command", "id": n.to_string(), "command": {"n": n}})).is_empty());
    }
    let heard = desk.say(1, &json!({"type": "command", "id": "x", "command": {}}));
    assert_eq!(heard, [r#"rejected "too_many" "x" "too many commands wait for an answer""#]);
    let commands = desk.events.iter().filter(|event| matches!(event, ServerEvent::Command { .. })).count();
    assert_eq!(commands, COMMANDS);
    let done = ServerMessage::Accepted { id: "0".to_owned(), seq: 7, duplicate: false };
    desk.server.handle_command_done(ConnId(1), done);
    assert_eq!(desk.hear(1), [r#"accepted false "0" 7"#]);
}

#[test]
fn r52_a_flood_of_viewers_is_turned_away() {
    let mut desk = Desk::with(|config| config.viewers = 2);
    desk.open(1, hello(1, 1, json!({})));
    desk.open(2, hello(2, 1, json!({})));
    // It may not be a viewer, but one that asks something: nothing is said before it has spoken.
    desk.server.handle_open(ConnId(3), desk.now);
    assert!(desk.hear(3).is_empty());
    assert_eq!(desk.say(3, &hello(3, 1, json!({}))), ["close 4429"]);
    desk.server.handle_closed(ConnId(3), desk.now);
    assert_eq!(desk.open(4, hello(2, 2, json!({})))[0], "snapshot fresh at 0 input 0 writer 80", "it has a place");
    assert_eq!(desk.hear(2), ["close 4409"]);
    desk.server.handle_closed(ConnId(4), desk.now);
    assert_eq!(desk.open(5, hello(5, 1, json!({})))[0], "snapshot fresh at 0 input 0 writer 80");
}

#[test]
fn a_driver_that_waits_with_an_event_unpolled_is_woken_at_once() {
    let mut desk = Desk::new();
    desk.server.handle_open(ConnId(1), SECS(5));
    desk.server.handle_frame(ConnId(1), Frame::Text(&hello(1, 1, json!({})).to_string()), SECS(5));
    desk.server.poll_transmit(ConnId(1), SECS(5));
    assert_eq!(desk.server.poll_timeout(), Some(SECS(5)));
}
