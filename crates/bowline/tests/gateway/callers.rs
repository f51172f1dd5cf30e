//! Callers of one session: what one of them does must not keep the others out.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use bowline_proto::frame;
use serde_json::{Value, json};

use super::gateway::{PATIENCE, World, wait_until};
use super::refusals::{hello, until_type};
use super::ws::{self, BINARY, Ws};

fn open(world: &World, id: &str, token: &str) -> Ws {
    let bearer = format!("Bearer {token}");
    ws::open(world.address, &format!("/v1/sessions/{id}/attach"), &[("Authorization", &bearer)]).unwrap().open()
}

/// Attaches, and returns the connection with the `attached` message.
fn attach(world: &World, id: &str, token: &str, hello: &str) -> (Ws, Value) {
    let mut ws = open(world, id, token);
    ws.send_text(hello).unwrap();
    let attached = until_type(&mut ws, "attached");
    (ws, attached)
}

#[test]
fn r26_a_reader_that_knows_a_client_id_does_not_take_its_place() {
    let world = World::new();
    let id = world.shell("stty -echo; exec cat");
    let (mut writer, attached) = attach(&world, &id, &world.token, &hello(1, 1, &json!({})));
    assert_eq!(attached["you"]["write"], true);
    let token = world.new_token("reader", "read");
    let (mut reader, attached) = attach(&world, &id, &token, &hello(1, 1 << 40, &json!({})));
    assert_eq!((&attached["you"]["write"], &attached["input"]), (&json!(false), &json!(null)));
    // Both are attached. Each finds its own id once, and no id of the other.
    for ws in [&mut writer, &mut reader] {
        let own = json!("00000000-0000-4000-8000-000000000001");
        let clients = loop {
            let presence = until_type(ws, "presence");
            let clients: Vec<Value> =
                presence["clients"].as_array().unwrap().iter().map(|entry| entry["client"].clone()).collect();
            if clients.len() == 2 {
                break clients;
            }
        };
        assert_eq!(clients.iter().filter(|client| **client == own).count(), 1, "{clients:?}");
    }
    writer.send(BINARY, &[&[3, 0, 0, 0, 0, 0, 0, 0, 0], &b"still here\n"[..]].concat()).unwrap();
    assert_eq!(until_type(&mut writer, "ack")["input"], 11);
    wait_until("the program has read the writer's line", || {
        String::from_utf8_lossy(&world.log_of(&id)).contains("still here").then_some(())
    });
}

/// Attaches readers until one is refused. Returns how many were attached.
fn fill(world: &World, id: &str, token: &str, held: &mut Vec<Ws>) -> usize {
    for n in 0..100 {
        let mut ws = open(world, id, token);
        ws.send_text(&hello(held.len() as u64 + 1000, 1, &json!({}))).unwrap();
        let first = loop {
            match ws.next().unwrap() {
                Some(ws::Message::Text(text)) => break serde_json::from_str::<Value>(&text).unwrap()["type"].clone(),
                Some(ws::Message::Close(code, reason)) => {
                    assert!(code == 4429 && reason.contains("retry_after="), "{code} {reason}");
                    return n;
                }
                other => assert!(other.is_some(), "the connection was cut"),
            }
        };
        assert_eq!(first, "attached");
        held.push(ws);
    }
    panic!("no reader was refused");
}

#[test]
fn r26_readers_cannot_take_every_place() {
    let world = World::new();
    // With 160 open files, a session takes 32 viewers: 2 places are the owner's, and 8 are for writers.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -n 160; \"$0\" new --detach -- cat"]).arg(env!("CARGO_BIN_EXE_bowline"));
    let bowline = world.bowline(&[]);
    shell.envs(bowline.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(world.path());
    let id = String::from_utf8(shell.output().unwrap().stdout).unwrap().trim().to_owned();
    let mut held = Vec::new();
    let readers = ["a", "b", "c"].map(|name| world.new_token(name, "read"));
    let taken = readers.map(|token| fill(&world, &id, &token, &mut held));
    assert_eq!(taken, [16, 6, 0], "half of them for one token, and 22 for all readers");
    let (_, attached) = attach(&world, &id, &world.token, &hello(1, 1, &json!({})));
    assert_eq!(attached["you"]["write"], true, "a writer gets a place");
    let mut owner = UnixStream::connect(world.session_dir(&id).join("sock")).unwrap();
    owner.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut hello_frame = Vec::new();
    frame::put_text(&mut hello_frame, &hello(2, 1, &json!({})));
    owner.write_all(&hello_frame).unwrap();
    let mut received = vec![0; frame::HEADER + r#"{"type":"attached""#.len()];
    owner.read_exact(&mut received).unwrap();
    assert_eq!(&received[frame::HEADER..], br#"{"type":"attached""#, "so does the owner on this machine");
}
