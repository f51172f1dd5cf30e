//! The session's end of following a journal, frame by frame: verdicts, limits, heartbeats, commands and the exit.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

use std::time::Duration;

use bowline_proto::config::{COMMAND_ID, COMMANDS, MAX_INVALID_MESSAGES, TEXT};
use bowline_proto::follow::{EpochStart, FollowConfig, FollowMessage, Server, ServerEvent, Transmit};
use bowline_proto::frame::Frame;
use bowline_proto::ids::ClientId;
use bowline_proto::link::ConnId;
use bowline_proto::session::{ExitStatus, SessionInfo};
use serde_json::{Value, json};

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;
const OLD: &str = "00000001";
const NOW: &str = "00000002";

/// Runs a server by hand: a test sends frames to it and reads what it sends as short strings.
struct Harness {
    server: Server,
    now: Duration,
    events: Vec<ServerEvent>,
    /// The most events that are sent at a time.
    room: u64,
}

impl Harness {
    /// A journal of 20 events, whose second epoch begins at 10.
    fn new() -> Harness {
        Harness::with(FollowConfig::default())
    }

    fn with(config: FollowConfig) -> Harness {
        let epochs = vec![start(OLD, 0), start(NOW, 10)];
        let server = Server::new(config, info(), epochs, 20);
        Harness { server, now: Duration::ZERO, events: Vec::new(), room: u64::MAX }
    }

    /// Opens a connection, sends the hello, and returns what the server sends.
    fn open(&mut self, conn: u64, hello: &Value) -> Vec<String> {
        self.server.handle_open(ConnId(conn), self.now);
        self.send(conn, hello)
    }

    /// Sends a text message, and returns what the server sends.
    fn send(&mut self, conn: u64, message: &Value) -> Vec<String> {
        self.send_frame(conn, Frame::Text(&message.to_string()))
    }

    fn send_frame(&mut self, conn: u64, frame: Frame<'_>) -> Vec<String> {
        self.server.handle_frame(ConnId(conn), frame, self.now);
        self.receive(conn)
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.server.poll_event() {
            self.events.push(event);
        }
    }

    /// Everything that the server sends on a connection now.
    fn receive(&mut self, conn: u64) -> Vec<String> {
        let mut received = Vec::new();
        self.handle_events();
        while let Some(transmit) = self.server.poll_transmit(ConnId(conn), self.now) {
            if let Transmit::Events { from, to } = transmit {
                let next = to.min(from.saturating_add(self.room));
                received.push(format!("events {from}..{next}"));
                self.server.handle_sent(ConnId(conn), next);
            } else {
                received.push(summary(transmit));
            }
            self.handle_events();
        }
        received
    }

    /// Lets time pass, from one deadline to the next.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        self.handle_events();
        while let Some(at) = self.server.poll_timeout().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            self.server.handle_timeout(self.now);
            self.handle_events();
        }
        self.now = until;
    }

    fn commands(&self) -> Vec<String> {
        let commands = self.events.iter().filter_map(|event| match event {
            ServerEvent::Command { conn, id, command, by } => Some(format!("{} {id} {command} by {by}", conn.0)),
            _ => None,
        });
        commands.collect()
    }
}

fn start(epoch: &str, seq: u64) -> EpochStart {
    EpochStart { epoch: epoch.parse().unwrap(), seq }
}

fn info() -> SessionInfo {
    let info = json!({
        "id": "k3v9x0q2m7aa", "name": null, "kind": "agent", "state": "running", "created": "", "cwd": "/",
        "epoch": OLD, "version": "0.1.0", "agent": "claude",
    });
    serde_json::from_value(info).unwrap()
}

fn summary(transmit: Transmit) -> String {
    match transmit {
        Transmit::Events { .. } => unreachable!("handled by the caller"),
        Transmit::Close { code, .. } => format!("close {code}"),
        Transmit::Text(FollowMessage::Attached(at)) => {
            let reason = at.reason.map_or(String::new(), |reason| format!(" {reason:?}").to_lowercase());
            let verdict = format!("{:?}", at.verdict).to_lowercase();
            assert_eq!(at.session.epoch, at.epoch);
            let (epoch, clients, end) = (at.epoch, at.session.clients, at.session.offset);
            let role = if at.you.write { "writer" } else { "reader" };
            format!("{verdict}{reason} at {} of {end} in {epoch}, {role} 1 of {clients}", at.offset)
        }
        Transmit::Text(FollowMessage::Error { code, fatal, .. }) => {
            format!("error {code}{}", if fatal { " fatal" } else { "" })
        }
        Transmit::Text(FollowMessage::Rejected { id, code, .. }) => format!("rejected {id} {code}"),
        Transmit::Text(FollowMessage::Accepted { id, seq, .. }) => format!("accepted {id} {seq}"),
        Transmit::Text(FollowMessage::Exit { code, offset, .. }) => format!("exit {code:?} at {offset}"),
        Transmit::Text(FollowMessage::Ping { n }) => format!("ping {n}"),
        Transmit::Text(FollowMessage::Pong { n }) => format!("pong {n}"),
        Transmit::Text(other) => panic!("{other:?}"),
    }
}

/// A hello of client `n`; `more` replaces or adds fields.
fn hello(n: u8, conn: u64, more: Value) -> Value {
    let client = ClientId::from_random([n; 16]);
    let mut hello = json!({"type": "hello", "version": 1, "client": client, "conn": conn});
    for (key, value) in more.as_object().unwrap() {
        hello[key] = value.clone();
    }
    hello
}

fn cursor(epoch: &str, offset: u64) -> Value {
    json!({"cursor": {"epoch": epoch, "offset": offset}})
}

fn command(id: &str) -> Value {
    json!({"type": "command", "id": id, "command": {"type": "prompt"}})
}

fn accepted(id: &str) -> FollowMessage {
    FollowMessage::Accepted { id: id.to_owned(), seq: 7, run: None, duplicate: false }
}

#[test]
fn a_hello_gets_a_verdict_and_the_events_after_its_cursor() {
    let hellos = [
        (json!({}), "snapshot fresh at 20", None),
        (cursor(NOW, 0), "exact at 0", Some("events 0..20")),
        (cursor(NOW, 10), "exact at 10", Some("events 10..20")),
        (cursor(NOW, 19), "exact at 19", Some("events 19..20")),
        (cursor(NOW, 20), "exact at 20", None),
        (cursor(NOW, 21), "snapshot ahead at 20", None),
        (cursor(NOW, u64::MAX), "snapshot ahead at 20", None),
        (cursor(OLD, 0), "exact at 0", Some("events 0..20")),
        (cursor(OLD, 10), "exact at 10", Some("events 10..20")),
        (cursor(OLD, 11), "snapshot ahead at 20", None),
        (cursor("00000009", 0), "snapshot epoch at 20", None),
    ];
    for (more, verdict, events) in hellos {
        let mut harness = Harness::new();
        let attached = format!("{verdict} of 20 in {NOW}, writer 1 of 1");
        let expected: Vec<_> = [Some(attached), events.map(str::to_owned)].into_iter().flatten().collect();
        assert_eq!(harness.open(1, &hello(1, 1, more.clone())), expected, "{more}");
        harness.server.handle_end(22);
        assert_eq!(harness.receive(1), ["events 20..22"], "{more}");
    }
}

#[test]
fn the_verdict_is_true_at_the_time_when_attached_is_sent() {
    let mut harness = Harness::new();
    harness.server.handle_open(ConnId(1), harness.now);
    harness.server.handle_frame(ConnId(1), Frame::Text(&hello(1, 1, cursor(NOW, 20)).to_string()), harness.now);
    // The connection has no room for `attached`, and meanwhile the journal is repaired.
    harness.server.handle_epoch(start("00000003", 15));
    harness.server.handle_end(16);
    assert_eq!(harness.receive(1), ["snapshot ahead at 16 of 16 in 00000003, writer 1 of 1"]);
}

#[test]
fn a_driver_may_send_events_a_few_at_a_time() {
    let mut harness = Harness::new();
    harness.room = 4;
    let received = harness.open(1, &hello(1, 1, cursor(NOW, 10)));
    assert_eq!(received[1..], ["events 10..14", "events 14..18", "events 18..20"]);
    harness.server.handle_end(19);
    assert!(harness.receive(1).is_empty(), "the end does not go back without a new epoch");
}

#[test]
fn a_repair_closes_those_that_were_sent_events_of_the_cut_tail() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, cursor(NOW, 20)));
    harness.open(2, &hello(2, 1, cursor(NOW, 20)));
    harness.open(3, &hello(3, 1, json!({})));
    harness.server.handle_end(25);
    assert_eq!(harness.receive(1), ["events 20..25"]);
    harness.server.handle_epoch(start("00000003", 20));
    assert_eq!(harness.receive(1), ["close 1013"]);
    harness.server.handle_end(21);
    for other in [2, 3] {
        assert_eq!(harness.receive(other), ["events 20..21"], "it has nothing of the cut tail");
    }
    assert_eq!(
        harness.open(4, &hello(1, 2, cursor(NOW, 25))),
        ["snapshot ahead at 21 of 21 in 00000003, writer 1 of 3"]
    );
    // The driver read events that were cut before it could report them as sent.
    harness.server.handle_sent(ConnId(2), 24);
    assert_eq!(harness.receive(2), ["close 1013"]);
    assert!(harness.events.contains(&ServerEvent::Closing { conn: ConnId(2), code: 1013 }));
}

#[test]
fn an_epoch_at_the_end_disturbs_no_follower() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, cursor(NOW, 20)));
    harness.server.handle_epoch(start("00000003", 20));
    harness.server.handle_end(21);
    assert_eq!(harness.receive(1), ["events 20..21"]);
}

#[test]
fn an_exit_is_sent_after_the_last_event_and_the_last_answer() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, cursor(NOW, 20)));
    harness.send(1, &command("a"));
    harness.server.handle_end(22);
    harness.server.handle_command_done(ConnId(1), accepted("a"));
    harness.server.handle_exit(ExitStatus { code: Some(3), signal: None });
    assert_eq!(harness.receive(1), ["accepted a 7", "events 20..22", "exit Some(3) at 22", "close 1000"]);
    assert_eq!(harness.server.clients(), 0);
    let late = harness.open(2, &hello(1, 2, cursor(NOW, 21)));
    assert_eq!(late[1..], ["events 21..22", "exit Some(3) at 22", "close 1000"], "also for one that attaches later");
}

#[test]
fn a_first_message_that_is_no_valid_hello_is_refused() {
    let refused = |message: &str| {
        let mut harness = Harness::new();
        harness.server.handle_open(ConnId(1), harness.now);
        harness.send_frame(1, Frame::Text(message)).join(", ")
    };
    assert_eq!(refused("{"), "error bad_request fatal, close 4400");
    assert_eq!(refused(&command("a").to_string()), "error bad_request fatal, close 4400");
    assert_eq!(refused(&hello(1, 1, json!({"version": 2})).to_string()), "error no_version fatal, close 4426");
    let mut harness = Harness::new();
    harness.server.handle_open(ConnId(1), harness.now);
    assert_eq!(harness.send_frame(1, Frame::Binary(b"x")), ["error bad_request fatal", "close 4400"]);
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
fn silence_leads_to_pings_and_then_to_a_close() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, json!({})));
    harness.wait(SECS(20));
    assert_eq!(harness.receive(1), ["ping 1"]);
    harness.wait(SECS(20));
    assert_eq!(harness.receive(1), ["ping 2"]);
    harness.wait(MS(4_999));
    assert!(harness.receive(1).is_empty());
    harness.wait(MS(1));
    assert_eq!(harness.receive(1), ["close 4408"]);
    assert_eq!(harness.events.last(), Some(&ServerEvent::Closing { conn: ConnId(1), code: 4408 }));
    harness.open(2, &hello(1, 2, json!({})));
    for n in 0..5 {
        harness.wait(SECS(30));
        harness.send(2, &json!({"type": "pong", "n": n}));
    }
    assert_eq!(harness.send(2, &json!({"type": "ping", "n": 9})), ["pong 9"]);
}

#[test]
fn a_new_connection_of_a_client_closes_the_older_one() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, json!({})));
    assert!(harness.open(2, &hello(1, 2, json!({})))[0].ends_with("writer 1 of 1"));
    assert_eq!(harness.send(1, &command("a")), ["close 4409"], "nothing more is read from it");
    assert_eq!(harness.open(3, &hello(1, 1, json!({}))), ["close 4409"], "an older connection that arrives late");
    // The same client id of other callers is another client.
    harness.open(4, &hello(1, 9, json!({"grant": {"write": true, "caller": "phone"}})));
    harness.open(5, &hello(1, 9, json!({"grant": {"write": false, "caller": "guest"}})));
    assert_eq!((harness.server.clients(), harness.receive(2).is_empty()), (3, true));
    assert!(harness.commands().is_empty());
}

#[test]
fn a_reader_of_an_older_gateway_does_not_replace_a_writer() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, json!({"grant": {"write": true}})));
    let reader = hello(1, 2, json!({"grant": {"write": false}}));
    assert_eq!(harness.open(2, &reader), ["error not_allowed fatal", "close 4403"]);
    assert!(harness.receive(1).is_empty());
}

#[test]
fn viewers_over_the_limit_are_refused() {
    let mut harness = Harness::with(FollowConfig { viewers: 4, ..FollowConfig::default() });
    let phone = json!({"grant": {"write": true, "caller": "phone"}});
    harness.open(1, &hello(1, 1, phone.clone()));
    harness.open(2, &hello(2, 1, phone.clone()));
    assert_eq!(harness.open(3, &hello(3, 1, phone.clone())), ["close 4429"], "one caller gets half of the places");
    assert!(harness.open(4, &hello(2, 2, phone))[0].ends_with("of 2"), "an attached client may reconnect");
    harness.open(5, &hello(5, 1, json!({"grant": {"write": true, "caller": "laptop"}})));
    let desk = json!({"grant": {"write": true, "caller": "desk"}});
    assert_eq!(harness.open(6, &hello(6, 1, desk)), ["close 4429"], "one place is the owner's");
    assert!(harness.open(7, &hello(7, 1, json!({})))[0].ends_with("of 4"));
    assert_eq!(harness.open(8, &hello(8, 1, json!({}))), ["close 4429"]);
    let counts = harness.events.iter().filter_map(|event| match event {
        ServerEvent::ClientsChanged(count) => Some(*count),
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [1, 2, 1, 2, 3, 4]);
}

#[test]
fn a_bounded_number_of_invalid_messages_is_tolerated() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, json!({})));
    let long = json!({"type": "ping", "n": 1, "more": "x".repeat(TEXT)});
    assert_eq!(harness.send(1, &long), ["error too_large"]);
    assert_eq!(harness.send_frame(1, Frame::Binary(b"\x03")), ["error bad_request"]);
    assert_eq!(harness.send(1, &hello(1, 1, json!({}))), ["error bad_request"]);
    assert_eq!(harness.send(1, &command(&"x".repeat(COMMAND_ID + 1))), ["error bad_request"]);
    for _ in 4..MAX_INVALID_MESSAGES {
        assert_eq!(harness.send(1, &json!([])), ["error bad_request"]);
    }
    for ignored in [json!({"type": "wave"}), json!({"type": "ack", "output": 9}), json!({"type": "repaint"})] {
        assert!(harness.send(1, &ignored).is_empty(), "{ignored} is ignored, not refused");
    }
    assert_eq!(harness.send(1, &json!([])), ["error bad_request fatal", "close 4400"]);
    assert!(harness.commands().is_empty());
}

#[test]
fn commands_name_who_sent_them() {
    let mut harness = Harness::new();
    let grants = [
        (json!({}), "local"),
        (json!({"grant": {"write": true, "caller": "t1", "name": "Ada's phone"}}), "Ada's phone"),
        (json!({"grant": {"write": true, "caller": "t2"}}), "t2"),
        (json!({"grant": {"write": true}}), "gateway"),
    ];
    for (conn, (grant, by)) in (1..).zip(grants) {
        harness.open(conn, &hello(1, 1, grant));
        assert!(harness.send(conn, &command("a")).is_empty());
        let expected = format!(r#"{conn} a {{"type":"prompt"}} by {by}"#);
        assert_eq!(harness.commands().last(), Some(&expected));
    }
}

#[test]
fn a_read_only_follower_cannot_send_commands() {
    for more in [json!({"observe": true}), json!({"grant": {"write": false, "caller": "guest"}})] {
        let mut harness = Harness::new();
        assert!(harness.open(1, &hello(1, 1, more))[0].ends_with("reader 1 of 1"));
        assert_eq!(harness.send(1, &command("a")), ["rejected a not_allowed"]);
        assert!(harness.commands().is_empty());
    }
}

#[test]
fn unanswered_commands_are_bounded() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, json!({})));
    for n in 0..COMMANDS {
        assert!(harness.send(1, &command(&n.to_string())).is_empty());
    }
    assert_eq!(harness.send(1, &command("x")), ["rejected x too_many"]);
    assert_eq!(harness.commands().len(), COMMANDS);
    harness.server.handle_command_done(ConnId(1), accepted("0"));
    assert_eq!(harness.receive(1), ["accepted 0 7"]);
    assert!(harness.send(1, &command("y")).is_empty());
    harness.server.handle_command_done(ConnId(9), accepted("z"));
}

#[test]
fn a_client_that_sends_commands_and_reads_no_answers_is_closed() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, json!({})));
    for n in 0..COMMANDS {
        harness.server.handle_frame(ConnId(1), Frame::Text(&command(&n.to_string()).to_string()), harness.now);
        harness.server.handle_command_done(ConnId(1), accepted(&n.to_string()));
    }
    let tolerated = COMMANDS + MAX_INVALID_MESSAGES as usize;
    for _ in 0..=tolerated {
        harness.server.handle_frame(ConnId(1), Frame::Text(&command("x").to_string()), harness.now);
    }
    harness.handle_events();
    assert_eq!(harness.events.last(), Some(&ServerEvent::Closing { conn: ConnId(1), code: 4400 }));
    assert_eq!(harness.commands().len(), COMMANDS);
}

#[test]
fn a_client_that_leaves_is_detached_at_once() {
    let mut harness = Harness::new();
    harness.open(1, &hello(1, 1, json!({})));
    assert_eq!(harness.send(1, &json!({"type": "leave"})), ["close 1000"]);
    assert_eq!(harness.server.clients(), 0);
}

#[test]
fn a_driver_with_an_unpolled_event_is_woken_at_once() {
    let mut harness = Harness::new();
    harness.server.handle_open(ConnId(1), SECS(5));
    assert_eq!(harness.server.poll_timeout(), Some(SECS(15)));
    harness.server.handle_frame(ConnId(1), Frame::Text(&hello(1, 1, json!({})).to_string()), SECS(5));
    assert_eq!(harness.server.poll_timeout(), Some(SECS(5)));
}
