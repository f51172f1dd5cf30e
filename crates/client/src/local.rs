//! Dials a session on this machine: its socket while it runs, its files after it has ended.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bowline_host::archive::ArchiveError;
use bowline_host::control::Control;
use bowline_host::home::{Home, SessionDir};
use bowline_host::registry::{self, Entry};
use bowline_host::{archive, control, repair, session_archive};
use bowline_proto::close::{self, ConnectionEnd};
use bowline_proto::control::ScreenFormat;
use bowline_proto::session::State;
use serde_json::Value;

use crate::transport::{Dialer, Transport};
use crate::unix::UnixTransport;

/// How long a session process may take to exit after it has closed its connections.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

/// How long a session may take to send its screen; the viewer blocks meanwhile.
const SCREEN_TIMEOUT: Duration = Duration::from_millis(500);

/// Dials one session on this machine.
#[derive(Clone, Debug)]
pub struct LocalDialer {
    home: Home,
    dir: SessionDir,
    screen: Option<Value>,
}

impl LocalDialer {
    pub fn new(home: Home, dir: SessionDir) -> LocalDialer {
        LocalDialer { home, dir, screen: None }
    }

    fn screen(&self) -> Option<Value> {
        let screen = Control::screen(&self.dir, ScreenFormat::Json, 0, SCREEN_TIMEOUT).ok()?;
        serde_json::from_str(&screen).ok()
    }
}

impl Dialer for LocalDialer {
    fn dial(&mut self, _fresh_ticket: bool) -> Result<Box<dyn Transport>, ConnectionEnd> {
        let stream = match control::connect(&self.dir.address()) {
            Ok(stream) => stream,
            // Only its files and its lock prove that a session has ended; a refused connection does not.
            Err(_) => match registry::try_read(self.dir.clone()) {
                Ok(None) => return Err(forgotten()),
                Ok(Some(entry)) if entry.info.state != State::Running => {
                    session_archive::check(&entry).map_err(|error| unknown_kind(&error))?;
                    from_files(self.home.clone(), entry).map_err(|_| ConnectionEnd::Failed)?
                }
                Ok(Some(_)) | Err(_) => return Err(ConnectionEnd::Failed),
            },
        };
        Ok(Box::new(UnixTransport::new(stream).map_err(|_| ConnectionEnd::Failed)?))
    }

    /// A session process that ends closes its connections first and releases its lock last, a moment later.
    fn has_ended(&mut self) -> bool {
        let until = Instant::now() + EXIT_TIMEOUT;
        loop {
            match registry::try_read(self.dir.clone()) {
                Ok(Some(entry)) if entry.info.state == State::Running => {}
                Err(_) => {} // proves nothing
                Ok(_) => return true,
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(EXIT_TIMEOUT / 20);
        }
    }

    fn request_screen(&mut self) {
        self.screen = self.screen();
    }

    fn take_screen(&mut self) -> Option<Option<Value>> {
        Some(self.screen.take())
    }

    fn last_screen(&mut self) -> Option<Value> {
        // The process writes its screen to the file before it reports the exit. While it runs, request its screen
        // instead, because the file may be old if the disk is full.
        self.screen().or_else(|| serde_json::from_str(&archive::last_screen(&self.dir).ok()?.json).ok())
    }
}

/// Connects to an ended session, served from its files by a thread of this process. If its process died, what it left
/// open is ended first: a client that follows it may wait for that. If another process is changing the session, the
/// connection is closed, and the next one finds out what became of it.
fn from_files(home: Home, entry: Entry) -> io::Result<UnixStream> {
    let (here, there) = UnixStream::pair()?;
    let serve =
        move || repair::repair_if_needed(&home, entry).map_or(Ok(()), |entry| session_archive::serve(&entry, there));
    std::thread::Builder::new().name("archive".into()).spawn(serve)?;
    Ok(here)
}

fn unknown_kind(error: &ArchiveError) -> ConnectionEnd {
    ConnectionEnd::Code { code: close::NO_VERSION, reason: error.to_string(), done: false }
}

fn forgotten() -> ConnectionEnd {
    ConnectionEnd::Code { code: close::FORGOTTEN, reason: "the session was forgotten".to_owned(), done: false }
}
