//! The current gateway with an agent session process of an earlier version, replayed from a recording, and with its files.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bowline_host::lock::Lock;
use bowline_host::machine::{this_boot, this_host};
use bowline_proto::frame;
use serde_json::{Value, json};

use super::super::gateway::World;
use super::stream::{Received, Socket, Sse, read_until};
use super::{assert_contiguous, assert_each_approval_has_one_outcome, assert_each_run_ends_once, until, world_with};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/older/agent")
}

/// One connection to the older session process.
#[derive(Clone)]
struct Recording {
    title: String,
    messages: Vec<RecordedMessage>,
}

#[derive(Clone)]
struct RecordedMessage {
    from_session: bool,
    message: Value,
    /// The message, byte for byte.
    text: String,
}

impl Recording {
    fn first(&self) -> &Value {
        &self.messages[0].message
    }

    /// What the session process answered.
    fn replies(&self) -> Vec<&Value> {
        self.messages.iter().filter(|recorded| recorded.from_session).map(|recorded| &recorded.message).collect()
    }

    fn is_hello(&self) -> bool {
        self.first()["type"] == "hello"
    }

    /// Whether a connection that begins with this message was recorded here. An older process ignores fields that it does
    /// not know, so they may be added, but the recorded ones must be there.
    fn begins_with(&self, received: &Value) -> bool {
        let first = self.first();
        let fields: &[&str] = match first["type"].as_str().unwrap() {
            "hello" => &["type", "version", "cursor"],
            "command" => &["type", "id", "command"],
            "status" => &["type"],
            _ => return contains(received, first),
        };
        fields.iter().all(|field| contains(&received[field], &first[field]))
    }
}

/// Whether all of `recorded` is in `received`.
fn contains(received: &Value, recorded: &Value) -> bool {
    match (received, recorded) {
        (Value::Object(received), Value::Object(recorded)) => {
            recorded.iter().all(|(name, value)| received.get(name).is_some_and(|found| contains(found, value)))
        }
        _ => received == recorded,
    }
}

/// The recorded connections: blocks of lines, where `<` is from the session and `>` to it.
fn recordings() -> Vec<Recording> {
    let text = std::fs::read_to_string(fixtures().join("connections.txt")).unwrap();
    let block = |block: &str| {
        let (title, lines) = block.split_once('\n').unwrap();
        let messages = lines.lines().map(|line| {
            let (direction, message) = line.split_once(' ').unwrap();
            let (message, text) = (serde_json::from_str(message).unwrap(), message.to_owned());
            RecordedMessage { from_session: direction == "<", message, text }
        });
        Recording { title: title.trim_start_matches("# ").to_owned(), messages: messages.collect() }
    };
    text.split("\n\n").map(block).collect()
}

/// Puts the files of the older session into a world. Returns its id.
fn write_files(world: &World) -> String {
    let meta = std::fs::read_to_string(fixtures().join("files/meta.json")).unwrap();
    let names = [("\"HOST\"", json!(this_host())), ("\"BOOT\"", json!(this_boot())), ("\"CWD\"", json!(world.path()))];
    let meta = names.iter().fold(meta, |meta, (name, value)| meta.replace(name, &value.to_string()));
    let id = serde_json::from_str::<Value>(&meta).unwrap()["id"].as_str().unwrap().to_owned();
    let dir = world.session_dir(&id);
    copy_dir(&fixtures().join("files"), &dir);
    copy_dir(&fixtures().join("conversations"), &world.path().join("conversations"));
    std::fs::write(dir.join("meta.json"), meta).unwrap();
    id
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The older session process: its lock and its socket, on which it replays the recordings.
struct OlderProcess {
    _lock: Lock,
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    /// First messages of connections that were not recorded.
    unknown: Arc<Mutex<Vec<Value>>>,
}

/// What the connections of an [`OlderProcess`] share.
struct Replay {
    /// Of several recordings that begin alike, each is used once, in order, and then the last.
    unused: Mutex<Vec<Recording>>,
    unknown: Arc<Mutex<Vec<Value>>>,
}

impl Replay {
    fn find(&self, first: &Value) -> Option<Recording> {
        let mut unused = self.unused.lock().unwrap();
        let alike = |recording: &Recording| recording.begins_with(first);
        let at = unused.iter().position(alike)?;
        let is_last = !unused[at + 1..].iter().any(alike);
        Some(if is_last { unused[at].clone() } else { unused.remove(at) })
    }
}

impl OlderProcess {
    fn start(world: &World, id: &str) -> OlderProcess {
        let dir = world.session_dir(id);
        let lock = Lock::take(&dir.join("lock")).unwrap().expect("the lock is free");
        let (socket, stop, unknown) = (dir.join("sock"), Arc::new(AtomicBool::new(false)), Arc::default());
        let listener = UnixListener::bind(&socket).unwrap();
        let older = OlderProcess { _lock: lock, socket, stop: Arc::clone(&stop), unknown: Arc::clone(&unknown) };
        let replay = Arc::new(Replay { unused: Mutex::new(recordings()), unknown });
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let replay = Arc::clone(&replay);
                std::thread::spawn(move || serve(stream, &replay));
            }
        });
        older
    }
}

impl Drop for OlderProcess {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.socket);
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Replays the recording that begins with what the other end sends first.
fn serve(mut stream: UnixStream, replay: &Replay) {
    let Some(first) = read_message(&mut stream) else { return };
    let Some(recording) = replay.find(&first) else {
        replay.unknown.lock().unwrap().push(first);
        return;
    };
    for RecordedMessage { from_session, message, text } in &recording.messages[1..] {
        if *from_session {
            let mut wire = Vec::new();
            frame::put_text(&mut wire, text);
            if stream.write_all(&wire).is_err() {
                return;
            }
        } else {
            while read_message(&mut stream).is_some_and(|received| !contains(&received, message)) {}
        }
    }
    while read_message(&mut stream).is_some() {}
}

fn read_message(stream: &mut UnixStream) -> Option<Value> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).ok()?;
    let mut body = vec![0; u32::from_be_bytes(*head.first_chunk()?) as usize];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// The number in a code's HTTP status, for the refusals that were recorded.
fn status(code: &str) -> u16 {
    match code {
        "bad_request" => 400,
        "not_found" => 404,
        "id_reused" | "already_answered" | "not_running" => 409,
        "not_allowed_mode" => 422,
        other => panic!("{other} was not recorded"),
    }
}

#[test]
fn r20_an_older_agent_session_process_works_with_this_gateway() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = write_files(&world);
    let older = OlderProcess::start(&world, &id);
    let recordings = recordings();
    let described = recordings.iter().find(|recording| recording.first()["type"] == "status").unwrap();
    let description = described.replies()[0]["session"].clone();
    assert_eq!(world.describe(&id), description, "the description of the process is passed on");
    let listed = world.call("GET", "/v1/sessions", &Value::Null).json();
    assert_eq!(listed["sessions"][0]["activity"], description["activity"], "{listed}");
    assert!(description["activity"].is_object() && description["queued"] == 1, "{description}");
    let approvals = world.call("GET", "/v1/approvals", &Value::Null).json();
    assert_eq!(approvals, json!({"approvals": [{"session": id, "approval": description["approvals"][0]}]}));

    for recording in recordings.iter().filter(|recording| recording.is_hello()) {
        let mut socket = Socket::open(&world, &format!("/v1/sessions/{id}/attach"));
        for RecordedMessage { from_session, message, .. } in &recording.messages {
            let mut message = message.clone();
            if *from_session && message["type"] != "close" {
                assert_eq!(socket.next().as_ref(), Some(&message), "{}", recording.title);
            } else if !from_session {
                message.as_object_mut().unwrap().remove("grant"); // the gateway adds it
                socket.send(&message);
            }
        }
    }

    let resumed = recordings.iter().find(|recording| recording.first()["cursor"]["offset"] == 3).unwrap();
    let records: Vec<Value> =
        resumed.replies().into_iter().filter(|reply| reply["type"] == "event").map(record).collect();
    let (epoch, last) = (&description["epoch"], records.last().unwrap()["event"].clone());
    let watch = format!("watch={id}@{}:3", epoch.as_str().unwrap());
    let mut sse = Sse::open(&world, &watch, None);
    let mut socket = Socket::open(&world, &format!("/v1/events?{watch}"));
    let streams: [(&str, &mut dyn FnMut() -> Option<Value>); 2] =
        [("SSE", &mut || sse.next().map(|(message, _)| message)), ("WebSocket", &mut || socket.next())];
    for (name, next) in streams {
        let mut received = Received::default();
        read_until(next, &mut received, "the last event", |event| *event == last);
        assert_eq!(received.of(&id), records, "{name}");
        assert_eq!(received.watched[0]["verdict"], "exact", "{name}");
    }

    let mut codes = Vec::new();
    for recording in recordings.iter().filter(|recording| recording.first()["type"] == "command") {
        let (sent, reply) = (recording.first(), recording.replies()[0]);
        let answer = world.command(&id, sent["id"].as_str().unwrap(), &sent["command"]);
        if reply["type"] == "accepted" {
            let expected = if reply["duplicate"] == true { (200, "duplicate") } else { (202, "accepted") };
            assert_eq!((answer.status, answer.json()["status"].as_str().unwrap()), expected, "{}", recording.title);
            assert_eq!((&answer.json()["seq"], answer.json().get("run")), (&reply["seq"], reply.get("run")));
            codes.push("accepted");
        } else {
            let code = reply["code"].as_str().unwrap();
            assert_eq!((answer.status, answer.code()), (status(code), code), "{}", recording.title);
            let answered = ["outcome", "by"].map(|field| answer.json().get(field).cloned());
            assert_eq!(answered, ["outcome", "by"].map(|field| reply.get(field).cloned()), "{}", recording.title);
            codes.push(code);
        }
    }
    for code in ["accepted", "already_answered", "bad_request", "id_reused", "not_found", "not_running"] {
        assert!(codes.contains(&code), "{code} was not recorded");
    }
    assert_eq!(*older.unknown.lock().unwrap(), [] as [Value; 0], "everything that was sent is as it was recorded");
}

/// The record in an event message.
fn record(message: &Value) -> Value {
    let mut record = message.clone();
    record.as_object_mut().unwrap().remove("type");
    record
}

#[test]
fn r20_the_files_of_an_older_agent_session_are_read_repaired_and_restarted() {
    let world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = write_files(&world);
    let before = world.journal(&id);
    assert_eq!(world.describe(&id)["state"], "lost");
    until("it is repaired", || world.events_of(&id, "complete").len() == 3);
    let journal = world.journal(&id);
    assert_eq!(journal[..before.len()], before, "nothing that was recorded has changed");
    let ends: Vec<(Value, Value)> =
        world.events_of(&id, "complete").iter().map(|end| (end["run"].clone(), end["interrupted"].clone())).collect();
    assert_eq!(ends, [("r0", false), ("r1", true), ("r2", true)].map(|(run, cut)| (json!(run), json!(cut))));
    assert_eq!(world.events_of(&id, "approval_resolved")[0]["outcome"], "lost");
    assert_eq!(super::joined(&world.history(&id, 50)), super::joined(&journal));
    let blob =
        world.events_of(&id, "tool_update").into_iter().find_map(|mut event| event.get_mut("blob").map(Value::take));
    let blob = blob.expect("a blob was recorded");
    let content = world.call("GET", &format!("/v1/sessions/{id}/blobs/{}", blob["seq"]), &Value::Null);
    assert_eq!((content.status, json!(content.text().len())), (200, blob["bytes"].clone()));
    let upload = &world.events_of(&id, "prompt")[1]["attachments"][0];
    let path = format!("/v1/sessions/{id}/uploads/{}", upload.as_str().unwrap());
    assert_eq!(world.call("GET", &path, &Value::Null).text(), "Some notes.\n");

    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    let known = recordings().into_iter().find(|recording| recording.first()["id"] == "c1").unwrap();
    let again = world.command(&id, "c1", &known.first()["command"]);
    assert_eq!((again.status, &again.json()["run"]), (200, &json!("r1")), "its ids are still known");
    let end = world.run_prompt(&id, "new", &["say goes on"]);
    assert_eq!((&end["run"], &end["success"]), (&json!("r3"), &json!(true)), "{end}");
    assert_eq!(end["conversation"], world.events_of(&id, "conversation")[0]["id"], "in the same conversation");
    let journal = world.journal(&id);
    assert_contiguous(&journal);
    assert_each_run_ends_once(&journal);
    assert_each_approval_has_one_outcome(&journal);
}
