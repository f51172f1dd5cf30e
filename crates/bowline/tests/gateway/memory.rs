//! What clients can make the gateway hold: long descriptions, lists that are not read, and unfinished request heads; and
//! that it lets go of it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::hostile::memory;
use super::http;

/// Sessions with long arguments, and how long.
const SESSIONS: usize = 20;
const ARGV: usize = 140_000;

/// Starts sessions with long arguments. Returns the id of one.
fn start_long(world: &World) -> String {
    // A single argument can have at most 128 KiB.
    let half = "x".repeat(ARGV / 2);
    let start =
        |_| world.call("POST", "/v1/sessions", &json!({"kind": "terminal", "argv": ["sleep", "1d", &half, &half]}));
    // `sleep` refuses the arguments and ends, which is as good: an ended session is listed, too.
    let ids: Vec<Value> = (0..SESSIONS).map(start).map(|made| made.json()["id"].clone()).collect();
    ids[0].as_str().unwrap().to_owned()
}

/// Sends a request without reading the response.
fn send(world: &World, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(world.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n", world.address, world.bearer());
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn r52_long_arguments_do_not_make_long_lists() {
    let world = World::new();
    let id = start_long(&world);
    let list = world.call("GET", "/v1/sessions", &Value::Null);
    assert!(list.body.len() < SESSIONS * 6000, "the list has {} bytes", list.body.len());
    let sessions = list.json()["sessions"].as_array().unwrap().clone();
    assert_eq!(sessions.len(), SESSIONS);
    assert!(sessions.iter().all(|session| session["truncated"] == true && session["argv"][0] == "sleep"));
    let whole = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
    assert_eq!((whole["argv"][3].as_str().unwrap().len(), &whole["truncated"]), (ARGV / 2, &Value::Null));
    let mut events = send(&world, "/v1/events");
    let mut board = Vec::new();
    while !String::from_utf8_lossy(&board).contains("\"board\"") || !board.ends_with(b"\n\n\r\n") {
        let mut piece = [0; 64 << 10];
        let read = events.read(&mut piece).unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&board));
        board.extend_from_slice(&piece[..read]);
        assert!(board.len() < SESSIONS * 7000, "the board has more than {} bytes", board.len());
    }
}

/// Each client asks after the one before has got its answer, so they cannot share it by chance.
#[test]
fn r52_lists_that_nobody_reads_take_little_memory() {
    let world = World::new();
    start_long(&world);
    let list = || world.call("GET", "/v1/sessions", &Value::Null);
    let len = list().body.len();
    let before = memory(world.gateway_pid());
    let unread: Vec<TcpStream> = (0..200)
        .map(|n| {
            let stream = send(&world, if n % 2 == 0 { "/v1/sessions" } else { "/v1/events" });
            assert_eq!(list().status, 200);
            stream
        })
        .collect();
    let after = memory(world.gateway_pid());
    assert!(after < before + (24 << 20), "{before} bytes grew to {after}");
    for mut stream in unread.into_iter().step_by(2) {
        let mut answer = vec![0; len];
        stream.read_exact(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
    }
}

/// A refused or closed socket is as good as one that is held: only memory counts.
#[test]
fn r52_unfinished_heads_take_little_memory() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let world = World::with(&[], "[gateway.limits]\nhead_within = \"5m\"\n");
    let health = || http::request(world.address, "GET", "/healthz", &[], b"").unwrap().status;
    assert_eq!(health(), 200);
    let before = memory(world.gateway_pid());
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nX-Long: {}", world.address, "x".repeat(60_000));
    let mut most = 0;
    let mut begun: Vec<TcpStream> = Vec::new();
    for n in 0..2000 {
        let mut stream = TcpStream::connect(world.address).unwrap();
        // The gateway may have closed it already.
        let _ = stream.write_all(head.as_bytes());
        begun.push(stream);
        if n % 100 == 0 {
            assert_eq!(health(), 200, "a new connection gets in");
            most = most.max(memory(world.gateway_pid()));
        }
    }
    wait_until("the oldest is closed", || {
        begun[0].set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        (!matches!(begun[0].read(&mut [0; 1024]), Ok(1..))).then_some(())
    });
    most = most.max(memory(world.gateway_pid()));
    assert!(most < before + (64 << 20), "{before} bytes grew to {most}");
    begun.last_mut().unwrap().write_all(b"\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    begun.last_mut().unwrap().read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "the newest is not closed: {}", String::from_utf8_lossy(&answer));
}

/// Without help the C library keeps nearly all of it, because a few blocks in between are still in use.
#[test]
fn r52_the_memory_of_a_burst_is_given_back() {
    let world = World::new();
    assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).status, 200);
    let before = memory(world.gateway_pid());
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nX-Long: {}", world.address, "x".repeat(60_000));
    let begin = |_| {
        let mut stream = TcpStream::connect(world.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let burst: Vec<TcpStream> = (0..400).map(begin).collect();
    wait_until("the burst takes memory", || (memory(world.gateway_pid()) > before + (16 << 20)).then_some(()));
    drop(burst);
    wait_until("it is given back", || (memory(world.gateway_pid()) < before + (8 << 20)).then_some(()));
}
