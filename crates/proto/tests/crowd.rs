//! Presence with few and with many viewers.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    reason = "a test may panic, and this one uses only part of the harness"
)]

mod harness;

use bowline_proto::config::{CROWD_THRESHOLD, PRESENCE_EVERY};
use bowline_proto::link::{ConnId, Transmit};
use bowline_proto::message::ServerMessage;
use harness::{Harness, hello};
use serde_json::json;

/// The number of clients in each presence message that the server sends on a connection now.
fn presence(harness: &mut Harness, conn: u64) -> Vec<usize> {
    let sent = std::iter::from_fn(|| harness.server.poll_transmit(ConnId(conn), harness.now));
    sent.filter_map(|transmit| match transmit {
        Transmit::Text(ServerMessage::Presence { clients }) => Some(clients.len()),
        _ => None,
    })
    .collect()
}

#[test]
fn r26_a_few_viewers_get_each_change_of_presence_at_once() {
    let mut harness = Harness::new();
    for n in 1..=CROWD_THRESHOLD as u8 {
        harness.open(n.into(), hello(n, n.into(), json!({})));
        for conn in 1..n {
            assert_eq!(presence(&mut harness, conn.into()), [usize::from(n)], "{conn} of {n}");
        }
    }
    harness.server.handle_closed(ConnId(1), harness.now);
    assert_eq!(presence(&mut harness, 2), [CROWD_THRESHOLD - 1]);
}

#[test]
fn r26_many_viewers_get_changes_of_presence_together() {
    const COUNT: u8 = 100;
    let mut harness = Harness::new();
    for n in 1..=COUNT {
        harness.open(n.into(), hello(n, n.into(), json!({})));
        if usize::from(n) > CROWD_THRESHOLD {
            for conn in 1..n {
                let received = presence(&mut harness, conn.into());
                assert!(received.is_empty() || usize::from(n) == CROWD_THRESHOLD + 1, "{conn} of {n}: {received:?}");
            }
        }
    }
    assert_eq!(
        harness.server.poll_timeout(),
        Some(harness.now + PRESENCE_EVERY),
        "the driver is woken to send presence"
    );
    harness.now += PRESENCE_EVERY;
    for conn in 1..=COUNT {
        let received = presence(&mut harness, conn.into());
        let newest = conn == COUNT;
        assert_eq!(received, if newest { vec![] } else { vec![usize::from(COUNT)] }, "{conn}");
    }
}
