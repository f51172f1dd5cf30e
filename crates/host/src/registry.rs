//! Finding sessions: everything about them is read from their files and their lock, so that no session can hang a list.

use std::fs;
use std::io;

use bowline_proto::ids::{Epoch, SessionId, SessionName};
use bowline_proto::session::{Kind, SessionInfo, State, TerminalInfo};

use crate::archive;
use crate::control::{Control, STATUS_DEADLINE};
use crate::home::{Home, SessionDir};
use crate::lock::Lock;
use crate::log::Log;
use crate::machine::{this_boot, this_host};
use crate::meta::Meta;
use crate::summary::{Started, Summary};
use crate::timestamp::timestamp_of;

/// A session as its files tell.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its files.
    pub dir: SessionDir,
    /// What was asked.
    pub meta: Meta,
    /// Its description.
    pub info: SessionInfo,
    /// It belongs to this machine; others are shown, never touched.
    pub here: bool,
}

/// Why a session was not found.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// There is none of that id or name.
    #[error("no session is called {0:?}")]
    Unknown(String),
    /// It has ended, and what it was cannot be read any more.
    #[error("the session in {} has ended, and its files are damaged: {source}", dir.path().display())]
    Damaged {
        /// Its files; see [`crate::remove::forget_damaged`].
        dir: SessionDir,
        /// What is wrong with them.
        source: io::Error,
    },
    /// The state directory could not be read.
    #[error("cannot read the sessions in {path}: {source}")]
    Io {
        /// Where.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// All sessions, oldest first. Living ones are asked for what files do not tell (who is attached), each for a moment
/// only; one that does not answer is described from its files.
pub fn list(home: &Home) -> Result<Vec<Entry>, RegistryError> {
    let mut entries = list_files(home)?;
    for entry in entries.iter_mut().filter(|entry| entry.here && entry.info.state == State::Running) {
        if let Ok(info) = Control::status(&entry.dir, STATUS_DEADLINE) {
            entry.info = info;
        }
    }
    Ok(entries)
}

/// All sessions as their files tell, oldest first. One whose files cannot be read is left out.
pub fn list_files(home: &Home) -> Result<Vec<Entry>, RegistryError> {
    Ok(scan(home)?.0)
}

/// All sessions, and why another one that may be alive could not be read.
fn scan(home: &Home) -> Result<(Vec<Entry>, Option<RegistryError>), RegistryError> {
    let path = home.sessions();
    let (mut entries, mut unread) = (Vec::new(), None);
    for dir in folders(home)? {
        match try_read(dir.clone()) {
            Ok(entry) => entries.extend(entry),
            // Of one that cannot be read now, nobody may say that it is not there.
            Err(source) if is_exhausted(&source) => return Err(RegistryError::Io { path, source }),
            // Of one that has ended, its name went with the file.
            Err(source) if is_damage(&source) && !Lock::is_held(&dir.lock()) => {}
            Err(source) => unread = Some(RegistryError::Io { path: dir.path().to_owned(), source }),
        }
    }
    entries.sort_by(|a, b| (&a.info.created, &a.info.id).cmp(&(&b.info.created, &b.info.id)));
    Ok((entries, unread))
}

/// The folders of all sessions.
fn folders(home: &Home) -> Result<Vec<SessionDir>, RegistryError> {
    let path = home.sessions();
    let folder = match fs::read_dir(&path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(RegistryError::Io { path, source }),
    };
    let ids = folder.filter_map(|found| found.ok()?.file_name().to_str()?.parse::<SessionId>().ok());
    Ok(ids.map(|id| home.session(&id)).collect())
}

/// Ended sessions of which nobody can say any more what they were.
pub(crate) fn damaged(home: &Home) -> Result<Vec<SessionDir>, RegistryError> {
    let ruined = |dir: &SessionDir| Meta::read(&dir.meta()).is_err_and(|error| is_ruin(dir, &error));
    Ok(folders(home)?.into_iter().filter(ruined).collect())
}

/// The session with this id, or else this name: this machine's before others', the running one, or else the newest. It is
/// unknown only where that is proven.
pub fn find(home: &Home, key: &str) -> Result<Entry, RegistryError> {
    if let Ok(id) = key.parse::<SessionId>() {
        let dir = home.session(&id);
        let unread = |source| match is_ruin(&dir, &source) {
            true => RegistryError::Damaged { dir: dir.clone(), source },
            false => RegistryError::Io { path: dir.path().to_owned(), source },
        };
        if let Some(entry) = try_read(dir.clone()).map_err(unread)? {
            return Ok(entry);
        }
        if dir.path().is_dir() && Lock::is_held(&dir.lock()) {
            return Err(unread(io::Error::other("it is just being made")));
        }
    }
    let named = |entry: &Entry| entry.info.name.as_ref().is_some_and(|name| name.as_str() == key);
    let (entries, unread) = scan(home)?;
    entries
        .into_iter()
        .filter(named)
        .max_by_key(|entry| (entry.here, entry.info.state == State::Running, entry.info.created.clone()))
        .ok_or_else(|| unread.unwrap_or_else(|| RegistryError::Unknown(key.to_owned())))
}

/// The running session of this machine that has a name.
pub fn running_holder(home: &Home, name: &SessionName) -> Result<Option<Entry>, RegistryError> {
    // Another machine's sessions do not hold names here: nobody could tell when they end.
    let holds =
        |entry: &Entry| entry.here && entry.info.state == State::Running && entry.info.name.as_ref() == Some(name);
    Ok(list_files(home)?.into_iter().find(holds))
}

/// One session as its files tell; `None` when it is not there, not yet or no longer whole, or cannot be read.
pub fn read(dir: SessionDir) -> Option<Entry> {
    try_read(dir).ok().flatten()
}

/// A session that was found before, as its files tell now.
pub(crate) fn reread(dir: &SessionDir) -> Result<Entry, RegistryError> {
    match try_read(dir.clone()) {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => Err(RegistryError::Unknown(dir.id().to_string())),
        Err(source) => Err(RegistryError::Io { path: dir.path().to_owned(), source }),
    }
}

/// One session as its files tell; `None` only when it is not there, or not yet or no longer whole. Damage is an error,
/// unless it is to the events of one that has ended: that is lost, with the screen and the log that it left.
pub fn try_read(dir: SessionDir) -> io::Result<Option<Entry>> {
    let Some(meta) = there(Meta::read(&dir.meta()))? else { return Ok(None) };
    let here = meta.host == this_host();
    // Another machine's files, and those of a kind that only a later version knows, are read and left alone.
    let read_events = if here && meta.kind != Kind::Unknown { Summary::read_and_checkpoint } else { Summary::read };
    let summary = there(read_events(&dir))?.unwrap_or_default();
    let mut size = summary.size;
    let started = match summary.started.clone() {
        Some(started) => started,
        None => {
            let ended = here && !Lock::is_held(&dir.lock());
            // It was written before what we have just read, so it is damaged, unless all of it went meanwhile.
            if !dir.meta().try_exists()? {
                return Ok(None);
            }
            if !ended {
                return Err(damage("events.jsonl does not tell of a start"));
            }
            let screen = archive::read_screen(&dir).ok();
            size = size.or(screen.as_ref().map(|screen| screen.size));
            let epoch = screen.map_or_else(|| Epoch::from_random([0; 4]), |screen| screen.epoch);
            Started { epoch, offset: 0, pid: 0, version: String::new() }
        }
    };
    let terminal = meta
        .terminal
        .as_ref()
        .map(|terminal| TerminalInfo { argv: terminal.argv_lossy(), size: size.unwrap_or(terminal.size) });
    let log_end = Log::open(&dir.log()).map(|log| log.end()).unwrap_or(started.offset);
    let state = match &summary.exit {
        Some(_) => State::Exited,
        None if !here || Lock::is_held(&dir.lock()) => State::Running,
        None => State::Lost,
    };
    let torn = state == State::Lost && meta.boot != this_boot();
    let info = SessionInfo {
        id: meta.id.clone(),
        name: meta.name.clone(),
        kind: meta.kind,
        state,
        exit: summary.exit.as_ref().map(|(exit, _)| exit.clone()),
        created: meta.created.clone(),
        active: last_output(&dir, &meta, &summary),
        call: summary.call,
        host: (!here).then(|| meta.host.clone()),
        cwd: summary.cwd.unwrap_or_else(|| meta.cwd.lossy()),
        title: summary.title,
        clients: 0,
        epoch: if torn { torn_epoch(&started.epoch) } else { started.epoch },
        offset: log_end,
        degraded: summary.degraded,
        version: started.version,
        terminal,
    };
    Ok(Some(Entry { dir, meta, info, here }))
}

/// What is not there is none; any other error is one.
fn there<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

fn damage(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// What is there makes no sense.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Whether this error says that an ended session's own description is damaged. A name in it is free, and what it ran on
/// is known to nobody.
fn is_ruin(dir: &SessionDir, error: &io::Error) -> bool {
    let undescribed = || Meta::read(&dir.meta()).is_err_and(|error| is_damage(&error));
    is_damage(error) && undescribed() && !Meta::is_of_unknown_kind(&dir.meta()) && !Lock::is_held(&dir.lock())
}

/// Descriptors or memory have run out, which passes.
fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// When it last printed something, as far as files tell: a session that ended, at its end at the latest.
fn last_output(dir: &SessionDir, meta: &Meta, summary: &Summary) -> Option<String> {
    let written = || Some(timestamp_of(fs::metadata(dir.log()).ok()?.modified().ok()?));
    let by_events = summary.exit.is_some() || meta.terminal.is_none();
    if by_events { Some(summary.last_at.clone()).filter(|at| !at.is_empty()) } else { written() }
}

/// A machine that went down may have lost the newest pages of the log, so cursors into that life no longer hold.
fn torn_epoch(epoch: &Epoch) -> Epoch {
    let number = u32::from_str_radix(epoch.as_str(), 16).unwrap_or(0);
    Epoch::from_random((number ^ 0x7042_4e21).to_be_bytes())
}
