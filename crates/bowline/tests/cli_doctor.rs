//! `bowline doctor`, on healthy and on broken installations.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod serving;
mod support;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use serving::Gateway;
use support::{World, wait_until};

/// Runs the doctor; returns its exit code and its checks.
fn run_doctor(world: &World, args: &[&str]) -> (Option<i32>, Value) {
    let all: Vec<&str> = ["doctor", "--json"].iter().chain(args).copied().collect();
    let output = world.run(&all);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["ok"].as_bool(), Some(output.status.success()));
    (output.status.code(), found["checks"].clone())
}

fn grade<'a>(checks: &'a Value, name: &str) -> &'a str {
    let found = checks.as_array().unwrap().iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("{name} was not checked: {checks}"))["grade"].as_str().unwrap()
}

fn check<'a>(checks: &'a Value, name: &str) -> &'a Value {
    checks.as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()
}

#[test]
fn r55_a_healthy_machine_passes_and_doctor_leaves_nothing_behind() {
    let world = World::new();
    let (code, checks) = run_doctor(&world, &[]);
    assert_eq!(code, Some(0), "{checks}");
    for name in ["configuration", "state directory", "space", "socket path", "clock", "attach", "Host", "Origin"] {
        assert_eq!(grade(&checks, name), "ok", "{checks}");
    }
    assert!(world.ok(&["ls", "--json"]).contains("\"sessions\":[]"));
    assert!(world.ok(&["token", "ls", "--json"]).contains("\"tokens\":[]"));
    let text = world.ok(&["doctor"]);
    assert!(text.contains("ok    attach: ") && text.contains(" checks: ") && !text.contains("failed"), "{text}");
}

#[test]
fn r55_every_failure_has_a_remedy() {
    let world = World::new();
    world.configure("[gateway]\nlisen = 1");
    std::fs::write(world.path().join("s"), "not a directory").unwrap();
    let (code, checks) = run_doctor(&world, &[]);
    assert_eq!(code, Some(1));
    for name in ["configuration", "state directory", "attach"] {
        assert_eq!(grade(&checks, name), "fail", "{checks}");
    }
    let has_remedy =
        |check: &Value| check["grade"] == "ok" || check["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty());
    assert!(checks.as_array().unwrap().iter().all(has_remedy), "{checks}");
    std::fs::remove_file(world.path().join("s")).unwrap();
    world.configure("");
}

/// A session that ended 400 days ago.
fn start_old(world: &World) {
    let id = world.start("old", "true");
    let ended = || !world.ok(&["prune", "--dry-run", "--older", "0s", "--json"]).contains("\"pruned\":[]");
    wait_until("the session has ended", ended);
    let events = std::fs::File::options().append(true).open(world.path().join(format!("s/sessions/{id}/events.jsonl")));
    events.unwrap().set_modified(SystemTime::now() - Duration::from_secs(400 * 24 * 3600)).unwrap();
}

#[test]
fn r31_the_doctor_never_forgets_sessions() {
    let world = World::new();
    start_old(&world);
    // A configuration that keeps old sessions, with a mistake that makes it unreadable.
    world.configure("lisen = 1\n[retention]\nexited_days = 9999\n");
    let (_, checks) = run_doctor(&world, &[]);
    assert_eq!((grade(&checks, "configuration"), grade(&checks, "attach")), ("fail", "ok"), "{checks}");
    world.configure("");
    assert_eq!(world.info("old", "state"), "exited");
    run_doctor(&world, &[]);
    assert_eq!(world.info("old", "state"), "exited");
}

#[test]
fn r50_forward_auth_with_a_proxy_on_loopback_gets_a_warning() {
    let world = World::new();
    let configure = |proxy: &str| {
        let forward = "[gateway.forward_auth]\nheader = \"X-User\"\nusers = [\"ann\"]\n";
        world.configure(&format!("[gateway]\nproxies = [\"{proxy}\"]\n{forward}"));
    };
    configure("127.0.0.1/32");
    let (code, checks) = run_doctor(&world, &[]);
    assert_eq!((code, grade(&checks, "forward auth")), (Some(0), "warn"), "{checks}");
    let log = Gateway::new(&world, &[]).log();
    assert!(log.contains("any user of this machine") && log.contains("To fix this: "), "{log}");
    let secret = world.path().join("proxy-secret");
    let with_secret =
        ["--forward-auth-secret-header", "X-Secret", "--forward-auth-secret-file", secret.to_str().unwrap()];
    let serve = [&["serve", "--listen", "127.0.0.1:0"], &with_secret[..]].concat();
    let refused = world.run(&serve);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && error.contains("proxy-secret") && error.contains("openssl"), "{error}");
    let text = "0123456789abcdef0123456789abcdef";
    std::fs::write(&secret, text).unwrap();
    assert!(!Gateway::new(&world, &with_secret).log().contains("any user of this machine"));
    for format in [&[][..], &["--json"]] {
        let shown = world.ok(&[&["config", "show"], &with_secret[..], format].concat());
        assert!(shown.contains("proxy-secret") && !shown.contains(text), "{shown}");
    }
    configure("192.0.2.0/24");
    let (_, checks) = run_doctor(&world, &[]);
    assert!(!checks.to_string().contains("forward auth"), "{checks}");
    assert!(!Gateway::new(&world, &[]).log().contains("any user of this machine"));
}

#[test]
fn r55_serve_and_doctor_agree_about_open_files() {
    let world = World::new();
    let limited = |files: u32, args: &[&str]| {
        let bowline = world.bowline(args);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")]);
        shell.arg(bowline.get_program()).args(args).env_clear().envs(world.env()).current_dir(world.path());
        shell
    };
    for (files, expected) in [(1024, "warn"), (4096, "ok")] {
        let warned = expected == "warn";
        let output = limited(files, &["doctor", "--json"]).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(grade(&found["checks"], "open files"), expected, "{found}");
        let message = check(&found["checks"], "open files")["words"].as_str().unwrap();
        let gateway = Gateway::start(&world, limited(files, &["serve", "--listen", "127.0.0.1:0"]));
        let log = gateway.log();
        assert_eq!((log.contains(message), log.contains("open files")), (warned, warned), "{log}");
    }
}

#[test]
fn r51_files_that_others_can_read_are_reported() {
    let world = World::new();
    world.ok(&["token", "create", "--name", "t", "--scope", "read"]);
    let (state, auth) = (world.path().join("s"), world.path().join("s/auth.json"));
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&auth, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, checks) = run_doctor(&world, &[]);
    assert_eq!(
        (code, grade(&checks, "state directory"), grade(&checks, "tokens")),
        (Some(1), "warn", "fail"),
        "{checks}"
    );
    assert!(check(&checks, "tokens")["remedy"].as_str().unwrap().contains("chmod 600"));
    std::fs::set_permissions(&auth, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (code, checks) = run_doctor(&world, &[]);
    assert_eq!((code, grade(&checks, "state directory")), (Some(0), "ok"), "the permissions were not fixed");
}

#[test]
fn r55_a_state_directory_that_cannot_be_created_is_reported() {
    let world = World::new();
    let output = world.bowline(&["doctor", "--json"]).env("BOWLINE_STATE_DIR", "/proc/nowhere/s").output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), grade(&found["checks"], "state directory")), (Some(1), "fail"));
    let output =
        world.bowline(&["doctor", "--json"]).env_remove("BOWLINE_STATE_DIR").env_remove("HOME").output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), grade(&found["checks"], "state directory")), (Some(1), "fail"));
}

#[test]
fn r55_doctor_checks_the_url_of_a_gateway() {
    let world = World::new();
    let gateway = Gateway::new(&world, &[]);
    let (code, checks) = run_doctor(&world, &["--quick", "--url", gateway.url()]);
    assert_eq!(code, Some(0), "{checks}");
    for name in ["gateway", "url", "clocks", "WebSocket"] {
        assert_eq!(grade(&checks, name), "ok", "{checks}");
    }
    let (_, checks) = run_doctor(&World::new(), &["--quick", "--url", gateway.url()]);
    assert_eq!(grade(&checks, "WebSocket"), "warn", "a token of this machine was sent to another gateway: {checks}");
    let token = world.ok(&["token", "create", "--name", "t", "--scope", "read"]);
    let mut command = world.bowline(&["doctor", "--json", "--quick", "--url", gateway.url()]);
    let output = command.env("BOWLINE_TOKEN", token.trim()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "a read token started a session");
    assert!(!String::from_utf8_lossy(&output.stdout).contains(token.trim()), "doctor printed the token");
}

#[test]
fn r55_doctor_explains_a_missing_or_bad_token() {
    let world = World::new();
    let gateway = Gateway::new(&world, &[]);
    let reader = world.ok(&["token", "create", "--name", "t", "--scope", "read"]);
    let websocket = |token: &str| {
        let mut command = world.bowline(&["--server", gateway.url(), "doctor", "--quick", "--json"]);
        let output = command.env("BOWLINE_TOKEN", token).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = check(&found["checks"], "WebSocket");
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("grade"), text("words"), text("remedy"))
    };
    let (grade, message, remedy) = websocket("");
    assert_eq!((grade.as_str(), message.as_str()), ("warn", "not tried: BOWLINE_TOKEN is not set"));
    assert!(remedy.contains("bowline token create"), "{remedy}");
    for (token, reason) in [("bwl_unknown", "the token is unknown"), (reader.trim(), "this needs the scope write")] {
        let (grade, message, remedy) = websocket(token);
        assert!(grade == "fail" && message.contains(reason), "{grade}: {message}");
        assert!(remedy.contains("bowline token create") && !remedy.contains("proxy"), "{remedy}");
    }
}

#[test]
fn r55_the_session_of_an_interrupted_doctor_ends_automatically() {
    let world = World::new();
    let gateway = Gateway::new(&world, &[]);
    let token = world.ok(&["token", "create", "--name", "t", "--scope", "write"]);
    // Without --quick it keeps its session for more than a minute.
    let mut doctor = world.bowline(&["--server", gateway.url(), "doctor"]);
    let mut doctor =
        doctor.env("BOWLINE_TOKEN", token.trim()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut meta = None;
    wait_until("it has started a session", || {
        let found = std::fs::read_dir(world.path().join("s/sessions")).into_iter().flatten().flatten();
        meta = found.filter_map(|entry| std::fs::read(entry.path().join("meta.json")).ok()).next();
        meta.is_some()
    });
    rustix::process::kill_process(Pid::from_child(&doctor), Signal::INT).unwrap();
    doctor.wait().unwrap();
    let meta: Value = serde_json::from_slice(&meta.unwrap()).unwrap();
    assert_eq!(meta["detached_ttl"], 60, "{meta}");
}

#[test]
fn r55_doctor_reports_what_does_not_answer() {
    let world = World::new();
    // Bound, so that no other program uses the port, but not listening.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let unused = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    let (code, checks) = run_doctor(&world, &["--quick", "--url", &format!("http://{unused}")]);
    assert_eq!((code, grade(&checks, "url")), (Some(1), "fail"), "{checks}");
    let (code, checks) = run_doctor(&world, &["--quick", "--url", "ftp://here"]);
    assert_eq!((code, grade(&checks, "url")), (Some(1), "fail"), "{checks}");
    let gateway = Gateway::new(&world, &[]);
    gateway.signal(Signal::STOP);
    let (code, checks) = run_doctor(&world, &[]);
    gateway.signal(Signal::CONT);
    assert_eq!((code, grade(&checks, "gateway")), (Some(1), "fail"), "{checks}");
}
