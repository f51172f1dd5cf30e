//! A minimal blocking viewer of a session, over any connection.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bowline_proto::config::ACK_BYTES;
use bowline_proto::frame::{Binary, Frame};
use bowline_proto::ids::{ClientId, Epoch};
use bowline_proto::message::{ClientMessage, Cursor, Hello, Lag, ServerMessage, VERSION, Verdict};
use bowline_proto::size::Size;

use crate::pty::{COLS, MarkFinder, ROWS, is_readable};
use crate::wire::{Route, Wire};

/// The size of the receive buffer, in bytes; it grows if a frame is larger.
const READ: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Viewer {
    wire: Wire,
    client: ClientId,
    conn: u64,
    lag: Lag,
    epoch: Option<Epoch>,
    received: Vec<u8>,
    /// How many bytes of `received` are in use.
    filled: usize,
    /// The offset of the next output byte.
    offset: u64,
    acked: u64,
    input: u64,
    /// Bytes of the current snapshot that are not received yet.
    snapshot_left: u64,
    /// Snapshots in place of output, not counting the one of the attach.
    skipped: u32,
    /// All bytes received, messages and frames included.
    bytes_received: u64,
    /// Of the last attach.
    verdict: Option<Verdict>,
    is_attached: bool,
    out: Vec<u8>,
}

/// The cost of an attach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttachCost {
    /// From the connect to the last byte of the snapshot.
    pub(crate) took: Duration,
    /// All bytes received, messages and frames included.
    pub(crate) bytes: u64,
}

impl Viewer {
    /// Attaches, and waits until `mark` is on the screen.
    pub(crate) fn attach_and_wait(route: &dyn Route, lag: Lag, mark: &[u8]) -> Result<Viewer> {
        let (mut finder, mut found) = (MarkFinder::default(), false);
        let (mut viewer, _) = Viewer::dial(route, lag, 0, |bytes| found |= finder.find(mark, bytes))?;
        while !found {
            viewer.receive(|bytes| found |= finder.find(mark, bytes))?;
        }
        Ok(viewer)
    }

    /// Attaches, and waits for the whole snapshot.
    pub(crate) fn attach(route: &dyn Route, lag: Lag, scrollback: u32) -> Result<(Viewer, AttachCost)> {
        Viewer::dial(route, lag, scrollback, |_| {})
    }

    fn dial(
        route: &dyn Route,
        lag: Lag,
        scrollback: u32,
        mut render: impl FnMut(&[u8]),
    ) -> Result<(Viewer, AttachCost)> {
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let begun = Instant::now();
        let mut viewer = Viewer {
            wire: route.connect()?,
            client: ClientId::from_random(random),
            conn: 0,
            lag,
            epoch: None,
            received: vec![0; READ],
            filled: 0,
            offset: 0,
            acked: 0,
            input: 0,
            snapshot_left: 0,
            skipped: 0,
            bytes_received: 0,
            verdict: None,
            is_attached: false,
            out: Vec::new(),
        };
        viewer.say_hello(scrollback, &mut render)?;
        let cost = AttachCost { took: begun.elapsed(), bytes: viewer.bytes_received };
        Ok((viewer, cost))
    }

    /// Reconnects and resumes at the current offset. Returns whether the verdict is `exact`.
    pub(crate) fn reconnect(&mut self, route: &dyn Route) -> Result<bool> {
        self.wire = route.connect()?;
        (self.filled, self.is_attached) = (0, false);
        self.say_hello(0, &mut |_: &[u8]| {})?;
        Ok(self.verdict == Some(Verdict::Exact))
    }

    /// Sends the hello on a new connection, and waits for the whole snapshot, if there is one.
    fn say_hello(&mut self, scrollback: u32, render: &mut impl FnMut(&[u8])) -> Result<()> {
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
        self.wire.set_read_timeout()?;
        self.send(&ClientMessage::Hello(hello))?;
        while !self.is_attached || self.snapshot_left > 0 {
            self.receive(&mut *render)?;
        }
        Ok(())
    }

    /// The offset up to which output was received.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads from the connection once, and passes output and snapshot bytes to `render`. Blocks until there is data.
    pub(crate) fn receive(&mut self, mut render: impl FnMut(&[u8])) -> Result<()> {
        let n = self.wire.read(&mut self.received[self.filled..])?;
        if n == 0 {
            bail!("the session closed the connection");
        }
        self.bytes_received += n as u64;
        self.filled += n;
        let received = std::mem::take(&mut self.received);
        let mut at = 0;
        while let Some((frame, used)) = self.wire.decode(&received[at..self.filled])? {
            at += used;
            match frame {
                Frame::Text(text) => self.handle_message(&serde_json::from_str(text)?)?,
                Frame::Binary(payload) => self.handle_binary(Binary::decode(payload)?, &mut render)?,
            }
        }
        self.received = received;
        self.received.copy_within(at..self.filled, 0);
        self.filled -= at;
        if self.received.len() - self.filled < READ / 2 {
            self.received.resize(self.received.len() + READ, 0);
        }
        if self.offset - self.acked >= ACK_BYTES {
            self.acknowledge()?;
        }
        Ok(())
    }

    fn handle_binary(&mut self, binary: Binary<'_>, render: &mut impl FnMut(&[u8])) -> Result<()> {
        match binary {
            Binary::Output(from, bytes) => {
                if from != self.offset {
                    bail!("output at offset {from}, expected {}", self.offset);
                }
                self.offset += bytes.len() as u64;
                render(bytes);
            }
            Binary::Snapshot(part) => {
                render(part);
                self.snapshot_left = self.snapshot_left.saturating_sub(part.len() as u64);
                if self.snapshot_left == 0 {
                    self.acknowledge()?;
                }
            }
            Binary::Input(..) => bail!("the session sent an input frame"),
        }
        Ok(())
    }

    fn handle_message(&mut self, message: &ServerMessage) -> Result<()> {
        match message {
            ServerMessage::Attached(attached) => {
                self.is_attached = true;
                self.epoch = Some(attached.epoch.clone());
                self.verdict = Some(attached.verdict);
                self.offset = attached.offset;
                self.acked = attached.offset;
                self.input = attached.input.unwrap_or(0);
                self.snapshot_left = attached.snapshot.map_or(0, |snapshot| snapshot.bytes);
            }
            ServerMessage::Snapshot { offset, bytes, .. } => {
                self.offset = *offset;
                self.snapshot_left = *bytes;
                self.skipped += 1;
            }
            ServerMessage::Ping { n } => self.send(&ClientMessage::Pong { n: *n })?,
            ServerMessage::Error { code, message, .. } => bail!("the session reported {code}: {message}"),
            ServerMessage::Close { code, reason } => bail!("the session closed the connection with {code}: {reason}"),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, keys: &[u8]) -> Result<()> {
        let at = self.input;
        self.input += keys.len() as u64;
        Ok(self.wire.send_binary(&mut self.out, &Binary::Input(at, keys))?)
    }

    /// Receives up to and including `mark`. Returns the number of rendered bytes.
    pub(crate) fn read_until(&mut self, mark: &[u8]) -> Result<u64> {
        let (mut finder, mut found, mut total) = (MarkFinder::default(), false, 0);
        while !found {
            self.receive(|bytes| {
                total += bytes.len() as u64;
                found |= finder.find(mark, bytes);
            })?;
        }
        Ok(total)
    }

    /// Receives everything that is available now.
    pub(crate) fn drain(&mut self) -> Result<()> {
        while is_readable(self.wire.as_fd(), Duration::ZERO) {
            self.receive(|_| {})?;
        }
        Ok(())
    }

    /// The number of snapshots in place of output.
    pub(crate) fn skipped(&self) -> u32 {
        self.skipped
    }

    fn acknowledge(&mut self) -> Result<()> {
        self.acked = self.offset;
        self.send(&ClientMessage::Ack { output: self.offset })
    }

    fn send(&mut self, message: &ClientMessage) -> Result<()> {
        Ok(self.wire.send_text(&mut self.out, &serde_json::to_string(message)?)?)
    }
}

impl AsFd for Viewer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}
