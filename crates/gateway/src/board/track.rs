//! Tracks one session for the board: follows its process while it runs, and reads its files otherwise.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bowline_host::control::ControlError;
use bowline_host::home::SessionDir;
use bowline_host::registry::{self, Entry};
use bowline_host::repair;
use bowline_proto::control::{Reply, Request};
use bowline_proto::session::{SessionInfo, State};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::Shared;
use crate::control::{self, ControlConnection};

/// After this long without a status from its process, a session is described by its files.
const STATUS_TIMEOUT: Duration = Duration::from_millis(250);
/// The least time between two changes of one session, so that a program that keeps setting its title does not flood
/// the subscribers.
const CHANGE_INTERVAL: Duration = Duration::from_millis(200);
/// The first wait before a retry.
const MIN_RETRY: Duration = Duration::from_millis(10);
/// The longest wait before a retry. Waits double up to this.
const MAX_RETRY: Duration = Duration::from_secs(5);

/// Tracks a session until its directory is removed. `nudge` is notified when its files may have changed.
pub(super) async fn track(shared: Arc<Shared>, dir: SessionDir, nudge: Arc<Notify>) {
    let mut retry = MIN_RETRY;
    let mut permit = None;
    loop {
        let entry = match read(&shared, &dir).await {
            Ok(entry) => entry,
            Err(error) => {
                // Keep the last known state, and do not let the board wait for this session: a failed read does not
                // prove that the session is gone.
                tracing::warn!(%error, "cannot read a session's files");
                shared.state().mark_read(dir.id(), false);
                tokio::select! { () = sleep(MAX_RETRY) => {}, () = nudge.notified() => {} }
                continue;
            }
        };
        match entry {
            Some(entry) if entry.is_local && entry.info.state == State::Running => {
                permit = permit.or_else(|| shared.followers.try_acquire().ok());
                if permit.is_none() {
                    poll(&shared, &entry).await;
                    tokio::select! {
                        () = sleep(MAX_RETRY) => {}
                        () = nudge.notified() => {}
                        freed = shared.followers.acquire() => permit = freed.ok(),
                    }
                    continue;
                }
                if follow(&shared, &entry, &nudge).await {
                    retry = MIN_RETRY;
                }
                // The socket closes a moment before the lock is released.
                tokio::select! { () = sleep(retry) => {}, () = nudge.notified() => {} }
                retry = (retry * 2).min(MAX_RETRY);
            }
            Some(entry) if repair::is_needed(&entry) => {
                permit = None;
                shared.state().put(entry.info.clone());
                if !repair_lost(&shared, entry).await {
                    tokio::select! { () = sleep(MAX_RETRY) => {}, () = nudge.notified() => {} }
                }
            }
            Some(entry) => {
                permit = None;
                shared.state().put(entry.info);
                nudge.notified().await;
                retry = MIN_RETRY;
            }
            None => {
                permit = None;
                shared.state().remove(dir.id());
                if !dir.path().exists() {
                    return;
                }
                // It is being created or removed. The last step of either notifies.
                nudge.notified().await;
            }
        }
    }
}

/// Ends what a dead agent session left open. Returns whether it did.
async fn repair_lost(shared: &Shared, entry: Entry) -> bool {
    let (home, id) = (shared.home.clone(), entry.info.id.clone());
    match tokio::task::spawn_blocking(move || repair::repair(&home, &entry)).await {
        Ok(Ok(is_repaired)) => is_repaired,
        Ok(Err(error)) => {
            tracing::warn!(%error, session = %id, "cannot repair a lost agent session");
            false
        }
        Err(_) => false,
    }
}

/// Reads the session's files.
async fn read(shared: &Shared, dir: &SessionDir) -> io::Result<Option<Entry>> {
    let permit = shared.file_reads.clone().acquire_owned().await.map_err(io::Error::other)?;
    let dir = dir.clone();
    let read = move || {
        let entry = registry::try_read(dir);
        drop(permit);
        entry
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

/// Requests the status of a session that cannot be followed for lack of a permit.
async fn poll(shared: &Shared, entry: &Entry) {
    let _permit = shared.status_requests.acquire().await;
    match control::request(&entry.dir, &Request::Status { follow: false, brief: true }, STATUS_TIMEOUT).await {
        Ok(Reply::Status { session }) => shared.state().put(*session),
        _ => describe(shared, entry),
    }
}

/// Shows what the files say, unless the board already has a state from the process, which is more precise.
fn describe(shared: &Shared, entry: &Entry) {
    let mut state = shared.state();
    if !state.shows_run(&entry.info) {
        state.put(entry.info.clone());
    }
}

/// Follows a session process until its connection ends. Returns whether it sent a status.
async fn follow(shared: &Shared, entry: &Entry, nudge: &Notify) -> bool {
    let connect = async {
        let mut connection = ControlConnection::connect(&entry.dir)?;
        connection.send(&Request::Status { follow: true, brief: true }).await?;
        Ok::<_, ControlError>(connection)
    };
    let mut silent_at = Some(Instant::now() + STATUS_TIMEOUT);
    let connected = tokio::select! {
        connected = connect => connected,
        () = sleep(STATUS_TIMEOUT) => Err(ControlError::TimedOut),
    };
    let Ok(mut connection) = connected else {
        describe(shared, entry);
        return false;
    };
    let mut pending: Option<SessionInfo> = None;
    let mut next_change = Instant::now();
    let mut received = false;
    loop {
        tokio::select! {
            reply = connection.reply() => match reply {
                Ok(Reply::Status { session }) => {
                    (received, silent_at) = (true, None);
                    pending = Some(*session);
                }
                Ok(_) => {}
                Err(_) => {
                    match pending {
                        Some(info) => shared.state().put(info),
                        None if !received => describe(shared, entry),
                        None => {}
                    }
                    return received;
                }
            },
            () = sleep_until(next_change), if pending.is_some() => {
                if let Some(info) = pending.take() {
                    shared.state().put(info);
                }
                next_change = Instant::now() + CHANGE_INTERVAL;
            }
            () = sleep_until(silent_at.unwrap_or(next_change)), if silent_at.is_some() => {
                silent_at = None;
                describe(shared, entry);
            }
            () = nudge.notified() => {
                if !entry.dir.path().exists() {
                    return received;
                }
            }
        }
    }
}
