//! One connection on the session's socket: non-blocking reads and buffered writes.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::poll::Interest;

/// Frames for a connection are built in batches of about this many bytes. The next batch is built once the socket has
/// accepted the last one, so that a viewer that does not read costs one batch.
pub(crate) const BATCH: usize = 32 << 10;
/// A control connection with this many bytes to send is dropped instead of being sent another reply.
const MAX_UNREAD: usize = 64 << 10;

/// What a connection is for. Its first message decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing has been received yet.
    New,
    Viewer,
    /// It sends control requests. If it `follows`, it gets the session's description whenever that changes, and a short one
    /// if it is `brief`.
    Control {
        follows: bool,
        brief: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: UnixStream,
    pub(crate) role: Role,
    /// Received bytes that are not handled yet: at most one incomplete frame, between reads.
    pub(crate) received: Vec<u8>,
    /// Bytes that the socket has not accepted yet.
    outgoing: Vec<u8>,
    /// Nothing more is handled or queued; the connection is closed once `outgoing` is empty.
    pub(crate) closing: bool,
    /// When to close the connection even if `outgoing` is not empty.
    pub(crate) close_deadline: Option<Instant>,
    /// What the poll waits for on this connection.
    pub(crate) interest: Interest,
}

/// The outcome of one read of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnRead {
    /// Any number of bytes was read, perhaps none.
    Open,
    Closed,
}

impl Conn {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Conn> {
        stream.set_nonblocking(true)?;
        Ok(Conn {
            stream,
            role: Role::New,
            received: Vec::new(),
            outgoing: Vec::new(),
            closing: false,
            close_deadline: None,
            interest: Interest::READ,
        })
    }

    /// Reads once, through `scratch`. All connections share it, so that idle ones hold no buffer.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> ConnRead {
        match self.stream.read(scratch) {
            Ok(0) => ConnRead::Closed,
            Ok(n) => {
                self.received.extend_from_slice(&scratch[..n]);
                ConnRead::Open
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                ConnRead::Open
            }
            Err(_) => ConnRead::Closed,
        }
    }

    /// Removes the first `used` bytes of `received`.
    pub(crate) fn consume(&mut self, used: usize) {
        self.received.drain(..used);
        if self.received.is_empty() && self.received.capacity() > BATCH {
            self.received = Vec::new();
        }
    }

    /// Whether a reply may be queued.
    pub(crate) fn has_room(&self) -> bool {
        self.outgoing.len() < MAX_UNREAD
    }

    /// Whether the socket has accepted everything.
    pub(crate) fn is_drained(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Sends `bytes` after what is already buffered, and buffers what the socket does not accept.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.outgoing.is_empty() {
            self.outgoing.extend_from_slice(bytes);
            return self.flush();
        }
        let written = self.write(bytes)?;
        self.outgoing.extend_from_slice(&bytes[written..]);
        Ok(())
    }

    /// Sends what is buffered.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let outgoing = std::mem::take(&mut self.outgoing);
        let written = self.write(&outgoing)?;
        self.outgoing = outgoing;
        self.outgoing.drain(..written);
        if self.outgoing.is_empty() {
            self.outgoing = Vec::new();
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            match self.stream.write(&bytes[written..]) {
                Ok(n) => written += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }
}
