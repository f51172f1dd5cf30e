//! `bowline --server`: the same verbs on the sessions of another machine, also over bad networks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::Read;
use std::process::{Output, Stdio};
use std::time::Duration;

use bowline_proto::config::OUTBOX;
use serde_json::Value;
use support::{Gateway, Proxy, Terminal, World, wait_until};

const DETACH: &[u8] = b"\x1cd";

/// Checks the exit code of a failed run; returns its standard error.
#[track_caller]
fn expect_failure(output: Output, code: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    stderr
}

/// Another machine that uses the gateway with a token that may write.
fn laptop(gateway: &Gateway<'_>) -> World {
    World::remote(&gateway.url(), &gateway.token("laptop", "write"))
}

/// The same, through a proxy whose connections can be cut.
fn laptop_behind_proxy(gateway: &Gateway<'_>) -> (World, Proxy) {
    let proxy = Proxy::for_port(gateway.port());
    let url = format!("http://127.0.0.1:{}", proxy.port());
    (World::remote(&url, &gateway.token("laptop", "write")), proxy)
}

#[test]
fn every_verb_works_from_another_machine() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    let json = |args: &[&str]| -> Value { serde_json::from_str(&laptop.ok(args)).unwrap() };

    let created = json(&["new", "-d", "--json", "--name", "j", "--size", "100x30", "--", "cat"]);
    assert_eq!((&created["state"], &created["size"]["cols"]), (&"running".into(), &100.into()));
    let keys = |list: &Value| list["sessions"][0].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let local: Value = serde_json::from_str(&server.ok(&["ls", "--json"])).unwrap();
    assert_eq!(keys(&json(&["ls", "--json"])), keys(&local));
    assert!(laptop.ok(&["ls"]).contains("running"));

    assert_eq!(json(&["send", "j", "--json", "--enter", "hi"])["status"], "accepted");
    laptop.wait_for_screen("j", "hi\nhi");
    assert_eq!(json(&["screen", "j", "--format", "json"])["lines"][1]["text"], "hi");
    assert!(laptop.ok(&["screen", "j", "--format", "ansi"]).contains("hi"));
    wait_until("the log has everything", || laptop.ok(&["log", "j"]) == "hi\r\nhi\r\n");
    assert_eq!(laptop.ok(&["log", "j", "--from", "4", "--to", "6"]), "hi");

    laptop.ok(&["rename", "j", "k"]);
    assert_eq!(json(&["kill", "--json", "--keep", "k"])["ended"][0], created["id"]);
    assert_eq!(laptop.info("k", "state"), "exited");
    assert!(laptop.ok(&["screen", "k"]).contains("hi"));
    assert_eq!(json(&["restart", "--json", "k"])["id"], created["id"]);
    laptop.ok(&["send", "k", "--signal", "TERM"]);
    wait_until("the session has ended", || laptop.info("k", "state") == "exited");
    laptop.ok(&["kill", "k", "--grace", "1s"]);
    assert_eq!(json(&["ls", "--json"])["sessions"], Value::Array(Vec::new()));
}

#[test]
fn a_long_text_is_typed_from_another_machine() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    // Each of these characters takes six bytes of JSON.
    let text = "\u{1}".repeat(1 << 20);
    let script = "stty raw -echo; echo up; until [ -e go ]; do sleep 0.02; done; head -c 1048576 > part; mv part got";
    let id = server.start("reader", script);
    server.wait_for_screen("reader", "up");
    let file = laptop.path().join("text");
    std::fs::write(&file, &text).unwrap();
    let input = std::fs::File::open(file).unwrap();
    let mut child = laptop.bowline(&["send", "read", "-"]).stdin(input).spawn().unwrap();
    let events = server.path().join(format!("s/sessions/{id}/events.jsonl"));
    wait_until("four pieces are queued", || std::fs::read_to_string(&events).unwrap().matches("command").count() >= 4);
    std::fs::write(server.path().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    wait_until("the program has read everything", || server.path().join("got").exists());
    assert!(std::fs::read(server.path().join("got")).unwrap() == text.as_bytes(), "bytes are missing or repeated");
}

#[test]
fn a_session_of_another_machine_is_found_by_a_prefix_of_its_name() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    let one = server.start("build-one", "echo the first; cat");
    server.start("build-two", "cat");
    laptop.wait_for_screen("build-o", "the first");
    assert!(expect_failure(laptop.run(&["screen", "build"]), 2).contains("build-one, build-two"));
    assert!(expect_failure(laptop.run(&["kill", "build-o"]), 3).contains("did you mean build-one?"));
    assert!(expect_failure(laptop.run(&["kill", "nothing"]), 3).contains("`bowline ls`"));
    assert_eq!(laptop.ok(&["kill", "build-one"]), format!("ended build-one ({one})\n"));
}

#[test]
fn r21_a_lost_session_of_another_machine_shows_its_last_screen() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    let id = server.start("w", "echo the last words; cat");
    server.wait_for_screen("w", "the last words");
    let screen = server.path().join("s/sessions").join(&id).join("screen");
    let is_saved = |screen: Vec<u8>| screen.windows(14).any(|part| part == b"the last words");
    wait_until("the screen is saved", || std::fs::read(&screen).is_ok_and(is_saved));
    rustix::process::kill_process(server.process_of(&id), rustix::process::Signal::KILL).unwrap();
    wait_until("the session is lost", || laptop.info("w", "state") == "lost");
    let mut terminal = Terminal::attach(&laptop, "w");
    assert_eq!(terminal.exit_code(), 1);
    let text = terminal.text();
    assert!(text.starts_with("the last words\nbowline: w was lost"), "{text}");
}

#[test]
fn r18_a_ttl_below_a_second_is_rounded_up() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    for world in [&server, &laptop] {
        let id = world.ok(&["new", "--detach", "--ttl", "500ms", "--", "cat"]);
        let meta = std::fs::read(server.path().join(format!("s/sessions/{}/meta.json", id.trim()))).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&meta).unwrap()["detached_ttl"], 1);
    }
}

#[test]
fn a_remote_session_gets_the_environment_of_the_server_and_the_given_variables() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    let script = "echo [$FROM_LAPTOP] [$GIVEN] [$BOWLINE_TOKEN] $PWD; cat";
    let args = ["new", "-d", "--name", "e", "--env", "GIVEN=yes", "--cwd", "/", "--", "sh", "-c", script];
    let output = laptop.bowline(&args).env("FROM_LAPTOP", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    laptop.wait_for_screen("e", "[] [yes] [] /");
    laptop.ok(&["new", "-d", "--name", "h", "--cwd", "~", "--", "sh", "-c", "echo [$PWD]; cat"]);
    laptop.wait_for_screen("h", &format!("[{}]", server.path().display()));
}

#[test]
fn r28_the_directory_of_a_remote_conversation_may_be_in_the_home_directory_of_the_server() {
    let server = World::with_agents();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    laptop.ok(&["agent", "fake", "--name", "dev", "--detach", "--cwd", "~"]);
    assert_eq!(laptop.info("dev", "cwd"), server.path().to_str().unwrap());
    for missing in [&["agent", "fake", "--detach"][..], &["agent", "fake", "--detach", "--cwd", "src"]] {
        let refused = expect_failure(laptop.run(missing), 2);
        assert!(refused.contains("begins with / or ~") && refused.contains("'~/project'"), "{refused}");
    }
}

#[test]
fn r55_remote_errors_have_exit_codes_and_hints() {
    let server = World::new();
    let mut gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    server.start("w", "cat");
    let hint = |args: &[&str], code: i32| expect_failure(laptop.run(args), code);
    assert!(hint(&["screen", "nothing"], 3).contains("`bowline ls`"));
    assert!(hint(&["screen", "../../etc"], 3).contains("no session is called"));
    assert!(hint(&["new", "-d", "--name", "w", "cat"], 4).contains("--if-exists"));
    assert!(hint(&["new", "-d", "--cwd", "/nowhere", "cat"], 5).contains("--cwd"));
    assert!(hint(&["new", "-d", "no-such-program"], 5).contains("PATH"));
    assert!(hint(&["restart", "w"], 1).contains("is already running"));
    assert!(hint(&["prune"], 2).contains("on that machine"));
    let again = ["new", "-d", "--name", "w", "--if-exists", "return", "--"];
    assert!(hint(&[&again[..], &["cat"]].concat(), 4).contains("\"sh -c cat\""));
    assert_eq!(laptop.ok(&[&again[..], &["sh", "-c", "cat"]].concat()).trim(), server.info("w", "id"));

    let with_token = |token: &str| World::remote(&gateway.url(), token);
    assert!(expect_failure(with_token("").run(&["ls"]), 2).contains("BOWLINE_TOKEN"));
    assert!(expect_failure(with_token("nonsense").run(&["ls"]), 1).contains("bowline token create"));
    let reader = with_token(&gateway.token("reader", "read"));
    assert!(reader.ok(&["ls"]).contains("running"));
    assert!(expect_failure(reader.run(&["send", "w", "x"]), 1).contains("--scope write"));

    let url = gateway.url();
    gateway.kill();
    assert!(expect_failure(World::remote(&url, "any").run(&["ls"]), 6).contains("bowline serve"));
}

#[test]
fn r49_a_url_with_a_password_is_refused_and_plain_http_gets_a_warning() {
    let stderr = |url: &str, code: i32| expect_failure(World::remote(url, "any").run(&["ls"]), code);
    let secret = stderr("http://me:hunter2@127.0.0.1:1", 2);
    assert!(secret.contains("BOWLINE_TOKEN") && !secret.contains("hunter2"), "{secret}");
    assert!(stderr("ssh://127.0.0.1", 2).contains("http:// or https://"));
    assert!(stderr("http://127.0.0.1:1/#code=x", 2).contains('#'));
    assert!(!stderr("http://127.0.0.1:1", 6).contains("not encrypted"));
    let plain = stderr("http://bowline.invalid:1", 6);
    assert_eq!(plain.matches("not encrypted").count(), 1, "{plain}");
}

#[test]
fn r6_r9_a_cut_is_shown_in_one_line_and_keys_typed_meanwhile_arrive_once() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let (laptop, proxy) = laptop_behind_proxy(&gateway);
    server.start("w", "for i in $(seq 1 40); do echo line $i; done; cat");
    server.wait_for_screen("w", "line 40");
    let mut terminal = Terminal::attach(&laptop, "w");
    terminal.wait_for("line 40");
    let before = terminal.rows();
    let from = terminal.raw.len();
    terminal.slow_down(1, Duration::ZERO); // so that no attempt is missed
    proxy.cut();
    terminal.wait_for("[bowline: connection lost, retrying in");
    let notices = |terminal: &mut Terminal| terminal.rows().iter().filter(|row| row.contains("[bowline")).count();
    assert_eq!(notices(&mut terminal), 1);
    terminal.wait_for("(attempt 2)");
    assert_eq!(notices(&mut terminal), 1, "the notice was not rewritten in place");
    terminal.press(b"typed while away\r");
    server.ok(&["send", "w", "from elsewhere", "--enter"]);
    proxy.restore();
    terminal.wait_gone("[bowline");
    terminal.wait_for("typed while away\ntyped while away");
    let shown = terminal.history();
    for line in ["from elsewhere", "typed while away"] {
        assert_eq!(shown.matches(line).count(), 2, "not exactly one echo and one output:\n{shown}");
    }
    assert!(before.iter().all(|row| shown.contains(row.as_str())), "{shown}");
    let drawn = String::from_utf8_lossy(&terminal.raw[from..]).into_owned();
    assert!(drawn.matches("[bowline: connection lost").count() <= 4, "more than one line per attempt: {drawn:?}");
    wait_until("the log has everything", || {
        server.ok(&["log", "w"]).ends_with("typed while away\r\ntyped while away\r\n")
    });
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
    let command = format!("bowline --server http://127.0.0.1:{} attach w", proxy.port());
    assert!(terminal.text().replace('\n', "").contains(&command), "{}", terminal.text());
}

#[test]
fn r16_without_a_detach_key_the_next_key_discards_unsent_input() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let (laptop, proxy) = laptop_behind_proxy(&gateway);
    laptop.configure("reconnect_tries = \"never\"");
    server.start("w", "echo here; cat");
    server.wait_for_screen("w", "here");
    let mut terminal = Terminal::run(&laptop, &["attach", "w", "--detach-key", "none"], 80, 24);
    terminal.wait_for("here");
    proxy.cut();
    terminal.wait_for("connection lost");
    terminal.press(b"typed before the restart");
    server.ok(&["kill", "--keep", "--grace", "0s", "w"]);
    server.ok(&["restart", "w"]);
    server.wait_for_screen("w", "here");
    proxy.restore();
    terminal.wait_for("[bowline: not sent: \"typed before the restart\" (the next key discards it)]");
    terminal.press(b"z");
    server.wait_for_screen("w", "z");
    // The notice about unsent input is gone, or it would hide this one, which must not mention a detach key.
    let _owner = Terminal::run(&server, &["attach", "w", "--claim-size"], 100, 30);
    terminal.wait_for("[bowline: size 100x30 set by another viewer]");
    assert!(!server.screen("w").contains("before the restart"));
}

#[test]
fn r16_input_beyond_the_limit_is_counted_and_can_still_be_discarded() {
    const TYPED: usize = OUTBOX + (1 << 20);
    let server = World::new();
    let gateway = Gateway::start(&server);
    let (laptop, proxy) = laptop_behind_proxy(&gateway);
    laptop.configure("reconnect_tries = \"never\"");
    server.start("w", "echo here; cat");
    server.wait_for_screen("w", "here");
    let mut terminal = Terminal::run(&laptop, &["attach", "w"], 120, 24);
    terminal.wait_for("here");
    proxy.cut();
    terminal.wait_for("connection lost");
    terminal.press(&vec![b'x'; TYPED]);
    server.ok(&["kill", "--keep", "--grace", "0s", "w"]);
    server.ok(&["restart", "w"]);
    server.wait_for_screen("w", "here");
    proxy.restore();
    terminal.wait_for("more dropped");
    let line = terminal.text();
    let number = |after: &str, before: &str| -> usize {
        let (_, rest) = line.split_once(after).unwrap();
        rest.split_once(before).unwrap().0.parse().unwrap()
    };
    let (kept, lost) = (number("\".. ", " bytes"), number(" bytes, ", " more"));
    assert!(kept <= OUTBOX && kept + lost == TYPED, "{line}");
    // The link is connected but full; only these keys can make room.
    terminal.press(b"\x1cn");
    terminal.wait_gone("[bowline");
    terminal.press(b"after");
    terminal.wait_for("after");
    assert!(!server.screen("w").contains('x'));
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
}

/// The end of a command without its start could be a different command.
#[test]
fn r16_input_beyond_the_limit_is_kept_from_its_start() {
    // Every line has its own number, so that a gap is visible.
    let typed: Vec<u8> = (0..(OUTBOX + (1 << 20)) / 8).flat_map(|line| format!("{line:07}\n").into_bytes()).collect();
    let server = World::new();
    let gateway = Gateway::start(&server);
    let (laptop, proxy) = laptop_behind_proxy(&gateway);
    laptop.configure("reconnect_tries = \"never\"");
    server.start("w", "stty raw -echo; touch got.$$; echo here; exec cat >> got.$$");
    server.wait_for_screen("w", "here");
    let mut terminal = Terminal::run(&laptop, &["attach", "w"], 120, 24);
    terminal.wait_for("here");
    proxy.cut();
    terminal.wait_for("connection lost");
    let (head, tail) = typed.split_at(typed.len() - 4096);
    terminal.press(head);
    // Single lines would fit where the larger pieces before them did not.
    for line in tail.chunks(8) {
        terminal.wait_until_keys_read();
        terminal.press(line);
    }
    server.ok(&["kill", "--keep", "--grace", "0s", "w"]);
    server.ok(&["restart", "w"]);
    let got = || -> Vec<Vec<u8>> {
        let files = std::fs::read_dir(server.path()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.to_string_lossy().contains("got.")).map(|path| std::fs::read(path).unwrap()).collect()
    };
    wait_until("the session has restarted", || got().len() == 2);
    proxy.restore();
    terminal.wait_for("more dropped");
    let line = terminal.text();
    let (_, kept) = line.split_once("\".. ").unwrap();
    let kept: usize = kept.split_once(" bytes").unwrap().0.parse().unwrap();
    terminal.press(b"\x1cy");
    wait_until("all kept input has arrived", || got().iter().any(|got| got.len() >= kept));
    assert!(got().iter().all(|got| typed[..kept].starts_with(got)), "the input has a gap");
    terminal.press(DETACH);
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn r7_after_giving_up_enter_reconnects() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let (laptop, proxy) = laptop_behind_proxy(&gateway);
    laptop.configure("reconnect_tries = 1");
    let mut terminal = Terminal::attach_to_cat(&server, &laptop);
    proxy.cut();
    terminal.wait_for("press Enter to retry");
    proxy.restore();
    terminal.reconnect_with_enter();
}

#[test]
fn r19_a_killed_gateway_loses_nothing_for_attach_or_log_follow() {
    let server = World::new();
    let mut gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    server.start("w", "read go; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo number $i; done; read x; exit 7");
    let mut terminal = Terminal::attach(&laptop, "w");
    terminal.wait_until("raw mode", |terminal| terminal.is_raw());
    let mut follower = laptop.bowline(&["log", "w", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    terminal.press(b"\r");
    terminal.wait_for("number");
    let (mut output, mut followed) = (follower.stdout.take().unwrap(), vec![0]);
    output.read_exact(&mut followed).unwrap();
    gateway.kill();
    terminal.wait_for("[bowline: connection lost");
    terminal.press(b"\r");
    gateway.restart();
    assert_eq!(terminal.exit_code(), 7);
    output.read_to_end(&mut followed).unwrap();
    assert!(follower.wait().unwrap().success());
    assert!(followed == server.run(&["log", "w"]).stdout, "the output differs from the log");
    assert!(terminal.history().contains("number 3000"));
}

#[test]
fn r48_revoking_a_token_ends_its_attach_with_a_hint_about_tokens() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    let mut terminal = Terminal::attach_to_cat(&server, &laptop);
    let tokens: Value = serde_json::from_str(&server.ok(&["token", "ls", "--json"])).unwrap();
    let id = tokens["tokens"][0]["id"].as_str().unwrap();
    server.ok(&["token", "revoke", id]);
    assert_eq!(terminal.exit_code(), 1);
    assert!(terminal.text().contains("bowline token create"), "{}", terminal.text());
    assert_eq!(server.info("w", "state"), "running");
}

#[test]
fn r3_killing_a_session_ends_its_remote_viewers() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    Terminal::attach_to_cat(&server, &laptop).assert_ended_by_kill(&server);
}

#[test]
fn r23_detaching_frees_the_size_and_a_smaller_window_sees_the_screen() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = laptop(&gateway);
    server.start("w", "echo here; cat");
    let mut owner = Terminal::run(&laptop, &["attach", "w"], 100, 30);
    owner.wait_for("here");
    let mut other = Terminal::run(&laptop, &["attach", "w"], 60, 10);
    other.wait_for("size 100x30 set by");
    owner.press(b"for all to see\r");
    other.wait_for("for all to see\nfor all to see");
    owner.press(DETACH);
    assert_eq!(owner.exit_code(), 0);
    wait_until("the other viewer owns the size", || server.info("w", "size")["cols"] == 60);
    other.wait_gone("[bowline");
}

#[test]
fn r48_tokens_and_login_links_with_server_belong_to_the_server() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let admin = World::remote(&gateway.url(), &gateway.token("admin", "admin"));
    let token = admin.ok(&["token", "create", "--name", "phone", "--scope", "read", "--ttl", "30d"]);
    assert_eq!(token.lines().count(), 1, "not only the token was printed: {token:?}");
    assert!(!admin.path().join("s").exists(), "files were created on this machine");
    let list = |world: &World| -> Value { serde_json::from_str(&world.ok(&["token", "ls", "--json"])).unwrap() };
    let listed = list(&admin);
    assert_eq!(listed["tokens"][1]["name"], "phone");
    assert_eq!(listed["tokens"][1], list(&server)["tokens"][1]);
    assert!(admin.ok(&["token", "ls"]).contains("in 29d"));

    let phone = World::remote(&gateway.url(), token.trim());
    assert!(phone.ok(&["ls", "--json"]).contains("sessions"));
    for args in [&["token", "ls"][..], &["token", "create", "--name", "x", "--scope", "read"], &["login-link"]] {
        assert!(expect_failure(phone.run(args), 1).contains("--scope admin"), "{args:?}");
    }
    assert!(
        expect_failure(admin.run(&["token", "create", "--name", "a b", "--scope", "read"]), 2)
            .contains("a name must have")
    );

    let link = admin.ok(&["login-link"]);
    let code = link.trim().strip_prefix(&format!("{}/#login=", gateway.url())).unwrap();
    let auth = bowline_gateway::auth::Auth::open(
        &bowline_host::home::Home::new(server.path().join("s"), server.path().join("r")).unwrap(),
    );
    assert!(auth.as_ref().unwrap().login(code, "").is_ok() && auth.unwrap().login(code, "").is_err());
    let with_url = admin.ok(&["login-link", "--url", "https://box.example/x"]);
    assert!(with_url.starts_with("https://box.example/x/#login="), "{with_url}");

    let id = listed["tokens"][1]["id"].as_str().unwrap();
    assert_eq!(admin.ok(&["token", "revoke", id]), format!("revoked {id}\n"));
    expect_failure(phone.run(&["ls"]), 1);
    for unknown in [id, "../sessions"] {
        assert!(expect_failure(admin.run(&["token", "revoke", unknown]), 3).contains("no token"));
    }
}

#[test]
fn r55_doctor_with_server_checks_only_the_connection() {
    let server = World::new();
    let gateway = Gateway::start(&server);
    let laptop = World::remote(&gateway.url(), &gateway.token("doctor", "write"));
    let found: Value = serde_json::from_str(&laptop.ok(&["doctor", "--quick", "--json"])).unwrap();
    let names: Vec<&str> = found["checks"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["url", "clocks", "WebSocket"], "{found}");
    assert!(!laptop.path().join("s").exists(), "files were created on this machine");
}

#[test]
fn r55_local_verbs_refuse_server() {
    let world = World::new();
    for verb in
        [&[][..], &["serve"], &["service", "install"], &["config", "show"], &["completions", "bash"], &["prune"]]
    {
        for args in
            [[&["--server", "http://127.0.0.1:1"], verb].concat(), [verb, &["--server=http://127.0.0.1:1"]].concat()]
        {
            let output = world.bowline(&args).env("BOWLINE_TOKEN", "any").output().unwrap();
            assert!(expect_failure(output, 2).contains("works only on the local machine"), "{args:?}");
        }
    }
    // `prune` refuses the variable with the same words as the flag, before it looks for a token.
    let by_flag = expect_failure(world.run(&["--server", "http://127.0.0.1:1", "prune"]), 2);
    let by_variable = world.bowline(&["prune"]).env("BOWLINE_SERVER", "http://127.0.0.1:1").output().unwrap();
    assert_eq!(expect_failure(by_variable, 2), by_flag);
    assert!(world.bowline(&["prune"]).env("BOWLINE_SERVER", "").output().unwrap().status.success());
    // These verbs ignore the variable.
    assert!(World::remote("http://127.0.0.1:1", "any").ok(&["config", "path"]).contains("config.toml"));
}
