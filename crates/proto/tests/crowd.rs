//! What many viewers of one session cost it.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    reason = "a test may stop at the first surprise, and uses its part of the desk"
)]

mod desk;

use bowline_proto::config::{CROWD, PRESENCE_EVERY};
use bowline_proto::link::{ConnId, Transmit};
use bowline_proto::message::ServerMessage;
use desk::{Desk, hello};
use serde_json::json;

/// The lengths of all lists of who is here that a viewer is sent now.
fn lists(desk: &mut Desk, conn: u64) -> Vec<usize> {
    let sent = std::iter::from_fn(|| desk.server.poll_transmit(ConnId(conn), desk.now));
    sent.filter_map(|transmit| match transmit {
        Transmit::Text(ServerMessage::Presence { clients }) => Some(clients.len()),
        _ => None,
    })
    .collect()
}

#[test]
fn r26_a_few_hear_at_once_who_comes_and_goes() {
    let mut desk = Desk::new();
    for n in 1..=CROWD as u8 {
        desk.open(n.into(), hello(n, n.into(), json!({})));
        for conn in 1..n {
            assert_eq!(lists(&mut desk, conn.into()), [usize::from(n)], "{conn} of {n}");
        }
    }
    desk.server.handle_closed(ConnId(1), desk.now);
    assert_eq!(lists(&mut desk, 2), [CROWD - 1]);
}

#[test]
fn r26_a_crowd_hears_of_all_that_came_together() {
    const COUNT: u8 = 100;
    let mut desk = Desk::new();
    for n in 1..=COUNT {
        desk.open(n.into(), hello(n, n.into(), json!({})));
        if usize::from(n) > CROWD {
            for conn in 1..n {
                let heard = lists(&mut desk, conn.into());
                assert!(heard.is_empty() || usize::from(n) == CROWD + 1, "{conn} of {n}: {heard:?}");
            }
        }
    }
    assert_eq!(desk.server.poll_timeout(), Some(desk.now + PRESENCE_EVERY), "the driver is woken for it");
    desk.now += PRESENCE_EVERY;
    for conn in 1..=COUNT {
        let heard = lists(&mut desk, conn.into());
        let newest = conn == COUNT;
        assert_eq!(heard, if newest { vec![] } else { vec![usize::from(COUNT)] }, "{conn}");
    }
}
