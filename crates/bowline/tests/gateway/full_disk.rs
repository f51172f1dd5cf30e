//! A gateway whose state directory is full or read-only: it starts, serves what exists, and refuses the rest clearly.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use super::gateway::{PATIENCE, World, wait_until};
use super::http;
use super::refusals::check_problem;
use super::viewer::Viewer;

/// No file can grow: every write fails as on a full disk.
const FULL: &str = "trap '' XFSZ; ulimit -S -f 0; exec \"$0\" \"$@\"";
/// The state directory is mounted read-only, for this process alone.
const READ_ONLY: &str = "exec unshare --user --map-root-user --mount sh -c '
    mount --bind \"$BOWLINE_STATE_DIR\" \"$BOWLINE_STATE_DIR\" &&
    mount -o remount,bind,ro \"$BOWLINE_STATE_DIR\" && exec \"$0\" \"$@\"' \"$0\" \"$@\"";

/// Runs a session on a small disk, fills the disk, and prints the screen that the session leaves.
const EXIT_ON_FULL_DISK: &str = r#"
    mount -t tmpfs -o size=12m none "$BOWLINE_STATE_DIR" || exit 77
    # Only from here can the session be found, so it is ended here, also if this hangs and is stopped.
    trap "\"$0\" kill --all --grace 0s > /dev/null 2>&1" EXIT
    trap "exit 124" TERM
    id=$("$0" new --detach -- sh -c "echo first; read go; echo the last line")
    until "$0" screen "$id" | grep -q first; do sleep .05; done
    cat /dev/zero > "$BOWLINE_STATE_DIR/fill" 2> /dev/null
    "$0" send "$id" --enter go
    until "$0" ls | grep -q exited; do sleep .05; done
    "$0" kill --keep "$id" > /dev/null
    "$0" screen "$id"
"#;

#[test]
fn r52_a_gateway_starts_on_a_full_disk_and_serves_what_exists() {
    let mut world = World::new();
    let sessions = start_sessions(&world);
    world.kill_gateway();
    std::fs::remove_file(world.state().join("instance")).unwrap();
    world.wrapper = Some(FULL.into());
    world.start_gateway();
    check_served(&world, &sessions);
    check_writes_refused(&world, 507, "no_space");
    // Once there is space again, everything works, and the gateway has written what it could not before.
    let pid = Pid::from_raw(world.gateway_pid().cast_signed());
    prlimit(pid, Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    wait_until("other commands find the gateway", || world.run(&["login-link"]).status.success().then_some(()));
    world.shell("exec cat");
    world.new_token("another", "read");
}

#[test]
fn r52_a_gateway_starts_on_a_read_only_disk_and_serves_what_exists() {
    let mut world = World::new();
    let sessions = start_sessions(&world);
    world.kill_gateway();
    world.wrapper = Some(READ_ONLY.into());
    let version = world.wrapped(&["--version"]).output().unwrap();
    if !version.status.success() {
        return skip(&String::from_utf8_lossy(&version.stderr));
    }
    world.start_gateway();
    check_served(&world, &sessions);
    check_writes_refused(&world, 503, "unreachable");
    let ready = http::request(world.address, "GET", "/readyz", &[], b"").unwrap();
    check_problem(&ready, 503, "unreachable");
    assert!(ready.text().contains("cannot be written"), "{}", ready.text());
    assert!(world.log().contains("Read-only file system"), "{}", world.log());
    let doctor = world.wrapped(&["doctor", "--quick"]).output().unwrap();
    let report = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(report.contains("is on a read-only file system"), "{report}");
    let end = world.call("DELETE", &format!("/v1/sessions/{}?keep=true&grace=0", sessions.running), &Value::Null);
    assert_eq!(end.status, 204, "{}", end.text());
}

/// The log is reserved at the start, so that its unused part is free for the last screen.
#[test]
fn r22_a_session_that_exits_on_a_full_disk_leaves_its_last_screen() {
    let mut world = World::new();
    world.kill_gateway();
    world.wrapper =
        Some(format!("exec timeout 120 unshare --user --map-root-user --mount sh -c '{EXIT_ON_FULL_DISK}' \"$0\""));
    let shown = world.wrapped(&[]).output().unwrap();
    let stderr = String::from_utf8_lossy(&shown.stderr);
    if shown.status.code() == Some(77) || stderr.contains("unshare failed") {
        return skip(&stderr);
    }
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "first\ngo\nthe last line\n", "{stderr}");
}

/// For a user who may not create namespaces. Nothing is skipped in CI.
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "this user cannot mount: {why}");
    eprintln!("skipped: this user cannot mount ({why})");
}

struct Sessions {
    running: String,
    ended: String,
}

/// Checks that calls which have to write a file are refused.
#[track_caller]
fn check_writes_refused(world: &World, status: u16, code: &str) {
    for (path, body) in [
        ("/v1/sessions", json!({"kind": "terminal", "argv": ["cat"]})),
        ("/v1/tokens", json!({"name": "another", "scope": "read"})),
        ("/v1/codes", json!({})),
    ] {
        check_problem(&world.call("POST", path, &body), status, code);
    }
}

fn start_sessions(world: &World) -> Sessions {
    let sessions = Sessions { running: world.shell("exec cat"), ended: world.shell("echo its output") };
    wait_until("one has ended", || (state(world, &sessions.ended) == "exited").then_some(()));
    sessions
}

fn state(world: &World, id: &str) -> Value {
    world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json()["state"].clone()
}

/// Checks that sessions can be listed, attached to and read, and that the token works.
#[track_caller]
fn check_served(world: &World, sessions: &Sessions) {
    let list = world.call("GET", "/v1/sessions", &Value::Null).json();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 2, "{list}");
    let mut viewer = Viewer::new(world.address, &world.token, &sessions.running, 1);
    viewer.dial(PATIENCE).unwrap();
    viewer.type_in("typed\n");
    viewer.until_output("typed\r\ntyped");
    for part in ["log", "screen"] {
        let answer = world.call("GET", &format!("/v1/sessions/{}/{part}", sessions.ended), &Value::Null);
        assert!(answer.status == 200 && answer.text().contains("its output"), "{part}: {}", answer.text());
    }
    assert_eq!(world.call("GET", "/v1/tokens", &Value::Null).status, 200);
}
