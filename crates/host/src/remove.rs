//! Ending sessions, and forgetting them.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::SessionId;
use bowline_proto::session::{Kind, State};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::control::{Control, ControlError};
use crate::home::{Home, SessionDir};
use crate::lock::Lock;
use crate::registry::{self, Entry, RegistryError};
use crate::summary::Summary;

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
    let pid = Summary::read(&entry.dir).ok()?.started?.pid;
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
    forget_files(&entry.dir)
}

/// Removes what is left of an ended session whose own description is damaged.
pub fn forget_damaged(dir: &SessionDir) -> Result<(), EndError> {
    forget_files(dir)
}

fn forget_files(dir: &SessionDir) -> Result<(), EndError> {
    let path = dir.path();
    // Whoever gives it a new life takes this lock, and so cannot lose its files to us.
    let _lock = match Lock::take(&dir.lock()) {
        Ok(Some(lock)) => lock,
        Ok(None) if !path.exists() => return Ok(()),
        Ok(None) => return Err(EndError::Alive),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(EndError::Files { path: path.to_owned(), source }),
    };
    remove_folder(dir).map_err(|source| EndError::Files { path: path.to_owned(), source })
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
    /// Those of which nobody could say any more what they were.
    pub damaged: Vec<SessionDir>,
    /// The space that they took.
    pub bytes: u64,
    /// Why others stay that should have gone.
    pub failed: Vec<EndError>,
}

/// Removes exited terminals of this machine that are too old or too many; with `dry_run` only tells which. Lost ones
/// stay: their owner has not seen their end yet. One that cannot be removed is in no other's way.
pub fn prune(home: &Home, retention: &Retention, dry_run: bool) -> Result<Pruned, RegistryError> {
    sweep(home);
    let whole = registry::list_files(home)?
        .into_iter()
        .filter(|entry| entry.here && entry.info.state == State::Exited && !Lock::is_held(&entry.dir.lock()))
        // What another kind is worth keeping for is for the version that knows it to say.
        .filter(|entry| entry.meta.kind == Kind::Terminal)
        .map(|entry| (entry.dir.clone(), Some(entry)));
    let has_exited = |dir: &SessionDir| Summary::read(dir).is_ok_and(|summary| summary.exit.is_some());
    let damaged = registry::damaged(home)?.into_iter().filter(has_exited).map(|dir| (dir, None));
    let mut ended: Vec<(Duration, u64, SessionDir, Option<Entry>)> =
        whole.chain(damaged).map(|(dir, entry)| (age(&dir), disk_usage(&dir), dir, entry)).collect();
    ended.sort_by_key(|(age, ..)| std::cmp::Reverse(*age));
    let mut total: u64 = ended.iter().map(|(_, bytes, ..)| bytes).sum();
    let mut pruned = Pruned::default();
    for (age, bytes, dir, entry) in ended {
        if age <= retention.max_age && total <= retention.max_bytes {
            continue;
        }
        // What stays counts no longer, or the others would have to make room for it.
        total -= bytes;
        match if dry_run { Ok(()) } else { forget_files(&dir) } {
            Ok(()) => {}
            Err(EndError::Alive) => continue, // restarted since it was listed
            Err(error) => {
                pruned.failed.push(error);
                continue;
            }
        }
        pruned.bytes += bytes;
        match entry {
            Some(entry) => pruned.sessions.push(entry),
            None => pruned.damaged.push(dir),
        }
    }
    Ok(pruned)
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

fn age(dir: &SessionDir) -> Duration {
    let ended = fs::metadata(dir.events()).and_then(|found| found.modified());
    ended.ok().and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

fn disk_usage(dir: &SessionDir) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = fs::read_dir(dir.path()).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.blocks() * 512).sum()
}

#[cfg(test)]
mod tests {
    use bowline_proto::ids::Epoch;
    use bowline_proto::size::Size;

    use super::*;
    use crate::events::Event;
    use crate::history::History;
    use crate::machine::{this_boot, this_host};
    use crate::meta::{Meta, TerminalMeta};
    use crate::timestamp::timestamp;

    /// The files of a session that exited so many hours ago, or that was lost.
    fn made(home: &Home, n: u8, exited: Option<u64>) -> SessionDir {
        home.ensure().unwrap();
        let dir = home.session(&SessionId::from_random([n; 12]));
        fs::create_dir(dir.path()).unwrap();
        let (epoch, size) = (Epoch::from_random([n; 4]), Size::default());
        let (mut journal, mut history) = History::open(&dir.events()).unwrap();
        let started = Event::Started { epoch, offset: 0, size: Some(size), pid: 1, version: "0.1.0".into() };
        history.record(&mut journal, started).unwrap();
        if let Some(hours) = exited {
            history.record(&mut journal, Event::Exit { code: Some(0), signal: None, offset: 0 }).unwrap();
            let at = std::time::SystemTime::now() - Duration::from_secs(hours * 3600);
            fs::File::open(dir.events()).unwrap().set_modified(at).unwrap();
        }
        let meta = Meta {
            id: dir.id().clone(),
            name: Some(format!("name-{n}").parse().unwrap()),
            kind: Kind::Terminal,
            cwd: "/".into(),
            detached_ttl: 0,
            request: None,
            open_files: None,
            created: timestamp(),
            host: this_host(),
            boot: this_boot(),
            terminal: Some(TerminalMeta {
                argv: vec!["cat".into()],
                arg0: None,
                env: Vec::new(),
                size,
                log_size: 1 << 20,
                history: 0,
            }),
        };
        meta.write(&dir.meta()).unwrap();
        dir
    }

    const EVERYTHING: Retention = Retention { max_age: Duration::ZERO, max_bytes: u64::MAX };

    #[test]
    fn r31_a_session_that_cannot_be_removed_is_in_no_others_way() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let [stuck, old, young] = [(1, 9), (2, 8), (3, 7)].map(|(n, hours)| made(&home, n, Some(hours)));
        // Where its files are to go to, there is something else.
        fs::write(stuck.path().with_file_name(format!("gone.{}", stuck.id())), "").unwrap();
        let keep_one = Retention { max_age: Duration::MAX, max_bytes: disk_usage(&young) };
        let pruned = prune(&home, &keep_one, false).unwrap();
        assert_eq!((pruned.sessions.len(), pruned.failed.len()), (1, 1), "the young one need not make room");
        let pruned = prune(&home, &EVERYTHING, false).unwrap();
        assert_eq!((pruned.sessions.len(), pruned.failed.len()), (1, 1));
        assert!(pruned.failed[0].to_string().contains(stuck.id().as_str()), "{}", pruned.failed[0]);
        assert_eq!([&stuck, &old, &young].map(|dir| dir.path().exists()), [true, false, false]);
    }

    /// Nobody may list what cannot be read; but who knows its id can forget it, and an exited one goes in time.
    #[test]
    fn r31_what_a_damaged_session_was_need_not_be_known_to_forget_it() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let [exited, lost, alive] = [(1, Some(9)), (2, None), (3, None)].map(|(n, hours)| made(&home, n, hours));
        for dir in [&exited, &lost, &alive] {
            fs::write(dir.meta(), "{").unwrap();
        }
        let _lock = Lock::take(&alive.lock()).unwrap();
        assert!(registry::list_files(&home).unwrap().is_empty());
        let found = |dir: &SessionDir| registry::find(&home, dir.id().as_str());
        assert!(matches!(found(&alive), Err(RegistryError::Io { .. })), "it may become readable again");
        assert_eq!(prune(&home, &Retention::default(), false).unwrap().damaged, [], "it is young");
        let told = prune(&home, &EVERYTHING, true).unwrap().damaged;
        assert_eq!(told, std::slice::from_ref(&exited), "only what is known to have exited");
        assert_eq!(prune(&home, &EVERYTHING, false).unwrap().damaged, told);
        let Err(RegistryError::Damaged { dir, .. }) = found(&lost) else { panic!("{:?}", found(&lost)) };
        forget_damaged(&dir).unwrap();
        assert!(matches!(forget_damaged(&alive), Err(EndError::Alive)));
        assert_eq!([&exited, &lost, &alive].map(|dir| dir.path().exists()), [false, false, true]);
    }

    /// A power cut may cost the events; what was asked, the screen and the log are still there.
    #[test]
    fn r21_a_session_without_events_is_lost_not_gone() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let dir = made(&home, 1, Some(9));
        for damage in [Some(""), Some("{\"seq\":0"), None] {
            let _ = fs::remove_file(dir.events());
            damage.map_or(Ok(()), |text| fs::write(dir.events(), text)).unwrap();
            let listed = registry::list_files(&home).unwrap();
            assert_eq!(listed.iter().map(|entry| entry.info.state).collect::<Vec<_>>(), [State::Lost], "{damage:?}");
            assert_eq!(registry::find(&home, "name-1").unwrap().info.command_line(), "cat");
            assert_eq!(prune(&home, &EVERYTHING, false).unwrap().sessions.len(), 0, "its owner has not seen its end");
            let _lock = Lock::take(&dir.lock()).unwrap();
            assert!(registry::find(&home, dir.id().as_str()).is_err(), "nobody may say that a living one is lost");
        }
        end(&registry::find(&home, "name-1").unwrap(), Duration::ZERO, false).unwrap();
        assert!(!dir.path().exists());
    }

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
