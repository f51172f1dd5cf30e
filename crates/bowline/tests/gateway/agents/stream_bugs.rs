//! Bugs of other systems of this kind, as stories that must not happen here.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::super::gateway::{PATIENCE, World};
use super::super::ws::{self, Handshake, Message};
use super::stream::{Received, Sse, read_until};
use super::{until, world};

const CLIENT: &str = "3f0c1b9e-2d7a-4c38-9a55-0123456789ab";

fn is_end_of(run: &str) -> impl Fn(&Value) -> bool {
    move |event| event["type"] == "complete" && event["run"] == run
}

/// A page reconnects before the server notices that its first stream is dead.
#[test]
fn r38_a_stale_close_of_the_first_stream_does_not_remove_the_second() {
    let world = world();
    let id = world.agent();
    let query = format!("watch={id}&client={CLIENT}");
    let first = Sse::open(&world, &query, None);
    let mut second = Sse::open(&world, &query, None);
    until("both are there", || world.describe(&id)["clients"] == 2);
    drop(first);
    until("the first is gone", || world.describe(&id)["clients"] == 1);
    let run = world.prompt(&id, "a", &["say still here"]);
    read_until(|| Some(second.next()?.0), &mut Received::default(), "the run ends", is_end_of(&run));
}

/// One tab's login ends while another tab drives the same session.
#[test]
fn r38_the_end_of_one_tabs_login_does_not_detach_a_session_that_another_drives() {
    let world = world();
    let id = world.agent();
    let made = world.call("POST", "/v1/tokens", &json!({"name": "tab", "scope": "write"})).json();
    let token = made["token"].as_str().unwrap();
    let query = format!("watch={id}");
    let mut tab = Sse::try_open(world.address, token, &query, None).unwrap();
    let mut other = Sse::open(&world, &query, None);
    let run = world.prompt(&id, "a", &["say working", &format!("wait {}", world.file("go"))]);
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(world.call("DELETE", &path, &Value::Null).status, 204);
    while tab.next().is_some() {}
    std::fs::write(world.file("go"), "").unwrap();
    read_until(|| Some(other.next()?.0), &mut Received::default(), "the run ends", is_end_of(&run));
    assert_eq!(world.complete(&id, &run)["success"], true);
}

/// Streams that come and go, as those of a phone with a bad network, leave nothing behind in the session.
#[test]
fn r46_streams_that_come_and_go_do_not_leak_observers() {
    let world = world();
    let id = world.agent();
    for _ in 0..40 {
        let mut stream = Sse::open(&world, &format!("watch={id}&client={CLIENT}"), None);
        while stream.next().unwrap().0["type"] != "watched" {}
    }
    until("none is left", || world.describe(&id)["clients"] == 0);
    world.run_prompt(&id, "a", &["say fine"]);
}

/// A client whose id one call accepts and another refuses is two clients, or none.
#[test]
fn r38_a_client_id_that_one_call_accepts_is_accepted_by_all_of_them() {
    let world = world();
    let id = world.agent();
    let long = format!("{CLIENT}a");
    let upper = CLIENT.to_uppercase();
    let without_hyphens = CLIENT.replace('-', "");
    let misplaced = "3f0c1b9e2-d7a-4c38-9a55-0123456789ab";
    let not_hex = "3f0c1b9e-2d7a-4c38-9a55-0123456789ag";
    let not_ascii = "3f0c1b9e-2d7a-4c38-9a55-0123456789é";
    let bad = [
        "",
        " ",
        "ann",
        &long,
        &CLIENT[..35],
        &upper,
        &without_hyphens,
        misplaced,
        not_hex,
        not_ascii,
        "{}",
        &format!(" {CLIENT}"),
        &format!("{CLIENT}\n"),
        &format!("{CLIENT}\u{0}"),
    ]
    .map(str::to_owned);
    let good = [CLIENT, "00000000-0000-4000-8000-00000000000a"].map(str::to_owned);
    for (client, is_good) in good.into_iter().map(|id| (id, true)).chain(bad.into_iter().map(|id| (id, false))) {
        let escaped: String = client.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("/v1/events?client={escaped}");
        assert_eq!(opens_stream(&world, &path), is_good, "a stream over SSE for {client:?}");
        assert_eq!(opens_socket(&world, &path), is_good, "a stream over a WebSocket for {client:?}");
        assert_eq!(attaches(&world, &id, &client), is_good, "an attach for {client:?}");
    }
}

/// Whether the gateway begins a stream of events.
fn opens_stream(world: &World, path: &str) -> bool {
    let (address, token) = (world.address, &world.token);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    match line.split(' ').nth(1) {
        Some("200") => true,
        Some("400") => false,
        _ => panic!("{line}"),
    }
}

/// Whether the gateway opens a WebSocket.
fn opens_socket(world: &World, path: &str) -> bool {
    let bearer = world.bearer();
    match ws::open(world.address, path, &[("Authorization", &bearer)]).unwrap() {
        Handshake::Open(_) => true,
        Handshake::Refused(response) => {
            assert_eq!(response.status, 400, "{}", response.text());
            false
        }
    }
}

/// Whether a client with this id is attached to the session.
fn attaches(world: &World, session: &str, client: &str) -> bool {
    let mut ws = world.attach(session, &[]).open();
    let hello = json!({"type": "hello", "version": 1, "client": client, "conn": 1, "cursor": null});
    ws.send_text(&hello.to_string()).unwrap();
    loop {
        match ws.next().unwrap() {
            Some(Message::Text(text)) if text.contains(r#""type":"attached""#) => return true,
            Some(Message::Text(_) | Message::Binary(_)) => {}
            Some(Message::Close(..)) | None => return false,
        }
    }
}

/// A command whose id one call accepts and another refuses can never be confirmed.
#[test]
fn r37_a_command_id_that_one_call_accepts_is_accepted_by_all_of_them() {
    let world = world();
    let id = world.agent();
    let long = "x".repeat(65);
    let ids = ["a", "A-b_c.1:2", &long[..64], "", " ", "a b", "é", "a/b", "a\nb", "\u{0}", &long];
    for (number, command) in ids.into_iter().enumerate() {
        let prompt = json!({"type": "prompt", "text": "say hi"});
        let posted = world.command(&id, command, &prompt).status == 202;
        let created = world.new_agent(&json!({"prompt": {"id": command, "text": "say hi"}})).status == 201;
        assert_eq!(posted, created, "{command:?}");
        let recorded = world.events_of(&id, "prompt").iter().any(|event| event["command"] == command);
        assert_eq!(posted, recorded, "{command:?}");
        assert_eq!(world.command(&id, command, &prompt).status == 200, posted, "a repeat of {command:?}");
        // No more than 16 prompts wait.
        let runs = world.events_of(&id, "prompt").len();
        until("it is run", || world.events_of(&id, "complete").len() == runs);
        assert!(number > 2 || posted, "{command:?}");
        assert!(command.len() < 65 || !posted, "{command:?}");
    }
}
