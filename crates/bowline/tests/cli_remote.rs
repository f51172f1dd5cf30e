//! `bowline --server`: the same verbs on another machine's sessions, over HTTP and WebSocket, and over bad networks.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use std::io::Read;
use std::process::{Output, Stdio};
use std::time::Duration;

use bowline_proto::config::OUTBOX;
use serde_json::Value;
use support::{Gateway, Proxy, Terminal, World, wait_until};

const DETACH: &[u8] = b"\x1cd";

/// What a failed run says, if it ended with this code.
#[track_caller]
fn fails(output: Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Another machine that reaches the gateway, and may write.
fn laptop(gateway: &Gateway<'_>) -> World {
    World::remote(&gateway.url(), &gateway.token("laptop", "write"))
}

/// Another machine that reaches the gateway over a wire that can be cut.
fn over_a_wire(gateway: &Gateway<'_>) -> (World, Proxy) {
    let proxy = Proxy::before_port(gateway.port());
    let url = format!("http://127.0.0.1:{}", proxy.port());
    (World::remote(&url, &gateway.token("wire", "write")), proxy)
}

#[test]
fn every_verb_works_from_another_machine() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    let json = |args: &[&str]| -> Value { serde_json::from_str(&there.ok(args)).unwrap() };

    let made = json(&["new", "-d", "--json", "--name", "j", "--size", "100x30", "--", "cat"]);
    assert_eq!((&made["state"], &made["size"]["cols"]), (&"running".into(), &100.into()));
    let keys = |list: &Value| list["sessions"][0].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let local: Value = serde_json::from_str(&here.ok(&["ls", "--json"])).unwrap();
    assert_eq!(keys(&json(&["ls", "--json"])), keys(&local));
    assert!(there.ok(&["ls"]).contains("running"));

    assert_eq!(json(&["send", "j", "--json", "--enter", "hi"])["status"], "accepted");
    there.wait_for_screen("j", "hi\nhi");
    assert_eq!(json(&["screen", "j", "--format", "json"])["lines"][1]["text"], "hi");
    assert!(there.ok(&["screen", "j", "--format", "ansi"]).contains("hi"));
    wait_until("the line's end is there, too", || there.ok(&["log", "j"]) == "hi\r\nhi\r\n");
    assert_eq!(there.ok(&["log", "j", "--from", "4", "--to", "6"]), "hi");

    there.ok(&["rename", "j", "k"]);
    assert_eq!(json(&["kill", "--json", "--keep", "k"])["ended"][0], made["id"]);
    assert_eq!(there.info("k", "state"), "exited");
    assert!(there.ok(&["screen", "k"]).contains("hi"));
    assert_eq!(json(&["restart", "--json", "k"])["id"], made["id"]);
    there.ok(&["send", "k", "--signal", "TERM"]);
    wait_until("it ended", || there.info("k", "state") == "exited");
    there.ok(&["kill", "k", "--grace", "1s"]);
    assert_eq!(json(&["ls", "--json"])["sessions"], Value::Array(Vec::new()));
}

#[test]
fn a_text_of_any_length_is_typed_from_another_machine() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    // Each of these characters takes six bytes of JSON.
    let text = "\u{1}".repeat(1 << 20);
    let script = "stty raw -echo; echo up; until [ -e go ]; do sleep 0.02; done; head -c 1048576 > part; mv part got";
    let id = here.start("reader", script);
    here.wait_for_screen("reader", "up");
    let file = there.path().join("text");
    std::fs::write(&file, &text).unwrap();
    let input = std::fs::File::open(file).unwrap();
    let mut child = there.bowline(&["send", "read", "-"]).stdin(input).spawn().unwrap();
    let events = here.path().join(format!("s/sessions/{id}/events.jsonl"));
    wait_until("four pieces wait", || std::fs::read_to_string(&events).unwrap().matches("command").count() >= 4);
    std::fs::write(here.path().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    wait_until("all is read", || here.path().join("got").exists());
    assert!(std::fs::read(here.path().join("got")).unwrap() == text.as_bytes(), "every byte once");
}

#[test]
fn a_session_of_another_machine_is_found_by_the_beginning_of_its_name() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    let one = here.start("build-one", "echo the first; cat");
    here.start("build-two", "cat");
    there.wait_for_screen("build-o", "the first");
    assert!(fails(there.run(&["screen", "build"]), 2).contains("build-one, build-two"));
    assert!(fails(there.run(&["kill", "build-o"]), 3).contains("did you mean build-one?"));
    assert!(fails(there.run(&["kill", "nothing"]), 3).contains("`bowline ls`"));
    assert_eq!(there.ok(&["kill", "build-one"]), format!("ended build-one ({one})\n"));
}

#[test]
fn r21_a_lost_session_of_another_machine_shows_its_last_screen() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    let id = here.start("w", "echo the last words; cat");
    here.wait_for_screen("w", "the last words");
    let screen = here.path().join("s/sessions").join(&id).join("screen");
    let is_kept = |screen: Vec<u8>| screen.windows(14).any(|part| part == b"the last words");
    wait_until("the screen is kept", || std::fs::read(&screen).is_ok_and(is_kept));
    rustix::process::kill_process(here.process_of(&id), rustix::process::Signal::KILL).unwrap();
    wait_until("it is lost", || there.info("w", "state") == "lost");
    let mut terminal = Terminal::attach(&there, "w");
    assert_eq!(terminal.exit_code(), 1);
    let text = terminal.text();
    assert!(text.starts_with("the last words\nbowline: w was lost"), "{text}");
}

#[test]
fn r18_a_time_to_live_below_a_second_is_no_eternity() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    for world in [&here, &there] {
        let id = world.ok(&["new", "--detach", "--ttl", "500ms", "--", "cat"]);
        let meta = std::fs::read(here.path().join(format!("s/sessions/{}/meta.json", id.trim()))).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&meta).unwrap()["detached_ttl"], 1);
    }
}

#[test]
fn a_session_has_the_servers_environment_and_what_is_given() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    let script = "echo [$FROM_LAPTOP] [$GIVEN] [$BOWLINE_TOKEN] $PWD; cat";
    let args = ["new", "-d", "--name", "e", "--env", "GIVEN=yes", "--cwd", "/", "--", "sh", "-c", script];
    let output = there.bowline(&args).env("FROM_LAPTOP", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    there.wait_for_screen("e", "[] [yes] [] /");
}

#[test]
fn r55_refusals_have_their_exit_codes_and_say_what_to_do() {
    let here = World::new();
    let mut gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    here.start("w", "cat");
    let hint = |args: &[&str], code: i32| fails(there.run(args), code);
    assert!(hint(&["screen", "nothing"], 3).contains("`bowline ls`"));
    assert!(hint(&["screen", "../../etc"], 3).contains("no session is called"));
    assert!(hint(&["new", "-d", "--name", "w", "cat"], 4).contains("--if-exists"));
    assert!(hint(&["new", "-d", "--cwd", "/nowhere", "cat"], 5).contains("--cwd"));
    assert!(hint(&["new", "-d", "no-such-program"], 5).contains("PATH"));
    assert!(hint(&["restart", "w"], 1).contains("is running"));
    assert!(hint(&["prune"], 2).contains("on that machine"));
    let again = ["new", "-d", "--name", "w", "--if-exists", "return", "--"];
    assert!(hint(&[&again[..], &["cat"]].concat(), 4).contains("\"sh -c cat\""));
    assert_eq!(there.ok(&[&again[..], &["sh", "-c", "cat"]].concat()).trim(), here.info("w", "id"));

    let as_other = |token: &str| World::remote(&gateway.url(), token);
    assert!(fails(as_other("").run(&["ls"]), 2).contains("BOWLINE_TOKEN"));
    assert!(fails(as_other("nonsense").run(&["ls"]), 1).contains("bowline token create"));
    let reader = as_other(&gateway.token("reader", "read"));
    assert!(reader.ok(&["ls"]).contains("running"));
    assert!(fails(reader.run(&["send", "w", "x"]), 1).contains("--scope write"));

    let url = gateway.url();
    gateway.kill();
    assert!(fails(World::remote(&url, "any").run(&["ls"]), 6).contains("bowline serve"));
}

#[test]
fn r49_a_url_with_a_secret_is_refused_and_clear_text_is_warned_of() {
    let said = |url: &str, code: i32| fails(World::remote(url, "any").run(&["ls"]), code);
    let secret = said("http://me:hunter2@127.0.0.1:1", 2);
    assert!(secret.contains("BOWLINE_TOKEN") && !secret.contains("hunter2"), "{secret}");
    assert!(said("ssh://127.0.0.1", 2).contains("http:// or https://"));
    assert!(said("http://127.0.0.1:1/#code=x", 2).contains('#'));
    assert!(!said("http://127.0.0.1:1", 6).contains("not encrypted"));
    let clear = said("http://bowline.invalid:1", 6);
    assert_eq!(clear.matches("not encrypted").count(), 1, "{clear}");
}

#[test]
fn r6_r9_a_cut_is_one_line_in_place_and_what_was_typed_meanwhile_arrives_once() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let (there, proxy) = over_a_wire(&gateway);
    here.start("w", "for i in $(seq 1 40); do echo line $i; done; cat");
    here.wait_for_screen("w", "line 40");
    let mut terminal = Terminal::attach(&there, "w");
    terminal.wait_for("line 40");
    let before = terminal.rows();
    let from = terminal.raw.len();
    terminal.slow_down(1, Duration::ZERO); // no step is passed over
    proxy.cut();
    terminal.wait_for("[bowline: connection lost, retrying in");
    let row = |terminal: &mut Terminal| terminal.rows().iter().filter(|row| row.contains("[bowline")).count();
    assert_eq!(row(&mut terminal), 1);
    terminal.wait_for("(attempt 2)");
    assert_eq!(row(&mut terminal), 1, "the notice is rewritten in place");
    terminal.press(b"typed while away\r");
    here.ok(&["send", "w", "from elsewhere", "--enter"]);
    proxy.mend();
    terminal.wait_gone("[bowline");
    terminal.wait_for("typed while away\ntyped while away");
    let shown = terminal.history();
    for line in ["from elsewhere", "typed while away"] {
        assert_eq!(shown.matches(line).count(), 2, "typed and echoed, once:\n{shown}");
    }
    assert!(before.iter().all(|row| shown.contains(row.as_str())), "{shown}");
    let drawn = String::from_utf8_lossy(&terminal.raw[from..]).into_owned();
    assert!(drawn.matches("[bowline: connection lost").count() <= 4, "a line a step: {drawn:?}");
    wait_until("it is in the log", || here.ok(&["log", "w"]).ends_with("typed while away\r\ntyped while away\r\n"));
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn r16_without_a_detach_key_what_was_not_sent_is_shown_and_the_next_key_forgets_it() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let (there, proxy) = over_a_wire(&gateway);
    there.configure("reconnect_tries = \"never\"");
    here.start("w", "echo here; cat");
    here.wait_for_screen("w", "here");
    let mut terminal = Terminal::run(&there, &["attach", "w", "--detach-key", "none"], 80, 24);
    terminal.wait_for("here");
    proxy.cut();
    terminal.wait_for("connection lost");
    terminal.press(b"of another life");
    here.ok(&["kill", "--keep", "--grace", "0s", "w"]);
    here.ok(&["restart", "w"]);
    here.wait_for_screen("w", "here");
    proxy.mend();
    terminal.wait_for("[bowline: not sent: \"of another life\" (the next key forgets it)]");
    terminal.press(b"z");
    here.wait_for_screen("w", "z");
    // What is not decided would stand before this, and no line names a key that is not there.
    let _owner = Terminal::run(&here, &["attach", "w", "--claim-size"], 100, 30);
    terminal.wait_for("[bowline: it is 100x30, another viewer's]");
    assert!(!here.screen("w").contains("another life"));
}

#[test]
fn r16_typing_beyond_what_is_kept_is_counted_and_the_decision_is_still_heard() {
    const TYPED: usize = OUTBOX + (1 << 20);
    let here = World::new();
    let gateway = Gateway::start(&here);
    let (there, proxy) = over_a_wire(&gateway);
    there.configure("reconnect_tries = \"never\"");
    here.start("w", "echo here; cat");
    here.wait_for_screen("w", "here");
    let mut terminal = Terminal::run(&there, &["attach", "w"], 120, 24);
    terminal.wait_for("here");
    proxy.cut();
    terminal.wait_for("connection lost");
    terminal.press(&vec![b'x'; TYPED]);
    here.ok(&["kill", "--keep", "--grace", "0s", "w"]);
    here.ok(&["restart", "w"]);
    here.wait_for_screen("w", "here");
    proxy.mend();
    terminal.wait_for("more were not kept");
    let line = terminal.text();
    let number = |after: &str, before: &str| -> usize {
        let (_, rest) = line.split_once(after).unwrap();
        rest.split_once(before).unwrap().0.parse().unwrap()
    };
    let (kept, lost) = (number("\".. ", " bytes"), number(" bytes, ", " more"));
    assert!(kept <= OUTBOX && kept + lost == TYPED, "{line}");
    // The link is full and connected, and no key but these could make room.
    terminal.press(b"\x1cn");
    terminal.wait_gone("[bowline");
    terminal.press(b"after");
    terminal.wait_for("after");
    assert!(!here.screen("w").contains('x'));
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
}

/// A tail without its head would be another command.
#[test]
fn r16_what_is_kept_of_typing_beyond_the_bound_is_its_beginning() {
    // Each line has its own number, so that a hole can be seen.
    let typed: Vec<u8> = (0..(OUTBOX + (1 << 20)) / 8).flat_map(|line| format!("{line:07}\n").into_bytes()).collect();
    let here = World::new();
    let gateway = Gateway::start(&here);
    let (there, proxy) = over_a_wire(&gateway);
    there.configure("reconnect_tries = \"never\"");
    here.start("w", "stty raw -echo; touch got.$$; echo here; exec cat >> got.$$");
    here.wait_for_screen("w", "here");
    let mut terminal = Terminal::run(&there, &["attach", "w"], 120, 24);
    terminal.wait_for("here");
    proxy.cut();
    terminal.wait_for("connection lost");
    let (head, tail) = typed.split_at(typed.len() - 4096);
    terminal.press(head);
    // Lines one by one are small enough to fit where the pieces before them did not.
    for line in tail.chunks(8) {
        terminal.wait_for_reading();
        terminal.press(line);
    }
    here.ok(&["kill", "--keep", "--grace", "0s", "w"]);
    here.ok(&["restart", "w"]);
    let got = || -> Vec<Vec<u8>> {
        let files = std::fs::read_dir(here.path()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.to_string_lossy().contains("got.")).map(|path| std::fs::read(path).unwrap()).collect()
    };
    wait_until("the second life", || got().len() == 2);
    proxy.mend();
    terminal.wait_for("more were not kept");
    let line = terminal.text();
    let (_, kept) = line.split_once("\".. ").unwrap();
    let kept: usize = kept.split_once(" bytes").unwrap().0.parse().unwrap();
    terminal.press(b"\x1cy");
    wait_until("what was kept", || got().iter().any(|got| got.len() >= kept));
    assert!(got().iter().all(|got| typed[..kept].starts_with(got)), "there is a hole in it");
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn r7_giving_up_is_quiet_and_enter_comes_back() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let (there, proxy) = over_a_wire(&gateway);
    there.configure("reconnect_tries = 1");
    let mut terminal = Terminal::at_cat(&here, &there);
    proxy.cut();
    terminal.wait_for("given up; Enter retries");
    proxy.mend();
    terminal.comes_back_by_enter();
}

#[test]
fn r19_a_killed_gateway_loses_nothing_for_an_attach_or_a_follower() {
    let here = World::new();
    let mut gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    here.start("w", "read go; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo number $i; done; read x; exit 7");
    let mut terminal = Terminal::attach(&there, "w");
    terminal.wait_until("raw", |terminal| terminal.is_raw());
    let mut follower = there.bowline(&["log", "w", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    terminal.press(b"\r");
    terminal.wait_for("number");
    let (mut output, mut followed) = (follower.stdout.take().unwrap(), vec![0]);
    output.read_exact(&mut followed).unwrap();
    gateway.kill();
    terminal.wait_for("[bowline: connection lost");
    terminal.press(b"\r");
    gateway.start_again();
    assert_eq!(terminal.exit_code(), 7);
    output.read_to_end(&mut followed).unwrap();
    assert!(follower.wait().unwrap().success());
    assert!(followed == here.run(&["log", "w"]).stdout, "every byte once, and in order");
    assert!(terminal.history().contains("number 3000"));
}

#[test]
fn r48_a_revoked_token_ends_the_attach_and_says_how_to_get_another() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    let mut terminal = Terminal::at_cat(&here, &there);
    let tokens: Value = serde_json::from_str(&here.ok(&["token", "ls", "--json"])).unwrap();
    let id = tokens["tokens"][0]["id"].as_str().unwrap();
    here.ok(&["token", "revoke", id]);
    assert_eq!(terminal.exit_code(), 1);
    assert!(terminal.text().contains("bowline token create"), "{}", terminal.text());
    assert_eq!(here.info("w", "state"), "running");
}

#[test]
fn r3_a_session_that_was_killed_ends_its_viewers() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    Terminal::at_cat(&here, &there).is_ended_by_kill(&here);
}

#[test]
fn r23_leaving_frees_the_size_and_a_smaller_window_sees_the_screen() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = laptop(&gateway);
    here.start("w", "echo here; cat");
    let mut owner = Terminal::run(&there, &["attach", "w"], 100, 30);
    owner.wait_for("here");
    let mut other = Terminal::run(&there, &["attach", "w"], 60, 10);
    other.wait_for("it is 100x30");
    owner.press(b"for all to see\r");
    other.wait_for("for all to see\nfor all to see");
    owner.press(DETACH);
    assert_eq!(owner.exit_code(), 0);
    wait_until("the size passed on", || here.info("w", "size")["cols"] == 60);
    other.wait_gone("[bowline");
}

#[test]
fn r48_tokens_and_login_links_are_the_servers() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let admin = World::remote(&gateway.url(), &gateway.token("admin", "admin"));
    let token = admin.ok(&["token", "create", "--name", "phone", "--scope", "read", "--ttl", "30d"]);
    assert_eq!(token.lines().count(), 1, "the token comes alone: {token:?}");
    assert!(!admin.path().join("s").exists(), "nothing was made on this machine");
    let list = |world: &World| -> Value { serde_json::from_str(&world.ok(&["token", "ls", "--json"])).unwrap() };
    let listed = list(&admin);
    assert_eq!(listed["tokens"][1]["name"], "phone");
    assert_eq!(listed["tokens"][1], list(&here)["tokens"][1]);
    assert!(admin.ok(&["token", "ls"]).contains("in 29d"));

    let phone = World::remote(&gateway.url(), token.trim());
    assert!(phone.ok(&["ls", "--json"]).contains("sessions"));
    for args in [&["token", "ls"][..], &["token", "create", "--name", "x", "--scope", "read"], &["login-link"]] {
        assert!(fails(phone.run(args), 1).contains("--scope admin"), "{args:?}");
    }
    assert!(fails(admin.run(&["token", "create", "--name", "a b", "--scope", "read"]), 2).contains("a name is"));

    let link = admin.ok(&["login-link"]);
    let code = link.trim().strip_prefix(&format!("{}/#login=", gateway.url())).unwrap();
    let there = bowline_gateway::auth::Auth::open(
        &bowline_host::home::Home::new(here.path().join("s"), here.path().join("r")).unwrap(),
    );
    assert!(there.as_ref().unwrap().login(code, "").is_ok() && there.unwrap().login(code, "").is_err());
    let named = admin.ok(&["login-link", "--url", "https://box.example/x"]);
    assert!(named.starts_with("https://box.example/x/#login="), "{named}");

    let id = listed["tokens"][1]["id"].as_str().unwrap();
    assert_eq!(admin.ok(&["token", "revoke", id]), "");
    fails(phone.run(&["ls"]), 1);
    for unknown in [id, "../sessions"] {
        assert!(fails(admin.run(&["token", "revoke", unknown]), 3).contains("no token"));
    }
}

#[test]
fn r55_a_doctor_sees_the_way_to_the_server() {
    let here = World::new();
    let gateway = Gateway::start(&here);
    let there = World::remote(&gateway.url(), &gateway.token("doctor", "write"));
    let found: Value = serde_json::from_str(&there.ok(&["doctor", "--quick", "--json"])).unwrap();
    let names: Vec<&str> = found["checks"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["url", "clocks", "WebSocket"], "{found}");
    assert!(!there.path().join("s").exists(), "this machine was not looked at");
}

#[test]
fn r55_what_cannot_be_remote_is_refused() {
    let world = World::new();
    for verb in
        [&[][..], &["serve"], &["service", "install"], &["config", "show"], &["completions", "bash"], &["prune"]]
    {
        for args in
            [[&["--server", "http://127.0.0.1:1"], verb].concat(), [verb, &["--server=http://127.0.0.1:1"]].concat()]
        {
            let output = world.bowline(&args).env("BOWLINE_TOKEN", "any").output().unwrap();
            assert!(fails(output, 2).contains("machine"), "{args:?}");
        }
    }
    // The variable speaks of the verbs that can be, and is in nobody's way.
    assert!(World::remote("http://127.0.0.1:1", "any").ok(&["config", "path"]).contains("config.toml"));
}
