//! Nothing that `bowline` prints can reprogram the terminal: not with names, titles and paths of this machine, and not
//! with what a server says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use bowline_client::escape::rearranges;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use support::{Answers, HOSTILE, HostileServer, Terminal, World, wait_until};

/// Whether a terminal acts on the character, or shows other text because of it.
fn is_hostile(c: char) -> bool {
    rearranges(c) || (c.is_control() && c != '\n' && c != '\t')
}

/// Runs the command, and describes what it printed that a terminal must not get.
fn hostile_output(mut command: Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    hostile_parts(&output).map(|printed| format!("{:?}: {printed}", command.get_args().collect::<Vec<_>>()))
}

fn hostile_parts(Output { stdout, stderr, .. }: &Output) -> Option<String> {
    let is_clean = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(is_hostile));
    let forges = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("\nhint: pwned");
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
    let is_hostile = !is_clean(stdout) || !is_clean(stderr) || forges(stderr);
    is_hostile.then(|| format!("printed {} and {}", show(stdout), show(stderr)))
}

/// Fails with all of the problems.
#[track_caller]
fn expect_none(problems: impl Iterator<Item = String>) {
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The arguments of every verb that works on another machine. `log` and `screen --format ansi` are not among them: what
/// they print to a pipe is exact.
const REMOTE: [&[&str]; 24] = [
    &["ls"],
    &["ls", "--json"],
    &["ls", "--complete", "b"],
    &["new", "--detach", "--", HOSTILE],
    &["new", "--detach", "--json", "--cwd", HOSTILE],
    &["attach", "build"],
    &["kill", "build"],
    &["kill", "--json", "--keep", "build"],
    &["kill", "--all"],
    &["send", "build", HOSTILE],
    &["send", "build", "--json", "--signal", "TERM"],
    &["screen", "build"],
    &["screen", "build", "--format", "json"],
    &["screen", HOSTILE],
    &["rename", "build", "other"],
    &["restart", "build"],
    &["restart", "--json", "build"],
    &["log", "build"],
    &["token", "ls"],
    &["token", "ls", "--json"],
    &["token", "create", "--name", "x", "--scope", "read"],
    &["token", "revoke", "k3v9x0q2m7aa", HOSTILE],
    &["login-link"],
    &["doctor", "--quick"],
];

#[test]
fn a_hostile_server_gets_no_escape_sequence_to_the_terminal() {
    let server = HostileServer::start();
    let world = World::remote(&server.url(), "bwl_token");
    let refusals = ["unknown_session", "not_authenticated", "not_allowed", "name_taken", "bad_request", "made_up"];
    let answers = [Answers::Valid, Answers::Ended, Answers::Elsewhere, Answers::Garbage];
    let problems = answers.into_iter().chain(refusals.map(Answers::Refuses)).flat_map(|answers| {
        server.set(answers);
        let found = REMOTE.iter().filter_map(|args| hostile_output(world.bowline(args)));
        found.map(|problem| format!("{answers:?}: {problem}")).collect::<Vec<_>>()
    });
    expect_none(problems);
}

#[test]
fn a_server_that_refuses_an_attach_gets_no_escape_sequence_to_the_terminal() {
    let server = HostileServer::start();
    let world = World::remote(&server.url(), "bwl_token");
    for answers in [Answers::Valid, Answers::Ended, Answers::Elsewhere, Answers::Refuses("not_authenticated")] {
        server.set(answers);
        let mut terminal = Terminal::attach(&world, "build");
        assert_ne!(terminal.exit_code(), 0);
        let printed = String::from_utf8_lossy(&terminal.raw).into_owned();
        let hostile = ["\x1b]0;", "\u{9b}", "\u{90}", "\x7f", "\u{202e}", "\u{2066}", "\nhint: pwned"];
        assert!(!hostile.iter().any(|part| printed.contains(part)), "{answers:?}: {printed:?}");
        assert!(printed.contains("\\u001b]0;pwned"), "{answers:?}: {printed:?}");
    }
}

#[test]
fn json_keeps_its_meaning_when_it_is_escaped() {
    let server = HostileServer::start();
    let world = World::remote(&server.url(), "bwl_token");
    let list: Value = serde_json::from_str(&world.ok(&["ls", "--json"])).unwrap();
    assert_eq!((&list["sessions"][0]["title"], &list["sessions"][0]["argv"][0]), (&HOSTILE.into(), &HOSTILE.into()));
}

#[test]
fn hostile_arguments_get_no_escape_sequence_to_the_terminal() {
    let world = World::new();
    let verbs: [&[&str]; 36] = [
        &[HOSTILE],
        &["ls", HOSTILE],
        &["ls", "--complete", HOSTILE],
        &["attach", HOSTILE],
        &["attach", "--detach-key", HOSTILE],
        &["kill", HOSTILE],
        &["kill", "--grace", HOSTILE, "x"],
        &["send", HOSTILE, "text"],
        &["send", "x", "--key", HOSTILE],
        &["screen", HOSTILE],
        &["screen", "x", "--format", HOSTILE],
        &["log", HOSTILE],
        &["log", "x", "--from", HOSTILE],
        &["rename", HOSTILE, "x"],
        &["rename", "x", HOSTILE],
        &["restart", HOSTILE],
        &["new", "--name", HOSTILE],
        &["new", "--detach", "--cwd", HOSTILE],
        &["new", "--detach", "--env", HOSTILE],
        &["new", "--detach", "--size", HOSTILE],
        &["new", "--detach", "--", HOSTILE],
        &["prune", "--older", HOSTILE],
        &["serve", "--listen", HOSTILE],
        &["serve", "--public-url", HOSTILE],
        &["serve", "--limit", HOSTILE],
        &["serve", "--log-level", HOSTILE],
        &["config", "show", "--tls-cert", HOSTILE, "--tls-key", HOSTILE],
        &["config", "show", "--json", "--tls-cert", HOSTILE, "--tls-key", HOSTILE],
        &["token", "create", "--name", HOSTILE, "--scope", "read"],
        &["token", "create", "--name", "x", "--scope", HOSTILE],
        &["token", "revoke", HOSTILE],
        &["login-link", "--url", HOSTILE],
        &["login-link", "--url", concat!("http://box", "\x1b]0;pwned\x07", "\u{9b}2J")],
        &["doctor", "--quick", "--url", HOSTILE],
        &["completions", HOSTILE],
        &["service", HOSTILE],
    ];
    let servers = [HOSTILE, concat!("http://", "\x1b]0;pwned\x07", "\u{9b}2J"), "http://127.0.0.1:1/\u{9b}2J"];
    let remote = servers.iter().flat_map(|server| {
        let verbs: [&[&str]; 5] = [&["ls"], &["token", "ls"], &["login-link"], &["doctor", "--quick"], &["prune"]];
        verbs.map(|verb| [&["--server", server][..], verb].concat())
    });
    let commands = verbs.iter().map(|verb| verb.to_vec()).chain(remote);
    expect_none(commands.filter_map(|args| {
        let mut command = world.bowline(&args);
        command.env("BOWLINE_TOKEN", "bwl_token");
        hostile_output(command)
    }));
}

#[test]
fn hostile_sessions_files_and_variables_get_no_escape_sequence_to_the_terminal() {
    let world = World::new();
    world.ok(&["new", "--detach", "--name", "ended", "--", "sh", "-c", "exit 0", HOSTILE]);
    world.ok(&["new", "--detach", "--name", "runs", "--", "sh", "-c", "cat", HOSTILE]);
    wait_until("the session has ended", || world.info("ended", "state") == "exited");
    let verbs: [&[&str]; 11] = [
        &["ls"],
        &["ls", "--json"],
        &["prune", "--older", "0s", "--dry-run"],
        &["prune", "--older", "0s", "--json", "--dry-run"],
        &["screen", "runs"],
        &["config", "show"],
        &["config", "path"],
        &["service", "status"],
        &["service", "install", "--print"],
        &["doctor", "--json"],
        &["new", "--help"],
    ];
    let variables = [
        "BOWLINE_STATE_DIR",
        "BOWLINE_RUNTIME_DIR",
        "BOWLINE_CONFIG",
        "XDG_CONFIG_HOME",
        "BOWLINE_LISTEN",
        "BOWLINE_SCROLLBACK",
        "BOWLINE_DETACH_KEY",
        "BOWLINE_SERVER",
        "RUST_LOG",
        "SHELL",
    ];
    let plain = verbs.iter().filter_map(|verb| hostile_output(world.bowline(verb)));
    let with_variables = variables.iter().flat_map(|variable| {
        let run = |verb: &&[&str]| {
            let mut command = world.bowline(verb);
            command.env(variable, HOSTILE.trim());
            hostile_output(command).map(|problem| format!("{variable}: {problem}"))
        };
        verbs.iter().filter_map(run).collect::<Vec<_>>()
    });
    expect_none(plain.chain(with_variables));
    world.configure(&format!("shell = \"{}\"\nnonsense = '\u{9b}2J\u{202e}'", HOSTILE.escape_unicode()));
    expect_none(verbs.iter().filter_map(|verb| hostile_output(world.bowline(verb))));
    world.configure(r#"shell = "\u001b]0;pwned\u0007\u009b2J\u202e""#);
    expect_none(verbs.iter().filter_map(|verb| hostile_output(world.bowline(verb))));
}

/// A process that also ends if the test fails.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_log_of_the_gateway_shows_a_hostile_path_on_one_line() {
    let world = World::new();
    let (state, log) = (world.path().join(HOSTILE), world.path().join("log"));
    let mut gateway = world.bowline(&["serve", "--listen", "127.0.0.1:0"]);
    gateway.env("BOWLINE_STATE_DIR", &state).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut gateway = KillOnDrop(gateway.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap());
    let mut lines = BufReader::new(gateway.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned)).unwrap();
    lines.find(|line| line.contains("Ctrl-C stops the gateway")).unwrap();
    std::fs::write(state.join("auth.json"), "damaged").unwrap();
    // A call makes the gateway read the file.
    world.bowline(&["--server", &url, "ls"]).env("BOWLINE_TOKEN", "bwl_token").output().unwrap();
    let logged = || std::fs::read_to_string(&log).unwrap();
    wait_until("the error is logged", || logged().contains("auth.json"));
    drop(gateway);
    assert!(logged().contains("\\u001b]0;pwned\\u0007"), "{:?}", logged());
    assert!(!logged().contains(is_hostile) && !logged().contains("\nhint: pwned"), "{:?}", logged());
    assert!(logged().lines().all(|line| line.contains("ERROR") || line.contains("WARN")), "{:?}", logged());
}

#[test]
fn a_terminal_gets_the_log_without_what_would_take_it_over_and_a_pipe_gets_every_byte() {
    let world = World::new();
    // tmux's control mode, raw 8-bit controls, a query, and reports of the mouse.
    let script = r"printf 'a\033P1000p%%begin\033\\b\233c\220d\033[6n\033[?1000hend\n'";
    world.start("w", script);
    wait_until("the session has ended", || world.info("w", "state") == "exited");
    let exact = b"a\x1bP1000p%begin\x1b\\b\x9bc\x90d\x1b[6n\x1b[?1000hend\r\n";
    assert_eq!(world.run(&["log", "w"]).stdout, exact);
    let mut terminal = Terminal::run(&world, &["log", "w"], 80, 24);
    assert_eq!(terminal.exit_code(), 0);
    let printed = String::from_utf8(terminal.raw.clone()).unwrap();
    assert!(printed.starts_with("abcd\x1b[?1000hend\r") && printed.contains("\x1b[?1000l"), "{printed:?}");
    assert!(terminal.replies.is_empty() && !terminal.has_mode(1000), "{printed:?}");
}

#[test]
fn a_log_that_is_followed_leaves_the_terminal_as_it_was_when_a_signal_ends_it() {
    let world = World::new();
    world.start("w", r"printf '\033[?1000h\033[?25lready'; exec cat");
    for (signal, code) in [(None, 130), (Some(Signal::TERM), 143), (Some(Signal::HUP), 129)] {
        let mut terminal = Terminal::run(&world, &["log", "--follow", "w"], 80, 24);
        terminal.wait_for("ready");
        assert!(terminal.has_mode(1000));
        match signal {
            None => terminal.press(b"\x03"),
            Some(signal) => kill_process(terminal.pid(), signal).unwrap(),
        }
        assert_eq!(terminal.exit_code(), code);
        assert!(!terminal.has_mode(1000) && terminal.has_mode(25), "{code}");
    }
}

#[test]
fn a_log_that_fails_leaves_the_terminal_as_it_was() {
    let world = World::new();
    let id = world.start("w", r"printf '\033[?1000hready'; exec cat");
    let mut terminal = Terminal::run(&world, &["log", "--follow", "w"], 80, 24);
    terminal.wait_for("ready");
    assert!(terminal.has_mode(1000));
    std::fs::write(world.path().join("s/sessions").join(id).join("log"), "damaged").unwrap();
    assert_ne!(terminal.exit_code(), 0, "{}", terminal.text());
    assert!(!terminal.has_mode(1000));
}
