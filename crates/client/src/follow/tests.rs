use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use bowline_proto::close;
use bowline_proto::frame::{self, Frame};
use bowline_proto::message::ClientMessage;
use serde_json::json;

use super::*;
use crate::unix::UnixTransport;

/// The connections that a server has for a follower, one dial each; without one, a dial fails.
#[derive(Clone, Default)]
struct Connections(Arc<Mutex<VecDeque<UnixStream>>>);

impl Connections {
    /// A server that runs `serve` with each connection, one after the other.
    fn each(serve: Vec<fn(Peer)>) -> Connections {
        let connections = Connections::default();
        for serve in serve {
            let (here, there) = UnixStream::pair().unwrap();
            connections.0.lock().unwrap().push_back(here);
            std::thread::spawn(move || serve(Peer(there)));
        }
        connections
    }
}

impl Dialer for Connections {
    fn dial(&mut self, _fresh_ticket: bool) -> Result<Box<dyn Transport>, ConnectionEnd> {
        let stream = self.0.lock().unwrap().pop_front().ok_or(ConnectionEnd::Failed)?;
        Ok(Box::new(UnixTransport::new(stream).unwrap()))
    }

    fn request_screen(&mut self) {}

    fn take_screen(&mut self) -> Option<Option<Value>> {
        Some(None)
    }

    fn last_screen(&mut self) -> Option<Value> {
        None
    }
}

/// The server's end of a connection.
struct Peer(UnixStream);

impl Peer {
    /// Reads the hello; returns the cursor in it.
    fn hello(&mut self) -> Option<Cursor> {
        let mut received = Vec::new();
        loop {
            let mut chunk = [0; 4096];
            let read = self.0.read(&mut chunk).unwrap();
            received.extend_from_slice(&chunk[..read]);
            if let Some((Frame::Text(text), _)) = Frame::decode(&received).unwrap() {
                let ClientMessage::Hello(hello) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
                return hello.cursor;
            }
        }
    }

    fn send(&mut self, message: Value) {
        let mut wire = Vec::new();
        frame::put_text(&mut wire, &message.to_string());
        // The follower may have left already.
        let _ = self.0.write_all(&wire);
    }

    fn attached(&mut self, epoch: &str, offset: u64, verdict: &str) {
        let session = json!({"id": "k3v9x0q2m7aa", "name": null, "kind": "agent", "state": "running", "created": "",
            "cwd": "/", "epoch": epoch, "version": "0.1.0", "agent": "fake"});
        self.send(json!({"type": "attached", "session": session, "epoch": epoch, "offset": offset,
            "verdict": verdict, "you": {"write": true}, "heartbeat": 20_000}));
    }

    fn event(&mut self, seq: u64, event: Value) {
        self.send(json!({"type": "event", "seq": seq, "at": "", "event": event}));
    }
}

const FIRST: &str = "9f3c61d2";

/// What a follower of everything gets, until it has ended or is offline: numbers of events, and words.
fn follow(connections: Connections) -> Vec<String> {
    let backoff = Backoff { base: Duration::from_millis(1), cap: Duration::from_millis(1), tries: Some(2) };
    let cursor = Cursor { epoch: FIRST.parse().unwrap(), offset: 0 };
    let mut follower = Follower::new(Box::new(connections), Some(cursor), backoff).unwrap();
    let mut got = Vec::new();
    while let Some(event) = follower.wait_for_event().unwrap() {
        got.push(match event {
            FollowEvent::Attached(attached) => format!("attached at {}", attached.offset),
            FollowEvent::Event(record) => record.seq.to_string(),
            FollowEvent::Cut { from } => format!("cut {from}"),
            FollowEvent::Message(message) => format!("{message:?}"),
            FollowEvent::Status(Status::Reconnecting { attempt, .. }) => format!("lost {attempt}"),
            FollowEvent::Status(status) => format!("{status:?}"),
            FollowEvent::Ended(outcome) => format!("{outcome:?}"),
        });
        if got.last().is_some_and(|last| last == "Offline") {
            break;
        }
    }
    got
}

#[test]
fn r40_a_lost_connection_is_resumed_and_no_event_is_lost_or_repeated() {
    let got = follow(Connections::each(vec![
        |mut peer| {
            assert_eq!(peer.hello().unwrap().offset, 0);
            peer.attached(FIRST, 0, "exact");
            peer.event(0, json!({"type": "started", "epoch": FIRST}));
            peer.event(1, json!({"type": "text"}));
        },
        |mut peer| {
            assert_eq!(peer.hello().unwrap().offset, 2);
            peer.attached(FIRST, 2, "exact");
            peer.event(2, json!({"type": "text"}));
            peer.send(json!({"type": "exit", "code": 0, "signal": null, "offset": 3}));
        },
    ]));
    let ended = format!("{:?}", Outcome::Exited(ExitStatus { code: Some(0), signal: None }));
    assert_eq!(got, ["attached at 0", "0", "1", "lost 1", "Open", "attached at 2", "2", &ended]);
}

#[test]
fn r40_after_the_end_of_a_journal_was_lost_only_what_changed_comes_again() {
    let got = follow(Connections::each(vec![
        |mut peer| {
            peer.hello();
            peer.attached(FIRST, 0, "exact");
            peer.event(0, json!({"type": "started", "epoch": FIRST}));
            peer.event(1, json!({"type": "text"}));
            peer.event(2, json!({"type": "text"}));
        },
        |mut peer| {
            assert_eq!(peer.hello().unwrap().offset, 3);
            peer.attached("0a0a0a0a", 4, "snapshot");
            let _ = peer.0.read(&mut [0; 64]);
        },
        |mut peer| {
            let cursor = peer.hello().unwrap();
            assert_eq!((cursor.epoch.as_str(), cursor.offset), ("0a0a0a0a", 0));
            peer.attached("0a0a0a0a", 0, "exact");
            peer.event(0, json!({"type": "started", "epoch": FIRST}));
            peer.event(1, json!({"type": "text"}));
            peer.event(2, json!({"type": "repaired", "epoch": "0a0a0a0a"}));
            peer.event(3, json!({"type": "text"}));
            peer.send(json!({"type": "exit", "code": null, "signal": null, "offset": 4}));
        },
    ]));
    let expected = ["attached at 0", "0", "1", "2", "lost 1", "Open", "attached at 0", "cut 2", "2", "3", "Lost"];
    assert_eq!(got, expected);
}

#[test]
fn a_server_that_refuses_for_good_or_stays_away_is_reported() {
    let got = follow(Connections::each(vec![|mut peer| {
        peer.hello();
        peer.send(json!({"type": "close", "code": close::UNKNOWN, "reason": "no such session"}));
    }]));
    let refused = Outcome::Refused { why: PermanentFailure::Unknown, reason: "no such session".to_owned() };
    assert_eq!(got, [format!("{refused:?}")]);
    assert_eq!(follow(Connections::default()), ["lost 1", "lost 2", "Offline"]);
}

#[test]
fn r52_a_server_that_never_accepts_a_position_is_left() {
    let again: fn(Peer) = |mut peer| {
        peer.hello();
        peer.attached("0a0a0a0a", 7, "snapshot");
        let _ = peer.0.read(&mut [0; 64]);
    };
    let got = follow(Connections::each(vec![again, again, again]));
    assert!(matches!(got.as_slice(), [only] if only.contains("cannot continue from any position")), "{got:?}");
}
