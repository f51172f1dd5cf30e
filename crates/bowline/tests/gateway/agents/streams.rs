//! Following agent sessions: over SSE, a WebSocket and an attach, with nothing lost and nothing repeated.

use serde_json::{Value, json};

use rustix::process::Signal;

use super::super::faults::Random;
use super::super::gateway::signal;
use super::stream::{Received, Socket, Sse, read_until};
use super::{assert_each_run_ends_once, assert_same_events, until, world, world_with};

fn is_end_of(run: &str) -> impl Fn(&Value) -> bool {
    move |event| event["type"] == "complete" && event["run"] == run
}

#[test]
fn r39_sse_and_websocket_carry_the_same_events() {
    let world = world();
    let id = world.agent();
    let epoch = world.describe(&id)["epoch"].as_str().unwrap().to_owned();
    let query = format!("watch={id}@{epoch}:0");
    let mut sse = Sse::open(&world, &query, None);
    let mut socket = Socket::open(&world, &format!("/v1/events?{query}"));
    let run = world.prompt(&id, "a", &["think hm", "say Hello", "tool make", "chunks 50 3"]);
    let (mut by_sse, mut by_socket) = (Received::default(), Received::default());
    read_until(|| Some(sse.next()?.0), &mut by_sse, "the run ends", is_end_of(&run));
    read_until(|| socket.next(), &mut by_socket, "the run ends", is_end_of(&run));
    assert_eq!(by_sse.of(&id), world.journal(&id), "exactly what the journal has");
    assert_eq!(by_socket.of(&id), by_sse.of(&id));
    assert_eq!(by_sse.watched, by_socket.watched);
    let watched = json!({"type": "watched", "session": id, "epoch": epoch, "seq": 0, "verdict": "exact"});
    assert_eq!(by_sse.watched, [watched]);
}

/// Every event has the whole cursor, so a plain EventSource resumes after any of them, through a killed gateway, too.
#[test]
fn r40_a_stream_that_is_cut_after_any_event_resumes_at_the_next() {
    let mut world = world();
    let id = world.agent();
    world.run_prompt(&id, "a", &["say one", "tool two", "say three", "plan a|b"]);
    let other = world.agent();
    world.run_prompt(&other, "a", &["say other"]);
    let whole = (world.journal(&id), world.journal(&other));
    let epochs = [&id, &other].map(|id| world.describe(id)["epoch"].as_str().unwrap().to_owned());
    let first = format!("watch={id}@{}:0,{other}@{}:0", epochs[0], epochs[1]);
    let (mut received, mut last_event, mut cuts) = (Received::default(), None::<String>, 0);
    while received.of(&id).len() < whole.0.len() || received.of(&other).len() < whole.1.len() {
        let mut sse = Sse::open(&world, &first, last_event.as_deref());
        loop {
            let (message, cursor) = sse.next().expect("a message");
            assert!(cursor.is_some(), "every message has the cursor: {message}");
            last_event = cursor;
            if received.take(&message).is_some() {
                break; // cut after each event
            }
        }
        cuts += 1;
        if cuts == 5 {
            world.kill_gateway();
            world.start_gateway();
        }
    }
    assert_eq!((received.of(&id), received.of(&other)), (&whole.0[..], &whole.1[..]));
    assert!(cuts >= whole.0.len());
}

/// One stream over all lives of a session: ended, restarted, killed, restarted.
#[test]
fn r40_a_stream_goes_on_over_the_lives_of_a_session() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    let epoch = world.describe(&id)["epoch"].as_str().unwrap().to_owned();
    let mut socket = Socket::open(&world, &format!("/v1/events?watch={id}@{epoch}:0"));
    let mut received = Received::default();
    let restart = || assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    world.run_prompt(&id, "a", &["say one"]);
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    read_until(|| socket.next(), &mut received, "the session has ended", |event| event["type"] == "exit");
    restart();
    let run = world.prompt(&id, "b", &["say two"]);
    read_until(|| socket.next(), &mut received, "the second run ends", is_end_of(&run));
    let reached = world.file("reached");
    let run =
        world.prompt(&id, "c", &["say three", &format!("touch {reached}"), &format!("wait {}", world.file("never"))]);
    until("the run is in the agent", || std::path::Path::new(&reached).exists());
    signal(world.session_pid(&id), Signal::KILL);
    until("the session is lost", || world.describe(&id)["state"] == "lost");
    restart();
    read_until(|| socket.next(), &mut received, "the third run was interrupted", is_end_of(&run));
    let run = world.prompt(&id, "d", &["say four"]);
    read_until(|| socket.next(), &mut received, "the fourth run ends", is_end_of(&run));
    assert_eq!(received.of(&id), world.journal(&id));
    assert_eq!(received.watched.len(), 1, "{:?}", received.watched);
    assert_each_run_ends_once(received.of(&id));
    // An older epoch's cursor is good up to where that epoch ended.
    let mut again = Sse::open(&world, &format!("watch={id}@{epoch}:3"), None);
    let mut rest = Received::default();
    read_until(|| Some(again.next()?.0), &mut rest, "the fourth run ends", is_end_of(&run));
    assert_eq!(rest.of(&id), &world.journal(&id)[3..]);
}

#[test]
fn r46_sessions_are_watched_and_unwatched_at_any_time() {
    let world = world();
    let [first, second] = [world.agent(), world.agent()];
    let terminal = world.shell("cat");
    let mut socket = Socket::open(&world, &format!("/v1/events?watch={terminal}"));
    socket.until("board");
    let epoch = world.describe(&first)["epoch"].clone();
    socket.send(
        &json!({"type": "watch", "sessions": [{"id": first, "cursor": {"epoch": epoch, "offset": 0}}, {"id": second}]}),
    );
    let mut received = Received::default();
    while received.watched.len() < 2 {
        received.take(&socket.next().unwrap());
    }
    let mut watched = received.watched.clone();
    watched.sort_by_key(|message| message["session"] != json!(first));
    assert_eq!((&watched[0]["verdict"], &watched[0]["seq"]), (&json!("exact"), &json!(0)));
    assert_eq!((&watched[1]["verdict"], &watched[1]["reason"]), (&json!("snapshot"), &json!("fresh")), "from now on");
    let run = world.run_prompt(&first, "a", &["say hi"])["run"].clone();
    read_until(|| socket.next(), &mut received, "the run ends", is_end_of(run.as_str().unwrap()));
    socket.send(&json!({"type": "unwatch", "sessions": [first]}));
    socket.send(&json!({"type": "ping", "n": 7}));
    socket.until("pong");
    world.run_prompt(&first, "b", &["say unseen"]);
    let run = world.run_prompt(&second, "a", &["say seen"])["run"].clone();
    read_until(
        || socket.next(),
        &mut received,
        "the other run ends",
        |event| event["run"] == run && event["type"] == "complete",
    );
    let texts = |id: &str| received.of(id).iter().filter(|record| record["event"]["type"] == "text").count();
    assert_eq!((texts(&first), texts(&second)), (1, 1));
    let many: Vec<Value> = (0..64).map(|n| json!({"id": format!("{n:0>12}")})).collect();
    socket.send(&json!({"type": "watch", "sessions": many}));
    assert_eq!(socket.until("error")["code"], "too_many");
}

#[test]
fn r46_nothing_of_an_unwatched_session_follows_the_pong_of_a_later_ping() {
    let world = world();
    let id = world.agent();
    world.run_prompt(&id, "a", &["flood 4000000"]);
    let cursor = json!({"epoch": world.describe(&id)["epoch"], "offset": 0});
    let mut socket = Socket::open(&world, "/v1/events");
    socket.until("board");
    for n in 0..20 {
        socket.send(&json!({"type": "watch", "sessions": [{"id": id, "cursor": cursor}]}));
        let answer = loop {
            let message = socket.next().unwrap();
            if ["watched", "event"].contains(&message["type"].as_str().unwrap()) {
                break message;
            }
        };
        assert_eq!((&answer["type"], &answer["seq"]), (&json!("watched"), &json!(0)), "watch {n}");
        socket.until("event");
        socket.send(&json!({"type": "unwatch", "sessions": [id]}));
        socket.send(&json!({"type": "ping", "n": n}));
        assert_eq!(socket.until("pong")["n"], n);
    }
}

#[test]
fn r40_an_attach_answers_every_cursor_with_a_verdict() {
    let world = world();
    let id = world.agent();
    world.run_prompt(&id, "a", &["say hi"]);
    let journal = world.journal(&id);
    let (epoch, end) = (world.describe(&id)["epoch"].clone(), journal.len());
    let cursor = |offset: usize| json!({"epoch": epoch, "offset": offset});
    for (cursor, verdict, reason, offset) in [
        (cursor(0), "exact", Value::Null, 0),
        (cursor(3), "exact", Value::Null, 3),
        (cursor(end), "exact", Value::Null, end),
        (cursor(end + 1), "snapshot", json!("ahead"), end),
        (json!({"epoch": "00000000", "offset": 0}), "snapshot", json!("epoch"), end),
        (Value::Null, "snapshot", json!("fresh"), end),
    ] {
        let mut socket = Socket::attach(&world, &id, &cursor);
        let attached = socket.next().unwrap();
        let answer = (&attached["verdict"], &attached["reason"], &attached["offset"]);
        assert_eq!(answer, (&json!(verdict), &reason, &json!(offset)), "{cursor}");
        assert_eq!((&attached["epoch"], &attached["session"]["agent"]), (&epoch, &json!("fake")));
        assert_eq!(attached["session"]["offset"], json!(end), "the description is true at the end");
        for record in &journal[offset..] {
            let event = socket.next().unwrap();
            assert_eq!(
                (&event["type"], &event["seq"], &event["event"]),
                (&json!("event"), &record["seq"], &record["event"])
            );
        }
    }
    // A command over the attach, and then the end of the session.
    let mut socket = Socket::attach(&world, &id, &cursor(end));
    socket.until("attached");
    let command = json!({"type": "prompt", "text": "say over attach"});
    socket.send(&json!({"type": "command", "id": "b", "command": command}));
    let accepted = socket.until("accepted");
    assert_eq!((&accepted["id"], &accepted["run"], &accepted["duplicate"]), (&json!("b"), &json!("r1"), &json!(false)));
    assert_eq!(world.command(&id, "b", &command).status, 200, "the same command by POST is a duplicate");
    world.complete(&id, "r1");
    let by = world.events_of(&id, "prompt").into_iter().map(|mut event| event["by"].take()).collect::<Vec<_>>();
    assert_eq!(by, ["test", "test"], "the name of the token");
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    assert_eq!(socket.until("exit")["offset"], json!(world.journal(&id).len()));
    assert_eq!(socket.next().unwrap()["code"], 1000);
    // From the files.
    let mut archive = Socket::attach(&world, &id, &cursor(0));
    assert_eq!(archive.until("attached")["session"]["state"], "exited");
    let events = std::iter::from_fn(|| archive.next().filter(|message| message["type"] == "event")).count();
    assert_eq!(events, world.journal(&id).len());
}

/// A client that reads nothing does not hold up the agent or another client, and misses nothing.
#[test]
fn r46_a_client_that_does_not_read_delays_no_other_and_misses_nothing() {
    let world = world();
    let id = world.agent();
    let epoch = world.describe(&id)["epoch"].as_str().unwrap().to_owned();
    let query = format!("watch={id}@{epoch}:0");
    let mut slow = Sse::open(&world, &query, None);
    let mut quick = Sse::open(&world, &query, None);
    let run = world.prompt(&id, "a", &["flood 8000000"]);
    let mut received = Received::default();
    read_until(|| Some(quick.next()?.0), &mut received, "the run ends", is_end_of(&run));
    assert_same_events(received.of(&id), &world.journal(&id));
    let mut late = Received::default();
    read_until(|| Some(slow.next()?.0), &mut late, "the run ends", is_end_of(&run));
    assert_same_events(late.of(&id), &world.journal(&id));
}

/// Six writers send prompts, each several times, while the gateway is killed and streams are cut. Each prompt is run
/// once, each writer's prompts in their order, and the follower gets each event once.
#[test]
fn r37_prompts_and_events_survive_a_bad_day() {
    let seed = std::env::var("BOWLINE_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    eprintln!("BOWLINE_CHAOS_SEED={seed}");
    let mut random = Random::new(seed);
    let mut world = world_with(&[("FAKE_AGENT_LOG", "received")]);
    let id = world.agent();
    let epoch = world.describe(&id)["epoch"].as_str().unwrap().to_owned();
    let query = format!("watch={id}@{epoch}:0");
    let (mut received, mut last_event) = (Received::default(), None::<String>);
    let prompts: Vec<(usize, usize)> = (0..6).flat_map(|writer| (0..4).map(move |n| (writer, n))).collect();
    let mut next = [0; 6];
    let mut sent = 0;
    while sent < prompts.len() {
        let writer = random.below(6) as usize;
        if next[writer] == 4 {
            continue;
        }
        let command = json!({"type": "prompt", "text": format!("say {writer}-{}\\n", next[writer])});
        let (session, command_id) = (id.clone(), format!("w{writer}-{}", next[writer]));
        let mut answers = Vec::new();
        for _ in 0..1 + random.below(3) {
            answers.push(world.command(&session, &command_id, &command));
            if random.below(8) == 0 {
                world.kill_gateway();
                world.start_gateway();
            }
        }
        let status = answers[0].status;
        assert!(matches!(status, 202 | 429), "{}", answers[0].text());
        assert!(answers[1..].iter().all(|again| matches!(again.status, 200 | 202 | 429)), "{answers:?}");
        if answers.iter().any(|answer| matches!(answer.status, 200 | 202)) {
            next[writer] += 1;
            sent += 1;
        }
        // Read a little, then cut.
        if random.below(3) == 0 {
            let mut sse = Sse::open(&world, &query, last_event.as_deref());
            for _ in 0..random.below(12) {
                let (message, cursor) = sse.next().unwrap();
                last_event = cursor.or(last_event);
                received.take(&message);
                if received.of(&id).len() as u64 == world.journal(&id).len() as u64 {
                    break; // nothing more may come
                }
            }
        }
    }
    let last = format!("r{}", prompts.len() - 1);
    world.complete(&id, &last);
    if !received.of(&id).iter().any(|record| is_end_of(&last)(&record["event"])) {
        let mut sse = Sse::open(&world, &query, last_event.as_deref());
        read_until(|| Some(sse.next()?.0), &mut received, "the last run ends", is_end_of(&last));
    }
    let journal = world.journal(&id);
    assert_same_events(received.of(&id), &journal);
    assert_each_run_ends_once(&journal);
    let log = std::fs::read_to_string(world.file("received")).unwrap();
    let said: String =
        world.events_of(&id, "text").iter().map(|event| event["delta"].as_str().unwrap().to_owned()).collect();
    for (writer, n) in prompts {
        assert_eq!(log.matches(&format!("say {writer}-{n}")).count(), 1, "sent to the agent once");
    }
    for writer in 0..6 {
        let order: Vec<&str> = said.lines().filter(|line| line.starts_with(&format!("{writer}-"))).collect();
        assert_eq!(order, (0..4).map(|n| format!("{writer}-{n}")).collect::<Vec<_>>());
    }
}
