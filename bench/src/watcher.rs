//! A client of `GET /v1/events` that watches one session, over SSE or a WebSocket, and checks that it misses no event.

use std::io::Read;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result, bail, ensure};
use bowline_proto::frame::Frame;
use serde_json::{Value, json};

use crate::agent::{Stamp, now};
use crate::gateway::Gateway;
use crate::http::Chunks;
use crate::session::Session;
use crate::wire::Wire;

/// Bytes that are read at a time.
const READ: usize = 64 << 10;
/// How a message with an event of the session begins.
const EVENT: &str = r#"{"type":"event","#;

/// The kind of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Transport {
    Sse,
    WebSocket,
}

#[derive(Debug)]
enum Stream {
    Sse {
        stream: TcpStream,
        chunks: Chunks,
        /// The body from the first incomplete message on.
        body: Vec<u8>,
    },
    WebSocket(Wire),
}

#[derive(Debug)]
pub(crate) struct Watcher {
    stream: Stream,
    /// Bytes that are not decoded yet.
    received: Vec<u8>,
    scratch: Vec<u8>,
    position: Position,
}

/// An event of the watched session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    /// The whole message.
    pub(crate) text: &'a str,
    /// When its last byte was read.
    pub(crate) read_at: std::time::Duration,
}

impl Event<'_> {
    /// Whether the event is the end of a run.
    pub(crate) fn is_complete(&self) -> bool {
        self.text.contains(r#""event":{"type":"complete""#)
    }

    /// The stamp of a line of the agent.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        Stamp::find(self.text)
    }
}

/// The number of the next event; `None` before `watched`.
#[derive(Debug, Default)]
struct Position(Option<u64>);

impl Watcher {
    /// Watches a session from now on.
    pub(crate) fn open(gateway: &Gateway, session: &Session, transport: Transport) -> Result<Watcher> {
        let path = format!("/v1/events?watch={}", session.id);
        let stream = match transport {
            Transport::Sse => {
                let stream = gateway.client()?.open_stream(&path)?;
                Stream::Sse { stream, chunks: Chunks::default(), body: Vec::new() }
            }
            Transport::WebSocket => Stream::WebSocket(gateway.upgrade(&path)?),
        };
        let (received, scratch) = (Vec::new(), vec![0; READ]);
        let mut watcher = Watcher { stream, received, scratch, position: Position::default() };
        while watcher.position.0.is_none() {
            watcher.receive(|_| Ok(()))?;
        }
        Ok(watcher)
    }

    /// Reads once, and passes the events that are complete then to `each`. Blocks until there is data. An event that is
    /// lost, repeated or out of order is an error.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let n = match &mut self.stream {
            Stream::Sse { stream, .. } => stream.read(&mut self.scratch)?,
            Stream::WebSocket(wire) => wire.read(&mut self.scratch)?,
        };
        let read_at = now();
        ensure!(n > 0, "the gateway closed the stream");
        self.received.extend_from_slice(&self.scratch[..n]);
        let position = &mut self.position;
        let mut handle = |text: &str| -> Result<Option<u64>> {
            if position.handle(text)? {
                each(Event { text, read_at })?;
            }
            Ok(ping(text))
        };
        match &mut self.stream {
            Stream::Sse { chunks, body, .. } => {
                let used = chunks.decode(&self.received, body)?;
                self.received.drain(..used);
                let mut at = 0;
                while let Some(len) = body[at..].windows(2).position(|part| part == b"\n\n") {
                    let message = std::str::from_utf8(&body[at..at + len])?;
                    if let Some(data) = message.lines().find_map(|line| line.strip_prefix("data: ")) {
                        handle(data)?;
                    }
                    at += len + 2;
                }
                body.drain(..at);
            }
            Stream::WebSocket(wire) => {
                let (mut at, mut pings) = (0, Vec::new());
                while let Some((frame, used)) = wire.decode(&self.received[at..])? {
                    at += used;
                    let Frame::Text(text) = frame else { bail!("the gateway sent a binary message") };
                    pings.extend(handle(text)?);
                }
                self.received.drain(..at);
                for n in pings {
                    wire.send_text(&mut Vec::new(), &json!({"type": "pong", "n": n}).to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Receives until a run is complete.
    pub(crate) fn receive_run(&mut self, mut each: impl FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let mut is_complete = false;
        while !is_complete {
            self.receive(|event| {
                is_complete |= event.is_complete();
                each(event)
            })?;
        }
        Ok(())
    }
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Sse { stream, .. } => stream.as_fd(),
            Stream::WebSocket(wire) => wire.as_fd(),
        }
    }
}

impl Position {
    /// Takes a message, and returns whether it is an event.
    fn handle(&mut self, text: &str) -> Result<bool> {
        if let Some(fields) = text.strip_prefix(EVENT) {
            let (_, numbers) = fields.split_once(r#""seq":"#).context("an event without a number")?;
            let (seq, rest) = number(numbers)?;
            let first =
                rest.strip_prefix(r#","from":"#).map_or(Ok(seq), |rest| number(rest).map(|(first, _)| first))?;
            let next = self.0.context("an event before `watched`")?;
            ensure!(first == next && seq >= first, "event {first} to {seq} instead of {next}");
            self.0 = Some(seq + 1);
            return Ok(true);
        }
        if text.starts_with(r#"{"type":"watched""#) {
            let watched: Value = serde_json::from_str(text)?;
            ensure!(self.0.is_none(), "events were lost: {text}");
            self.0 = Some(watched["seq"].as_u64().context("`watched` without a number")?);
        }
        Ok(false)
    }
}

fn number(text: &str) -> Result<(u64, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    Ok((text[..end].parse()?, &text[end..]))
}

/// The number of a ping.
fn ping(text: &str) -> Option<u64> {
    let is_ping = text.starts_with(r#"{"type":"ping""#);
    is_ping.then(|| serde_json::from_str::<Value>(text).ok()?["n"].as_u64()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_must_follow_each_other() {
        let event = |numbers: &str| format!(r#"{EVENT}"session":"a",{numbers},"at":"","event":{{}}}}"#);
        let mut position = Position::default();
        assert!(position.handle(&event(r#""seq":4"#)).is_err(), "nothing is watched yet");
        assert!(!position.handle(r#"{"type":"watched","session":"a","seq":4}"#).unwrap());
        assert!(position.handle(&event(r#""seq":4"#)).unwrap());
        assert!(position.handle(&event(r#""seq":9,"from":5"#)).unwrap());
        assert!(!position.handle(r#"{"type":"board","sessions":[]}"#).unwrap());
        for bad in [r#""seq":9"#, r#""seq":11"#, r#""seq":11,"from":9"#, r#""seq":12,"from":11"#] {
            assert!(Position(position.0).handle(&event(bad)).is_err(), "{bad}");
        }
        assert!(position.handle(r#"{"type":"watched","session":"a","seq":10}"#).is_err(), "a new start is a loss");
    }
}
