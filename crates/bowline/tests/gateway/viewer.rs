//! A viewer of one session over its many connections, written against the protocol alone.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::gateway::PATIENCE;
use super::ws::{self, BINARY, Message, Opened, Ws};

/// How a connection, or the attempt to make one, ended.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    /// It broke.
    Cut,
    /// It was closed.
    Closed(u16, String),
    /// The upgrade was refused.
    Refused(u16),
}

/// One client: what it has seen and typed, over all its connections.
pub(crate) struct Viewer {
    address: SocketAddr,
    path: String,
    bearer: String,
    client: String,
    conn: u64,
    pub(crate) ws: Option<Ws>,
    pub(crate) cursor: Option<(String, u64)>,
    /// All output from the first offset on.
    pub(crate) output: Vec<u8>,
    /// Where `output` begins.
    pub(crate) first: u64,
    acked: u64,
    /// Everything typed so far, and how much of it was sent on this connection.
    typed: Vec<u8>,
    sent: usize,
    /// Input that the session has taken.
    pub(crate) taken: usize,
    /// After each dial, the last line that was taken is sent once more: it must not be read twice.
    pub(crate) repeats: bool,
    pub(crate) verdicts: Vec<String>,
    pub(crate) exit: Option<Value>,
    /// Bytes of output and snapshots that came, over all connections.
    pub(crate) received: u64,
    /// The newest snapshot, and how much of it has yet to come.
    pub(crate) snapshot: Vec<u8>,
    snapshot_left: u64,
    /// Texts other than those that are handled here.
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
            taken: 0,
            repeats: false,
            verdicts: Vec::new(),
            exit: None,
            received: 0,
            snapshot: Vec::new(),
            snapshot_left: 0,
            texts: Vec::new(),
        }
    }

    /// Types something; it goes out with the next step, and again until it is taken.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.typed.extend_from_slice(text.as_bytes());
    }

    /// Opens a connection and says hello.
    pub(crate) fn dial(&mut self, quiet_for: Duration) -> Result<(), End> {
        self.dial_with(quiet_for, json!({"lag": "wait"}))
    }

    /// With more in the hello.
    pub(crate) fn dial_with(&mut self, quiet_for: Duration, more: Value) -> Result<(), End> {
        self.conn += 1;
        let mut ws = match ws::open_within(quiet_for, self.address, &self.path, &[("Authorization", &self.bearer)]) {
            Ok(Opened::Open(ws)) => ws,
            Ok(Opened::Refused(response)) => return Err(End::Refused(response.status)),
            Err(_) => return Err(End::Cut),
        };
        let cursor = self.cursor.as_ref().map(|(epoch, offset)| json!({"epoch": epoch, "offset": offset}));
        let mut hello =
            json!({"type": "hello", "version": 1, "client": self.client, "conn": self.conn, "cursor": cursor});
        for (name, value) in more.as_object().cloned().unwrap_or_default() {
            hello[name] = value;
        }
        let said = ws.stream.set_read_timeout(Some(quiet_for)).and_then(|()| ws.send_text(&hello.to_string()));
        said.map_err(|_| End::Cut)?;
        self.ws = Some(ws);
        self.sent = usize::MAX; // nothing is sent before `attached` tells from where
        Ok(())
    }

    /// Takes the next message.
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
                let (_, next) = self.cursor.as_mut().expect("a place");
                assert_eq!(offset, *next, "output has a hole or a repeat");
                *next += payload.len() as u64 - 9;
                self.output.extend_from_slice(&payload[9..]);
                if *next - self.acked >= 16 << 10 { self.ack() } else { Ok(()) }
            }
            2 => {
                self.snapshot.extend_from_slice(&payload[1..]);
                self.snapshot_left =
                    self.snapshot_left.checked_sub(payload.len() as u64 - 1).expect("no more than said");
                if self.snapshot_left == 0 { self.ack() } else { Ok(()) }
            }
            other => panic!("kind {other} from the server"),
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
                    Some(cursor) => panic!("no exact resume from {cursor:?}: {message}"),
                }
                self.cursor = Some((epoch.to_owned(), offset));
                self.acked = offset;
                self.expect_snapshot(message["snapshot"]["bytes"].as_u64().unwrap_or(0));
                match message["input"].as_u64() {
                    Some(taken) => self.taken = taken as usize,
                    // It has ended, and nothing can be typed any more; what it took is in its log.
                    None if message["session"]["state"] != "running" => self.taken = self.typed.len(),
                    // The session never heard of this client: its first dials did not get that far.
                    None => assert_eq!(self.taken, 0, "the client was forgotten"),
                }
                self.sent = self.taken;
                if self.repeats && message["session"]["state"] == "running" {
                    self.sent = self.line_before(self.taken);
                }
            }
            "snapshot" => {
                let offset = message["offset"].as_u64().unwrap();
                if let Some((_, next)) = &mut self.cursor {
                    *next = offset;
                }
                self.expect_snapshot(message["bytes"].as_u64().unwrap());
            }
            "ack" => self.taken = message["input"].as_u64().unwrap() as usize,
            "ping" => self.send(&json!({"type": "pong", "n": message["n"]}))?,
            "pong" => {}
            "exit" => {
                assert_eq!(
                    message["offset"].as_u64(),
                    self.cursor.as_ref().map(|cursor| cursor.1),
                    "exit before the end"
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
        // A frame for each line.
        for line in self.typed[self.sent..].split_inclusive(|byte| *byte == b'\n') {
            let mut payload = vec![3];
            payload.extend_from_slice(&(self.sent as u64).to_be_bytes());
            payload.extend_from_slice(line);
            self.sent += line.len();
            ws.send(BINARY, &payload)?;
        }
        Ok(())
    }

    /// Where the line that ends at or around a byte begins.
    fn line_before(&self, at: usize) -> usize {
        let before = &self.typed[..at.saturating_sub(1)];
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
    }

    /// Lines that were typed and are not taken yet.
    pub(crate) fn lines_untaken(&self) -> usize {
        self.typed[self.taken..].iter().filter(|byte| **byte == b'\n').count()
    }

    /// Goes on until the fact holds. The server's pings alone keep nothing waiting forever.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut fact: impl FnMut(&Viewer) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !fact(self) {
            assert!(Instant::now() < deadline, "never came: {what}");
            self.step().unwrap_or_else(|end| panic!("{end:?} before: {what}"));
        }
    }

    /// Goes on until the output has this.
    #[track_caller]
    pub(crate) fn until_output(&mut self, text: &str) {
        self.until(text, |viewer| contains(&viewer.output, text));
    }
}

pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
