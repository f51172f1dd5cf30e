//! The session process, from its start to its exit.
//!
//! [`run`] detaches from the process that started it, reads its start request from standard input, creates the
//! session's files, starts the program and reports to the starter. Then `session.rs` serves until the
//! program has ended and its viewers have all of its output.

mod agent;
mod body;
mod conn;
mod core;
mod end_checks;
mod ending;
mod poll;
mod requests;
mod session;
mod socket;
mod terminal;
mod viewers;

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bowline_host::alive::take_lock;
use bowline_host::files;
use bowline_host::home::{Home, HomeError, SessionDir};
use bowline_host::lock::Lock;
use bowline_host::start::StartRequest;
use bowline_host::starting::Report;
use bowline_proto::ids::Epoch;
use bowline_proto::problem::Code;
use bowline_proto::session::{Kind, SessionInfo, State};
use rustix::fs::Mode;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};

use self::agent::PreparedAgent;
use self::body::Body;
use self::session::{Parts, Session};
use self::socket::Socket;
use self::terminal::PreparedTerminal;
use crate::spawn::SpawnError;

/// The most bytes of a start request that are read. The kernel's limit for arguments and environment is lower.
const MAX_START_REQUEST: u64 = 16 << 20;

/// The version that a session reports.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a session could not be started. The message goes to the starter, and from there to the user.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("the session process cannot read the start request: {0}")]
    Request(#[source] io::Error),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("another process is already running this session")]
    Alive,
    #[error("a session with this id already exists")]
    Exists,
    #[error("the session was forgotten")]
    Forgotten,
    #[error(
        "this version of bowline cannot run a session of this kind; use the version that created it, or a newer one"
    )]
    Kind,
    #[error("the start of the session was cancelled")]
    Cancelled,
    /// The first prompt was refused.
    #[error("{message}")]
    Prompt { code: Code, message: String },
    #[error("no space left for the session's files in {path}: {source}")]
    NoSpace { path: PathBuf, source: io::Error },
    #[error("cannot write the session's files in {path}: {source}")]
    Files { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("cannot set up the session process: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    fn code(&self) -> Code {
        match self {
            StartError::NoSpace { .. } => Code::NoSpace,
            StartError::Spawn(SpawnError::Cwd { .. }) => Code::BadCwd,
            StartError::Spawn(SpawnError::Program { .. } | SpawnError::Agent(_)) => Code::NoProgram,
            // The process that holds the lock may be about to exit, or still be starting.
            StartError::Alive => Code::Unreachable,
            StartError::Files { source, .. } => files::code(source),
            StartError::Exists => Code::IdReused,
            StartError::Forgotten => Code::UnknownSession,
            StartError::Kind => Code::NoVersion,
            StartError::Request(_) => Code::BadRequest,
            StartError::Prompt { code, .. } => *code,
            StartError::Home(error) => error.code(),
            StartError::Cancelled | StartError::Spawn(_) | StartError::System(_) => Code::Internal,
        }
    }
}

/// Runs a session process until it exits. Reads the start request from standard input, and writes reports to
/// standard output.
pub fn run() -> ExitCode {
    let started = detach()
        .map_err(StartError::System)
        .and_then(|umask| read_start_request().map(|request| (request, umask)))
        .and_then(|(request, umask)| start(&request, umask));
    let outcome = match &started {
        Ok(_) => Report::Ready,
        Err(error) => Report::Failed { code: error.code(), message: error.to_string() },
    };
    // The starter may have exited; the session runs anyway.
    let _ = report(&outcome);
    let _ = release_stdio();
    match started {
        Ok(session) => {
            session.serve();
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Leaves the starter's session and process group, and drops its signal settings and descriptors. Returns the
/// starter's umask, for the program.
fn detach() -> io::Result<Mode> {
    let _ = rustix::process::setsid(); // fails only if this process already leads a process group
    let _ = rustix::thread::set_name(c"bowline-session");
    // A caught signal is reset to its default in the program, even if the starter (`nohup`, a script's `&`)
    // ignored it. Catching also keeps the starter's terminal from ending this process, and turns SIGXFSZ
    // into a write error.
    for signal in [SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    // The descriptor that listed the directory is already closed, so closing it fails, which is fine.
    for fd in open {
        let _ = nix::unistd::close(fd);
    }
    // Orphaned descendants become children of this process, so that ending the session finds them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(umask)
}

/// Points standard input and output at `/dev/null`, which closes the starter's pipes.
fn release_stdio() -> io::Result<()> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// Writes one line to the starter.
fn report(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    io::stdout().write_all(&line)?;
    io::stdout().flush()
}

fn read_start_request() -> Result<StartRequest, StartError> {
    let mut request = Vec::new();
    io::stdin().lock().take(MAX_START_REQUEST).read_until(b'\n', &mut request).map_err(StartError::Request)?;
    serde_json::from_slice(&request).map_err(|error| StartError::Request(error.into()))
}

/// Reports that everything but the program is ready, and waits for a byte from the starter, which may first
/// have to end a session that this one replaces. The starter cancels by closing the pipe.
fn wait_for_go_ahead() -> Result<(), StartError> {
    report(&Report::Prepared)?;
    match io::stdin().lock().read_exact(&mut [0]) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(StartError::Cancelled),
        read => Ok(read?),
    }
}

/// Creates the files and starts the program. If that fails, the directory of a new session is removed again.
fn start(request: &StartRequest, umask: Mode) -> Result<Session, StartError> {
    let home = Home::new(request.state.as_os(), request.runtime.as_os())?;
    let dir = home.session(&request.meta.id);
    let files = |source: io::Error| match files::code(&source) {
        Code::NoSpace => StartError::NoSpace { path: dir.path().to_owned(), source },
        _ => StartError::Files { path: dir.path().to_owned(), source },
    };
    if request.restart {
        if !dir.path().exists() {
            return Err(StartError::Forgotten);
        }
        let lock = take_lock(&dir).map_err(files)?.ok_or(StartError::Alive)?;
        return start_session(&home, &dir, request, umask, lock, &files);
    }
    let lock = create_dir(&dir, &files)?;
    // The lock is also held here, so that no other process creates a session in the directory while it is removed.
    start_session(&home, &dir, request, umask, lock.try_clone()?, &files)
        .inspect_err(|_| drop(fs::remove_dir_all(dir.path())))
}

/// Creates the directory of a new session, or takes over one that was left when its session process was killed while
/// starting.
fn create_dir(dir: &SessionDir, files: &dyn Fn(io::Error) -> StartError) -> Result<Lock, StartError> {
    match fs::DirBuilder::new().mode(0o700).create(dir.path()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(files(error)),
        _ => {}
    }
    let lock = take_lock(dir).map_err(files)?.ok_or(StartError::Alive)?;
    if dir.meta().try_exists().map_err(files)? {
        return Err(StartError::Exists);
    }
    for stale in [dir.log(), dir.events(), dir.head(), dir.screen()] {
        match fs::remove_file(stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(files(error)),
            _ => {}
        }
    }
    Ok(lock)
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// A session whose files are open, but whose program is not started yet.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum Prepared<'a> {
    Terminal(PreparedTerminal<'a>),
    Agent(PreparedAgent<'a>),
}

/// Creates the files that are missing, starts the program and binds the socket.
fn start_session(
    home: &Home,
    dir: &SessionDir,
    request: &StartRequest,
    umask: Mode,
    lock: Lock,
    files: &dyn Fn(io::Error) -> StartError,
) -> Result<Session, StartError> {
    let meta = &request.meta;
    let prepared = match (meta.kind, &meta.terminal, &meta.agent) {
        (Kind::Terminal, Some(terminal), _) => Prepared::Terminal(PreparedTerminal::new(dir, terminal, files)?),
        (Kind::Agent, _, Some(agent)) => Prepared::Agent(PreparedAgent::new(dir, agent, files)?),
        _ => return Err(StartError::Kind),
    };
    let mut info = SessionInfo {
        id: meta.id.clone(),
        name: meta.name.clone(),
        kind: meta.kind,
        state: State::Running,
        exit: None,
        created: meta.created.clone(),
        active: None,
        call: None,
        host: None,
        cwd: meta.cwd.lossy(),
        title: String::new(),
        clients: 0,
        epoch: Epoch::from_random(random()?),
        offset: 0,
        degraded: false,
        version: VERSION.into(),
        truncated: false,
        terminal: None,
        agent: None,
    };
    let (body, socket) = match prepared {
        Prepared::Terminal(prepared) => {
            let pty = prepared.spawn(meta, umask, wait_for_go_ahead)?;
            let socket = Socket::bind(home, dir)?;
            (Body::Terminal(Box::new(prepared.start(dir, pty, &mut info, files)?)), socket)
        }
        Prepared::Agent(prepared) => {
            let (program, adapter) = prepared.spawn(dir, meta, umask, wait_for_go_ahead)?;
            let socket = Socket::bind(home, dir)?;
            (Body::Agent(Box::new(prepared.start(program, adapter, umask, &mut info, files)?)), socket)
        }
    };
    let mut session =
        Session::new(Parts { dir: dir.clone(), meta: meta.clone(), info, lock, body, socket }).map_err(files)?;
    session.begin(request.prompt.as_ref())?;
    // Last, once the rest is on the disk: a directory with `meta.json` is a complete session, even after a power cut.
    meta.write(&dir.meta()).map_err(files)?;
    if meta.kind == Kind::Agent {
        // The first prompt is accepted with the session: its journal must be found after a power cut.
        fs::File::open(dir.path()).and_then(|dir| dir.sync_all()).map_err(files)?;
    }
    Ok(session)
}
