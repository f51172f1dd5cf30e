//! Asking a living session process something over its socket, with a deadline.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bowline_proto::control::{Reply, Request, ScreenFormat};
use bowline_proto::frame::{self, Frame};
use bowline_proto::problem::Code;
use bowline_proto::session::SessionInfo;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::Value;

use crate::home::SessionDir;

/// How long a list waits for one session: a process that hangs must not hang `ls`.
pub const STATUS_DEADLINE: Duration = Duration::from_millis(250);

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens.
    #[error("the session process cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// It listens, but does not answer.
    #[error("the session process does not answer")]
    Silent,
    /// It answered with something else.
    #[error("the session process answered with something unexpected")]
    Unexpected,
    /// It refused.
    #[error("{message}")]
    Refused {
        /// A problem code.
        code: Code,
        /// For people.
        message: String,
    },
}

/// A control connection.
#[derive(Debug)]
pub struct Control {
    stream: UnixStream,
    buf: Vec<u8>,
}

impl Control {
    /// Connects to a session process.
    pub fn connect(dir: &SessionDir) -> Result<Control, ControlError> {
        let stream = connect(&dir.address()).map_err(ControlError::Unreachable)?;
        Ok(Control { stream, buf: Vec::new() })
    }

    /// Sends a request and waits for its reply. A refusal is an error.
    pub fn request(&mut self, request: &Request, deadline: Duration) -> Result<Reply, ControlError> {
        let wire = encode_request(request)?;
        self.stream.set_read_timeout(Some(deadline)).map_err(ControlError::Unreachable)?;
        self.stream.set_write_timeout(Some(deadline)).map_err(ControlError::Unreachable)?;
        self.stream.write_all(&wire).map_err(ControlError::Unreachable)?;
        self.next_reply()
    }

    /// Waits for one more reply, as `status` with `follow` gives.
    pub fn next_reply(&mut self) -> Result<Reply, ControlError> {
        loop {
            if let Some(reply) = take_reply(&mut self.buf)? {
                return Ok(reply);
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ControlError::Unreachable(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => self.buf.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(ControlError::Silent);
                }
                Err(error) => return Err(ControlError::Unreachable(error)),
            }
        }
    }

    /// A living session's description.
    pub fn status(dir: &SessionDir, deadline: Duration) -> Result<SessionInfo, ControlError> {
        match Control::connect(dir)?.request(&Request::Status { follow: false }, deadline)? {
            Reply::Status { session } => Ok(*session),
            _ => Err(ControlError::Unexpected),
        }
    }

    /// A living session's screen.
    pub fn screen(
        dir: &SessionDir,
        format: ScreenFormat,
        scrollback: u32,
        deadline: Duration,
    ) -> Result<Value, ControlError> {
        match Control::connect(dir)?.request(&Request::Screen { format, scrollback }, deadline)? {
            Reply::Screen { screen } => Ok(screen),
            _ => Err(ControlError::Unexpected),
        }
    }
}

/// A request as the bytes of its frame.
pub fn encode_request(request: &Request) -> Result<Vec<u8>, ControlError> {
    let text = serde_json::to_string(request).map_err(|_| ControlError::Unexpected)?;
    let mut wire = Vec::new();
    frame::put_text(&mut wire, &text);
    Ok(wire)
}

/// Takes the first reply out of the bytes read so far; `None` until it is complete. A refusal is an error.
pub fn take_reply(buf: &mut Vec<u8>) -> Result<Option<Reply>, ControlError> {
    let (reply, used) = match Frame::decode(buf) {
        Ok(Some((Frame::Text(text), used))) => (serde_json::from_str(text), used),
        Ok(None) => return Ok(None),
        Ok(Some((Frame::Binary(_), _))) | Err(_) => return Err(ControlError::Unexpected),
    };
    buf.drain(..used);
    match reply {
        Ok(Reply::Error { code, message }) => Err(ControlError::Refused { code, message }),
        Ok(reply) => Ok(Some(reply)),
        Err(_) => Err(ControlError::Unexpected),
    }
}

/// Connects without waiting: a process that stopped accepting has a full queue, on which a plain connect would hang.
pub fn connect(address: &Path) -> io::Result<UnixStream> {
    let kind = (AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
    let socket = rustix::net::socket_with(kind.0, kind.1, kind.2, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(address)?)?;
    // Nobody else's process gets to hear what is typed, whatever lies at that path.
    let (peer, me) = (rustix::net::sockopt::socket_peercred(&socket)?.uid, rustix::process::geteuid());
    if peer != me && !me.is_root() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_proto::frame::Binary;

    fn wire(replies: &[&str]) -> Vec<u8> {
        let mut wire = Vec::new();
        replies.iter().for_each(|text| frame::put_text(&mut wire, text));
        wire
    }

    #[test]
    fn replies_are_taken_one_by_one_however_they_arrive() {
        let all = wire(&[
            r#"{"type":"ending"}"#,
            r#"{"type":"error","code":"bad_request","message":"no"}"#,
            r#"{"type":"done"}"#,
        ]);
        for read in [1, 7, all.len()] {
            let (mut buf, mut taken) = (Vec::new(), Vec::new());
            for part in all.chunks(read) {
                buf.extend_from_slice(part);
                loop {
                    match take_reply(&mut buf) {
                        Ok(None) => break,
                        Ok(Some(reply)) => taken.push(format!("{reply:?}")),
                        Err(ControlError::Refused { message, .. }) => taken.push(message),
                        Err(error) => panic!("{error}, {read} bytes at a time"),
                    }
                }
            }
            assert_eq!(taken, ["Ending", "no", "Done"], "{read} bytes at a time");
            assert!(buf.is_empty());
        }
    }

    #[test]
    fn what_is_no_reply_is_an_error_and_never_waited_for() {
        let mut binary = Vec::new();
        frame::put_binary(&mut binary, &Binary::Output(0, b"x"));
        for mut buf in [binary, wire(&["{}"]), wire(&["not json"]), vec![0, 0, 0, 1, 9], vec![0xff; frame::HEADER]] {
            assert!(matches!(take_reply(&mut buf), Err(ControlError::Unexpected)), "{buf:?}");
        }
    }
}
