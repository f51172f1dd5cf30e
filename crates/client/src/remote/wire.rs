//! The byte stream below a WebSocket, over TCP or TLS.
//!
//! While connecting, reads and writes block until a deadline. After [`Wire::stop_blocking`] they never block: reads
//! come from memory, and written bytes are kept until the socket accepts them. TLS can buffer data that `poll` does
//! not see, so [`Wire::fill`] always decrypts everything that it has read.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::address::Address;

/// The most bytes per read.
const CHUNK: usize = 64 << 10;

/// A TCP or TLS connection to a gateway.
pub(super) struct Wire {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
    received: VecDeque<u8>,
    unsent: Vec<u8>,
    chunk: Box<[u8]>,
    /// While set, reads and writes block until this time; otherwise they never block.
    deadline: Option<Instant>,
    /// The other end has closed its side.
    ended: bool,
}

impl Wire {
    /// Connects. Everything up to [`Wire::stop_blocking`] must be done by `deadline`.
    pub(super) fn connect(address: &Address, tls: Option<&Arc<ClientConfig>>, deadline: Instant) -> io::Result<Wire> {
        let tcp = connect(address, deadline)?;
        tcp.set_nodelay(true)?;
        let tls = match tls {
            None => None,
            Some(config) => {
                let name = ServerName::try_from(address.host().to_owned()).map_err(io::Error::other)?;
                let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                // The caller bounds the unsent bytes.
                tls.set_buffer_limit(None);
                Some(Box::new(tls))
            }
        };
        let chunk = vec![0; CHUNK].into_boxed_slice();
        let deadline = Some(deadline);
        Ok(Wire { tcp, tls, received: VecDeque::new(), unsent: Vec::new(), chunk, deadline, ended: false })
    }

    /// Makes all later reads and writes non-blocking.
    pub(super) fn stop_blocking(&mut self) -> io::Result<()> {
        self.deadline = None;
        self.tcp.set_nonblocking(true)
    }

    /// The descriptor to poll.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }

    /// The number of bytes that the socket has not accepted yet.
    pub(super) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Moves pending TLS records to the unsent bytes.
    fn encrypt(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.unsent)?;
            }
        }
        Ok(())
    }

    /// Reads the socket once. The end of the stream is not an error here: `read` reports it after all received bytes.
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

    /// Writes unsent bytes, as far as the socket accepts them.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        self.encrypt()?;
        while !self.unsent.is_empty() {
            self.set_timeouts()?;
            match self.tcp.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && self.deadline.is_none() => break,
                // Unread bytes may say why the other end closed, so this is not an error yet.
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                    self.unsent.clear();
                }
                Err(error) => return Err(as_timeout(error)),
            }
        }
        Ok(())
    }

    /// While connecting, limits blocking calls to the time left.
    fn set_timeouts(&self) -> io::Result<()> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let left = deadline.saturating_duration_since(Instant::now());
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
            if self.deadline.is_none() {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.drain()?;
            self.set_timeouts()?;
            self.fill().map_err(as_timeout)?;
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

/// A blocking socket reports a timeout as `WouldBlock`, which would be mistaken for a non-blocking one.
fn as_timeout(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error }
}

/// Tries the host's addresses in turn, dividing the time left among them.
fn connect(address: &Address, deadline: Instant) -> io::Result<TcpStream> {
    let ips: Vec<_> = (address.host(), address.port()).to_socket_addrs()?.collect();
    let mut failed = io::Error::from(ErrorKind::NotFound);
    for (at, ip) in ips.iter().enumerate() {
        let share = deadline.saturating_duration_since(Instant::now()) / (ips.len() - at) as u32;
        match TcpStream::connect_timeout(ip, share.max(Duration::from_millis(1))) {
            Ok(tcp) => return Ok(tcp),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
