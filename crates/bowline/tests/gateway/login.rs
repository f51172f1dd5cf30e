//! Logins and tokens: one-time codes, cookies with keys, tickets, revocation, proxies.

use std::net::SocketAddr;
use std::time::Duration;

use bowline_host::lock::Lock;
use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::http::{self, Response};
use super::refusals::{check_problem, hello, origin, until_type};
use super::viewer::Viewer;
use super::ws::{self, Ws};

fn log_in_with(world: &World, code: &str, headers: &[(&str, &str)]) -> Response {
    log_in_at(world.address, code, headers)
}

fn log_in_at(address: SocketAddr, code: &str, headers: &[(&str, &str)]) -> Response {
    let all: Vec<_> = [("Content-Type", "application/json")].iter().chain(headers).copied().collect();
    http::request(address, "POST", "/v1/login", &all, json!({"code": code}).to_string().as_bytes()).unwrap()
}

fn get(world: &World, path: &str, headers: &[(&str, &str)]) -> Response {
    http::request(world.address, "GET", path, headers, b"").unwrap()
}

/// A page's WebSocket, attached by its cookie and key.
#[track_caller]
fn browser(world: &World, id: &str, cookie: &str, key: &str) -> Ws {
    let origin = origin(world.address);
    let path = format!("/v1/sessions/{id}/attach");
    let mut ws = ws::open(world.address, &path, &[("Cookie", cookie), ("Origin", &origin)]).unwrap().open();
    ws.send_text(&hello(1, 1, &json!({"key": key}))).unwrap();
    until_type(&mut ws, "attached");
    ws
}

#[test]
fn r48_a_code_works_once_also_for_racing_logins() {
    let world = World::with(&[], "[gateway.limits]\nlogin_rate = 1000\n");
    let extra = world.start_extra_gateway();
    let code = world.login_code();
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let at = |n| if n % 2 == 0 { world.address } else { extra.address };
        let code = &code;
        let racing: Vec<_> = (0..16).map(|n| scope.spawn(move || log_in_at(at(n), code, &[]))).collect();
        racing.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(won.len(), 1);
    lost.iter().for_each(|answer| check_problem(answer, 401, "not_authenticated"));
    let (cookie, key) = world.credentials(won[0]);
    assert_eq!(get(&world, "/v1/sessions", &[("Cookie", &cookie), ("Bowline-Key", &key)]).status, 200);
    check_problem(&get(&world, "/v1/sessions", &[("Cookie", &cookie)]), 401, "not_authenticated");
    check_problem(&get(&world, "/v1/sessions", &[("Bowline-Key", &key)]), 401, "not_authenticated");
    let there = http::request(extra.address, "GET", "/v1/sessions", &[("Cookie", &cookie), ("Bowline-Key", &key)], b"");
    assert_eq!(there.unwrap().status, 200, "a login works at every gateway of the same state directory");
    for wrong in ["", "x", &code.to_lowercase(), &code[1..]] {
        check_problem(&log_in_with(&world, wrong, &[]), 401, "not_authenticated");
    }
}

#[test]
fn r48_an_expired_code_does_not_work() {
    let world = World::new();
    let code = world.login_code();
    let file = world.state().join("auth.json");
    // The gateway may be writing the file: it records that a token was used.
    let lock = Lock::wait(&world.state().join("auth.lock"), Duration::from_secs(30)).unwrap().expect("the lock");
    let mut auth: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for code in auth["codes"].as_array_mut().expect("codes") {
        code["expires"] = json!("2020-01-01T00:00:00Z");
    }
    std::fs::write(file.with_extension("edited"), auth.to_string()).unwrap();
    std::fs::rename(file.with_extension("edited"), &file).unwrap();
    drop(lock);
    check_problem(&log_in_with(&world, &code, &[]), 401, "not_authenticated");
}

#[test]
fn r49_wrong_codes_are_limited_and_the_right_one_is_not() {
    let world = World::with(&[], "[gateway.limits]\nlogin_rate = 3\n");
    let code = world.login_code();
    let refused = wait_until("the rate limit is reached", || {
        let answer = log_in_with(&world, "wrong", &[]);
        (answer.status != 401).then_some(answer)
    });
    check_problem(&refused, 429, "too_many");
    assert!(refused.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok()).is_some_and(|s| s >= 1));
    let answer = log_in_with(&world, &code, &[]);
    assert_eq!(answer.status, 200, "the right code works at once: {}", answer.text());
    world.credentials(&answer);
}

#[test]
fn r48_r49_a_cookie_has_the_right_path_and_attributes() {
    let attributes = |answer: &Response| {
        let cookie = answer.header("set-cookie").expect("a cookie").to_owned();
        cookie.split(';').skip(1).map(|part| part.trim().to_owned()).collect::<Vec<_>>()
    };
    let world = World::new();
    let answer = log_in_with(&world, &world.login_code(), &[]);
    world.credentials(&answer);
    let plain = attributes(&answer);
    for wanted in ["Path=/", "HttpOnly", "SameSite=Strict"] {
        assert!(plain.iter().any(|part| part == wanted), "{plain:?}");
    }
    assert!(!plain.iter().any(|part| part == "Secure"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));

    let world = World::with(&["--public-url", "https://box.test/term", "--base-path", "/term"], "");
    let headers = [("Host", "box.test"), ("Origin", "https://box.test")];
    let answer = log_in_with(&world, &world.login_code(), &headers);
    let secure = attributes(&answer);
    for wanted in ["Path=/term", "Secure", "HttpOnly", "SameSite=Strict"] {
        assert!(secure.iter().any(|part| part == wanted), "{secure:?}");
    }
    let (cookie, key) = world.credentials(&answer);
    for path in ["/term/v1/sessions", "/v1/sessions"] {
        let headers = [("Host", "box.test"), ("Cookie", cookie.as_str()), ("Bowline-Key", key.as_str())];
        assert_eq!(get(&world, path, &headers).status, 200, "with the base path, or stripped by the proxy: {path}");
    }
    check_problem(&get(&world, "/termv1/sessions", &[]), 404, "not_found");
    check_problem(&get(&world, "/v1/sessions", &[("Origin", "http://box.test")]), 403, "bad_origin");
}

#[test]
fn r48_logins_survive_a_kill_of_the_gateway_and_end_with_a_logout() {
    let mut world = World::new();
    let id = world.shell("cat");
    let (cookie, key) = world.log_in();
    let (other_cookie, other_key) = world.log_in();
    world.kill_gateway();
    world.start_gateway();
    let headers = [("Cookie", cookie.as_str()), ("Bowline-Key", key.as_str())];
    let mixed = [("Cookie", cookie.as_str()), ("Bowline-Key", other_key.as_str())];
    assert_eq!(get(&world, "/v1/sessions", &headers).status, 200);
    check_problem(&get(&world, "/v1/sessions", &mixed), 401, "not_authenticated");
    let mut page = browser(&world, &id, &cookie, &key);
    let answer = http::request(world.address, "POST", "/v1/logout", &headers, b"").unwrap();
    assert_eq!(answer.status, 204);
    assert!(answer.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")));
    let (code, reason) = page.until_close();
    assert_eq!((code, reason.is_empty()), (4401, false));
    check_problem(&get(&world, "/v1/sessions", &headers), 401, "not_authenticated");
    browser(&world, &id, &other_cookie, &other_key);
}

#[test]
fn r48_a_revoked_token_is_disconnected_at_once() {
    let world = World::new();
    let id = world.shell("while :; do echo going on and on; done");
    let by_http = |token: &str| {
        let made = world.call("DELETE", &format!("/v1/tokens/{}", &token[4..16]), &Value::Null);
        assert_eq!(made.status, 204, "{}", made.text());
    };
    let by_command_line = |token: &str| drop(world.ok(&["token", "revoke", &token[4..16]]));
    for (number, revoke) in [&by_http as &dyn Fn(&str), &by_command_line].into_iter().enumerate() {
        let token = world.new_token("temporary", "write");
        let mut viewer = Viewer::new(world.address, &token, &id, number as u64);
        viewer.dial_with(Duration::from_secs(30), json!({})).unwrap();
        viewer.until_output("going on");
        let ticket = world.call_as(&token, "POST", "/v1/tickets", &json!({})).json();
        revoke(&token);
        // The close comes in the middle of a flood, without the rest of it.
        let (code, reason) = viewer.ws.as_mut().unwrap().until_close();
        assert_eq!((code, reason.is_empty()), (4401, false));
        check_problem(&world.call_as(&token, "GET", "/v1/sessions", &Value::Null), 401, "not_authenticated");
        let ticket = ticket["ticket"].as_str().unwrap().to_owned();
        let path = format!("/v1/sessions/{id}/attach?ticket={ticket}");
        let refused = ws::open(world.address, &path, &[]).unwrap().refused();
        check_problem(&refused, 425, "bad_ticket");
    }
}

#[test]
fn r48_a_ticket_opens_one_connection() {
    let world = World::new();
    let id = world.shell("cat");
    let reader = world.new_token("reader", "read");
    let page = origin(world.address);
    let made = world.call_as(&reader, "POST", "/v1/tickets", &json!({})).json();
    let ticket = made["ticket"].as_str().expect("a ticket").to_owned();
    world.add_secret(&ticket);
    let path = format!("/v1/sessions/{id}/attach?ticket={ticket}");
    let mut ws = ws::open(world.address, &path, &[("Origin", &page)]).unwrap().open();
    ws.send_text(&hello(1, 1, &json!({}))).unwrap();
    assert_eq!(until_type(&mut ws, "attached")["you"]["write"], false, "the ticket of a read-only token is read-only");
    for path in [&path, &format!("/v1/sessions/{id}/attach?ticket="), &format!("/v1/sessions/{id}/attach?ticket=x")] {
        check_problem(&ws::open(world.address, path, &[]).unwrap().refused(), 425, "bad_ticket");
        let (code, reason) = ws::open(world.address, path, &[("Origin", &page)]).unwrap().open().until_close();
        assert_eq!(code, 4425);
        assert!(reason.contains("bad_ticket"), "{reason}");
    }
}

#[test]
fn r50_forwarded_headers_are_trusted_only_from_configured_proxies() {
    let forward = "[gateway.forward_auth]\nheader = \"X-Forwarded-User\"\nusers = [\"ann\"]\n";
    let forwarded = [
        ("Host", "inner.test"),
        ("X-Forwarded-Host", "box.test"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Prefix", "/a/b"),
    ];
    let trusting = World::with(
        &[],
        &format!("[gateway]\nproxies = [\"127.0.0.0/8\"]\nhosts = [\"box.test\", \"inner.test\"]\n{forward}"),
    );
    let headers: Vec<_> = forwarded.iter().copied().chain([("Origin", "https://box.test")]).collect();
    let answer = log_in_with(&trusting, &trusting.login_code(), &headers);
    assert_eq!(answer.status, 200, "{}", answer.text());
    trusting.credentials(&answer);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("Path=/a/b;") && cookie.ends_with("Secure"), "{cookie}");
    let user = |name| forwarded.iter().copied().chain([("X-Forwarded-User", name)]).collect::<Vec<_>>();
    assert_eq!(get(&trusting, "/v1/sessions", &user("ann")).status, 200);
    check_problem(&get(&trusting, "/v1/sessions", &user("eve")), 403, "not_allowed");
    let twice: Vec<_> = user("ann").into_iter().chain([("x-forwarded-user", "ann")]).collect();
    check_problem(&get(&trusting, "/v1/sessions", &twice), 403, "not_allowed");
    check_problem(&get(&trusting, "/v1/sessions", &forwarded), 401, "not_authenticated");

    let distrusting =
        World::with(&[], &format!("[gateway]\nproxies = [\"192.0.2.0/24\"]\nhosts = [\"box.test\"]\n{forward}"));
    check_problem(&get(&distrusting, "/v1/sessions", &user("ann")), 403, "bad_host");
    let named: Vec<_> = user("ann").into_iter().filter(|(name, _)| *name != "Host").collect();
    check_problem(&get(&distrusting, "/v1/sessions", &named), 401, "not_authenticated");
    let answer = log_in_with(&distrusting, &distrusting.login_code(), &named);
    distrusting.credentials(&answer);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("Path=/;") && !cookie.contains("Secure"), "{cookie}");
}

/// Each client behind a trusted proxy has its own rate limit. A client cannot get one with a forged header.
#[test]
fn r50_login_attempts_are_counted_by_trusted_address() {
    let refused = |world: &World, from: fn(u32) -> String| {
        (0..6).any(|n| log_in_with(world, "wrong", &[("X-Forwarded-For", &from(n))]).status == 429)
    };
    let limits = "[gateway.limits]\nlogin_rate = 3\n";
    let behind = || World::with(&[], &format!("[gateway]\nproxies = [\"127.0.0.1/32\"]\n{limits}"));
    assert!(!refused(&behind(), |n| format!("198.51.100.7, 203.0.113.{n}")));
    assert!(refused(&World::with(&[], limits), |n| format!("198.51.100.7, 203.0.113.{n}")));
    // Addresses before the one that the proxy added come from the client, and do not count.
    assert!(refused(&behind(), |n| format!("203.0.113.{n}, x, 198.51.100.7")));
    assert!(refused(&behind(), |n| format!("203.0.113.{n}, x")));
}
