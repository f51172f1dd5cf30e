//! Watching agent sessions, which sends their events, too.

use bowline_host::machine::{this_boot, this_host};
use bowline_host::transcript::Transcript;
use bowline_proto::agent::event::{AgentEvent, Level};
use bowline_proto::api::TokenScope;
use bowline_proto::ids::{Epoch, SessionId};
use serde_json::{Value, json};

use super::client::{Sse, SseItem, Ws};
use super::world::World;

/// Creates an ended agent session with five events.
fn ended_agent(world: &World, n: u8) -> SessionId {
    let dir = world.home.session(&SessionId::from_random([n; 12]));
    std::fs::create_dir(dir.path()).unwrap();
    let mut transcript = Transcript::open(&dir).unwrap().transcript;
    let mut record = |event| transcript.append(event).unwrap();
    record(AgentEvent::Started { epoch: Epoch::from_random([0, 0, 0, n]), pid: 1, version: "0.1.0".to_owned() });
    for text in ["one", "two", "three"] {
        record(AgentEvent::Notice { level: Level::Info, text: text.to_owned() });
    }
    record(AgentEvent::Exit { code: Some(0), signal: None });
    let meta = json!({
        "id": dir.id(), "name": null, "kind": "agent", "cwd": "/", "created": "2026-01-01T00:00:00Z", "host": this_host(),
        "boot": this_boot(), "agent": "fake", "protocol": "acp", "command": ["fake"], "agent_env": [],
    });
    let meta: bowline_host::meta::Meta = serde_json::from_value(meta).unwrap();
    meta.write(&dir.meta()).unwrap();
    dir.id().clone()
}

/// The next message that is not about the board.
fn next_of_session(ws: &mut Ws) -> Value {
    loop {
        let message = ws.message();
        if !["welcome", "board", "session"].contains(&message["type"].as_str().unwrap()) {
            return message;
        }
    }
}

#[test]
fn r46_sse_and_websocket_send_the_same_events_of_watched_sessions() {
    let world = World::new();
    let (agent, terminal) = (ended_agent(&world, 1), world.ended(70));
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let auth = ("Authorization", bearer.as_str());
    let mut sse = Sse::open(world.address, &format!("?watch={agent}@00000001:2,{}", terminal.dir.id()), &[auth]);
    let mut ws = Ws::open(world.address, "", &[auth]).ok().unwrap();
    let cursor = json!({ "epoch": "00000001", "offset": 2 });
    ws.send(&json!({ "type": "watch", "sessions": [{ "id": terminal.dir.id() }, { "id": agent, "cursor": cursor }] }));
    let mut seqs = Vec::new();
    while seqs.len() < 4 {
        let Some(SseItem::Event { id, data }) = sse.next() else { panic!("no event") };
        let id = id.unwrap();
        if data["type"] == "watched" || data["type"] == "event" {
            let seq = data["seq"].as_u64().unwrap();
            let next = seq + u64::from(data["type"] == "event");
            assert!(id.split(';').any(|item| item == format!("{agent}:00000001:{next}")), "{id}");
            assert_eq!(next_of_session(&mut ws), data);
            seqs.push(seq);
        }
        assert!(id.split(';').any(|item| item == terminal.dir.id().as_str()), "{id}");
    }
    assert_eq!(seqs, [2, 2, 3, 4]);
}

#[test]
fn r46_a_websocket_watches_and_unwatches_at_any_time_up_to_a_limit() {
    let world = World::new();
    let (one, two) = (ended_agent(&world, 1), ended_agent(&world, 2));
    let bearer = format!("Bearer {}", world.token(TokenScope::Read).0);
    let mut ws = Ws::open(world.address, "", &[("Authorization", &bearer)]).ok().unwrap();
    let others: Vec<Value> = (0..64).map(|n| json!({ "id": format!("{n:0>12}") })).collect();
    ws.send(&json!({ "type": "watch", "sessions": others[..63] }));
    ws.send(&json!({ "type": "watch", "sessions": [{ "id": one }, { "id": two }] }));
    let refused = next_of_session(&mut ws);
    assert_eq!((&refused["type"], &refused["code"]), (&json!("error"), &json!("too_many")), "and nothing changed:");
    ws.send(&json!({ "type": "watch", "sessions": [{ "id": one }] }));
    let watched = |session: &SessionId, n: u8, seq: u64, fresh: bool| {
        let mut watched = json!({ "type": "watched", "session": session, "epoch": format!("{n:0>8}"), "seq": seq });
        watched["verdict"] = if fresh { "snapshot" } else { "exact" }.into();
        if fresh {
            watched["reason"] = "fresh".into();
        }
        watched
    };
    assert_eq!(next_of_session(&mut ws), watched(&one, 1, 5, true));
    ws.send(&json!({ "type": "unwatch", "sessions": [one, "zzzzzzzzzzzz"] }));
    let cursor = json!({ "epoch": "00000002", "offset": 4 });
    let again = json!({ "type": "watch", "sessions": [{ "id": two, "cursor": cursor }] });
    for _ in 0..2 {
        ws.send(&again);
        assert_eq!(next_of_session(&mut ws), watched(&two, 2, 4, false), "a repeated watch starts again");
        let event = next_of_session(&mut ws);
        assert_eq!((&event["seq"], &event["event"]["type"]), (&json!(4), &json!("exit")));
    }
}
