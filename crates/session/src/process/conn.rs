//! One connection on the session's socket: bytes in, frames out, never waiting.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::poll::Interest;

/// A connection that has more than this waiting to be sent gets nothing new until it drains.
pub(crate) const HIGH_WATER: usize = 64 << 10;

/// What a connection turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It has not said anything.
    New,
    /// A viewer.
    Viewer,
    /// It asks things about the session.
    Control {
        /// It wants to hear of changes.
        follows: bool,
    },
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: UnixStream,
    pub(crate) role: Role,
    /// What came, up to the first frame that is not whole.
    pub(crate) received: Vec<u8>,
    /// What the socket did not take yet.
    unsent: Vec<u8>,
    /// Nothing more is read or queued; it goes when `unsent` has gone.
    pub(crate) closing: bool,
    /// When it is cut, whatever is still to be sent.
    pub(crate) cut_at: Option<Instant>,
    /// What the poll waits for.
    pub(crate) interest: Interest,
}

/// What reading a connection brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Perhaps something.
    Open,
    /// Its end.
    Closed,
}

impl Conn {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Conn> {
        stream.set_nonblocking(true)?;
        Ok(Conn {
            stream,
            role: Role::New,
            received: Vec::new(),
            unsent: Vec::new(),
            closing: false,
            cut_at: None,
            interest: Interest::READ,
        })
    }

    /// Reads once, through `scratch`, which all connections share so that idle ones hold no memory.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> Input {
        match self.stream.read(scratch) {
            Ok(0) => Input::Closed,
            Ok(n) => {
                self.received.extend_from_slice(&scratch[..n]);
                Input::Open
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Input::Open,
            Err(_) => Input::Closed,
        }
    }

    /// Forgets the first bytes of what came.
    pub(crate) fn consume(&mut self, used: usize) {
        self.received.drain(..used);
        if self.received.is_empty() && self.received.capacity() > HIGH_WATER {
            self.received = Vec::new();
        }
    }

    /// Whether it may be given more to send.
    pub(crate) fn has_room(&self) -> bool {
        self.unsent.len() < HIGH_WATER
    }

    /// Whether everything has left.
    pub(crate) fn is_drained(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Sends `bytes` after what waits already; what the socket does not take is kept.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return self.flush();
        }
        let taken = self.write(bytes)?;
        self.unsent.extend_from_slice(&bytes[taken..]);
        Ok(())
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let unsent = std::mem::take(&mut self.unsent);
        let taken = self.write(&unsent)?;
        self.unsent = unsent;
        self.unsent.drain(..taken);
        if self.unsent.is_empty() {
            self.unsent = Vec::new();
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.stream.write(&bytes[taken..]) {
                Ok(n) => taken += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }
}
