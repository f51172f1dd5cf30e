//! `/metrics`: its values, and who may read them.

use std::time::Duration;

use serde_json::Value;

use super::gateway::{World, wait_until};
use super::http;
use super::refusals::check_problem;
use super::viewer::Viewer;

/// The value of a series, given with its labels; 0 if it does not exist.
pub(crate) fn metric(world: &World, series: &str) -> f64 {
    let all = world.call("GET", "/metrics", &Value::Null);
    assert_eq!(all.status, 200, "{}", all.text());
    let text = all.text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |number| number.parse().unwrap())
}

#[test]
fn r46_metrics_count_sessions_attaches_and_refusals() {
    let world = World::new();
    let id = world.shell("exec cat");
    let ended = world.shell("exit 3");
    let mut viewer = Viewer::new(world.address, &world.token, &id, 1);
    viewer.dial(Duration::from_secs(30)).unwrap();
    viewer.until("the viewer is attached", |viewer| viewer.cursor.is_some());
    assert_eq!(metric(&world, "bowline_attachments"), 1.0);
    viewer.type_in("again\n");
    viewer.until_output("again\r\nagain\r\n");
    viewer.ws = None;
    wait_until("the viewer is gone", || (metric(&world, "bowline_attachments") == 0.0).then_some(()));
    viewer.dial(Duration::from_secs(30)).unwrap();
    viewer.until("the viewer is attached again", |viewer| viewer.verdicts.len() == 2);
    check_problem(&world.call("GET", "/v1/sessions/missing", &Value::Null), 404, "unknown_session");
    wait_until("one session has ended", || {
        let info = world.call("GET", &format!("/v1/sessions/{ended}"), &Value::Null).json();
        (info["state"] == "exited").then_some(())
    });
    for (series, value) in [
        (r#"bowline_sessions{state="running"}"#, 1.0),
        (r#"bowline_sessions{state="exited"}"#, 1.0),
        (r#"bowline_sessions{state="lost"}"#, 0.0),
        (r#"bowline_verdicts_total{verdict="snapshot",reason="fresh"}"#, 1.0),
        (r#"bowline_verdicts_total{verdict="exact",reason="none"}"#, 1.0),
        (r#"bowline_refusals_total{code="unknown_session"}"#, 1.0),
        ("bowline_resume_seconds_count", 2.0),
        (r#"bowline_resume_seconds_bucket{le="+Inf"}"#, 2.0),
        ("bowline_attachments", 1.0),
    ] {
        assert_eq!(metric(&world, series), value, "{series}");
    }
    assert!(metric(&world, "bowline_output_bytes_total") >= viewer.received as f64);
}

#[test]
fn r48_metrics_need_a_token_unless_configured_otherwise() {
    let world = World::new();
    let get_metrics = |world: &World| http::request(world.address, "GET", "/metrics", &[], b"").unwrap();
    check_problem(&get_metrics(&world), 401, "not_authenticated");
    let reader = world.new_token("reader", "read");
    let read = world.call_as(&reader, "GET", "/metrics", &Value::Null);
    assert_eq!((read.status, read.header("content-type")), (200, Some("text/plain; version=0.0.4")));
    let open = World::with(&[], "[gateway]\nopen_metrics = true\n");
    assert_eq!(get_metrics(&open).status, 200);
}
