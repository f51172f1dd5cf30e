//! Serves the viewers of ended sessions from the sessions' files, over a socket like that of a session process.

use std::io;
use std::time::{Duration, Instant};

use bowline_host::archive::Archive;
use bowline_host::registry::Entry;
use bytes::BytesMut;
use tokio::net::UnixStream;

use crate::problem::{Problem, internal};
use crate::relay;
use crate::sessions::blocking;

/// Connects to an ended session. A viewer that acknowledges nothing for `stalled_after` is closed with 4408.
pub(crate) async fn connect(entry: Entry, stalled_after: Duration) -> Result<UnixStream, Problem> {
    let archive = blocking(move || Ok(Archive::open(&entry, stalled_after)?)).await?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| internal(&error))?;
    // It ends when the other end of the socket is closed. The viewer sees an error only as the end of the connection.
    tokio::spawn(serve(archive, theirs));
    Ok(ours)
}

async fn serve(mut archive: Archive, stream: UnixStream) -> io::Result<()> {
    let origin = Instant::now();
    let mut received = BytesMut::new();
    loop {
        // Reading the log may wait for the disk.
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
