//! The server's rules for hellos, input, size ownership, notices and limits, each at its boundary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

mod harness;

use std::time::Duration;

use bowline_proto::config::{COMMANDS, INPUT_FRAME, INPUT_WINDOW, MAX_INVALID_MESSAGES, NOTICES};
use bowline_proto::frame::Frame;
use bowline_proto::link::{ConnId, ServerEvent};
use bowline_proto::message::ServerMessage;
use bowline_proto::size::Size;
use harness::{Harness, client, cursor, hello};
use serde_json::json;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn r52_a_bad_hello_gets_an_error_and_is_closed() {
    let refused = |message: &str| {
        let mut harness = Harness::new();
        harness.server.handle_open(ConnId(1), harness.now);
        harness.server.handle_frame(ConnId(1), Frame::Text(message), harness.now);
        harness.receive(1).join(", ")
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
    // A newer version may have changed every other field.
    let newer = json!({"type": "hello", "version": 2, "client": 7, "size": "huge"});
    assert_eq!(refused(&newer.to_string()), "error no_version fatal, close 4426");
    let mut harness = Harness::new();
    harness.server.handle_open(ConnId(1), harness.now);
    assert_eq!(harness.input(1, 0, b"x"), ["error bad_request fatal", "close 4400"]);
}

#[test]
fn a_connection_without_a_hello_is_closed_after_ten_seconds() {
    let mut harness = Harness::new();
    harness.server.handle_open(ConnId(1), harness.now);
    harness.wait(MS(9_999));
    assert!(harness.receive(1).is_empty());
    harness.wait(MS(1));
    assert_eq!(harness.receive(1), ["close 4408"]);
}

#[test]
fn a_new_connection_of_a_client_closes_the_older_one() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({})));
    harness.input(1, 0, b"ab");
    assert_eq!(harness.open(2, hello(1, 2, cursor(0))), ["exact at 0 input 2 owner 80", "ack 0"]);
    assert_eq!(harness.input(1, 2, b"cd"), ["close 4409"], "nothing more is read from it");
    assert_eq!(harness.server.input(), b"ab");
    assert_eq!(harness.open(3, hello(1, 1, json!({}))), ["close 4409"], "an older connection that arrives late");
    assert!(harness.input(2, 2, b"ef").is_empty());
    assert_eq!(harness.server.input(), b"abef");
}

#[test]
fn silence_leads_to_pings_and_then_to_a_close() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({})));
    harness.wait(SECS(20));
    assert_eq!(harness.receive(1), ["ping 1"]);
    harness.wait(SECS(20));
    assert_eq!(harness.receive(1), ["ping 2"]);
    harness.wait(MS(4_999));
    assert!(harness.receive(1).is_empty());
    harness.wait(MS(1));
    assert_eq!(harness.receive(1), ["close 4408"]);
    assert_eq!(harness.server.clients(), 0);
}

#[test]
fn a_pong_is_sent_before_everything_else() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, cursor(0)));
    harness.print_to(10);
    assert_eq!(harness.send(1, &json!({"type": "ping", "n": 9})), ["pong 9", "output 0+10"]);
}

#[test]
fn r52_a_bounded_number_of_invalid_messages_is_tolerated() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({})));
    for _ in 0..MAX_INVALID_MESSAGES {
        assert_eq!(harness.send(1, &json!({"type": "resize", "cols": 0, "rows": 0})), ["error bad_request"]);
    }
    assert!(harness.send(1, &json!({"type": "wave"})).is_empty(), "an unknown message is ignored, not refused");
    assert_eq!(harness.send(1, &json!({"type": "ack", "output": 99})), ["error bad_request fatal", "close 4400"]);
    assert!(harness.resized.is_empty() && harness.server.input().is_empty());
}

#[test]
fn r26_a_read_only_viewer_cannot_write() {
    for more in [json!({"observe": true}), json!({"grant": {"write": false}})] {
        let mut harness = Harness::new();
        assert_eq!(harness.open(1, hello(1, 1, more))[0], "snapshot fresh at 0 input 0 reader 80");
        for _ in 0..=MAX_INVALID_MESSAGES {
            assert_eq!(harness.input(1, 0, b"rm -rf /\n"), ["error not_allowed"]);
        }
        assert_eq!(harness.send(1, &json!({"type": "claim_size", "cols": 90, "rows": 20})), ["error not_allowed"]);
        assert!(harness.send(1, &json!({"type": "resize", "cols": 90, "rows": 20})).is_empty());
        let command = json!({"type": "command", "id": "a", "command": {}});
        assert_eq!(harness.send(1, &command), [r#"rejected "not_allowed" "a" "this viewer is read-only""#]);
        assert!(harness.server.input().is_empty() && harness.resized.is_empty());
    }
}

#[test]
fn a_hole_in_the_input_names_the_expected_offset_once() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({})));
    assert!(harness.input(1, 0, b"ab").is_empty());
    assert_eq!(harness.input(1, 3, b"d"), ["error input_hole 2, not 3"]);
    assert!(harness.input(1, 4, b"e").is_empty(), "reported once");
    assert!(harness.input(1, 2, b"c").is_empty());
    assert_eq!(harness.input(1, 9, b"x"), ["error input_hole 3, not 9"]);
    assert_eq!(harness.server.input(), b"abc");
}

#[test]
fn r52_too_much_input_closes_the_connection() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({})));
    assert_eq!(harness.input(1, 0, &vec![b'x'; INPUT_FRAME + 1]), ["error too_large fatal", "close 1009"]);
    harness.open(2, hello(2, 1, json!({})));
    let frame = vec![b'x'; INPUT_FRAME];
    for offset in (0..INPUT_WINDOW).step_by(INPUT_FRAME) {
        assert!(harness.input(2, offset, &frame).is_empty());
    }
    assert_eq!(harness.input(2, INPUT_WINDOW, b"x"), ["error too_large fatal", "close 1008"]);
    assert_eq!(harness.server.input().len() as u64, INPUT_WINDOW, "accepted input is still written");
}

#[test]
fn an_ack_of_input_is_sent_with_the_echo() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, cursor(0)));
    harness.input(1, 0, b"a");
    harness.server.handle_input_written(1, harness.now);
    assert!(harness.receive(1).is_empty(), "it waits for the echo");
    harness.print_to(1);
    assert_eq!(harness.receive(1), ["output 0+1", "ack 1"]);
    harness.input(1, 1, b"b");
    harness.server.handle_input_written(1, harness.now);
    harness.wait(MS(5));
    assert_eq!(harness.receive(1), ["ack 2"], "but not for long");
}

#[test]
fn a_forgotten_client_gets_input_null_until_it_acknowledges() {
    // The first answer is lost with its connection. If the second were `input: 0`, the client would resend what it has
    // in flight, and the program would read it twice.
    let mut harness = Harness::with(|config| config.clients = 1);
    harness.open(1, hello(1, 1, cursor(0)));
    harness.input(1, 0, b"rm x\n");
    harness.server.handle_closed(ConnId(1), harness.now);
    for n in 2..4 {
        harness.open(n, hello(n as u8, 1, json!({})));
        harness.server.handle_closed(ConnId(n), harness.now);
    }
    assert_eq!(harness.open(10, hello(1, 2, cursor(0)))[0], "exact at 0 input null owner 80");
    harness.server.handle_closed(ConnId(10), harness.now);
    assert_eq!(harness.open(11, hello(1, 3, cursor(0)))[0], "exact at 0 input null owner 80");
    harness.send(11, &json!({"type": "ack", "output": 0}));
    assert_eq!(harness.open(12, hello(1, 4, cursor(0)))[0], "exact at 0 input 0 owner 80");
}

#[test]
fn r23_the_size_has_one_owner() {
    let mut harness = Harness::new();
    let sized = |cols: u16| json!({"cursor": cursor(0)["cursor"], "size": {"cols": cols, "rows": 24}});
    harness.open(1, hello(1, 1, json!({"observe": true})));
    assert_eq!(harness.open(2, hello(2, 1, sized(100)))[0], "exact at 0 input 0 owner 80");
    assert_eq!(harness.open(3, hello(3, 1, sized(120)))[0], "exact at 0 input 0 writer 100");
    assert_eq!(harness.resized, [Size::new(100, 24).unwrap()]);
    assert!(harness.send(3, &json!({"type": "resize", "cols": 130, "rows": 24})).is_empty());
    assert_eq!(harness.resized.len(), 1, "the windows of other viewers do not matter");
    // The owner keeps the size when it disconnects...
    harness.server.handle_closed(ConnId(2), harness.now);
    for _ in 0..5 {
        harness.wait(MS(11_999));
        harness.send(3, &json!({"type": "pong", "n": 1}));
    }
    assert_eq!(harness.open(4, hello(2, 2, sized(100)))[0], "exact at 0 input 0 owner 100");
    // ...but not forever: then the writer that has been attached longest gets it.
    harness.server.handle_closed(ConnId(4), harness.now);
    for _ in 0..6 {
        harness.send(3, &json!({"type": "pong", "n": 1}));
        harness.wait(SECS(10));
    }
    assert_eq!(harness.resized.last(), Some(&Size::new(130, 24).unwrap()));
    assert_eq!(harness.open(5, hello(2, 3, sized(100)))[0], "exact at 0 input 0 writer 130");
    harness.send(5, &json!({"type": "claim_size", "cols": 90, "rows": 24}));
    assert_eq!(harness.resized.last(), Some(&Size::new(90, 24).unwrap()));
}

#[test]
fn r23_an_owner_that_reconnects_read_only_passes_the_size_on() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, cursor(0)));
    harness.open(2, hello(2, 1, json!({"size": {"cols": 120, "rows": 24}})));
    let observing = json!({"observe": true, "cursor": cursor(0)["cursor"]});
    assert_eq!(harness.open(3, hello(1, 2, observing))[0], "exact at 0 input 0 reader 80");
    assert_eq!(harness.resized, [Size::new(120, 24).unwrap()]);
}

#[test]
fn r23_a_reloaded_page_keeps_the_size() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, cursor(0)));
    let reloaded = json!({"was": client(1), "cursor": cursor(0)["cursor"]});
    assert_eq!(
        harness.open(2, hello(2, 1, reloaded))[0],
        "exact at 0 input 0 writer 80",
        "the old page may still be attached"
    );
    harness.server.handle_closed(ConnId(1), harness.now);
    assert_eq!(harness.open(3, hello(2, 2, cursor(0)))[0], "exact at 0 input 0 owner 80");
}

#[test]
fn late_viewers_get_the_last_title_and_queued_notices_are_bounded() {
    let mut harness = Harness::new();
    harness.server.handle_notice(ServerMessage::Title { title: "one".to_owned() });
    harness.server.handle_notice(ServerMessage::Title { title: "two".to_owned() });
    let received = harness.open(1, hello(1, 1, cursor(0)));
    assert_eq!(received[1..], [r#"title "two""#]);
    for n in 0..NOTICES + 3 {
        harness.server.handle_notice(ServerMessage::Notify { title: String::new(), body: n.to_string() });
        harness.server.handle_notice(ServerMessage::Bell);
    }
    let received = harness.receive(1);
    assert_eq!(received[..3], ["bell", "error too_many", r#"notify "3" """#]);
    assert_eq!(received.len(), NOTICES + 2);
}

#[test]
fn commands_are_passed_on_and_bounded() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({})));
    for n in 0..COMMANDS {
        assert!(harness.send(1, &json!({"type": "command", "id": n.to_string(), "command": {"n": n}})).is_empty());
    }
    let received = harness.send(1, &json!({"type": "command", "id": "x", "command": {}}));
    assert_eq!(received, [r#"rejected "too_many" "x" "too many unanswered commands""#]);
    let commands = harness.events.iter().filter(|event| matches!(event, ServerEvent::Command { .. })).count();
    assert_eq!(commands, COMMANDS);
    let done = ServerMessage::Accepted { id: "0".to_owned(), seq: 7, duplicate: false };
    harness.server.handle_command_done(ConnId(1), done);
    assert_eq!(harness.receive(1), [r#"accepted false "0" 7"#]);
}

#[test]
fn r52_viewers_over_the_limit_are_refused() {
    let mut harness = Harness::with(|config| config.viewers = 2);
    harness.open(1, hello(1, 1, json!({})));
    harness.open(2, hello(2, 1, json!({})));
    // It may be a control connection, so the server sends nothing before its first message.
    harness.server.handle_open(ConnId(3), harness.now);
    assert!(harness.receive(3).is_empty());
    assert_eq!(harness.send(3, &hello(3, 1, json!({}))), ["close 4429"]);
    harness.server.handle_closed(ConnId(3), harness.now);
    assert_eq!(
        harness.open(4, hello(2, 2, json!({})))[0],
        "snapshot fresh at 0 input 0 writer 80",
        "an attached client may reconnect"
    );
    assert_eq!(harness.receive(2), ["close 4409"]);
    harness.server.handle_closed(ConnId(4), harness.now);
    assert_eq!(harness.open(5, hello(5, 1, json!({})))[0], "snapshot fresh at 0 input 0 writer 80");
}

#[test]
fn a_driver_with_an_unpolled_event_is_woken_at_once() {
    let mut harness = Harness::new();
    harness.server.handle_open(ConnId(1), SECS(5));
    harness.server.handle_frame(ConnId(1), Frame::Text(&hello(1, 1, json!({})).to_string()), SECS(5));
    harness.server.poll_transmit(ConnId(1), SECS(5));
    assert_eq!(harness.server.poll_timeout(), Some(SECS(5)));
}
