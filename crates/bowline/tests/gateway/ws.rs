//! A minimal WebSocket client that can send frames that no library would.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::gateway::PATIENCE;
use super::http::{self, Response};

/// A message from the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Text(String),
    Binary(Vec<u8>),
    Close(u16, String),
}

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;

/// An open WebSocket.
#[derive(Debug)]
pub(crate) struct Ws {
    pub(crate) stream: TcpStream,
    buf: Vec<u8>,
}

/// The result of a handshake.
#[derive(Debug)]
pub(crate) enum Handshake {
    Open(Ws),
    Refused(Response),
}

impl Handshake {
    #[track_caller]
    pub(crate) fn open(self) -> Ws {
        match self {
            Handshake::Open(ws) => ws,
            Handshake::Refused(response) => panic!("refused: {} {}", response.status, response.text()),
        }
    }

    #[track_caller]
    pub(crate) fn refused(self) -> Response {
        match self {
            Handshake::Refused(response) => response,
            Handshake::Open(_) => panic!("the handshake was accepted"),
        }
    }
}

/// Opens a WebSocket.
pub(crate) fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> io::Result<Handshake> {
    open_within(PATIENCE, address, path, headers)
}

/// The same with another read timeout, for networks that lose data.
pub(crate) fn open_within(
    silence: Duration,
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
) -> io::Result<Handshake> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(silence))?;
    let mut head = format!("GET {path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n");
    head += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("Host: {address}\r\n");
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol")) {
        head += "Sec-WebSocket-Protocol: bowline.v1\r\n";
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        if retry(|| stream.read(&mut byte))? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.push(byte[0]);
    }
    let response = http::parse(&answer).ok_or(io::ErrorKind::InvalidData)?;
    if response.status == 101 {
        assert_eq!(response.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        return Ok(Handshake::Open(Ws { stream, buf: Vec::new() }));
    }
    let length = response.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Handshake::Refused(Response { body, ..response }))
}

impl Ws {
    /// Sends one whole message.
    pub(crate) fn send(&mut self, opcode: u8, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&frame(0x80 | opcode, payload))
    }

    pub(crate) fn send_text(&mut self, text: &str) -> io::Result<()> {
        self.send(TEXT, text.as_bytes())
    }

    /// The next message; `None` at the end of the connection. Answers pings.
    pub(crate) fn next(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some((opcode, payload)) = self.take_frame() {
                match opcode {
                    1 => return Ok(Some(Message::Text(String::from_utf8(payload).expect("UTF-8")))),
                    2 => return Ok(Some(Message::Binary(payload))),
                    8 => {
                        let code = payload.first_chunk::<2>().map_or(1005, |code| u16::from_be_bytes(*code));
                        let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default()).into_owned();
                        let _ = self.send(CLOSE, payload.get(..2).unwrap_or_default());
                        return Ok(Some(Message::Close(code, reason)));
                    }
                    9 => self.send(10, &payload)?,
                    10 => {}
                    other => panic!("the server sent opcode {other}"),
                }
                continue;
            }
            let mut chunk = [0; 64 << 10];
            match retry(|| self.stream.read(&mut chunk))? {
                0 => return Ok(None),
                n => self.buf.extend_from_slice(&chunk[..n]),
            }
        }
    }

    /// Reads until the server closes. Returns its code and reason.
    #[track_caller]
    pub(crate) fn until_close(&mut self) -> (u16, String) {
        loop {
            match self.next() {
                Ok(Some(Message::Close(code, reason))) => return (code, reason),
                Ok(Some(_)) => {}
                other => panic!("expected a close frame, got {other:?}"),
            }
        }
    }

    /// Removes the first complete frame from the buffer.
    fn take_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let first = *self.buf.first()?;
        let short = *self.buf.get(1)?;
        assert!(short & 0x80 == 0, "the server sent a masked frame");
        let (len, head) = match short {
            126 => (u16::from_be_bytes(*self.buf.get(2..4)?.first_chunk()?) as usize, 4),
            127 => (u64::from_be_bytes(*self.buf.get(2..10)?.first_chunk()?) as usize, 10),
            len => (usize::from(len), 2),
        };
        let payload = self.buf.get(head..head + len)?.to_vec();
        assert!(first & 0x80 != 0, "the gateway sent a fragment");
        self.buf.drain(..head + len);
        Some((first & 0x0f, payload))
    }
}

/// A masked frame with this first byte.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let mut out = vec![first];
    match payload.len() {
        len @ 0..=125 => out.push(0x80 | len as u8),
        len @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&MASK);
    out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

fn retry<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
