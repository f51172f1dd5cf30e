//! Starting a session process, detached, and learning at once whether it could start.
//!
//! What to start travels over a pipe, never in the arguments; readiness or the precise error comes back over another.

use bowline_proto::api::IfExists;
use bowline_proto::problem::Code;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_proto::ids::{Epoch, SessionId, SessionName};
use bowline_proto::session::{Kind, State};
use bowline_proto::size::Size;
use serde::{Deserialize, Serialize};

use crate::hold::{HoldError, hold_name, hold_session};
use crate::home::{Home, HomeError, SessionDir};
use crate::launch::Launcher;
use crate::log;
use crate::machine::{this_boot, this_host};
use crate::meta::{Meta, TerminalMeta};
use crate::newborn::{Newborn, Report};
use crate::os_text::OsText;
use crate::registry::{self, Entry, RegistryError};
use crate::remove::{self, EndError, Retention};
use crate::timestamp::timestamp;

/// Lines above the visible ones that a screen keeps when nobody says otherwise. The emulator takes memory for a
/// thousand at a time, some 2 MB at 80 columns.
pub const DEFAULT_HISTORY: u32 = 1000;
/// The most lines; at 200 columns they cost some 480 MB, which a user must ask for.
pub const MAX_HISTORY: u32 = 100_000;
/// The longest time without a viewer, in seconds: ten years.
pub const MAX_TTL: u64 = 10 * 366 * 24 * 3600;

/// What the terminal around a starter says of itself. In the session it would be a lie.
pub const OUTER_TERMINAL: [&str; 16] = [
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

/// What a new session shall be.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name.
    pub name: Option<SessionName>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Seconds without a viewer after which it ends; 0 for never.
    pub detached_ttl: u64,
    /// What to do when a running session has the name.
    pub if_exists: IfExists,
    /// The id to use, where the caller derives it; random otherwise.
    pub id: Option<SessionId>,
    /// A digest of the request that the id was derived for, so that another request under the same key is noticed.
    pub request: Option<String>,
    /// The soft limit of open files for its program; the caller's own otherwise.
    pub open_files: Option<u64>,
    /// What it runs.
    pub body: BodySpec,
}

/// What a new session runs.
#[derive(Clone, Debug)]
pub enum BodySpec {
    /// A program on a terminal.
    Terminal(TerminalSpec),
}

/// A program on a terminal.
#[derive(Clone, Debug)]
pub struct TerminalSpec {
    /// Program and arguments; empty for the login shell.
    pub argv: Vec<OsString>,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// The terminal's size.
    pub size: Size,
    /// Bytes of output to keep.
    pub log_size: u64,
    /// Lines to keep above the visible ones.
    pub history: u32,
}

/// The session that a start led to.
#[derive(Clone, Debug)]
pub struct Started {
    /// The session. Its files may be gone again: a program that ends at once is pruned at once where nothing is kept.
    pub entry: Entry,
    /// It was running before.
    pub existed: bool,
}

/// Why there is no new session; nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The session process said why.
    #[error("{message}")]
    Refused {
        /// A problem code of the protocol.
        code: Code,
        /// For people.
        message: String,
    },
    /// A running session has the name.
    #[error("a session called {name} ({id}) is already running {command:?} in {cwd:?}")]
    NameTaken {
        /// The name.
        name: SessionName,
        /// The session that has it.
        id: SessionId,
        /// The command line of that session.
        command: String,
        /// The directory that it was started in.
        cwd: String,
    },
    /// It is of a kind that came with a later version.
    #[error("this version of bowline cannot run a session of this kind; use the version that made it, or a newer one")]
    Kind,
    /// A number is out of its bounds.
    #[error("{0}")]
    Limit(String),
    /// The session belongs to another machine.
    #[error("the session belongs to the machine {0}")]
    Elsewhere(String),
    /// Somebody else is starting it, or one of its name.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The state directory is unusable.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The state directory cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The one that holds the name could not be ended.
    #[error(transparent)]
    End(#[from] EndError),
    /// The session process hung, and was ended.
    #[error("the session process was silent for {0:?} and was ended; is its directory on a disk that does not answer?")]
    Silent(Duration),
    /// The session process could not be run.
    #[error("cannot run the session process: {0}")]
    Process(#[source] io::Error),
}

impl StartError {
    /// The protocol's code for this.
    pub fn code(&self) -> Code {
        match self {
            StartError::Refused { code, .. } => *code,
            StartError::NameTaken { .. } => Code::NameTaken,
            StartError::Kind => Code::NoVersion,
            StartError::Limit(_) => Code::BadRequest,
            StartError::Elsewhere(_) | StartError::End(EndError::Elsewhere(_)) => Code::NotAllowed,
            StartError::Registry(RegistryError::Unknown(_)) => Code::UnknownSession,
            // All of this may pass.
            StartError::Registry(RegistryError::Io { .. } | RegistryError::Damaged { .. })
            | StartError::End(EndError::Stuck(_))
            | StartError::Hold(HoldError::Busy(_))
            | StartError::Silent(_) => Code::Unreachable,
            StartError::End(EndError::Alive) => Code::IdReused,
            StartError::End(EndError::Files { .. })
            | StartError::Hold(HoldError::Io { .. })
            | StartError::Home(_)
            | StartError::Process(_) => Code::Internal,
        }
    }
}

/// What the session process is told.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The state directory.
    pub state: OsText,
    /// The runtime directory.
    pub runtime: OsText,
    /// What to run.
    pub meta: Meta,
    /// Not a new session: a new life of an old one.
    pub restart: bool,
}

/// Starts a session by running a session process, then prunes ended sessions as `retention` says.
pub fn start(home: &Home, launcher: &Launcher, spec: Spec, retention: &Retention) -> Result<Started, StartError> {
    check(&spec)?;
    home.ensure()?;
    let if_exists = spec.if_exists;
    let meta = meta(spec).map_err(StartError::Process)?;
    // Held until the new session's lock speaks for the name.
    let name_hold = meta.name.as_ref().map(|name| hold_name(home, name)).transpose()?;
    let mut replaced = None;
    if let Some(name) = &meta.name
        && let Some(holder) = registry::running_holder(home, name)?
    {
        match if_exists {
            IfExists::Return if runs_same(&holder.meta, &meta) => {
                return Ok(Started { entry: holder, existed: true });
            }
            IfExists::Restart => replaced = Some(holder),
            IfExists::Fail | IfExists::Return => return Err(taken(name, &holder)),
        }
    }
    let dir = home.session(&meta.id);
    // The old one ends when all is there for the new one, and is forgotten when that lives: a mistake in what was asked
    // leaves it running, and whatever else goes wrong leaves its screen and its log.
    let make_room = || replaced.as_ref().map_or(Ok(()), |old| remove::end(old, remove::DEFAULT_GRACE, true));
    run(home, launcher, meta, false, &make_room)?;
    if let Some(old) = replaced
        && let Err(error) = remove::forget(&old)
    {
        tracing::warn!(%error, session = %old.info.id, "a session that was replaced is still listed");
    }
    drop(name_hold);
    Ok(Started { entry: read_then_prune(home, &dir, retention)?, existed: false })
}

/// Reads a new session before pruning, which removes it if it has already ended and nothing is to be kept.
fn read_then_prune(home: &Home, dir: &SessionDir, retention: &Retention) -> Result<Entry, RegistryError> {
    let entry = registry::reread(dir)?;
    // The session is there, whether or not others can be pruned.
    let _ = remove::prune(home, retention, false);
    Ok(entry)
}

/// Whether two sessions are started with the same command and directory.
fn runs_same(a: &Meta, b: &Meta) -> bool {
    let argv = |meta: &Meta| meta.terminal.as_ref().map(|terminal| terminal.argv.clone());
    a.kind == b.kind && argv(a) == argv(b) && Path::new(a.cwd.as_os()) == Path::new(b.cwd.as_os())
}

fn taken(name: &SessionName, holder: &Entry) -> StartError {
    StartError::NameTaken {
        name: name.clone(),
        id: holder.info.id.clone(),
        command: holder.info.command_line(),
        cwd: holder.meta.cwd.lossy(),
    }
}

/// Gives an exited or lost session a new life: the same id and spec, a new epoch, offsets that go on. A session whose
/// epoch is not (or no longer) the given one is left as it is.
pub fn restart(home: &Home, launcher: &Launcher, entry: &Entry, epoch: Option<&Epoch>) -> Result<Entry, StartError> {
    if !entry.here {
        return Err(StartError::Elsewhere(entry.meta.host.clone()));
    }
    // What was true of it before it was our turn may not be any more: of two restarts, the second finds it running.
    let _session = hold_session(home, &entry.info.id)?;
    let entry = registry::reread(&entry.dir)?;
    let stale = epoch.is_some_and(|epoch| *epoch != entry.info.epoch);
    if stale || entry.info.state == State::Running {
        return Ok(entry);
    }
    if entry.meta.kind != Kind::Terminal {
        return Err(StartError::Kind);
    }
    let _name = entry.meta.name.as_ref().map(|name| hold_name(home, name)).transpose()?;
    if let Some(name) = &entry.meta.name
        && let Some(holder) = registry::running_holder(home, name)?
    {
        return Err(taken(name, &holder));
    }
    // An exited session may still be serving its last viewers; it makes room.
    remove::end(&entry, remove::DEFAULT_GRACE, true)?;
    let meta = Meta { boot: this_boot(), ..entry.meta };
    run(home, launcher, meta, true, &|| Ok(()))?;
    Ok(registry::reread(&entry.dir)?)
}

fn check(spec: &Spec) -> Result<(), StartError> {
    let BodySpec::Terminal(terminal) = &spec.body;
    if !(log::MIN_SIZE..=log::MAX_SIZE).contains(&terminal.log_size) {
        let (min, max, bytes) = (log::MIN_SIZE >> 10, log::MAX_SIZE >> 30, terminal.log_size);
        return Err(StartError::Limit(format!("a log keeps {min} KiB to {max} GiB, not {bytes} bytes")));
    }
    if terminal.history > MAX_HISTORY {
        return Err(StartError::Limit(format!("a screen keeps at most {MAX_HISTORY} lines of scrollback")));
    }
    if spec.detached_ttl > MAX_TTL {
        return Err(StartError::Limit("a session waits for a viewer at most ten years; 0 is for ever".into()));
    }
    Ok(())
}

fn meta(spec: Spec) -> io::Result<Meta> {
    let mut random = [0; 12];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let BodySpec::Terminal(TerminalSpec { argv, env, size, log_size, history }) = spec.body;
    let (argv, arg0) = if argv.is_empty() { login_shell(&env) } else { (argv, None) };
    let terminal = TerminalMeta {
        argv: argv.into_iter().map(OsText::from).collect(),
        arg0: arg0.map(OsText::from),
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        size,
        log_size,
        history,
    };
    Ok(Meta {
        id: spec.id.unwrap_or_else(|| SessionId::from_random(random)),
        name: spec.name,
        kind: Kind::Terminal,
        cwd: spec.cwd.into_os_string().into(),
        detached_ttl: spec.detached_ttl,
        request: spec.request,
        open_files: spec.open_files.or(rustix::process::getrlimit(rustix::process::Resource::Nofile).current),
        created: timestamp(),
        host: this_host(),
        boot: this_boot(),
        terminal: Some(terminal),
    })
}

/// The shell of the environment, as a login shell sees itself.
fn login_shell(env: &[(OsString, OsString)]) -> (Vec<OsString>, Option<OsString>) {
    let shell = env.iter().find(|(name, value)| name == "SHELL" && !value.is_empty());
    let shell = shell.map_or_else(|| OsString::from("/bin/sh"), |(_, value)| value.clone());
    let mut arg0 = OsString::from("-");
    arg0.push(Path::new(&shell).file_name().unwrap_or(OsStr::new("sh")));
    (vec![shell], Some(arg0))
}

/// Runs a session process and waits for its reports. `make_room` is called when only the program is missing.
fn run(
    home: &Home,
    launcher: &Launcher,
    meta: Meta,
    restart: bool,
    make_room: &dyn Fn() -> Result<(), EndError>,
) -> Result<(), StartError> {
    let id = meta.id.clone();
    let order = Order {
        state: home.state().as_os_str().to_owned().into(),
        runtime: home.runtime().as_os_str().to_owned().into(),
        meta,
        restart,
    };
    let mut order = serde_json::to_vec(&order).map_err(|error| StartError::Process(error.into()))?;
    order.push(b'\n');
    let ran = match (run_once(launcher, &id, &order, make_room), launcher.plain()) {
        (Err(StartError::Process(error)), Some(plain)) => {
            tracing::warn!(
                %error, session = %id,
                "no systemd scope for a session, which the end of this service may now end; \
                 `systemd-run --user --scope true` should succeed"
            );
            run_once(&plain, &id, &order, make_room)
        }
        (ran, _) => ran,
    };
    if let (Err(StartError::Silent(_)), false) = (&ran, restart) {
        // It could not remove what it had made itself.
        remove::clear_stillborn(&home.session(&id));
    }
    ran
}

fn run_once(
    launcher: &Launcher,
    id: &SessionId,
    order: &[u8],
    make_room: &dyn Fn() -> Result<(), EndError>,
) -> Result<(), StartError> {
    let mut newborn = Newborn::run(launcher, id).map_err(StartError::Process)?;
    match converse(&mut newborn, order, make_room) {
        Ok(Report::Ready) => {
            newborn.let_live();
            Ok(())
        }
        Ok(Report::Failed { code, message }) => {
            newborn.dismiss();
            Err(StartError::Refused { code, message })
        }
        Ok(Report::Prepared) => {
            newborn.kill();
            Err(StartError::Process(io::Error::other("it said the same twice")))
        }
        Err(StartError::Process(error)) if error.kind() == io::ErrorKind::TimedOut => {
            newborn.kill();
            Err(StartError::Silent(launcher.silence()))
        }
        Err(StartError::Process(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let ended = newborn.dismiss();
            Err(StartError::Process(io::Error::other(format!("it ended without a word ({ended})"))))
        }
        Err(error) => {
            newborn.dismiss();
            Err(error)
        }
    }
}

/// Tells a session process what to be, and gives its last word.
fn converse(
    newborn: &mut Newborn,
    order: &[u8],
    make_room: &dyn Fn() -> Result<(), EndError>,
) -> Result<Report, StartError> {
    newborn.tell(order).map_err(StartError::Process)?;
    let first = newborn.hear().map_err(StartError::Process)?;
    let Report::Prepared = first else { return Ok(first) };
    make_room()?;
    newborn.tell(b"\n").map_err(StartError::Process)?;
    newborn.hear().map_err(StartError::Process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;
    use crate::history::History;

    #[test]
    fn r28_a_session_that_ends_and_is_forgotten_at_once_was_made() {
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
        let entry = read_then_prune(&home, &dir, &Retention { max_age: Duration::ZERO, max_bytes: 0 }).unwrap();
        assert_eq!((&entry.info.id, dir.path().exists()), (dir.id(), false), "it is known, and forgotten");
    }

    #[test]
    fn r28_the_same_command_and_directory_are_the_same_job() {
        let running = meta(spec(&["make", "-j8"], "/src")).unwrap();
        let same = |wanted: Spec| runs_same(&running, &meta(wanted).unwrap());
        assert!(same(spec(&["make", "-j8"], "/src/")), "one path, written in two ways");
        assert!(same(Spec { detached_ttl: 5, ..spec(&["make", "-j8"], "/src") }));
        assert!(!same(spec(&["make", "-j8"], "/src/app")));
        for argv in [&["make"][..], &["make", "-j8", "all"], &["make -j8"], &[]] {
            assert!(!same(spec(argv, "/src")), "{argv:?}");
        }
        let shell = meta(spec(&[], "/src")).unwrap();
        assert!(runs_same(&shell, &meta(spec(&["/bin/sh"], "/src")).unwrap()), "the default is a command, too");
    }

    fn spec(argv: &[&str], cwd: &str) -> Spec {
        Spec {
            name: Some("s".parse().unwrap()),
            cwd: cwd.into(),
            detached_ttl: 0,
            if_exists: IfExists::Return,
            id: None,
            request: None,
            open_files: None,
            body: BodySpec::Terminal(TerminalSpec {
                argv: argv.iter().map(OsString::from).collect(),
                env: Vec::new(),
                size: Size::default(),
                log_size: log::DEFAULT_SIZE,
                history: DEFAULT_HISTORY,
            }),
        }
    }
}
