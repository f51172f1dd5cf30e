//! Strangers without credentials who flood the gateway from the owner's own address: the owner still gets in.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::http;
use super::refusals::{attached, check_problem, hello, origin, until_type};
use super::ws::{self, Handshake, Ws};

/// A gateway where few attempts are enough for a flood.
fn world() -> World {
    World::with(&[], "[gateway.limits]\nattach_rate = 2\nlogin_rate = 2\n")
}

/// Repeats a refused request until it is refused because of its rate.
#[track_caller]
fn flood(world: &World, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
    wait_until("a flood is refused", || {
        let refused = http::request(world.address, method, path, headers, body).unwrap();
        assert!((400..500).contains(&refused.status), "{path} {headers:?}: {}", refused.text());
        (refused.code() == "too_many").then(|| assert!(refused.header("retry-after").is_some()))
    });
}

/// Everything that the owner does: log in, list, attach and follow, with a token and as a browser.
#[track_caller]
fn check_owner(world: &World, id: &str, code: &str) {
    let body = json!({"code": code}).to_string();
    let json = [("Content-Type", "application/json")];
    let answer = http::request(world.address, "POST", "/v1/login", &json, body.as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "log in: {}", answer.text());
    let (cookie, key) = world.credentials(&answer);
    let browser = [("Cookie", cookie.as_str()), ("Bowline-Key", key.as_str())];
    let bearer = world.bearer();
    for owner in [&[("Authorization", bearer.as_str())][..], &browser] {
        for path in ["/v1/sessions", "/v1/events"] {
            let answer = http::request(world.address, "GET", path, owner, b"").unwrap();
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
    }
    attached(world, id, false, &hello(1, 1, &json!({})));
    let mut page = open_with_cookie(world, &format!("/v1/sessions/{id}/attach"), &cookie);
    page.send_text(&hello(2, 1, &json!({"key": key}))).unwrap();
    until_type(&mut page, "attached");
    let mut page = open_with_cookie(world, "/v1/events", &cookie);
    page.send_text(&json!({"type": "hello", "key": key}).to_string()).unwrap();
    until_type(&mut page, "board");
}

fn open_with_cookie(world: &World, path: &str, cookie: &str) -> Ws {
    let page = origin(world.address);
    ws::open(world.address, path, &[("Cookie", cookie), ("Origin", &page)]).unwrap().open()
}

#[test]
fn r49_a_flood_of_bad_credentials_does_not_keep_the_owner_out() {
    let world = world();
    let id = world.shell("exec cat");
    let (code, wrong) = (world.login_code(), format!("{}x", world.bearer()));
    let attach = format!("/v1/sessions/{id}/attach");
    let handshake = [
        ("Connection", "Upgrade, close"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    flood(&world, "POST", "/v1/login", &[("Content-Type", "application/json")], br#"{"code":"x"}"#);
    for (path, headers) in [
        ("/v1/sessions", &[("Authorization", wrong.as_str())][..]),
        ("/v1/events", &[]),
        ("/v1/events?ticket=x", &[]),
        ("/v1/events?ticket=x", &handshake),
        (&attach, &handshake),
        (&format!("{attach}?ticket=x"), &handshake),
    ] {
        flood(&world, "GET", path, headers, b"");
    }
    check_owner(&world, &id, &code);
}

/// A program on another port of the host can see the browser's cookie, but not its key.
#[test]
fn r49_a_flood_of_cookies_without_their_key_does_not_keep_the_owner_out() {
    // Those of the flood wait for as long as the test takes.
    let world = World::with(&[], "[gateway.limits]\nsockets = 40\nattach_rate = 5\nhello_within = \"10m\"\n");
    let id = world.shell("exec cat");
    let (cookie, key) = world.log_in();
    let attach = format!("/v1/sessions/{id}/attach");
    let paths = [attach.as_str(), "/v1/events"];
    let mut flood: Vec<Ws> = (0..60).map(|n| open_with_cookie(&world, paths[n % 2], &cookie)).collect();
    let (code, reason) = flood[0].until_close();
    assert_eq!(code, 4429, "one that waits for longest makes room: {reason}");
    assert!(reason.contains("retry_after=") && reason.contains("too_many"), "{reason}");
    check_owner(&world, &id, &world.login_code());
    // The newest of the flood still wait for their key.
    let mut last = flood.pop().unwrap();
    last.send_text(&json!({"type": "hello", "key": key}).to_string()).unwrap();
    until_type(&mut last, "board");
}

/// A wrong key counts as an attempt of its address, not of the login whose cookie came with it.
#[test]
fn r49_a_flood_of_wrong_keys_does_not_keep_the_owner_out() {
    let world = world();
    let id = world.shell("exec cat");
    let (cookie, _) = world.log_in();
    for (path, hello) in [
        (format!("/v1/sessions/{id}/attach"), hello(1, 1, &json!({"key": "x"}))),
        ("/v1/events".to_owned(), json!({"type": "hello", "key": "x"}).to_string()),
    ] {
        wait_until("a flood is refused", || {
            let mut page = open_with_cookie(&world, &path, &cookie);
            page.send_text(&hello).unwrap();
            let (code, reason) = page.until_close();
            assert!([4401, 4429].contains(&code), "{code} {reason}");
            (code == 4429).then_some(())
        });
    }
    check_owner(&world, &id, &world.login_code());
}

#[test]
fn r49_a_caller_that_attaches_too_often_does_not_keep_others_out() {
    let world = world();
    let id = world.shell("exec cat");
    let reader = format!("Bearer {}", world.new_token("reader", "read"));
    let path = format!("/v1/sessions/{id}/attach");
    let refused = wait_until("the rate is used up", || {
        match ws::open(world.address, &path, &[("Authorization", &reader)]).unwrap() {
            Handshake::Refused(refused) => Some(refused),
            Handshake::Open(_) => None,
        }
    });
    check_problem(&refused, 429, "too_many");
    let events = http::request(world.address, "GET", "/v1/events", &[("Authorization", &reader)], b"").unwrap();
    assert!([200, 429].contains(&events.status), "both kinds of streams share the rate, which fills again");
    assert_eq!(world.call_as(&reader["Bearer ".len()..], "GET", "/v1/sessions", &Value::Null).status, 200);
    check_owner(&world, &id, &world.login_code());
}

/// Sockets that send nothing, and requests whose body never comes.
#[test]
fn r52_strangers_cannot_take_every_socket() {
    let world = World::with(&[], "[gateway.limits]\nsockets = 20\n");
    let id = world.shell("exec cat");
    let mut viewer = attached(&world, &id, false, &hello(3, 1, &json!({})));
    let login = format!("POST /v1/login HTTP/1.1\r\nHost: {}\r\nContent-Length: 10\r\n\r\n", world.address);
    for begun in ["", &login] {
        let flood = (0..60).map(|_| {
            let mut stream = TcpStream::connect(world.address).unwrap();
            // The gateway may have closed it already.
            let _ = stream.write_all(begun.as_bytes());
            stream
        });
        let _flood: Vec<TcpStream> = flood.collect();
        check_owner(&world, &id, &world.login_code());
    }
    viewer.send_text(r#"{"type":"ping","n":1}"#).unwrap();
    until_type(&mut viewer, "pong");
}
