//! Viewers that do not read, and viewers that resize without end: neither costs the session or its owner much.

use std::io::{Read, Write};

use bowline_proto::frame;
use serde_json::{Value, json};

use super::viewer::{Viewer, connect, hello};
use super::world::{World, wait_until};

/// The memory of a process, in MiB.
fn resident(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// A session with 1,000 lines of scrollback in which each cell has its own colours: a snapshot has about 5 MiB.
fn coloured(world: &World) -> String {
    let script = r#"awk 'BEGIN { for (r = 0; r < 1060; r++) { for (c = 0; c < 150; c++)
        printf "\033[38;2;%d;%d;7;48;2;%d;200;%dmx", r % 256, c, c, r % 256; printf "\033[m\r\n" } }'; printf READY; exec cat"#;
    let id = world.run(&["new", "--detach", "--size", "150x50", "--", "sh", "-c", script]);
    world.wait_for_screen(&id, "READY");
    id
}

/// Attaches viewers that read only the head of the first frame. Some are closed when others need the room.
fn stall(world: &World, id: &str, count: u64, more: impl Fn(u64) -> Value) -> Vec<std::os::unix::net::UnixStream> {
    let attach = |n| {
        let mut stream = connect(world, id);
        let mut wire = Vec::new();
        frame::put_text(&mut wire, &hello(n, 1, more(n)).to_string());
        stream.write_all(&wire).unwrap();
        stream
    };
    let mut streams: Vec<_> = (1..=count).map(attach).collect();
    for stream in &mut streams {
        stream.read_exact(&mut [0; frame::HEADER]).unwrap();
    }
    streams
}

#[test]
fn r25_viewers_that_do_not_read_share_a_snapshot() {
    let world = World::new();
    let id = coloured(&world);
    let pid = world.pid(&id);
    let before = resident(pid);
    let stalled = stall(&world, &id, 60, |_| json!({"observe": true}));
    let after = resident(pid);
    assert!(after < before + 60, "60 viewers take {before} to {after} MiB");
    let owner = Viewer::attach(&world, &id, &hello(1000, 1, json!({})));
    assert!(owner.snapshot.len() > 4 << 20);
    drop(stalled);
    world.wait_for_info(&id, "one viewer is left", |info| info["clients"] == json!(1));
    wait_until("the memory is given back", || (resident(pid) < before + 20).then_some(()));
}

#[test]
fn the_program_does_not_inherit_the_memory_settings_of_its_session_process() {
    let world = World::new();
    let id = world.shell("env; printf READY; exec cat");
    world.wait_for_screen(&id, "READY");
    let environment = std::fs::read(format!("/proc/{}/environ", world.pid(&id))).unwrap();
    assert!(String::from_utf8_lossy(&environment).contains("MALLOC_MMAP_THRESHOLD_="));
    assert!(!world.run(&["log", &id]).contains("MALLOC_"));
}

/// Each viewer wants another number of lines, so none can share with another.
#[test]
fn r25_viewers_that_do_not_read_cannot_fill_the_memory_or_keep_the_owner_out() {
    let world = World::new();
    let id = coloured(&world);
    let pid = world.pid(&id);
    let before = resident(pid);
    let reader = json!({"write": false, "caller": "guest"});
    let _stalled = stall(&world, &id, 40, |n| json!({"scrollback": 1000 - n, "grant": reader}));
    let after = resident(pid);
    assert!(after < before + 90, "40 snapshots take {before} to {after} MiB");
    let owner = Viewer::attach(&world, &id, &hello(1000, 1, json!({})));
    assert!(owner.snapshot.len() > 4 << 20);
}

#[test]
fn r23_a_flood_of_resizes_is_not_applied_one_by_one() {
    let world = World::new();
    let script = "seq 1 20000; printf READY; exec cat";
    let id = world.run(&["new", "--detach", "--scrollback", "20000", "--", "sh", "-c", script]);
    world.wait_for_screen(&id, "READY");
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({"size": {"cols": 80, "rows": 24}})));
    let mut wire = Vec::new();
    for n in 1..=400 {
        let message = json!({"type": "resize", "cols": 50 + n % 100, "rows": 24});
        frame::put_text(&mut wire, &message.to_string());
    }
    frame::put_text(&mut wire, &json!({"type": "resize", "cols": 123, "rows": 30}).to_string());
    viewer.stream().write_all(&wire).unwrap();
    viewer.until("the last size", |viewer| {
        viewer.texts.iter().any(|text| text["type"] == "resize" && text["cols"] == 123 && text["rows"] == 30)
    });
    let late = Viewer::attach(&world, &id, &hello(2, 1, json!({})));
    assert_eq!(late.attached["size"], json!({"cols": 123, "rows": 30}));
    let journal = std::fs::read_to_string(world.dir(&id).events()).unwrap();
    let resizes = journal.lines().filter(|line| line.contains(r#""type":"resized""#)).count();
    assert!((1..100).contains(&resizes), "{resizes} resizes were recorded");
}
