//! A session process of an earlier version, as it was recorded, before the gateway of today.

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

/// A frame of the unix socket: its head is a length of four bytes and a byte that says what it is.
#[derive(Clone, Debug, PartialEq)]
struct Recorded {
    from_session: bool,
    wire: Vec<u8>,
}

impl Recorded {
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

/// Reads a recording: `<` from the session, `>` to it, in hex.
fn recording(name: &str) -> Vec<Recorded> {
    let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
    let line = |line: &str| {
        let (direction, hex) = line.split_once(' ')?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let wire = hex.as_bytes().chunks(2).map(byte).collect();
        Some(Recorded { from_session: direction == "<", wire })
    };
    text.lines().filter(|text| !text.starts_with('#')).filter_map(line).collect()
}

/// The older process: its files, its lock, and its socket, at which it says what was recorded.
struct Older {
    _lock: Lock,
    socket: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Older {
    fn start(world: &World, recordings: Vec<Vec<Recorded>>) -> (Older, String) {
        let meta = std::fs::read_to_string(fixtures().join("meta.json")).unwrap();
        let meta = meta.replace("\"HOST\"", &json!(this_host()).to_string());
        let meta = meta.replace("\"BOOT\"", &json!(this_boot()).to_string());
        let id = serde_json::from_str::<Value>(&meta).unwrap()["id"].as_str().unwrap().to_owned();
        let dir = world.session_dir(&id);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("meta.json"), meta).unwrap();
        std::fs::copy(fixtures().join("events.jsonl"), dir.join("events.jsonl")).unwrap();
        let lock = Lock::take(&dir.join("lock")).unwrap().expect("nobody has it");
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
        (Older { _lock: lock, socket, stop }, id)
    }
}

impl Drop for Older {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.socket);
    }
}

/// Says what was recorded, for as long as it is told what was recorded.
fn serve(mut stream: UnixStream, recordings: &[Vec<Recorded>]) {
    let Some(first) = read_frame(&mut stream) else { return };
    let Some(recording) = recordings.iter().find(|recording| is_same(&recording[0], &first)) else { return };
    for frame in &recording[1..] {
        if frame.from_session {
            if stream.write_all(&frame.wire).is_err() {
                return;
            }
        } else {
            let Some(came) = read_frame(&mut stream) else { return };
            if !is_same(frame, &came) {
                return; // the viewer sees a cut where there was none
            }
        }
    }
    while read_frame(&mut stream).is_some() {}
}

/// The order of a text's fields says nothing.
fn is_same(recorded: &Recorded, came: &Recorded) -> bool {
    match (recorded.text(), came.text()) {
        (Some(recorded), Some(came)) => recorded == came,
        _ => recorded.wire == came.wire,
    }
}

fn read_frame(stream: &mut UnixStream) -> Option<Recorded> {
    let mut wire = vec![0; 5];
    stream.read_exact(&mut wire).ok()?;
    let length = u32::from_be_bytes(*wire.first_chunk().unwrap()) as usize;
    wire.resize(5 + length, 0);
    stream.read_exact(&mut wire[5..]).ok()?;
    Some(Recorded { from_session: false, wire })
}

#[test]
fn r20_an_older_session_process_serves_this_gateway() {
    let world = World::new();
    let names = ["status.txt", "fresh.txt", "resume.txt", "exit.txt"];
    let recordings: Vec<_> = names.iter().map(|name| recording(name)).collect();
    let (_older, id) = Older::start(&world, recordings.clone());

    let told = recordings[0][1].text().unwrap()["session"].clone();
    let info = world.call("GET", &format!("/v1/sessions/{id}"), &Value::Null).json();
    assert_eq!(info, told, "as the process describes itself");
    assert_eq!(world.call("GET", "/v1/sessions", &Value::Null).json()["sessions"], json!([told]));

    for (name, recording) in names.iter().zip(&recordings).skip(1) {
        let mut ws = world.attach(&id, &[]).open();
        for (at, frame) in recording.iter().enumerate() {
            match (frame.from_session, frame.text()) {
                (false, Some(mut text)) => {
                    // What the viewer may do is the gateway's word.
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

/// Silence is for the session to notice, which knows its heartbeat; its last word reaches the viewer as a close.
#[test]
fn r12_a_viewer_that_was_silent_for_too_long_is_told() {
    let world = World::new();
    let frame = |from_session, text: &str| {
        let head = [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], &[0]].concat();
        Recorded { from_session, wire: [&head, text.as_bytes()].concat() }
    };
    let said: Value = serde_json::from_str(&hello(1, 1, &json!({}))).unwrap();
    let mut granted = said.clone();
    granted["grant"] = json!({"write": true});
    let last = r#"{"type":"close","code":4408,"reason":"nothing was heard for too long"}"#;
    let (_session, id) = Older::start(&world, vec![vec![frame(false, &granted.to_string()), frame(true, last)]]);
    for browser in [true, false] {
        let mut ws = open(&world, &id, browser);
        ws.send_text(&said.to_string()).unwrap();
        assert_eq!(ws.until_close(), (4408, "nothing was heard for too long".to_owned()));
    }
}
