//! The terminal: query replies, size, events, commands, screens.

use std::time::Duration;

use bowline_host::control::Control;
use bowline_proto::control::{Reply, Request};
use serde_json::{Value, json};

use super::viewer::{Viewer, contains, hello};
use super::world::{World, signal, wait_until};

/// A terminal query gets one reply, without viewers as well as with two of them.
#[test]
fn r24_queries_are_answered_once_also_detached() {
    let world = World::new();
    let id = world.shell(
        "stty raw -echo; while :; do printf '\\033[c\\033[5n'; dd bs=1 count=13 2>/dev/null | od -An -c | tr -d ' \\n'; \
         printf '\\r\\n'; dd bs=1 count=1 2>/dev/null >/dev/null; done",
    );
    world.wait_for_screen(&id, "033[?62;22c033[0");
    let mut first = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    let _second = Viewer::attach(&world, &id, &hello(2, 1, json!({})));
    // A second reply would be read here as the next keys.
    for _ in 0..5 {
        let start = first.output.len();
        first.type_text("n");
        first.until("another reply", |viewer| contains(&viewer.output[start..], "033[?62;22c033[0"));
    }
}

#[test]
fn r23_the_size_has_one_owner_and_can_be_claimed() {
    let world = World::new();
    let id = world.shell("trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done");
    let size = |cols: u64, rows: u64| json!({"cols": cols, "rows": rows});
    let mut first = Viewer::attach(&world, &id, &hello(1, 1, json!({"size": size(100, 30)})));
    first.until_output("30 100");
    assert_eq!(first.attached["you"], json!({"write": true, "size": true}));
    let mut second = Viewer::attach(&world, &id, &hello(2, 1, json!({"size": size(60, 20)})));
    assert_eq!(second.attached["you"], json!({"write": true, "size": false}));
    assert_eq!(second.attached["size"], size(100, 30), "a second viewer does not change the size");
    second.send(&json!({"type": "resize", "cols": 61, "rows": 21}));
    second.send(&json!({"type": "claim_size", "cols": 62, "rows": 22}));
    first.until_output("22 62");
    assert!(!contains(&first.output, "21 61"), "a viewer that does not own the size cannot change it");
    let resize = first.until_text("resize");
    assert_eq!((&resize["cols"], &resize["rows"]), (&json!(62), &json!(22)));
    let presence = first.until_text("presence");
    let owners: Vec<&Value> = presence["clients"].as_array().unwrap().iter().filter(|c| c["size"] == true).collect();
    assert_eq!(owners.len(), 1);
    world.wait_for_info(&id, "two clients and the claimed size", |info| {
        info["size"] == size(62, 22) && info["clients"] == 2
    });
}

/// Output that was read but not logged yet used to be recorded as printed after the resize.
#[test]
fn r23_a_resize_is_recorded_after_the_output_before_it() {
    let world = World::new();
    let (go, printed) = (world.path().join("go"), world.path().join("printed"));
    let script = format!(
        "echo ready; until [ -e {} ]; do sleep 0.01; done; printf '%060d' 0; touch {}; exec cat",
        go.display(),
        printed.display()
    );
    let id = world.shell(&script);
    world.wait_for_screen(&id, "ready");
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({"size": {"cols": 80, "rows": 24}})));
    // While the session process is stopped, the program prints and the viewer resizes: the process then handles both
    // at once.
    let process = world.pid(&id);
    signal(process, "STOP");
    std::fs::write(&go, "").unwrap();
    wait_until("the program has printed", || printed.exists().then_some(()));
    viewer.send(&json!({"type": "resize", "cols": 40, "rows": 24}));
    signal(process, "CONT");
    viewer.until_output(&"0".repeat(60));
    let resized = wait_until("the resize is recorded", || {
        let events = std::fs::read_to_string(world.dir(&id).events()).unwrap();
        let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
        events.rfind(|event| event["type"] == "resized" && event["size"]["cols"] == 40)
    });
    assert_eq!(resized["offset"], viewer.offset);
}

/// After a detach, the next viewer owns the size at once. A dropped connection keeps it for a while.
#[test]
fn r23_leaving_releases_the_size_and_a_drop_keeps_it() {
    let world = World::new();
    let id = world.shell("exec cat");
    let window = |cols: u64| json!({"size": {"cols": cols, "rows": 20}});
    let mut first = Viewer::attach(&world, &id, &hello(1, 1, window(100)));
    first.send(&json!({"type": "leave"}));
    first.finish();
    let second = Viewer::attach(&world, &id, &hello(2, 1, window(70)));
    assert_eq!(second.attached["you"]["size"], true);
    world.wait_for_info(&id, "the size is the second viewer's", |info| info["size"]["cols"] == 70);
    drop(second);
    world.wait_for_info(&id, "the session noticed the drop", |info| info["clients"] == 0);
    let third = Viewer::attach(&world, &id, &hello(3, 1, window(50)));
    assert_eq!(third.attached["you"]["size"], false);
    assert_eq!(third.attached["size"]["cols"], 70);
}

#[test]
fn r26_an_observer_sees_everything_and_types_nothing() {
    let world = World::new();
    let id = world.shell("exec cat");
    let mut observer =
        Viewer::attach(&world, &id, &hello(1, 1, json!({"observe": true, "size": {"cols": 50, "rows": 10}})));
    assert_eq!(observer.attached["you"], json!({"write": false, "size": false}));
    observer.type_text("not typed\n");
    let error = observer.until_text("error");
    assert_eq!((&error["code"], &error["fatal"]), (&json!("not_allowed"), &json!(false)));
    let mut writer = Viewer::attach(&world, &id, &hello(2, 1, json!({})));
    writer.type_text("typed\n");
    observer.until_output("typed\r\ntyped\r\n");
    assert!(!world.run(&["log", &id]).contains("not typed"));
    assert_eq!(world.info(&id)["size"], json!({"cols": 80, "rows": 24}));
}

#[test]
fn r29_titles_notifications_bells_and_links_become_events() {
    let world = World::new();
    let id = world.shell(
        "read go; printf '\\033]2;building\\007\\033]7;file:///tmp/some%%20where\\007\\033]9;done\\007\\007'; \
         echo see https://github.com/login/device now; exec cat",
    );
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.type_text("\n");
    assert_eq!(viewer.until_text("title")["title"], "building");
    assert_eq!(viewer.until_text("cwd")["cwd"], "/tmp/some where");
    assert_eq!(viewer.until_text("notify")["body"], "done");
    viewer.until_text("bell");
    let url = viewer.until_text("url");
    assert_eq!(url["url"], "https://github.com/login/device");
    assert_eq!(url["open"], true, "a device login is marked to be opened");
    world.wait_for_info(&id, "its title and directory", |info| {
        (&info["title"], &info["cwd"]) == (&json!("building"), &json!("/tmp/some where"))
    });
    // A viewer that attaches later gets the title, too.
    let mut late = Viewer::attach(&world, &id, &hello(2, 1, json!({})));
    assert_eq!(late.until_text("title")["title"], "building");
}

/// A command with an id is executed once, also if it is repeated or comes over another connection.
#[test]
fn r28_a_command_is_executed_once() {
    let world = World::new();
    let id = world.shell("stty -echo; echo ready; exec cat");
    world.wait_for_screen(&id, "ready");
    let send = |command_id: &str, text: &str| {
        let command = json!({"type": "input", "text": text});
        let request = Request::Command { id: command_id.into(), command, by: None };
        Control::connect(&world.dir(&id)).unwrap().request(&request, Duration::from_secs(10))
    };
    let Ok(Reply::Accepted { seq, duplicate: false, .. }) = send("one", "typed once\n") else { panic!("refused") };
    for _ in 0..3 {
        let again = send("one", "typed once\n").unwrap();
        assert_eq!(again, Reply::Accepted { id: "one".into(), seq, run: None, duplicate: true });
    }
    assert!(send("one", "something else\n").unwrap_err().to_string().contains("already used this id"));
    send("two", "the end\n").unwrap();
    world.wait_for_screen(&id, "the end");
    assert_eq!(world.run(&["log", &id]).matches("typed once").count(), 1);
    // The same over the link.
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.send(&json!({"type": "command", "id": "one", "command": {"type": "input", "text": "typed once\n"}}));
    assert_eq!(viewer.until_text("accepted"), json!({"type": "accepted", "id": "one", "seq": seq, "duplicate": true}));
    viewer.send(&json!({"type": "command", "id": "x", "command": {"type": "explode"}}));
    assert_eq!(viewer.until_text("rejected")["code"], "bad_request");
}

/// For one session in ten, the time of the last activity once varied between requests although nothing had happened.
#[test]
fn r29_the_last_activity_of_an_idle_session_does_not_change() {
    let world = World::new();
    for _ in 0..20 {
        let id = world.shell("printf once; exec cat");
        world.wait_for_screen(&id, "once");
        let active = || {
            let mut control = Control::connect(&world.dir(&id)).unwrap();
            match control.request(&Request::Status { follow: false, brief: false }, Duration::from_secs(30)) {
                Ok(Reply::Status { session }) => session.active,
                other => panic!("{other:?}"),
            }
        };
        let first = active();
        assert!(first.is_some() && (0..100).all(|_| active() == first));
    }
}

/// A time to live that overflows the clock once made the session process panic.
#[test]
fn r52_an_absurd_ttl_is_refused() {
    let world = World::new();
    let id = world.shell("exec cat");
    let request = Request::Set { name: None, detached_ttl: Some(u64::MAX) };
    let refused = Control::connect(&world.dir(&id)).unwrap().request(&request, Duration::from_secs(10));
    assert!(refused.unwrap_err().to_string().contains("ten years"));
    assert_eq!(world.info(&id)["state"], "running");
}

#[test]
fn r30_the_screen_as_text_ansi_and_json_running_and_ended() {
    let world = World::new();
    let id = world.shell("printf '\\033[31mred\\033[0m plain\\r\\n'; read stop");
    world.wait_for_screen(&id, "red plain");
    let check = || {
        assert_eq!(world.run(&["screen", &id]), "red plain");
        assert!(world.run(&["screen", &id, "--format", "ansi"]).starts_with("\u{1b}[31mred"));
        let json: Value = serde_json::from_str(&world.run(&["screen", &id, "--format", "json"])).unwrap();
        let span = &json["lines"][0]["spans"][0];
        assert_eq!((&span["text"], &span["fg"]), (&json!("red"), &json!(1)));
        assert_eq!(json["size"], json!({"cols": 80, "rows": 24}));
    };
    check();
    world.run(&["kill", "--keep", &id]);
    check();
}

/// A cold attach to a full-screen program.
#[test]
fn r22_a_cold_attach_restores_modes_and_both_screens() {
    let world = World::new();
    let id = world.shell(
        "printf 'below\\r\\n\\033[?1049h\\033[?1000h\\033[?1006h\\033[?2004h\\033[?1h\\033[H\\033[44mabove\\033[m'; exec sleep 600",
    );
    world.wait_for_screen(&id, "above");
    let viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    assert_eq!(viewer.attached["reason"], "fresh");
    for part in ["below", "above", "?1049h", "1000", "1006", "2004"] {
        assert!(contains(&viewer.snapshot, part), "{part} is missing: {:?}", String::from_utf8_lossy(&viewer.snapshot));
    }
}

/// Keys wait for a program that does not read. The text of a command is queued after them, not between them.
#[test]
fn r26_the_text_of_a_command_follows_the_keys_before_it() {
    let world = World::new();
    let keys = "k".repeat(10_000);
    let id = world.shell(
        "mkfifo gate; stty raw -echo; echo ready; read go < gate; head -c 20007 > got.new; mv got.new got; exec sleep 600",
    );
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.until("the program is ready", |viewer| {
        contains(&viewer.output, "ready") || contains(&viewer.snapshot, "ready")
    });
    viewer.type_text(&keys);
    viewer.type_text(&keys);
    viewer.send(&json!({"type": "command", "id": "c", "command": {"type": "input", "text": "THE END"}}));
    viewer.until_text("accepted");
    std::fs::write(world.path().join("gate"), "\n").unwrap();
    let got = wait_until("the program has read its input", || std::fs::read_to_string(world.path().join("got")).ok());
    assert!(got == format!("{keys}{keys}THE END"), "the text is at index {:?}", got.find("THE END"));
}

/// A bell is recorded without viewers, and still known when the process has ended.
#[test]
fn r47_a_bell_is_remembered_after_the_end() {
    let world = World::new();
    let id = world.shell("printf '\\a'");
    world.wait_for_state(&id, "exited");
    world.run(&["kill", "--keep", &id]); // waits until its process has ended
    assert_eq!(world.info(&id)["call"]["kind"], "bell");
}
