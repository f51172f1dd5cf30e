//! A viewer of a session: blocking, over whatever carries it, and no faster or slower than it must be.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bowline_proto::config::RENDERED_EVERY;
use bowline_proto::frame::{Binary, Frame};
use bowline_proto::ids::{ClientId, Epoch};
use bowline_proto::message::{ClientMessage, Cursor, Hello, Lag, ServerMessage, VERSION, Verdict};
use bowline_proto::size::Size;

use crate::pty::{COLS, ROWS, Seen, is_readable};
use crate::wire::{Way, Wire};

/// What one read of the socket may bring.
const READ: usize = 256 << 10;

/// An attached viewer.
#[derive(Debug)]
pub(crate) struct Viewer {
    wire: Wire,
    client: ClientId,
    conn: u64,
    lag: Lag,
    epoch: Option<Epoch>,
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
    /// All that came over the wire.
    came: u64,
    /// How the last attach went.
    verdict: Option<Verdict>,
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
    pub(crate) fn attach_at(way: &dyn Way, lag: Lag, mark: &[u8]) -> Result<Viewer> {
        let (mut seen, mut found) = (Seen::default(), false);
        let (mut viewer, _) = Viewer::dial(way, lag, 0, |bytes| found |= seen.find(mark, bytes))?;
        while !found {
            viewer.receive(|bytes| found |= seen.find(mark, bytes))?;
        }
        Ok(viewer)
    }

    /// Attaches, and returns when the snapshot is whole.
    pub(crate) fn attach(way: &dyn Way, lag: Lag, scrollback: u32) -> Result<(Viewer, Attach)> {
        Viewer::dial(way, lag, scrollback, |_| {})
    }

    fn dial(way: &dyn Way, lag: Lag, scrollback: u32, mut render: impl FnMut(&[u8])) -> Result<(Viewer, Attach)> {
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let begun = Instant::now();
        let mut viewer = Viewer {
            wire: way.connect()?,
            client: ClientId::from_random(random),
            conn: 0,
            lag,
            epoch: None,
            received: vec![0; READ],
            filled: 0,
            offset: 0,
            acked: 0,
            input: 0,
            painting: 0,
            skipped: 0,
            came: 0,
            verdict: None,
            is_attached: false,
            out: Vec::new(),
        };
        viewer.greet(scrollback, &mut render)?;
        let attach = Attach { took: begun.elapsed(), bytes: viewer.came };
        Ok((viewer, attach))
    }

    /// Comes back by another connection, to the byte where it was. True when the verdict is `exact`.
    pub(crate) fn come_back(&mut self, way: &dyn Way) -> Result<bool> {
        self.wire = way.connect()?;
        (self.filled, self.is_attached) = (0, false);
        self.greet(0, &mut |_: &[u8]| {})?;
        Ok(self.verdict == Some(Verdict::Exact))
    }

    /// Says hello on a new connection, and returns when the snapshot, if there is one, is whole.
    fn greet(&mut self, scrollback: u32, render: &mut impl FnMut(&[u8])) -> Result<()> {
        self.conn += 1;
        let hello = Hello {
            version: VERSION,
            client: self.client.clone(),
            conn: self.conn,
            was: None,
            cursor: self.epoch.clone().map(|epoch| Cursor { epoch, offset: self.offset }),
            size: Size::new(COLS.into(), ROWS.into()).ok(),
            lag: self.lag,
            scrollback,
            observe: false,
            theme: None,
            key: None,
            grant: None,
        };
        self.wire.set_patient()?;
        self.say(&ClientMessage::Hello(hello))?;
        while !self.is_attached || self.painting > 0 {
            self.receive(&mut *render)?;
        }
        Ok(())
    }

    /// How far the session's output has come here.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads once, waiting for something to come, and hands on what the terminal would be given.
    pub(crate) fn receive(&mut self, mut render: impl FnMut(&[u8])) -> Result<()> {
        let n = self.wire.read(&mut self.received[self.filled..])?;
        if n == 0 {
            bail!("the session closed the connection");
        }
        self.came += n as u64;
        self.filled += n;
        let received = std::mem::take(&mut self.received);
        let mut at = 0;
        while let Some((frame, used)) = self.wire.decode(&received[at..self.filled])? {
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
                self.epoch = Some(attached.epoch.clone());
                self.verdict = Some(attached.verdict);
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
        let at = self.input;
        self.input += keys.len() as u64;
        Ok(self.wire.send_binary(&mut self.out, &Binary::Input(at, keys))?)
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
        while is_readable(self.wire.as_fd(), Duration::ZERO) {
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
        Ok(self.wire.send_text(&mut self.out, &serde_json::to_string(message)?)?)
    }
}

impl AsFd for Viewer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}
