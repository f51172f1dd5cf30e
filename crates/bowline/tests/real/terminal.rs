//! What a session's terminal does for its program and tells its viewers.

use std::time::Duration;

use bowline_host::control::Control;
use bowline_proto::control::{Reply, Request};
use serde_json::{Value, json};

use super::viewer::{Viewer, contains, hello};
use super::world::{World, wait_until};

/// A program that asks its terminal gets one answer, whether nobody is attached or two viewers are.
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
    // Had a viewer been answered for as well, the second answer would be read here as the next keys.
    for _ in 0..5 {
        let seen = first.output.len();
        first.type_text("n");
        first.until("another answer", |viewer| contains(&viewer.output[seen..], "033[?62;22c033[0"));
    }
}

#[test]
fn r23_the_size_has_one_owner_and_is_claimed() {
    let world = World::new();
    let id = world.shell("trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done");
    let size = |cols: u64, rows: u64| json!({"cols": cols, "rows": rows});
    let mut first = Viewer::attach(&world, &id, &hello(1, 1, json!({"size": size(100, 30)})));
    first.until_output("30 100");
    assert_eq!(first.attached["you"], json!({"write": true, "size": true}));
    let mut second = Viewer::attach(&world, &id, &hello(2, 1, json!({"size": size(60, 20)})));
    assert_eq!(second.attached["you"], json!({"write": true, "size": false}));
    assert_eq!(second.attached["size"], size(100, 30), "a second viewer letterboxes");
    second.send(&json!({"type": "resize", "cols": 61, "rows": 21}));
    second.send(&json!({"type": "claim_size", "cols": 62, "rows": 22}));
    first.until_output("22 62");
    assert!(!contains(&first.output, "21 61"), "a viewer that does not own the size cannot change it");
    let resize = first.until_text("resize");
    assert_eq!((&resize["cols"], &resize["rows"]), (&json!(62), &json!(22)));
    let presence = first.until_text("presence");
    let owners: Vec<&Value> = presence["clients"].as_array().unwrap().iter().filter(|c| c["size"] == true).collect();
    assert_eq!(owners.len(), 1);
    world.wait_for_info(&id, "both, and the size", |info| info["size"] == size(62, 22) && info["clients"] == 2);
}

/// Who detaches and attaches elsewhere has the size of the new window at once; a dropped connection keeps it.
#[test]
fn r23_leaving_frees_the_size_and_a_drop_keeps_it() {
    let world = World::new();
    let id = world.shell("exec cat");
    let window = |cols: u64| json!({"size": {"cols": cols, "rows": 20}});
    let mut first = Viewer::attach(&world, &id, &hello(1, 1, window(100)));
    first.send(&json!({"type": "leave"}));
    first.finish();
    let second = Viewer::attach(&world, &id, &hello(2, 1, window(70)));
    assert_eq!(second.attached["you"]["size"], true);
    drop(second);
    super::world::wait_until("the drop was noticed", || (world.info(&id)["clients"] == 0).then_some(()));
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
fn r29_what_a_program_tells_its_terminal_becomes_events() {
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
    assert_eq!(url["open"], true, "a device login waits for its user");
    world.wait_for_info(&id, "its title and place", |info| {
        (&info["title"], &info["cwd"]) == (&json!("building"), &json!("/tmp/some where"))
    });
    // A viewer who comes later is told the title, too.
    let mut late = Viewer::attach(&world, &id, &hello(2, 1, json!({})));
    assert_eq!(late.until_text("title")["title"], "building");
}

/// A command with an id is done once, across repeats, connections and a reused id.
#[test]
fn r28_a_command_is_done_once() {
    let world = World::new();
    let id = world.shell("stty -echo; echo ready; exec cat");
    world.wait_for_screen(&id, "ready");
    let ask = |command_id: &str, text: &str| {
        let command = json!({"type": "input", "text": text});
        let request = Request::Command { id: command_id.into(), command };
        Control::connect(&world.dir(&id)).unwrap().request(&request, Duration::from_secs(10))
    };
    let Ok(Reply::Accepted { seq, duplicate: false, .. }) = ask("one", "typed once\n") else { panic!("refused") };
    for _ in 0..3 {
        let again = ask("one", "typed once\n").unwrap();
        assert_eq!(again, Reply::Accepted { id: "one".into(), seq, duplicate: true });
    }
    assert!(ask("one", "something else\n").unwrap_err().to_string().contains("already used this id"));
    ask("two", "the end\n").unwrap();
    world.wait_for_screen(&id, "the end");
    assert_eq!(world.run(&["log", &id]).matches("typed once").count(), 1);
    // The same over the link.
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.send(&json!({"type": "command", "id": "one", "command": {"type": "input", "text": "typed once\n"}}));
    assert_eq!(viewer.until_text("accepted"), json!({"type": "accepted", "id": "one", "seq": seq, "duplicate": true}));
    viewer.send(&json!({"type": "command", "id": "x", "command": {"type": "explode"}}));
    assert_eq!(viewer.until_text("rejected")["code"], "bad_request");
}

/// For about one session in ten, the moment used to be told a little differently now and then, as if something had
/// happened in between.
#[test]
fn r29_a_quiet_session_was_last_active_at_one_moment() {
    let world = World::new();
    for _ in 0..20 {
        let id = world.shell("printf once; exec cat");
        world.wait_for_screen(&id, "once");
        let active = || {
            let mut control = Control::connect(&world.dir(&id)).unwrap();
            match control.request(&Request::Status { follow: false }, Duration::from_secs(30)) {
                Ok(Reply::Status { session }) => session.active,
                other => panic!("{other:?}"),
            }
        };
        let first = active();
        assert!(first.is_some() && (0..100).all(|_| active() == first));
    }
}

/// An absurd time to live used to end the session process when the clock was asked for it.
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
fn r30_the_screen_as_text_ansi_and_json_alive_and_after() {
    let world = World::new();
    let id = world.shell("printf '\\033[31mred\\033[0m plain\\r\\n'; read stop");
    world.wait_for_screen(&id, "red plain");
    let see = || {
        assert_eq!(world.run(&["screen", &id]), "red plain");
        assert!(world.run(&["screen", &id, "--format", "ansi"]).starts_with("\u{1b}[31mred"));
        let json: Value = serde_json::from_str(&world.run(&["screen", &id, "--format", "json"])).unwrap();
        let span = &json["lines"][0]["spans"][0];
        assert_eq!((&span["text"], &span["fg"]), (&json!("red"), &json!(1)));
        assert_eq!(json["size"], json!({"cols": 80, "rows": 24}));
    };
    see();
    world.run(&["kill", "--keep", &id]);
    see();
}

/// A full-screen program across a cold attach: the alternate screen, its modes, and what is below it.
#[test]
fn r22_a_cold_attach_brings_modes_and_both_screens() {
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

/// A program that does not read has keys waiting; what a command types then comes behind them, not in their middle.
#[test]
fn r26_a_commands_text_comes_behind_the_keys_before_it() {
    let world = World::new();
    let keys = "k".repeat(10_000);
    let id = world.shell(
        "mkfifo gate; stty raw -echo; echo ready; read go < gate; head -c 20007 > got.new; mv got.new got; exec sleep 600",
    );
    let mut viewer = Viewer::attach(&world, &id, &hello(1, 1, json!({})));
    viewer.until("it is ready", |viewer| contains(&viewer.output, "ready") || contains(&viewer.snapshot, "ready"));
    viewer.type_text(&keys);
    viewer.type_text(&keys);
    viewer.send(&json!({"type": "command", "id": "c", "command": {"type": "input", "text": "THE END"}}));
    viewer.until_text("accepted");
    std::fs::write(world.path().join("gate"), "\n").unwrap();
    let got = wait_until("it has read", || std::fs::read_to_string(world.path().join("got")).ok());
    assert!(got == format!("{keys}{keys}THE END"), "the text came after {:?} keys", got.find("THE END"));
}

/// Who was called last is known when nobody was there, and nobody is left to ask.
#[test]
fn r47_a_bell_is_remembered_after_the_end() {
    let world = World::new();
    let id = world.shell("printf '\\a'");
    world.wait_for_state(&id, "exited");
    world.run(&["kill", "--keep", &id]); // its process is gone
    assert_eq!(world.info(&id)["call"]["kind"], "bell");
}
