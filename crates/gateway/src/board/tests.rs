//! The board against sessions whose processes are played by threads here: they hang, lie silent, and die on demand.

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

/// No fact takes this long to become true.
const PATIENCE: Duration = Duration::from_secs(30);

struct World {
    _temp: TempDir,
    home: Home,
    board: Board,
}

impl World {
    fn new() -> World {
        World::following(100)
    }

    /// With a board that follows at most so many sessions.
    fn following(followers: usize) -> World {
        let temp = tempfile::Builder::new().prefix("bwl").tempdir_in("/tmp").unwrap();
        let home = testing::home(temp.path());
        home.ensure().unwrap();
        World { _temp: temp, board: Board::new(home.clone(), followers), home }
    }

    fn session(&self, n: u8) -> Played {
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
        let mut played = Played { dir, lock, listener: Some(listener), journal, history, meta };
        played.record(Event::Started { epoch, offset: 0, size: Some(size), pid: 1, version });
        played.meta.write(&played.dir.meta()).unwrap();
        played
    }
}

/// A session whose process is played.
struct Played {
    dir: SessionDir,
    lock: Option<Lock>,
    listener: Option<UnixListener>,
    journal: Journal,
    history: History,
    meta: Meta,
}

impl Played {
    fn record(&mut self, event: Event) {
        self.history.record(&mut self.journal, event).unwrap();
    }

    /// What its process says of itself.
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
            terminal: Some(TerminalInfo { argv: vec!["sh".to_owned()], size: Size::default() }),
        }
    }

    /// Waits for the gateway to ask to follow.
    async fn asked(&self) -> UnixStream {
        let listener = self.listener.as_ref().unwrap().try_clone().unwrap();
        tokio::task::spawn_blocking(move || {
            let (mut follower, _) = listener.accept().unwrap();
            let mut head = [0; frame::HEADER];
            follower.read_exact(&mut head).unwrap();
            let mut request = vec![0; frame::Header::decode(&head).unwrap().unwrap().len];
            follower.read_exact(&mut request).unwrap();
            assert_eq!(request, br#"{"type":"status","follow":true}"#);
            follower
        })
        .await
        .unwrap()
    }

    /// Answers whoever asks, for as long as the test runs; whether each wants to follow.
    fn answering(&self, title: &str) -> tokio::sync::mpsc::UnboundedReceiver<bool> {
        let listener = self.listener.as_ref().unwrap().try_clone().unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::UnixListener::from_std(listener).unwrap();
        let reply = serde_json::json!({ "type": "status", "session": self.info(title) }).to_string();
        let (asked, all) = tokio::sync::mpsc::unbounded_channel();
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
                // Whoever does not wait for it asks again.
                let _ = stream.write_all(&wire).await;
                open.push(stream);
                let _ = asked.send(request.ends_with(b"true}"));
            }
        });
        all
    }

    fn end(mut self, exit: bool) -> Played {
        if exit {
            self.record(Event::Exit { code: Some(7), signal: None, offset: 0 });
        }
        (self.lock, self.listener) = (None, None);
        self
    }
}

fn say(follower: &mut UnixStream, info: &SessionInfo) {
    let mut wire = Vec::new();
    let reply = serde_json::json!({ "type": "status", "session": info });
    frame::put_text(&mut wire, &reply.to_string());
    follower.write_all(&wire).unwrap();
}

async fn next(news: &mut Subscription) -> Vec<BoardMessage> {
    tokio::time::timeout(PATIENCE, news.news()).await.expect("news")
}

/// Reads on until this session is as it should be.
async fn until(news: &mut Subscription, id: &SessionId, holds: impl Fn(Option<&SessionInfo>) -> bool) {
    loop {
        for message in next(news).await {
            match &message {
                BoardMessage::Session { session } if session.id == *id && holds(Some(session)) => return,
                BoardMessage::SessionGone { id: gone } if gone == id && holds(None) => return,
                _ => {}
            }
        }
    }
}

/// Takes the whole board, and waits until a session on it is as its process said: one that is slow to say so is shown as
/// its files tell meanwhile. How many sessions there are.
async fn begin(news: &mut Subscription, said: &SessionInfo) -> usize {
    let board = next(news).await;
    if !whole(&board).contains(said) {
        until(news, &said.id, |info| info == Some(said)).await;
    }
    whole(&board).len()
}

fn whole(messages: &[BoardMessage]) -> &[SessionInfo] {
    match messages {
        [BoardMessage::Board { sessions, .. }] => sessions,
        other => panic!("not a board: {other:?}"),
    }
}

#[tokio::test]
async fn r46_a_session_comes_changes_ends_and_goes() {
    let world = World::new();
    let mut news = world.board.subscribe();
    assert!(whole(&next(&mut news).await).is_empty());
    let played = world.session(1);
    let id = played.meta.id.clone();
    let mut follower = played.asked().await;
    say(&mut follower, &played.info("one"));
    until(&mut news, &id, |info| info.is_some_and(|info| info.title == "one" && info.clients == 1)).await;
    say(&mut follower, &played.info("two"));
    until(&mut news, &id, |info| info.is_some_and(|info| info.title == "two")).await;
    let second = world.board.subscribe().news().await;
    assert_eq!(whole(&second), [played.info("two")]);

    let ended = SessionInfo {
        state: State::Exited,
        exit: Some(ExitStatus { code: Some(7), signal: None }),
        ..played.info("two")
    };
    say(&mut follower, &ended);
    until(&mut news, &id, |info| info.is_some_and(|info| info.state == State::Exited)).await;
    let mut played = played.end(true);
    drop(follower);
    until(&mut news, &id, |info| info.is_some_and(|info| info.clients == 0 && info.exit.is_some())).await;

    played.meta.name = Some("renamed".parse().unwrap());
    played.meta.write(&played.dir.meta()).unwrap();
    until(&mut news, &id, |info| info.is_some_and(|info| info.name == played.meta.name)).await;

    remove::forget(&bowline_host::registry::read(played.dir).unwrap()).unwrap();
    until(&mut news, &id, |info| info.is_none()).await;
}

#[tokio::test]
async fn r46_a_process_that_dies_without_a_word_is_lost_and_may_live_again() {
    let world = World::new();
    let played = world.session(1);
    let id = played.meta.id.clone();
    let mut news = world.board.subscribe();
    let mut follower = played.asked().await;
    say(&mut follower, &played.info("one"));
    assert_eq!(begin(&mut news, &played.info("one")).await, 1);
    let mut played = played.end(false);
    drop(follower);
    until(&mut news, &id, |info| info.is_some_and(|info| info.state == State::Lost)).await;

    played.lock = Lock::take(&played.dir.lock()).unwrap();
    std::fs::remove_file(played.dir.sock()).unwrap();
    played.listener = Some(UnixListener::bind(played.dir.sock()).unwrap());
    let started = Event::Started {
        epoch: Epoch::from_random([9; 4]),
        offset: 0,
        size: Some(Size::default()),
        pid: 1,
        version: String::new(),
    };
    played.record(started);
    played.meta.write(&played.dir.meta()).unwrap();
    let mut follower = played.asked().await;
    say(&mut follower, &played.info("again"));
    until(&mut news, &id, |info| info.is_some_and(|info| info.state == State::Running && info.title == "again")).await;
}

#[tokio::test]
async fn r46_a_process_that_hangs_delays_nobody() {
    let world = World::new();
    let (hung, well) = (world.session(1), world.session(2));
    let mut news = world.board.subscribe();
    let _silent = hung.asked().await;
    let mut follower = well.asked().await;
    say(&mut follower, &well.info("one"));
    assert_eq!(begin(&mut news, &well.info("one")).await, 2);
    say(&mut follower, &well.info("two"));
    until(&mut news, &well.meta.id, |info| info.is_some_and(|info| info.title == "two")).await;
}

/// Each session that is followed takes a descriptor.
#[tokio::test]
async fn r52_sessions_past_the_limit_are_asked_until_there_is_a_place_to_follow_them() {
    let world = World::following(1);
    let first = world.session(1);
    let mut news = world.board.subscribe();
    let mut follower = first.asked().await;
    say(&mut follower, &first.info("one"));
    begin(&mut news, &first.info("one")).await;
    let second = world.session(2);
    let mut asked = second.answering("two");
    until(&mut news, &second.meta.id, |info| info.is_some_and(|info| info.title == "two")).await;
    assert_eq!(asked.recv().await, Some(false), "it is not followed");
    let _first = first.end(true);
    drop(follower);
    let followed = async {
        loop {
            match asked.recv().await {
                Some(false) => {}
                other => break other,
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, followed).await, Ok(Some(true)), "it is followed");
}

/// Files that make no sense are one session's trouble, not the whole board's.
#[tokio::test]
async fn r46_a_session_that_cannot_be_read_holds_nobody_up() {
    let world = World::new();
    let (damaged, fine) = (world.session(1), world.session(2).end(true));
    std::fs::write(damaged.dir.meta(), "{").unwrap();
    let mut news = world.board.subscribe();
    let ids: Vec<_> = whole(&next(&mut news).await).iter().map(|info| info.id.clone()).collect();
    assert_eq!(ids, std::slice::from_ref(&fine.meta.id));
    damaged.meta.write(&damaged.dir.meta()).unwrap();
    until(&mut news, &damaged.meta.id, |info| info.is_some()).await;
}

#[tokio::test]
async fn r46_a_connection_that_breaks_is_made_again() {
    let world = World::new();
    let played = world.session(1);
    let mut news = world.board.subscribe();
    let mut follower = played.asked().await;
    say(&mut follower, &played.info("one"));
    begin(&mut news, &played.info("one")).await;
    drop(follower);
    let mut follower = played.asked().await;
    say(&mut follower, &played.info("two"));
    let messages = next(&mut news).await;
    assert_eq!(messages, [BoardMessage::Session { session: Box::new(played.info("two")) }], "and nothing between");
}

#[tokio::test]
async fn r46_titles_without_end_are_told_now_and_then() {
    let world = World::new();
    let played = world.session(1);
    let id = played.meta.id.clone();
    let mut news = world.board.subscribe();
    let mut follower = played.asked().await;
    say(&mut follower, &played.info("first"));
    next(&mut news).await;
    let infos: Vec<SessionInfo> = (0..2000).map(|n| played.info(&format!("t{n}"))).collect();
    let writer = tokio::task::spawn_blocking(move || {
        infos.iter().for_each(|info| say(&mut follower, info));
        follower
    });
    let mut told = 0;
    loop {
        let messages = next(&mut news).await;
        told += messages.len();
        let last =
            |message: &BoardMessage| matches!(message, BoardMessage::Session { session } if session.title == "t1999");
        if messages.iter().any(last) {
            break;
        }
    }
    assert!(told < 500, "{told} of 2000 were told");
    drop(writer.await.unwrap());
    drop(played);
    until(&mut news, &id, |info| info.is_some_and(|info| info.state == State::Lost)).await;
}

#[tokio::test]
async fn the_board_rests_without_subscribers() {
    let world = World::new();
    let played = world.session(1);
    let mut news = world.board.subscribe();
    let mut follower = played.asked().await;
    say(&mut follower, &played.info("one"));
    next(&mut news).await;
    drop(news);
    let ended = tokio::task::spawn_blocking(move || {
        follower.set_read_timeout(Some(PATIENCE)).unwrap();
        follower.read(&mut [0])
    });
    assert_eq!(ended.await.unwrap().unwrap(), 0, "nobody follows any more");
    let mut news = world.board.subscribe();
    let mut follower = played.asked().await;
    say(&mut follower, &played.info("two"));
    assert_eq!(begin(&mut news, &played.info("two")).await, 1);
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
        terminal: Some(TerminalInfo { argv: Vec::new(), size: Size::default() }),
    }
}

#[test]
fn r46_what_a_stopped_subscriber_is_owed_is_bounded_by_the_number_of_sessions() {
    let mut known = Known::default();
    known.expect(HashSet::new());
    let (stopped, _wake) = known.subscribe();
    assert_eq!(known.take(stopped).len(), 1);
    for n in 0..200 {
        known.put(info(n));
    }
    for round in 0..100 {
        known.put(SessionInfo { title: format!("t{round}"), ..info(round % 200) });
    }
    assert_eq!(known.subscribers[&stopped].changed.len(), 200, "each session once, however often it changed");
    // Sessions that come and go, unseen, do not add up: past a bound, the whole board is owed instead.
    for n in 200..1200 {
        known.put(info(n));
        known.remove(&info(n).id);
        assert!(known.subscribers[&stopped].changed.len() <= 200 + SPARE + 1);
    }
    assert!(known.subscribers[&stopped].whole);
    let messages = known.take(stopped);
    assert_eq!(whole(&messages).len(), 200);
    assert!(known.take(stopped).is_empty());
}

#[test]
fn r46_output_alone_is_no_change_and_the_latest_state_wins() {
    let mut known = Known::default();
    let (told, _wake) = known.subscribe();
    known.put(info(1));
    assert!(known.take(told).is_empty(), "nothing before it is known which sessions there are");
    known.expect(HashSet::from([info(1).id, info(2).id]));
    known.put(info(1));
    assert!(known.take(told).is_empty(), "nothing before the board is whole");
    known.put(info(2));
    assert_eq!(whole(&known.take(told)), [info(1), info(2)], "oldest first");
    known.put(SessionInfo { offset: 100, ..info(1) });
    assert!(known.take(told).is_empty());
    known.put(SessionInfo { offset: 200, title: "a".to_owned(), ..info(1) });
    let last = SessionInfo { offset: 300, title: "b".to_owned(), ..info(1) };
    known.put(last.clone());
    assert_eq!(known.take(told), [BoardMessage::Session { session: Box::new(last) }]);
    known.remove(&info(2).id);
    assert_eq!(known.take(told), [BoardMessage::SessionGone { id: info(2).id }]);
    known.remove(&info(2).id);
    assert!(known.take(told).is_empty());
}
