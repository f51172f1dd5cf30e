//! A client and a server over a perfect connection: attach, output, input, resume, exit.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

mod info;

use std::time::Duration;

use bowline_proto::config::ServerConfig;
use bowline_proto::frame::{Binary, Frame};
use bowline_proto::ids::{ClientId, Epoch};
use bowline_proto::link::{
    Client, ClientConfig, ClientEvent, ClientTransmit, ConnId, Server, ServerEvent, Snapshot, Transmit,
};
use bowline_proto::session::ExitStatus;
use bowline_proto::size::Size;
use info::info;

const CONN: ConnId = ConnId(1);

fn server() -> Server {
    let epoch: Epoch = "9f3c61d2".parse().unwrap();
    let config = ServerConfig::new(epoch, Size::default());
    let info = info(&config);
    Server::new(config, info)
}

fn client() -> Client {
    let mut config = ClientConfig::new(ClientId::from_random([7; 16]));
    config.size = Some(Size::new(100, 30).unwrap());
    Client::new(config)
}

/// Both ends of a link, connected without delay or loss. A snapshot is the text "screen at N".
struct Pair {
    server: Server,
    client: Client,
    log: Vec<u8>,
    now: Duration,
    received: Vec<String>,
    resized: Vec<Size>,
    closed: Option<u16>,
}

impl Pair {
    fn new() -> Pair {
        let (server, client) = (server(), client());
        Pair {
            server,
            client,
            log: Vec::new(),
            now: Duration::ZERO,
            received: Vec::new(),
            resized: Vec::new(),
            closed: None,
        }
    }

    fn connect(&mut self, conn: ConnId) {
        self.server.handle_open(conn, self.now);
        self.client.handle_connected(self.now);
        self.run(conn);
    }

    fn print(&mut self, bytes: &[u8]) {
        self.log.extend_from_slice(bytes);
        self.server.handle_log(0, self.log.len() as u64);
        self.server.handle_screen(self.log.len() as u64);
    }

    fn run(&mut self, conn: ConnId) {
        loop {
            let mut idle = true;
            while let Some(transmit) = self.client.poll_transmit(self.now) {
                idle = false;
                match transmit {
                    ClientTransmit::Text(text) => {
                        let text = serde_json::to_string(&text).unwrap();
                        self.server.handle_frame(conn, Frame::Text(&text), self.now);
                    }
                    ClientTransmit::Input { offset, bytes } => {
                        let mut payload = Vec::new();
                        Binary::Input(offset, &bytes).encode(&mut payload);
                        self.server.handle_frame(conn, Frame::Binary(&payload), self.now);
                    }
                    ClientTransmit::Close { code, reason } => {
                        panic!("the client closes the connection: {code} {reason}")
                    }
                }
            }
            while let Some(transmit) = self.server.poll_transmit(conn, self.now) {
                idle = false;
                let mut payload = Vec::new();
                match transmit {
                    Transmit::Text(text) => {
                        let text = serde_json::to_string(&text).unwrap();
                        self.client.handle_frame(Frame::Text(&text), self.now);
                        continue;
                    }
                    Transmit::Output { from, len } => {
                        Binary::Output(from, &self.log[from as usize..][..len]).encode(&mut payload);
                    }
                    Transmit::SnapshotPart(bytes) => Binary::Snapshot(&bytes).encode(&mut payload),
                    Transmit::Close { code, .. } => {
                        self.closed = Some(code);
                        self.client.handle_disconnected(self.now);
                        continue;
                    }
                }
                self.client.handle_frame(Frame::Binary(&payload), self.now);
            }
            while let Some(event) = self.server.poll_event() {
                idle = false;
                match event {
                    ServerEvent::NeedSnapshot(kind) => {
                        let offset = self.log.len() as u64;
                        let size = self.resized.last().copied().unwrap_or_default();
                        let pieces = vec![format!("screen at {offset}").into()];
                        self.server.handle_snapshot(kind, Snapshot { offset, size, pieces });
                    }
                    ServerEvent::Resize(size) => {
                        self.resized.push(size);
                        self.server.handle_resized(self.log.len() as u64, size);
                    }
                    _ => {}
                }
            }
            while let Some(event) = self.client.poll_event() {
                idle = false;
                match event {
                    ClientEvent::Attached(at) => self.received.push(format!("{:?} at {}", at.verdict, at.offset)),
                    ClientEvent::SnapshotPart(bytes) => self.received.push(format!("part {}", bytes.escape_ascii())),
                    ClientEvent::SnapshotEnd { offset } => self.client.handle_rendered(offset),
                    ClientEvent::Output { offset, bytes } => {
                        self.received.push(format!("{offset} {}", bytes.escape_ascii()));
                        self.client.handle_rendered(offset + bytes.len() as u64);
                    }
                    ClientEvent::Resize(size) => self.received.push(format!("size {}", size.cols())),
                    ClientEvent::Exit { status, offset } => {
                        self.received.push(format!("exit {:?} {offset}", status.code))
                    }
                    _ => {}
                }
            }
            if idle {
                return;
            }
        }
    }

    fn received(&mut self) -> Vec<String> {
        std::mem::take(&mut self.received)
    }
}

#[test]
fn r9_a_lost_connection_resumes_exactly() {
    let mut pair = Pair::new();
    pair.print(b"hello ");
    pair.connect(CONN);
    assert_eq!(pair.received(), ["Snapshot at 6", "part screen at 6"]);
    pair.print(b"world");
    pair.run(CONN);
    assert_eq!(pair.received(), ["6 world"]);
    pair.server.handle_closed(CONN, pair.now);
    pair.client.handle_disconnected(pair.now);
    pair.print(b", again");
    pair.connect(ConnId(2));
    assert_eq!(pair.received(), ["Exact at 11", "11 , again"]);
    pair.server.handle_exit(ExitStatus { code: Some(3), signal: None });
    pair.run(ConnId(2));
    assert_eq!(pair.received(), ["exit Some(3) 18"]);
    assert_eq!(pair.closed, Some(1000));
    assert_eq!(pair.server.clients(), 0);
}

#[test]
fn input_is_written_once_after_a_lost_connection() {
    let mut pair = Pair::new();
    pair.connect(CONN);
    pair.client.handle_input(b"ls\n", pair.now).unwrap();
    pair.run(CONN);
    assert_eq!(pair.server.input(), b"ls\n");
    pair.server.handle_closed(CONN, pair.now);
    pair.client.handle_disconnected(pair.now);
    pair.client.handle_input(b"pwd\n", pair.now).unwrap();
    pair.connect(ConnId(2));
    assert_eq!(pair.server.input(), b"ls\npwd\n");
    pair.server.handle_input_written(7, pair.now);
    pair.now += Duration::from_millis(5);
    pair.run(ConnId(2));
    pair.client.handle_ended(pair.now);
    let unsent = std::iter::from_fn(|| pair.client.poll_event()).any(|event| matches!(event, ClientEvent::Unsent(_)));
    assert!(!unsent, "everything was acknowledged");
}

/// A viewer with a slow terminal had polled the start of a snapshot before the terminal rendered the output before it.
/// That output was never acknowledged, and both ends waited for each other.
#[test]
fn r25_output_rendered_while_a_snapshot_begins_is_acknowledged() {
    let mut pair = Pair::new();
    pair.connect(CONN);
    let mut payload = Vec::new();
    Binary::Output(0, &[b'x'; 20_000]).encode(&mut payload);
    pair.client.handle_frame(Frame::Binary(&payload), pair.now);
    let snapshot = serde_json::json!({"type": "snapshot", "reason": "lagging", "scope": "screen",
        "missed": {"from": 20_000, "to": 90_000}, "offset": 90_000, "size": {"cols": 100, "rows": 30}, "bytes": 5});
    pair.client.handle_frame(Frame::Text(&snapshot.to_string()), pair.now);
    while let Some(event) = pair.client.poll_event() {
        if let ClientEvent::SnapshotBegin { .. } = event {
            break;
        }
    }
    pair.client.handle_rendered(20_000);
    let ack = ClientTransmit::Text(bowline_proto::message::ClientMessage::Ack { output: 20_000 });
    assert_eq!(pair.client.poll_transmit(pair.now), Some(ack));
}
