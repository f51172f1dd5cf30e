//! Sends control requests to a running session process over its socket, with a deadline.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bowline_proto::agent::approval::Answered;
use bowline_proto::control::{self, Reply, Request, ScreenFormat};
use bowline_proto::frame::{self, Frame};
use bowline_proto::problem::Code;
use bowline_proto::session::SessionInfo;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;

use crate::home::SessionDir;

/// How long a list waits for the status of one session, so that a hung process does not hang `ls`.
pub const STATUS_TIMEOUT: Duration = Duration::from_millis(250);

#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Connecting failed, or the connection was closed.
    #[error("cannot reach the session process: {0}")]
    Unreachable(#[source] io::Error),
    /// No reply arrived before the deadline.
    #[error("the session process does not answer")]
    TimedOut,
    #[error("the session process sent an unexpected reply")]
    Unexpected,
    #[error("{message}")]
    Refused {
        code: Code,
        message: String,
        /// How an approval was answered, if that is why.
        answered: Option<Answered>,
    },
}

/// A control connection.
#[derive(Debug)]
pub struct Control {
    stream: UnixStream,
    buf: Vec<u8>,
}

impl Control {
    pub fn connect(dir: &SessionDir) -> Result<Control, ControlError> {
        let stream = connect(&dir.address()).map_err(ControlError::Unreachable)?;
        Ok(Control { stream, buf: Vec::new() })
    }

    /// Sends a request and waits for the reply. A reply of type `error` becomes [`ControlError::Refused`].
    pub fn request(&mut self, request: &Request, deadline: Duration) -> Result<Reply, ControlError> {
        self.send(request, deadline)?;
        self.next_reply()
    }

    fn send(&mut self, request: &Request, deadline: Duration) -> Result<(), ControlError> {
        let wire = encode_request(request)?;
        self.stream.set_read_timeout(Some(deadline)).map_err(ControlError::Unreachable)?;
        self.stream.set_write_timeout(Some(deadline)).map_err(ControlError::Unreachable)?;
        self.stream.write_all(&wire).map_err(ControlError::Unreachable)
    }

    /// Waits for one more reply, such as `status` with `follow` sends.
    pub fn next_reply(&mut self) -> Result<Reply, ControlError> {
        parse_reply(&self.next_text()?)
    }

    fn next_text(&mut self) -> Result<String, ControlError> {
        loop {
            if let Some(text) = take_text(&mut self.buf)? {
                return Ok(text);
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ControlError::Unreachable(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => self.buf.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(ControlError::TimedOut);
                }
                Err(error) => return Err(ControlError::Unreachable(error)),
            }
        }
    }

    /// Requests the description of a running session.
    pub fn status(dir: &SessionDir, deadline: Duration) -> Result<SessionInfo, ControlError> {
        let mut control = Control::connect(dir)?;
        control.send(&Request::Status { follow: false, brief: false }, deadline)?;
        control.next_status()
    }

    /// Requests what lists show of running sessions, from all of them at the same time, so that several that hang cost
    /// little more time than one. Returns `None` for one that does not answer before the deadline.
    pub fn statuses<'a>(dirs: impl Iterator<Item = &'a SessionDir>, deadline: Duration) -> Vec<Option<SessionInfo>> {
        let until = Instant::now() + deadline;
        let request = Request::Status { follow: false, brief: true };
        let requested = dirs.map(|dir| {
            let mut control = Control::connect(dir)?;
            control.send(&request, deadline)?;
            Ok::<_, ControlError>(control)
        });
        let requested: Vec<_> = requested.collect();
        let answered = requested.into_iter().map(|requested| {
            let mut control = requested.ok()?;
            // A reply that has arrived already is read in any case.
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            control.stream.set_read_timeout(Some(left)).ok()?;
            control.next_status().ok()
        });
        answered.collect()
    }

    fn next_status(&mut self) -> Result<SessionInfo, ControlError> {
        match self.next_reply()? {
            Reply::Status { session } => Ok(*session),
            _ => Err(ControlError::Unexpected),
        }
    }

    /// Requests the screen of a running session: as text, or as the text of its JSON.
    pub fn screen(
        dir: &SessionDir,
        format: ScreenFormat,
        scrollback: u32,
        deadline: Duration,
    ) -> Result<String, ControlError> {
        let mut control = Control::connect(dir)?;
        control.send(&Request::Screen { format, scrollback }, deadline)?;
        read_screen(&control.next_text()?, format)
    }
}

/// Encodes a request as a frame.
pub fn encode_request(request: &Request) -> Result<Vec<u8>, ControlError> {
    let text = serde_json::to_string(request).map_err(|_| ControlError::Unexpected)?;
    let mut wire = Vec::new();
    frame::put_text(&mut wire, &text);
    Ok(wire)
}

/// Removes the text of the first reply from the bytes read so far; `None` until it is complete.
pub fn take_text(buf: &mut Vec<u8>) -> Result<Option<String>, ControlError> {
    let (text, used) = match Frame::decode(buf) {
        Ok(Some((Frame::Text(text), used))) => (text.to_owned(), used),
        Ok(None) => return Ok(None),
        Ok(Some((Frame::Binary(_), _))) | Err(_) => return Err(ControlError::Unexpected),
    };
    buf.drain(..used);
    Ok(Some(text))
}

/// Parses the text of a reply. One of type `error` becomes [`ControlError::Refused`].
pub fn parse_reply(text: &str) -> Result<Reply, ControlError> {
    match serde_json::from_str(text) {
        Ok(Reply::Error { code, message, answered }) => Err(ControlError::Refused { code, message, answered }),
        Ok(reply) => Ok(reply),
        Err(_) => Err(ControlError::Unexpected),
    }
}

/// The screen in the text of a reply: as text, or as the text of its JSON.
pub fn read_screen(reply: &str, format: ScreenFormat) -> Result<String, ControlError> {
    let Some(screen) = control::screen_in(reply) else {
        return parse_reply(reply).and(Err(ControlError::Unexpected));
    };
    match format {
        ScreenFormat::Text | ScreenFormat::Ansi => serde_json::from_str(screen).map_err(|_| ControlError::Unexpected),
        ScreenFormat::Json => Ok(screen.to_owned()),
    }
}

/// Whether a process listens at the session's socket, even if it hangs.
pub fn is_listening(dir: &SessionDir) -> bool {
    use rustix::io::Errno;
    match connect(&dir.address()) {
        Ok(_) => true,
        // Its queue of connections is full, or this process cannot open a socket to find out.
        Err(error) => {
            let errno = Errno::from_io_error(&error);
            matches!(errno, Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS))
        }
    }
}

/// The process that listens at the session's socket.
pub fn listener(dir: &SessionDir) -> Option<Pid> {
    Some(rustix::net::sockopt::socket_peercred(connect(&dir.address()).ok()?).ok()?.pid)
}

/// Connects without blocking. (If a process no longer accepts connections and its queue is full, a plain connect would
/// hang.)
pub fn connect(address: &Path) -> io::Result<UnixStream> {
    let kind = (AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
    let socket = rustix::net::socket_with(kind.0, kind.1, kind.2, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(address)?)?;
    // Never send input to a process of another user, even if it listens at that path.
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
    use bowline_proto::frame::Binary;
    use bowline_proto::ids::SessionId;

    use super::*;
    use crate::home::Home;

    fn wire(replies: &[&str]) -> Vec<u8> {
        let mut wire = Vec::new();
        replies.iter().for_each(|text| frame::put_text(&mut wire, text));
        wire
    }

    #[test]
    fn replies_are_decoded_one_by_one_however_they_arrive() {
        let all = wire(&[
            r#"{"type":"ending"}"#,
            r#"{"type":"error","code":"bad_request","message":"no"}"#,
            r#"{"type":"done"}"#,
        ]);
        for read in [1, 7, all.len()] {
            let (mut buf, mut taken) = (Vec::new(), Vec::new());
            for part in all.chunks(read) {
                buf.extend_from_slice(part);
                while let Some(text) = take_text(&mut buf).unwrap() {
                    match parse_reply(&text) {
                        Ok(reply) => taken.push(format!("{reply:?}")),
                        Err(ControlError::Refused { message, .. }) => taken.push(message),
                        Err(error) => panic!("{error}, {read} bytes at a time"),
                    }
                }
            }
            assert_eq!(taken, ["Ending", "no", "Done"], "{read} bytes at a time");
            assert!(buf.is_empty());
        }
    }

    /// Each process answers only after all of them were asked.
    #[test]
    fn r52_sessions_are_asked_for_their_status_at_the_same_time() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        home.ensure().unwrap();
        let dirs: Vec<SessionDir> = (0..3).map(|n| home.session(&SessionId::from_random([n; 12]))).collect();
        let listeners = dirs.iter().map(|dir| {
            std::fs::create_dir(dir.path()).unwrap();
            std::os::unix::net::UnixListener::bind(dir.address()).unwrap()
        });
        let listeners: Vec<_> = listeners.collect();
        let processes = std::thread::spawn(move || {
            let mut asked: Vec<UnixStream> = listeners.iter().map(|listener| listener.accept().unwrap().0).collect();
            let request = encode_request(&Request::Status { follow: false, brief: true }).unwrap();
            asked.iter_mut().for_each(|process| process.read_exact(&mut vec![0; request.len()]).unwrap());
            // The second one hangs up.
            asked.remove(1);
            let session = r#"{"id":"aaaaaaaaaaaa","name":null,"kind":"terminal","state":"running","created":"","cwd":"/",
                "title":"","epoch":"9f3c61d2","version":"0.1.0"}"#;
            for (n, process) in asked.iter_mut().enumerate() {
                let session = session.replacen(r#""title":"""#, &format!(r#""title":"{n}""#), 1);
                process.write_all(&wire(&[&format!(r#"{{"type":"status","session":{session}}}"#)])).unwrap();
            }
        });
        let infos = Control::statuses(dirs.iter(), Duration::from_secs(60));
        let titles: Vec<_> = infos.into_iter().map(|info| Some(info?.title)).collect();
        assert_eq!(titles, [Some("0".to_owned()), None, Some("1".to_owned())]);
        processes.join().unwrap();
    }

    #[test]
    fn a_screen_is_read_in_each_format_and_a_refusal_stays_one() {
        let read = |reply: &str, format| read_screen(reply, format).map_err(|error| error.to_string());
        let text = control::screen_reply(r#""one\ntwo""#);
        assert_eq!(read(&text, ScreenFormat::Text), Ok("one\ntwo".into()));
        assert_eq!(read(&control::screen_reply("{}"), ScreenFormat::Json), Ok("{}".into()));
        let refused = r#"{"type":"error","code":"too_large","message":"too large"}"#;
        assert_eq!(read(refused, ScreenFormat::Json), Err("too large".into()));
        for unexpected in [r#"{"type":"done"}"#, "", &control::screen_reply("{}")] {
            assert_eq!(read(unexpected, ScreenFormat::Ansi), Err(ControlError::Unexpected.to_string()));
        }
    }

    #[test]
    fn an_invalid_reply_is_an_error_at_once() {
        let mut binary = Vec::new();
        frame::put_binary(&mut binary, &Binary::Output(0, b"x"));
        for mut buf in [binary, wire(&["{}"]), wire(&["not json"]), vec![0, 0, 0, 1, 9], vec![0xff; frame::HEADER]] {
            let reply = take_text(&mut buf).and_then(|text| parse_reply(&text.unwrap()));
            assert!(matches!(reply, Err(ControlError::Unexpected)), "{buf:?}");
        }
    }
}
