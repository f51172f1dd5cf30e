//! Serves the viewers of ended sessions from the sessions' files, over a socket like that of a session process.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bowline_host::archive::SharedScreen;
use bowline_host::registry::Entry;
use bowline_host::session_archive::SessionArchive;
use bowline_proto::ids::SessionId;
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
    let archive = blocking(move || {
        let shared = app.screens.get(&entry.info.id);
        Ok(SessionArchive::open(&entry, app.settings.limits.stalled_after, &mut lock(&shared))?)
    })
    .await?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| internal(&error))?;
    Ok((ours, serve(archive, theirs)))
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
