//! `bowline token` and `bowline login-link`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod serving;
mod support;

use std::process::Command;

use bowline_gateway::auth::Auth;
use bowline_gateway::running::RunningGateway;
use bowline_host::home::Home;
use serde_json::Value;
use serving::Gateway;
use support::{Terminal, World, wait_until};

fn home(world: &World) -> Home {
    Home::new(world.path().join("s"), world.path().join("r")).unwrap()
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn r48_tokens_are_created_listed_and_revoked() {
    let world = World::new();
    let gateway = Auth::open(&home(&world)).unwrap();
    let printed = world.ok(&["token", "create", "--name", "ci", "--scope", "read", "--ttl", "30d"]);
    let token = printed.strip_suffix('\n').unwrap();
    assert!(!token.contains(char::is_whitespace), "not only the token was printed: {printed:?}");
    let caller = gateway.bearer(token).unwrap();
    let list: Value = serde_json::from_str(&world.ok(&["token", "ls", "--json"])).unwrap();
    let listed = &list["tokens"][0];
    assert_eq!((&listed["id"], &listed["name"]), (&caller.id().into(), &"ci".into()));
    assert_eq!((&listed["kind"], &listed["scope"]), (&"token".into(), &"read".into()));
    assert!(listed["expires"].is_string() && !list.to_string().contains(token));
    let table = world.ok(&["token", "ls"]);
    assert!(table.starts_with("ID ") && table.contains(caller.id()) && table.contains("in 29d"), "{table}");
    assert_eq!(world.ok(&["token", "revoke", caller.id()]), format!("revoked {}\n", caller.id()));
    assert!(gateway.bearer(token).is_none() && caller.is_revoked());
    let again = world.run(&["token", "revoke", caller.id()]);
    assert_eq!(again.status.code(), Some(3), "{}", stderr(&again));
}

#[test]
fn r48_a_wrong_id_does_not_keep_other_tokens_from_being_revoked() {
    let world = World::new();
    let gateway = Auth::open(&home(&world)).unwrap();
    let token = world.ok(&["token", "create", "--name", "leaked", "--scope", "admin"]);
    let caller = gateway.bearer(token.trim()).unwrap();
    let output = world.run(&["token", "revoke", "mistake1", caller.id(), "mistake2"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("revoked {}\n", caller.id()));
    assert!(stderr(&output).contains("mistake1") && stderr(&output).contains("mistake2"), "{}", stderr(&output));
    assert!(gateway.bearer(token.trim()).is_none() && caller.is_revoked());
}

/// A token of scope write can run programs, and so make tokens that outlive it.
#[test]
fn r48_a_token_that_a_session_made_is_revoked_with_the_token_that_made_the_session() {
    let world = World::new();
    let gateway = Gateway::new(&world, &[]);
    let leaked = world.ok(&["token", "create", "--name", "leaked", "--scope", "write"]).trim().to_owned();
    let id = &leaked[4..16];
    let thief = World::remote(gateway.url(), &leaked);
    let bowline = env!("CARGO_BIN_EXE_bowline");
    let out = world.path().join("stolen");
    let made = format!("{bowline} token create --name stolen --scope admin > {0}.new && mv {0}.new {0}", out.display());
    // Also from a session that a session started.
    let script = format!("exec {bowline} new --detach --name inner -- sh -c '{made}; exec cat'");
    let env: Vec<String> =
        world.env().iter().map(|(name, value)| format!("--env={name}={}", value.display())).collect();
    let mut args = vec!["new", "--detach", "--name", "outer"];
    args.extend(env.iter().map(String::as_str));
    thief.ok(&[&args[..], &["--", "sh", "-c", &script]].concat());
    wait_until("a token is stolen", || out.exists());
    let stolen = std::fs::read_to_string(&out).unwrap().trim().to_owned();

    let list: Value = serde_json::from_str(&world.ok(&["token", "ls", "--json"])).unwrap();
    let info = list["tokens"].as_array().unwrap().iter().find(|info| info["name"] == "stolen").unwrap();
    assert_eq!(info["made_by"], *id, "{list}");
    let table = world.ok(&["token", "ls"]);
    assert!(table.lines().any(|line| line.contains(&stolen[4..16]) && line.contains(id)), "{table}");

    let works = || World::remote(gateway.url(), &stolen).run(&["ls"]).status.success();
    let hint = stderr(&world.run(&["token", "revoke", id]));
    assert!(hint.contains(&stolen[4..16]) && hint.contains(&format!("revoke --with-made {id}")), "{hint}");
    assert!(works(), "only the token itself was to be revoked");
    let owner = World::remote(gateway.url(), world.ok(&["token", "create", "-n", "o", "--scope", "admin"]).trim());
    let printed = owner.ok(&["token", "revoke", "--with-made", id]);
    assert!(printed.contains(&format!("revoked {}\n", &stolen[4..16])), "{printed}");
    assert!(!works());
    let again = world.run(&["token", "revoke", "--with-made", id]);
    assert_eq!(again.status.code(), Some(3), "{}", stderr(&again));
}

/// The thief removes the token that made the session, and with it the link to the leaked one.
#[test]
fn r48_a_token_that_a_session_made_after_its_maker_was_gone_is_revoked_with_the_leaked_one() {
    let world = World::new();
    let gateway = Gateway::new(&world, &[]);
    let leaked = world.ok(&["token", "create", "--name", "leaked", "--scope", "admin"]).trim().to_owned();
    let thief = World::remote(gateway.url(), &leaked);
    let between = thief.ok(&["token", "create", "--name", "between", "--scope", "write"]).trim().to_owned();
    let (go, out) = (world.path().join("go"), world.path().join("stolen"));
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    let script = format!(
        "cat {2}; {0} token create --name stolen --scope admin > {1}.new && \
         mv {1}.new {1}; exec cat",
        env!("CARGO_BIN_EXE_bowline"),
        out.display(),
        go.display()
    );
    let env: Vec<String> =
        world.env().iter().map(|(name, value)| format!("--env={name}={}", value.display())).collect();
    let mut args = vec!["new", "--detach"];
    args.extend(env.iter().map(String::as_str));
    World::remote(gateway.url(), &between).ok(&[&args[..], &["--", "sh", "-c", &script]].concat());
    thief.ok(&["token", "revoke", &between[4..16]]);
    std::fs::write(&go, "").unwrap(); // the session waits for it
    wait_until("a token is stolen", || out.exists());
    let stolen = std::fs::read_to_string(&out).unwrap().trim().to_owned();
    let printed = world.ok(&["token", "revoke", "--with-made", &leaked[4..16]]);
    assert!(printed.contains(&format!("revoked {}\n", &stolen[4..16])), "{printed}");
}

/// An attacker with a leaked token can fill the disk, but not keep the token from being revoked.
#[test]
fn r52_a_token_is_revoked_on_a_full_disk_by_a_gateway_and_by_the_command_line() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let world = World::new();
    // Runs `bowline` so that a write that the limit on file sizes refuses is an error, and does not end it.
    let limited = |limit: &str, args: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"")]);
        shell.arg(world.bowline(&[]).get_program()).args(args).env_clear().envs(world.env()).current_dir(world.path());
        shell
    };
    let tokens: Vec<String> = (0..8)
        .map(|_| world.ok(&["token", "create", "--name", "leaked", "--scope", "admin"]).trim().to_owned())
        .collect();
    let id = |token: &String| token[4..16].to_owned();
    let gateway = Gateway::start(&world, limited("unlimited", &["serve", "--listen", "127.0.0.1:0"]));
    // From now on no write beyond the first 512 bytes of a file succeeds, and auth.json is longer.
    let full = Rlimit { current: Some(512), maximum: getrlimit(Resource::Fsize).maximum };
    prlimit(Pid::from_raw(gateway.pid().cast_signed()), Resource::Fsize, full).unwrap();

    let owner = World::remote(gateway.url(), &tokens[0]);
    let refused = owner.run(&["token", "create", "--name", "more", "--scope", "read"]);
    assert!(!refused.status.success(), "the disk is full");
    owner.ok(&["token", "revoke", &id(&tokens[1])]);
    let revoked = limited("1", &["token", "revoke", &id(&tokens[2])]).output().unwrap();
    assert!(revoked.status.success(), "{}", stderr(&revoked));
    let started_later = Auth::open(&home(&world)).unwrap();
    for (number, token) in tokens.iter().enumerate() {
        let is_valid = ![1, 2].contains(&number);
        assert_eq!(World::remote(gateway.url(), token).run(&["ls"]).status.success(), is_valid, "{number}");
        assert_eq!(started_later.bearer(token).is_some(), is_valid, "{number}");
    }
}

#[test]
fn r55_errors_about_tokens_say_what_is_wrong() {
    let world = World::new();
    for (args, expected) in [
        (&["token", "create", "--name", "x", "--scope", "root"][..], "read, write or admin"),
        (&["token", "create", "--name", "a b", "--scope", "read"], "a name must have"),
        (&["token", "create", "--name", "x", "--scope", "read", "--ttl", "0s"], "at least one second"),
        (&["login-link", "--url", "box.example"], "http://"),
    ] {
        let output = world.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
    world.ok(&["token", "create", "--name", "x", "--scope", "read"]);
    let file = world.path().join("s/auth.json");
    std::fs::write(&file, "{").unwrap();
    let output = world.run(&["token", "ls"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(file.to_str().unwrap()) && stderr(&output).contains("damaged"));
    assert_eq!(std::fs::read(&file).unwrap(), b"{", "the damaged file was changed");
}

#[test]
fn r48_a_login_link_works_once_across_processes() {
    let world = World::new();
    let output = world.run(&["login-link"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("bowline serve"), "{}", stderr(&output));

    let home = home(&world);
    home.ensure().unwrap();
    let running = RunningGateway::claim(&home).unwrap().unwrap();
    let url = "http://127.0.0.1:7433".to_owned();
    RunningGateway { pid: 1, url: url.clone(), listen: String::new(), started: String::new() }.write(&home).unwrap();
    let link = world.ok(&["login-link"]);
    let code = link.trim().strip_prefix(&format!("{url}/#login=")).unwrap();
    let (one, two) = (Auth::open(&home).unwrap(), Auth::open(&home).unwrap());
    assert!(one.login(code, "").is_ok());
    assert!(two.login(code, "").is_err() && one.login(code, "").is_err());
    drop(running);
    // A process that another test is just starting inherits the lock until it executes its program.
    wait_until("the entry of a dead gateway is ignored", || world.run(&["login-link"]).status.code() == Some(1));
    assert!(world.ok(&["login-link", "--url", "https://box.example/x"]).starts_with("https://box.example/x/#login="));
}

#[test]
fn r50_a_login_link_has_a_qr_code_in_a_terminal() {
    let world = World::new();
    let blocks = |text: &str| text.chars().filter(|c| matches!(c, '█' | '▀' | '▄')).count();
    for (url, drawn) in [("https://box.example", true), ("http://127.0.0.1:7433", false)] {
        let mut terminal = Terminal::run(&world, &["login-link", "--url", url], 120, 60);
        assert_eq!(terminal.exit_code(), 0);
        let output = terminal.history();
        assert!(output.contains(&format!("{url}/#login=")), "{output}");
        assert_eq!((blocks(&output) > 100, output.contains("Only this machine")), (drawn, !drawn), "{output}");
    }
    let piped = world.ok(&["login-link", "--url", "https://box.example"]);
    assert_eq!((piped.lines().count(), blocks(&piped)), (1, 0), "{piped}");
}
