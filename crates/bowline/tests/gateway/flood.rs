//! More output than a viewer can receive: Ctrl-C still works, memory does not grow, and others are not affected.

use std::time::Duration;

use serde_json::json;

use super::faults::{Fault, Network};
use super::gateway::{World, wait_until};
use super::hostile::memory;
use super::metrics::metric;
use super::viewer::{Viewer, contains};

/// Prints endlessly until Ctrl-C, then prints a prompt.
const FLOOD: &str = "trap : INT; yes 'a line of the flood'; echo; echo \"prompt-$((6*7))\"; exec cat";
/// The speed of the slow link, in bytes a second.
const LINK: u64 = 100_000;
/// The prompt must be on the screen within 1.5 s: the bytes that the link carries in that time.
const BUDGET: u64 = LINK * 3 / 2;
const SILENCE: Duration = Duration::from_secs(30);

#[test]
fn r25_ctrl_c_acts_soon_on_a_slow_link() {
    let world = World::new();
    let id = world.shell(FLOOD);
    let network = Network::with(world.address, Fault::Slow(LINK));
    let mut viewer = Viewer::new(network.address, &world.token, &id, 1);
    viewer.dial_with(SILENCE, json!({"size": {"cols": 80, "rows": 24}})).unwrap();
    // Now all buffers are full.
    viewer.until("a flood", |viewer| viewer.received > 200_000);
    viewer.type_in("\u{3}");
    let typed_at = viewer.received;
    let mut searched = viewer.output.len();
    viewer.until("the prompt", |viewer| {
        let from = searched.saturating_sub(16);
        searched = viewer.output.len();
        contains(&viewer.output[from..], "prompt-42") || contains(&viewer.snapshot, "prompt-42")
    });
    let between = viewer.received - typed_at;
    eprintln!("{between} bytes between Ctrl-C and the prompt");
    assert!(between < BUDGET, "{between} bytes were received between Ctrl-C and the prompt");
    let flooded = wait_until("the flood is over", || {
        let offset =
            world.call("GET", &format!("/v1/sessions/{id}"), &serde_json::Value::Null).json()["offset"].as_u64();
        (offset == viewer.cursor.as_ref().map(|cursor| cursor.1)).then_some(offset?)
    });
    assert!(flooded > viewer.received, "the slow viewer must not slow down the program: {flooded}");
    assert!(metric(&world, "bowline_lagging_snapshots_total") > 0.0, "the viewer must have skipped ahead");
}

#[test]
fn r25_a_flood_costs_no_memory_and_stopped_viewers_do_not_delay_others() {
    let world = World::new();
    let id = world.shell(FLOOD);
    let other = world.shell("exec cat");
    let mut stopped: Vec<Viewer> =
        (10..15).map(|number| Viewer::new(world.address, &world.token, &id, number)).collect();
    for viewer in &mut stopped {
        viewer.dial_with(SILENCE, json!({"lag": "skip"})).unwrap(); // and never reads
    }
    let mut viewer = Viewer::new(world.address, &world.token, &id, 1);
    let mut neighbour = Viewer::new(world.address, &world.token, &other, 2);
    viewer.dial_with(SILENCE, json!({})).unwrap();
    neighbour.dial_with(SILENCE, json!({})).unwrap();
    let offset = |viewer: &Viewer| viewer.cursor.as_ref().map_or(0, |cursor| cursor.1);
    let processes = [world.gateway_pid(), world.session_pid(&id)];
    viewer.until("all buffers are allocated", |viewer| offset(viewer) > 4 << 20);
    let before = processes.map(memory);
    for round in 1..=4_u64 {
        viewer.until("much more output", |viewer| offset(viewer) > (4 + 5 * round) << 20);
        viewer.output.clear();
        let line = format!("round {round}\n");
        neighbour.type_in(&line);
        neighbour.until_output(&line.replace('\n', "\r\n").repeat(2));
    }
    for (before, after) in before.into_iter().zip(processes.map(memory)) {
        assert!(after < before + (16 << 20), "{before} bytes grew to {after}");
    }
    // A stopped viewer that reads again skips ahead and continues.
    for viewer in &mut stopped {
        viewer.until("recent output", |viewer| offset(viewer) > 24 << 20);
    }
}
