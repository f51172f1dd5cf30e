//! What lists read, and what they show of sessions that this version does not know.

use std::fs;

use bowline_host::home::SessionDir;
use bowline_host::machine::{this_boot, this_host};
use serde_json::{Value, json};

use super::world::{World, wait_until};

/// Overwrites all events but the last, so that only a checkpoint can tell what they were.
fn blank_events(dir: &SessionDir) {
    let mut events = fs::read(dir.events()).unwrap();
    let last = events[..events.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    events[..last].fill(b'x');
    fs::write(dir.events(), events).unwrap();
}

#[test]
fn r21_a_session_process_leaves_a_checkpoint_of_its_events() {
    let world = World::new();
    let id = world.shell(r"printf '\033]0;first\007'; read x; printf '\033]0;second\007'; exit 3");
    let dir = world.dir(&id);
    wait_until("a checkpoint while it runs", || {
        let head: Value = serde_json::from_slice(&fs::read(dir.head()).ok()?).ok()?;
        (head["summary"]["title"] == "first").then_some(())
    });
    world.run(&["send", &id, "--enter", "go"]);
    let before = world.wait_for_state(&id, "exited");
    assert_eq!(before["title"], "second");
    wait_until("its process is gone", || (!dir.sock().exists()).then_some(()));
    blank_events(&dir);
    let after = world.info(&id);
    assert_eq!((&after["title"], &after["exit"]), (&before["title"], &json!({"code": 3, "signal": null})));
}

/// The files of an ended session of a kind that comes with a later version.
fn hologram(world: &World) -> SessionDir {
    let dir = world.dir("hologram0000");
    fs::create_dir_all(dir.path()).unwrap();
    let meta = json!({
        "id": dir.id(), "name": "far", "kind": "hologram", "cwd": "/srv", "beams": 7, "created": "2026-01-01T00:00:00Z",
        "host": this_host(), "boot": this_boot(),
    });
    let events = [
        json!({"seq": 0, "at": "2026-01-01T00:00:00Z", "event": {"type": "started", "epoch": "00000001", "pid": 1, "version": "9.0.0"}}),
        json!({"seq": 1, "at": "2026-01-01T00:00:01Z", "event": {"type": "beamed", "to": ["a"]}}),
        json!({"seq": 2, "at": "2026-01-01T00:00:02Z", "event": {"type": "exit", "code": 0, "signal": null}}),
    ];
    fs::write(dir.events(), events.map(|event| format!("{event}\n")).concat()).unwrap();
    fs::write(dir.meta(), meta.to_string()).unwrap();
    dir
}

#[test]
fn a_session_of_an_unknown_kind_is_shown_and_kept() {
    let world = World::new();
    world.home().ensure().unwrap();
    let dir = hologram(&world);
    let cat = world.shell("exec cat");

    let list: Value = serde_json::from_str(&world.run(&["ls", "--json"])).unwrap();
    let listed = list["sessions"].as_array().unwrap();
    assert_eq!(listed.iter().map(|session| &session["kind"]).collect::<Vec<_>>(), ["unknown", "terminal"]);
    let far = &listed[0];
    assert_eq!((&far["state"], &far["cwd"], &far["version"]), (&json!("exited"), &json!("/srv"), &json!("9.0.0")));
    assert_eq!((far.get("size"), far.get("argv")), (None, None), "those are a terminal's");
    assert!(world.run(&["ls"]).contains("far"));

    let refused = world.try_run(&["restart", "far"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("cannot run a session of this kind"), "{said}");

    world.run(&["rename", "far", "farther"]);
    let meta: Value = serde_json::from_slice(&fs::read(dir.meta()).unwrap()).unwrap();
    assert_eq!((&meta["name"], &meta["kind"], &meta["beams"]), (&json!("farther"), &json!("hologram"), &json!(7)));

    world.run(&["prune", "--older", "0s"]);
    assert!(dir.path().exists(), "how long it is kept is for the version that made it to say");
    world.run(&["kill", "farther"]);
    assert!(!dir.path().exists());
    world.run(&["kill", &cat]);
}
