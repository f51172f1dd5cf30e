//! A viewer of one session, over many connections, that implements the protocol independently of the client crate.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::gateway::PATIENCE;
use super::ws::{self, BINARY, Handshake, Message, Ws};

/// How a connection, or the attempt to make one, ended.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    /// Without a close frame.
    Cut,
    /// With a close frame: code and reason.
    Closed(u16, String),
    /// The upgrade was refused with an HTTP status.
    Refused(u16),
}

/// One client: its output and input over all its connections.
pub(crate) struct Viewer {
    address: SocketAddr,
    path: String,
    bearer: String,
    client: String,
    conn: u64,
    pub(crate) ws: Option<Ws>,
    pub(crate) cursor: Option<(String, u64)>,
    /// All output from offset `first` on.
    pub(crate) output: Vec<u8>,
    pub(crate) first: u64,
    acked: u64,
    /// All input so far.
    typed: Vec<u8>,
    /// How much of `typed` was sent on this connection.
    sent: usize,
    /// How much of `typed` the session has accepted.
    pub(crate) accepted: usize,
    /// Whether to send the last accepted line again after each dial. The session must ignore it.
    pub(crate) repeats: bool,
    pub(crate) verdicts: Vec<String>,
    pub(crate) exit: Option<Value>,
    /// Bytes of output and snapshots, over all connections.
    pub(crate) received: u64,
    /// The newest snapshot.
    pub(crate) snapshot: Vec<u8>,
    /// Bytes of it that are not received yet.
    snapshot_left: u64,
    /// Messages that the viewer does not handle itself.
    pub(crate) texts: Vec<Value>,
}

impl Viewer {
    pub(crate) fn new(address: SocketAddr, token: &str, session: &str, number: u64) -> Viewer {
        Viewer {
            address,
            path: format!("/v1/sessions/{session}/attach"),
            bearer: format!("Bearer {token}"),
            client: format!("00000000-0000-4000-8000-{number:012x}"),
            conn: 0,
            ws: None,
            cursor: None,
            output: Vec::new(),
            first: 0,
            acked: 0,
            typed: Vec::new(),
            sent: 0,
            accepted: 0,
            repeats: false,
            verdicts: Vec::new(),
            exit: None,
            received: 0,
            snapshot: Vec::new(),
            snapshot_left: 0,
            texts: Vec::new(),
        }
    }

    /// Queues input. It is sent with the next step, and again on each connection until it is accepted.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.typed.extend_from_slice(text.as_bytes());
    }

    /// Opens a connection and sends the hello.
    pub(crate) fn dial(&mut self, silence: Duration) -> Result<(), End> {
        self.dial_with(silence, json!({"lag": "wait"}))
    }

    /// With additional fields in the hello.
    pub(crate) fn dial_with(&mut self, silence: Duration, more: Value) -> Result<(), End> {
        self.conn += 1;
        let mut ws = match ws::open_within(silence, self.address, &self.path, &[("Authorization", &self.bearer)]) {
            Ok(Handshake::Open(ws)) => ws,
            Ok(Handshake::Refused(response)) => return Err(End::Refused(response.status)),
            Err(_) => return Err(End::Cut),
        };
        let cursor = self.cursor.as_ref().map(|(epoch, offset)| json!({"epoch": epoch, "offset": offset}));
        let mut hello =
            json!({"type": "hello", "version": 1, "client": self.client, "conn": self.conn, "cursor": cursor});
        for (name, value) in more.as_object().cloned().unwrap_or_default() {
            hello[name] = value;
        }
        let sent = ws.stream.set_read_timeout(Some(silence)).and_then(|()| ws.send_text(&hello.to_string()));
        sent.map_err(|_| End::Cut)?;
        self.ws = Some(ws);
        self.sent = usize::MAX; // no input is sent before `attached` says where to start
        Ok(())
    }

    /// Handles the next message.
    pub(crate) fn step(&mut self) -> Result<(), End> {
        self.send_typed().map_err(|_| End::Cut)?;
        let ws = self.ws.as_mut().ok_or(End::Cut)?;
        match ws.next() {
            Ok(Some(Message::Binary(payload))) => self.binary(&payload).map_err(|_| End::Cut),
            Ok(Some(Message::Text(text))) => {
                let message = serde_json::from_str(&text).expect("JSON");
                self.text(message).map_err(|_| End::Cut)
            }
            Ok(Some(Message::Close(code, reason))) => {
                self.ws = None;
                Err(End::Closed(code, reason))
            }
            Ok(None) | Err(_) => {
                self.ws = None;
                Err(End::Cut)
            }
        }
    }

    fn binary(&mut self, payload: &[u8]) -> io::Result<()> {
        self.received += payload.len() as u64;
        match payload[0] {
            1 => {
                let offset = u64::from_be_bytes(*payload[1..].first_chunk().unwrap());
                let (_, next) = self.cursor.as_mut().expect("output before `attached`");
                assert_eq!(offset, *next, "output is missing or repeated");
                *next += payload.len() as u64 - 9;
                self.output.extend_from_slice(&payload[9..]);
                if *next - self.acked >= 16 << 10 { self.ack() } else { Ok(()) }
            }
            2 => {
                self.snapshot.extend_from_slice(&payload[1..]);
                self.snapshot_left = self
                    .snapshot_left
                    .checked_sub(payload.len() as u64 - 1)
                    .expect("the snapshot is longer than announced");
                if self.snapshot_left == 0 { self.ack() } else { Ok(()) }
            }
            other => panic!("the server sent a payload of type {other}"),
        }
    }

    pub(crate) fn ack(&mut self) -> io::Result<()> {
        self.acked = self.cursor.as_ref().map_or(0, |(_, offset)| *offset);
        self.send(&json!({"type": "ack", "output": self.acked}))
    }

    pub(crate) fn send(&mut self, message: &Value) -> io::Result<()> {
        self.ws.as_mut().map_or(Ok(()), |ws| ws.send_text(&message.to_string()))
    }

    fn text(&mut self, message: Value) -> io::Result<()> {
        match message["type"].as_str().unwrap_or_default() {
            "attached" => {
                let (epoch, offset) = (message["epoch"].as_str().unwrap(), message["offset"].as_u64().unwrap());
                self.verdicts.push(message["verdict"].as_str().unwrap().to_owned());
                match &self.cursor {
                    None => self.first = offset,
                    Some(cursor) if message["verdict"] == "exact" => assert_eq!(*cursor, (epoch.to_owned(), offset)),
                    Some(cursor) => panic!("not resumed exactly from {cursor:?}: {message}"),
                }
                self.cursor = Some((epoch.to_owned(), offset));
                self.acked = offset;
                self.expect_snapshot(message["snapshot"]["bytes"].as_u64().unwrap_or(0));
                match message["input"].as_u64() {
                    Some(accepted) => self.accepted = accepted as usize,
                    // An ended session accepts no input; what it accepted before is in its log.
                    None if message["session"]["state"] != "running" => self.accepted = self.typed.len(),
                    // The session does not know this client, because no hello has reached it before.
                    None => assert_eq!(self.accepted, 0, "the session forgot the client"),
                }
                self.sent = self.accepted;
                if self.repeats && message["session"]["state"] == "running" {
                    self.sent = self.line_before(self.accepted);
                }
            }
            "snapshot" => {
                let offset = message["offset"].as_u64().unwrap();
                if let Some((_, next)) = &mut self.cursor {
                    *next = offset;
                }
                self.expect_snapshot(message["bytes"].as_u64().unwrap());
            }
            "ack" => self.accepted = message["input"].as_u64().unwrap() as usize,
            "ping" => self.send(&json!({"type": "pong", "n": message["n"]}))?,
            "pong" => {}
            "exit" => {
                assert_eq!(
                    message["offset"].as_u64(),
                    self.cursor.as_ref().map(|cursor| cursor.1),
                    "exit before the last byte of output"
                );
                self.exit = Some(message);
            }
            _ => self.texts.push(message),
        }
        Ok(())
    }

    fn expect_snapshot(&mut self, bytes: u64) {
        self.snapshot.clear();
        self.snapshot_left = bytes;
    }

    fn send_typed(&mut self) -> io::Result<()> {
        let Some(ws) = self.ws.as_mut() else { return Ok(()) };
        if self.sent >= self.typed.len() {
            return Ok(());
        }
        // One frame for each line.
        for line in self.typed[self.sent..].split_inclusive(|byte| *byte == b'\n') {
            let mut payload = vec![3];
            payload.extend_from_slice(&(self.sent as u64).to_be_bytes());
            payload.extend_from_slice(line);
            self.sent += line.len();
            ws.send(BINARY, &payload)?;
        }
        Ok(())
    }

    /// The start of the line that contains the byte before `at`.
    fn line_before(&self, at: usize) -> usize {
        let before = &self.typed[..at.saturating_sub(1)];
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
    }

    /// The number of lines that were typed but not accepted.
    pub(crate) fn unacknowledged_lines(&self) -> usize {
        self.typed[self.accepted..].iter().filter(|byte| **byte == b'\n').count()
    }

    /// Handles messages until `fact` holds. Has a deadline, because the server's pings would keep it waiting forever.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut fact: impl FnMut(&Viewer) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !fact(self) {
            assert!(Instant::now() < deadline, "waited in vain for: {what}");
            self.step().unwrap_or_else(|end| panic!("{end:?} before: {what}"));
        }
    }

    #[track_caller]
    pub(crate) fn until_output(&mut self, text: &str) {
        self.until(text, |viewer| contains(&viewer.output, text));
    }
}

pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
