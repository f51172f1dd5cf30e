//! Starts and restarts sessions: runs a detached session process, and waits until it is ready or has failed.
//!
//! The start request is sent over a pipe, never in the arguments; the reports arrive over another.

use std::io;
use std::path::Path;
use std::time::Duration;

use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::api::IfExists;
use bowline_proto::ids::{Epoch, SessionId, SessionName};
use bowline_proto::problem::Code;
use bowline_proto::session::{Kind, State};
use serde::{Deserialize, Serialize};

use crate::agents::AgentTable;
use crate::change_lock::{ChangeLockError, lock_name, lock_session};
use crate::files;
use crate::home::{Home, HomeError, SessionDir};
use crate::launch::Launcher;
use crate::machine::this_boot;
use crate::meta::Meta;
use crate::os_text::OsText;
use crate::registry::{self, Entry, RegistryError};
use crate::remove::{self, EndError, Retention};
use crate::spec::{BodySpec, Spec, check_limits, meta};
use crate::starting::{Report, StartingProcess};

/// Variables that describe the terminal that a session is started from. They would be wrong in the session.
pub const OUTER_TERMINAL_VARIABLES: [&str; 16] = [
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERMINAL_EMULATOR",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "COLUMNS",
    "LINES",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "WEZTERM_PANE",
    "ALACRITTY_WINDOW_ID",
    "ITERM_SESSION_ID",
    "WT_SESSION",
    "KONSOLE_VERSION",
];

/// The result of [`start`].
#[derive(Clone, Debug)]
pub struct StartOutcome {
    /// The session. Its files may be removed already, if its program ended at once and the retention keeps nothing.
    pub entry: Entry,
    /// The session was running before.
    pub existed: bool,
}

/// A failed start. Nothing of the new session is left behind.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The session process reported an error.
    #[error("{message}")]
    Refused { code: Code, message: String },
    /// A running session has the name; `command` and `cwd` are what it was started with.
    #[error("a session called {name} ({id}) is already running {command:?} in {cwd:?}")]
    NameTaken { name: SessionName, id: SessionId, command: String, cwd: String },
    /// The session is of a kind added by a newer version.
    #[error(
        "this version of bowline cannot run a session of this kind; use the version that created it, or a newer one"
    )]
    Kind,
    /// The table has no such agent; `known` lists those that it has.
    #[error("no agent is called {agent:?}; there are {known}")]
    UnknownAgent { agent: String, known: String },
    /// The session's agent is no longer in the table.
    #[error("no agent is called {0:?} in the configuration any more; add it again, or start another session")]
    NoAgent(String),
    /// The configuration does not allow the mode, or no longer does.
    #[error("the configuration does not allow the mode {mode:?} of {agent}")]
    Mode { agent: String, mode: String },
    /// A setting is out of range.
    #[error("{0}")]
    Limit(String),
    #[error("the session belongs to the machine {0}")]
    OtherMachine(String),
    #[error(transparent)]
    Locked(#[from] ChangeLockError),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The session to be replaced or restarted could not be ended.
    #[error(transparent)]
    End(#[from] EndError),
    #[error("the session process did not report within {0:?} and was killed; check that its directory is reachable")]
    TimedOut(Duration),
    #[error("cannot run the session process: {0}")]
    Process(#[source] io::Error),
}

impl StartError {
    /// The problem code of the protocol for this error.
    pub fn code(&self) -> Code {
        match self {
            StartError::Refused { code, .. } => *code,
            StartError::NameTaken { .. } => Code::NameTaken,
            StartError::Kind => Code::NoVersion,
            StartError::UnknownAgent { .. } | StartError::NoAgent(_) => Code::NoProgram,
            StartError::Mode { .. } => Code::NotAllowedMode,
            StartError::Limit(_) => Code::BadRequest,
            StartError::OtherMachine(_) | StartError::End(EndError::OtherMachine(_)) => Code::NotAllowed,
            StartError::Registry(RegistryError::Unknown(_)) => Code::UnknownSession,
            // These may be temporary.
            StartError::Registry(RegistryError::Io { .. } | RegistryError::Damaged { .. })
            | StartError::End(EndError::Stuck(_))
            | StartError::Locked(ChangeLockError::Busy(_))
            | StartError::TimedOut(_) => Code::Unreachable,
            StartError::End(EndError::Restarted) => Code::IdReused,
            StartError::End(EndError::Files { source, .. })
            | StartError::Locked(ChangeLockError::Io { source, .. }) => files::code(source),
            StartError::Home(error) => error.code(),
            StartError::Process(_) => Code::Internal,
        }
    }
}

/// The request that a session process reads from its pipe.
#[derive(Debug, Serialize, Deserialize)]
pub struct StartRequest {
    /// The state directory.
    pub state: OsText,
    /// The runtime directory.
    pub runtime: OsText,
    pub meta: Meta,
    /// Restart an existing session instead of creating a new one.
    pub restart: bool,
    /// The first prompt of an agent session, and the name of its sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<(FirstPrompt, String)>,
}

/// Starts a session, then prunes ended sessions according to `retention`.
pub fn start(home: &Home, launcher: &Launcher, spec: Spec, retention: &Retention) -> Result<StartOutcome, StartError> {
    check_limits(&spec)?;
    home.ensure()?;
    let if_exists = spec.if_exists;
    let (prompt, install) = match &spec.body {
        BodySpec::Agent(agent) => (agent.prompt.clone(), agent.program.install.clone()),
        BodySpec::Terminal(_) => (None, None),
    };
    let meta = meta(spec).map_err(StartError::Process)?;
    // Held until the new session is running, and so found by its name.
    let name_lock = meta.name.as_ref().map(|name| lock_name(home, name)).transpose()?;
    let mut replaced = None;
    if let Some(name) = &meta.name
        && let Some(holder) = registry::running_holder(home, name)?
    {
        if if_exists == IfExists::Return {
            holder.check_meta()?;
        }
        match if_exists {
            IfExists::Return if runs_same(&holder.meta, &meta) => {
                return Ok(StartOutcome { entry: holder, existed: true });
            }
            IfExists::Restart => replaced = Some(holder),
            IfExists::Fail | IfExists::Return => return Err(name_taken(name, &holder)),
        }
    }
    let dir = home.session(&meta.id);
    // End the old session only when everything for the new one is ready, and remove its files only when the new one
    // runs. So an invalid spec leaves the old session running, and any other failure leaves its screen and log.
    let make_room =
        || replaced.as_ref().map_or(Ok(()), |old| remove::end(old, remove::default_grace(old.meta.kind), true));
    run(home, launcher, Start { meta, restart: false, prompt }, &make_room)
        .map_err(|error| with_install_hint(error, install.as_deref()))?;
    if let Some(old) = replaced
        && let Err(error) = remove::forget(&old)
    {
        tracing::warn!(%error, session = %old.info.id, "cannot remove the files of a replaced session");
    }
    drop(name_lock);
    Ok(StartOutcome { entry: read_then_prune(home, &dir, retention)?, existed: false })
}

/// Adds the command that installs a missing program of an agent.
fn with_install_hint(error: StartError, install: Option<&str>) -> StartError {
    match (error, install) {
        (StartError::Refused { code: Code::NoProgram, message }, Some(install)) => {
            let message = format!("{message}; install it with `{install}`");
            StartError::Refused { code: Code::NoProgram, message }
        }
        (error, _) => error,
    }
}

/// Reads a new session before pruning, because pruning removes it if it has already ended and nothing is kept.
fn read_then_prune(home: &Home, dir: &SessionDir, retention: &Retention) -> Result<Entry, RegistryError> {
    let entry = registry::reread(dir)?;
    // The session was started, even if pruning others fails.
    let _ = remove::prune(home, retention, false);
    Ok(entry)
}

/// Whether two sessions have the same command, or the same agent, and directory.
fn runs_same(a: &Meta, b: &Meta) -> bool {
    let argv = |meta: &Meta| meta.terminal.as_ref().map(|terminal| terminal.argv.clone());
    let agent = |meta: &Meta| meta.agent.as_ref().map(|agent| agent.agent.clone());
    let same_cwd = Path::new(a.cwd.as_os()) == Path::new(b.cwd.as_os());
    a.kind == b.kind && argv(a) == argv(b) && agent(a) == agent(b) && same_cwd
}

fn name_taken(name: &SessionName, holder: &Entry) -> StartError {
    let mut info = holder.info.clone();
    info.truncate();
    StartError::NameTaken {
        name: name.clone(),
        id: holder.info.id.clone(),
        command: info.command_line(),
        cwd: holder.meta.cwd.lossy(),
    }
}

/// Restarts an exited or lost session: with the same id and settings, a new epoch, and offsets that continue. Does
/// nothing if the session is running, or its epoch is not the given one. The command of an agent is read from the table
/// again.
pub fn restart(
    home: &Home,
    launcher: &Launcher,
    entry: &Entry,
    epoch: Option<&Epoch>,
    agents: &AgentTable,
) -> Result<Entry, StartError> {
    if !entry.is_local {
        return Err(StartError::OtherMachine(entry.meta.host.clone()));
    }
    // Read the session again under the lock: of two restarts at once, the second finds it running.
    let _session = lock_session(home, &entry.info.id)?;
    let entry = registry::reread(&entry.dir)?;
    let stale = epoch.is_some_and(|epoch| *epoch != entry.info.epoch);
    if stale || entry.info.state == State::Running {
        return Ok(entry);
    }
    entry.check_meta()?;
    let mut agent = entry.meta.agent.clone();
    match entry.meta.kind {
        Kind::Terminal => {}
        Kind::Agent => {
            if let Some(agent) = &mut agent {
                let program = agents.get(&agent.agent).ok_or_else(|| StartError::NoAgent(agent.agent.clone()))?;
                // The mode that the agent was in last comes before the one that it began with.
                let last = entry.info.agent.as_ref().and_then(|info| info.mode.clone());
                if last.is_some_and(|mode| program.allows_mode(&mode)) {
                    agent.mode = agent.mode.take().filter(|mode| program.allows_mode(mode));
                }
                if let Some(mode) = agent.mode.clone().filter(|mode| !program.allows_mode(mode)) {
                    return Err(StartError::Mode { agent: agent.agent.clone(), mode });
                }
                agent.refresh(program);
            }
        }
        Kind::Unknown => return Err(StartError::Kind),
    }
    let _name = entry.meta.name.as_ref().map(|name| lock_name(home, name)).transpose()?;
    if let Some(name) = &entry.meta.name
        && let Some(holder) = registry::running_holder(home, name)?
    {
        return Err(name_taken(name, &holder));
    }
    // The process of an exited session may still be serving its last viewers.
    remove::end(&entry, remove::default_grace(entry.meta.kind), true)?;
    let meta = Meta { boot: this_boot(), agent, ..entry.meta };
    run(home, launcher, Start { meta, restart: true, prompt: None }, &|| Ok(()))?;
    Ok(registry::reread(&entry.dir)?)
}

/// The part of a [`StartRequest`] that differs between starts.
struct Start {
    meta: Meta,
    restart: bool,
    prompt: Option<(FirstPrompt, String)>,
}

/// Runs a session process and waits until it is ready. Calls `make_room` when everything but the program is ready.
fn run(
    home: &Home,
    launcher: &Launcher,
    start: Start,
    make_room: &dyn Fn() -> Result<(), EndError>,
) -> Result<(), StartError> {
    let Start { meta, restart, prompt } = start;
    let id = meta.id.clone();
    let request = StartRequest {
        state: home.state().as_os_str().to_owned().into(),
        runtime: home.runtime().as_os_str().to_owned().into(),
        meta,
        restart,
        prompt,
    };
    let mut request = serde_json::to_vec(&request).map_err(|error| StartError::Process(error.into()))?;
    request.push(b'\n');
    let result = match (run_once(launcher, &id, &request, make_room), launcher.without_scopes()) {
        (Err(StartError::Process(error)), Some(plain)) => {
            tracing::warn!(
                %error, session = %id,
                "cannot create a systemd scope for the session, so stopping this service may end it; \
                 check that `systemd-run --user --scope true` succeeds"
            );
            run_once(&plain, &id, &request, make_room)
        }
        (result, _) => result,
    };
    if let (Err(StartError::TimedOut(_)), false) = (&result, restart) {
        // The killed process could not remove its files itself.
        remove::remove_abandoned(&home.session(&id));
    }
    result
}

fn run_once(
    launcher: &Launcher,
    id: &SessionId,
    request: &[u8],
    make_room: &dyn Fn() -> Result<(), EndError>,
) -> Result<(), StartError> {
    let mut process = StartingProcess::spawn(launcher, id).map_err(StartError::Process)?;
    match exchange(&mut process, request, make_room) {
        Ok(Report::Ready) => {
            process.detach();
            Ok(())
        }
        Ok(Report::Failed { code, message }) => {
            process.abort();
            Err(StartError::Refused { code, message })
        }
        Ok(Report::Prepared) => {
            process.kill();
            Err(StartError::Process(io::Error::other("it reported `prepared` twice")))
        }
        Err(StartError::Process(error)) if error.kind() == io::ErrorKind::TimedOut => {
            process.kill();
            Err(StartError::TimedOut(launcher.report_within()))
        }
        Err(StartError::Process(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let status = process.abort();
            Err(StartError::Process(io::Error::other(format!("it ended without a report ({status})"))))
        }
        Err(error) => {
            process.abort();
            Err(error)
        }
    }
}

/// Sends the start request to a session process, and returns its final report.
fn exchange(
    process: &mut StartingProcess,
    request: &[u8],
    make_room: &dyn Fn() -> Result<(), EndError>,
) -> Result<Report, StartError> {
    process.send(request).map_err(StartError::Process)?;
    let first = process.receive().map_err(StartError::Process)?;
    let Report::Prepared = first else { return Ok(first) };
    make_room()?;
    process.send(b"\n").map_err(StartError::Process)?;
    process.receive().map_err(StartError::Process)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use bowline_proto::size::Size;

    use super::*;
    use crate::events::Event;
    use crate::history::History;
    use crate::log;
    use crate::meta::Makers;
    use crate::spec::{DEFAULT_SCROLLBACK, TerminalSpec};

    #[test]
    fn r28_a_session_that_is_pruned_at_once_is_still_returned() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        home.ensure().unwrap();
        let dir = home.session(&SessionId::from_random([0; 12]));
        std::fs::create_dir(dir.path()).unwrap();
        let (epoch, size) = (Epoch::from_random([0; 4]), Size::default());
        let (mut journal, mut history) = History::open(&dir.events()).unwrap();
        let mut record = |event| history.record(&mut journal, event).unwrap();
        record(Event::Started { epoch, offset: 0, size: Some(size), pid: 1, version: "0.1.0".to_owned() });
        record(Event::Exit { code: Some(0), signal: None, offset: 0 });
        let spec = Spec { id: Some(dir.id().clone()), ..spec(&["true"], "/") };
        meta(spec).unwrap().write(&dir.meta()).unwrap();
        let entry =
            read_then_prune(&home, &dir, &Retention { max_age: Duration::ZERO, ..Retention::KEEP_ALL }).unwrap();
        assert_eq!(
            (&entry.info.id, dir.path().exists()),
            (dir.id(), false),
            "it is returned, and its files are removed"
        );
    }

    #[test]
    fn r28_the_same_command_and_directory_count_as_the_same_session() {
        let running = meta(spec(&["make", "-j8"], "/src")).unwrap();
        let same = |wanted: Spec| runs_same(&running, &meta(wanted).unwrap());
        assert!(same(spec(&["make", "-j8"], "/src/")), "two spellings of one path");
        assert!(same(Spec { detached_ttl: 5, ..spec(&["make", "-j8"], "/src") }));
        assert!(!same(spec(&["make", "-j8"], "/src/app")));
        for argv in [&["make"][..], &["make", "-j8", "all"], &["make -j8"], &[]] {
            assert!(!same(spec(argv, "/src")), "{argv:?}");
        }
        let shell = meta(spec(&[], "/src")).unwrap();
        assert!(
            runs_same(&shell, &meta(spec(&["/bin/sh"], "/src")).unwrap()),
            "the default shell equals the same shell given explicitly"
        );
    }

    fn spec(argv: &[&str], cwd: &str) -> Spec {
        Spec {
            name: Some("s".parse().unwrap()),
            cwd: cwd.into(),
            detached_ttl: 0,
            if_exists: IfExists::Return,
            id: None,
            request: None,
            makers: Makers::default(),
            open_files: None,
            body: BodySpec::Terminal(TerminalSpec {
                argv: argv.iter().map(OsString::from).collect(),
                env: Vec::new(),
                size: Size::default(),
                log_size: log::DEFAULT_SIZE,
                scrollback: DEFAULT_SCROLLBACK,
            }),
        }
    }
}
