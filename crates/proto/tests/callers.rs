//! Clients of different callers: none can take the place, the size or the name of another.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    reason = "a test may panic, and this one uses only part of the harness"
)]

mod harness;

use bowline_proto::ids::ClientId;
use bowline_proto::link::{ConnId, Transmit};
use bowline_proto::message::{PresenceEntry, ServerMessage};
use harness::{Harness, client, cursor, hello};
use serde_json::{Value, json};

fn reader(caller: &str) -> Value {
    json!({"grant": {"write": false, "caller": caller}})
}

fn writer(caller: &str) -> Value {
    json!({"grant": {"write": true, "caller": caller}, "cursor": cursor(0)["cursor"]})
}

/// The newest presence that the server sends on a connection now.
fn presence(harness: &mut Harness, conn: u64) -> Vec<PresenceEntry> {
    let sent = std::iter::from_fn(|| harness.server.poll_transmit(ConnId(conn), harness.now));
    let lists = sent.filter_map(|transmit| match transmit {
        Transmit::Text(ServerMessage::Presence { clients }) => Some(clients),
        _ => None,
    });
    lists.last().unwrap()
}

#[test]
fn r26_a_caller_that_knows_a_client_id_does_not_take_its_place() {
    let mut harness = Harness::new();
    assert_eq!(harness.open(1, hello(1, 1, writer("phone")))[0], "exact at 0 input 0 owner 80");
    assert!(harness.input(1, 0, b"ab").is_empty());
    assert!(harness.open(2, hello(1, 9, reader("guest")))[0].ends_with("input null reader 80"));
    assert_eq!(harness.open(3, hello(1, 9, writer("laptop")))[0], "exact at 0 input null writer 80");
    assert_eq!(harness.open(4, hello(1, 9, cursor(0)))[0], "exact at 0 input null writer 80", "the local owner");
    assert!(harness.input(1, 2, b"cd").is_empty(), "the first client is still attached");
    assert_eq!((harness.server.input(), harness.server.clients()), (&b"abcd"[..], 4));
    // Its own caller may take it over, as always.
    assert_eq!(harness.open(5, hello(1, 2, writer("phone")))[0], "exact at 0 input 4 owner 80");
    assert_eq!(harness.receive(1), ["close 4409"]);
}

#[test]
fn r26_the_size_is_inherited_only_within_a_caller() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, writer("phone")));
    harness.server.handle_closed(ConnId(1), harness.now);
    let reload = |caller| {
        let mut hello = writer(caller);
        hello["was"] = json!(client(1));
        hello
    };
    assert_eq!(harness.open(2, hello(2, 1, reload("laptop")))[0], "exact at 0 input 0 writer 80");
    assert_eq!(harness.open(3, hello(3, 1, reload("phone")))[0], "exact at 0 input 0 owner 80");
}

#[test]
fn r26_presence_shows_a_viewer_its_own_id_and_not_those_of_others() {
    let mut harness = Harness::with(|config| config.public_ids = [7; 16]);
    harness.open(1, hello(1, 1, writer("phone")));
    harness.open(2, hello(2, 1, reader("guest")));
    harness.open(3, hello(3, 1, reader("guest")));
    let (first, second) = (presence(&mut harness, 1), presence(&mut harness, 2));
    let ids = |list: &[PresenceEntry]| list.iter().map(|entry| entry.client.clone()).collect::<Vec<_>>();
    assert_eq!((&first[0].client, &second[1].client), (&client(1), &client(2)));
    assert!(!ids(&first).contains(&client(2)) && !ids(&second).contains(&client(1)));
    assert!(second[0].size && second[0].write && !second[1].write);
    // Others see the same id after the client reconnects.
    harness.open(4, hello(1, 2, writer("phone")));
    let (writer, third) = (second[0].client.clone(), second[2].client.clone());
    assert_eq!(ids(&presence(&mut harness, 2)), [client(2), third, writer]);
}

/// An older gateway does not name its callers.
#[test]
fn r26_a_reader_of_an_older_gateway_cannot_replace_a_writer() {
    let mut harness = Harness::new();
    harness.open(1, hello(1, 1, json!({"grant": {"write": true}})));
    assert_eq!(
        harness.open(2, hello(1, 2, json!({"grant": {"write": false}}))),
        ["error not_allowed fatal", "close 4403"]
    );
    assert_eq!(harness.input(1, 0, b"x"), Vec::<String>::new());
    // A connection that may write can replace it.
    assert!(harness.open(3, hello(1, 3, json!({"grant": {"write": true}})))[0].starts_with("snapshot"));
    assert_eq!(harness.receive(1), ["close 4409"]);
}

/// Attaches viewers until one is refused. Returns how many were attached.
fn fill(harness: &mut Harness, conns: &mut u64, more: &Value) -> usize {
    let before = harness.server.clients();
    loop {
        *conns += 1;
        let id = ClientId::from_random(u128::from(*conns).to_be_bytes());
        let mut hello = hello(0, 1, more.clone());
        hello["client"] = json!(id);
        if harness.open(*conns, hello) == ["close 4429"] {
            return (harness.server.clients() - before) as usize;
        }
    }
}

#[test]
fn r26_no_flood_of_readers_keeps_a_writer_or_the_owner_out() {
    let (mut harness, mut conns) = (Harness::with(|config| config.viewers = 64), 0);
    assert_eq!(fill(&mut harness, &mut conns, &reader("a")), 32, "half of them for one caller");
    assert_eq!(fill(&mut harness, &mut conns, &reader("b")), 12, "44 for all readers");
    assert_eq!(fill(&mut harness, &mut conns, &reader("d")), 0);
    let observing = json!({"grant": {"write": true, "caller": "e"}, "observe": true});
    assert_eq!(fill(&mut harness, &mut conns, &observing), 0, "it has chosen to be a reader");
    assert_eq!(fill(&mut harness, &mut conns, &writer("e")), 16, "the writers' reserve");
    assert_eq!(fill(&mut harness, &mut conns, &writer("f")), 0);
    assert_eq!(fill(&mut harness, &mut conns, &json!({"observe": true})), 4, "the owner's reserve");
    assert_eq!(harness.server.clients(), 64);
    // A client that attaches again takes its own place, even now.
    let id = ClientId::from_random(1u128.to_be_bytes());
    let mut again = hello(0, 2, reader("a"));
    again["client"] = json!(id);
    assert!(harness.open(10_000, again)[0].ends_with("input 0 reader 80"));
    assert_eq!(harness.receive(1), ["close 4409"]);
}

#[test]
fn r26_the_owner_may_take_every_place() {
    let (mut harness, mut conns) = (Harness::with(|config| config.viewers = 64), 0);
    assert_eq!(fill(&mut harness, &mut conns, &json!({})), 64);
}
