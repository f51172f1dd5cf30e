//! Carries the link over a unix socket, in length-prefixed frames.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use bowline_proto::Offset;
use bowline_proto::close::ConnectionEnd;
use bowline_proto::frame::{self, Binary, Frame};
use bowline_proto::message::ClientMessage;

use crate::transport::Transport;

/// While more bytes than this are unsent, [`Transport::has_room`] is false.
const HIGH_WATER: usize = 64 << 10;
/// The most bytes per read.
const CHUNK: usize = 64 << 10;

#[derive(Debug)]
pub struct UnixTransport {
    stream: UnixStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
}

impl UnixTransport {
    pub fn new(stream: UnixStream) -> io::Result<UnixTransport> {
        stream.set_nonblocking(true)?;
        Ok(UnixTransport { stream, received: Vec::new(), unsent: Vec::new() })
    }

    /// Passes every whole frame received so far to `take`.
    fn frames(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<(), ConnectionEnd> {
        let mut at = 0;
        while let Some((frame, used)) = Frame::decode(&self.received[at..]).map_err(|_| ConnectionEnd::Failed)? {
            take(frame);
            at += used;
        }
        self.received.drain(..at);
        Ok(())
    }
}

impl Transport for UnixTransport {
    fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn is_open(&self) -> bool {
        true
    }

    fn wants_write(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn has_room(&self) -> bool {
        self.unsent.len() < HIGH_WATER
    }

    fn send(&mut self, message: &ClientMessage) {
        frame::put_text(&mut self.unsent, &serde_json::to_string(message).unwrap_or_default());
    }

    fn send_input(&mut self, offset: Offset, bytes: &[u8]) {
        frame::put_binary(&mut self.unsent, &Binary::Input(offset, bytes));
    }

    fn flush(&mut self) -> Result<(), ConnectionEnd> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Unread frames may say why the other end closed, so this is not an error yet.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    self.unsent.clear();
                    break;
                }
                Err(_) => return Err(ConnectionEnd::Failed),
            }
        }
        Ok(())
    }

    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<(), ConnectionEnd> {
        let len = self.received.len();
        self.received.resize(len + CHUNK, 0);
        let read = self.stream.read(&mut self.received[len..]);
        self.received.truncate(len + *read.as_ref().unwrap_or(&0));
        self.frames(take)?;
        match read {
            Ok(0) => Err(ConnectionEnd::Failed),
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
            Err(_) => Err(ConnectionEnd::Failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_sent_and_received_whole() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut transport = UnixTransport::new(here).unwrap();
        transport.send(&ClientMessage::Repaint);
        transport.flush().unwrap();
        let mut wire = [0; 64];
        let got = there.read(&mut wire).unwrap();
        assert!(matches!(Frame::decode(&wire[..got]), Ok(Some((Frame::Text(r#"{"type":"repaint"}"#), _)))));

        let mut frames = Vec::new();
        frame::put_text(&mut frames, "{}");
        frame::put_binary(&mut frames, &Binary::Output(1, b"x"));
        let mut seen = 0;
        for byte in frames {
            there.write_all(&[byte]).unwrap();
            transport.receive(&mut |_| seen += 1).unwrap();
        }
        assert_eq!(seen, 2);
        drop(there);
        assert_eq!(transport.receive(&mut |_| seen += 1), Err(ConnectionEnd::Failed));
    }
}
