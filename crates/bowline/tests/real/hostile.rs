//! Bad input, full disks, stopped processes: a clear error each, and sessions that notice nothing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::resume::Random;
use super::viewer::{Viewer, connect, contains, hello};
use super::world::{World, signal, wait_until};

/// Whatever strangers do to the socket, a viewer beside them types and sees.
#[test]
fn r52_garbage_on_the_socket_disturbs_nobody() {
    let world = World::new();
    let id = world.shell("exec cat");
    let mut good = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    let mut random = Random(7);
    for round in 0..300 {
        let mut stream = connect(&world, &id);
        let mut garbage: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
        match round % 4 {
            0 => {}
            1 => garbage.splice(..0, [0, 0, 0, 40, 0]).for_each(drop), // a text frame of noise
            2 => garbage.splice(..0, [0xff, 0xff, 0xff, 0xff, 1]).for_each(drop), // 4 GiB are announced
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
    wait_until("the strangers are gone", || (world.info(&id)["clients"] == 1).then_some(()));
}

/// The close code that a hello gets.
fn refusal(world: &World, id: &str, hello: &Value) -> u64 {
    let mut viewer = Viewer::raw(connect(world, id));
    viewer.send(hello);
    viewer.finish();
    let close = viewer.texts.iter().find(|text| text["type"] == "close").expect("a close");
    close["code"].as_u64().unwrap()
}

#[test]
fn r1_a_newer_connection_of_a_client_fences_the_older() {
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
    wait_until("much more of it", || (offset() > from + (32 << 20)).then_some(()));
    assert!(memory() < before + 4096, "{before} KiB became {} KiB", memory());
    let mut other = Viewer::attach(&world, &id, &hello(2, 1, json!({"lag": "skip"})));
    other.type_text("\u{3}");
    other.until("the flood ended", |viewer| {
        contains(&viewer.output, "interrupted") || contains(&viewer.snapshot, "interrupted")
    });
}

/// A session process that hangs is shown from its files, and a list does not wait for it.
#[test]
fn r52_a_stopped_session_process_does_not_hang_the_list() {
    let world = World::new();
    let hung = world.shell("exec cat");
    let fine = world.shell("exec cat");
    signal(world.pid(&hung), "STOP");
    // Fill its queue of connections, on which a plain connect would wait.
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

/// A disk that does not have the space says so at creation, and no session is left behind.
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
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("no space") && said.contains("hint:"), "{said}");
    assert_eq!(std::fs::read_dir(world.home().sessions()).unwrap().count(), 0);
}

#[test]
fn r55_errors_say_what_and_what_to_do() {
    let world = World::new();
    for (args, code, words) in [
        (&["new", "-d", "--", "no-such-program"][..], 5, "no-such-program: no such program"),
        (&["new", "-d", "--cwd", "/no/such/place"], 5, "/no/such/place: no such directory"),
        (&["new", "-d", "--cwd", "/etc/passwd"], 5, "/etc/passwd: not a directory"),
        (&["new", "-d", "--", "/etc/passwd"], 5, "/etc/passwd: not executable"),
        (&["new", "-d", "--name", "../etc"], 2, "starts with a letter or digit"),
        (&["new", "--nmae", "x", "--", "ls"], 2, "--name"),
        (&["new", "-d", "--size", "1x1"], 2, "columns"),
        (&["new", "-d", "--log-size", "1K"], 2, "the log size must be 256 KiB"),
        (&["screen", "nobody"], 3, "no session is called \"nobody\""),
        (&["kill", "nobody"], 3, "no session is called"),
        (&["send", "nobody", "x"], 3, "no session is called"),
        (&["log", "nobody"], 3, "no session is called"),
        (&["restart", "nobody"], 3, "no session is called"),
        (&["attach", "nobody"], 3, "no session is called"),
        (&["new", "--", "true"], 2, "must be a terminal"),
    ] {
        let output = world.try_run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    assert!(!world.home().sessions().exists() || std::fs::read_dir(world.home().sessions()).unwrap().count() == 0);
    // A state directory that cannot be one.
    std::fs::write(world.path().join("file"), "").unwrap();
    let output = world.bowline().env("BOWLINE_STATE_DIR", world.path().join("file/state")).args(["new", "-d"]).output();
    let said = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(said.contains("cannot use") && said.contains("BOWLINE_STATE_DIR"), "{said}");
}

/// Damaged files are passed over by the list and answered with an error, never a panic.
#[test]
fn r52_damaged_files_do_not_break_the_list() {
    let world = World::new();
    let whole = world.shell("echo fine");
    world.wait_for_state(&whole, "exited");
    for file in ["meta.json", "log", "events.jsonl", "screen"] {
        let id = world.shell("echo damaged");
        world.wait_for_state(&id, "exited");
        world.run(&["kill", "--keep", &id]); // its process is gone
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

/// Nobody else's process may talk to a session: the socket is owner-only and checks its peer.
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
