//! Refused streams: an HTTP status, or a close for a browser's WebSocket.

use std::time::Duration;

use bowline_proto::api::TokenScope;
use serde_json::json;

use super::client::{Sse, Ws};
use super::world::World;

const CLIENT: &str = "00000000-0000-4000-8000-00000000000a";

#[test]
fn r2_malformed_parameters_get_400_for_programs_and_4400_for_browsers() {
    let world = World::new();
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let origin = format!("http://{}", world.address);
    let auth = ("Authorization", bearer.as_str());
    for query in ["?client=", "?client=me", "?client=00000000-0000-4000-8000-00000000000A", "?watch=-x", "?watch=a@b:c"]
    {
        let sse = Sse::open(world.address, query, &[auth]);
        assert_eq!((sse.status, sse.header("bowline-code")), (400, "bad_request"), "{query}");
        assert_eq!(Ws::open(world.address, query, &[auth]).err(), Some((400, "bad_request".to_owned())), "{query}");
        let mut ws = Ws::open(world.address, query, &[auth, ("Origin", &origin)]).ok().unwrap();
        assert_eq!(ws.next(), Err(4400), "{query}");
    }
    let sse = Sse::open(world.address, "", &[auth, ("Last-Event-ID", "?")]);
    assert_eq!(sse.status, 400);
}

#[test]
fn r1_watching_an_unknown_name_is_refused() {
    let world = World::new();
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let origin = format!("http://{}", world.address);
    let auth = ("Authorization", bearer.as_str());
    let sse = Sse::open(world.address, "?watch=unknown", &[auth]);
    assert_eq!((sse.status, sse.header("bowline-code")), (404, "unknown_session"));
    assert_eq!(Ws::open(world.address, "?watch=unknown", &[auth]).err(), Some((404, "unknown_session".to_owned())));
    let mut ws = Ws::open(world.address, "?watch=unknown", &[auth, ("Origin", &origin)]).ok().unwrap();
    assert_eq!(ws.next(), Err(4404));
}

#[test]
fn r46_a_client_id_is_kept_or_generated() {
    let world = World::new();
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let auth = ("Authorization", bearer.as_str());
    let mut sse = Sse::open(world.address, &format!("?client={CLIENT}"), &[auth]);
    assert_eq!(sse.message()["client"], CLIENT);
    let mut ws = Ws::open(world.address, &format!("?client={CLIENT}"), &[auth]).ok().unwrap();
    assert_eq!(ws.message()["client"], CLIENT);
    let generated = Sse::open(world.address, "", &[auth]).message()["client"].as_str().unwrap().to_owned();
    assert_eq!(generated.len(), 36);
    assert_ne!(generated, CLIENT);
}

#[test]
fn r48_requests_without_valid_credentials_are_refused() {
    let world = World::new();
    let origin = format!("http://{}", world.address);
    let sse = Sse::open(world.address, "", &[]);
    assert_eq!((sse.status, sse.header("bowline-code")), (401, "not_authenticated"));
    assert_eq!(Ws::open(world.address, "", &[]).err(), Some((401, "not_authenticated".to_owned())));
    let mut ws = Ws::open(world.address, "", &[("Origin", &origin)]).ok().unwrap();
    assert_eq!(ws.next(), Err(4401));
    assert_eq!(Sse::open(world.address, "?ticket=used", &[]).status, 425);
    let mut ws = Ws::open(world.address, "?ticket=used", &[("Origin", &origin)]).ok().unwrap();
    assert_eq!(ws.next(), Err(4425));
    let evil = Sse::open(world.address, "", &[("Origin", "http://evil.test")]);
    assert_eq!((evil.status, evil.header("bowline-code")), (403, "bad_origin"));
    let mut ws = Ws::open(world.address, "", &[("Origin", "http://evil.test")]).ok().unwrap();
    assert_eq!(ws.next(), Err(4403));
}

#[test]
fn r48_a_ticket_opens_one_stream() {
    let world = World::new();
    let (token, _) = world.token(TokenScope::Read);
    let caller = world.auth.bearer(&token).unwrap();
    let query = format!("?ticket={}", world.auth.issue_ticket(&caller).unwrap().ticket.reveal());
    let mut sse = Sse::open(world.address, &query, &[]);
    assert_eq!(sse.message()["type"], "welcome");
    assert_eq!(Sse::open(world.address, &query, &[]).status, 425);
}

#[test]
fn r48_a_cookie_needs_its_key_in_the_first_message() {
    let world = World::new();
    let code = world.auth.new_code().unwrap();
    let login = world.auth.login(code.code.reveal(), "test").unwrap();
    let cookie = format!("{}={}", world.auth.cookie_name(), login.cookie.reveal());
    let origin = format!("http://{}", world.address);
    let headers = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
    let open = || Ws::open(world.address, "", &headers).ok().unwrap();

    let mut ws = open();
    ws.send(&json!({ "type": "hello", "key": login.key.reveal() }));
    assert_eq!(ws.message()["type"], "welcome");
    assert_eq!(ws.message()["type"], "board");
    world.auth.revoke(&login.id).unwrap();
    assert_eq!(ws.until_close(), 4401);
    assert_eq!(open().next(), Err(4401), "the login was revoked");

    let code = world.auth.new_code().unwrap();
    let login = world.auth.login(code.code.reveal(), "test").unwrap();
    let cookie = format!("{}={}", world.auth.cookie_name(), login.cookie.reveal());
    let headers = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
    let open = || Ws::open(world.address, "", &headers).ok().unwrap();
    for wrong in [json!({ "type": "hello", "key": "wrong" }), json!({ "type": "ping", "n": 1 })] {
        let mut ws = open();
        ws.send(&wrong);
        assert_eq!(ws.next(), Err(4401), "{wrong}");
    }
    let mut ws = open();
    ws.send(&json!({ "key": "no type" }));
    assert_eq!(ws.next(), Err(4400));
    for (key, code) in [("wrong", 4401), (login.key.reveal(), 4400)] {
        let mut ws = Ws::open(world.address, "?client=me", &headers).ok().unwrap();
        ws.send(&json!({ "type": "hello", "key": key }));
        assert_eq!(ws.next(), Err(code), "parameters are checked after the key");
    }
    assert_eq!(Sse::open(world.address, "", &headers).status, 401, "SSE has no hello");
}

#[test]
fn r48_waiting_for_the_key_times_out() {
    let world = World::with(|limits| limits.hello_within = Duration::from_millis(200));
    let code = world.auth.new_code().unwrap();
    let login = world.auth.login(code.code.reveal(), "test").unwrap();
    let cookie = format!("{}={}", world.auth.cookie_name(), login.cookie.reveal());
    let origin = format!("http://{}", world.address);
    let headers = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
    assert_eq!(Ws::open(world.address, "", &headers).ok().unwrap().next(), Err(4408), "no hello arrived");
}

#[test]
fn r52_streams_are_limited_per_token() {
    let world = World::with(|limits| limits.streams_per_token = 2);
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let auth = ("Authorization", bearer.as_str());
    let mut first = Ws::open(world.address, "", &[auth]).ok().unwrap();
    first.message();
    let mut second = Sse::open(world.address, "", &[auth]);
    second.message();
    assert_eq!(Sse::open(world.address, "", &[auth]).status, 429);
    let origin = format!("http://{}", world.address);
    let mut third = Ws::open(world.address, "", &[auth, ("Origin", &origin)]).ok().unwrap();
    assert_eq!(third.next(), Err(4429));
    drop(first);
    let mut again = Sse::open(world.address, "", &[auth]);
    let deadline = std::time::Instant::now() + super::world::TIMEOUT;
    while again.status != 200 && std::time::Instant::now() < deadline {
        again = Sse::open(world.address, "", &[auth]);
    }
    assert_eq!(again.message()["type"], "welcome");
}

#[test]
fn r52_readers_leave_streams_for_writers() {
    let world = World::with(|limits| limits.streams = 4);
    let open = |scope| {
        let bearer = format!("Bearer {}", world.token(scope).0);
        Sse::open(world.address, "", &[("Authorization", bearer.as_str())])
    };
    let readers = [(); 4].map(|()| open(TokenScope::Read));
    assert_eq!(readers.each_ref().map(|reader| reader.status), [200, 200, 200, 429]);
    let writers = [(); 2].map(|()| open(TokenScope::Write));
    assert_eq!(writers.each_ref().map(|writer| writer.status), [200, 429], "one place was left");
}
