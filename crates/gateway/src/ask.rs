//! Asking session processes, without a thread each: many at a time, and none for long.

use bowline_proto::problem::Code;
use std::io;
use std::time::Duration;

use bowline_host::control::{self, ControlError, STATUS_DEADLINE};
use bowline_host::home::SessionDir;
use bowline_host::registry::{self, Entry};
use bowline_proto::control::{Reply, Request};
use bowline_proto::session::{SessionInfo, State};
use futures_util::stream::{self, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::problem::Problem;
use crate::sessions::blocking;

/// Sessions asked at a time.
const AT_A_TIME: usize = 128;
/// The longest a session may take for anything else.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// A control connection.
#[derive(Debug)]
pub(crate) struct Asking {
    stream: UnixStream,
    buf: Vec<u8>,
}

impl Asking {
    /// Connects; that never waits.
    pub(crate) fn connect(dir: &SessionDir) -> Result<Asking, ControlError> {
        let stream = connect(dir).map_err(ControlError::Unreachable)?;
        Ok(Asking { stream, buf: Vec::new() })
    }

    /// Sends a request.
    pub(crate) async fn send(&mut self, request: &Request) -> Result<(), ControlError> {
        let wire = control::encode_request(request)?;
        self.stream.write_all(&wire).await.map_err(ControlError::Unreachable)
    }

    /// Waits for a reply. A refusal is an error.
    pub(crate) async fn reply(&mut self) -> Result<Reply, ControlError> {
        loop {
            if let Some(reply) = control::take_reply(&mut self.buf)? {
                // A follower waits long, and need not hold on to the room that its first reply took.
                self.buf.shrink_to(512);
                return Ok(reply);
            }
            self.stream.readable().await.map_err(ControlError::Unreachable)?;
            match self.stream.read_buf(&mut self.buf).await {
                Ok(0) => return Err(ControlError::Unreachable(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => return Err(ControlError::Unreachable(error)),
            }
        }
    }
}

/// A session's socket, for the runtime.
pub(crate) fn connect(dir: &SessionDir) -> io::Result<UnixStream> {
    let stream = control::connect(&dir.address())?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Asks one thing.
pub(crate) async fn ask(dir: &SessionDir, request: &Request, within: Duration) -> Result<Reply, ControlError> {
    let asked = async {
        let mut asking = Asking::connect(dir)?;
        asking.send(request).await?;
        asking.reply().await
    };
    tokio::time::timeout(within, asked).await.unwrap_or(Err(ControlError::Silent))
}

/// Asks a running session; `None` when it has ended, also if that was while it was asked.
pub(crate) async fn ask_running(entry: &Entry, request: &Request) -> Result<Option<Reply>, Problem> {
    if entry.info.state != State::Running {
        return Ok(None);
    }
    if !entry.here {
        return Err(elsewhere(entry));
    }
    match ask(&entry.dir, request, WITHIN).await {
        Ok(reply) => Ok(Some(reply)),
        Err(error @ ControlError::Unreachable(_)) => {
            let dir = entry.dir.clone();
            match blocking(move || Ok(registry::try_read(dir))).await? {
                Ok(Some(entry)) if entry.info.state != State::Running => Ok(None),
                Ok(None) => Err(Problem::new(Code::SessionGone, "the session was forgotten")),
                Ok(Some(_)) | Err(_) => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Another machine's session is shown, never touched.
pub(crate) fn elsewhere(entry: &Entry) -> Problem {
    Problem::new(Code::NotAllowed, format!("the session belongs to the machine {}", entry.meta.host))
}

/// The session as its process describes it, or as its files do.
pub(crate) async fn describe(entry: Entry) -> SessionInfo {
    describe_within(entry, STATUS_DEADLINE).await
}

/// The same, with more time for its process.
pub(crate) async fn describe_within(mut entry: Entry, within: Duration) -> SessionInfo {
    if entry.here && entry.info.state == State::Running {
        let status = ask(&entry.dir, &Request::Status { follow: false }, within).await;
        if let Ok(Reply::Status { session }) = status {
            entry.info = *session;
        }
    }
    entry.info
}

/// All of them, in their order.
pub(crate) async fn describe_all(entries: Vec<Entry>) -> Vec<SessionInfo> {
    stream::iter(entries).map(describe).buffered(AT_A_TIME).collect().await
}
