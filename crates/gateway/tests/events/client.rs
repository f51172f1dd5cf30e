//! Test clients for the event stream, over SSE and WebSocket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use tungstenite::client::IntoClientRequest;
use tungstenite::{Error, Message, WebSocket};

use super::world::TIMEOUT;

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// An SSE stream, or the response that refused it.
pub(crate) struct Sse {
    pub(crate) status: u16,
    /// Names are in lowercase.
    pub(crate) headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    text: String,
}

/// One item of an SSE stream.
#[derive(Debug, PartialEq)]
pub(crate) enum SseItem {
    Event { id: Option<String>, data: Value },
    Comment,
}

impl Sse {
    pub(crate) fn open(address: SocketAddr, query: &str, headers: &[(&str, &str)]) -> Sse {
        let mut stream = connect(address);
        let mut head = format!("GET /v1/events{query} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n");
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let status = line().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        Sse { status, headers, reader, text: String::new() }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The next item; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<SseItem> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let item = read_block(block);
                self.text = rest.to_owned();
                return Some(item);
            }
            let mut size = String::new();
            if self.reader.read_line(&mut size).ok()? == 0 {
                return None;
            }
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).ok()?;
            if size == 0 {
                return None;
            }
            self.text += std::str::from_utf8(&chunk[..size]).unwrap();
        }
    }

    #[track_caller]
    pub(crate) fn message(&mut self) -> Value {
        loop {
            match self.next() {
                Some(SseItem::Event { data, .. }) => return data,
                Some(SseItem::Comment) => {}
                None => panic!("the stream ended"),
            }
        }
    }
}

fn read_block(block: &str) -> SseItem {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start());
    match field("data:") {
        Some(data) => {
            SseItem::Event { id: field("id:").map(ToOwned::to_owned), data: serde_json::from_str(data).unwrap() }
        }
        None => {
            assert!(block.starts_with(':'), "{block:?}");
            SseItem::Comment
        }
    }
}

pub(crate) struct Ws(pub(crate) WebSocket<TcpStream>);

impl Ws {
    /// Connects. The error has the status and problem code of a refusal.
    pub(crate) fn open(address: SocketAddr, query: &str, headers: &[(&str, &str)]) -> Result<Ws, (u16, String)> {
        let mut request = format!("ws://{address}/v1/events{query}").into_client_request().unwrap();
        for (name, value) in headers {
            let name: tungstenite::http::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        match tungstenite::client(request, connect(address)) {
            Ok((ws, _)) => Ok(Ws(ws)),
            Err(tungstenite::HandshakeError::Failure(Error::Http(response))) => {
                let code = response.headers().get("bowline-code").map_or("", |code| code.to_str().unwrap());
                Err((response.status().as_u16(), code.to_owned()))
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).unwrap();
    }

    /// The next message, or the close code.
    pub(crate) fn next(&mut self) -> Result<Value, u16> {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Ok(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(frame)) => return Err(frame.map_or(1005, |frame| frame.code.into())),
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The next message that is not a ping.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Value {
        loop {
            let message = self.next().expect("closed instead of a message");
            if message["type"] != "ping" {
                return message;
            }
        }
    }

    /// Reads until the close. Returns its code.
    pub(crate) fn until_close(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next() {
                return code;
            }
        }
    }
}
