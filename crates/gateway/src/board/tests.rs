//! Tests the board with fake session processes, which can hang, stay silent or die on demand.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use bowline_host::events::Event;
use bowline_host::history::History;
use bowline_host::home::SessionDir;
use bowline_host::journal::Journal;
use bowline_host::lock::Lock;
use bowline_host::machine::{this_boot, this_host};
use bowline_host::meta::Meta;
use bowline_host::remove;
use bowline_host::timestamp::timestamp;
use bowline_proto::frame;
use bowline_proto::ids::Epoch;
use bowline_proto::session::{ExitStatus, Kind, TerminalInfo};
use bowline_proto::size::Size;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::testing;

/// No condition takes this long to become true.
const TIMEOUT: Duration = Duration::from_secs(30);

struct World {
    _temp: TempDir,
    home: Home,
    board: Board,
}

impl World {
    fn new() -> World {
        World::following(100)
    }

    /// A world whose board follows at most `max_followed` sessions.
    fn following(max_followed: usize) -> World {
        let temp = tempfile::Builder::new().prefix("bwl").tempdir_in("/tmp").unwrap();
        let home = testing::home(temp.path());
        home.ensure().unwrap();
        World { _temp: temp, board: Board::new(home.clone(), max_followed), home }
    }

    fn session(&self, n: u8) -> FakeSession {
        let dir = self.home.session(&SessionId::from_random([n; 12]));
        std::fs::create_dir(dir.path()).unwrap();
        let lock = Lock::take(&dir.lock()).unwrap();
        let listener = UnixListener::bind(dir.sock()).unwrap();
        let (journal, history) = History::open(&dir.events()).unwrap();
        let epoch = Epoch::from_random([0, 0, 0, n]);
        let size = Size::default();
        let version = "0.1.0".to_owned();
        let meta = serde_json::json!({
            "id": dir.id(), "name": format!("s{n}"), "kind": "terminal", "argv": ["sh"], "cwd": "/", "env": [],
            "size": size, "log_size": 1 << 20, "history": 0, "created": timestamp(), "host": this_host(), "boot": this_boot(),
        });
        let meta: Meta = serde_json::from_value(meta).unwrap();
        let mut session = FakeSession { dir, lock, listener: Some(listener), journal, history, meta };
        session.record(Event::Started { epoch, offset: 0, size: Some(size), pid: 1, version });
        session.meta.write(&session.dir.meta()).unwrap();
        session
    }
}

/// A session whose process is played by the test.
struct FakeSession {
    dir: SessionDir,
    lock: Option<Lock>,
    listener: Option<UnixListener>,
    journal: Journal,
    history: History,
    meta: Meta,
}

impl FakeSession {
    fn record(&mut self, event: Event) {
        self.history.record(&mut self.journal, event).unwrap();
    }

    /// A status from its process.
    fn info(&self, title: &str) -> SessionInfo {
        SessionInfo {
            id: self.meta.id.clone(),
            name: self.meta.name.clone(),
            kind: Kind::Terminal,
            state: State::Running,
            exit: None,
            created: self.meta.created.clone(),
            active: None,
            call: None,
            host: None,
            cwd: "/".to_owned(),
            title: title.to_owned(),
            clients: 1,
            epoch: self.history.summary.started.clone().unwrap().epoch,
            offset: 0,
            degraded: false,
            version: "0.1.0".to_owned(),
            truncated: false,
            terminal: Some(TerminalInfo { argv: vec!["sh".to_owned()], size: Size::default() }),
            agent: None,
        }
    }

    /// Waits for the gateway's request to follow, and returns its connection.
    async fn accept_follower(&self) -> UnixStream {
        let listener = self.listener.as_ref().unwrap().try_clone().unwrap();
        tokio::task::spawn_blocking(move || {
            let (mut follower, _) = listener.accept().unwrap();
            let mut head = [0; frame::HEADER];
            follower.read_exact(&mut head).unwrap();
            let mut request = vec![0; frame::Header::decode(&head).unwrap().unwrap().len];
            follower.read_exact(&mut request).unwrap();
            assert_eq!(request, br#"{"type":"status","follow":true,"brief":true}"#);
            follower
        })
        .await
        .unwrap()
    }

    /// Answers all status requests until the test ends. Receives for each whether it was to follow.
    fn answer_requests(&self, title: &str) -> tokio::sync::mpsc::UnboundedReceiver<bool> {
        let listener = self.listener.as_ref().unwrap().try_clone().unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::UnixListener::from_std(listener).unwrap();
        let reply = serde_json::json!({ "type": "status", "session": self.info(title) }).to_string();
        let (sender, requests) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = vec![0; frame::HEADER];
                stream.read_exact(&mut request).await.unwrap();
                request.resize(frame::Header::decode(&request).unwrap().unwrap().len, 0);
                stream.read_exact(&mut request).await.unwrap();
                let mut wire = Vec::new();
                frame::put_text(&mut wire, &reply);
                // A client that has timed out sends another request.
                let _ = stream.write_all(&wire).await;
                open.push(stream);
                let request: serde_json::Value = serde_json::from_slice(&request).unwrap();
                let _ = sender.send(request["follow"] == true);
            }
        });
        requests
    }

    fn end(mut self, exit: bool) -> FakeSession {
        if exit {
            self.record(Event::Exit { code: Some(7), signal: None, offset: 0 });
        }
        (self.lock, self.listener) = (None, None);
        self
    }
}

fn send_status(follower: &mut UnixStream, info: &SessionInfo) {
    let mut wire = Vec::new();
    let reply = serde_json::json!({ "type": "status", "session": info });
    frame::put_text(&mut wire, &reply.to_string());
    follower.write_all(&wire).unwrap();
}

async fn next(changes: &mut Subscription) -> Vec<BoardMessage> {
    parse(&tokio::time::timeout(TIMEOUT, changes.next()).await.expect("no changes in time"))
}

/// Reads changes until `holds` is true for this session.
async fn until(changes: &mut Subscription, id: &SessionId, holds: impl Fn(Option<&SessionInfo>) -> bool) {
    loop {
        for message in next(changes).await {
            match &message {
                BoardMessage::Session { session } if session.id == *id && holds(Some(session)) => return,
                BoardMessage::SessionGone { id: gone } if gone == id && holds(None) => return,
                _ => {}
            }
        }
    }
}

/// Reads the whole board, then waits until it shows this status: a session is shown as its files describe it
/// until its process has sent one. Returns the number of sessions.
async fn begin(changes: &mut Subscription, status: &SessionInfo) -> usize {
    let board = next(changes).await;
    if !full_board(&board).contains(status) {
        until(changes, &status.id, |info| info == Some(status)).await;
    }
    full_board(&board).len()
}

fn parse(messages: &[EncodedMessage]) -> Vec<BoardMessage> {
    messages.iter().map(|message| serde_json::from_slice(&message.json()).unwrap()).collect()
}

fn full_board(messages: &[BoardMessage]) -> &[SessionInfo] {
    match messages {
        [BoardMessage::Board { sessions, .. }] => sessions,
        other => panic!("not a board: {other:?}"),
    }
}

#[tokio::test]
async fn r46_a_session_is_created_changed_ended_and_removed() {
    let world = World::new();
    let mut changes = world.board.subscribe();
    assert!(full_board(&next(&mut changes).await).is_empty());
    let session = world.session(1);
    let id = session.meta.id.clone();
    let mut follower = session.accept_follower().await;
    send_status(&mut follower, &session.info("one"));
    until(&mut changes, &id, |info| info.is_some_and(|info| info.title == "one" && info.clients == 1)).await;
    send_status(&mut follower, &session.info("two"));
    until(&mut changes, &id, |info| info.is_some_and(|info| info.title == "two")).await;
    let second = next(&mut world.board.subscribe()).await;
    assert_eq!(full_board(&second), [session.info("two")]);

    let ended = SessionInfo {
        state: State::Exited,
        exit: Some(ExitStatus { code: Some(7), signal: None }),
        ..session.info("two")
    };
    send_status(&mut follower, &ended);
    until(&mut changes, &id, |info| info.is_some_and(|info| info.state == State::Exited)).await;
    let mut session = session.end(true);
    drop(follower);
    until(&mut changes, &id, |info| info.is_some_and(|info| info.clients == 0 && info.exit.is_some())).await;

    session.meta.name = Some("renamed".parse().unwrap());
    session.meta.write(&session.dir.meta()).unwrap();
    until(&mut changes, &id, |info| info.is_some_and(|info| info.name == session.meta.name)).await;

    remove::forget(&bowline_host::registry::read(session.dir).unwrap()).unwrap();
    until(&mut changes, &id, |info| info.is_none()).await;
}

#[tokio::test]
async fn r46_a_killed_process_makes_its_session_lost_and_it_can_be_restarted() {
    let world = World::new();
    let session = world.session(1);
    let id = session.meta.id.clone();
    let mut changes = world.board.subscribe();
    let mut follower = session.accept_follower().await;
    send_status(&mut follower, &session.info("one"));
    assert_eq!(begin(&mut changes, &session.info("one")).await, 1);
    let mut session = session.end(false);
    drop(follower);
    until(&mut changes, &id, |info| info.is_some_and(|info| info.state == State::Lost)).await;

    session.lock = Lock::take(&session.dir.lock()).unwrap();
    std::fs::remove_file(session.dir.sock()).unwrap();
    session.listener = Some(UnixListener::bind(session.dir.sock()).unwrap());
    let started = Event::Started {
        epoch: Epoch::from_random([9; 4]),
        offset: 0,
        size: Some(Size::default()),
        pid: 1,
        version: String::new(),
    };
    session.record(started);
    session.meta.write(&session.dir.meta()).unwrap();
    let mut follower = session.accept_follower().await;
    send_status(&mut follower, &session.info("again"));
    until(&mut changes, &id, |info| info.is_some_and(|info| info.state == State::Running && info.title == "again"))
        .await;
}

#[tokio::test]
async fn r46_a_hung_process_does_not_delay_other_sessions() {
    let world = World::new();
    let (hung, healthy) = (world.session(1), world.session(2));
    let mut changes = world.board.subscribe();
    let _silent = hung.accept_follower().await;
    let mut follower = healthy.accept_follower().await;
    send_status(&mut follower, &healthy.info("one"));
    assert_eq!(begin(&mut changes, &healthy.info("one")).await, 2);
    send_status(&mut follower, &healthy.info("two"));
    until(&mut changes, &healthy.meta.id, |info| info.is_some_and(|info| info.title == "two")).await;
}

/// Each followed session takes a descriptor.
#[tokio::test]
async fn r52_sessions_beyond_the_limit_are_polled_until_they_can_be_followed() {
    let world = World::following(1);
    let first = world.session(1);
    let mut changes = world.board.subscribe();
    let mut follower = first.accept_follower().await;
    send_status(&mut follower, &first.info("one"));
    begin(&mut changes, &first.info("one")).await;
    let second = world.session(2);
    let mut requests = second.answer_requests("two");
    until(&mut changes, &second.meta.id, |info| info.is_some_and(|info| info.title == "two")).await;
    assert_eq!(requests.recv().await, Some(false), "polled, not followed");
    let _first = first.end(true);
    drop(follower);
    let followed = async {
        loop {
            match requests.recv().await {
                Some(false) => {}
                other => break other,
            }
        }
    };
    assert_eq!(tokio::time::timeout(TIMEOUT, followed).await, Ok(Some(true)), "followed once there is a permit");
}

/// Damaged files affect one session, not the whole board.
#[tokio::test]
async fn r46_an_unreadable_session_does_not_delay_the_board() {
    let world = World::new();
    let (damaged, fine) = (world.session(1), world.session(2).end(true));
    std::fs::write(damaged.dir.meta(), "{").unwrap();
    let mut changes = world.board.subscribe();
    let ids: Vec<_> = full_board(&next(&mut changes).await).iter().map(|info| info.id.clone()).collect();
    assert_eq!(ids, std::slice::from_ref(&fine.meta.id));
    damaged.meta.write(&damaged.dir.meta()).unwrap();
    until(&mut changes, &damaged.meta.id, |info| info.is_some()).await;
}

#[tokio::test]
async fn r46_a_broken_connection_is_restored() {
    let world = World::new();
    let session = world.session(1);
    let mut changes = world.board.subscribe();
    let mut follower = session.accept_follower().await;
    send_status(&mut follower, &session.info("one"));
    begin(&mut changes, &session.info("one")).await;
    drop(follower);
    let mut follower = session.accept_follower().await;
    send_status(&mut follower, &session.info("two"));
    let messages = next(&mut changes).await;
    assert_eq!(messages, [BoardMessage::Session { session: Box::new(session.info("two")) }], "no change in between");
}

#[tokio::test]
async fn r46_frequent_title_changes_are_throttled() {
    let world = World::new();
    let session = world.session(1);
    let id = session.meta.id.clone();
    let mut changes = world.board.subscribe();
    let mut follower = session.accept_follower().await;
    send_status(&mut follower, &session.info("first"));
    next(&mut changes).await;
    let infos: Vec<SessionInfo> = (0..2000).map(|n| session.info(&format!("t{n}"))).collect();
    let writer = tokio::task::spawn_blocking(move || {
        infos.iter().for_each(|info| send_status(&mut follower, info));
        follower
    });
    let mut count = 0;
    loop {
        let messages = next(&mut changes).await;
        count += messages.len();
        let last =
            |message: &BoardMessage| matches!(message, BoardMessage::Session { session } if session.title == "t1999");
        if messages.iter().any(last) {
            break;
        }
    }
    assert!(count < 500, "{count} of 2000 changes were sent");
    drop(writer.await.unwrap());
    drop(session);
    until(&mut changes, &id, |info| info.is_some_and(|info| info.state == State::Lost)).await;
}

#[tokio::test]
async fn the_board_stops_without_subscribers() {
    let world = World::new();
    let session = world.session(1);
    let mut changes = world.board.subscribe();
    let mut follower = session.accept_follower().await;
    send_status(&mut follower, &session.info("one"));
    next(&mut changes).await;
    drop(changes);
    let ended = tokio::task::spawn_blocking(move || {
        follower.set_read_timeout(Some(TIMEOUT)).unwrap();
        follower.read(&mut [0])
    });
    assert_eq!(ended.await.unwrap().unwrap(), 0, "the session is no longer followed");
    let mut changes = world.board.subscribe();
    let mut follower = session.accept_follower().await;
    send_status(&mut follower, &session.info("two"));
    assert_eq!(begin(&mut changes, &session.info("two")).await, 1);
}

fn info(n: u16) -> SessionInfo {
    let mut random = [0; 12];
    random[..2].copy_from_slice(&[(n / 36) as u8, (n % 36) as u8]);
    SessionInfo {
        id: SessionId::from_random(random),
        name: None,
        kind: Kind::Terminal,
        state: State::Exited,
        exit: None,
        created: format!("2026-01-01T00:00:00.{n:06}Z"),
        active: None,
        call: None,
        host: None,
        cwd: String::new(),
        title: String::new(),
        clients: 0,
        epoch: Epoch::from_random([0; 4]),
        offset: 0,
        degraded: false,
        version: String::new(),
        truncated: false,
        terminal: Some(TerminalInfo { argv: Vec::new(), size: Size::default() }),
        agent: None,
    }
}

#[test]
fn r46_pending_changes_are_bounded_by_the_number_of_sessions() {
    let mut state = BoardState::default();
    state.expect(HashSet::new());
    let (stopped, _wake) = state.subscribe();
    assert_eq!(state.take(stopped).len(), 1);
    for n in 0..200 {
        state.put(info(n));
    }
    for round in 0..100 {
        state.put(SessionInfo { title: format!("t{round}"), ..info(round % 200) });
    }
    assert_eq!(state.subscribers[&stopped].changed.len(), 200, "each session once, however often it changed");
    // Sessions that are created and removed unseen do not add up: past a bound, the whole board is pending instead.
    for n in 200..1200 {
        state.put(info(n));
        state.remove(&info(n).id);
        assert!(state.subscribers[&stopped].changed.len() <= 200 + PENDING_SLACK + 1);
    }
    assert!(state.subscribers[&stopped].full);
    let messages = parse(&state.take(stopped));
    assert_eq!(full_board(&messages).len(), 200);
    assert!(state.take(stopped).is_empty());
}

#[test]
fn r46_output_alone_is_not_a_change_and_the_latest_state_wins() {
    let mut state = BoardState::default();
    let (subscriber, _wake) = state.subscribe();
    state.put(info(1));
    assert!(state.take(subscriber).is_empty(), "nothing before the sessions are listed");
    state.expect(HashSet::from([info(1).id, info(2).id]));
    state.put(info(1));
    assert!(state.take(subscriber).is_empty(), "nothing before the board is complete");
    state.put(info(2));
    assert_eq!(full_board(&parse(&state.take(subscriber))), [info(1), info(2)], "oldest first");
    state.put(SessionInfo { offset: 100, ..info(1) });
    assert!(state.take(subscriber).is_empty());
    state.put(SessionInfo { offset: 200, title: "a".to_owned(), ..info(1) });
    let last = SessionInfo { offset: 300, title: "b".to_owned(), ..info(1) };
    state.put(last.clone());
    assert_eq!(parse(&state.take(subscriber)), [BoardMessage::Session { session: Box::new(last) }]);
    state.remove(&info(2).id);
    assert_eq!(parse(&state.take(subscriber)), [BoardMessage::SessionGone { id: info(2).id }]);
    state.remove(&info(2).id);
    assert!(state.take(subscriber).is_empty());
}

#[test]
fn r52_subscribers_share_the_bytes_of_a_message() {
    let mut state = BoardState::default();
    state.expect(HashSet::new());
    let argv = vec!["x".repeat(100_000)];
    let long = SessionInfo { terminal: Some(TerminalInfo { argv, size: Size::default() }), ..info(1) };
    state.put(long.clone());
    let subscribers = [(); 2].map(|()| state.subscribe().0);
    let same = |messages: [Vec<EncodedMessage>; 2]| {
        let [[one], [other]] = messages.each_ref().map(Vec::as_slice) else { panic!("{messages:?}") };
        let (one, other) = (one.json(), other.json());
        assert!(one.len() < 10_000, "{} bytes", one.len());
        assert_eq!(one.as_ptr(), other.as_ptr(), "not a copy");
    };
    same(subscribers.map(|subscriber| state.take(subscriber)));
    state.put(SessionInfo { title: "new".to_owned(), ..long });
    same(subscribers.map(|subscriber| state.take(subscriber)));
}
