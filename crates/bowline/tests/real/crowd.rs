//! Many viewers of one session.

use std::process::Stdio;

use serde_json::{Value, json};

use super::viewer::{Viewer, connect, hello};
use super::world::{World, wait_until};

#[test]
fn r26_every_viewer_of_a_crowd_gets_every_byte() {
    const VIEWERS: u64 = 60;
    let world = World::new();
    let id = world.shell("stty -echo; printf READY; read x; seq 1 30000; echo $x");
    world.wait_for_screen(&id, "READY");
    let attach = |n| Viewer::attach(&world, &id, &hello(n, 1, json!({})));
    let mut viewers: Vec<Viewer> = (1..=VIEWERS).map(attach).collect();
    viewers[7].type_text("typed\n");
    let expected: String = (1..=30000).map(|n| format!("{n}\r\n")).chain(["typed\r\n".to_owned()]).collect();
    std::thread::scope(|scope| {
        for (n, viewer) in viewers.iter_mut().enumerate() {
            let expected = &expected;
            scope.spawn(move || {
                viewer.finish();
                assert_eq!(viewer.exit.as_ref().map(|exit| &exit["code"]), Some(&json!(0)), "viewer {n}");
                assert!(viewer.output == expected.as_bytes(), "viewer {n} got {} bytes", viewer.output.len());
            });
        }
    });
    let lists = |viewer: &Viewer| viewer.texts.iter().filter(|text| text["type"] == "presence").count();
    assert!(viewers.iter().all(|viewer| lists(viewer) >= 1), "every viewer received a presence list");
}

/// A session at its limit of viewers still answers control requests, and can be ended.
#[test]
fn r26_a_full_session_is_still_its_owners() {
    // With 160 open files, a session accepts 32 viewers.
    const FULL: u64 = 32;
    let world = World::new();
    let mut shell = std::process::Command::new("sh");
    let script =
        "ulimit -n 160; \"$0\" new --detach -- sh -c 'stty -echo; printf READY; read x; echo got $x; exec cat'";
    shell.args(["-c", script]).arg(env!("CARGO_BIN_EXE_bowline")).stdin(Stdio::null());
    for (name, value) in world.bowline().get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let id = String::from_utf8(shell.output().unwrap().stdout).unwrap().trim().to_owned();
    world.wait_for_screen(&id, "READY");
    let watch = |n, conn| {
        let mut viewer = Viewer::attach(&world, &id, &hello(n, conn, json!({"observe": true})));
        std::thread::spawn(move || viewer.finish())
    };
    let mut watching: Vec<_> = (1..=FULL).map(|n| watch(n, 1)).collect();
    let mut late = Viewer::raw(connect(&world, &id));
    late.send(&hello(FULL + 1, 1, json!({})));
    late.finish();
    let last = late.texts.last().expect("a close message");
    assert_eq!((&last["type"], &last["code"]), (&json!("close"), &json!(4429)));
    assert!(last["reason"].as_str().unwrap().contains("retry_after="), "{last}");
    watching.push(watch(1, 2)); // a client that reconnects keeps its slot
    // Each request has its own connection. Control connections must not count as viewers.
    for round in 0..FULL {
        let name = format!("round-{round}");
        world.run(&["rename", &id, &name]);
        assert_eq!(world.info(&name)["id"], json!(id));
    }
    world.wait_for_info(&id, "all viewers are counted", |info| info["clients"] == json!(FULL));
    world.run(&["send", &id, "hello", "--enter"]);
    world.wait_for_screen(&id, "got hello");
    world.run(&["kill", &id]);
    assert_eq!(world.info(&id), Value::Null);
    watching.into_iter().for_each(|viewer| viewer.join().unwrap());
}

#[test]
fn r52_a_viewer_that_leaves_without_reading_is_dropped() {
    let world = World::new();
    let id = world.shell("printf READY; read x; exec yes");
    world.wait_for_screen(&id, "READY");
    let pid = world.pid(&id);
    let fds = || std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let before = fds();
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.type_text("\n");
    // A fast reader is sent more than its socket can hold.
    viewer.until("the viewer is fast", |viewer| viewer.offset > 8 << 20);
    let offset = |info: &Value| info["offset"].as_u64().unwrap();
    let stopped = viewer.offset;
    world.wait_for_info(&id, "the viewer's socket is full", |info| offset(info) > stopped + (4 << 20));
    viewer.send(&json!({"type": "leave"}));
    wait_until("the descriptor is closed", || (fds() == before).then_some(()));
}
