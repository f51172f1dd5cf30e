//! Refusals in the gateway's log: every kind is there, bounded, and without secrets or control characters.

use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::http;
use super::metrics::metric;
use super::refusals::{hello, open, origin};
use super::ws;

/// Waits for a line about a refusal that contains all of these.
#[track_caller]
fn until_logged(world: &World, parts: &[&str]) -> String {
    wait_until(&format!("a line with {parts:?}"), || {
        let log = world.log();
        let mut refused = log.lines().filter(|line| line.contains("refused code="));
        refused.find(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned)
    })
}

#[test]
fn r49_every_kind_of_refusal_is_logged() {
    let world = World::new();
    let id = world.shell("exec cat");
    let attach = format!("/v1/sessions/{id}/attach");
    let bearer = world.bearer();
    let auth = ("Authorization", bearer.as_str());
    let get = |path: &str, headers: &[(&str, &str)]| drop(http::request(world.address, "GET", path, headers, b""));
    get("/v1/a", &[("Host", "evil.test")]);
    until_logged(&world, &[r#"code="bad_host""#, r#"path="/v1/a""#, "evil.test", "from=127.0.0.1"]);
    get("/v1/b", &[("Origin", "http://evil.test")]);
    until_logged(&world, &[r#"code="bad_origin""#, r#"path="/v1/b""#, "evil.test"]);
    get("/v1/events?client=SomeOne", &[auth]);
    until_logged(&world, &[r#"code="bad_request""#, r#"path="/v1/events""#, "invalid client id"]);
    get("/v1/tokens", &[]);
    until_logged(&world, &[r#"code="not_authenticated""#, r#"path="/v1/tokens""#]);
    // A page gets its refusal as a close, before or after the upgrade.
    let page = ("Origin", &*origin(world.address));
    ws::open(world.address, "/v1/sessions/missing/attach", &[auth, page]).unwrap().open().until_close();
    until_logged(&world, &[r#"code="unknown_session""#, r#"path="/v1/sessions/missing/attach""#]);
    let mut ws = open(&world, &id, true);
    ws.send_text("{}").unwrap();
    ws.until_close();
    until_logged(&world, &[r#"code="bad_request""#, &attach, "must be a hello"]);
    // The session itself refuses this one.
    let mut ws = open(&world, &id, false);
    ws.send_text(&hello(1, 1, &json!({"client": "x"}))).unwrap();
    ws.until_close();
    wait_until("both are counted", || {
        (metric(&world, r#"bowline_refusals_total{code="bad_request"}"#) >= 3.0).then_some(())
    });
    let mut ws = ws::open(world.address, "/v1/events", &[auth]).unwrap().open();
    ws.send_text("\"typed\"").unwrap();
    ws.until_close();
    wait_until("it is counted", || {
        (metric(&world, r#"bowline_refusals_total{code="bad_request"}"#) >= 4.0).then_some(())
    });
}

#[test]
fn r49_the_log_has_no_secrets_and_no_control_characters() {
    let world = World::new();
    let secret = "a-secret-that-must-not-be-logged";
    world.add_secret(secret);
    let bearer = world.bearer();
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let call = |method: &str, path: &str, body: &str| {
        let answer = http::request(world.address, method, path, &headers, body.as_bytes()).unwrap();
        assert!((400..500).contains(&answer.status), "{path} {body}: {}", answer.text());
    };
    // The harness fails the test if its log has a secret.
    call("POST", "/v1/login", &json!(secret).to_string());
    call("POST", "/v1/login", &json!({"code": secret}).to_string());
    call("DELETE", &format!("/v1/tokens/{}", world.token), "");
    call("GET", &format!("/v1/sessions/{}", world.token), "");
    let id = world.shell("exec cat");
    call("GET", &format!("/v1/sessions/{id}/log?from={secret}"), "");
    call("POST", &format!("/v1/sessions/{id}/commands"), &json!({"id": "c", "command": secret}).to_string());
    call("POST", &format!("/v1/sessions/{id}/commands"), &json!({"id": "c", "command": [secret]}).to_string());
    let env = json!({"kind": "terminal", "argv": ["cat"], "env": {format!("KEY={secret}"): ""}});
    call("POST", "/v1/sessions", &env.to_string());
    let named = json!({"kind": "terminal", "name": "busy", "argv": ["sh", "-c", "exec cat", secret]});
    assert_eq!(world.call("POST", "/v1/sessions", &named).status, 201);
    call("POST", "/v1/sessions", &named.to_string());
    assert_eq!(world.call("DELETE", "/v1/sessions/busy?grace=0", &Value::Null).status, 204);
    for ticket in [&secret, &&world.token[..]] {
        let path = format!("/v1/events?ticket={ticket}");
        assert_eq!(http::request(world.address, "GET", &path, &[], b"").unwrap().status, 425);
    }
    let page = ws::open(world.address, "/v1/events", &headers[..1]).unwrap();
    let mut page = page.open();
    page.send_text(&json!(secret).to_string()).unwrap();
    page.until_close();
    // A raw control character is not valid in a header or a path, but an encoded one in a name is.
    call("GET", "/v1/sessions/%1b%5b31mred", "");
    let line = until_logged(&world, &[r#"code="bad_name""#, "31mred"]);
    assert!(!line.contains('\u{1b}'), "{line:?}");
}

#[test]
fn r52_a_flood_of_refusals_does_not_fill_the_log() {
    let world = World::new();
    let mut sent = 0;
    let mut send = || {
        assert_eq!(http::request(world.address, "GET", "/v1/flood", &[], b"").unwrap().status, 404);
        sent += 1;
        sent
    };
    for _ in 0..100 {
        send();
    }
    wait_until("each refusal is either logged or counted", || {
        let (sent, log) = (send(), world.log());
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(r#"path="/v1/flood""#)).collect();
        let left_out = lines.iter().filter_map(|line| line.split_once("left_out=")?.1.parse::<u64>().ok()).sum::<u64>();
        (left_out > 0 && lines.len() as u64 + left_out == sent).then_some(())
    });
}
