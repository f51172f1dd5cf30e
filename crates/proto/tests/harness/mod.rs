//! Runs a server by hand: a test sends frames to it and reads what it sends as short strings.

#[path = "../info/mod.rs"]
mod info;

use std::time::Duration;

use bowline_proto::config::ServerConfig;
use bowline_proto::frame::{Binary, Frame};
use bowline_proto::ids::ClientId;
use bowline_proto::link::{ConnId, Server, ServerEvent, Snapshot, SnapshotKind, Transmit};
use bowline_proto::message::ServerMessage;
use bowline_proto::size::Size;
use info::info;
use serde_json::{Value, json};

pub(crate) const EPOCH: &str = "9f3c61d2";

pub(crate) struct Harness {
    pub(crate) server: Server,
    pub(crate) now: Duration,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) screen: u64,
    /// The length of the snapshots that are made on request; `None` to make none.
    pub(crate) snapshot_len: Option<usize>,
    pub(crate) size: Size,
    pub(crate) resized: Vec<Size>,
    pub(crate) events: Vec<ServerEvent>,
}

impl Harness {
    pub(crate) fn new() -> Harness {
        Harness::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServerConfig)) -> Harness {
        let mut config = ServerConfig::new(EPOCH.parse().unwrap(), Size::default());
        change(&mut config);
        let info = info(&config);
        Harness {
            server: Server::new(config, info),
            now: Duration::ZERO,
            start: 0,
            end: 0,
            screen: 0,
            snapshot_len: Some(10),
            size: Size::default(),
            resized: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The program has printed up to this offset, and the emulator has processed all of it.
    pub(crate) fn print_to(&mut self, end: u64) {
        (self.end, self.screen) = (end, end);
        self.server.handle_log(self.start, end);
        self.server.handle_screen(end);
    }

    /// Opens a connection, sends the hello, and returns what the server sends.
    pub(crate) fn open(&mut self, conn: u64, hello: Value) -> Vec<String> {
        self.server.handle_open(ConnId(conn), self.now);
        self.send(conn, &hello)
    }

    /// Sends a text message, and returns what the server sends.
    pub(crate) fn send(&mut self, conn: u64, message: &Value) -> Vec<String> {
        self.server.handle_frame(ConnId(conn), Frame::Text(&message.to_string()), self.now);
        self.receive(conn)
    }

    /// Sends an input frame, and returns what the server sends.
    pub(crate) fn input(&mut self, conn: u64, offset: u64, bytes: &[u8]) -> Vec<String> {
        let mut payload = Vec::new();
        Binary::Input(offset, bytes).encode(&mut payload);
        self.server.handle_frame(ConnId(conn), Frame::Binary(&payload), self.now);
        self.receive(conn)
    }

    /// Lets time pass, from one deadline to the next.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.server.poll_timeout().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            self.server.handle_timeout(self.now);
            self.handle_events();
        }
        self.now = until;
        self.server.handle_timeout(until);
        self.handle_events();
    }

    /// Handles the events of the server.
    fn handle_events(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match &event {
                ServerEvent::NeedSnapshot(kind) => self.make_snapshot(*kind),
                ServerEvent::Resize(size) => {
                    self.size = *size;
                    self.resized.push(*size);
                    self.server.handle_resized(self.end, *size);
                }
                _ => {}
            }
            self.events.push(event);
        }
    }

    fn make_snapshot(&mut self, kind: SnapshotKind) {
        if let Some(len) = self.snapshot_len {
            let pieces = vec![vec![b's'; len].into()];
            self.server.handle_snapshot(kind, Snapshot { offset: self.screen, size: self.size, pieces });
        }
    }

    /// Everything that the server sends on a connection now, as short strings; presence is left out.
    pub(crate) fn receive(&mut self, conn: u64) -> Vec<String> {
        let mut received = Vec::new();
        loop {
            self.handle_events();
            let Some(transmit) = self.server.poll_transmit(ConnId(conn), self.now) else {
                match self.server.poll_event() {
                    Some(event) => self.events.push(event),
                    None => return received,
                }
                if let Some(ServerEvent::NeedSnapshot(kind)) = self.events.last() {
                    self.make_snapshot(*kind);
                }
                continue;
            };
            received.extend(summary(transmit));
        }
    }
}

fn summary(transmit: Transmit) -> Option<String> {
    Some(match transmit {
        Transmit::Output { from, len } => format!("output {from}+{len}"),
        Transmit::SnapshotPart(bytes) => format!("part {}", bytes.len()),
        Transmit::Close { code, .. } => format!("close {code}"),
        Transmit::Text(ServerMessage::Presence { .. }) => return None,
        Transmit::Text(ServerMessage::Attached(at)) => {
            let reason = at.reason.map_or(String::new(), |reason| format!(" {reason:?}").to_lowercase());
            let missed = at.missed.map_or(String::new(), |missed| format!(" missed {}..{}", missed.from, missed.to));
            let input = at.input.map_or("null".to_owned(), |input| input.to_string());
            let role = match (at.you.write, at.you.size) {
                (true, true) => " owner",
                (true, false) => " writer",
                _ => " reader",
            };
            let verdict = format!("{:?}", at.verdict).to_lowercase();
            format!("{verdict}{reason} at {}{missed} input {input}{role} {}", at.offset, at.size.cols())
        }
        Transmit::Text(ServerMessage::Snapshot { reason, scope, missed, offset, size, bytes }) => {
            let missed = missed.map_or(String::new(), |missed| format!(" missed {}..{}", missed.from, missed.to));
            format!("snapshot {reason:?} {scope:?} at {offset}{missed} {} +{bytes}", size.cols()).to_lowercase()
        }
        Transmit::Text(ServerMessage::Error { code, fatal, message }) => {
            let expected = message.strip_prefix("expected input from offset ").map(|rest| format!(" {rest}"));
            format!("error {code}{}{}", if fatal { " fatal" } else { "" }, expected.unwrap_or_default())
        }
        Transmit::Text(other) => {
            let mut value = serde_json::to_value(&other).unwrap();
            let kind = value["type"].take();
            value.as_object_mut().unwrap().remove("type");
            let rest: Vec<_> = value.as_object().unwrap().values().map(|value| value.to_string()).collect();
            [&[kind.as_str().unwrap().to_owned()], &rest[..]].concat().join(" ")
        }
    })
}

pub(crate) fn client(n: u8) -> ClientId {
    ClientId::from_random([n; 16])
}

/// A hello with a window of 80 x 24; `more` replaces or adds fields.
pub(crate) fn hello(n: u8, conn: u64, more: Value) -> Value {
    let mut hello = json!({"type": "hello", "version": 1, "client": client(n), "conn": conn,
        "size": {"cols": 80, "rows": 24}});
    for (key, value) in more.as_object().unwrap() {
        hello[key] = value.clone();
    }
    hello
}

pub(crate) fn cursor(offset: u64) -> Value {
    json!({"cursor": {"epoch": EPOCH, "offset": offset}})
}
