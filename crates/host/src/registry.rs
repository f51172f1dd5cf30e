//! Finds and lists sessions. Everything is read from their files and locks, so that no session can hang a list. Only a
//! running session whose files are damaged is asked itself, for a moment.

use std::fs;
use std::io;
use std::sync::Arc;

use bowline_proto::agent::config::Choices;
use bowline_proto::agent::fold::Fold;
use bowline_proto::ids::{Epoch, SessionId, SessionName};
use bowline_proto::session::{AgentInfo, Kind, SessionInfo, State, TerminalInfo};
use rustix::process::Pid;

use crate::agents::{ConversationLimits, ModePolicy, Protocol};
use crate::alive::is_alive;
use crate::archive;
use crate::control::{self, Control, STATUS_TIMEOUT};
use crate::files::{damage, is_damage};
use crate::home::{Home, SessionDir};
use crate::log;
use crate::machine::{this_boot, this_host};
use crate::meta::{AgentMeta, Makers, Meta, TerminalMeta};
use crate::spec::DEFAULT_SCROLLBACK;
use crate::summary::{RunStart, Summary};
use crate::timestamp::timestamp_of;
use crate::transcript;

/// How many running sessions are asked at the same time; each takes a file descriptor.
const MAX_CONCURRENT: usize = 128;

/// A session as described by its files.
#[derive(Clone, Debug)]
pub struct Entry {
    pub dir: SessionDir,
    pub meta: Meta,
    /// Whether `meta` is what `meta.json` says. If that is damaged, `meta` is only what the process reports, and lacks
    /// the environment.
    pub meta_is_whole: bool,
    pub info: SessionInfo,
    /// The session belongs to this machine. Those of other machines are listed but never changed.
    pub is_local: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("no session is called {0:?}")]
    Unknown(String),
    /// The session has ended, and its `meta.json` is damaged. [`crate::remove::forget_damaged`] removes it.
    #[error("the session in {} has ended, and its files are damaged: {source}", dir.path().display())]
    Damaged { dir: SessionDir, source: io::Error },
    #[error("cannot read the sessions in {path}: {source}")]
    Io { path: std::path::PathBuf, source: io::Error },
}

impl Entry {
    /// Checks that `meta` is what `meta.json` says.
    pub fn check_meta(&self) -> Result<(), RegistryError> {
        let damaged = || RegistryError::Io { path: self.dir.meta(), source: damage("it is missing or damaged") };
        if self.meta_is_whole { Ok(()) } else { Err(damaged()) }
    }
}

/// How much of a session is read.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    /// What lists show: all but the commands of an agent, and what a lost session left open.
    Listed,
    Whole,
}

/// Lists all sessions, oldest first. Running ones are asked for what their files do not contain, such as the number of
/// viewers; one that does not answer within [`STATUS_TIMEOUT`] is described from its files.
pub fn list(home: &Home) -> Result<Vec<Entry>, RegistryError> {
    let mut entries = list_files(home)?;
    let is_running = |entry: &&mut Entry| entry.is_local && entry.info.state == State::Running;
    let mut running: Vec<&mut Entry> = entries.iter_mut().filter(is_running).collect();
    for some in running.chunks_mut(MAX_CONCURRENT) {
        let infos = Control::statuses(some.iter().map(|entry| &entry.dir), STATUS_TIMEOUT);
        for (entry, info) in some.iter_mut().zip(infos) {
            if let Some(mut info) = info {
                // Session processes of older versions send them.
                info.agent.iter_mut().for_each(|agent| agent.commands = None);
                entry.info = info;
            }
        }
    }
    Ok(entries)
}

/// Lists all sessions from their files alone, oldest first. Unreadable ones are left out.
pub fn list_files(home: &Home) -> Result<Vec<Entry>, RegistryError> {
    Ok(scan(home)?.0)
}

/// Reads all sessions, and an error for one that could not be read but may be running.
fn scan(home: &Home) -> Result<(Vec<Entry>, Option<RegistryError>), RegistryError> {
    let mut entries = Vec::new();
    let unread = for_each(home, |entry| entries.push(entry))?;
    entries.sort_by(|a, b| (&a.info.created, &a.info.id).cmp(&(&b.info.created, &b.info.id)));
    Ok((entries, unread))
}

/// Reads all sessions, in any order, one at a time: entries of many sessions can take much memory. Returns an error for
/// one that could not be read but may be running.
pub fn for_each(home: &Home, mut found: impl FnMut(Entry)) -> Result<Option<RegistryError>, RegistryError> {
    let path = home.sessions();
    let mut unread = None;
    for dir in session_dirs(home)? {
        match read_detail(&dir, Detail::Listed) {
            Ok(entry) => entry.into_iter().for_each(&mut found),
            // When descriptors or memory have run out, an existing session must not be reported as unknown.
            Err(source) if is_exhausted(&source) => return Err(RegistryError::Io { path, source }),
            // An ended session with damaged files has no name, so it cannot be the one looked for.
            Err(source) if is_damage(&source) && !is_alive(&dir) => {}
            Err(source) => unread = Some(RegistryError::Io { path: dir.path().to_owned(), source }),
        }
    }
    Ok(unread)
}

/// The directories of all sessions.
fn session_dirs(home: &Home) -> Result<Vec<SessionDir>, RegistryError> {
    let path = home.sessions();
    let found = match fs::read_dir(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(RegistryError::Io { path, source }),
    };
    let ids = found.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<SessionId>().ok());
    Ok(ids.map(|id| home.session(&id)).collect())
}

/// Ended sessions whose `meta.json` is damaged.
pub(crate) fn damaged(home: &Home) -> Result<Vec<SessionDir>, RegistryError> {
    let is_damaged =
        |dir: &SessionDir| read_files(dir, Detail::Listed).is_err_and(|error| is_damaged_meta(dir, &error));
    Ok(session_dirs(home)?.into_iter().filter(is_damaged).collect())
}

/// Finds a session by id, or else by name. Of several with the name, prefers this machine's, then a running one, then
/// the newest. Returns [`RegistryError::Unknown`] only if the session certainly does not exist.
pub fn find(home: &Home, key: &str) -> Result<Entry, RegistryError> {
    if let Ok(id) = key.parse::<SessionId>() {
        let dir = home.session(&id);
        let unread = |source| match is_damaged_meta(&dir, &source) {
            true => RegistryError::Damaged { dir: dir.clone(), source },
            false => RegistryError::Io { path: dir.path().to_owned(), source },
        };
        if let Some(entry) = try_read(dir.clone()).map_err(unread)? {
            return Ok(entry);
        }
        if dir.path().is_dir() && is_alive(&dir) {
            return Err(unread(io::Error::other("the session is still being created")));
        }
    }
    let mut best: Option<Entry> = None;
    let rank = |entry: &Entry| {
        let info = &entry.info;
        (entry.is_local, info.state == State::Running, info.created.clone(), info.id.to_string())
    };
    let unread = for_each(home, |entry| {
        let named = entry.info.name.as_ref().is_some_and(|name| name.as_str() == key);
        if named && best.as_ref().is_none_or(|best| rank(&entry) > rank(best)) {
            best = Some(entry);
        }
    })?;
    let unknown = || RegistryError::Unknown(key.to_owned());
    let best = best.ok_or_else(|| unread.unwrap_or_else(unknown))?;
    let whole = try_read(best.dir.clone());
    whole.map_err(|source| RegistryError::Io { path: best.dir.path().to_owned(), source })?.ok_or_else(unknown)
}

/// The running session on this machine that has this name.
pub fn running_holder(home: &Home, name: &SessionName) -> Result<Option<Entry>, RegistryError> {
    // Sessions of other machines do not reserve names here, because this machine cannot tell when they end.
    let holds =
        |entry: &Entry| entry.is_local && entry.info.state == State::Running && entry.info.name.as_ref() == Some(name);
    let mut holder = None;
    for_each(home, |entry| {
        if holds(&entry) {
            holder = Some(entry);
        }
    })?;
    Ok(holder)
}

/// Reads a session from its files; `None` if it does not exist, is incomplete, or cannot be read.
pub fn read(dir: SessionDir) -> Option<Entry> {
    try_read(dir).ok().flatten()
}

/// Reads a session again that was found before.
pub(crate) fn reread(dir: &SessionDir) -> Result<Entry, RegistryError> {
    match try_read(dir.clone()) {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => Err(RegistryError::Unknown(dir.id().to_string())),
        Err(source) => Err(RegistryError::Io { path: dir.path().to_owned(), source }),
    }
}

/// Reads a session from its files; `None` only if it does not exist, or is being created or removed. A running session
/// whose files are missing or damaged is described by its process.
pub fn try_read(dir: SessionDir) -> io::Result<Option<Entry>> {
    read_detail(&dir, Detail::Whole)
}

fn read_detail(dir: &SessionDir, detail: Detail) -> io::Result<Option<Entry>> {
    match read_files(dir, detail) {
        Ok(Some(entry)) => Ok(Some(entry)),
        unread => ask_process(dir, detail).map_or(unread, |entry| Ok(Some(entry))),
    }
}

/// Describes a session by its process; `None` if none answers in time.
fn ask_process(dir: &SessionDir, detail: Detail) -> Option<Entry> {
    let mut info = Control::status(dir, STATUS_TIMEOUT).ok().filter(|info| info.id == *dir.id())?;
    if let (Detail::Listed, Some(agent)) = (detail, &mut info.agent) {
        agent.commands = None;
    }
    let meta = Meta::read(&dir.meta()).ok().filter(|meta| meta.id == *dir.id());
    let meta_is_whole = meta.is_some();
    let meta = meta.unwrap_or_else(|| meta_of_running(&info));
    Some(Entry { dir: dir.clone(), meta, meta_is_whole, info, is_local: true })
}

/// What a process reports of its `meta.json`, where that is missing or damaged. It lacks the environment, so no session
/// may be restarted with it.
fn meta_of_running(info: &SessionInfo) -> Meta {
    let terminal = info.terminal.as_ref().map(|terminal| TerminalMeta {
        argv: terminal.argv.iter().map(|arg| arg.as_str().into()).collect(),
        arg0: None,
        env: Vec::new(),
        size: terminal.size,
        log_size: log::DEFAULT_SIZE,
        scrollback: DEFAULT_SCROLLBACK,
    });
    let agent = info.agent.as_ref().map(|agent| AgentMeta {
        agent: agent.agent.clone(),
        protocol: Protocol::Acp,
        command: Vec::new(),
        env: Vec::new(),
        table_env: Vec::new(),
        resume: agent.conversation.clone(),
        mode: None,
        model: None,
        mode_policy: ModePolicy::default(),
        limits: ConversationLimits::default(),
    });
    Meta {
        id: info.id.clone(),
        name: info.name.clone(),
        kind: info.kind,
        cwd: info.cwd.as_str().into(),
        detached_ttl: 0,
        request: None,
        makers: Makers::default(),
        open_files: None,
        created: info.created.clone(),
        host: this_host(),
        boot: this_boot(),
        terminal,
        agent,
    }
}

/// Reads a session from its files. Damage is an error, except in the journal of a session that has ended: that session
/// is lost, but its screen and log are still served.
fn read_files(dir: &SessionDir, detail: Detail) -> io::Result<Option<Entry>> {
    let Some(meta) = if_found(Meta::read(&dir.meta()))? else { return Ok(None) };
    if meta.id != *dir.id() {
        return Err(damage("meta.json is of another session"));
    }
    let is_local = meta.host == this_host();
    if !is_local && control::is_listening(dir) {
        return Err(damage("meta.json names another machine, but its process runs here"));
    }
    let (summary, mut agent) = match read_journal(dir, &meta, is_local, detail) {
        Err(error) if is_damage(&error) => Default::default(),
        read => if_found(read)?.unwrap_or_default(),
    };
    let mut size = summary.size;
    let started = match summary.started.clone() {
        Some(started) => started,
        None => {
            let ended = is_local && !is_alive(dir);
            // The start is recorded before meta.json is written. So the journal is damaged, unless the whole session
            // was removed meanwhile.
            if !dir.meta().try_exists()? {
                return Ok(None);
            }
            if !ended {
                return Err(damage("events.jsonl has no start event"));
            }
            let screen = archive::read_screen(dir).ok();
            size = size.or(screen.as_ref().map(|screen| screen.size));
            let epoch = screen.map_or_else(|| Epoch::from_random([0; 4]), |screen| screen.epoch);
            RunStart { epoch, offset: 0, pid: 0, version: String::new() }
        }
    };
    // The exit of an earlier run says nothing about a process that was started after it.
    let recorded = Pid::from_raw(started.pid.cast_signed());
    if is_local && summary.exit.is_some() && control::listener(dir).is_some_and(|pid| Some(pid) != recorded) {
        return Err(damage("events.jsonl lacks the start of the running process"));
    }
    let terminal = meta
        .terminal
        .as_ref()
        .map(|terminal| TerminalInfo { argv: terminal.argv_lossy(), size: size.unwrap_or(terminal.size) });
    let recorded_end = summary.exit.as_ref().map_or(started.offset, |(_, end)| *end);
    let end = match &agent {
        Some((_, next_seq)) => *next_seq,
        None => archive::open_log(dir, &summary).map(|log| log.end()).unwrap_or(recorded_end),
    };
    let state = match &summary.exit {
        Some(_) => State::Exited,
        None if !is_local || is_alive(dir) => State::Running,
        None => State::Lost,
    };
    if let (State::Lost, Detail::Listed, Some((agent, _))) = (state, detail, &mut agent) {
        // Without a process, nothing runs and nothing waits, whatever the next repair has to end.
        (agent.activity, agent.queued) = (None, 0);
        agent.approvals.clear();
    }
    // The end of an agent's journal is checked when it is next opened, which begins a new epoch if it has to.
    let crashed = state == State::Lost && meta.boot != this_boot() && meta.kind == Kind::Terminal;
    let info = SessionInfo {
        id: meta.id.clone(),
        name: meta.name.clone(),
        kind: meta.kind,
        state,
        exit: summary.exit.as_ref().map(|(exit, _)| exit.clone()),
        created: meta.created.clone(),
        active: last_output(dir, &meta, &summary),
        call: summary.call,
        host: (!is_local).then(|| meta.host.clone()),
        cwd: summary.cwd.unwrap_or_else(|| meta.cwd.lossy()),
        title: summary.title,
        clients: 0,
        epoch: if crashed { epoch_after_crash(&started.epoch) } else { started.epoch },
        offset: end,
        degraded: summary.degraded,
        version: started.version,
        truncated: false,
        terminal,
        agent: agent.map(|(agent, _)| agent),
    };
    Ok(Some(Entry { dir: dir.clone(), meta, meta_is_whole: true, info, is_local }))
}

/// Reads what a list shows of the journal. For an agent session, also its own fields and the number of its next event.
fn read_journal(
    dir: &SessionDir,
    meta: &Meta,
    is_local: bool,
    detail: Detail,
) -> io::Result<(Summary, Option<(AgentInfo, u64)>)> {
    // Never write to the files of another machine, or of a kind added by a newer version.
    let Some(agent) = &meta.agent else {
        let may_write = is_local && meta.kind != Kind::Unknown;
        return Ok((if may_write { Summary::read_and_checkpoint } else { Summary::read }(dir)?, None));
    };
    let fold = match (detail, is_local) {
        (Detail::Listed, may_write) => transcript::read_listed(dir, may_write)?,
        (Detail::Whole, true) => transcript::read_state_and_checkpoint(dir)?.fold,
        (Detail::Whole, false) => transcript::read_state(dir)?.fold,
    };
    let info = agent_info(&agent.agent, &fold);
    let started = fold.epoch().cloned().zip(fold.process.clone());
    let summary = Summary {
        started: started.map(|(epoch, (pid, version))| RunStart { epoch, offset: 0, pid, version }),
        title: fold.title,
        degraded: fold.degraded,
        exit: fold.exit.map(|exit| (exit, fold.next_seq)),
        last_at: fold.last_at,
        ..Summary::default()
    };
    Ok((summary, Some((info, fold.next_seq))))
}

/// The id of the session process, as its latest start recorded it.
pub(crate) fn recorded_process(dir: &SessionDir, meta: &Meta) -> Option<u32> {
    Some(read_journal(dir, meta, false, Detail::Listed).ok()?.0.started?.pid)
}

/// What a conversation's fold says about its session.
pub fn agent_info(agent: &str, fold: &Fold) -> AgentInfo {
    let current = |choices: Option<&Choices>| choices.and_then(|choices| choices.current.clone());
    let config = fold.config.as_ref();
    AgentInfo {
        agent: agent.to_owned(),
        conversation: fold.conversation.clone(),
        activity: fold.activity(),
        queued: fold.queued(),
        approvals: fold.approvals.clone(),
        mode: current(config.and_then(|config| config.modes.as_ref())),
        model: current(config.and_then(|config| config.models.as_ref())),
        usage: fold.usage.clone(),
        commands: config.map(|config| Arc::clone(&config.commands)).filter(|commands| !commands.is_empty()),
    }
}

/// A missing file is `None`; any other error is returned.
fn if_found<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether this error means that the `meta.json` of an ended session is damaged. Its name, and the machine that it
/// belongs to, are then lost.
fn is_damaged_meta(dir: &SessionDir, error: &io::Error) -> bool {
    let unreadable = || match Meta::read(&dir.meta()) {
        Ok(meta) => meta.id != *dir.id(),
        Err(error) => is_damage(&error),
    };
    is_damage(error) && unreadable() && !Meta::is_of_unknown_kind(&dir.meta()) && !is_alive(dir)
}

/// Whether descriptors or memory have run out, which is temporary.
fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// The time of the last output, judging by the files. For an ended session, that is the time of its last event.
fn last_output(dir: &SessionDir, meta: &Meta, summary: &Summary) -> Option<String> {
    let written = || Some(timestamp_of(fs::metadata(dir.log()).ok()?.modified().ok()?));
    let by_events = summary.exit.is_some() || meta.terminal.is_none();
    if by_events { Some(summary.last_at.clone()).filter(|at| !at.is_empty()) } else { written() }
}

/// A new epoch for a run that ended with its machine: the newest pages of the log may be lost, so old cursors are
/// invalid.
fn epoch_after_crash(epoch: &Epoch) -> Epoch {
    let number = u32::from_str_radix(epoch.as_str(), 16).unwrap_or(0);
    Epoch::from_random((number ^ 0x7042_4e21).to_be_bytes())
}
