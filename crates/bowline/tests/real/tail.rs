//! The end of a program's output: every viewer gets every byte and then the exit, also if it attaches later.

use serde_json::json;

use super::viewer::{Viewer, hello};
use super::world::World;

/// A script that prints numbered lines, and its output on a terminal: 17 bytes a line, with a carriage return.
fn numbers(lines: usize) -> (String, Vec<u8>) {
    let script = format!("seq -f '%015.0f' 1 {lines}");
    let expected = (1..=lines).flat_map(|n| format!("{n:015}\r\n").into_bytes()).collect();
    (script, expected)
}

const MEGABYTE: usize = 61_700; // lines of 17 bytes

/// A program prints 1 MB and exits at once. Servers that stop reading when the child ends lose its tail.
#[test]
fn r31_every_byte_before_the_exit_200_of_200_attached() {
    let world = World::new();
    let (script, expected) = numbers(MEGABYTE);
    for round in 0..200 {
        let id = world.shell(&format!("read go; {script}"));
        let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
        viewer.type_text("\n");
        viewer.finish();
        let from = viewer.output.len().saturating_sub(expected.len());
        assert!(viewer.output[from..] == expected, "round {round}: received {} bytes", viewer.output.len());
        assert_eq!(viewer.exit.as_ref().map(|exit| &exit["code"]), Some(&json!(0)), "round {round}");
        world.run(&["kill", &id]);
    }
}

/// The same without viewers: one that attaches later, with a cursor at the beginning, gets every byte and the exit.
#[test]
fn r31_every_byte_before_the_exit_200_of_200_detached() {
    let world = World::new();
    let (script, expected) = numbers(MEGABYTE);
    for round in 0..200 {
        let id = world.shell(&format!("{script}; exit {}", round % 7));
        // Even rounds attach while it runs or has just ended, odd ones after its process has ended.
        if round % 2 == 1 {
            world.wait_for_state(&id, "exited");
        }
        let epoch = world.info(&id)["epoch"].clone();
        let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({"cursor": {"epoch": epoch, "offset": 0}})));
        viewer.finish();
        assert_eq!(viewer.attached["verdict"], "exact", "round {round}");
        assert!(viewer.output == expected, "round {round}: received {} bytes", viewer.output.len());
        assert_eq!(viewer.exit.as_ref().map(|exit| &exit["code"]), Some(&json!(round % 7)), "round {round}");
        world.run(&["kill", &id]);
    }
}

/// A viewer reads fast, then pauses while the program ends. Its socket is full when the last frames are due; such a viewer
/// once never got the end of the connection.
#[test]
fn r31_a_viewer_that_pauses_at_the_end_gets_the_rest_and_the_end() {
    let world = World::new();
    let (script, expected) = numbers(4 * MEGABYTE);
    let id = world.shell(&format!("read go; {script}"));
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.type_text("\n");
    viewer.until("more than 2 MiB of output", |viewer| viewer.output.len() > 2 << 20);
    world.wait_for_state(&id, "exited");
    viewer.finish();
    assert!(viewer.output.ends_with(&expected), "received {} bytes", viewer.output.len());
    assert!(viewer.exit.is_some());
}

/// 32 MB without viewers and a log of 8 MiB: a viewer with a cursor at the beginning gets the exact range it missed.
#[test]
fn r22_the_trimmed_range_is_reported_to_the_byte() {
    let world = World::new();
    let (script, expected) = numbers(2_000_000);
    let id = world.shell(&format!("{script}; read stop"));
    let end = expected.len() as u64;
    super::world::wait_until("34 MB printed", || (world.info(&id)["offset"] == end).then_some(()));
    let epoch = world.info(&id)["epoch"].clone();
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({"cursor": {"epoch": epoch, "offset": 17}})));
    let attached = viewer.attached.clone();
    assert_eq!((&attached["verdict"], &attached["reason"]), (&json!("snapshot"), &json!("trimmed")));
    let offset = attached["offset"].as_u64().unwrap();
    assert_eq!(attached["missed"], json!({"from": 17, "to": offset}));
    assert!(super::viewer::contains(&viewer.snapshot, "000000002000000"), "the snapshot shows the last line");
    viewer.type_text("\n");
    viewer.finish();
    assert_eq!(offset + viewer.output.len() as u64, end + 2, "the rest is the echo of Enter");
    // The rest of the log is unchanged.
    let log = world.bowline().args(["log", &id, "--to", &end.to_string()]).output().unwrap().stdout;
    assert!(expected.ends_with(&log) && log.len() > 8_000_000, "the log has {} bytes", log.len());
}

#[test]
fn r9_a_log_that_is_large_enough_has_every_byte() {
    let world = World::new();
    let (script, expected) = numbers(2_000_000);
    let id = world.run(&["new", "-d", "--log-size", "64M", "--", "sh", "-c", &script]);
    let epoch = world.info(&id)["epoch"].clone();
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({"cursor": {"epoch": epoch, "offset": 0}})));
    viewer.finish();
    assert_eq!(viewer.attached["verdict"], "exact");
    assert!(viewer.output == expected, "received {} bytes", viewer.output.len());
    assert!(viewer.exit.is_some());
}
