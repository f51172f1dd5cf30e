//! Followers of one session, each over as many connections as it takes.

use std::sync::{Arc, Condvar, Mutex};

use bowline_client::follow::{FollowEvent, Follower};
use bowline_client::transport::Dialer;
use bowline_proto::backoff::Backoff;
use bowline_proto::message::{Cursor, Verdict};
use serde_json::{Value, json};

use super::super::super::faults::Random;
use super::super::super::ws::{self, Handshake};
use super::super::stream::{Received, Socket, Sse};
use super::{Journey, THE_END};

/// Whether the gateway runs. Who lost a connection waits for it.
#[derive(Clone, Default)]
pub(super) struct GatewayState(Arc<(Mutex<bool>, Condvar)>);

impl GatewayState {
    pub(super) fn set(&self, is_up: bool) {
        *self.0.0.lock().unwrap() = is_up;
        self.0.1.notify_all();
    }

    fn wait_until_up(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |is_up| !*is_up).unwrap());
    }
}

/// Recognises the end of the last run.
#[derive(Default)]
struct LastRun(Option<Value>);

impl LastRun {
    /// Takes an event. Returns whether it is the last.
    fn is_over(&mut self, event: &Value) -> bool {
        if event["command"] == THE_END {
            self.0 = Some(event["run"].clone());
        }
        event["type"] == "complete" && self.0.as_ref() == Some(&event["run"])
    }
}

/// Follows by SSE, as a plain EventSource does.
pub(super) fn by_sse(journey: &Journey) -> Vec<Value> {
    let query = format!("watch={}@{}:0", journey.session, journey.epoch);
    let (mut received, mut last_event, mut last_run) = (Received::default(), None::<String>, LastRun::default());
    loop {
        journey.gateway.wait_until_up();
        let stream = Sse::try_open(journey.network, &journey.token, &query, last_event.as_deref());
        let Some(mut sse) = stream else { continue };
        while let Some((message, cursor)) = sse.next() {
            last_event = cursor.or(last_event);
            if received.take(&message).is_some_and(|record| last_run.is_over(&record["event"])) {
                return received.of(&journey.session).to_vec();
            }
        }
    }
}

/// Follows by the WebSocket of the event stream.
pub(super) fn by_websocket(journey: &Journey) -> Vec<Value> {
    let (mut received, mut last_run, mut next) = (Received::default(), LastRun::default(), 0);
    let bearer = format!("Bearer {}", journey.token);
    loop {
        journey.gateway.wait_until_up();
        let path = format!("/v1/events?watch={}@{}:{next}", journey.session, journey.epoch);
        let Ok(Handshake::Open(socket)) = ws::open(journey.network, &path, &[("Authorization", &bearer)]) else {
            continue;
        };
        let mut socket = Socket::new(socket);
        while let Some(message) = socket.next().filter(|message| message["type"] != "closed") {
            let Some(record) = received.take(&message) else { continue };
            next = record["seq"].as_u64().unwrap() + 1;
            if last_run.is_over(&record["event"]) {
                return received.of(&journey.session).to_vec();
            }
        }
    }
}

/// Follows by attaching, with the client of the command line. It resumes by itself; now and then, it is replaced by another
/// that begins at its cursor, as after the end of a process.
pub(super) fn by_attach(
    journey: &Journey,
    mut dial: impl FnMut() -> Box<dyn Dialer>,
    mut random: Random,
    mut each: impl FnMut(&Value),
) -> Vec<Value> {
    let backoff = Backoff { tries: None, ..journey.backoff };
    let (mut records, mut last_run, mut next) = (Vec::new(), LastRun::default(), 0);
    loop {
        let cursor = Cursor { epoch: journey.epoch.parse().unwrap(), offset: next };
        let mut follower = Follower::new(dial(), Some(cursor), backoff).unwrap();
        let mut left = 1 + random.below(60);
        while left > 0 {
            match follower.wait_for_event().unwrap().expect("the session goes on") {
                FollowEvent::Event(record) => {
                    assert_eq!(record.first(), next, "a number was skipped or repeated");
                    (next, left) = (record.seq + 1, left - 1);
                    let record = json!(record);
                    each(&record["event"]);
                    let is_over = last_run.is_over(&record["event"]);
                    records.push(record);
                    if is_over {
                        return records;
                    }
                }
                FollowEvent::Attached(attached) => assert_eq!(attached.verdict, Verdict::Exact),
                FollowEvent::Status(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}
