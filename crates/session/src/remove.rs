//! Ending sessions, and forgetting them.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::SessionId;
use bowline_proto::message::State;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::control::{Control, ControlError};
use crate::events::History;
use crate::home::{Home, SessionDir};
use crate::lock::Lock;
use crate::registry::{self, Entry, RegistryError};

/// Between SIGHUP and SIGKILL.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);
/// The longest grace that can be asked for.
pub const MAX_GRACE: Duration = Duration::from_secs(300);
/// A folder that is not a session after this long will never be one.
const STILLBORN_AFTER: Duration = Duration::from_secs(3600);
/// How long after the grace a session process may take to wind up.
const WIND_UP: Duration = Duration::from_secs(10);
/// How long of it viewers may take for the last output. Asked again, the process waits no longer for those that do not read.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

/// Why a session did not end.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// It belongs to another machine.
    #[error("the session belongs to the machine {0}")]
    Elsewhere(String),
    /// Its process does not react.
    #[error("the session process does not end: {0}")]
    Stuck(#[source] ControlError),
    /// It was started again meanwhile.
    #[error("the session was started again meanwhile")]
    Alive,
    /// Its files could not be removed.
    #[error("cannot remove {path}: {source}")]
    Files {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Ends a session's program and everything it started, and waits for it. Unless `keep`, its files go too. Ending what
/// has ended is no error.
pub fn end(entry: &Entry, grace: Duration, keep: bool) -> Result<(), EndError> {
    if !entry.here {
        return Err(EndError::Elsewhere(entry.meta.host.clone()));
    }
    let grace = grace.min(MAX_GRACE);
    let lock = entry.dir.lock();
    let process = hold_process(entry);
    let deadline = Instant::now() + grace + WIND_UP;
    let mut refused = None;
    while Lock::is_held(&lock) {
        if Instant::now() > deadline {
            return Err(EndError::Stuck(refused.unwrap_or(ControlError::Silent)));
        }
        // The connection ends with the process, so waiting for it is waiting for the process.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match ask_to_end(entry, grace, left.min(grace + LAST_OUTPUT)) {
            Ok(()) => refused = None,
            Err(error) => refused = Some(error),
        }
        if Lock::is_held(&lock) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    // The lock goes a moment before the process: whoever asked expects to find neither.
    if let Some(process) = process {
        let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], WIND_UP.try_into().ok().as_ref());
    }
    if keep { Ok(()) } else { forget(entry) }
}

/// The session process, if it lives; held, its number cannot come to mean another one.
fn hold_process(entry: &Entry) -> Option<OwnedFd> {
    let pid = History::read(&entry.dir.events()).ok()?.started?.pid;
    let process = pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok()?;
    Lock::is_held(&entry.dir.lock()).then_some(process)
}

fn ask_to_end(entry: &Entry, grace: Duration, within: Duration) -> Result<(), ControlError> {
    let mut control = Control::connect(&entry.dir)?;
    let request = Request::End { grace_ms: Some(grace.as_millis() as u64) };
    let Reply::Ending = control.request(&request, within)? else { return Err(ControlError::Unexpected) };
    match control.next_reply() {
        Err(ControlError::Unreachable(_)) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(ControlError::Unexpected),
    }
}

/// Removes an ended session's files. They first get a name that no list reads, so that nobody sees half a session.
pub fn forget(entry: &Entry) -> Result<(), EndError> {
    let path = entry.dir.path();
    // Whoever gives it a new life takes this lock, and so cannot lose its files to us.
    let _lock = match Lock::take(&entry.dir.lock()) {
        Ok(Some(lock)) => lock,
        Ok(None) if !path.exists() => return Ok(()),
        Ok(None) => return Err(EndError::Alive),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(EndError::Files { path: path.to_owned(), source }),
    };
    remove_folder(&entry.dir).map_err(|source| EndError::Files { path: path.to_owned(), source })
}

fn remove_folder(dir: &SessionDir) -> io::Result<()> {
    let not_there = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    let gone = dir.path().with_file_name(format!("gone.{}", dir.id()));
    // An earlier session of this id may have got no further than here.
    fs::remove_dir_all(&gone).or_else(not_there)?;
    match fs::rename(dir.path(), &gone) {
        Ok(()) => fs::remove_dir_all(&gone).or_else(not_there),
        Err(error) => not_there(error),
    }
}

/// What may be kept of ended sessions.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Ended sessions older than this go.
    pub max_age: Duration,
    /// The oldest go while all of them together take more bytes than this.
    pub max_bytes: u64,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { max_age: Duration::from_secs(7 * 24 * 3600), max_bytes: 1 << 30 }
    }
}

/// What a prune removed.
#[derive(Debug, Default)]
pub struct Pruned {
    /// The sessions.
    pub sessions: Vec<Entry>,
    /// The space that they took.
    pub bytes: u64,
}

/// Removes exited sessions of this machine that are too old or too many; with `dry_run` only tells which. Lost ones
/// stay: their owner has not seen their end yet.
pub fn prune(home: &Home, retention: &Retention, dry_run: bool) -> Result<Pruned, PruneError> {
    sweep(home);
    let mut ended: Vec<(Duration, u64, Entry)> = registry::list_files(home)?
        .into_iter()
        .filter(|entry| entry.here && entry.info.state == State::Exited && !Lock::is_held(&entry.dir.lock()))
        .map(|entry| (age(&entry), disk_usage(&entry), entry))
        .collect();
    ended.sort_by_key(|(age, _, _)| std::cmp::Reverse(*age));
    let mut total: u64 = ended.iter().map(|(_, bytes, _)| bytes).sum();
    let mut pruned = Pruned::default();
    for (age, bytes, entry) in ended {
        if age <= retention.max_age && total <= retention.max_bytes {
            continue;
        }
        match (dry_run, if dry_run { Ok(()) } else { forget(&entry) }) {
            (false, Err(EndError::Alive)) => continue, // restarted since it was listed
            (_, forgotten) => forgotten?,
        }
        total -= bytes;
        pruned.bytes += bytes;
        pruned.sessions.push(entry);
    }
    Ok(pruned)
}

/// Why a prune stopped.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// The list could not be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A session could not be removed.
    #[error(transparent)]
    End(#[from] EndError),
}

/// Removes what a crash between the two steps of [`forget`] left, and what never became a session.
fn sweep(home: &Home) {
    for found in fs::read_dir(home.sessions()).into_iter().flatten().flatten() {
        let name = found.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with("gone.") {
            let _ = fs::remove_dir_all(found.path());
        } else if let Ok(id) = name.parse::<SessionId>()
            && is_old(&home.session(&id))
        {
            clear_stillborn(&home.session(&id));
        }
    }
}

/// Removes a folder that never became a session: its maker wrote what it is last, and is gone. Another one is left alone.
pub(crate) fn clear_stillborn(dir: &SessionDir) {
    let is_one = || !matches!(dir.meta().try_exists(), Ok(false));
    if is_one() || !dir.path().exists() {
        return;
    }
    // Whoever makes a session in it has this lock.
    if let Ok(Some(_lock)) = Lock::take(&dir.lock())
        && !is_one()
    {
        let _ = remove_folder(dir);
    }
}

fn is_old(dir: &SessionDir) -> bool {
    let age = fs::metadata(dir.path()).and_then(|found| found.modified()).map(|at| at.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age > STILLBORN_AFTER)
}

fn age(entry: &Entry) -> Duration {
    let ended = fs::metadata(entry.dir.events()).and_then(|found| found.modified());
    ended.ok().and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

fn disk_usage(entry: &Entry) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = fs::read_dir(entry.dir.path()).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.blocks() * 512).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A birth that was killed leaves a folder with everything but what it was to be.
    #[test]
    fn r31_what_never_became_a_session_is_swept() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        home.ensure().unwrap();
        let dirs = [1, 2, 3, 4].map(|n| home.session(&SessionId::from_random([n; 12])));
        let [old, young, held, whole] = &dirs;
        for dir in &dirs {
            fs::create_dir(dir.path()).unwrap();
            fs::write(dir.log(), "a ring").unwrap();
            fs::write(dir.events(), "").unwrap();
        }
        fs::write(whole.meta(), "damaged, but it was one").unwrap();
        let _lock = Lock::take(&held.lock()).unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * STILLBORN_AFTER;
        for dir in [old, held, whole] {
            fs::File::open(dir.path()).unwrap().set_modified(long_ago).unwrap();
        }
        prune(&home, &Retention::default(), false).unwrap();
        let left = [old, young, held, whole].map(|dir| dir.path().exists());
        assert_eq!(left, [false, true, true, true]);
    }
}
