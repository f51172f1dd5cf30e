//! A viewer of a session: blocking, over the session's own socket, and no faster or slower than it must be.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bowline_proto::config::RENDERED_EVERY;
use bowline_proto::frame::{self, Binary, Frame};
use bowline_proto::ids::ClientId;
use bowline_proto::message::{ClientMessage, Hello, Lag, ServerMessage, VERSION};
use bowline_proto::size::Size;

use crate::pty::{COLS, ROWS, SILENCE, Seen, is_readable};
use crate::session::Session;

/// What one read of the socket may bring.
const READ: usize = 256 << 10;

/// An attached viewer.
#[derive(Debug)]
pub(crate) struct Viewer {
    stream: UnixStream,
    received: Vec<u8>,
    /// What of `received` holds bytes.
    filled: usize,
    /// Where output goes on.
    offset: u64,
    acked: u64,
    input: u64,
    /// Bytes of the snapshot that are still to come.
    painting: u64,
    /// Snapshots that replaced output, after the first.
    skipped: u32,
    /// All that came over the socket.
    wire: u64,
    is_attached: bool,
    out: Vec<u8>,
}

/// How an attach went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attach {
    /// From the connect to the snapshot's last byte.
    pub(crate) took: Duration,
    /// All bytes that came, messages and frames included.
    pub(crate) bytes: u64,
}

impl Viewer {
    /// Attaches, and returns when `mark` is on the screen.
    pub(crate) fn attach_at(session: &Session, lag: Lag, mark: &[u8]) -> Result<Viewer> {
        let (mut seen, mut found) = (Seen::default(), false);
        let (mut viewer, _) = Viewer::dial(session, lag, 0, |bytes| found |= seen.find(mark, bytes))?;
        while !found {
            viewer.receive(|bytes| found |= seen.find(mark, bytes))?;
        }
        Ok(viewer)
    }

    /// Attaches, and returns when the snapshot is whole.
    pub(crate) fn attach(session: &Session, lag: Lag, scrollback: u32) -> Result<(Viewer, Attach)> {
        Viewer::dial(session, lag, scrollback, |_| {})
    }

    fn dial(session: &Session, lag: Lag, scrollback: u32, mut render: impl FnMut(&[u8])) -> Result<(Viewer, Attach)> {
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let hello = Hello {
            version: VERSION,
            client: ClientId::from_random(random),
            conn: 1,
            was: None,
            cursor: None,
            size: Size::new(COLS.into(), ROWS.into()).ok(),
            lag,
            scrollback,
            observe: false,
            theme: None,
            key: None,
            grant: None,
        };
        let begun = Instant::now();
        let mut viewer = Viewer {
            stream: UnixStream::connect(session.address())?,
            received: vec![0; READ],
            filled: 0,
            offset: 0,
            acked: 0,
            input: 0,
            painting: 0,
            skipped: 0,
            wire: 0,
            is_attached: false,
            out: Vec::new(),
        };
        viewer.stream.set_read_timeout(Some(SILENCE))?;
        viewer.say(&ClientMessage::Hello(hello))?;
        while !viewer.is_attached || viewer.painting > 0 {
            viewer.receive(&mut render)?;
        }
        let attach = Attach { took: begun.elapsed(), bytes: viewer.wire };
        Ok((viewer, attach))
    }

    /// Reads once, waiting for something to come, and hands on what the terminal would be given.
    pub(crate) fn receive(&mut self, mut render: impl FnMut(&[u8])) -> Result<()> {
        let n = self.stream.read(&mut self.received[self.filled..])?;
        if n == 0 {
            bail!("the session closed the connection");
        }
        self.wire += n as u64;
        self.filled += n;
        let received = std::mem::take(&mut self.received);
        let mut at = 0;
        while let Some((frame, used)) = Frame::decode(&received[at..self.filled])? {
            at += used;
            match frame {
                Frame::Text(text) => self.hear(&serde_json::from_str(text)?)?,
                Frame::Binary(payload) => self.paint(Binary::decode(payload)?, &mut render)?,
            }
        }
        self.received = received;
        self.received.copy_within(at..self.filled, 0);
        self.filled -= at;
        if self.received.len() - self.filled < READ / 2 {
            self.received.resize(self.received.len() + READ, 0);
        }
        if self.offset - self.acked >= RENDERED_EVERY {
            self.acknowledge()?;
        }
        Ok(())
    }

    fn paint(&mut self, binary: Binary<'_>, render: &mut impl FnMut(&[u8])) -> Result<()> {
        match binary {
            Binary::Output(from, bytes) => {
                if from != self.offset {
                    bail!("output at {from} where {} was due", self.offset);
                }
                self.offset += bytes.len() as u64;
                render(bytes);
            }
            Binary::Snapshot(part) => {
                render(part);
                self.painting = self.painting.saturating_sub(part.len() as u64);
                if self.painting == 0 {
                    self.acknowledge()?;
                }
            }
            Binary::Input(..) => bail!("a session sent input"),
        }
        Ok(())
    }

    fn hear(&mut self, message: &ServerMessage) -> Result<()> {
        match message {
            ServerMessage::Attached(attached) => {
                self.is_attached = true;
                self.offset = attached.offset;
                self.acked = attached.offset;
                self.input = attached.input.unwrap_or(0);
                self.painting = attached.snapshot.map_or(0, |snapshot| snapshot.bytes);
            }
            ServerMessage::Snapshot { offset, bytes, .. } => {
                self.offset = *offset;
                self.painting = *bytes;
                self.skipped += 1;
            }
            ServerMessage::Ping { n } => self.say(&ClientMessage::Pong { n: *n })?,
            ServerMessage::Error { code, message, .. } => bail!("the session says {code}: {message}"),
            ServerMessage::Close { code, reason } => bail!("the session closed with {code}: {reason}"),
            _ => {}
        }
        Ok(())
    }

    /// Types.
    pub(crate) fn write(&mut self, keys: &[u8]) -> Result<()> {
        self.out.clear();
        frame::put_binary(&mut self.out, &Binary::Input(self.input, keys));
        self.input += keys.len() as u64;
        Ok(self.stream.write_all(&self.out)?)
    }

    /// Receives until `mark` was rendered, and says how many bytes were.
    pub(crate) fn read_until(&mut self, mark: &[u8]) -> Result<u64> {
        let (mut seen, mut found, mut total) = (Seen::default(), false, 0);
        while !found {
            self.receive(|bytes| {
                total += bytes.len() as u64;
                found |= seen.find(mark, bytes);
            })?;
        }
        Ok(total)
    }

    /// Receives what is there already.
    pub(crate) fn drain(&mut self) -> Result<()> {
        while is_readable(self.stream.as_fd(), Duration::ZERO) {
            self.receive(|_| {})?;
        }
        Ok(())
    }

    /// How often a snapshot took the place of output.
    pub(crate) fn skipped(&self) -> u32 {
        self.skipped
    }

    fn acknowledge(&mut self) -> Result<()> {
        self.acked = self.offset;
        self.say(&ClientMessage::Ack { output: self.offset })
    }

    fn say(&mut self, message: &ClientMessage) -> Result<()> {
        let mut out = Vec::new();
        frame::put_text(&mut out, &serde_json::to_string(message)?);
        Ok(self.stream.write_all(&out)?)
    }
}
