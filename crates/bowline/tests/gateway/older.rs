//! The current gateway with a session process of an earlier version, replayed from recordings.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowline_host::lock::Lock;
use bowline_host::machine::{this_boot, this_host};
use serde_json::{Value, json};

use super::gateway::World;
use super::refusals::{hello, open};
use super::ws::{BINARY, Message};

/// A frame of the unix socket, with its header: four bytes of length, one byte of kind.
#[derive(Clone, Debug, PartialEq)]
struct RecordedFrame {
    from_session: bool,
    wire: Vec<u8>,
}

impl RecordedFrame {
    fn text(&self) -> Option<Value> {
        (self.wire[4] == 0).then(|| serde_json::from_slice(&self.wire[5..]).unwrap())
    }

    fn payload(&self) -> &[u8] {
        &self.wire[5..]
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/older")
}

/// Reads a recording in hex: `<` is from the session, `>` is to the session.
fn recording(name: &str) -> Vec<RecordedFrame> {
    let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
    let line = |line: &str| {
        let (direction, hex) = line.split_once(' ')?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let wire = hex.as_bytes().chunks(2).map(byte).collect();
        Some(RecordedFrame { from_session: direction == "<", wire })
    };
    text.lines().filter(|text| !text.starts_with('#')).filter_map(line).collect()
}

/// The older session process: its files, its lock, and its socket, on which it replays the recordings.
struct OlderProcess {
    _lock: Lock,
    socket: PathBuf,
    stop: Arc<AtomicBool>,
}

impl OlderProcess {
    fn start(world: &World, recordings: Vec<Vec<RecordedFrame>>) -> (OlderProcess, String) {
        let meta = std::fs::read_to_string(fixtures().join("meta.json")).unwrap();
        let meta = meta.replace("\"HOST\"", &json!(this_host()).to_string());
        let meta = meta.replace("\"BOOT\"", &json!(this_boot()).to_string());
        let id = serde_json::from_str::<Value>(&meta).unwrap()["id"].as_str().unwrap().to_owned();
        let dir = world.session_dir(&id);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("meta.json"), meta).unwrap();
        std::fs::copy(fixtures().join("events.jsonl"), dir.join("events.jsonl")).unwrap();
        let lock = Lock::take(&dir.join("lock")).unwrap().expect("the lock is free");
        let (socket, stop) = (dir.join("sock"), Arc::new(AtomicBool::new(false)));
        let listener = UnixListener::bind(&socket).unwrap();
        let stopped = stop.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let recordings = recordings.clone();
                std::thread::spawn(move || serve(stream, &recordings));
            }
        });
        (OlderProcess { _lock: lock, socket, stop }, id)
    }
}

impl Drop for OlderProcess {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.socket);
    }
}

/// Replays a recording, as long as the received frames are those of the recording.
fn serve(mut stream: UnixStream, recordings: &[Vec<RecordedFrame>]) {
    let Some(first) = read_frame(&mut stream) else { return };
    let Some(recording) = recordings.iter().find(|recording| is_same(&recording[0], &first)) else { return };
    for frame in &recording[1..] {
        if frame.from_session {
            if stream.write_all(&frame.wire).is_err() {
                return;
            }
        } else {
            let Some(received) = read_frame(&mut stream) else { return };
            if !is_same(frame, &received) {
                return; // the viewer then sees a cut
            }
        }
    }
    while read_frame(&mut stream).is_some() {}
}

/// Compares frames; the order of fields in a text message does not matter, and an older process ignores new ones.
fn is_same(recorded: &RecordedFrame, received: &RecordedFrame) -> bool {
    match (recorded.text(), received.text()) {
        (Some(recorded), Some(mut received)) => {
            if let Some(grant) = received.get_mut("grant").and_then(Value::as_object_mut) {
                grant.remove("caller");
                grant.remove("name");
            }
            if received["type"] == "status" {
                received.as_object_mut().map(|request| request.remove("brief"));
            }
            recorded == received
        }
        _ => recorded.wire == received.wire,
    }
}

fn read_frame(stream: &mut UnixStream) -> Option<RecordedFrame> {
    let mut wire = vec![0; 5];
    stream.read_exact(&mut wire).ok()?;
    let length = u32::from_be_bytes(*wire.first_chunk().unwrap()) as usize;
    wire.resize(5 + length, 0);
    stream.read_exact(&mut wire[5..]).ok()?;
    Some(RecordedFrame { from_session: false, wire })
}

#[test]
fn r20_an_older_session_process_works_with_this_gateway() {
    let world = World::new();
    let names = ["status.txt", "fresh.txt", "resume.txt", "exit.txt"];
    let recordings: Vec<_> = names.iter().map(|name| recording(name)).collect();
    let (_older, id) = OlderProcess::start(&world, recordings.clone());

    let description = recordings[0][1].text().unwrap()["session"].clone();
    let info = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
    assert_eq!(info, description, "the gateway must pass on the description of the process");
    assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).json()["sessions"], json!([description]));

    for (name, recording) in names.iter().zip(&recordings).skip(1) {
        let mut ws = world.attach(&id, &[]).open();
        for (at, frame) in recording.iter().enumerate() {
            match (frame.from_session, frame.text()) {
                (false, Some(mut text)) => {
                    // The gateway adds the grant.
                    text.as_object_mut().unwrap().remove("grant");
                    ws.send_text(&text.to_string()).unwrap();
                }
                (false, None) => ws.send(BINARY, frame.payload()).unwrap(),
                (true, text) => {
                    let wanted = match text {
                        Some(text) if text["type"] == "close" => Message::Close(
                            u16::try_from(text["code"].as_u64().unwrap()).unwrap(),
                            text["reason"].as_str().unwrap().to_owned(),
                        ),
                        Some(_) => Message::Text(String::from_utf8(frame.payload().to_vec()).unwrap()),
                        None => Message::Binary(frame.payload().to_vec()),
                    };
                    assert_eq!(ws.next().unwrap(), Some(wanted), "{name}, frame {at}");
                }
            }
        }
    }
}

/// The session notices a silent viewer, as it knows the heartbeat. The gateway turns its close message into a close frame.
#[test]
fn r12_a_viewer_that_was_silent_for_too_long_gets_a_close_code() {
    let world = World::new();
    let frame = |from_session, text: &str| {
        let head = [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], &[0]].concat();
        RecordedFrame { from_session, wire: [&head, text.as_bytes()].concat() }
    };
    let sent: Value = serde_json::from_str(&hello(1, 1, &json!({}))).unwrap();
    let mut granted = sent.clone();
    granted["grant"] = json!({"write": true});
    let last = r#"{"type":"close","code":4408,"reason":"nothing was heard for too long"}"#;
    let (_session, id) = OlderProcess::start(&world, vec![vec![frame(false, &granted.to_string()), frame(true, last)]]);
    for browser in [true, false] {
        let mut ws = open(&world, &id, browser);
        ws.send_text(&sent.to_string()).unwrap();
        assert_eq!(ws.until_close(), (4408, "nothing was heard for too long".to_owned()));
    }
}
