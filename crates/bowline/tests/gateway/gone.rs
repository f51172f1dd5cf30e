//! Sessions and gateways that end while viewers are attached: which close codes and errors clients get.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use bowline_proto::frame;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::gateway::{World, signal, wait_until};
use super::refusals::{attached, check_problem, hello, open, until_type};
use super::ws::CLOSE;

#[test]
fn r1_a_session_that_is_forgotten_meanwhile_is_gone_for_good() {
    let world = World::new();
    for browser in [true, false] {
        let id = world.shell("cat");
        let mut without_hello = open(&world, &id, browser);
        let mut viewer = attached(&world, &id, browser, &hello(1, 1, &json!({})));
        assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?grace=0"), &Value::Null).status, 204);
        until_type(&mut viewer, "exit");
        assert_eq!(viewer.until_close().0, 1000, "an attached viewer gets the normal end");
        without_hello.send_text(&hello(2, 1, &json!({}))).unwrap();
        let (code, reason) = without_hello.until_close();
        assert_eq!((code, reason.is_empty()), (4410, false), "{reason}");
        // The process is killed and its files are removed before it can send an exit.
        let id = world.shell("cat");
        let mut viewer = attached(&world, &id, browser, &hello(1, 1, &json!({})));
        let pid = world.session_pid(&id);
        signal(pid, Signal::STOP);
        std::fs::rename(world.session_dir(&id), world.path().join(format!("gone-{id}"))).unwrap();
        signal(pid, Signal::KILL);
        let (code, reason) = viewer.until_close();
        assert_eq!((code, reason.is_empty()), (4410, false), "{reason}");
    }
}

#[test]
fn r1_a_session_that_cannot_be_reached_is_not_gone() {
    let world = World::new();
    let id = world.shell("echo ready; cat");
    // A stopped process does not notice that its socket was removed. Its lock shows that it is running.
    signal(world.session_pid(&id), Signal::STOP);
    std::fs::remove_file(world.session_dir(&id).join("sock")).unwrap();
    check_unreachable(&world, &id);
    let listed = world.call("GET", "/v1/sessions", &Value::Null);
    assert_eq!((listed.status, &listed.json()["sessions"][0]["state"]), (200, &json!("running")));
    let command = json!({"id": "c", "command": {"type": "input", "text": "x"}});
    let refused = world.call("POST", &format!("/v1/sessions/{id}/commands"), &command);
    check_problem(&refused, 503, "unreachable");
    assert!(refused.header("retry-after").is_some());
    signal(world.session_pid(&id), Signal::CONT);
    wait_until("the session listens again", || UnixStream::connect(world.session_dir(&id).join("sock")).ok());
    let _ws = attached(&world, &id, true, &hello(1, 1, &json!({})));

    // A session whose queue of connections is full: no request blocks on it.
    signal(world.session_pid(&id), Signal::STOP);
    let queue = fill_queue(&world.session_dir(&id).join("sock"));
    if queue.full {
        check_unreachable(&world, &id);
    }
    signal(world.session_pid(&id), Signal::CONT);
    drop(queue);

    // A session whose process was killed is lost, and can still be viewed.
    signal(world.session_pid(&id), Signal::KILL);
    wait_until("the session is lost", || {
        let info = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
        (info["state"] == "lost").then_some(())
    });
    let mut ws = attached(&world, &id, true, &hello(2, 1, &json!({})));
    let exit = until_type(&mut ws, "exit");
    assert_eq!((&exit["code"], &exit["signal"]), (&Value::Null, &Value::Null));
    assert_eq!(ws.until_close().0, 1000);
}

/// If the session process does not confirm a change, the gateway reports an error.
#[test]
fn r1_an_unconfirmed_change_is_an_error() {
    let world = World::new();
    let id = world.shell("cat");
    let sock = world.session_dir(&id).join("sock");
    signal(world.session_pid(&id), Signal::STOP);
    std::fs::remove_file(&sock).unwrap();
    let listener = UnixListener::bind(&sock).unwrap();
    let process = std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            assert_ne!(stream.read(&mut request).unwrap(), 0, "no request was received");
            let mut answer = Vec::new();
            frame::put_text(&mut answer, r#"{"type":"close","code":4429,"reason":"too many"}"#);
            stream.write_all(&answer).unwrap();
            while stream.read(&mut request).is_ok_and(|n| n > 0) {}
        }
    });
    for change in [json!({"name": "other"}), json!({"detached_ttl": 600})] {
        let refused = world.call("PATCH", &format!("/v1/sessions/{id}"), &change);
        check_problem(&refused, 503, "unreachable");
        assert!(refused.header("retry-after").is_some());
    }
    process.join().unwrap();
    std::fs::remove_file(&sock).unwrap();
    signal(world.session_pid(&id), Signal::CONT);
    wait_until("the session listens again", || UnixStream::connect(&sock).ok());
    assert_eq!(world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json()["name"], Value::Null);
}

/// An invalid file does not prove that a session is gone, even if its process does not answer either.
#[test]
fn r1_a_running_session_with_a_damaged_file_is_not_gone() {
    let world = World::new();
    let body = json!({"kind": "terminal", "name": "whole", "argv": ["cat"]});
    let id = world.call("POST", "/v1/sessions", &body).json()["id"].as_str().unwrap().to_owned();
    let pid = world.session_pid(&id);
    for file in ["meta.json", "events.jsonl"] {
        let path = world.session_dir(&id).join(file);
        let content = std::fs::read(&path).unwrap();
        signal(pid, Signal::STOP); // or it would put the file back
        std::fs::write(&path, "{").unwrap();
        for key in [&id, "whole"] {
            let refused = world.call("GET", &format!("/v1/sessions/{key}"), &Value::Null);
            check_problem(&refused, 503, "unreachable");
            check_problem(&world.attach(key, &[]).refused(), 503, "unreachable");
        }
        assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).status, 200, "the list must still work");
        std::fs::write(&path, content).unwrap();
        assert_eq!(world.call("GET", "/v1/sessions/whole", &Value::Null).json()["state"], "running");
        signal(pid, Signal::CONT);
    }
    check_problem(&world.call("GET", "/v1/sessions/missing", &Value::Null), 404, "unknown_session");
    // An ended session with a damaged `meta.json` has no name any more. Its id is still known.
    let meta = world.session_dir(&id).join("meta.json");
    let content = std::fs::read(&meta).unwrap();
    signal(pid, Signal::STOP);
    std::fs::write(&meta, "{").unwrap();
    signal(pid, Signal::KILL);
    wait_until("its lock is free", || {
        (world.call("GET", "/v1/sessions/whole", &Value::Null).code() == "unknown_session").then_some(())
    });
    check_problem(&world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null), 503, "unreachable");
    std::fs::write(&meta, content).unwrap();
    assert_eq!(world.call("GET", "/v1/sessions/whole", &Value::Null).json()["state"], "lost");
}

/// It is in no list, because nothing is known about it, but its id can be used to forget it.
#[test]
fn r31_an_ended_session_with_a_damaged_description_can_be_forgotten() {
    let world = World::new();
    let ids = [(), (), ()].map(|()| world.shell("cat"));
    for id in &ids {
        let pid = world.session_pid(id);
        signal(pid, Signal::KILL);
        wait_until("it has ended", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
        std::fs::write(world.session_dir(id).join("meta.json"), "{").unwrap();
    }
    let [by_api, by_cli, by_remote_cli] = &ids;
    let path = format!("/v1/sessions/{by_api}");
    check_problem(&world.call("DELETE", &format!("{path}?keep=true"), &Value::Null), 503, "unreachable");
    assert_eq!(world.call("DELETE", &path, &Value::Null).status, 204);
    check_problem(&world.call("DELETE", &path, &Value::Null), 404, "unknown_session");
    assert_eq!(world.ok(&["kill", "--json", by_cli]).trim(), json!({"ended": [by_cli]}).to_string());
    let server = format!("http://{}", world.address);
    let mut kill = world.bowline(&["--server", &server, "kill", by_remote_cli]);
    assert!(kill.env("BOWLINE_TOKEN", &world.token).status().unwrap().success());
    assert_eq!(ids.each_ref().map(|id| world.session_dir(id).exists()), [false; 3]);
}

/// A program gets an HTTP status, a page a close code after its hello.
#[track_caller]
fn check_unreachable(world: &World, id: &str) {
    check_problem(&world.attach(id, &[]).refused(), 503, "unreachable");
    let mut ws = open(world, id, true);
    ws.send_text(&hello(7, 1, &json!({}))).unwrap();
    let (code, reason) = ws.until_close();
    assert_eq!(code, 1013, "{reason}");
    assert!(reason.contains("retry_after=") && reason.contains("unreachable"), "{reason}");
}

struct FilledQueue {
    _sockets: Vec<std::os::fd::OwnedFd>,
    full: bool,
}

/// Connects until the queue of a stopped process is full, but uses at most half of the file descriptors of this process,
/// because other tests need some.
fn fill_queue(path: &std::path::Path) -> FilledQueue {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let address = SocketAddrUnix::new(path).unwrap();
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let mut sockets = Vec::new();
    for _ in 0..most.map_or(usize::MAX, |most| most as usize / 2) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        match rustix::net::connect(&socket, &address) {
            Ok(()) => sockets.push(socket),
            Err(_) => return FilledQueue { _sockets: sockets, full: true },
        }
    }
    FilledQueue { _sockets: sockets, full: false }
}

#[test]
fn r1_a_gateway_that_stops_closes_with_1001_and_leaves_sessions_alone() {
    let mut world = World::new();
    let id = world.shell("echo ready; cat");
    let mut viewers =
        [true, false].map(|browser| attached(&world, &id, browser, &hello(u64::from(browser), 1, &json!({}))));
    let mut without_hello = open(&world, &id, true);
    let codes = std::thread::scope(|scope| {
        let stopped = scope.spawn(|| world.stop_gateway());
        let mut codes: Vec<u16> = viewers.iter_mut().map(|ws| ws.until_close().0).collect();
        codes.push(without_hello.until_close().0);
        assert!(stopped.join().unwrap().success());
        codes
    });
    assert_eq!(codes, [1001; 3]);
    assert!(world.ok(&["ls"]).contains(&id));
    world.start_gateway();
    let _again = attached(&world, &id, true, &hello(1, 2, &json!({})));
}

/// Without an answer, the browser would report a failed connection to a page that closes.
#[test]
fn r1_a_clients_close_is_answered() {
    let world = World::new();
    let id = world.shell("cat");
    for code in [1000u16, 1001] {
        let mut ws = attached(&world, &id, true, &hello(1, u64::from(code), &json!({})));
        ws.send(CLOSE, &code.to_be_bytes()).unwrap();
        assert_eq!(ws.until_close().0, code);
    }
}
