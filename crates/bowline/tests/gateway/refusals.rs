//! Every reason to refuse an attach. A program gets it as an HTTP status, a browser as a close code.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::http::{self, Response};
use super::viewer::{Viewer, contains};
use super::ws::{self, BINARY, Handshake, Message, Ws};

/// A hello message; `more` overrides its fields.
pub(crate) fn hello(client: u64, conn: u64, more: &Value) -> String {
    let id = format!("00000000-0000-4000-8000-{client:012x}");
    let mut hello = json!({"type": "hello", "version": 1, "client": id, "conn": conn, "cursor": null});
    for (name, value) in more.as_object().cloned().unwrap_or_default() {
        hello[name] = value;
    }
    hello.to_string()
}

pub(crate) fn origin(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn attach_path(id: &str) -> String {
    format!("/v1/sessions/{id}/attach")
}

/// Checks that a response is a refusal with this status and code, in header and body.
#[track_caller]
pub(crate) fn check_problem(response: &Response, status: u16, code: &str) {
    assert_eq!((response.status, response.code()), (status, code), "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/problem+json"));
    let problem = response.json();
    assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
}

/// Tries to attach as a program and as a page of the same origin. Both must be refused with this status and code.
#[track_caller]
fn check_both(world: &World, path: &str, headers: &[(&str, &str)], status: u16, code: &str) {
    check_problem(&ws::open(world.address, path, headers).unwrap().refused(), status, code);
    check_browser(world, path, headers, &origin(world.address), status, code);
}

#[track_caller]
fn check_browser(world: &World, path: &str, headers: &[(&str, &str)], origin: &str, status: u16, code: &str) {
    let all: Vec<_> = headers.iter().copied().chain([("Origin", origin)]).collect();
    let (closed, reason) = ws::open(world.address, path, &all).unwrap().open().until_close();
    assert_eq!(closed, 4000 + status, "{path} {headers:?}: {reason}");
    assert!(reason.contains(code), "{path} {headers:?}: {reason}");
}

/// Opens an attach WebSocket as a program or as a page.
#[track_caller]
pub(crate) fn open(world: &World, id: &str, browser: bool) -> Ws {
    let origin = origin(world.address);
    let headers = [("Origin", origin.as_str())];
    world.attach(id, if browser { &headers } else { &[] }).open()
}

/// Opens a WebSocket, sends a hello, and waits for `attached`.
#[track_caller]
pub(crate) fn attached(world: &World, id: &str, browser: bool, hello: &str) -> Ws {
    let mut ws = open(world, id, browser);
    ws.send_text(hello).unwrap();
    until_type(&mut ws, "attached");
    ws
}

/// Reads until a message of this type.
#[track_caller]
pub(crate) fn until_type(ws: &mut Ws, kind: &str) -> Value {
    loop {
        match ws.next() {
            Ok(Some(Message::Text(text))) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] == kind {
                    return message;
                }
            }
            Ok(Some(Message::Binary(_))) => {}
            other => panic!("{other:?} before {kind}"),
        }
    }
}

#[test]
fn r1_r3_an_unknown_session_is_404_and_a_bad_name_is_400() {
    let world = World::new();
    let bearer = world.bearer();
    let auth = [("Authorization", bearer.as_str())];
    for unknown in ["aaaaaaaaaaaa", "missing", "No-Body_0.1"] {
        check_both(&world, &attach_path(unknown), &auth, 404, "unknown_session");
    }
    for bad in ["..", "%2e%2e%2f%2e%2e", "a%20b", "%00", "%ff", "-x", &"x".repeat(65), "sock%2f..%2f"] {
        check_both(&world, &attach_path(bad), &auth, 400, "bad_name");
        check_problem(&world.call("GET", &format!("/v1/sessions/{bad}"), &Value::Null), 400, "bad_name");
    }
    let id = world.shell("cat");
    world.ok(&["kill", &id]);
    check_both(&world, &attach_path(&id), &auth, 404, "unknown_session");
}

#[test]
fn r1_r48_attaching_needs_valid_credentials() {
    let world = World::new();
    let path = attach_path(&world.shell("cat"));
    let expired = world.ok(&["token", "create", "--name", "short", "--scope", "admin", "--ttl", "1s"]);
    wait_until("the token has expired", || {
        (world.call_as(&expired, "GET", "/v1/sessions", &Value::Null).status == 401).then_some(())
    });
    let (wrong, expired) = (format!("{}x", world.bearer()), format!("Bearer {expired}"));
    let basic = world.bearer().replace("Bearer", "Basic");
    for header in [&wrong, &expired, &basic, "Bearer", "Bearer bwl_", ""] {
        check_both(&world, &path, &[("Authorization", header)], 401, "not_authenticated");
    }
    check_both(&world, &path, &[], 401, "not_authenticated");
    let (cookie, key) = world.log_in();
    for wrong in ["", "x", &cookie] {
        let headers = [("Cookie", cookie.as_str()), ("Bowline-Key", wrong)];
        check_both(&world, &path, &headers, 401, "not_authenticated");
    }
    check_both(&world, &path, &[("Cookie", "bowline_x=y"), ("Bowline-Key", &key)], 401, "not_authenticated");
    // A page cannot set headers on a WebSocket: its key must be in the hello.
    for (n, more) in [json!({}), json!({"key": "x"}), json!({"key": null}), json!({"key": [key]})].iter().enumerate() {
        for browser in [true, false] {
            let mut ws = open_with_cookie(&world, &path, &cookie, browser);
            ws.send_text(&hello(n as u64, 1, more)).unwrap();
            let (code, reason) = ws.until_close();
            assert_eq!(code, 4401, "{reason}");
            assert!(reason.contains("not_authenticated"), "{reason}");
        }
    }
    let mut ws = open_with_cookie(&world, &path, &cookie, true);
    ws.send_text(&hello(9, 1, &json!({"key": key}))).unwrap();
    assert_eq!(until_type(&mut ws, "attached")["you"]["write"], true);
    let unknown = attach_path("aaaaaaaaaaaa");
    let mut ws = open_with_cookie(&world, &unknown, &cookie, true);
    ws.send_text(&hello(9, 1, &json!({"key": key}))).unwrap();
    assert_eq!(ws.until_close().0, 4404, "only an authenticated client learns that a session does not exist");
    let mut ws = open_with_cookie(&world, &unknown, &cookie, true);
    ws.send_text(&hello(9, 1, &json!({}))).unwrap();
    assert_eq!(ws.until_close().0, 4401);
}

fn open_with_cookie(world: &World, path: &str, cookie: &str, browser: bool) -> Ws {
    let origin = origin(world.address);
    let headers = [("Cookie", cookie), ("Origin", &origin)];
    ws::open(world.address, path, if browser { &headers } else { &headers[..1] }).unwrap().open()
}

#[test]
fn r49_foreign_hosts_and_origins_are_refused() {
    let world = World::new();
    let bearer = world.bearer();
    let id = world.shell("cat");
    let (path, port) = (attach_path(&id), world.address.port());
    let auth = [("Authorization", bearer.as_str())];
    let (tls, localhost) = (format!("https://{}", world.address), format!("http://localhost:{port}"));
    let slash = format!("http://{}/", world.address);
    for foreign in
        ["http://evil.test", "http://127.0.0.1:1", "http://127.0.0.1", "null", "", "x", &tls, &localhost, &slash]
    {
        check_browser(&world, &path, &auth, foreign, 403, "bad_origin");
        for method in ["GET", "POST", "DELETE"] {
            let headers = [("Authorization", bearer.as_str()), ("Origin", foreign)];
            let refused = http::request(world.address, method, &format!("/v1/sessions/{id}"), &headers, b"").unwrap();
            check_problem(&refused, 403, "bad_origin");
        }
    }
    // DNS rebinding: the name of the other page resolves to this gateway, so Host and Origin agree.
    let user = format!("user@{}", world.address);
    for host in ["evil.test", &format!("evil.test:{port}"), "", "127.0.0.1.evil.test", &user, "[::", "192.0.2.1"] {
        let headers = [("Authorization", bearer.as_str()), ("Host", host)];
        check_problem(&ws::open(world.address, &path, &headers).unwrap().refused(), 403, "bad_host");
        check_browser(&world, &path, &headers, &format!("http://{host}"), 403, "bad_host");
        let refused = http::request(world.address, "GET", "/healthz", &headers, b"").unwrap();
        check_problem(&refused, 403, "bad_host");
    }
    for host in [format!("localhost:{port}"), format!("LOCALHOST:{port}"), format!("[::1]:{port}"), "127.0.0.9".into()]
    {
        let page = format!("http://{}", host.to_lowercase());
        let headers = [("Host", host.as_str()), ("Origin", page.as_str())];
        let mut ws = world.attach(&id, &headers).open();
        ws.send_text(&hello(1, 1, &json!({"observe": true}))).unwrap();
        until_type(&mut ws, "attached");
    }
}

/// A proxy and the gateway could otherwise check different ones.
#[test]
fn r49_a_request_with_two_hosts_or_origins_is_refused() {
    for base in ["", "/base"] {
        let world = World::with(&[], &format!("[gateway]\nbase_path = \"{base}\"\n"));
        let own = world.address.to_string();
        let get =
            |target: &str, headers: &[(&str, &str)]| http::request(world.address, "GET", target, headers, b"").unwrap();
        let path = format!("{base}/healthz");
        for second in [&own, "evil.test"] {
            check_problem(&get(&path, &[("Host", &own), ("Host", second)]), 400, "bad_request");
            check_problem(&get(&path, &[("Host", second), ("Host", &own)]), 400, "bad_request");
            let (ours, second) = (origin(world.address), format!("http://{second}"));
            check_problem(&get(&path, &[("Origin", &ours), ("Origin", &second)]), 403, "bad_origin");
        }
        for foreign in ["evil.test", "localhost", &format!("user@{own}")] {
            check_problem(&get(&format!("http://{foreign}{path}"), &[]), 403, "bad_host");
            check_problem(&get(&format!("http://{own}{path}"), &[("Host", foreign)]), 403, "bad_host");
        }
        assert_eq!(get(&format!("http://{own}{path}"), &[]).status, 200);
    }
}

#[test]
fn r48_a_read_only_token_can_watch_and_change_nothing() {
    let world = World::new();
    let id = world.shell("stty -echo; echo ready; while read -r line; do echo \"got $line\"; done");
    wait_until("the program is ready", || contains(&world.log_of(&id), "ready").then_some(()));
    let token = world.new_token("look", "read");
    let mut viewer = Viewer::new(world.address, &token, &id, 1);
    viewer
        .dial_with(Duration::from_secs(30), json!({"grant": {"write": true}, "size": {"cols": 99, "rows": 9}}))
        .unwrap();
    viewer.until("attached", |viewer| !viewer.verdicts.is_empty());
    viewer.type_in("typed\n");
    viewer.until("an error", |viewer| viewer.texts.iter().any(|text| text["code"] == "not_allowed"));
    let command = json!({"type": "command", "id": "c1", "command": {"type": "input", "text": "commanded\n"}});
    viewer.send(&command).unwrap();
    viewer.send(&json!({"type": "claim_size", "cols": 10, "rows": 5})).unwrap();
    viewer.until("a rejection", |viewer| viewer.texts.iter().any(|text| text["type"] == "rejected"));
    let info = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
    assert_eq!(info["size"], json!({"cols": 80, "rows": 24}));
    for (method, path, body) in [
        ("POST", "/v1/sessions".to_owned(), json!({"kind": "terminal"})),
        ("PATCH", format!("/v1/sessions/{id}"), json!({"name": "mine"})),
        ("DELETE", format!("/v1/sessions/{id}"), Value::Null),
        ("POST", format!("/v1/sessions/{id}/restart"), json!({})),
        ("POST", format!("/v1/sessions/{id}/commands"), json!({"id": "c2", "command": {"type": "input", "text": "x"}})),
        ("GET", "/v1/tokens".to_owned(), Value::Null),
        ("POST", "/v1/tokens".to_owned(), json!({"name": "more", "scope": "admin"})),
    ] {
        check_problem(&world.call_as(&token, method, &path, &body), 403, "not_allowed");
    }
    world.ok(&["send", &id, "allowed", "--enter"]);
    viewer.until_output("got allowed");
    assert!(!contains(&world.log_of(&id), "typed") && !contains(&world.log_of(&id), "commanded"));
    assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).json()["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn r1_a_hello_must_come_in_time_and_in_a_known_version() {
    let world = World::with(&[], "[gateway.limits]\nhello_within = \"300ms\"\n");
    let id = world.shell("cat");
    for browser in [true, false] {
        let (code, reason) = open(&world, &id, browser).until_close();
        assert_eq!((code, reason.is_empty()), (4408, false));
    }
    let world = World::new();
    let id = world.shell("cat");
    let bearer = world.bearer();
    let other = [("Authorization", bearer.as_str()), ("Sec-WebSocket-Protocol", "bowline.v2, chat")];
    check_both(&world, &attach_path(&id), &other, 426, "no_version");
    for browser in [true, false] {
        let mut ws = open(&world, &id, browser);
        ws.send_text(&hello(1, 1, &json!({"version": 2}))).unwrap();
        assert_eq!(until_type(&mut ws, "error")["code"], "no_version");
        assert_eq!(ws.until_close().0, 4426);
        for malformed in [
            json!({"client": "x"}),
            json!({"client": "00000000-0000-4000-8000-00000000000A"}),
            json!({"conn": -1}),
            json!({"size": {"cols": 1, "rows": 1}}),
            json!({"size": {"cols": 1001, "rows": 24}}),
            json!({"cursor": 7}),
            json!({"theme": {"fg": "red", "bg": "#000000"}}),
        ] {
            let mut ws = open(&world, &id, browser);
            ws.send_text(&hello(1, 1, &malformed)).unwrap();
            assert_eq!(until_type(&mut ws, "error")["fatal"], true);
            let (code, reason) = ws.until_close();
            assert_eq!((code, reason.is_empty()), (4400, false), "{malformed}");
        }
    }
    // Other subprotocols beside ours are accepted.
    let mut ws = world.attach(&id, &[("Sec-WebSocket-Protocol", "chat, bowline.v1")]).open();
    ws.send_text(&hello(2, 1, &json!({}))).unwrap();
    until_type(&mut ws, "attached");
}

#[test]
fn r1_a_newer_connection_of_a_client_replaces_the_older() {
    let world = World::new();
    let id = world.shell("cat");
    for browser in [true, false] {
        let client = u64::from(browser);
        let mut second = attached(&world, &id, browser, &hello(client, 2, &json!({})));
        let mut first = open(&world, &id, browser);
        first.send_text(&hello(client, 1, &json!({}))).unwrap();
        assert_eq!(first.until_close().0, 4409, "a connection with a lower number is refused");
        let _third = attached(&world, &id, browser, &hello(client, 3, &json!({})));
        let (code, reason) = second.until_close();
        assert_eq!((code, reason.is_empty()), (4409, false));
    }
}

#[test]
fn r49_attempts_and_streams_are_limited() {
    let world = World::with(&[], "[gateway.limits]\nattach_rate = 1\n");
    let id = world.shell("cat");
    let bearer = world.bearer();
    let auth = [("Authorization", bearer.as_str())];
    let refused = wait_until("the rate limit is reached", || match world.attach(&id, &[]) {
        Handshake::Open(_) => None,
        Handshake::Refused(response) => Some(response),
    });
    check_problem(&refused, 429, "too_many");
    let seconds = refused.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 1), "{seconds:?}");
    let page = [auth[0], ("Origin", &*origin(world.address))];
    let reason = wait_until("a page is refused, too", || match ws::open(world.address, &attach_path(&id), &page) {
        Ok(Handshake::Open(mut ws)) => {
            ws.send_text("{}").unwrap(); // if it was accepted, this ends it
            Some(ws.until_close()).filter(|(code, _)| *code == 4429)
        }
        other => panic!("{other:?}"),
    });
    assert!(reason.1.contains("retry_after=") && reason.1.contains("too_many"), "{}", reason.1);
    assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).status, 200, "other requests are not limited");

    let world = World::with(&[], "[gateway.limits]\nstreams_per_token = 2\nstreams = 3\n");
    let id = world.shell("cat");
    let bearer = world.bearer();
    let one = attached(&world, &id, false, &hello(1, 1, &json!({})));
    let _two = open(&world, &id, true);
    check_both(&world, &attach_path(&id), &[("Authorization", bearer.as_str())], 429, "too_many");
    let other = format!("Bearer {}", world.new_token("other", "read"));
    let three = ws::open(world.address, &attach_path(&id), &[("Authorization", &other)]).unwrap().open();
    check_both(&world, &attach_path(&id), &[("Authorization", &other)], 429, "too_many");
    drop((one, three));
    wait_until("streams are accepted again", || match world.attach(&id, &[]) {
        Handshake::Open(_) => Some(()),
        Handshake::Refused(response) => {
            assert_eq!(response.status, 429);
            None
        }
    });
}

/// Checks are made in this order, and the first that fails is reported: Host, Origin, version, auth, rate, scope,
/// existence.
#[test]
fn r1_checks_are_made_in_order() {
    let world = World::with(&[], "[gateway.limits]\nattach_rate = 1\n");
    let id = world.shell("cat");
    let evil = "http://evil.test";
    let ours = origin(world.address);
    let unknown = attach_path("aaaaaaaaaaaa");
    let wrong = ("Authorization", "Bearer x");
    let bearer = world.bearer();
    let right = ("Authorization", bearer.as_str());
    let older = ("Sec-WebSocket-Protocol", "bowline.v0");
    check_browser(&world, &unknown, &[wrong, ("Host", "evil.test:1")], evil, 403, "bad_host");
    check_browser(&world, &unknown, &[wrong, older], evil, 403, "bad_origin");
    check_both(&world, &unknown, &[wrong, older], 426, "no_version");
    check_both(&world, &unknown, &[wrong], 401, "not_authenticated");
    check_both(&world, &unknown, &[right], 404, "unknown_session");
    let exhaust = || {
        wait_until("the rate is used up", || matches!(world.attach(&id, &[]), Handshake::Refused(_)).then_some(()));
    };
    exhaust();
    check_both(&world, &unknown, &[wrong], 401, "not_authenticated");
    wait_until("the rate is checked before existence", || {
        exhaust();
        let refused = ws::open(world.address, &unknown, &[right]).unwrap().refused();
        (refused.code() == "too_many").then_some(())
    });
    let reader = world.new_token("reader", "read");
    let post = |token: &str, headers: &[(&str, &str)]| {
        let bearer = format!("Bearer {token}");
        let all: Vec<_> = [("Authorization", bearer.as_str())].iter().chain(headers).copied().collect();
        http::request(world.address, "POST", "/v1/sessions/aaaaaaaaaaaa/restart", &all, b"").unwrap()
    };
    check_problem(&post("x", &[("Host", "evil.test"), ("Origin", evil)]), 403, "bad_host");
    check_problem(&post("x", &[("Origin", evil)]), 403, "bad_origin");
    check_problem(&post("x", &[("Origin", &ours)]), 401, "not_authenticated");
    check_problem(&post(&reader, &[("Origin", &ours)]), 403, "not_allowed");
    check_problem(&post(&world.token, &[("Origin", &ours)]), 404, "unknown_session");
}

#[test]
fn r4_routing_errors_are_http_for_programs_and_pages() {
    let world = World::new();
    let id = world.shell("cat");
    let (ours, bearer) = (origin(world.address), world.bearer());
    let page = [("Authorization", bearer.as_str()), ("Origin", ours.as_str())];
    for headers in [&page[..1], &page] {
        for path in ["/nowhere", "/v1/nope", &format!("/v1/sessions/{id}/attach/more"), "/v2/events"] {
            check_problem(&ws::open(world.address, path, headers).unwrap().refused(), 404, "not_found");
            let response = http::request(world.address, "GET", path, headers, b"").unwrap();
            check_problem(&response, 404, "not_found");
        }
        let attach = attach_path(&id);
        let plain = http::request(world.address, "GET", &attach, headers, b"").unwrap();
        check_problem(&plain, 400, "bad_request");
        for method in ["POST", "PUT", "DELETE"] {
            let response = http::request(world.address, method, &attach, headers, b"").unwrap();
            check_problem(&response, 405, "bad_method");
        }
        for (name, value) in [("Sec-WebSocket-Version", "8"), ("Sec-WebSocket-Key", "short"), ("Upgrade", "h2c")] {
            let mut handshake = vec![
                ("Connection", "Upgrade"),
                ("Upgrade", "websocket"),
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ];
            handshake.retain(|(known, _)| *known != name);
            handshake.extend(headers.iter().copied().chain([(name, value)]));
            handshake.retain(|(known, _)| *known != "Connection");
            handshake.push(("Connection", "Upgrade, close"));
            let response = http::request(world.address, "GET", &attach, &handshake, b"").unwrap();
            check_problem(&response, 400, "bad_request");
        }
    }
}

#[test]
fn r1_a_message_over_the_limit_is_refused() {
    let world = World::with(&[], "[gateway.limits]\nmessage = \"128K\"\n");
    let id = world.shell("cat");
    for browser in [true, false] {
        let mut ws = attached(&world, &id, browser, &hello(u64::from(browser), 1, &json!({})));
        ws.send(BINARY, &vec![3; 140_000]).unwrap();
        let (code, reason) = ws.until_close();
        assert_eq!((code, reason.is_empty()), (1009, false));
    }
}
