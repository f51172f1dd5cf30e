//! Lists: checkpoints of the journal, and sessions of an unknown kind.

use std::fs;

use bowline_host::home::SessionDir;
use bowline_host::machine::{this_boot, this_host};
use serde_json::{Value, json};

use super::world::{World, wait_until};

#[test]
fn r21_a_session_process_writes_a_checkpoint_of_its_events() {
    let world = World::new();
    // Fifteen notifications of 400 bytes are more events than a list reads without a checkpoint.
    let notify = format!("printf '\\033]9;{}\\007'", "x".repeat(400));
    let id = world.shell(&format!("for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do {notify}; done; exec cat"));
    let dir = world.dir(&id);
    wait_until("a checkpoint", || dir.head().exists().then_some(()));
    let all = |events: Vec<u8>| (events.iter().filter(|byte| **byte == b'\n').count() == 16).then_some(events);
    let mut events = wait_until("a start and all notifications", || all(fs::read(dir.events()).unwrap()));
    let head: Value = serde_json::from_slice(&fs::read(dir.head()).unwrap()).unwrap();
    // Destroy everything that the checkpoint covers, except its last record.
    let last = head["position"]["last"].as_u64().unwrap() as usize;
    events[..last - 1].fill(b'x');
    fs::write(dir.events(), events).unwrap();
    world.run(&["kill", "--keep", &id]);
    let info = world.info(&id);
    assert_eq!((&info["state"], &info["epoch"]), (&json!("exited"), &head["summary"]["started"]["epoch"]));
}

/// Writes the files of an ended session whose kind this version does not know.
fn hologram(world: &World) -> SessionDir {
    let dir = world.dir("hologram0000");
    fs::create_dir_all(dir.path()).unwrap();
    let meta = json!({
        "id": dir.id(), "name": "far", "kind": "hologram", "cwd": "/srv", "beams": 7, "argv": "no list", "size": {"cols": 80, "rows": 24}, "created": "2026-01-01T00:00:00Z",
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
    assert_eq!((far.get("size"), far.get("argv")), (None, None), "only a terminal has size and argv");
    assert!(world.run(&["ls"]).contains("far"));

    for (verb, code, message) in [
        (&["restart", "far"][..], 5, "cannot run a session of this kind"),
        (&["attach", "far"], 1, "a kind of session that this version of bowline does not support"),
        (&["send", "far", "x"], 1, "a kind of session that this version of bowline does not support"),
    ] {
        let refused = world.try_run(verb);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(code) && stderr.contains(message), "{stderr}");
    }
    assert!(!dir.head().exists(), "no checkpoint is written for it");

    world.run(&["rename", "far", "farther"]);
    let meta: Value = serde_json::from_slice(&fs::read(dir.meta()).unwrap()).unwrap();
    assert_eq!((&meta["name"], &meta["kind"], &meta["beams"]), (&json!("farther"), &json!("hologram"), &json!(7)));

    world.run(&["prune", "--older", "0s"]);
    let whole = fs::read(dir.meta()).unwrap();
    fs::write(dir.meta(), r#"{"kind":"hologram","id":7}"#).unwrap();
    world.run(&["prune", "--older", "0s"]);
    assert!(dir.path().exists(), "a session of an unknown kind must not be pruned");
    fs::write(dir.meta(), whole).unwrap();
    world.run(&["kill", "farther"]);
    assert!(!dir.path().exists());
    world.run(&["kill", &cat]);
}
