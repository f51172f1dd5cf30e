//! Bad input of every kind: each gets a clear close code or refusal, and gateway and other sessions are not affected.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::http;
use super::refusals::{check_problem, hello, until_type};
use super::viewer::Viewer;
use super::ws::{self, BINARY, PING, TEXT, Ws, frame};

/// A viewer of another session, which must not be affected.
struct Neighbour {
    viewer: Viewer,
    typed: u32,
}

impl Neighbour {
    fn new(world: &World) -> Neighbour {
        let id = world.shell("exec cat");
        let mut viewer = Viewer::new(world.address, &world.token, &id, 0xbeef);
        viewer.dial(Duration::from_secs(30)).unwrap();
        Neighbour { viewer, typed: 0 }
    }

    /// Checks that typing still works, and that the gateway is healthy.
    #[track_caller]
    fn check(&mut self, world: &World) {
        self.typed += 1;
        let line = format!("undisturbed {}\n", self.typed);
        self.viewer.type_in(&line);
        self.viewer.until_output(&line.replace('\n', "\r\n").repeat(2));
        let health = http::request(world.address, "GET", "/healthz", &[], b"").unwrap();
        assert_eq!(health.status, 200, "{}", health.text());
    }
}

/// Opens a connection and attaches.
#[track_caller]
fn attached(world: &World, id: &str, client: u64) -> Ws {
    let mut ws = world.attach(id, &[]).open();
    ws.send_text(&hello(client, 1, &json!({}))).unwrap();
    until_type(&mut ws, "attached");
    ws
}

#[track_caller]
fn check_closed(mut ws: Ws, wanted: &[u16], what: &str) {
    let (code, reason) = ws.until_close();
    assert!(wanted.contains(&code), "{what}: closed {code} {reason}");
}

/// Frames that no library would send, and the close codes that they must get.
fn malformed() -> Vec<(&'static str, Vec<u8>, &'static [u16])> {
    let two = |one: Vec<u8>, other: Vec<u8>| [one, other].concat();
    let close = |code: u16, reason: &[u8]| frame(0x88, &[&code.to_be_bytes(), reason].concat());
    let mut endless = vec![0x82, 0x80 | 127];
    endless.extend_from_slice(&(u64::MAX >> 1).to_be_bytes());
    endless.extend_from_slice(&[1, 2, 3, 4]);
    let mut negative = vec![0x82, 0x80 | 127];
    negative.extend_from_slice(&u64::MAX.to_be_bytes());
    negative.extend_from_slice(&[1, 2, 3, 4]);
    let fragments = (0..6).flat_map(|n| frame(if n == 0 { BINARY } else { 0 }, &[3; 60_000])).collect();
    vec![
        ("unmasked", vec![0x81, 2, b'h', b'i'], &[1002]),
        ("the first reserved bit", frame(0xc1, b"{}"), &[1002]),
        ("the last reserved bit", frame(0x91, b"{}"), &[1002]),
        ("an undefined opcode", frame(0x83, b"{}"), &[1002]),
        ("an undefined control opcode", frame(0x8b, b""), &[1002]),
        ("text that is not UTF-8", frame(0x81, &[b'{', 0xff, 0xfe]), &[1007]),
        ("an incomplete character at the end of a fragment", two(frame(1, &[0xc3]), frame(0x80, b"x")), &[1007]),
        ("a surrogate", frame(0x81, &[0xed, 0xa0, 0x80]), &[1007]),
        ("a continuation without a message", frame(0x80, b"x"), &[1002]),
        ("a message within a message", two(frame(1, b"{"), frame(0x81, b"}")), &[1002]),
        ("a fragmented ping", frame(PING, b"x"), &[1002]),
        ("a ping that is too long", frame(0x80 | PING, &[0; 126]), &[1002]),
        ("half a close code", frame(0x88, &[3]), &[1002]),
        ("a close code below the range", close(999, b""), &[1002]),
        ("a reserved close code", close(1005, b""), &[1002]),
        ("a close code above the range", close(65_535, b""), &[1002]),
        ("a reason that is not UTF-8", close(1000, &[0xff]), &[1007, 1002]),
        ("a frame of 8 EiB", endless, &[1009]),
        ("a frame of a negative length", negative, &[1002, 1009]),
        ("a frame over the limit", frame(0x82, &vec![3; 300_000]), &[1009]),
        ("fragments that exceed the limit together", fragments, &[1009]),
    ]
}

#[test]
fn r52_malformed_frames_end_only_their_own_connection() {
    let world = World::new();
    let mut neighbour = Neighbour::new(&world);
    let id = world.shell("exec cat");
    for (n, (what, bytes, wanted)) in malformed().into_iter().enumerate() {
        let mut before = world.attach(&id, &[]).open();
        // The gateway may close the connection before everything is written.
        let _ = before.stream.write_all(&bytes);
        check_closed(before, wanted, &format!("{what}, before the hello"));
        let mut after = attached(&world, &id, n as u64);
        let _ = after.stream.write_all(&bytes);
        check_closed(after, wanted, &format!("{what}, after the hello"));
    }
    neighbour.check(&world);
    wait_until("the other connections are closed", || {
        let info = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
        (info["clients"] == 0 && info["state"] == "running").then_some(())
    });
}

#[test]
fn r52_fragments_with_control_frames_in_between_are_one_message() {
    let world = World::new();
    let id = world.shell("exec cat");
    let mut ws = world.attach(&id, &[]).open();
    let hello = hello(1, 1, &json!({"theme": {"fg": "#ffffff", "bg": "#000000"}}));
    let mut bytes = Vec::new();
    for (n, part) in hello.as_bytes().chunks(7).enumerate() {
        bytes.extend(frame(if n == 0 { TEXT } else { 0 }, part));
        bytes.extend(frame(0x80 | PING, b"are you there?"));
        bytes.extend(frame(0x8a, b"unsolicited"));
    }
    bytes.extend(frame(0x80, b""));
    // Byte by byte, like over a slow network.
    bytes.iter().for_each(|byte| ws.stream.write_all(&[*byte]).unwrap());
    until_type(&mut ws, "attached");
}

#[test]
fn r52_the_first_message_must_be_a_hello_and_not_a_control_request() {
    let world = World::new();
    let mut neighbour = Neighbour::new(&world);
    let id = world.shell("exec cat");
    let name = |world: &World| world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json()["name"].clone();
    let deep = format!("{{\"type\":\"hello\",\"x\":{}", "[".repeat(100_000));
    let long = hello(1, 1, &json!({"x": "x".repeat(200_000)}));
    let firsts = [
        r#"{"type":"end","grace_ms":0}"#,
        r#"{"type":"status","follow":true}"#,
        r#"{"type":"set","name":"stolen"}"#,
        r#"{"type":"screen","format":"text","scrollback":0}"#,
        r#"{"type":"command","id":"c","command":{"type":"input","text":"stolen\n"}}"#,
        r#"{"type":"hello","type":"end","grace_ms":0}"#,
        r#"{"type":"end","grace_ms":0,"type":"hello"}"#,
        r#" {"grace_ms":0,"type":"end"}"#,
        r#"[{"type":"end","grace_ms":0}]"#,
        r#"{"type":["hello"]}"#,
        r#"{"type":"hello"}"#,
        r#"{"type":"hello","version":1e400}"#,
        "hello",
        "",
        "null",
        &deep,
        &long,
    ];
    for first in firsts {
        let mut ws = world.attach(&id, &[]).open();
        ws.send_text(first).unwrap();
        // A message after it must be ignored, too.
        let _ = ws.send_text(r#"{"type":"end","grace_ms":0}"#);
        let (code, _) = ws.until_close();
        assert!([4400, 4426].contains(&code), "{code}: {}", &first[..first.len().min(99)]);
    }
    for first in [&b""[..], b"\0", &[3, 0, 0, 0, 0, 0, 0, 0, 0, b'x'], &[0xff; 1000]] {
        let mut ws = world.attach(&id, &[]).open();
        ws.send(BINARY, first).unwrap();
        check_closed(ws, &[4400], "binary before the hello");
    }
    let mut ws = attached(&world, &id, 2);
    for request in [r#"{"type":"end","grace_ms":0}"#, r#"{"type":"set","name":"stolen"}"#, r#"{"type":"status"}"#] {
        ws.send_text(request).unwrap();
    }
    ws.send_text(r#"{"type":"ping","n":77}"#).unwrap();
    assert_eq!(until_type(&mut ws, "pong")["n"], 77, "the connection must still work");
    assert_eq!(name(&world), Value::Null);
    assert!(!String::from_utf8_lossy(&world.log_of(&id)).contains("stolen"));
    neighbour.check(&world);
}

#[test]
fn r48_a_viewer_cannot_grant_itself_permissions() {
    let world = World::new();
    let id = world.shell("exec cat");
    let bearer = format!("Bearer {}", world.new_token("reader", "read"));
    let plain = hello(1, 1, &json!({}));
    let rest = plain.strip_prefix('{').unwrap();
    let before = format!(r#"{{"grant":{{"write":true}},{rest}"#);
    let twice = format!(r#"{{"grant":{{"write":true}},"grant":{{"write":true}},{rest}"#);
    let escaped = format!(r#"{{"gr\u0061nt":{{"write":true}},{rest}"#);
    let after = format!(r#"{},"grant":{{"write":true}}}}"#, plain.strip_suffix('}').unwrap());
    for (n, hello) in [before, twice, escaped, after].into_iter().enumerate() {
        let path = format!("/v1/sessions/{id}/attach");
        let mut ws = ws::open(world.address, &path, &[("Authorization", &bearer)]).unwrap().open();
        ws.send_text(&hello.replace("\"conn\":1", &format!("\"conn\":{}", n + 1))).unwrap();
        assert_eq!(until_type(&mut ws, "attached")["you"], json!({"write": false, "size": false}), "{hello}");
    }
}

#[test]
fn r52_a_few_mistakes_after_the_hello_get_an_error_and_more_close_the_connection() {
    let world = World::new();
    let id = world.shell("exec cat");
    for (n, garbage) in [&b""[..], &[9, 9, 9], &[3], &[3, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0, 0, b'x']].iter().enumerate()
    {
        let mut ws = attached(&world, &id, n as u64);
        ws.send(BINARY, garbage).unwrap();
        assert_eq!(until_type(&mut ws, "error")["fatal"], false, "{garbage:?}");
        for _ in 0..16 {
            let _ = ws.send(BINARY, garbage);
        }
        check_closed(ws, &[4400], "one mistake too many");
    }
    let mut ws = attached(&world, &id, 89);
    let winch = json!({"type": "signal", "name": "WINCH"});
    ws.send_text(&json!({"type": "command", "id": "x".repeat(65), "command": winch}).to_string()).unwrap();
    assert_eq!(until_type(&mut ws, "error")["code"], "bad_request");
    ws.send_text(&json!({"type": "command", "id": "x".repeat(64), "command": winch}).to_string()).unwrap();
    assert_eq!(until_type(&mut ws, "accepted")["id"], "x".repeat(64));
    let mut ws = attached(&world, &id, 90);
    ws.send(BINARY, &[&[3, 0, 0, 0, 0, 0, 0, 0, 9], &b"a hole"[..]].concat()).unwrap();
    assert_eq!(until_type(&mut ws, "error")["code"], "input_hole");
    let mut ws = attached(&world, &id, 91);
    ws.send(BINARY, &[&[3_u8; 1][..], &[0; 8], &[b'x'; 17_000]].concat()).unwrap();
    check_closed(ws, &[1009], "input over the limit");
    assert!(!String::from_utf8_lossy(&world.log_of(&id)).contains('x'));
}

/// The WebSocket library queues the answers to pings. A client that does not read them must not fill the gateway's memory.
#[test]
fn r52_a_flood_of_pings_does_not_grow_memory() {
    let world = World::new();
    let mut neighbour = Neighbour::new(&world);
    let id = world.shell("exec cat");
    let board = ws::open(world.address, "/v1/events", &[("Authorization", &world.bearer())]).unwrap().open();
    let mut floods: Vec<Ws> = vec![attached(&world, &id, 1), world.attach(&id, &[]).open(), board];
    neighbour.check(&world);
    let before = memory(world.gateway_pid());
    let pings: Vec<u8> = (0..500).flat_map(|_| frame(0x80 | PING, &[b'x'; 125])).collect();
    for flood in &mut floods {
        flood.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        // Until the gateway accepts no more, as it should: 64 MB is far more than sockets can hold.
        (0..1000).take_while(|_| flood.stream.write_all(&pings).is_ok()).count();
    }
    let grown = memory(world.gateway_pid()).saturating_sub(before);
    assert!(grown < 32 << 20, "the gateway grew by {grown} bytes");
    neighbour.check(&world);
}

/// The resident memory of a process, in bytes.
pub(crate) fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn r52_two_thousand_idle_connections_do_not_affect_others() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let world = World::new();
    let mut neighbour = Neighbour::new(&world);
    let idle: Vec<TcpStream> = (0..2000).map(|_| TcpStream::connect(world.address).unwrap()).collect();
    neighbour.check(&world);
    let id = world.shell("exec cat");
    attached(&world, &id, 1);
    drop(idle);
    neighbour.check(&world);
}

/// Opens a socket that makes room for no other, because its request is authenticated.
fn subscribe(world: &World) -> TcpStream {
    let request =
        format!("GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n", world.address, world.bearer());
    // Earlier sockets may not be closed yet.
    wait_until("a subscriber is accepted", || {
        let mut stream = TcpStream::connect(world.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).ok()?;
        answer.ends_with(b" 200").then_some(stream)
    })
}

#[test]
fn r52_the_number_of_sockets_is_limited() {
    let world = World::with(&[], "[gateway.limits]\nsockets = 20\n");
    let subscribers: Vec<TcpStream> = (0..20).map(|_| subscribe(&world)).collect();
    let refused = wait_until("a socket is refused", || {
        let mut stream = TcpStream::connect(world.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        http::parse(&answer)
    });
    check_problem(&refused, 503, "too_many");
    assert!(refused.header("retry-after").is_some());
    drop(subscribers);
    wait_until("sockets are accepted again", || {
        let health = http::request(world.address, "GET", "/healthz", &[], b"");
        health.ok().filter(|health| health.status == 200)
    });
}

/// A refused socket has a descriptor until the refusal is sent, or a second has passed.
#[test]
fn r52_the_number_of_refused_sockets_is_limited_too() {
    let world = World::with(&[], "[gateway.limits]\nsockets = 20\n");
    let files = || std::fs::read_dir(format!("/proc/{}/fd", world.gateway_pid())).unwrap().count();
    let before = files();
    let _subscribers: Vec<TcpStream> = (0..20).map(|_| subscribe(&world)).collect();
    // These never close, so the gateway waits for each of them as long as it may.
    let _crowd: Vec<TcpStream> = (0..800).map(|_| TcpStream::connect(world.address).unwrap()).collect();
    let most = (0..200).map(|_| files()).max().unwrap();
    assert!(most <= before + 20 + 64 + 16, "{before} descriptors grew to {most}");
}

#[test]
fn r52_slow_requests_time_out() {
    // Long enough for well-behaved clients, also on a busy machine.
    let world = World::with(&[], "[gateway.limits]\nhead_within = \"3s\"\nbody_within = \"3s\"\n");
    let mut neighbour = Neighbour::new(&world);
    let host = world.address;
    let heads = ["", "G", "GET / HT", &format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nX-Slow: ")];
    let begin = |head: &str| {
        let mut stream = TcpStream::connect(world.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let end = |mut stream: TcpStream| {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    let without_body = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: {host}\r\nAuthorization: {}\r\nContent-Length: 1000\r\n\r\n{{",
        world.bearer()
    );
    let begun = heads.map(begin);
    let body = begin(&without_body);
    for (head, stream) in heads.into_iter().zip(begun) {
        assert!(!end(stream).starts_with(b"HTTP/1.1 2"), "{head:?}");
    }
    check_problem(&http::parse(&end(body)).expect("a response"), 408, "too_slow");
    neighbour.check(&world);
}

#[test]
fn r52_a_half_closed_connection_counts_as_closed() {
    let world = World::new();
    let id = world.shell("exec cat");
    let half: Vec<Ws> = (0..10)
        .map(|n| {
            let ws = attached(&world, &id, n);
            ws.stream.shutdown(Shutdown::Write).unwrap();
            ws
        })
        .collect();
    wait_until("the session has no viewers", || {
        let info = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
        (info["clients"] == 0).then_some(())
    });
    drop(half);
}

#[test]
fn r52_absurd_requests_are_refused() {
    let world = World::with(&[], "[gateway.limits]\nhead_within = \"3s\"\n");
    let mut neighbour = Neighbour::new(&world);
    let bearer = world.bearer();
    let exchange = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(world.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        http::parse(&answer).map(|answer| answer.status)
    };
    let host = world.address;
    let start = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    assert_eq!(exchange(format!("{start}\r\n").as_bytes()), Some(200));
    let refused = [
        format!("{start}X: {}\r\n\r\n", "x".repeat(200_000)).into_bytes(),
        format!("{start}{}\r\n", "X: y\r\n".repeat(5000)).into_bytes(),
        format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "x".repeat(200_000)).into_bytes(),
        format!("{start}Bad Name: x\r\n\r\n").into_bytes(),
        format!("{start}Content-Length: -1\r\n\r\n").into_bytes(),
        format!("{start}Content-Length: 1\r\nContent-Length: 2\r\n\r\n").into_bytes(),
        b"GET /healthz HTTP/1.1\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/9.9\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 is TLS".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        (0..=255).cycle().take(10_000).collect(),
    ];
    for bytes in refused {
        let status = exchange(&bytes);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{status:?}: {shown}");
    }
    let big = vec![b' '; (1 << 20) + 1];
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    // The gateway may respond and close before it has read the whole body.
    if let Ok(answer) = http::request(world.address, "POST", "/v1/sessions", &headers, &big) {
        check_problem(&answer, 413, "too_large");
    }
    std::fs::write(world.path().join("outside"), "a secret").unwrap();
    for id in
        ["..", "%2e%2e", "..%2f..%2foutside", "%2fetc%2fpasswd", "..%5c..", "%00", "%c0%ae%c0%ae", "sock", "a/../b"]
    {
        for part in ["", "/log", "/screen", "/../../../outside"] {
            let path = format!("/v1/sessions/{id}{part}");
            let answer = http::request(world.address, "GET", &path, &headers[..1], b"").unwrap();
            assert!([400, 404].contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
            assert!(!answer.code().is_empty(), "{path}");
        }
    }
    neighbour.check(&world);
}

/// With serde_json's feature `raw_value`, which any dependency can turn on, such a string would be parsed as JSON.
const RAW: &str = "$serde_json::private::RawValue";

#[test]
fn r52_json_inside_json_is_not_parsed() {
    let text = format!(r#"{{"{RAW}":"[[1]]"}}"#);
    assert!(serde_json::from_str::<Value>(&text).unwrap().is_object());
}

/// The limit on the depth of JSON counts anew in each string, so that a hello of 128 KiB could overflow the stack.
#[test]
fn r52_json_that_is_nested_in_strings_does_not_end_the_gateway() {
    let world = World::new();
    let mut neighbour = Neighbour::new(&world);
    let id = world.shell("exec cat");
    let hello = |nested: &str| format!(r#"{{"type":"hello","version":1,"nested":{nested}}}"#);
    let mut nested = "1".to_owned();
    loop {
        // Escaped like this, a quote grows by five bytes with each level, instead of doubling.
        let text = nested.replace('\\', "\\u005c").replace('"', "\\u0022");
        let deeper = format!(r#"{}{{"{RAW}":"{text}"}}{}"#, "[".repeat(120), "]".repeat(120));
        if hello(&deeper).len() > bowline_proto::config::TEXT {
            break;
        }
        nested = deeper;
    }
    let mut ws = world.attach(&id, &[]).open();
    ws.send_text(&hello(&nested)).unwrap();
    check_closed(ws, &[4400], "a hello without a client");
    neighbour.check(&world);
}
