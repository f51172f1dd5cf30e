//! Control requests to session processes. Each has a timeout, and none needs a thread.

use bowline_proto::problem::Code;
use std::io;
use std::time::Duration;

use bowline_host::control::{self, ControlError, STATUS_TIMEOUT};
use bowline_host::home::SessionDir;
use bowline_host::registry::{self, Entry};
use bowline_proto::control::{Reply, Request, ScreenFormat};
use bowline_proto::session::{SessionInfo, State};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::problem::Problem;
use crate::sessions::blocking;

/// The timeout for a request other than a status.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct ControlConnection {
    stream: UnixStream,
    buf: Vec<u8>,
}

impl ControlConnection {
    /// Connects without blocking.
    pub(crate) fn connect(dir: &SessionDir) -> Result<ControlConnection, ControlError> {
        let stream = connect(dir).map_err(ControlError::Unreachable)?;
        Ok(ControlConnection { stream, buf: Vec::new() })
    }

    pub(crate) async fn send(&mut self, request: &Request) -> Result<(), ControlError> {
        let wire = control::encode_request(request)?;
        self.stream.write_all(&wire).await.map_err(ControlError::Unreachable)
    }

    /// Waits for the next reply. A refusal is returned as an error.
    pub(crate) async fn reply(&mut self) -> Result<Reply, ControlError> {
        control::parse_reply(&self.text().await?)
    }

    /// Waits for the text of the next reply.
    async fn text(&mut self) -> Result<String, ControlError> {
        loop {
            if let Some(text) = control::take_text(&mut self.buf)? {
                // A connection that follows a session stays open for long, and later replies are small.
                self.buf.shrink_to(512);
                return Ok(text);
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

/// Connects to a session's socket without blocking.
pub(crate) fn connect(dir: &SessionDir) -> io::Result<UnixStream> {
    let stream = control::connect(&dir.address())?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Sends one request and waits for its reply.
pub(crate) async fn request(dir: &SessionDir, request: &Request, timeout: Duration) -> Result<Reply, ControlError> {
    control::parse_reply(&request_text(dir, request, timeout).await?)
}

/// Sends one request and waits for the text of its reply.
async fn request_text(dir: &SessionDir, request: &Request, timeout: Duration) -> Result<String, ControlError> {
    let exchange = async {
        let mut connection = ControlConnection::connect(dir)?;
        connection.send(request).await?;
        connection.text().await
    };
    tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(ControlError::TimedOut))
}

/// Sends a request to a running session. Returns `None` if the session has ended, before or during the request.
pub(crate) async fn request_running(entry: &Entry, request: &Request) -> Result<Option<Reply>, Problem> {
    let text = request_running_text(entry, request).await?;
    Ok(text.map(|text| control::parse_reply(&text)).transpose()?)
}

/// Requests the screen of a running session, as text or as the text of its JSON. Returns `None` if it has ended.
pub(crate) async fn screen(entry: &Entry, format: ScreenFormat, scrollback: u32) -> Result<Option<String>, Problem> {
    let text = request_running_text(entry, &Request::Screen { format, scrollback }).await?;
    Ok(text.map(|text| control::read_screen(&text, format)).transpose()?)
}

async fn request_running_text(entry: &Entry, request: &Request) -> Result<Option<String>, Problem> {
    if !entry.is_local {
        return Err(wrong_machine(entry));
    }
    if entry.info.state != State::Running {
        return Ok(None);
    }
    match request_text(&entry.dir, request, REQUEST_TIMEOUT).await {
        Ok(text) => Ok(Some(text)),
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

/// The error for a request that would touch another machine's session. Such sessions are read-only here.
pub(crate) fn wrong_machine(entry: &Entry) -> Problem {
    Problem::new(Code::NotAllowed, format!("the session belongs to the machine {}", entry.meta.host))
}

/// Describes a session by its process, or by its files if the process does not answer in time.
pub(crate) async fn describe(entry: Entry) -> SessionInfo {
    describe_within(entry, STATUS_TIMEOUT).await
}

/// Like [`describe`], with a timeout for the process.
pub(crate) async fn describe_within(entry: Entry, timeout: Duration) -> SessionInfo {
    if entry.is_local && entry.info.state == State::Running {
        let status = request(&entry.dir, &Request::Status { follow: false, brief: false }, timeout).await;
        if let Ok(Reply::Status { session }) = status {
            return *session;
        }
    }
    entry.info
}
