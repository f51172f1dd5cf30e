//! Who takes nothing, or does not let go, is not waited for.

use std::time::Duration;

use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::refusals::{attached, hello, open};

/// A snapshot that is larger than all buffers on the way, and a viewer that reads nothing of it but is there: its pings are
/// answered by nobody but the session, which must not wait for ever, either.
#[test]
fn r25_r52_a_viewer_that_takes_nothing_is_cut() {
    let world = World::with(&[], "[gateway.limits]\nstalled_after = \"500ms\"\n");
    let line = "x".repeat(990);
    let body = json!({
        "kind": "terminal", "scrollback": 20_000, "size": {"cols": 1000, "rows": 24}, "log_size": 64 << 20,
        "argv": ["sh", "-c", format!("i=0; while [ $i -lt 20000 ]; do echo {line}; i=$((i+1)); done; echo done; exec cat")],
    });
    let id = world.call("POST", "/v1/sessions", &body).json()["id"].as_str().unwrap().to_owned();
    wait_until("it has printed everything", || world.ok(&["screen", &id]).contains("done").then_some(()));
    let mut viewer = open(&world, &id, false);
    viewer.stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    viewer.send_text(&hello(1, 1, &json!({"scrollback": 20_000}))).unwrap();
    wait_until("it is cut", || viewer.send_text(&json!({"type": "ping", "n": 1}).to_string()).err());
    wait_until("the session knows", || {
        let info = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
        (info["clients"] == 0).then_some(())
    });
}

#[test]
fn r20_a_stop_does_not_wait_for_who_does_not_let_go() {
    let mut world = World::with(&[], "[gateway.limits]\ndrain = \"50ms\"\n");
    let id = world.shell("exec cat");
    // It is told, and says nothing.
    let mut viewer = attached(&world, &id, true, &hello(1, 1, &json!({})));
    assert!(world.stop_gateway().success());
    assert!(world.log().contains("did not close in time"), "{}", world.log());
    assert_eq!(viewer.until_close().0, 1001);
}

#[test]
fn r21_a_gateway_forgets_what_ended_long_ago_also_when_nothing_is_started() {
    let mut world = World::with(&[], "[retention]\nexited_days = 0\n");
    let id = world.shell("exit 3");
    let process = format!("/proc/{}", world.session_pid(&id));
    world.kill_gateway();
    wait_until("its process is gone", || (!std::path::Path::new(&process).exists()).then_some(()));
    assert!(world.session_dir(&id).exists());
    world.start_gateway();
    wait_until("it is forgotten", || (!world.session_dir(&id).exists()).then_some(()));
}
