//! Ends sessions, and removes the files of ended ones.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bowline_proto::control::{Reply, Request};
use bowline_proto::ids::SessionId;
use bowline_proto::session::{Kind, State};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::alive::{is_alive, take_lock};
use crate::control::{self, Control, ControlError};
use crate::home::{Home, SessionDir};
use crate::leftovers;
use crate::registry::{self, Entry, RegistryError};
use crate::summary::Summary;

/// The time between SIGHUP and SIGKILL, unless given.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(2);
/// The default for agents, which have to stop their tools and save their conversation.
pub const AGENT_GRACE: Duration = Duration::from_secs(5);

/// How long a session of this kind may take to end, by default.
pub fn default_grace(kind: Kind) -> Duration {
    if kind == Kind::Agent { AGENT_GRACE } else { DEFAULT_GRACE }
}
/// The longest grace; a longer one is cut to this.
pub const MAX_GRACE: Duration = Duration::from_secs(300);
/// A directory that has no `meta.json` after this long will never become a session.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
/// How long a session process may take to exit after the grace.
pub const EXIT_WITHIN: Duration = Duration::from_secs(10);
/// The part of [`EXIT_WITHIN`] that viewers may take to read the last output. After a second request, the process no
/// longer waits for them.
const LAST_OUTPUT: Duration = Duration::from_secs(5);
/// The pause before a repeated request to end.
const RETRY_AFTER: Duration = Duration::from_millis(5);

#[derive(Debug, thiserror::Error)]
pub enum EndError {
    #[error("the session belongs to the machine {0}")]
    OtherMachine(String),
    #[error("the session process does not end: {0}")]
    Stuck(#[source] ControlError),
    /// The session is running, so its files cannot be removed.
    #[error("the session was restarted in the meantime")]
    Restarted,
    #[error("cannot remove {path}: {source}")]
    Files { path: PathBuf, source: io::Error },
}

/// Ends a session's program and everything that it started, and waits until the session process has exited. Unless
/// `keep`, also removes its files. Ending an ended session is not an error.
pub fn end(entry: &Entry, grace: Duration, keep: bool) -> Result<(), EndError> {
    let mut ending = Ending::new(entry, grace)?;
    while let Some(attempt) = ending.next_attempt()? {
        std::thread::sleep(attempt.pause);
        ending.record(request_end(&entry.dir, &attempt));
    }
    if let Some(process) = ending.into_process() {
        let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], EXIT_WITHIN.try_into().ok().as_ref());
    }
    if keep { Ok(()) } else { forget(entry) }
}

/// The end of a session, as steps that do not wait. [`end`] drives them with blocking calls, the gateway without.
#[derive(Debug)]
pub struct Ending {
    dir: SessionDir,
    process: Option<OwnedFd>,
    grace: Duration,
    deadline: Instant,
    attempts: u32,
    /// Why the last attempt failed.
    failed: Option<ControlError>,
}

/// One request to end.
#[derive(Debug)]
pub struct Attempt {
    /// How long to wait before it.
    pub pause: Duration,
    pub request: Request,
    /// How long the session process may take until it closes the connection, which ends with the process.
    pub timeout: Duration,
}

impl Ending {
    pub fn new(entry: &Entry, grace: Duration) -> Result<Ending, EndError> {
        if !entry.is_local {
            return Err(EndError::OtherMachine(entry.meta.host.clone()));
        }
        let grace = grace.min(MAX_GRACE);
        Ok(Ending {
            dir: entry.dir.clone(),
            process: open_process(entry),
            grace,
            deadline: Instant::now() + grace + EXIT_WITHIN,
            attempts: 0,
            failed: None,
        })
    }

    /// The next request to send; `None` once the session has ended.
    pub fn next_attempt(&mut self) -> Result<Option<Attempt>, EndError> {
        if !is_alive(&self.dir) {
            return Ok(None);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(EndError::Stuck(self.failed.take().unwrap_or(ControlError::TimedOut)));
        }
        self.attempts += 1;
        Ok(Some(Attempt {
            pause: if self.attempts == 1 { Duration::ZERO } else { RETRY_AFTER },
            request: Request::End { grace_ms: Some(self.grace.as_millis() as u64) },
            timeout: left.min(self.grace + LAST_OUTPUT),
        }))
    }

    /// Records whether the session process took the request and closed its connection.
    pub fn record(&mut self, result: Result<(), ControlError>) {
        self.failed = result.err();
    }

    /// The session process, to wait for: the lock is released a moment before it exits, and the caller expects it to
    /// be gone. It gets up to [`EXIT_WITHIN`].
    pub fn into_process(self) -> Option<OwnedFd> {
        self.process
    }
}

/// A pidfd of the session process, if it is running, so that its pid cannot be reused meanwhile.
fn open_process(entry: &Entry) -> Option<OwnedFd> {
    // A process that is about to exit no longer listens.
    let recorded = || Pid::from_raw(registry::recorded_process(&entry.dir, &entry.meta)?.cast_signed());
    let process = pidfd_open(control::listener(&entry.dir).or_else(recorded)?, PidfdFlags::empty()).ok()?;
    is_alive(&entry.dir).then_some(process)
}

/// Requests the end of a session, and waits until its process closes the connection.
fn request_end(dir: &SessionDir, attempt: &Attempt) -> Result<(), ControlError> {
    let mut control = Control::connect(dir)?;
    let Reply::Ending = control.request(&attempt.request, attempt.timeout)? else {
        return Err(ControlError::Unexpected);
    };
    match control.next_reply() {
        Err(ControlError::Unreachable(_)) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(ControlError::Unexpected),
    }
}

/// Removes the files of an ended session. The directory is first renamed to one that is not listed, so that no half
/// removed session is visible.
pub fn forget(entry: &Entry) -> Result<(), EndError> {
    forget_files(&entry.dir, entry.meta.kind != Kind::Terminal)
}

/// Removes the files of an ended session whose `meta.json` is damaged.
pub fn forget_damaged(dir: &SessionDir) -> Result<(), EndError> {
    forget_files(dir, true)
}

/// Removes a session's files. With `may_be_agent`, first ends what an agent has left running.
fn forget_files(dir: &SessionDir, may_be_agent: bool) -> Result<(), EndError> {
    let path = dir.path();
    // A restart takes this lock, so its files cannot be removed here.
    let _lock = match take_lock(dir) {
        Ok(Some(lock)) => lock,
        Ok(None) if !path.exists() => return Ok(()),
        Ok(None) => return Err(EndError::Restarted),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(EndError::Files { path: path.to_owned(), source }),
    };
    let files = |source| EndError::Files { path: path.to_owned(), source };
    if may_be_agent {
        leftovers::end(dir).map_err(files)?;
    }
    remove_dir(dir).map_err(files)
}

fn remove_dir(dir: &SessionDir) -> io::Result<()> {
    let ignore_missing = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    let gone = dir.path().with_file_name(format!("gone.{}", dir.id()));
    // The removal of an earlier session with this id may have been interrupted.
    fs::remove_dir_all(&gone).or_else(ignore_missing)?;
    match fs::rename(dir.path(), &gone) {
        Ok(()) => fs::remove_dir_all(&gone).or_else(ignore_missing),
        Err(error) => ignore_missing(error),
    }
}

/// How long, and up to which total size, ended sessions are kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Terminals that exited longer ago than this are removed.
    pub max_age: Duration,
    /// While all exited terminals take more bytes than this, the oldest is removed.
    pub max_bytes: u64,
    /// Conversations that do not run, and whose last event is older than this, are removed; `None` to keep them.
    pub conversation_age: Option<Duration>,
}

impl Retention {
    /// Nothing is removed.
    pub const KEEP_ALL: Retention = Retention { max_age: Duration::MAX, max_bytes: u64::MAX, conversation_age: None };
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { max_age: Duration::from_secs(7 * 24 * 3600), max_bytes: 1 << 30, conversation_age: None }
    }
}

/// The result of [`prune`].
#[derive(Debug, Default)]
pub struct PruneReport {
    /// The removed sessions.
    pub sessions: Vec<Entry>,
    /// The removed sessions whose `meta.json` was damaged.
    pub damaged: Vec<SessionDir>,
    /// The disk space that was freed.
    pub bytes: u64,
    /// The sessions that could not be removed.
    pub failed: Vec<EndError>,
}

/// Removes sessions of this machine that exceed the retention; with `dry_run`, only reports them. Lost terminals are
/// kept, because the user has not seen their end. A session that cannot be removed does not stop the others' removal.
pub fn prune(home: &Home, retention: &Retention, dry_run: bool) -> Result<PruneReport, RegistryError> {
    sweep(home);
    let entries = registry::list_files(home)?.into_iter().filter(|entry| entry.is_local && !is_alive(&entry.dir));
    // Only the version that supports another kind can judge how long to keep it.
    let (terminals, others): (Vec<Entry>, Vec<Entry>) = entries.partition(|entry| entry.meta.kind == Kind::Terminal);
    let mut doomed = doomed_terminals(home, terminals, retention)?;
    if let Some(max_age) = retention.conversation_age {
        let is_conversation = |entry: &Entry| entry.meta.kind == Kind::Agent && entry.info.state != State::Running;
        let conversations =
            others.into_iter().filter(is_conversation).map(|entry| Ended::new(entry.dir.clone(), Some(entry)));
        doomed.extend(conversations.filter(|ended| ended.age > max_age));
    }
    let mut pruned = PruneReport::default();
    for Ended { dir, entry, bytes, .. } in doomed {
        let may_be_agent = entry.as_ref().is_none_or(|entry| entry.meta.kind != Kind::Terminal);
        match if dry_run { Ok(()) } else { forget_files(&dir, may_be_agent) } {
            Ok(()) => {}
            Err(EndError::Restarted) => continue, // restarted since it was listed
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

/// A session that may be removed.
struct Ended {
    dir: SessionDir,
    /// `None` if its `meta.json` is damaged.
    entry: Option<Entry>,
    age: Duration,
    bytes: u64,
}

impl Ended {
    fn new(dir: SessionDir, entry: Option<Entry>) -> Ended {
        Ended { age: age(&dir), bytes: disk_usage(&dir), dir, entry }
    }
}

/// The exited terminals that are too old, or the oldest ones if all of them are too large.
fn doomed_terminals(home: &Home, terminals: Vec<Entry>, retention: &Retention) -> Result<Vec<Ended>, RegistryError> {
    let exited = terminals.into_iter().filter(|entry| entry.info.state == State::Exited);
    let readable = exited.map(|entry| Ended::new(entry.dir.clone(), Some(entry)));
    // Only terminals have a log. Damaged conversations are kept.
    let has_exited =
        |dir: &SessionDir| dir.log().exists() && Summary::read(dir).is_ok_and(|summary| summary.exit.is_some());
    let damaged = registry::damaged(home)?.into_iter().filter(has_exited).map(|dir| Ended::new(dir, None));
    let mut ended: Vec<Ended> = readable.chain(damaged).collect();
    ended.sort_by_key(|ended| std::cmp::Reverse(ended.age));
    let mut total: u64 = ended.iter().map(|ended| ended.bytes).sum();
    ended.retain(|ended| {
        let is_doomed = ended.age > retention.max_age || total > retention.max_bytes;
        // Even if this one cannot be removed, do not remove more of the others in its place.
        total -= if is_doomed { ended.bytes } else { 0 };
        is_doomed
    });
    Ok(ended)
}

/// Removes directories left by an interrupted [`forget`], and those that never became a session.
fn sweep(home: &Home) {
    for found in fs::read_dir(home.sessions()).into_iter().flatten().flatten() {
        let name = found.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with("gone.") {
            let _ = fs::remove_dir_all(found.path());
        } else if let Ok(id) = name.parse::<SessionId>()
            && is_old(&home.session(&id))
        {
            remove_abandoned(&home.session(&id));
        }
    }
}

/// Removes a directory whose creation was interrupted: it has no `meta.json`, which is written last, and is not locked.
/// Does nothing to any other directory.
pub(crate) fn remove_abandoned(dir: &SessionDir) {
    let has_meta = || !matches!(dir.meta().try_exists(), Ok(false));
    if has_meta() || !dir.path().exists() {
        return;
    }
    // A process that is creating a session in it holds this lock.
    if let Ok(Some(_lock)) = take_lock(dir)
        && !has_meta()
    {
        let _ = remove_dir(dir);
    }
}

fn is_old(dir: &SessionDir) -> bool {
    let age = fs::metadata(dir.path()).and_then(|found| found.modified()).map(|at| at.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age > ABANDONED_AFTER)
}

/// The time since the last event, which for an ended session is its end.
fn age(dir: &SessionDir) -> Duration {
    let ended = fs::metadata(dir.events()).and_then(|found| found.modified());
    ended.ok().and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

/// The disk space of a session's files, with those in directories. Links are not followed.
fn disk_usage(dir: &SessionDir) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut total = 0;
    let mut directories = vec![dir.path().to_owned()];
    while let Some(directory) = directories.pop() {
        for found in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = found.metadata() else { continue };
            total += metadata.blocks() * 512;
            if metadata.is_dir() {
                directories.push(found.path());
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use bowline_proto::ids::Epoch;
    use bowline_proto::size::Size;

    use super::*;
    use crate::events::Event;
    use crate::history::History;
    use crate::lock::Lock;
    use crate::machine::{this_boot, this_host};
    use crate::meta::{Makers, Meta, TerminalMeta};
    use crate::timestamp::timestamp;

    /// Creates the files of a session that exited this many hours ago, or that was lost.
    fn create(home: &Home, n: u8, exited: Option<u64>) -> SessionDir {
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
            makers: Makers::default(),
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
                scrollback: 0,
            }),
            agent: None,
        };
        meta.write(&dir.meta()).unwrap();
        dir
    }

    const EVERYTHING: Retention = Retention { max_age: Duration::ZERO, ..Retention::KEEP_ALL };

    #[test]
    fn r31_a_session_that_cannot_be_removed_does_not_stop_the_others() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let [stuck, old, young] = [(1, 9), (2, 8), (3, 7)].map(|(n, hours)| create(&home, n, Some(hours)));
        // The name that its directory is to be renamed to is taken.
        fs::write(stuck.path().with_file_name(format!("gone.{}", stuck.id())), "").unwrap();
        let keep_one = Retention { max_bytes: disk_usage(&young), ..Retention::KEEP_ALL };
        let pruned = prune(&home, &keep_one, false).unwrap();
        assert_eq!((pruned.sessions.len(), pruned.failed.len()), (1, 1), "the young one is not removed in its place");
        let pruned = prune(&home, &EVERYTHING, false).unwrap();
        assert_eq!((pruned.sessions.len(), pruned.failed.len()), (1, 1));
        assert!(pruned.failed[0].to_string().contains(stuck.id().as_str()), "{}", pruned.failed[0]);
        assert_eq!([&stuck, &old, &young].map(|dir| dir.path().exists()), [true, false, false]);
    }

    /// A session with a damaged `meta.json` is not listed, but can be removed by its id, and is pruned if it exited.
    #[test]
    fn r31_a_session_with_damaged_meta_can_be_removed() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let [exited, lost, alive] = [(1, Some(9)), (2, None), (3, None)].map(|(n, hours)| create(&home, n, hours));
        for dir in [&exited, &lost, &alive] {
            fs::write(dir.meta(), "{").unwrap();
        }
        assert_eq!(prune(&home, &EVERYTHING, true).unwrap().damaged, [], "without a log, it may be a conversation");
        fs::write(exited.log(), "").unwrap();
        let _lock = Lock::take(&alive.lock()).unwrap();
        assert!(registry::list_files(&home).unwrap().is_empty());
        let found = |dir: &SessionDir| registry::find(&home, dir.id().as_str());
        assert!(matches!(found(&alive), Err(RegistryError::Io { .. })), "it may become readable again");
        assert_eq!(prune(&home, &Retention::default(), false).unwrap().damaged, [], "it exited too recently");
        let listed = prune(&home, &EVERYTHING, true).unwrap().damaged;
        assert_eq!(listed, std::slice::from_ref(&exited), "only the one that is known to have exited");
        assert_eq!(prune(&home, &EVERYTHING, false).unwrap().damaged, listed);
        let Err(RegistryError::Damaged { dir, .. }) = found(&lost) else { panic!("{:?}", found(&lost)) };
        forget_damaged(&dir).unwrap();
        assert!(matches!(forget_damaged(&alive), Err(EndError::Restarted)));
        assert_eq!([&exited, &lost, &alive].map(|dir| dir.path().exists()), [false, false, true]);
    }

    #[test]
    fn r51_the_directories_of_a_session_are_counted_and_removed_without_following_links() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let dir = create(&home, 1, Some(9));
        let before = disk_usage(&dir);
        let elsewhere = temp.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("file"), vec![1; 1 << 20]).unwrap();
        for name in ["blobs", "uploads"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("5"), vec![1; 64 << 10]).unwrap();
            std::os::unix::fs::symlink(&elsewhere, dir.path().join(name).join("link")).unwrap();
        }
        let grown = disk_usage(&dir) - before;
        assert!((128 << 10..512 << 10).contains(&grown), "{grown} bytes");
        let keep = Retention { max_bytes: before + (64 << 10), ..Retention::KEEP_ALL };
        let pruned = prune(&home, &keep, false).unwrap();
        assert_eq!((pruned.sessions.len(), pruned.bytes), (1, before + grown));
        assert!(!dir.path().exists());
        assert!(elsewhere.join("file").exists());
    }

    /// After a power cut, the journal may be gone while `meta.json`, the screen and the log are still there.
    #[test]
    fn r21_a_session_without_events_is_listed_as_lost() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let dir = create(&home, 1, Some(9));
        for damage in [Some(""), Some("{\"seq\":0"), None] {
            let _ = fs::remove_file(dir.events());
            damage.map_or(Ok(()), |text| fs::write(dir.events(), text)).unwrap();
            let listed = registry::list_files(&home).unwrap();
            assert_eq!(listed.iter().map(|entry| entry.info.state).collect::<Vec<_>>(), [State::Lost], "{damage:?}");
            assert_eq!(registry::find(&home, "name-1").unwrap().info.command_line(), "cat");
            assert_eq!(prune(&home, &EVERYTHING, false).unwrap().sessions.len(), 0, "the user has not seen its end");
            let _lock = Lock::take(&dir.lock()).unwrap();
            assert!(registry::find(&home, dir.id().as_str()).is_err(), "a running session is never reported as lost");
        }
        end(&registry::find(&home, "name-1").unwrap(), Duration::ZERO, false).unwrap();
        assert!(!dir.path().exists());
    }

    /// A start that was killed leaves a directory without `meta.json`.
    #[test]
    fn r31_a_directory_that_never_became_a_session_is_removed() {
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
        fs::write(whole.meta(), "damaged, but a session").unwrap();
        let _lock = Lock::take(&held.lock()).unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED_AFTER;
        for dir in [old, held, whole] {
            fs::File::open(dir.path()).unwrap().set_modified(long_ago).unwrap();
        }
        prune(&home, &Retention::default(), false).unwrap();
        let left = [old, young, held, whole].map(|dir| dir.path().exists());
        assert_eq!(left, [false, true, true, true]);
    }
}
