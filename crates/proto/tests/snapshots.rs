//! Snapshots for many viewers: made once, shared, and bounded however little the viewers read.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    reason = "a test may panic, and this one uses only part of the harness"
)]

mod harness;

use std::time::Duration;

use bowline_proto::frame::Frame;
use bowline_proto::link::{ConnId, ServerEvent, Snapshot, SnapshotKind, Transmit};
use bowline_proto::message::ServerMessage;
use bowline_proto::size::Size;
use harness::{Harness, hello};
use serde_json::{Value, json};

const CHUNK: usize = 100;
const LEN: usize = 1000;

/// A session whose snapshots have ten parts, and that may keep three of them.
fn session() -> Harness {
    let mut harness = Harness::with(|config| (config.chunk, config.snapshots) = (CHUNK, 3 * LEN as u64));
    harness.snapshot_len = None;
    harness.print_to(5000);
    harness
}

fn reader(caller: &str) -> Value {
    json!({"grant": {"write": false, "caller": caller}})
}

/// Sends a hello, and polls once, so that the viewer asks for its snapshot.
fn attach(harness: &mut Harness, conn: u64, more: Value) {
    harness.server.handle_open(ConnId(conn), harness.now);
    let hello = hello(conn as u8, 1, more).to_string();
    harness.server.handle_frame(ConnId(conn), Frame::Text(&hello), harness.now);
    assert_eq!(harness.server.poll_transmit(ConnId(conn), harness.now), None);
}

/// The snapshots that the server asks for.
fn requests(harness: &mut Harness) -> Vec<SnapshotKind> {
    let events = std::iter::from_fn(|| harness.server.poll_event());
    let kinds = events.filter_map(|event| match event {
        ServerEvent::NeedSnapshot(kind) => Some(kind),
        _ => None,
    });
    kinds.collect()
}

/// Makes the one snapshot that the server asks for.
fn make(harness: &mut Harness) {
    let requested = requests(harness);
    assert_eq!(requested.len(), 1, "{requested:?}");
    let pieces = vec![vec![b'a'; 450].into(), vec![].into(), vec![b'b'; LEN - 450].into()];
    let snapshot = Snapshot { offset: harness.screen, size: harness.size, pieces };
    harness.server.handle_snapshot(requested[0], snapshot);
}

/// Polls a connection `count` times. Returns the bytes of its snapshot, and the code that it was closed with.
fn read(harness: &mut Harness, conn: u64, count: usize) -> (Vec<u8>, Option<u16>) {
    let (mut bytes, mut code) = (Vec::new(), None);
    for _ in 0..count {
        match harness.server.poll_transmit(ConnId(conn), harness.now) {
            Some(Transmit::SnapshotPart(part)) => bytes.extend_from_slice(&part),
            Some(Transmit::Close { code: closed, .. }) => code = Some(closed),
            Some(Transmit::Text(ServerMessage::Attached(attached))) => {
                assert_eq!(attached.snapshot.unwrap().bytes, LEN as u64);
            }
            _ => {}
        }
    }
    (bytes, code)
}

#[test]
fn r25_viewers_that_attach_together_share_a_snapshot() {
    let mut harness = session();
    for conn in 1..=200 {
        attach(&mut harness, conn, reader("guest"));
    }
    make(&mut harness);
    assert_eq!(requests(&mut harness), []);
    for conn in 1..=200 {
        let (bytes, _) = read(&mut harness, conn, 20);
        assert_eq!(bytes, [vec![b'a'; 450], vec![b'b'; LEN - 450]].concat(), "viewer {conn}");
    }
}

#[test]
fn r25_a_late_viewer_gets_a_snapshot_that_another_one_still_holds() {
    let mut harness = session();
    attach(&mut harness, 1, json!({}));
    make(&mut harness);
    read(&mut harness, 1, 3);
    harness.print_to(5000 + 2 * CHUNK as u64);
    harness.server.handle_open(ConnId(2), harness.now);
    harness.server.handle_frame(ConnId(2), Frame::Text(&hello(2, 1, json!({})).to_string()), harness.now);
    assert_eq!(read(&mut harness, 2, 13).0.len(), LEN);
    assert_eq!(requests(&mut harness), [], "nothing was made for it");
    let received = harness.send(2, &json!({"type": "ack", "output": 5000}));
    assert_eq!(received, ["output 5000+100", "output 5100+100"], "output continues from its offset");
    // One that is too old, has another size or other lines is not shared.
    attach(&mut harness, 3, json!({"scrollback": 7}));
    make(&mut harness);
    harness.print_to(5001 + 2 * CHUNK as u64);
    attach(&mut harness, 4, json!({}));
    make(&mut harness);
    harness.size = Size::new(99, 24).unwrap();
    harness.server.handle_resized(harness.end, harness.size);
    attach(&mut harness, 5, json!({}));
    make(&mut harness);
}

#[test]
fn r25_a_snapshot_that_every_viewer_has_read_is_forgotten() {
    let mut harness = session();
    attach(&mut harness, 1, json!({}));
    make(&mut harness);
    assert_eq!(read(&mut harness, 1, 20).0.len(), LEN);
    attach(&mut harness, 2, json!({}));
    make(&mut harness);
}

#[test]
fn r25_stalled_readers_lose_their_snapshots_before_anyone_else() {
    let mut harness = session();
    for conn in 1..=3 {
        let grant = if conn == 1 { json!(null) } else { reader("guest")["grant"].clone() };
        attach(&mut harness, conn, json!({"scrollback": conn, "grant": grant}));
        make(&mut harness);
        read(&mut harness, conn, 4);
        harness.now += Duration::from_millis(1);
    }
    // Viewer 1 is the owner and read least recently; 2 goes on reading, 3 does not.
    assert!(!read(&mut harness, 2, 2).0.is_empty());
    attach(&mut harness, 4, json!({"scrollback": 4, "grant": {"write": false}}));
    make(&mut harness);
    assert_eq!(read(&mut harness, 4, 20).0.len(), LEN, "a new viewer does not wait");
    assert_eq!(read(&mut harness, 3, 2).1, Some(1013));
    assert_eq!(read(&mut harness, 1, 20).1, None);
    assert_eq!(read(&mut harness, 2, 20).1, None);
}

#[test]
fn r25_the_owners_snapshot_is_made_before_those_of_waiting_readers() {
    let mut harness = session();
    for conn in 1..=50 {
        attach(&mut harness, conn, json!({"scrollback": conn, "grant": {"write": false}}));
    }
    attach(&mut harness, 51, json!({"scrollback": 51, "grant": {"write": true}}));
    attach(&mut harness, 52, json!({"scrollback": 52}));
    let mut made = Vec::new();
    for _ in 0..4 {
        let requested = requests(&mut harness);
        made.push(requested[0].scrollback);
        let snapshot = Snapshot { offset: harness.screen, size: harness.size, pieces: vec![vec![0; LEN].into()] };
        harness.server.handle_snapshot(requested[0], snapshot);
    }
    assert_eq!(made, [1, 52, 51, 2]);
}

#[test]
fn r25_a_readers_snapshot_takes_no_room_from_writers_and_the_owner() {
    let mut harness = session();
    for (conn, grant) in [(1, json!({"write": true})), (2, json!({"write": true})), (3, json!(null))] {
        attach(&mut harness, conn, json!({"scrollback": conn, "grant": grant}));
        make(&mut harness);
        read(&mut harness, conn, 4);
        harness.now += Duration::from_millis(1);
    }
    attach(&mut harness, 4, json!({"scrollback": 4, "grant": {"write": false}}));
    make(&mut harness);
    assert_eq!(read(&mut harness, 4, 2).1, Some(1013));
    // A writer takes the room of another one, which has not read for longest, but not that of the owner.
    attach(&mut harness, 5, json!({"scrollback": 5, "grant": {"write": true}}));
    make(&mut harness);
    assert_eq!(read(&mut harness, 1, 2).1, Some(1013));
    assert_eq!([2, 3, 5].map(|conn| read(&mut harness, conn, 20).1), [None; 3]);
}

#[test]
fn r25_requests_for_more_scrollback_than_there_is_share_a_snapshot() {
    let mut harness = Harness::with(|config| config.scrollback = 5000);
    harness.snapshot_len = None;
    for (conn, lines) in [(1, 5000_u32), (2, 100_000), (3, 4_000_000_000)] {
        attach(&mut harness, conn, json!({"scrollback": lines}));
    }
    make(&mut harness);
    assert_eq!([1, 2, 3].map(|conn| read(&mut harness, conn, 20).0.len()), [LEN; 3]);
    assert_eq!(requests(&mut harness), []);
}

/// Both changes of size are at the same offset, so the output has no trace of them.
#[test]
fn r25_a_snapshot_from_before_a_resize_that_was_undone_is_not_shared() {
    let mut harness = session();
    attach(&mut harness, 1, json!({}));
    make(&mut harness);
    read(&mut harness, 1, 3);
    for cols in [99, 80] {
        harness.server.handle_resized(harness.end, Size::new(cols, 24).unwrap());
    }
    attach(&mut harness, 2, json!({}));
    make(&mut harness);
}

/// The viewer that it was made for has left, so that no other deadline is as early.
#[test]
fn r25_the_next_snapshot_is_requested_when_one_is_never_made() {
    let mut harness = session();
    attach(&mut harness, 1, json!({"scrollback": 1}));
    assert_eq!(requests(&mut harness).len(), 1);
    harness.now += Duration::from_secs(1);
    attach(&mut harness, 2, json!({"scrollback": 2}));
    harness.server.handle_closed(ConnId(1), harness.now);
    assert_eq!(requests(&mut harness), []);
    let at = harness.server.poll_timeout().unwrap();
    assert_eq!(at, Duration::from_secs(10));
    harness.server.handle_timeout(at);
    assert_eq!(requests(&mut harness)[0].scrollback, 2);
}
