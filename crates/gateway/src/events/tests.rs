//! Tests watched sessions with fake session processes, which can hang, be cut, die and start again on demand.

use axum::body::Body;
use bowline_host::home::Home;
use bowline_proto::agent::event::AgentEvent;
use bowline_proto::board::BoardMessage;
use bowline_proto::message::{Cursor, Reason, Verdict};
use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::fake_agent::{FakeAgent, cursor, epoch, in_time};
use super::follows::MAX_WATCHED;
use super::*;
use crate::testing;

struct World {
    _temp: TempDir,
    home: Home,
    app: App,
    caller: Caller,
    board: Subscription,
}

impl World {
    fn new() -> World {
        let temp = tempfile::Builder::new().prefix("bwl").tempdir_in("/tmp").unwrap();
        let app = testing::app(temp.path(), |_| {});
        let home = testing::home(temp.path());
        home.ensure().unwrap();
        let token = app.auth.create_token("phone", TokenScope::Read, None).unwrap();
        let caller = app.auth.bearer(token.token.reveal()).unwrap();
        World { _temp: temp, home, board: app.board.subscribe(), app, caller }
    }

    fn follows(&self) -> Follows {
        let (app, caller) = (self.app.clone(), self.caller.clone());
        Follows::new(FollowContext { app, caller, board: self.board.shown() })
    }

    /// Watches one session.
    fn watch(&self, n: u8, cursor: Option<Cursor>) -> Watcher {
        let mut follows = self.follows();
        follows.watch([(FakeAgent::id(n), cursor)]).unwrap();
        Watcher::new(follows)
    }

    fn started(&self, n: u8) -> FakeAgent {
        let mut agent = FakeAgent::new(&self.home, n);
        agent.start(1);
        agent
    }
}

/// Reads all messages of a stream's watched sessions as they come.
struct Watcher(mpsc::UnboundedReceiver<(SessionId, Update)>);

impl Watcher {
    fn new(mut follows: Follows) -> Watcher {
        let (sender, messages) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            loop {
                let (session, updates) = tokio::select! {
                    updates = follows.next() => updates,
                    () = sender.closed() => return,
                };
                updates.into_iter().for_each(|update| drop(sender.send((session.clone(), update))));
            }
        });
        Watcher(messages)
    }

    async fn next(&mut self) -> (BoardMessage, Cursor) {
        let (session, update) = in_time(self.0.recv()).await.unwrap();
        let message = parse(&update.message);
        match &message {
            BoardMessage::Watched { session: named, .. } | BoardMessage::Event { session: named, .. } => {
                assert_eq!(*named, session);
            }
            _ => panic!("unexpected message {message:?}"),
        }
        (message, update.cursor)
    }

    async fn watched(&mut self) -> (Cursor, Verdict, Option<Reason>) {
        match self.next().await {
            (BoardMessage::Watched { epoch, seq, verdict, reason, .. }, after) => {
                assert_eq!(after, Cursor { epoch, offset: seq });
                (after, verdict, reason)
            }
            other => panic!("unexpected message {other:?}"),
        }
    }

    /// Reads events that stand for exactly these numbers. Returns the cursor after them.
    async fn events(&mut self, mut next: u64, end: u64) -> Cursor {
        loop {
            match self.next().await {
                (BoardMessage::Event { seq, from, .. }, after) => {
                    assert_eq!((from.unwrap_or(seq), after.offset), (next, seq + 1));
                    next = seq + 1;
                    if next >= end {
                        assert_eq!(next, end);
                        return after;
                    }
                }
                other => panic!("unexpected message {other:?}"),
            }
        }
    }
}

fn parse(message: &EncodedMessage) -> BoardMessage {
    serde_json::from_slice(&message.json()).unwrap()
}

#[tokio::test]
async fn every_event_comes_once_and_in_order_over_cuts_deaths_and_restarts() {
    let world = World::new();
    let mut agent = world.started(1);
    agent.record_until(10);
    let mut watcher = world.watch(1, Some(cursor(1, 0)));

    let mut follower = agent.attach(1, 0, None).await;
    assert!(follower.hello.observe && follower.hello.cursor == Some(cursor(1, 0)));
    let grant = follower.hello.grant.clone().unwrap();
    assert_eq!((grant.write, grant.caller.as_deref()), (false, Some(world.caller.id())));
    let client = follower.hello.client.clone();
    assert_eq!(watcher.watched().await, (cursor(1, 0), Verdict::Exact, None));
    follower.event(0, 0, &json!({ "type": "started", "epoch": epoch(1) })).await;
    follower.event(1, 3, &json!({ "type": "text" })).await;
    assert_eq!(watcher.events(0, 4).await, cursor(1, 4));

    // Cut in the middle of a frame.
    follower.event(4, 4, &json!({ "type": "text" })).await;
    tokio::io::AsyncWriteExt::write_all(&mut follower.stream, b"\0\0\0\x50\0{\"type\":\"event\",\"seq\":5")
        .await
        .unwrap();
    drop(follower);
    let mut follower = agent.attach(1, 5, None).await;
    assert_eq!((follower.hello.cursor.clone(), &follower.hello.client), (Some(cursor(1, 5)), &client));
    assert_eq!(follower.hello.conn, 2);
    follower.notices(5..7).await;
    assert_eq!(watcher.events(4, 7).await, cursor(1, 7), "and no second `watched`");

    // Closed by a session that goes on.
    follower.close(1013).await;
    let mut follower = agent.attach(1, 7, None).await;
    follower.notices(7..8).await;

    // The process dies without having sent the last events, so they come from the file.
    agent.kill().await;
    drop(follower);
    assert_eq!(watcher.events(7, 10).await, cursor(1, 10));

    // The next life continues, and exits.
    agent.start(2);
    let mut follower = agent.attach(2, 10, None).await;
    assert_eq!(follower.hello.cursor, Some(cursor(1, 10)), "of the earlier epoch");
    follower.event(10, 10, &json!({ "type": "started", "epoch": epoch(2) })).await;
    agent.record(AgentEvent::Exit { code: Some(0), signal: None });
    follower.event(11, 11, &json!({ "type": "exit", "code": 0 })).await;
    follower.send(r#"{"type":"exit","code":0,"signal":null,"offset":12}"#).await;
    follower.close(1000).await;
    assert_eq!(watcher.events(10, 12).await, cursor(2, 12));
    agent.kill().await;
    drop(follower);

    // A life that ended before it was noticed is read from the file, whose latest epoch is another one.
    agent.start(3);
    agent.record_until(20);
    agent.kill().await;
    assert_eq!(watcher.events(12, 20).await, cursor(3, 20));
    agent.start(4);
    let mut follower = agent.attach(4, 20, None).await;
    follower.event(20, 20, &json!({ "type": "started", "epoch": epoch(4) })).await;
    // A repair while it runs.
    follower.event(21, 21, &json!({ "type": "repaired", "epoch": epoch(5) })).await;
    assert_eq!(watcher.events(20, 22).await, cursor(5, 22));
}

#[tokio::test]
async fn a_cursor_that_is_of_no_use_any_more_is_reported_again() {
    let world = World::new();
    let mut agent = world.started(1);
    let mut watcher = world.watch(1, None);
    let mut follower = agent.attach(1, 1, Some("fresh")).await;
    assert_eq!(follower.hello.cursor, None);
    assert_eq!(watcher.watched().await, (cursor(1, 1), Verdict::Snapshot, Some(Reason::Fresh)));
    follower.notices(1..5).await;
    watcher.events(1, 5).await;
    drop(follower);
    let mut follower = agent.attach(2, 3, Some("ahead")).await;
    assert_eq!(follower.hello.cursor, Some(cursor(1, 5)));
    assert_eq!(watcher.watched().await, (cursor(2, 3), Verdict::Snapshot, Some(Reason::Ahead)));
    follower.notices(3..4).await;
    assert_eq!(watcher.events(3, 4).await, cursor(2, 4));
}

#[tokio::test]
async fn events_that_are_repeated_or_missing_are_never_passed_on() {
    let world = World::new();
    let mut agent = world.started(1);
    let mut watcher = world.watch(1, Some(cursor(1, 3)));
    let mut follower = agent.attach(1, 3, None).await;
    watcher.watched().await;
    follower.notices(3..5).await;
    for (first, seq) in [(4, 4), (6, 6), (4, 6), (5, 4)] {
        follower.event(first, seq, &json!({ "type": "notice" })).await;
        follower = agent.attach(1, 5, None).await;
        assert_eq!(follower.hello.cursor, Some(cursor(1, 5)));
    }
    follower.notices(5..6).await;
    watcher.events(3, 6).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cuts_every_connection_is_tried_ever_more_slowly_until_it_sends_something() {
    let world = World::new();
    let mut agent = world.started(1);
    let mut watcher = world.watch(1, None);
    let mut waits = Vec::new();
    let mut last = None;
    for _ in 0..11 {
        drop(agent.accept().await);
        let now = tokio::time::Instant::now();
        waits.extend(last.replace(now).map(|last| (now - last).as_millis()));
    }
    let expected = [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000];
    assert!(waits.iter().zip(expected).all(|(wait, least)| (least..least + 100).contains(wait)), "{waits:?}");
    drop(agent.attach(1, 1, Some("fresh")).await);
    watcher.watched().await;
    let cut = tokio::time::Instant::now();
    drop(agent.accept().await);
    assert!(cut.elapsed().as_millis() < 100);
}

#[tokio::test]
async fn an_ended_session_is_read_from_its_files_and_again_when_they_grow() {
    let world = World::new();
    let mut agent = world.started(1);
    agent.record_until(2000);
    agent.kill().await;
    let mut watcher = world.watch(1, Some(cursor(1, 1)));
    assert_eq!(watcher.watched().await, (cursor(1, 1), Verdict::Exact, None));
    assert_eq!(watcher.events(1, 2000).await, cursor(1, 2000));

    // A repair of a lost session appends to its journal. Its lock and `meta.json` tell the board.
    agent.record_until(2003);
    agent.touch();
    assert_eq!(watcher.events(2000, 2003).await, cursor(1, 2003));
}

#[tokio::test]
async fn an_unknown_session_adds_nothing_until_it_exists() {
    let world = World::new();
    let mut watcher = world.watch(1, None);
    let mut agent = world.started(1);
    let mut follower = agent.attach(1, 1, Some("fresh")).await;
    assert_eq!(watcher.watched().await.0, cursor(1, 1));
    follower.notices(1..3).await;
    watcher.events(1, 3).await;
    // Forgotten: the follow waits in silence.
    agent.forget().await;
    drop(follower);
    let mut agent = world.started(1);
    let mut follower = agent.attach(1, 1, Some("ahead")).await;
    assert_eq!(watcher.watched().await, (cursor(1, 1), Verdict::Snapshot, Some(Reason::Ahead)));
    follower.notices(1..2).await;
    watcher.events(1, 2).await;
}

#[tokio::test]
async fn a_session_that_hangs_delays_neither_others_nor_the_board() {
    let world = World::new();
    let (mut hung, mut agent) = (world.started(1), world.started(2));
    let mut follows = world.follows();
    follows.watch([(FakeAgent::id(1), None), (FakeAgent::id(2), None)]).unwrap();
    let mut watcher = Watcher::new(follows);
    let _silent = hung.accept().await;
    let mut follower = agent.attach(1, 1, Some("fresh")).await;
    follower.notices(1..4).await;
    watcher.watched().await;
    watcher.events(1, 4).await;
    // It is alive, and a ping is answered.
    follower.send(r#"{"type":"ping","n":7}"#).await;
    assert_eq!(follower.receive().await, json!({ "type": "pong", "n": 7 }));
}

#[tokio::test]
async fn nothing_is_read_from_a_session_while_the_client_accepts_nothing() {
    let world = World::new();
    let mut agent = world.started(1);
    let mut follows = world.follows();
    follows.watch([(FakeAgent::id(1), None)]).unwrap();
    let (mut follower, (_, first)) =
        in_time(async { tokio::join!(agent.attach(1, 1, Some("fresh")), follows.next()) }).await;
    assert_eq!(first.len(), 1);
    let mut next = 1;
    // Fills the socket, and with it everything that could hold events.
    while follower.notices(next..next + 1).now_or_never().is_some() {
        next += 1;
        assert!(next < 1_000_000, "something reads without a limit");
    }
    drop(follower);
    let (mut expected, mut batches) = (1, 0);
    while expected < next {
        let (_, updates) = in_time(follows.next()).await;
        batches += 1;
        for update in updates {
            expected += 1;
            assert_eq!(update.cursor, cursor(1, expected));
        }
    }
    assert!(batches * 10 < next, "{next} events in {batches} batches");
}

#[tokio::test]
async fn sessions_are_watched_up_to_a_limit_and_unwatched_ones_send_nothing() {
    let world = World::new();
    let (mut one, mut two) = (world.started(1), world.started(2));
    let mut follows = world.follows();
    let unknown = (0..MAX_WATCHED).map(|n| format!("{n:0>12}").parse::<SessionId>().unwrap());
    let more: Vec<_> = unknown.map(|id| (id, None)).collect();
    follows.watch([(FakeAgent::id(1), None), (FakeAgent::id(2), None)]).unwrap();
    assert_eq!(follows.watch(more.clone()), Err(follows::TooManyWatched));
    follows.watch(more[2..].to_vec()).unwrap();
    assert_eq!(follows.watch([more[0].clone()]), Err(follows::TooManyWatched));
    follows.watch([more[5].clone()]).unwrap();
    follows.unwatch(&[more[2].0.clone()]);
    follows.watch([more[0].clone()]).unwrap();

    let (mut first, _) = tokio::join!(one.attach(1, 1, Some("fresh")), follows.next());
    let (mut second, _) = tokio::join!(two.attach(1, 1, Some("fresh")), follows.next());
    first.notices(1..4).await;
    // Watched again from another cursor, and then no more.
    follows.watch([(FakeAgent::id(1), Some(cursor(1, 0)))]).unwrap();
    let (mut again, updates) = in_time(async { tokio::join!(one.attach(1, 0, None), follows.next()) }).await;
    assert_eq!(again.hello.cursor, Some(cursor(1, 0)));
    assert!(matches!(parse(&updates.1[0].message), BoardMessage::Watched { seq: 0, verdict: Verdict::Exact, .. }));
    again.notices(0..3).await;
    follows.unwatch(&[FakeAgent::id(1)]);
    second.notices(1..2).await;
    let (session, updates) = in_time(follows.next()).await;
    assert_eq!((session, updates.len()), (FakeAgent::id(2), 1));
    assert!(follows.next().now_or_never().is_none() && !one.has_followers());
}

/// An SSE client that reads events with their ids.
struct SseClient {
    body: axum::body::BodyDataStream,
    received: String,
}

impl SseClient {
    async fn open(world: &World, query: &str, last_event: Option<&str>) -> SseClient {
        let mut request = http::Request::get(format!("/v1/events?{query}"));
        if let Some(id) = last_event {
            request = request.header("Last-Event-ID", id);
        }
        let parts = request.body(Body::empty()).unwrap().into_parts().0;
        let request = StreamRequest::for_sse(&parts);
        let subscriber = Subscriber::open(&world.app, world.caller.clone(), request).await.unwrap();
        SseClient { body: sse::respond(&world.app, subscriber).into_body().into_data_stream(), received: String::new() }
    }

    /// The id and the message of the next event.
    async fn next(&mut self) -> (Option<String>, BoardMessage) {
        loop {
            if let Some((event, rest)) = self.received.split_once("\n\n") {
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let (id, data) = (field("id: "), field("data: ").unwrap());
                self.received = rest.to_owned();
                return (id, serde_json::from_str(&data).unwrap());
            }
            let chunk = in_time(self.body.next()).await.unwrap().unwrap();
            self.received += std::str::from_utf8(&chunk).unwrap();
        }
    }

    /// The next id with a message of a watched session, and its number. Every other event has the id before it.
    async fn next_of_session(&mut self, id: &mut String) -> u64 {
        loop {
            match self.next().await {
                (next, BoardMessage::Watched { seq, .. } | BoardMessage::Event { seq, .. }) => {
                    *id = next.unwrap();
                    return seq;
                }
                (next, _) => assert_eq!(next.as_deref(), Some(id.as_str())),
            }
        }
    }
}

#[tokio::test]
async fn r46_every_sse_event_has_the_whole_cursor_and_it_resumes_the_stream() {
    let world = World::new();
    let (mut agent, other) = (world.started(1), "zzzzzzzzzzzz");
    let session = FakeAgent::id(1);
    let mut client = SseClient::open(&world, &format!("watch={session},{other}"), None).await;
    let at = |position: &str| {
        let mut items = [format!("{session}{position}"), other.to_owned()];
        items.sort();
        items.join(";")
    };
    let mut id = at("");
    let (mut follower, seq) = tokio::join!(agent.attach(1, 1, Some("fresh")), client.next_of_session(&mut id));
    assert_eq!((seq, &id), (1, &at(":00000001:1")));
    follower.notices(1..3).await;
    follower.event(3, 5, &json!({ "type": "text" })).await;
    for (seq, next) in [(1, 2), (2, 3), (5, 6)] {
        assert_eq!(client.next_of_session(&mut id).await, seq);
        assert_eq!(id, at(&format!(":00000001:{next}")));
    }
    drop(client);
    let mut client = SseClient::open(&world, "", Some(&id)).await;
    let before = id.clone();
    let (mut follower, seq): (_, _) = tokio::join!(agent.attach(2, 6, None), client.next_of_session(&mut id));
    assert_eq!(follower.hello.cursor, Some(cursor(1, 6)));
    assert_eq!((seq, &before, &id), (6, &at(":00000001:6"), &at(":00000002:6")));
    follower.event(6, 6, &json!({ "type": "started", "epoch": epoch(2) })).await;
    client.next_of_session(&mut id).await;
    assert_eq!(id, at(":00000002:7"));
}

#[tokio::test]
async fn r46_a_stream_that_watches_nothing_has_no_ids() {
    let world = World::new();
    let mut client = SseClient::open(&world, "", None).await;
    for _ in 0..2 {
        assert_eq!(client.next().await.0, None);
    }
}
