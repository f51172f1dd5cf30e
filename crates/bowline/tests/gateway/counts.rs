//! What `/metrics` tells, and whom.

use std::time::Duration;

use serde_json::Value;

use super::gateway::{World, wait_until};
use super::http;
use super::refusals::check_problem;
use super::viewer::Viewer;

/// The number of a series, named as it is written; 0 where there is none.
pub(crate) fn counted(world: &World, series: &str) -> f64 {
    let all = world.call("GET", "/metrics", &Value::Null);
    assert_eq!(all.status, 200, "{}", all.text());
    let text = all.text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |number| number.parse().unwrap())
}

#[test]
fn r46_what_happens_is_counted() {
    let world = World::new();
    let id = world.shell("exec cat");
    let ended = world.shell("exit 3");
    let mut viewer = Viewer::new(world.address, &world.token, &id, 1);
    viewer.dial(Duration::from_secs(30)).unwrap();
    viewer.until("it is attached", |viewer| viewer.cursor.is_some());
    assert_eq!(counted(&world, "bowline_attachments"), 1.0);
    viewer.type_in("again\n");
    viewer.until_output("again\r\nagain\r\n");
    viewer.ws = None;
    wait_until("it is gone", || (counted(&world, "bowline_attachments") == 0.0).then_some(()));
    viewer.dial(Duration::from_secs(30)).unwrap();
    viewer.until("it is back", |viewer| viewer.verdicts.len() == 2);
    check_problem(&world.call("GET", "/v1/sessions/nobody", &Value::Null), 404, "unknown_session");
    wait_until("one has ended", || {
        let info = world.call("GET", &format!("/v1/sessions/{ended}"), &Value::Null).json();
        (info["state"] == "exited").then_some(())
    });
    for (series, number) in [
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
        assert_eq!(counted(&world, series), number, "{series}");
    }
    assert!(counted(&world, "bowline_output_bytes_total") >= viewer.received as f64);
}

#[test]
fn r48_strangers_count_nothing_unless_it_is_so_configured() {
    let world = World::new();
    let ask = |world: &World| http::request(world.address, "GET", "/metrics", &[], b"").unwrap();
    check_problem(&ask(&world), 401, "not_authenticated");
    let reader = world.new_token("reader", "read");
    let read = world.call_as(&reader, "GET", "/metrics", &Value::Null);
    assert_eq!((read.status, read.header("content-type")), (200, Some("text/plain; version=0.0.4")));
    let open = World::with(&[], "[gateway]\nopen_metrics = true\n");
    assert_eq!(ask(&open).status, 200);
}
