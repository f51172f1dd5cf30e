//! A follower's end of following a journal, message by message: its cursor, what it refuses, and its timeouts.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

use std::time::Duration;

use bowline_proto::follow::{Client, ClientEvent, ClientState, ClientTransmit, FollowerConfig};
use bowline_proto::frame::Frame;
use bowline_proto::ids::ClientId;
use bowline_proto::message::{ClientMessage, Cursor};
use serde_json::{Value, json};

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;
const EPOCH: &str = "00000001";

/// A client that has connected and sent its hello.
fn connected(cursor: Option<u64>) -> Client {
    let cursor = cursor.map(|offset| Cursor { epoch: EPOCH.parse().unwrap(), offset });
    let mut client = Client::new(FollowerConfig { cursor, ..FollowerConfig::new(ClientId::from_random([1; 16])) });
    connect(&mut client);
    client
}

/// Opens a connection, and returns the cursor in the hello.
fn connect(client: &mut Client) -> Option<String> {
    client.handle_open(MS(0));
    match client.poll_transmit(MS(0)) {
        Some(ClientTransmit::Text(ClientMessage::Hello(hello))) => {
            hello.cursor.map(|cursor| format!("{}:{}", cursor.epoch, cursor.offset))
        }
        other => panic!("{other:?}"),
    }
}

/// Sends a message to the client, and returns its events as short strings.
fn receive(client: &mut Client, message: &Value) -> Vec<String> {
    receive_text(client, &message.to_string())
}

fn receive_text(client: &mut Client, text: &str) -> Vec<String> {
    client.handle_frame(Frame::Text(text), MS(0));
    poll(client)
}

fn poll(client: &mut Client) -> Vec<String> {
    let events = std::iter::from_fn(|| client.poll_event());
    let summary = |event| match event {
        ClientEvent::Attached(attached) => format!("attached at {}", attached.offset),
        ClientEvent::Event(record) => format!("event {}..={}", record.first(), record.seq),
        ClientEvent::Exit { offset, .. } => format!("exit at {offset}"),
        ClientEvent::Message(_) => "message".to_owned(),
        ClientEvent::Closing { code, .. } => format!("closing {code}"),
        ClientEvent::Lost { code, reason } => format!("lost {code}: {reason}"),
    };
    events.map(summary).collect()
}

fn attached(verdict: &str, offset: u64) -> Value {
    json!({
        "type": "attached", "epoch": "00000002", "offset": offset, "verdict": verdict, "you": {"write": true},
        "heartbeat": 20_000, "session": {
            "id": "k3v9x0q2m7aa", "name": null, "kind": "agent", "state": "running", "created": "", "cwd": "/",
            "epoch": "00000002", "version": "0.1.0", "agent": "claude",
        },
    })
}

fn event(from: Option<u64>, seq: u64) -> Value {
    let mut event = json!({"type": "event", "seq": seq, "at": "", "event": {"type": "text"}});
    if let Some(from) = from {
        event["from"] = json!(from);
    }
    event
}

fn cursor(client: &Client) -> String {
    client.cursor().map_or("none".to_owned(), |cursor| format!("{}:{}", cursor.epoch, cursor.offset))
}

#[test]
fn the_cursor_follows_the_events_that_were_polled() {
    let mut client = connected(None);
    assert_eq!(receive(&mut client, &attached("snapshot", 5)), ["attached at 5"]);
    assert_eq!(receive(&mut client, &event(None, 5)), ["event 5..=5"]);
    assert_eq!(receive(&mut client, &event(Some(6), 9)), ["event 6..=9"]);
    assert_eq!(cursor(&client), "00000002:10");
    client.handle_frame(Frame::Text(&event(None, 10).to_string()), MS(0));
    assert_eq!(cursor(&client), "00000002:10", "the caller has not polled it");
    assert_eq!(connect(&mut client), Some("00000002:10".to_owned()), "so the server must send it again");
    assert!(poll(&mut client).is_empty());
    receive(&mut client, &attached("exact", 10));
    assert_eq!(receive(&mut client, &event(None, 10)), ["event 10..=10"]);
}

#[test]
fn an_epoch_in_the_stream_becomes_that_of_the_cursor() {
    let mut client = connected(Some(3));
    receive(&mut client, &attached("exact", 3));
    assert_eq!(cursor(&client), "00000002:3");
    for (seq, kind) in [(3, "repaired"), (4, "started")] {
        let mut begun = event(None, seq);
        begun["event"] = json!({"type": kind, "epoch": format!("0000000{seq}")});
        receive(&mut client, &begun);
        assert_eq!(cursor(&client), format!("0000000{seq}:{}", seq + 1));
    }
}

#[test]
fn whatever_does_not_continue_the_position_ends_the_connection() {
    let text = |message: Value| message.to_string();
    let exit = |offset: u64| text(json!({"type": "exit", "code": 0, "signal": null, "offset": offset}));
    for (bad, reason) in [
        (text(event(None, 6)), "events are missing"),
        (text(event(None, 4)), "an event that was received before"),
        (text(event(Some(4), 6)), "an event that was received before"),
        (text(event(Some(5), 3)), "an event with an invalid range"),
        (text(attached("exact", 5)), "attached without a hello, or twice"),
        (exit(6), "an exit before the last event"),
        ("{".to_owned(), "a malformed message"),
    ] {
        let mut client = connected(Some(5));
        receive(&mut client, &attached("exact", 5));
        assert_eq!(receive_text(&mut client, &bad), [format!("lost 4400: {reason}")], "{bad}");
        assert!(matches!(client.poll_transmit(MS(0)), Some(ClientTransmit::Close { code: 4400, .. })));
        assert!(receive(&mut client, &event(None, 5)).is_empty(), "nothing more is read from it");
        client.handle_closed(MS(0));
        assert_eq!(connect(&mut client), Some("00000002:5".to_owned()), "the next connection resumes");
    }
    let mut client = connected(Some(5));
    assert_eq!(receive(&mut client, &attached("exact", 4)).len(), 1);
    assert_eq!((cursor(&client), client.state()), ("00000001:5".to_owned(), ClientState::Greeting));
    let mut client = connected(None);
    assert!(receive(&mut client, &attached("exact", 0))[0].starts_with("lost"), "it had no cursor");
    let mut client = connected(None);
    assert_eq!(receive(&mut client, &event(None, 0)), ["lost 4400: a message before attached"]);
    let mut client = connected(None);
    client.handle_frame(Frame::Binary(b"x"), MS(0));
    assert_eq!(poll(&mut client), ["lost 4400: a binary message"]);
}

#[test]
fn a_report_about_an_old_connection_does_not_end_the_new_one() {
    let mut client = connected(None);
    client.handle_frame(Frame::Text("{"), MS(0));
    connect(&mut client);
    assert!(poll(&mut client).is_empty());
    assert_eq!(client.poll_transmit(MS(0)), None);
}

#[test]
fn after_an_exit_there_are_no_more_connections() {
    let mut client = connected(Some(5));
    receive(&mut client, &attached("exact", 5));
    let exit = json!({"type": "exit", "code": 0, "signal": null, "offset": 5});
    assert_eq!(receive(&mut client, &exit), ["exit at 5"]);
    client.handle_closed(MS(0));
    client.handle_open(MS(0));
    assert_eq!((client.state(), client.poll_transmit(MS(0))), (ClientState::Ended, None));
}

#[test]
fn other_messages_are_passed_on_or_answered() {
    let mut client = connected(None);
    receive(&mut client, &attached("snapshot", 0));
    assert!(receive(&mut client, &json!({"type": "ping", "n": 4})).is_empty());
    assert_eq!(client.poll_transmit(MS(0)), Some(ClientTransmit::Text(ClientMessage::Pong { n: 4 })));
    assert!(receive(&mut client, &json!({"type": "wave"})).is_empty());
    let error = json!({"type": "error", "code": "bad_request", "message": "", "fatal": false});
    assert_eq!(receive(&mut client, &error), ["message"]);
    assert_eq!(receive(&mut client, &json!({"type": "close", "code": 1001, "reason": ""})), ["closing 1001"]);
}

#[test]
fn silence_leads_to_a_ping_and_then_to_the_end_of_the_connection() {
    let mut client = connected(None);
    assert_eq!(client.poll_timeout(), Some(SECS(15)), "for `attached`");
    receive(&mut client, &attached("snapshot", 0));
    assert_eq!(client.poll_timeout(), Some(SECS(20)));
    client.handle_timeout(SECS(20));
    assert_eq!(client.poll_transmit(SECS(20)), Some(ClientTransmit::Text(ClientMessage::Ping { n: 1 })));
    client.handle_timeout(SECS(45));
    assert_eq!(poll(&mut client), ["lost 4408: no message for too long"]);
    assert_eq!(client.poll_timeout(), None);
    let mut client = connected(None);
    client.handle_timeout(SECS(15));
    assert_eq!(poll(&mut client), ["lost 4408: no message for too long"]);
}

#[test]
fn a_wake_checks_the_connection() {
    let mut client = connected(None);
    receive(&mut client, &attached("snapshot", 0));
    client.handle_wake(SECS(3));
    assert_eq!(client.poll_transmit(SECS(3)), Some(ClientTransmit::Text(ClientMessage::Ping { n: 1 })));
    client.handle_timeout(SECS(5));
    assert_eq!(poll(&mut client), ["lost 4408: no answer to a probe"]);
}

#[test]
fn a_follower_that_leaves_tells_the_server() {
    let mut client = connected(None);
    receive(&mut client, &attached("snapshot", 0));
    client.leave();
    assert_eq!(client.poll_transmit(MS(0)), Some(ClientTransmit::Text(ClientMessage::Leave)));
    assert_eq!((client.state(), client.poll_transmit(MS(0))), (ClientState::Ended, None));
}
