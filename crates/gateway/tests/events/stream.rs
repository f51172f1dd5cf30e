//! The messages of a stream, and how it ends.

use std::time::{Duration, Instant};

use bowline_proto::api::TokenScope;
use serde_json::{Value, json};

use super::client::{Sse, SseItem, Ws};
use super::world::{TIMEOUT, World};

fn both(world: &World) -> (Sse, Ws, String) {
    let (token, id) = world.token(TokenScope::Read);
    let bearer = format!("Bearer {token}");
    let auth = [("Authorization", bearer.as_str())];
    (Sse::open(world.address, "", &auth), Ws::open(world.address, "", &auth).ok().unwrap(), id)
}

#[test]
fn r46_sse_and_websocket_carry_the_same_messages() {
    let world = World::new();
    let (mut first, second) = (world.ended(1), world.ended(2));
    let (mut sse, mut ws, _) = both(&world);
    assert_eq!(sse.status, 200);
    assert_eq!(sse.header("content-type"), "text/event-stream");
    assert_eq!(sse.header("cache-control"), "no-store");
    assert_eq!(sse.header("x-accel-buffering"), "no");

    let (mut a, mut b) = (sse.message(), ws.message());
    assert_eq!(a["type"], "welcome");
    assert_eq!(a["heartbeat"], 20_000);
    assert!(a["epoch"].as_str().is_some_and(|epoch| !epoch.is_empty()));
    assert_ne!(a["client"], b["client"]);
    (a["client"], b["client"]) = (Value::Null, Value::Null);
    assert_eq!(a, b);

    let mut same = || {
        let (a, b) = (sse.message(), ws.message());
        assert_eq!(a, b);
        a
    };
    let board = same();
    assert_eq!(board["type"], "board");
    let names: Vec<&Value> = board["sessions"].as_array().unwrap().iter().map(|session| &session["name"]).collect();
    assert_eq!(names, ["s1", "s2"], "oldest first");
    assert_eq!(board["sessions"][0]["state"], "exited");

    first.rename("renamed");
    let renamed = same();
    assert_eq!(renamed["type"], "session");
    assert_eq!(renamed["session"]["name"], "renamed");
    assert_eq!(renamed["session"]["id"], first.dir.id().as_str());
    second.forget();
    assert_eq!(same(), json!({ "type": "session_gone", "id": second.dir.id() }));
    let third = world.ended(3);
    let new = same();
    assert_eq!((&new["type"], &new["session"]["id"]), (&json!("session"), &json!(third.dir.id())));
}

#[test]
fn r46_watching_a_terminal_adds_no_events_and_keeps_its_position() {
    let world = World::new();
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let auth = ("Authorization", bearer.as_str());
    let watch = "?watch=aaaaaaaaaaaa@9f3c61d2:7,bbbbbbbbbbbb";
    let mut sse = Sse::open(world.address, watch, &[auth]);
    let Some(SseItem::Event { id, data }) = sse.next() else { panic!("no welcome") };
    assert_eq!((id.as_deref(), &data["type"]), (Some("aaaaaaaaaaaa:9f3c61d2:7;bbbbbbbbbbbb"), &json!("welcome")));
    let mut again = Sse::open(world.address, "?watch=cccccccccccc", &[auth, ("Last-Event-ID", &id.clone().unwrap())]);
    let Some(SseItem::Event { id: kept, .. }) = again.next() else { panic!("no welcome") };
    assert_eq!(kept, id, "Last-Event-ID overrides the query");
    let mut ws = Ws::open(world.address, watch, &[auth]).ok().unwrap();
    assert_eq!(ws.message()["type"], "welcome");
}

#[test]
fn r46_a_session_can_be_watched_by_name() {
    let world = World::new();
    let (one, two) = (world.ended(1), world.ended(2));
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let auth = ("Authorization", bearer.as_str());
    let mut sse = Sse::open(world.address, "?watch=s2,s1@9f3c61d2:7", &[auth]);
    let Some(SseItem::Event { id, .. }) = sse.next() else { panic!("no welcome") };
    assert_eq!(id, Some(format!("{}:9f3c61d2:7;{}", one.dir.id(), two.dir.id())), "the cursor contains ids");
    assert_eq!(Ws::open(world.address, "?watch=s1", &[auth]).ok().unwrap().message()["type"], "welcome");
}

#[test]
fn r46_a_comment_is_sent_every_heartbeat_even_among_changes() {
    let world = World::with(|limits| limits.heartbeat = Duration::from_millis(300));
    let mut session = world.ended(1);
    let (mut sse, _, _) = both(&world);
    let deadline = std::time::Instant::now() + super::world::TIMEOUT;
    for n in 0.. {
        assert!(std::time::Instant::now() < deadline, "no comment arrived");
        session.rename(&format!("n{n}"));
        if sse.next().unwrap() == SseItem::Comment {
            break;
        }
    }
}

#[test]
fn r46_both_sides_answer_pings_and_a_silent_client_is_closed() {
    // A client has 2.25 times as long to answer, which must be enough on a busy machine.
    let world = World::with(|limits| limits.heartbeat = Duration::from_secs(1));
    let (mut sse, mut ws, _) = both(&world);
    ws.send(&json!({ "type": "ping", "n": 7 }));
    ws.send(&json!({ "type": "from a newer version", "n": 8 }));
    let mut pinged = 0;
    loop {
        let message = ws.next().unwrap();
        match message["type"].as_str() {
            Some("ping") => {
                pinged += 1;
                ws.send(&json!({ "type": "pong", "n": message["n"] }));
            }
            Some("pong") => assert_eq!(message["n"], 7),
            _ => {}
        }
        if pinged == 4 {
            break; // longer than the gateway waits for a silent client
        }
    }
    assert_eq!(ws.until_close(), 4408);
    while sse.next().unwrap() != SseItem::Comment {}
    assert_eq!(sse.next(), Some(SseItem::Comment), "one at every heartbeat");
}

/// A client that receives changes all the time sends no pings. It used to be closed as silent, because the
/// gateway sent no pings either.
#[test]
fn r46_a_client_that_only_answers_pings_stays_connected_among_changes() {
    let world = World::with(|limits| limits.heartbeat = Duration::from_secs(1));
    let mut session = world.ended(1);
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let mut ws = Ws::open(world.address, "", &[("Authorization", &bearer)]).ok().unwrap();
    let (mut pinged, mut changes) = (0, 0);
    // Longer than the gateway waits for a silent client.
    while pinged < 4 {
        session.rename(&format!("n{changes}"));
        let message = ws.next().unwrap();
        if message["type"] == "ping" {
            pinged += 1;
            ws.send(&json!({ "type": "pong", "n": message["n"] }));
        } else {
            changes += 1;
        }
    }
}

#[test]
fn r46_an_invalid_message_closes_the_stream() {
    let world = World::new();
    for wrong in ["", "{", "[]", "{}", r#"{"type":"ping"}"#] {
        let (_, mut ws, _) = both(&world);
        ws.0.send(tungstenite::Message::text(wrong)).unwrap();
        assert_eq!(ws.until_close(), 4400, "{wrong}");
    }
    let (_, mut ws, _) = both(&world);
    ws.0.send(tungstenite::Message::binary(vec![1, 2, 3])).unwrap();
    assert_eq!(ws.until_close(), 4400);
}

#[test]
fn r50_revoking_a_token_ends_only_its_streams() {
    let world = World::new();
    let (mut sse, mut ws, id) = both(&world);
    let (mut other, _, _) = both(&world);
    for _ in 0..2 {
        sse.message();
        ws.message();
    }
    other.message();
    world.auth.revoke(&id).unwrap();
    assert_eq!(ws.until_close(), 4401);
    while sse.next().is_some() {}
    assert_eq!(other.message()["type"], "board");
    world.ended(1);
    assert_eq!(other.message()["type"], "session");
}

#[test]
fn r21_stopping_the_gateway_closes_streams_cleanly() {
    let world = World::new();
    let (mut sse, mut ws, _) = both(&world);
    sse.message();
    ws.message();
    world.stop.cancel();
    assert_eq!(ws.until_close(), 1001);
    while sse.next().is_some() {}
}

/// A subscriber that reads nothing fills the buffers of its own connection, and must not block the others.
#[test]
fn r46_a_stalled_subscriber_is_cut_and_does_not_delay_others() {
    let world = World::with(|limits| {
        limits.stalled_after = Duration::from_millis(500);
        limits.heartbeat = Duration::from_millis(100);
        limits.streams_per_token = 2;
    });
    let mut sessions: Vec<_> = (0..200).map(|n| world.ended_of(n, &"x".repeat(4096))).collect();
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let auth = [("Authorization", bearer.as_str())];
    let mut stopped = Sse::open(world.address, "", &auth);
    let mut reading = Sse::open(world.address, "", &auth);
    // In its own thread, so that it never stops reading.
    let (sender, messages) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || while sender.send(reading.message()).is_ok() {});
    let next = || messages.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(next()["type"], "welcome");
    assert_eq!(next()["sessions"].as_array().unwrap().len(), 200);
    // The kernel buffers a few megabytes before a connection is full.
    for round in 0..20 {
        for (n, session) in sessions.iter_mut().enumerate() {
            session.rename(&format!("r{round}-{n}"));
        }
        let last = format!("r{round}-");
        let mut seen = std::collections::HashSet::new();
        while seen.len() < 200 {
            let message = next();
            let named =
                |session: &Value| session["name"].as_str().filter(|name| name.starts_with(&last)).map(str::to_owned);
            match message["type"].as_str() {
                Some("session") => seen.extend(named(&message["session"])),
                Some("board") => seen.extend(message["sessions"].as_array().unwrap().iter().filter_map(named)),
                _ => {}
            }
        }
    }
    let deadline = Instant::now() + TIMEOUT;
    while Sse::open(world.address, "", &auth).status != 200 {
        assert!(Instant::now() < deadline, "its stream slot was never released");
        std::thread::sleep(Duration::from_millis(10));
    }
    while stopped.next().is_some() {}
    drop(messages);
    sessions[0].rename("the-last");
    reader.join().unwrap();
}
