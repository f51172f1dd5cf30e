//! One session of the board: followed while its process lives, read from its files otherwise.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bowline_host::control::ControlError;
use bowline_host::home::SessionDir;
use bowline_host::registry::{self, Entry};
use bowline_proto::control::{Reply, Request};
use bowline_proto::session::{SessionInfo, State};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::Shared;
use crate::ask::{self, Asking};

/// A process that says nothing for this long is described by its files until it does.
const STATUS_WITHIN: Duration = Duration::from_millis(250);
/// The least time between two changes of one session, so that a program that sets its title without end floods nobody.
const PACE: Duration = Duration::from_millis(200);
/// How long to wait before asking again: at first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(5));

/// Keeps a session on the board until its folder is gone. `nudge` says that its files may have changed.
pub(super) async fn keep(shared: Arc<Shared>, dir: SessionDir, nudge: Arc<Notify>) {
    let mut again = AGAIN.0;
    let mut place = None;
    loop {
        let entry = match read(&shared, &dir).await {
            Ok(entry) => entry,
            Err(error) => {
                // What is known stays: that it cannot be read now does not make it gone. Nobody waits for it.
                tracing::warn!(%error, "a session's files cannot be read");
                shared.known().settle(dir.id(), false);
                tokio::select! { () = sleep(AGAIN.1) => {}, () = nudge.notified() => {} }
                continue;
            }
        };
        match entry {
            Some(entry) if entry.here && entry.info.state == State::Running => {
                place = place.or_else(|| shared.followers.try_acquire().ok());
                if place.is_none() {
                    look(&shared, &entry).await;
                    tokio::select! {
                        () = sleep(AGAIN.1) => {}
                        () = nudge.notified() => {}
                        free = shared.followers.acquire() => place = free.ok(),
                    }
                    continue;
                }
                if follow(&shared, &entry, &nudge).await {
                    again = AGAIN.0;
                }
                // Its socket closes a moment before its lock tells why.
                tokio::select! { () = sleep(again) => {}, () = nudge.notified() => {} }
                again = (again * 2).min(AGAIN.1);
            }
            Some(entry) => {
                place = None;
                shared.known().put(entry.info);
                nudge.notified().await;
                again = AGAIN.0;
            }
            None => {
                place = None;
                shared.known().remove(dir.id());
                if !dir.path().exists() {
                    return;
                }
                // It is just being made, or half removed: the last step of either is noticed.
                nudge.notified().await;
            }
        }
    }
}

/// What its files say.
async fn read(shared: &Shared, dir: &SessionDir) -> io::Result<Option<Entry>> {
    let _turn = shared.readers.acquire().await.map_err(io::Error::other)?;
    let dir = dir.clone();
    tokio::task::spawn_blocking(move || registry::try_read(dir)).await.map_err(io::Error::other)?
}

/// Asks a session that there is no place to follow.
async fn look(shared: &Shared, entry: &Entry) {
    let _turn = shared.askers.acquire().await;
    match ask::ask(&entry.dir, &Request::Status { follow: false }, STATUS_WITHIN).await {
        Ok(Reply::Status { session }) => shared.known().put(*session),
        _ => describe(shared, entry),
    }
}

/// Puts what its files say. What its process said last is better than that.
fn describe(shared: &Shared, entry: &Entry) {
    let mut known = shared.known();
    if !known.has_life(&entry.info) {
        known.put(entry.info.clone());
    }
}

/// Follows a session's process until it is gone; whether it said anything.
async fn follow(shared: &Shared, entry: &Entry, nudge: &Notify) -> bool {
    let ask = async {
        let mut asking = Asking::connect(&entry.dir)?;
        asking.send(&Request::Status { follow: true }).await?;
        Ok::<_, ControlError>(asking)
    };
    let mut silence = Some(Instant::now() + STATUS_WITHIN);
    let asked = tokio::select! {
        asked = ask => asked,
        () = sleep(STATUS_WITHIN) => Err(ControlError::Silent),
    };
    let Ok(mut asking) = asked else {
        describe(shared, entry);
        return false;
    };
    let mut held: Option<SessionInfo> = None;
    let mut free_at = Instant::now();
    let mut heard = false;
    loop {
        tokio::select! {
            reply = asking.reply() => match reply {
                Ok(Reply::Status { session }) => {
                    (heard, silence) = (true, None);
                    held = Some(*session);
                }
                Ok(_) => {}
                Err(_) => {
                    match held {
                        Some(info) => shared.known().put(info),
                        None if !heard => describe(shared, entry),
                        None => {}
                    }
                    return heard;
                }
            },
            () = sleep_until(free_at), if held.is_some() => {
                if let Some(info) = held.take() {
                    shared.known().put(info);
                }
                free_at = Instant::now() + PACE;
            }
            () = sleep_until(silence.unwrap_or(free_at)), if silence.is_some() => {
                silence = None;
                describe(shared, entry);
            }
            () = nudge.notified() => {
                if !entry.dir.path().exists() {
                    return heard;
                }
            }
        }
    }
}
