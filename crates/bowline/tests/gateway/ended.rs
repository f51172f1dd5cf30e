//! Viewers of ended sessions that stall: they keep neither a place nor others out.

use std::time::Duration;

use bowline_host::archive::{Archive, SharedScreen};
use bowline_host::home::Home;
use bowline_host::registry;
use bowline_host::saved::SavedScreen;
use bowline_proto::frame;
use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::hostile::memory;
use super::refusals::{hello, until_type};
use super::viewer::{End, Viewer, contains};
use super::ws::{self, Message, Ws};

/// An ended session that printed much more than a viewer gets without acknowledging any of it.
fn ended(world: &World) -> String {
    let id = world.shell("yes 'a line of the log' | head -c 2000000; echo; echo the-end");
    let process = format!("/proc/{}", world.session_pid(&id));
    // Until then, it would serve the viewers itself.
    wait_until("the session process has ended", || (!std::path::Path::new(&process).exists()).then_some(()));
    id
}

/// A viewer that wants the whole log and acknowledges nothing.
fn stalled(world: &World, id: &str, token: &str, client: u64) -> Ws {
    let bearer = format!("Bearer {token}");
    let path = format!("/v1/sessions/{id}/attach");
    let mut ws = ws::open(world.address, &path, &[("Authorization", &bearer)]).unwrap().open();
    ws.send_text(&from_start(world, id, client)).unwrap();
    until_type(&mut ws, "attached");
    ws
}

/// A hello that requests the log from its start.
fn from_start(world: &World, id: &str, client: u64) -> String {
    let epoch = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json()["epoch"].clone();
    hello(client, 1, &json!({"cursor": {"epoch": epoch, "offset": 0}, "lag": "wait"}))
}

/// Reads an ended session to its end.
#[track_caller]
fn check_readable(world: &World, id: &str, client: u64) {
    let mut viewer = Viewer::new(world.address, &world.token, id, client);
    let epoch = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json()["epoch"].clone();
    viewer.cursor = Some((epoch.as_str().unwrap().to_owned(), 0));
    viewer.dial(Duration::from_secs(30)).unwrap();
    let end = loop {
        if let Err(end) = viewer.step() {
            break end;
        }
    };
    assert!(matches!(end, End::Closed(1000, _)), "{end:?}");
    assert!(viewer.exit.is_some() && contains(&viewer.output, "the-end"));
}

#[test]
fn r52_stalled_readers_do_not_keep_others_from_ended_sessions() {
    let world = World::new();
    let (id, other) = (ended(&world), ended(&world));
    let readers = ["a", "b"].map(|name| world.new_token(name, "read"));
    let mut crowd: Vec<Ws> = (0..80_u64).map(|n| stalled(&world, &id, &readers[n as usize % 2], n)).collect();
    check_readable(&world, &id, 1000);
    check_readable(&world, &other, 1001);
    let (code, reason) = crowd[0].until_close();
    assert_eq!(code, 4429, "the oldest of the crowd made room: {reason}");
    assert!(reason.contains("too_many") && reason.contains("retry_after="), "{reason}");
    // The owner's own stalled viewers do not keep it out, either.
    crowd.extend((100..180).map(|n| stalled(&world, &id, &world.token, n)));
    check_readable(&world, &other, 1002);
}

/// It reads, and answers and sends pings, so it is not silent.
#[test]
fn r52_a_viewer_of_an_ended_session_that_acknowledges_nothing_is_closed() {
    let world = World::with(&[], "[gateway.limits]\nstalled_after = \"1s\"\n");
    let id = ended(&world);
    let mut viewer = stalled(&world, &id, &world.token, 1);
    let (code, reason) = wait_until("the viewer is closed", || {
        let _ = viewer.send_text(&json!({"type": "ping", "n": 1}).to_string());
        match viewer.next() {
            Ok(Some(Message::Close(code, reason))) => Some((code, reason)),
            Ok(Some(_)) => None,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(code, 4408, "{reason}");
}

#[test]
fn r52_an_archive_waits_for_a_slow_viewer_and_not_for_a_stalled_one() {
    let world = World::new();
    let id = ended(&world);
    let home = Home::new(world.state(), world.path().join("r")).unwrap();
    let entry = registry::find(&home, &id).unwrap();
    let (limit, second) = (Duration::from_secs(45), Duration::from_secs(1));
    let mut archive = Archive::open(&entry, limit, &mut SharedScreen::default()).unwrap();
    let text = |text: &str| {
        let mut wire = Vec::new();
        frame::put_text(&mut wire, text);
        wire
    };
    let mut now = Duration::ZERO;
    assert!(archive.handle_bytes(&text(&from_start(&world, &id, 1)), now));
    let mut acked = 0;
    for _ in 0..3 {
        let mut sent = 0;
        loop {
            let mut frames = Vec::new();
            assert!(!archive.poll_frames(&mut frames, now), "closed after {now:?}");
            if frames.is_empty() {
                break;
            }
            sent += frames.len();
        }
        assert!(sent > 1000, "the acknowledgement was not followed by output");
        assert!(archive.poll_timeout() <= now + limit);
        now += limit - second;
        // The viewer is alive, but only an acknowledgement is progress.
        assert!(archive.handle_bytes(&text(r#"{"type":"ping","n":1}"#), now));
        acked += 10_000;
        assert!(archive.handle_bytes(&text(&json!({"type": "ack", "output": acked}).to_string()), now));
    }
    let mut frames = Vec::new();
    while !archive.poll_frames(&mut frames, now) {
        assert!(now < 10 * limit, "the viewer was never closed");
        now += second;
        assert!(archive.handle_bytes(&text(r#"{"type":"ping","n":1}"#), now));
    }
    assert!(contains(&frames, r#""code":4408"#), "{}", String::from_utf8_lossy(&frames));
}

/// Each of them used to keep a copy of the screen, and another one while it did not read.
#[test]
fn r52_stalled_viewers_of_an_ended_session_share_its_last_screen() {
    let world = World::new();
    let id = ended(&world);
    let file = world.session_dir(&id).join("screen");
    let mut screen = SavedScreen::decode(&std::fs::read(&file).unwrap()).unwrap();
    screen.all = vec![b' '; 4 << 20];
    std::fs::write(&file, screen.encode()).unwrap();
    let attach = |client| {
        let path = format!("/v1/sessions/{id}/attach");
        let mut ws = ws::open(world.address, &path, &[("Authorization", &world.bearer())]).unwrap().open();
        ws.send_text(&hello(client, 1, &json!({}))).unwrap();
        until_type(&mut ws, "attached");
        ws
    };
    let before = memory(world.gateway_pid());
    let crowd: Vec<Ws> = (0..60).map(attach).collect();
    let grown = memory(world.gateway_pid()).saturating_sub(before) >> 20;
    assert!(grown < 120, "{} viewers take {grown} MiB", crowd.len());
}
