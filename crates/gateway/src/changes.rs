//! Renames and ends sessions by the steps that the command line uses, but without a thread while a session process
//! takes its time.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use bowline_host::change_lock::{self, ChangeKey, ChangeLockError, LOCK_TIMEOUT};
use bowline_host::control::ControlError;
use bowline_host::home::SessionDir;
use bowline_host::lock::Lock;
use bowline_host::registry::Entry;
use bowline_host::remove::{self, Attempt, EndError, Ending};
use bowline_host::rename;
use bowline_host::start::StartError;
use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::SessionName;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep, timeout};

use crate::app::App;
use crate::auth::Caller;
use crate::control::{self, ControlConnection};
use crate::problem::{Problem, internal};
use crate::sessions::blocking;
use crate::turns::Turn;

/// How often a lock that another process holds is tried again.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// Takes the turn of a session or name, and its lock against other processes.
async fn lock(app: &App, key: ChangeKey) -> Result<(Turn, Lock), Problem> {
    let turn = app.turns.change(&key).await?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        let (home, wanted) = (app.home.clone(), key.clone());
        if let Some(lock) =
            blocking(move || Ok(change_lock::try_lock(&home, &wanted).map_err(StartError::from)?)).await?
        {
            return Ok((turn, lock));
        }
        if Instant::now() > deadline {
            return Err(StartError::from(ChangeLockError::Busy(key.to_string())).into());
        }
        sleep(LOCK_RETRY).await;
    }
}

/// Lets a change continue, with the turns that it holds, if the client hangs up: a session must not be left half
/// changed.
async fn finish<T: Send + 'static>(
    change: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(change).await.unwrap_or_else(|error| Err(internal(&error)))
}

/// Renames a session, as [`rename::rename`] does.
pub(crate) async fn rename(
    app: &App,
    caller: Caller,
    entry: Entry,
    name: SessionName,
    ttl: Option<u64>,
) -> Result<(), Problem> {
    let session = lock(app, ChangeKey::Session(entry.info.id.clone())).await?;
    let locks = (session, lock(app, ChangeKey::Name(name.clone())).await?);
    let (home, dir) = (app.home.clone(), entry.dir.clone());
    finish(async move {
        let _locks = locks;
        let rename = move || {
            caller.check()?;
            Ok(rename::rename_locked(&home, &entry, &name, ttl)?)
        };
        let request = blocking(rename).await?;
        if let Some(request) = request {
            let reply = control::request(&dir, &request, rename::TIMEOUT).await?;
            rename::check_reply(&reply)?;
        }
        Ok(())
    })
    .await
}

/// Ends a session, as [`remove::end`] does. If another request is already ending it, this one can shorten the grace.
pub(crate) async fn end(app: &App, caller: Caller, entry: Entry, grace: Duration, keep: bool) -> Result<(), Problem> {
    let id = &entry.info.id;
    let turn = match app.turns.end(id, Duration::ZERO).await? {
        Some(turn) => turn,
        None => {
            caller.check()?;
            let grace = grace.min(remove::MAX_GRACE);
            let request = Request::End { grace_ms: Some(grace.as_millis() as u64) };
            // If this fails, the request that has the turn, or else the one below, finds out why.
            let _ = control::request_running(&entry, &request).await;
            let turn = app.turns.end(id, grace + remove::EXIT_WITHIN).await?;
            turn.ok_or_else(|| Problem::from(EndError::Stuck(ControlError::TimedOut)))?
        }
    };
    finish(async move {
        let _turn = turn;
        let dir = entry.dir.clone();
        let (entry, mut ending) = blocking(move || {
            caller.check()?;
            let ending = Ending::new(&entry, grace)?;
            Ok((entry, ending))
        })
        .await?;
        loop {
            let (attempt, current) = blocking(move || Ok((ending.next_attempt()?, ending))).await?;
            ending = current;
            let Some(attempt) = attempt else { break };
            sleep(attempt.pause).await;
            let ended = timeout(attempt.timeout, request_end(&dir, &attempt)).await;
            ending.record(ended.unwrap_or(Err(ControlError::TimedOut)));
        }
        if let Some(process) = ending.into_process() {
            let _ = timeout(remove::EXIT_WITHIN, exited(process)).await;
        }
        if !keep {
            blocking(move || Ok(remove::forget(&entry)?)).await?;
        }
        Ok(())
    })
    .await
}

/// Requests the end of a session, and waits until its process closes the connection.
async fn request_end(dir: &SessionDir, attempt: &Attempt) -> Result<(), ControlError> {
    let mut connection = ControlConnection::connect(dir)?;
    connection.send(&attempt.request).await?;
    let Reply::Ending = connection.reply().await? else { return Err(ControlError::Unexpected) };
    match connection.reply().await {
        Err(ControlError::Unreachable(_)) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(ControlError::Unexpected),
    }
}

/// Waits until a process has exited.
async fn exited(process: OwnedFd) -> io::Result<()> {
    #[allow(deprecated, reason = "its replacement is unsafe, for descriptors that may change; an OwnedFd's never does")]
    let process = AsyncFd::with_interest(process, Interest::READABLE)?;
    process.readable().await.map(drop)
}
