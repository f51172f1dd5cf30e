//! Starting a session that fails, hangs or is interrupted: existing sessions stay, and others do not wait.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use bowline_host::agents::AgentTable;
use bowline_host::launch::Launcher;
use bowline_host::log;
use bowline_host::registry;
use bowline_host::remove::Retention;
use bowline_host::spec::{self, BodySpec, Spec, TerminalSpec};
use bowline_host::start::{self, StartError};
use bowline_proto::api::IfExists;
use bowline_proto::ids::SessionId;
use bowline_proto::problem::Code;
use bowline_proto::size::Size;
use serde_json::json;

use super::world::{World, is_alive, signal, wait_until};

#[test]
fn r28_a_restart_by_name_that_cannot_start_keeps_the_old_session() {
    let world = World::new();
    let dev = world.run(&["new", "-d", "--name", "dev", "--", "sh", "-c", "echo precious; exec cat"]);
    world.wait_for_screen("dev", "precious");
    let replace = ["new", "-d", "--name", "dev", "--if-exists", "restart"];
    for (wrong, message) in [
        (&["--cwd", "/typo", "--", "cat"][..], "/typo: no such directory"),
        (&["--", "no-such-program"], "no-such-program: no such program"),
        (&["--", "/etc/passwd"], "/etc/passwd: not executable"),
        (&["--", "./relative"], "./relative: no such program"),
    ] {
        let output = world.try_run(&[&replace[..], wrong].concat());
        assert_eq!(output.status.code(), Some(5));
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{output:?}");
        assert_eq!((&world.info("dev")["id"], &world.info("dev")["state"]), (&json!(dev), &json!("running")));
    }
    assert!(world.screen("dev").contains("precious"));
    // A missing interpreter is noticed only by exec, when the old session has ended. Its screen and log are kept.
    let script = executable(&world, "broken", "#!/no/such/interpreter\n");
    let output = world.try_run(&[&replace[..], &["--", script.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!((&world.info("dev")["id"], &world.info("dev")["state"]), (&json!(dev), &json!("exited")));
    assert!(world.screen("dev").contains("precious") && world.run(&["log", "dev"]).contains("precious"));
    assert_eq!(std::fs::read_dir(world.home().sessions()).unwrap().count(), 1, "failed starts leave no files");
    assert_eq!(world.run(&["restart", "dev"]), dev);
    let fresh = world.run(&[&replace[..], &["--", "cat"]].concat());
    assert_ne!(fresh, dev);
    assert_eq!(world.info(&dev), json!(null), "a replaced session is forgotten");
}

/// A session process that hangs while it starts, for example because its directory is on a dead file server.
#[test]
fn r28_a_start_that_hangs_delays_no_other_name() {
    let world = World::new();
    let old = world.run(&["new", "-d", "--name", "old", "--", "cat"]);
    world.run(&["kill", "--keep", &old]);
    let pid_file = world.path().join("pid");
    let stops = format!("#!/bin/sh\necho $$ > {0}.new; mv {0}.new {0}; kill -STOP $$\n", pid_file.display());
    let hangs = Launcher::new(executable(&world, "hangs", &stops)).with_report_timeout(Duration::from_secs(3600));
    std::thread::scope(|scope| {
        let hung = scope.spawn(|| start::start(&world.home(), &hangs, spec(&world, "hung"), &Retention::default()));
        let pid: i32 = wait_until("the session process hangs", || {
            std::fs::read_to_string(&pid_file).ok().and_then(|pid| pid.trim().parse().ok())
        });
        let other = world.run(&["new", "-d", "--name", "other", "--", "cat"]);
        world.run(&["rename", &other, "renamed"]);
        assert_eq!(world.run(&["restart", "old"]), old);
        world.run(&["new", "-d", "--", "cat"]);
        signal(pid, "KILL");
        let why = hung.join().unwrap().expect_err("no session was started");
        assert!(matches!(why, StartError::Process(_)) && why.to_string().contains("without a report"), "{why}");
    });
    world.run(&["new", "-d", "--name", "hung", "--", "cat"]);
}

#[test]
fn r28_a_start_that_stays_silent_is_ended_and_its_files_are_removed() {
    let world = World::new();
    let pid_file = world.path().join("pid");
    let stops = format!("#!/bin/sh\necho $$ > {0}.new; mv {0}.new {0}; kill -STOP $$\n", pid_file.display());
    let hangs = Launcher::new(executable(&world, "hangs", &stops)).with_report_timeout(Duration::ZERO);
    let id = SessionId::from_random([7; 12]);
    let dir = world.home().session(&id);
    std::fs::create_dir_all(dir.path()).unwrap();
    std::fs::write(dir.log(), "incomplete").unwrap();
    let spec = Spec { id: Some(id), ..spec(&world, "hung") };
    let why = start::start(&world.home(), &hangs, spec, &Retention::default()).expect_err("no session was started");
    assert!(matches!(why, StartError::TimedOut(_)), "{why}");
    assert_eq!(why.code(), Code::Unreachable);
    assert!(!dir.path().exists(), "files are left");
    if let Ok(pid) = std::fs::read_to_string(&pid_file) {
        assert!(!is_alive(pid.trim().parse().unwrap()), "a process is left");
    }
}

/// The starter may die before the program is started.
#[test]
fn r28_a_start_whose_starter_dies_leaves_nothing() {
    let world = World::new();
    world.home().ensure().unwrap();
    let id = SessionId::from_random([7; 12]);
    let bowline = env!("CARGO_BIN_EXE_bowline");
    let mut process = Command::new(bowline)
        .args(["session-process", id.as_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let meta = json!({
        "id": id, "name": null, "kind": "terminal", "argv": ["cat"], "cwd": world.path(), "env": [],
        "size": {"cols": 80, "rows": 24}, "log_size": log::MIN_SIZE, "history": 0, "created": "", "host": "", "boot": "",
    });
    let home = world.home();
    let order = json!({"state": home.state(), "runtime": home.runtime(), "meta": meta, "restart": false});
    process.stdin.as_mut().unwrap().write_all(format!("{order}\n").as_bytes()).unwrap();
    wait_until("the session process has made its log", || home.session(&id).log().exists().then_some(()));
    let output = process.wait_with_output().unwrap(); // closes stdin before the go-ahead
    assert!(!output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("\"prepared\"\n") && said.contains("cancelled"), "{said}");
    assert!(!home.session(&id).path().exists(), "files are left");
}

#[test]
fn r21_a_restart_of_a_forgotten_session_says_so() {
    let world = World::new();
    let id = world.shell("exit 0");
    let entry = registry::find(&world.home(), &id).unwrap();
    world.run(&["kill", &id]);
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_bowline"));
    let why = start::restart(&world.home(), &launcher, &entry, None, &AgentTable::builtin())
        .expect_err("the session is forgotten");
    assert_eq!(why.code(), Code::UnknownSession, "{why}");
    assert!(!entry.dir.path().exists(), "the attempt created a folder");
}

/// A crash may leave a session half removed, and an id that is derived from an idempotency key may be used again.
#[test]
fn r31_leftovers_of_an_earlier_removal_do_not_prevent_another() {
    let world = World::new();
    let id = world.shell("exec cat");
    let gone = world.home().sessions().join(format!("gone.{id}"));
    std::fs::create_dir(&gone).unwrap();
    std::fs::write(gone.join("log"), "of an earlier session").unwrap();
    world.run(&["kill", "--grace", "0s", &id]);
    assert_eq!(std::fs::read_dir(world.home().sessions()).unwrap().count(), 0);
}

#[test]
fn r55_a_kill_of_several_ends_those_it_can_and_reports_the_others() {
    let world = World::new();
    let id = world.shell("exec cat");
    let output = world.try_run(&["kill", "--json", "--grace", "0s", "missing", &id, "none"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("\"missing\"") && said.contains("\"none\""), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), json!({"ended": [id]}).to_string());
    assert_eq!(world.info(&id), json!(null));
}

fn spec(world: &World, name: &str) -> Spec {
    Spec {
        name: Some(name.parse().unwrap()),
        cwd: world.path().to_owned(),
        detached_ttl: 0,
        if_exists: IfExists::Fail,
        id: None,
        request: None,
        makers: Default::default(),
        open_files: None,
        body: BodySpec::Terminal(TerminalSpec {
            argv: vec!["cat".into()],
            env: Vec::new(),
            size: Size::default(),
            log_size: log::DEFAULT_SIZE,
            scrollback: spec::DEFAULT_SCROLLBACK,
        }),
    }
}

/// Creates an executable file. Another process writes it: a file that any process has open for writing cannot be run,
/// and every child that a test starts inherits all open files of this process for a moment.
fn executable(world: &World, name: &str, content: &str) -> PathBuf {
    let path = world.path().join(name);
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$0\" && chmod +x \"$0\""]).arg(&path).stdin(Stdio::piped());
    let mut writer = shell.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
    path
}
