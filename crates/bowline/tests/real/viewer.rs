//! A viewer that implements the protocol independently of the client crate, so that tests do not share its mistakes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use bowline_host::{registry, session_archive};
use bowline_proto::frame::{self, Binary, Frame};
use bowline_proto::session::State;
use serde_json::{Value, json};

use super::world::{PATIENCE, World};

/// A decoded frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Received {
    Text(Value),
    Output(u64, Vec<u8>),
    Snapshot(Vec<u8>),
}

/// One connection to a session.
pub(crate) struct Viewer {
    stream: UnixStream,
    buf: Vec<u8>,
    /// The offset of the next output byte.
    pub(crate) offset: u64,
    pub(crate) epoch: String,
    pub(crate) attached: Value,
    /// All output since the attach, or since the last snapshot.
    pub(crate) output: Vec<u8>,
    /// Messages other than acks and pings, in order.
    pub(crate) texts: Vec<Value>,
    pub(crate) snapshot: Vec<u8>,
    acked: u64,
    pub(crate) input: u64,
    pub(crate) exit: Option<Value>,
}

pub(crate) fn client(n: u64) -> String {
    format!("00000000-0000-4000-8000-{n:012x}")
}

/// A hello message; `extra` overrides its fields.
pub(crate) fn hello(client_number: u64, conn: u64, extra: Value) -> Value {
    let mut hello = json!({"type": "hello", "version": 1, "client": client(client_number), "conn": conn,
        "cursor": null, "lag": "wait"});
    for (key, value) in extra.as_object().cloned().unwrap_or_default() {
        hello[key] = value;
    }
    hello
}

/// Connects to a session's socket, or serves its files if it has ended.
pub(crate) fn connect(world: &World, id: &str) -> UnixStream {
    let dir = world.dir(id);
    if let Ok(stream) = UnixStream::connect(dir.address()) {
        return stream;
    }
    let (ours, theirs) = UnixStream::pair().unwrap();
    let entry = registry::read(dir).expect("the session's files");
    std::thread::spawn(move || session_archive::serve(&entry, theirs));
    ours
}

impl Viewer {
    /// Attaches and waits for `attached`, and for the snapshot that it announces.
    pub(crate) fn attach(world: &World, id: &str, hello: &Value) -> Viewer {
        loop {
            let mut viewer = Viewer::raw(connect(world, id));
            viewer.send(hello);
            if viewer.wait_attached().is_some() {
                return viewer;
            }
            // A process that is about to end does not answer; clients then connect again.
            let entry = registry::read(world.dir(id)).expect("the session's files");
            assert_ne!(entry.info.state, State::Running, "the connection ended before it was attached");
        }
    }

    /// A connection on which nothing was sent yet.
    pub(crate) fn raw(stream: UnixStream) -> Viewer {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Viewer {
            stream,
            buf: Vec::new(),
            offset: 0,
            epoch: String::new(),
            attached: Value::Null,
            output: Vec::new(),
            texts: Vec::new(),
            snapshot: Vec::new(),
            acked: 0,
            input: 0,
            exit: None,
        }
    }

    fn wait_attached(&mut self) -> Option<()> {
        while self.attached.is_null() {
            self.step()?;
        }
        let bytes = self.attached["snapshot"]["bytes"].as_u64().unwrap_or(0) as usize;
        while self.snapshot.len() < bytes {
            self.step().expect("the snapshot");
        }
        Some(())
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let mut wire = Vec::new();
        frame::put_text(&mut wire, &message.to_string());
        let _ = self.stream.write_all(&wire); // the end of the session is noticed on reading
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        let mut wire = Vec::new();
        frame::put_binary(&mut wire, &Binary::Input(self.input, text.as_bytes()));
        self.input += text.len() as u64;
        let _ = self.stream.write_all(&wire);
    }

    /// Handles the next frame. Returns `None` at the end of the connection.
    pub(crate) fn step(&mut self) -> Option<()> {
        match self.next_frame()? {
            Received::Output(offset, bytes) => {
                assert_eq!(offset, self.offset, "output is missing or repeated");
                self.offset += bytes.len() as u64;
                self.output.extend_from_slice(&bytes);
                if self.offset - self.acked >= 16 << 10 {
                    self.ack();
                }
            }
            Received::Snapshot(part) => {
                self.snapshot.extend_from_slice(&part);
                self.ack();
            }
            Received::Text(message) => self.handle_text(message),
        }
        Some(())
    }

    fn handle_text(&mut self, message: Value) {
        match message["type"].as_str().unwrap_or_default() {
            "attached" => {
                self.offset = message["offset"].as_u64().unwrap();
                self.acked = self.offset;
                self.epoch = message["epoch"].as_str().unwrap().to_owned();
                self.input = message["input"].as_u64().unwrap_or(0);
                self.attached = message;
            }
            "snapshot" => {
                self.offset = message["offset"].as_u64().unwrap();
                self.snapshot.clear();
                self.output.clear();
                self.texts.push(message);
            }
            "ping" => self.send(&json!({"type": "pong", "n": message["n"]})),
            "ack" | "pong" => {}
            "exit" => {
                assert_eq!(message["offset"].as_u64().unwrap(), self.offset, "exit came before the last byte");
                self.exit = Some(message);
            }
            _ => self.texts.push(message),
        }
    }

    fn ack(&mut self) {
        self.acked = self.offset;
        self.send(&json!({"type": "ack", "output": self.offset}));
    }

    fn next_frame(&mut self) -> Option<Received> {
        loop {
            if let Some((frame, used)) = Frame::decode(&self.buf).expect("a frame") {
                let received = match frame {
                    Frame::Text(text) => Received::Text(serde_json::from_str(text).expect("JSON")),
                    Frame::Binary(bytes) => match Binary::decode(bytes).expect("a payload") {
                        Binary::Output(offset, bytes) => Received::Output(offset, bytes.to_vec()),
                        Binary::Snapshot(part) => Received::Snapshot(part.to_vec()),
                        Binary::Input(..) => panic!("the server sent an input frame"),
                    },
                };
                self.buf.drain(..used);
                return Some(received);
            }
            let mut chunk = [0; 64 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(n) => self.buf.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("no frame received: {error}"),
            }
        }
    }

    /// Handles frames until the connection ends.
    pub(crate) fn finish(&mut self) {
        while self.step().is_some() {}
    }

    /// Handles frames until `fact` holds. Has a deadline, because the server's pings would keep it waiting forever.
    pub(crate) fn until(&mut self, what: &str, mut fact: impl FnMut(&Viewer) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !fact(self) {
            let output = || String::from_utf8_lossy(&self.output).into_owned();
            assert!(Instant::now() < deadline, "waited in vain for: {what}; output: {:?}", output());
            assert!(self.step().is_some(), "the connection ended before: {what}");
        }
    }

    pub(crate) fn until_output(&mut self, text: &str) {
        self.until(text, |viewer| contains(&viewer.output, text));
    }

    /// Handles frames until a message of this type was received. Returns the last one.
    pub(crate) fn until_text(&mut self, kind: &str) -> Value {
        self.until(kind, |viewer| viewer.texts.iter().any(|text| text["type"] == kind));
        self.texts.iter().rfind(|text| text["type"] == kind).cloned().unwrap_or_default()
    }

    /// The cursor with which to resume.
    pub(crate) fn cursor(&self) -> Value {
        json!({"epoch": self.epoch, "offset": self.offset})
    }

    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}

pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
