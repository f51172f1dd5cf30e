//! Clients that follow agent sessions: a plain EventSource, and a WebSocket.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use serde_json::{Value, json};

use super::super::gateway::{PATIENCE, World};
use super::super::ws::{self, Message, Ws};

/// An event stream over SSE.
pub(super) struct Sse {
    reader: BufReader<TcpStream>,
    text: String,
}

impl Sse {
    pub(super) fn open(world: &World, query: &str, last_event: Option<&str>) -> Sse {
        Sse::try_open(world.address, &world.token, query, last_event).unwrap()
    }

    /// Opens a stream; `None` if the connection fails.
    pub(super) fn try_open(address: SocketAddr, token: &str, query: &str, last_event: Option<&str>) -> Option<Sse> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let last_event = last_event.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "GET /v1/events?{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{last_event}\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        assert!(line.is_empty() || line.contains(" 200 "), "{line}");
        while !line.trim().is_empty() {
            line.clear();
            reader.read_line(&mut line).ok()?;
        }
        Some(Sse { reader, text: String::new() })
    }

    /// The next message and its `id`; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> Option<(Value, Option<String>)> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(ToOwned::to_owned);
                let (data, id) = (field("data: "), field("id: "));
                self.text = rest.to_owned();
                match data {
                    Some(data) => return Some((serde_json::from_str(&data).unwrap(), id)),
                    None => continue,
                }
            }
            let mut size = String::new();
            self.reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).ok()?;
            self.text.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
        }
    }
}

/// What a client has received of the sessions that it watches. It accepts each number once, in order.
#[derive(Default)]
pub(super) struct Received {
    /// The records of each session, as in its journal.
    pub(super) events: BTreeMap<String, Vec<Value>>,
    /// The `watched` messages.
    pub(super) watched: Vec<Value>,
    next: BTreeMap<String, u64>,
}

impl Received {
    /// Takes a message. Returns the record, if it is an event.
    #[track_caller]
    pub(super) fn take(&mut self, message: &Value) -> Option<Value> {
        match message["type"].as_str().unwrap() {
            "watched" => {
                let session = message["session"].as_str().unwrap().to_owned();
                let seq = message["seq"].as_u64().unwrap();
                if let Some(next) = self.next.get(&session).filter(|_| message["verdict"] == "exact") {
                    assert_eq!(*next, seq, "an exact verdict continues where the stream was left");
                }
                self.next.insert(session, seq);
                self.watched.push(message.clone());
                None
            }
            "event" => {
                let session = message["session"].as_str().unwrap().to_owned();
                let mut record = message.clone();
                let fields = record.as_object_mut().unwrap();
                fields.remove("type");
                fields.remove("session");
                let seq = record["seq"].as_u64().unwrap();
                let next = self.next.get_mut(&session).expect("`watched` comes before events");
                assert_eq!(record["from"].as_u64().unwrap_or(seq), *next, "a number was skipped or repeated");
                *next = seq + 1;
                self.events.entry(session).or_default().push(record.clone());
                Some(record)
            }
            _ => None,
        }
    }

    pub(super) fn of(&self, session: &str) -> &[Value] {
        self.events.get(session).map_or(&[], Vec::as_slice)
    }
}

/// Reads messages until an event satisfies `holds`.
#[track_caller]
pub(super) fn read_until(
    mut next: impl FnMut() -> Option<Value>,
    received: &mut Received,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let message = next().unwrap_or_else(|| panic!("the stream ended before: {what}"));
        if received.take(&message).is_some_and(|record| holds(&record["event"])) {
            return;
        }
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
    }
}

/// A JSON WebSocket: the event stream, or an attach.
pub(super) struct Socket(Ws);

impl Socket {
    pub(super) fn new(socket: Ws) -> Socket {
        Socket(socket)
    }

    pub(super) fn open(world: &World, path: &str) -> Socket {
        let bearer = world.bearer();
        Socket(ws::open(world.address, path, &[("Authorization", &bearer)]).unwrap().open())
    }

    /// Attaches to a session with this cursor.
    pub(super) fn attach(world: &World, session: &str, cursor: &Value) -> Socket {
        let mut socket = Socket::open(world, &format!("/v1/sessions/{session}/attach"));
        socket.send(&json!({
            "type": "hello", "version": 1, "client": "00000000-0000-4000-8000-000000000001", "conn": 1, "cursor": cursor,
        }));
        socket
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.0.send_text(&message.to_string()).unwrap();
    }

    /// The next message, except pings; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next() {
                Ok(Some(Message::Text(text))) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if message["type"] != "ping" {
                        return Some(message);
                    }
                }
                Ok(Some(Message::Close(code, reason))) => {
                    return Some(json!({"type": "closed", "code": code, "reason": reason}));
                }
                Ok(Some(Message::Binary(_))) => panic!("a binary message"),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// The next message of this type; others are skipped.
    #[track_caller]
    pub(super) fn until(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().unwrap_or_else(|| panic!("the stream ended before {kind}"));
            if message["type"] == kind {
                return message;
            }
        }
    }
}
