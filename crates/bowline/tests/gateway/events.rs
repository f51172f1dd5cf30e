//! The event stream reports every change of a session, over SSE and WebSocket alike.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use super::gateway::{PATIENCE, World, wait_until};
use super::ws::{self, Handshake, Message, Ws};

/// An event stream over SSE or WebSocket.
enum Stream {
    Sse(BufReader<TcpStream>, String),
    Socket(Ws),
}

impl Stream {
    fn sse(world: &World, token: &str) -> Stream {
        let mut stream = TcpStream::connect(world.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head =
            format!("GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n", world.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while !line.trim().is_empty() {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Stream::Sse(reader, String::new())
    }

    fn socket(world: &World, token: &str) -> Stream {
        let bearer = format!("Bearer {token}");
        let Ok(Handshake::Open(ws)) = ws::open(world.address, "/v1/events", &[("Authorization", &bearer)]) else {
            panic!("the event stream was refused");
        };
        Stream::Socket(ws)
    }

    /// The next message except pings; `None` at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        loop {
            let text = match self {
                Stream::Sse(reader, text) => next_data(reader, text)?,
                Stream::Socket(ws) => match ws.next() {
                    Ok(Some(Message::Text(text))) => text,
                    Ok(Some(Message::Binary(_))) => panic!("a binary message on an event stream"),
                    Ok(Some(Message::Close(..)) | None) | Err(_) => return None,
                },
            };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["type"] != "ping" {
                return Some(message);
            }
        }
    }

    /// Reads until `holds` is true for a message. Returns that message.
    #[track_caller]
    fn until(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.next() {
                Some(message) if holds(&message) => return message,
                Some(_) => {}
                None => panic!("the stream ended before: {what}"),
            }
        }
        panic!("waited in vain for: {what}");
    }
}

fn next_data(reader: &mut BufReader<TcpStream>, text: &mut String) -> Option<String> {
    loop {
        if let Some((block, rest)) = text.split_once("\n\n") {
            let data = block.lines().find_map(|line| line.strip_prefix("data: ")).map(ToOwned::to_owned);
            *text = rest.to_owned();
            match data {
                Some(data) => return Some(data),
                None => continue,
            }
        }
        let mut size = String::new();
        reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).ok()?;
        text.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
    }
}

/// Opens a stream of each form, and reads their first two messages. Returns the board, which is the same in both.
fn both(world: &World) -> ([Stream; 2], Value) {
    let mut streams = [Stream::sse(world, &world.token), Stream::socket(world, &world.token)];
    let boards = streams.each_mut().map(|stream| {
        assert_eq!(stream.next().unwrap()["type"], "welcome");
        let board = stream.next().unwrap();
        assert_eq!(board["type"], "board");
        board
    });
    let [one, other] = boards;
    let without_time = |board: &Value| {
        let sessions = board["sessions"].as_array().unwrap();
        sessions.iter().map(without_time).collect::<Vec<_>>()
    };
    assert_eq!(without_time(&one), without_time(&other));
    (streams, one)
}

/// A session without the time of its last output, which is less exact if it was read from files.
fn without_time(session: &Value) -> Value {
    let mut session = session.clone();
    session["active"].take();
    session
}

/// Waits until both streams send a message for which `holds` is true. Returns it.
#[track_caller]
fn wait_for_both(streams: &mut [Stream; 2], what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let [a, b] = streams.each_mut().map(|stream| stream.until(what, &holds));
    let fields =
        |message: &Value| message["session"].as_object().map(|session| session.keys().cloned().collect::<Vec<_>>());
    assert_eq!((&a["type"], fields(&a)), (&b["type"], fields(&b)), "{what}");
    a
}

fn session_with(id: &str, field: &str, value: impl Into<Value>) -> impl Fn(&Value) -> bool {
    let (pointer, id, value) = (format!("/session/{field}"), id.to_owned(), value.into());
    move |message| message["session"]["id"] == id.as_str() && message.pointer(&pointer) == Some(&value)
}

#[test]
fn r46_every_change_of_a_session_is_reported() {
    let world = World::new();
    let before = world.shell("sleep 1000");
    let (mut streams, board) = both(&world);
    assert_eq!(board["sessions"].as_array().unwrap().len(), 1);
    let info = world.call("GET", &format!("/v1/sessions/{before}"), &Value::Null).json();
    assert_eq!(without_time(&board["sessions"][0]), without_time(&info));

    let script = r#"while read -r word; do case $word in
title) printf '\033]0;new title\007';; cwd) printf '\033]7;file:///usr\007';; end) exit 7;; esac; done"#;
    let id = world.shell(script);
    wait_for_both(&mut streams, "a new session", session_with(&id, "state", "running"));
    world.call("PATCH", &format!("/v1/sessions/{id}"), &json!({ "name": "renamed" }));
    wait_for_both(&mut streams, "a new name", session_with(&id, "name", "renamed"));
    world.ok(&["send", &id, "title", "--enter"]);
    wait_for_both(&mut streams, "a new title", session_with(&id, "title", "new title"));
    world.ok(&["send", &id, "cwd", "--enter"]);
    wait_for_both(&mut streams, "a new directory", session_with(&id, "cwd", "/usr"));

    let mut viewer = world.attach(&id, &[]).open();
    let hello = json!({
        "type": "hello", "version": 1, "client": "00000000-0000-4000-8000-00000000000a", "conn": 1, "cursor": null,
        "size": { "cols": 90, "rows": 30 }, "lag": "skip", "scrollback": 0,
    });
    viewer.send_text(&hello.to_string()).unwrap();
    wait_for_both(&mut streams, "a viewer's size", session_with(&id, "size/cols", 90));
    let mut late = Stream::socket(&world, &world.token);
    let board = late.until("the board", |message| message["type"] == "board");
    let now = board["sessions"].as_array().unwrap().iter().find(|session| session["id"] == id.as_str()).unwrap();
    assert_eq!(now["clients"], 1);
    drop(viewer);
    wait_for_both(&mut streams, "the viewer left", session_with(&id, "clients", 0));

    world.ok(&["send", &id, "end", "--enter"]);
    let ended = wait_for_both(&mut streams, "the exit", session_with(&id, "state", "exited"));
    assert_eq!(ended["session"]["exit"]["code"], 7);
    let restarted = world.call("POST", &format!("/v1/sessions/{id}/restart"), &Value::Null);
    assert_eq!(restarted.status, 200, "{}", restarted.text());
    let again = wait_for_both(&mut streams, "the restart", session_with(&id, "state", "running"));
    assert_ne!(again["session"]["epoch"], ended["session"]["epoch"]);
    world.call("DELETE", &format!("/v1/sessions/{id}"), &Value::Null);
    let gone = json!({ "type": "session_gone", "id": id });
    wait_for_both(&mut streams, "the session was forgotten", |message| *message == gone);
}

#[test]
fn r46_a_killed_session_process_is_reported_as_lost() {
    let world = World::new();
    let id = world.shell("sleep 1000");
    let (mut streams, _) = both(&world);
    let events = std::fs::read_to_string(world.state().join("sessions").join(&id).join("events.jsonl")).unwrap();
    let started: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    let pid = started["event"]["pid"].as_i64().unwrap() as i32;
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_for_both(&mut streams, "the session is lost", session_with(&id, "state", "lost"));
}

#[test]
fn r46_a_stopped_session_process_does_not_delay_others() {
    let world = World::new();
    let (hung, healthy) = (world.shell("sleep 1000"), world.shell("cat"));
    let events = std::fs::read_to_string(world.state().join("sessions").join(&hung).join("events.jsonl")).unwrap();
    let started: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(started["event"]["pid"].as_i64().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let (mut streams, board) = both(&world);
    assert_eq!(board["sessions"].as_array().unwrap().len(), 2);
    world.call("PATCH", &format!("/v1/sessions/{healthy}"), &json!({ "name": "healthy" }));
    wait_for_both(&mut streams, "a new name", session_with(&healthy, "name", "healthy"));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    world.call("PATCH", &format!("/v1/sessions/{hung}"), &json!({ "name": "again" }));
    wait_for_both(&mut streams, "the stopped session continues", session_with(&hung, "name", "again"));
}

#[test]
fn r19_after_a_kill_of_the_gateway_a_stream_starts_with_the_whole_board() {
    let mut world = World::new();
    let (kept, removed) = (world.shell("sleep 1000"), world.shell("sleep 1000"));
    let mut stream = Stream::socket(&world, &world.token);
    let first = stream.next().unwrap();
    world.kill_gateway();
    while stream.next().is_some() {}
    world.ok(&["kill", &removed, "--grace", "0s"]);
    world.start_gateway();
    let mut stream = Stream::socket(&world, &world.token);
    let second = stream.next().unwrap();
    assert_ne!(first["epoch"], second["epoch"], "a restarted gateway has another epoch");
    let board = stream.next().unwrap();
    let ids: Vec<&Value> = board["sessions"].as_array().unwrap().iter().map(|session| &session["id"]).collect();
    assert_eq!(ids, [&json!(kept)]);
}

#[test]
fn r46_two_hundred_sessions_and_a_subscriber_that_does_not_read() {
    let world = World::new();
    let stopped = Stream::socket(&world, &world.token);
    let ids: Vec<String> = (0..200).map(|_| world.shell("exec sleep 1000")).collect();
    // The board notices a new session a moment after the request that started it.
    wait_until("the board has all sessions", || {
        let mut stream = Stream::socket(&world, &world.token);
        let board = stream.until("a board", |message| message["type"] == "board");
        (board["sessions"].as_array().unwrap().len() == ids.len()).then_some(())
    });
    let (mut streams, _) = both(&world);
    for (n, id) in ids.iter().enumerate().step_by(20) {
        world.call("PATCH", &format!("/v1/sessions/{id}"), &json!({ "name": format!("n{n}") }));
        wait_for_both(&mut streams, "a new name", session_with(id, "name", format!("n{n}")));
    }
    drop(stopped);
}

#[test]
fn r50_revoking_a_token_ends_its_streams() {
    let world = World::new();
    let token = world.new_token("other", "read");
    let token = token.trim();
    let mut streams = [Stream::sse(&world, token), Stream::socket(&world, token)];
    streams.iter_mut().for_each(|stream| assert_eq!(stream.next().unwrap()["type"], "welcome"));
    let list = world.call("GET", "/v1/tokens", &Value::Null).json();
    let id = list["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "other").unwrap()["id"].clone();
    assert_eq!(world.call("DELETE", &format!("/v1/tokens/{}", id.as_str().unwrap()), &Value::Null).status, 204);
    let [sse, Stream::Socket(ws)] = &mut streams else { unreachable!("as opened") };
    assert_eq!(ws.until_close().0, 4401);
    while sse.next().is_some() {}
}
