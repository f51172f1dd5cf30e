//! Bad input, full disks and stopped processes: each has a clear error, and other sessions are not affected.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::resume::Random;
use super::viewer::{Viewer, connect, contains, hello};
use super::world::{World, signal, wait_until};

#[test]
fn r52_garbage_on_the_socket_does_not_disturb_a_viewer() {
    let world = World::new();
    let id = world.shell("exec cat");
    let mut good = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    let mut random = Random(7);
    for round in 0..300 {
        let mut stream = connect(&world, &id);
        let mut garbage: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
        match round % 4 {
            0 => {}
            1 => garbage.splice(..0, [0, 0, 0, 40, 0]).for_each(drop), // a text frame of random bytes
            2 => garbage.splice(..0, [0xff, 0xff, 0xff, 0xff, 1]).for_each(drop), // announces 4 GiB
            _ => garbage.splice(..0, [0, 0, 0, 30, 1, 3]).for_each(drop), // input before a hello
        }
        let _ = stream.write_all(&garbage);
    }
    for bad in [
        json!({"type": "hello"}),
        hello(2, 1, json!({"client": "NOT-A-UUID"})),
        hello(2, 1, json!({"size": {"cols": 1, "rows": 1}})),
        hello(2, 1, json!({"size": {"cols": 100_000, "rows": 24}})),
        hello(2, 1, json!({"cursor": {"epoch": "../../etc", "offset": -1}})),
    ] {
        assert_eq!(refusal(&world, &id, &bad), 4400, "{bad}");
    }
    assert_eq!(refusal(&world, &id, &hello(2, 1, json!({"version": 99, "client": 7}))), 4426);
    good.type_text("undisturbed\n");
    good.until_output("undisturbed\r\nundisturbed");
    wait_until("the other connections are closed", || (world.info(&id)["clients"] == 1).then_some(()));
}

/// The close code in response to a hello.
fn refusal(world: &World, id: &str, hello: &Value) -> u64 {
    let mut viewer = Viewer::raw(connect(world, id));
    viewer.send(hello);
    viewer.finish();
    let close = viewer.texts.iter().find(|text| text["type"] == "close").expect("a close message");
    close["code"].as_u64().unwrap()
}

#[test]
fn r1_a_newer_connection_of_a_client_replaces_the_older() {
    let world = World::new();
    let id = world.shell("exec cat");
    let mut old = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    let mut new = Viewer::attach(&world, &id, &hello(1, 2, json!({})));
    old.type_text("from the past\n");
    old.finish();
    assert_eq!(old.texts.iter().find(|text| text["type"] == "close").map(|close| &close["code"]), Some(&json!(4409)));
    assert_eq!(refusal(&world, &id, &hello(1, 1, json!({}))), 4409);
    new.type_text("from the present\n");
    new.until_output("from the present\r\nfrom the present");
    assert!(!contains(&new.output, "past"));
}

/// A viewer that never reads costs the session no memory, and another viewer's Ctrl-C acts at once.
#[test]
fn r25_a_stopped_viewer_costs_nothing() {
    let world = World::new();
    let id = world.run(&["new", "-d", "--", "sh", "-c", "trap 'echo interrupted; exec cat' INT; read go; yes"]);
    let pid = world.pid(&id);
    let mut stopped = Viewer::attach(&world, &id, &hello(1, 1, json!({"lag": "skip"})));
    stopped.type_text("\n");
    let memory = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let offset = || world.info(&id)["offset"].as_u64().unwrap();
    wait_until("the flood runs", || (offset() > 16 << 20).then_some(()));
    let before = memory();
    let from = offset();
    wait_until("much more output", || (offset() > from + (32 << 20)).then_some(()));
    assert!(memory() < before + 4096, "{before} KiB became {} KiB", memory());
    let mut other = Viewer::attach(&world, &id, &hello(2, 1, json!({"lag": "skip"})));
    other.type_text("\u{3}");
    other.until("the flood ended", |viewer| {
        contains(&viewer.output, "interrupted") || contains(&viewer.snapshot, "interrupted")
    });
}

/// A session process that hangs is listed from its files, and the list does not wait for it.
#[test]
fn r52_a_stopped_session_process_does_not_hang_the_list() {
    let world = World::new();
    let hung = world.shell("exec cat");
    let fine = world.shell("exec cat");
    signal(world.pid(&hung), "STOP");
    // Fill its queue of connections, so that a plain connect would block.
    let _queue: Vec<_> =
        (0..200).map_while(|_| bowline_host::control::connect(&world.dir(&hung).address()).ok()).collect();
    let start = Instant::now();
    assert_eq!(world.info(&hung)["state"], "running");
    assert_eq!(world.info(&fine)["state"], "running");
    assert!(start.elapsed() < Duration::from_secs(10), "the list took {:?}", start.elapsed());
    let output = world.bowline().args(["screen", &fine]).output().unwrap();
    assert!(output.status.success());
    signal(world.pid(&hung), "CONT");
}

/// A full disk is an error at creation, and no session is left behind.
#[test]
fn r52_no_space_is_an_error_at_creation() {
    let world = World::new();
    let mut new = std::process::Command::new("sh");
    new.args(["-c", "ulimit -f 512; exec \"$0\" new --detach -- sleep 600"]).arg(env!("CARGO_BIN_EXE_bowline"));
    for (name, value) in world.bowline().get_envs() {
        if let Some(value) = value {
            new.env(name, value);
        }
    }
    let output = new.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    assert!(stderr.contains("no space") && stderr.contains("hint:"), "{stderr}");
    assert_eq!(std::fs::read_dir(world.home().sessions()).unwrap().count(), 0);
}

#[test]
fn r55_errors_say_what_failed_and_what_to_do() {
    let world = World::new();
    for (args, code, message) in [
        (&["new", "-d", "--", "no-such-program"][..], 5, "no-such-program: no such program"),
        (&["new", "-d", "--cwd", "/no/such/place"], 5, "/no/such/place: no such directory"),
        (&["new", "-d", "--cwd", "/etc/passwd"], 5, "/etc/passwd: not a directory"),
        (&["new", "-d", "--", "/etc/passwd"], 5, "/etc/passwd: not executable"),
        (&["new", "-d", "--", "/etc"], 5, "/etc: is a directory"),
        (&["new", "-d", "--name", "../etc"], 2, "start with a letter or digit"),
        (&["new", "--nmae", "x", "--", "ls"], 2, "--name"),
        (&["new", "-d", "--size", "1x1"], 2, "columns"),
        (&["new", "-d", "--log-size", "1K"], 2, "the log size must be 256 KiB"),
        (&["screen", "missing"], 3, "no session is called \"missing\""),
        (&["kill", "missing"], 3, "no session is called"),
        (&["send", "missing", "x"], 3, "no session is called"),
        (&["log", "missing"], 3, "no session is called"),
        (&["restart", "missing"], 3, "no session is called"),
        (&["attach", "missing"], 3, "no session is called"),
        (&["new", "--", "true"], 2, "not a terminal"),
    ] {
        let output = world.try_run(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert!(stderr.contains(message), "{args:?}: {stderr}");
    }
    assert!(!world.home().sessions().exists() || std::fs::read_dir(world.home().sessions()).unwrap().count() == 0);
    // A state directory below a file.
    std::fs::write(world.path().join("file"), "").unwrap();
    let output = world.bowline().env("BOWLINE_STATE_DIR", world.path().join("file/state")).args(["new", "-d"]).output();
    let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(stderr.contains("cannot use") && stderr.contains("BOWLINE_STATE_DIR"), "{stderr}");
}

/// Damaged files do not affect the list. Verbs report an error, and never panic.
#[test]
fn r52_damaged_files_do_not_break_the_list() {
    let world = World::new();
    let whole = world.shell("echo fine");
    world.wait_for_state(&whole, "exited");
    for file in ["meta.json", "log", "events.jsonl", "screen"] {
        let id = world.shell("echo damaged");
        world.wait_for_state(&id, "exited");
        world.run(&["kill", "--keep", &id]); // waits until its process has ended
        let path = world.dir(&id).path().join(file);
        let mut bytes = std::fs::read(&path).unwrap();
        let half = bytes.len() / 2;
        bytes.truncate(half);
        bytes.iter_mut().step_by(3).for_each(|b| *b ^= 0xa5);
        std::fs::write(&path, bytes).unwrap();
        for verb in ["screen", "log"] {
            let output = world.try_run(&[verb, &id]);
            assert_ne!(output.status.code(), Some(101), "{verb} panicked on a damaged {file}");
        }
        assert_eq!(world.info(&whole)["state"], "exited", "after damage to {file}");
    }
}

/// Other users' processes cannot connect to a session: the socket is owner-only and checks its peer.
#[test]
fn r51_the_socket_is_for_its_owner() {
    use std::os::unix::fs::MetadataExt;
    let world = World::new();
    let id = world.shell("exec cat");
    let sock = world.dir(&id).sock().metadata().unwrap();
    assert_eq!(sock.mode() & 0o777, 0o600);
    assert_eq!(sock.uid(), rustix::process::geteuid().as_raw());
    let mut stream = UnixStream::connect(world.dir(&id).address()).unwrap();
    stream.write_all(&[0, 0, 0, 2, 0, b'{', b'}']).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(contains(&answer, "4400"), "{:?}", String::from_utf8_lossy(&answer));
}
