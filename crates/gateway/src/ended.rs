//! Serves the viewers of ended sessions from the sessions' files, over a socket like that of a session process.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bowline_host::archive::{Archive, SharedScreen};
use bowline_host::registry::Entry;
use bowline_host::transcript::TranscriptArchive;
use bowline_proto::ids::SessionId;
use bowline_proto::session::Kind;
use bytes::BytesMut;
use tokio::net::UnixStream;

use crate::app::App;
use crate::places::Place;
use crate::problem::{Problem, internal};
use crate::relay;
use crate::sessions::blocking;

/// The last screens of ended sessions that viewers keep in memory.
#[derive(Default)]
pub(crate) struct Screens(Mutex<HashMap<SessionId, Arc<Mutex<SharedScreen>>>>);

impl Screens {
    fn get(&self, id: &SessionId) -> Arc<Mutex<SharedScreen>> {
        let mut screens = lock(&self.0);
        // One that is being read has another owner, and is not locked here.
        screens.retain(|_, screen| Arc::strong_count(screen) > 1 || lock(screen).is_held());
        Arc::clone(screens.entry(id.clone()).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects to an ended session. The viewer of a terminal that acknowledges nothing for `stalled_after` is closed with
/// 4408.
pub(crate) async fn connect(app: App, entry: Entry) -> Result<UnixStream, Problem> {
    let (ours, served) = open(app, entry).await?;
    tokio::spawn(served);
    Ok(ours)
}

/// Like [`connect`], but the connection is cut when the place is displaced.
pub(crate) async fn connect_while(place: Place<String>, app: App, entry: Entry) -> Result<UnixStream, Problem> {
    let (ours, served) = open(app, entry).await?;
    tokio::spawn(async move {
        tokio::select! {
            served = served => served,
            () = place.displaced() => Ok(()),
        }
    });
    Ok(ours)
}

/// Opens the session's files. Returns one end of a socket, and what serves the other end until the first is closed. An
/// error then shows only as the end of the connection.
async fn open(
    app: App,
    entry: Entry,
) -> Result<(UnixStream, impl Future<Output = io::Result<()>> + Send + 'static), Problem> {
    let archive = blocking(move || SessionArchive::open(&app, &entry)).await?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| internal(&error))?;
    Ok((ours, serve(archive, theirs)))
}

/// The files of an ended session, and its one viewer.
enum SessionArchive {
    Terminal(Box<Archive>),
    Agent(Box<TranscriptArchive>),
}

impl SessionArchive {
    fn open(app: &App, entry: &Entry) -> Result<SessionArchive, Problem> {
        if entry.info.kind == Kind::Agent {
            let archive = TranscriptArchive::open(entry).map_err(|error| internal(&error))?;
            return Ok(SessionArchive::Agent(Box::new(archive)));
        }
        let shared = app.screens.get(&entry.info.id);
        let archive = Archive::open(entry, app.settings.limits.stalled_after, &mut lock(&shared))?;
        Ok(SessionArchive::Terminal(Box::new(archive)))
    }

    fn handle_bytes(&mut self, bytes: &[u8], now: Duration) -> bool {
        match self {
            SessionArchive::Terminal(archive) => archive.handle_bytes(bytes, now),
            SessionArchive::Agent(archive) => archive.handle_bytes(bytes, now),
        }
    }

    fn poll_frames(&mut self, frames: &mut Vec<u8>, now: Duration) -> bool {
        match self {
            SessionArchive::Terminal(archive) => archive.poll_frames(frames, now),
            SessionArchive::Agent(archive) => archive.poll_frames(frames, now),
        }
    }

    fn poll_timeout(&self) -> Duration {
        match self {
            SessionArchive::Terminal(archive) => archive.poll_timeout(),
            SessionArchive::Agent(archive) => archive.poll_timeout(),
        }
    }
}

async fn serve(mut archive: SessionArchive, stream: UnixStream) -> io::Result<()> {
    let origin = Instant::now();
    let mut received = BytesMut::new();
    loop {
        // Reading the files may wait for the disk.
        let work = tokio::task::spawn_blocking(move || {
            let mut frames = Vec::new();
            let last = archive.poll_frames(&mut frames, origin.elapsed());
            (archive, frames, last)
        });
        let (polled, frames, last) = work.await?;
        archive = polled;
        relay::send(&stream, &frames).await?;
        if last {
            return Ok(());
        }
        if !frames.is_empty() {
            continue;
        }
        let wait = archive.poll_timeout().saturating_sub(origin.elapsed());
        if let Ok(read) = tokio::time::timeout(wait, relay::receive(&stream, &mut received)).await
            && (read? == 0 || !archive.handle_bytes(&received.split(), origin.elapsed()))
        {
            return Ok(());
        }
    }
}
