//! The bytes of a WebSocket, over TCP or TLS.
//!
//! While it connects, reading and writing wait, up to a moment. From then on nothing waits: what was received is read
//! from memory, what is written is kept until the socket takes it. TLS hides what has arrived from `poll`, so
//! [`Wire::fill`] always turns all of what it read into received bytes.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::address::Address;

/// The most that one read takes.
const CHUNK: usize = 64 << 10;

/// A connection to a gateway.
pub(super) struct Wire {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
    received: VecDeque<u8>,
    unsent: Vec<u8>,
    chunk: Box<[u8]>,
    /// Until then reading and writing wait; later they never do.
    patience: Option<Instant>,
    /// The other end has said its last.
    ended: bool,
}

impl Wire {
    /// Connects. Everything up to [`Wire::stop_waiting`] must be done by `until`.
    pub(super) fn connect(address: &Address, tls: Option<&Arc<ClientConfig>>, until: Instant) -> io::Result<Wire> {
        let tcp = connect(address, until)?;
        tcp.set_nodelay(true)?;
        let tls = match tls {
            None => None,
            Some(config) => {
                let name = ServerName::try_from(address.host().to_owned()).map_err(io::Error::other)?;
                let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                // What waits is bounded by whoever writes.
                tls.set_buffer_limit(None);
                Some(Box::new(tls))
            }
        };
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Ok(Wire { tcp, tls, received: VecDeque::new(), unsent: Vec::new(), chunk, patience: Some(until), ended: false })
    }

    /// From here on nothing waits.
    pub(super) fn stop_waiting(&mut self) -> io::Result<()> {
        self.patience = None;
        self.tcp.set_nonblocking(true)
    }

    /// What to wait on.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }

    /// Bytes that the socket has not taken.
    pub(super) fn waiting(&self) -> usize {
        self.unsent.len()
    }

    /// Makes what TLS has to say ready for the socket.
    fn encrypt(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.unsent)?;
            }
        }
        Ok(())
    }

    /// Reads the socket once. The end is no error here: it is read after everything that came before it.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        let read = match self.tcp.read(&mut self.chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            read => read?,
        };
        self.ended |= read == 0;
        let Some(tls) = &mut self.tls else {
            self.received.extend(&self.chunk[..read]);
            return Ok(());
        };
        let mut rest = &self.chunk[..read];
        while !rest.is_empty() {
            tls.read_tls(&mut rest)?;
            let state = tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            tls.reader().read_exact(&mut plain)?;
            self.received.extend(plain);
            if state.peer_has_closed() {
                self.ended = true;
                break;
            }
        }
        self.encrypt()
    }

    /// Writes what the socket takes.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        self.encrypt()?;
        while !self.unsent.is_empty() {
            self.wait_no_longer_than_allowed()?;
            match self.tcp.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && self.patience.is_none() => break,
                // What the other end said before it closed is still to be read, and says why.
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    self.unsent.clear();
                }
                Err(error) => return Err(late(error)),
            }
        }
        Ok(())
    }

    fn wait_no_longer_than_allowed(&self) -> io::Result<()> {
        let Some(until) = self.patience else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.tcp.set_read_timeout(Some(left))?;
        self.tcp.set_write_timeout(Some(left))
    }
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.received.is_empty() {
            if self.ended {
                return Ok(0);
            }
            if self.patience.is_none() {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.drain()?;
            self.wait_no_longer_than_allowed()?;
            self.fill().map_err(late)?;
        }
        self.received.read(buf)
    }
}

impl Write for Wire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => {
                let taken = tls.writer().write(buf)?;
                self.encrypt()?;
                Ok(taken)
            }
            None => {
                self.unsent.extend_from_slice(buf);
                Ok(buf.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.drain()
    }
}

/// A socket's time-out looks like a socket that does not wait; the two mean different things here.
fn late(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}

/// Tries each of the host's addresses, each with its share of the time that is left.
fn connect(address: &Address, until: Instant) -> io::Result<TcpStream> {
    let found: Vec<_> = (address.host(), address.port()).to_socket_addrs()?.collect();
    let mut failed = io::Error::from(ErrorKind::NotFound);
    for (at, ip) in found.iter().enumerate() {
        let share = until.saturating_duration_since(Instant::now()) / (found.len() - at) as u32;
        match TcpStream::connect_timeout(ip, share.max(Duration::from_millis(1))) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
