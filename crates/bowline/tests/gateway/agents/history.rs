//! Pages of history over HTTP: the whole journal, whatever happens to the session.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::gateway::{World, signal};
use super::stream::{Received, Socket, read_until};
use super::{assert_same_events, joined, until, world, world_with};

impl World {
    #[track_caller]
    fn page(&self, session: &str, query: &str) -> Value {
        let answer = self.call("GET", &format!("/v1/sessions/{session}/events?{query}"), &Value::Null);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// The whole history, read from its end in pages.
    #[track_caller]
    pub(super) fn history(&self, session: &str, limit: usize) -> Vec<Value> {
        let mut page = self.page(session, &format!("limit={limit}"));
        let mut events = page["events"].as_array().unwrap().clone();
        while page["more"] == true {
            let start = page["start"].clone();
            page = self.page(session, &format!("limit={limit}&before={start}"));
            assert_eq!(page["next"], start);
            events.splice(0..0, page["events"].as_array().unwrap().iter().cloned());
        }
        events
    }
}

#[test]
fn r40_the_history_is_the_journal_in_every_state_of_a_session() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    world.run_prompt(&id, "a", &["chunks 300 5", "tool ls", "say one", "plan x|y"]);
    world.run_prompt(&id, "b", &["think hm", "say two"]);
    let check = |what: &str| {
        for limit in [1, 7, 1000] {
            assert_eq!(joined(&world.history(&id, limit)), joined(&world.journal(&id)), "{what}, {limit} at a time");
        }
    };
    check("running");
    let page = world.page(&id, "");
    let info = world.describe(&id);
    assert_eq!((&page["epoch"], &page["next"]), (&info["epoch"], &info["offset"]));
    assert_eq!((&page["state"]["activity"], &page["state"]["approvals"]), (&Value::Null, &json!([])));

    let started = world.events_of(&id, "started");
    signal(started[0]["pid"].as_u64().unwrap() as u32, Signal::KILL);
    until("the session is lost", || world.describe(&id)["state"] == "lost");
    check("lost");
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    // At the end of a run, the agent has said everything.
    world.run_prompt(&id, "c", &["say three"]);
    check("restarted");
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    check("ended");
    assert_eq!(world.page(&id, "")["state"]["exit"], world.describe(&id)["exit"]);
}

/// A client reads the last page, and goes on with the cursor that the page has. Nothing is missed or repeated in between.
#[test]
fn r40_a_stream_goes_on_where_the_last_page_ends() {
    let world = world();
    let id = world.agent();
    let go = world.file("go");
    let run = world.prompt(&id, "a", &["chunks 200 3", "tool-start t1 make", &format!("wait {go}"), "say after"]);
    until("the tool runs", || world.page(&id, "limit=1")["state"]["activity"]["text"] == "make");
    let page = world.page(&id, "limit=1000");
    assert_eq!(page["state"]["tools"], json!([{"call": "t1", "title": "make"}]));
    assert_eq!(page["state"]["runs"][0]["run"], json!(run));
    let cursor = json!({"epoch": page["epoch"], "offset": page["next"]});
    let mut socket = Socket::attach(&world, &id, &cursor);
    let attached = socket.until("attached");
    assert_eq!((&attached["verdict"], &attached["offset"]), (&json!("exact"), &page["next"]));
    std::fs::write(go, "").unwrap();
    let mut events = page["events"].as_array().unwrap().clone();
    loop {
        let record = socket.until("event");
        events.push(record.clone());
        if record["event"]["type"] == "complete" {
            break;
        }
    }
    assert_same_events(&events, &world.journal(&id));
}

/// One that comes back after a long time gets long texts in few events, each number once.
#[test]
fn r40_a_viewer_that_comes_back_late_gets_fewer_events() {
    let world = world();
    let id = world.agent();
    // The agent does something after each word, so that most of them are events of their own.
    let touch = format!("touch {}", world.file("file"));
    let lines: Vec<&str> = (0..400).flat_map(|_| ["say word", &touch]).collect();
    world.run_prompt(&id, "a", &lines);
    let journal = world.journal(&id);
    let epoch = world.describe(&id)["epoch"].as_str().unwrap().to_owned();
    let mut socket = Socket::open(&world, &format!("/v1/events?watch={id}@{epoch}:0"));
    let mut received = Received::default();
    read_until(|| socket.next(), &mut received, "the run ends", |event| event["type"] == "complete");
    assert_same_events(received.of(&id), &journal);
    // All but the last 63 events come in as few as possible.
    let (received, fewest) = (received.of(&id).len(), joined(&journal).len());
    assert!(received <= fewest + 64, "{received} events, of {} in the journal", journal.len());
}

#[test]
fn r40_a_bad_page_is_refused() {
    let world = world();
    let id = world.agent();
    let refused = |path: &str| {
        let answer = world.call("GET", path, &Value::Null);
        (answer.status, answer.code().to_owned())
    };
    for query in ["limit=0", "limit=-1", "before=x", "after=1.5", "after=18446744073709551616"] {
        assert_eq!(refused(&format!("/v1/sessions/{id}/events?{query}")), (400, "bad_request".into()), "{query}");
    }
    assert_eq!(refused("/v1/sessions/nosuchname/events"), (404, "unknown_session".into()));
    let end = world.page(&id, "")["next"].as_u64().unwrap();
    let past = world.page(&id, &format!("after={}", end + 100));
    assert_eq!((&past["events"], &past["more"]), (&json!([]), &json!(false)));
    let terminal = world.call("POST", "/v1/sessions", &json!({"kind": "terminal", "argv": ["cat"]}));
    let terminal = terminal.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(refused(&format!("/v1/sessions/{terminal}/events")), (400, "bad_request".into()));
}
