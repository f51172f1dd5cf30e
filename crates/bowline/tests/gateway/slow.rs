//! Clients that do not read or do not close: the gateway does not wait for them.

use std::time::Duration;

use serde_json::{Value, json};

use super::gateway::{World, wait_until};
use super::refusals::{attached, hello, open};

/// The snapshot is larger than all buffers in between. The viewer reads nothing but sends pings, so it is not silent.
#[test]
fn r25_r52_a_viewer_that_does_not_read_is_disconnected() {
    let world = World::with(&[], "[gateway.limits]\nstalled_after = \"500ms\"\n");
    let line = "x".repeat(990);
    let body = json!({
        "kind": "terminal", "scrollback": 20_000, "size": {"cols": 1000, "rows": 24}, "log_size": 64 << 20,
        "argv": ["sh", "-c", format!("i=0; while [ $i -lt 20000 ]; do echo {line}; i=$((i+1)); done; echo done; exec cat")],
    });
    let id = world.call("POST", "/v1/sessions", &body).json()["id"].as_str().unwrap().to_owned();
    wait_until("the program has printed everything", || world.ok(&["screen", &id]).contains("done").then_some(()));
    let mut viewer = open(&world, &id, false);
    viewer.stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    viewer.send_text(&hello(1, 1, &json!({"scrollback": 20_000}))).unwrap();
    wait_until("the viewer is disconnected", || viewer.send_text(&json!({"type": "ping", "n": 1}).to_string()).err());
    wait_until("the session has no viewer", || {
        let info = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
        (info["clients"] == 0).then_some(())
    });
}

#[test]
fn r20_a_stop_does_not_wait_for_clients_that_do_not_close() {
    let mut world = World::with(&[], "[gateway.limits]\ndrain = \"50ms\"\n");
    let id = world.shell("exec cat");
    // The viewer does not answer the close.
    let mut viewer = attached(&world, &id, true, &hello(1, 1, &json!({})));
    assert!(world.stop_gateway().success());
    assert!(world.log().contains("did not close in time"), "{}", world.log());
    assert_eq!(viewer.until_close().0, 1001);
}

#[test]
fn r21_a_gateway_forgets_old_sessions_on_its_own() {
    let mut world = World::with(&[], "[retention]\nexited_days = 0\n");
    let id = world.shell("exit 3");
    let process = format!("/proc/{}", world.session_pid(&id));
    world.kill_gateway();
    wait_until("the session process has ended", || (!std::path::Path::new(&process).exists()).then_some(()));
    assert!(world.session_dir(&id).exists());
    world.start_gateway();
    wait_until("the session is forgotten", || (!world.session_dir(&id).exists()).then_some(()));
}
