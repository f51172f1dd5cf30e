//! More output than a viewer can take: Ctrl-C acts all the same, memory stays, and others notice nothing.

use std::time::Duration;

use serde_json::json;

use super::counts::counted;
use super::faults::{Fault, Network};
use super::gateway::{World, wait_until};
use super::hostile::memory;
use super::viewer::{Viewer, contains};

/// Floods until Ctrl-C, and then prompts.
const FLOOD: &str = "trap : INT; yes 'a line of the flood'; echo; echo \"prompt-$((6*7))\"; exec cat";
/// The slow link, in bytes a second.
const LINK: u64 = 100_000;
/// What it carries in 1.5 s, by which the prompt has to be on the screen.
const BUDGET: u64 = LINK * 3 / 2;
const QUIET: Duration = Duration::from_secs(30);

#[test]
fn r25_ctrl_c_acts_on_a_slow_link_before_anything_stale() {
    let world = World::new();
    let id = world.shell(FLOOD);
    let network = Network::with(world.address, Fault::Slow(LINK));
    let mut viewer = Viewer::new(network.address, &world.token, &id, 1);
    viewer.dial_with(QUIET, json!({"size": {"cols": 80, "rows": 24}})).unwrap();
    // In a steady flood, with whatever buffers there are full.
    viewer.until("a flood", |viewer| viewer.received > 200_000);
    viewer.type_in("\u{3}");
    let typed_at = viewer.received;
    let mut seen = viewer.output.len();
    viewer.until("the prompt is here", |viewer| {
        let from = seen.saturating_sub(16);
        seen = viewer.output.len();
        contains(&viewer.output[from..], "prompt-42") || contains(&viewer.snapshot, "prompt-42")
    });
    let between = viewer.received - typed_at;
    eprintln!("{between} bytes between Ctrl-C and the prompt");
    assert!(between < BUDGET, "{between} bytes came between Ctrl-C and the prompt");
    let flooded = wait_until("the flood is over", || {
        let offset =
            world.call("GET", &format!("/v1/sessions/{id}"), &serde_json::Value::Null).json()["offset"].as_u64();
        (offset == viewer.cursor.as_ref().map(|cursor| cursor.1)).then_some(offset?)
    });
    assert!(flooded > viewer.received, "the program was never held up: {flooded}");
    assert!(counted(&world, "bowline_lagging_snapshots_total") > 0.0, "it skipped ahead");
}

#[test]
fn r25_a_flood_costs_no_memory_and_a_stopped_viewer_costs_others_nothing() {
    let world = World::new();
    let id = world.shell(FLOOD);
    let other = world.shell("exec cat");
    let mut stopped: Vec<Viewer> =
        (10..15).map(|number| Viewer::new(world.address, &world.token, &id, number)).collect();
    for viewer in &mut stopped {
        viewer.dial_with(QUIET, json!({"lag": "skip"})).unwrap(); // and never reads
    }
    let mut viewer = Viewer::new(world.address, &world.token, &id, 1);
    let mut neighbour = Viewer::new(world.address, &world.token, &other, 2);
    viewer.dial_with(QUIET, json!({})).unwrap();
    neighbour.dial_with(QUIET, json!({})).unwrap();
    let offset = |viewer: &Viewer| viewer.cursor.as_ref().map_or(0, |cursor| cursor.1);
    let processes = [world.gateway_pid(), world.session_pid(&id)];
    viewer.until("everything has its place", |viewer| offset(viewer) > 4 << 20);
    let before = processes.map(memory);
    for round in 1..=4_u64 {
        viewer.until("much more", |viewer| offset(viewer) > (4 + 5 * round) << 20);
        viewer.output.clear();
        let line = format!("round {round}\n");
        neighbour.type_in(&line);
        neighbour.until_output(&line.replace('\n', "\r\n").repeat(2));
    }
    for (before, after) in before.into_iter().zip(processes.map(memory)) {
        assert!(after < before + (16 << 20), "{before} bytes grew to {after}");
    }
    // Who comes back to life is told what it missed, and goes on.
    for viewer in &mut stopped {
        viewer.until("the present", |viewer| offset(viewer) > 24 << 20);
    }
}
