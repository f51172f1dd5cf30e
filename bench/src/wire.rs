//! A viewer's connection: to a session's socket, or a minimal WebSocket client for a gateway.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, bail};
use bowline_proto::frame::{self, Binary, Frame};

use crate::http;
use crate::pty::SILENCE;

/// A way to connect to a session.
pub(crate) trait Route {
    /// Opens a connection that is ready for the hello.
    fn connect(&self) -> Result<Wire>;
}

#[derive(Debug)]
pub(crate) enum Wire {
    /// To the session's socket.
    Unix(UnixStream),
    /// A WebSocket to a gateway.
    Web(TcpStream),
}

impl Wire {
    /// Opens a WebSocket to a gateway.
    pub(crate) fn upgrade(address: SocketAddr, path: &str, token: &str) -> Result<Wire> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: bowline.v1\r\nAuthorization: Bearer {token}\r\n\r\n"
        )?;
        let head = http::read_head(&mut stream)?;
        if !head.starts_with("HTTP/1.1 101 ") {
            bail!("the gateway refused the WebSocket: {head}");
        }
        Ok(Wire::Web(stream))
    }

    pub(crate) fn set_read_timeout(&self) -> io::Result<()> {
        match self {
            Wire::Unix(stream) => stream.set_read_timeout(Some(SILENCE)),
            Wire::Web(stream) => stream.set_read_timeout(Some(SILENCE)),
        }
    }

    pub(crate) fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Unix(stream) => stream.read(buf),
            Wire::Web(stream) => stream.read(buf),
        }
    }

    pub(crate) fn send_text(&mut self, out: &mut Vec<u8>, text: &str) -> io::Result<()> {
        out.clear();
        match self {
            Wire::Unix(_) => frame::put_text(out, text),
            Wire::Web(_) => {
                put_head(out, 1, text.len());
                out.extend_from_slice(text.as_bytes());
            }
        }
        self.write(out)
    }

    pub(crate) fn send_binary(&mut self, out: &mut Vec<u8>, binary: &Binary<'_>) -> io::Result<()> {
        out.clear();
        match self {
            Wire::Unix(_) => frame::put_binary(out, binary),
            Wire::Web(_) => {
                let mut payload = Vec::new();
                binary.encode(&mut payload);
                put_head(out, 2, payload.len());
                out.extend_from_slice(&payload);
            }
        }
        self.write(out)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Wire::Unix(stream) => stream.write_all(bytes),
            Wire::Web(stream) => stream.write_all(bytes),
        }
    }

    /// Decodes the first frame in `buf`. Returns it with its length, or `None` if it is incomplete.
    pub(crate) fn decode<'a>(&self, buf: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>> {
        match self {
            Wire::Unix(_) => Ok(Frame::decode(buf)?),
            Wire::Web(_) => decode_web(buf),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Wire::Unix(stream) => stream.as_fd(),
            Wire::Web(stream) => stream.as_fd(),
        }
    }
}

/// Writes the header of a client's frame. The required mask is all zeros, so the payload need not be changed.
fn put_head(out: &mut Vec<u8>, opcode: u8, len: usize) {
    out.push(0x80 | opcode);
    match len {
        0..=125 => out.push(0x80 | len as u8),
        126..=0xffff => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
}

fn decode_web(buf: &[u8]) -> Result<Option<(Frame<'_>, usize)>> {
    let [first, short, ..] = *buf else { return Ok(None) };
    let (len, head) = match short {
        126 => match buf.get(2..4).and_then(<[u8]>::first_chunk) {
            Some(len) => (usize::from(u16::from_be_bytes(*len)), 4),
            None => return Ok(None),
        },
        127 => match buf.get(2..10).and_then(<[u8]>::first_chunk) {
            Some(len) => (u64::from_be_bytes(*len) as usize, 10),
            None => return Ok(None),
        },
        len => (usize::from(len), 2),
    };
    let Some(payload) = buf.get(head..head + len) else { return Ok(None) };
    let frame = match first & 0x0f {
        1 => Frame::Text(std::str::from_utf8(payload).context("the gateway sent text that is not UTF-8")?),
        2 => Frame::Binary(payload),
        8 => bail!(
            "the gateway closed the connection: {:?}",
            String::from_utf8_lossy(payload.get(2..).unwrap_or_default())
        ),
        other => bail!("unexpected WebSocket opcode {other}"),
    };
    Ok(Some((frame, head + len)))
}
