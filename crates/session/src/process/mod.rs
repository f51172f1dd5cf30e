//! The session process: how it comes to life, and what it reports to whoever started it.
//!
//! [`run`] reads its order from standard input, becomes a process of its own, makes the session's files, starts the
//! program, reports, and then serves until the program has ended (`session.rs`).

mod body;
mod conn;
mod core;
mod ending;
mod poll;
mod requests;
mod session;
mod socket;
mod terminal;
mod viewers;

use bowline_proto::problem::Code;
use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bowline_host::home::{Home, HomeError, SessionDir};
use bowline_host::lock::Lock;
use bowline_host::meta::Meta;
use bowline_host::newborn::Report;
use bowline_host::start::Order;
use bowline_proto::ids::Epoch;
use bowline_proto::session::{Kind, SessionInfo, State};
use rustix::fs::Mode;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};

use self::body::Body;
use self::session::{Parts, Session};
use self::socket::Socket;
use crate::pty::SpawnError;

/// The most that an order may take; the kernel allows less for arguments and environment.
const MAX_ORDER: u64 = 16 << 20;

/// This code's version, as sessions report it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a session could not come to life.
#[derive(Debug, thiserror::Error)]
enum BirthError {
    #[error("the order cannot be read: {0}")]
    Order(#[source] io::Error),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("the session has a process already")]
    Alive,
    #[error("there is a session of this id already")]
    Exists,
    #[error("the session was forgotten")]
    Forgotten,
    #[error("this version of bowline cannot run a session of this kind; use the version that made it, or a newer one")]
    Kind,
    #[error("whoever asked for the session took it back")]
    TakenBack,
    #[error("no space for the session's files in {path}: {source}")]
    NoSpace { path: PathBuf, source: io::Error },
    #[error("cannot write the session's files in {path}: {source}")]
    Files { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("cannot set the session process up: {0}")]
    System(#[from] io::Error),
}

impl BirthError {
    /// The protocol's code.
    fn code(&self) -> Code {
        match self {
            BirthError::NoSpace { .. } => Code::NoSpace,
            BirthError::Spawn(SpawnError::Cwd { .. }) => Code::BadCwd,
            BirthError::Spawn(SpawnError::Program { .. }) => Code::NoProgram,
            // Whoever has it may be about to go, or to be whole.
            BirthError::Alive => Code::Unreachable,
            BirthError::Exists => Code::IdReused,
            BirthError::Forgotten => Code::UnknownSession,
            BirthError::Kind => Code::NoVersion,
            BirthError::Order(_) => Code::BadRequest,
            BirthError::Home(_)
            | BirthError::Files { .. }
            | BirthError::TakenBack
            | BirthError::Spawn(_)
            | BirthError::System(_) => Code::Internal,
        }
    }
}

/// Runs a session process to its end. The order comes on standard input, the report goes to standard output.
pub fn run() -> ExitCode {
    let born = detach()
        .map_err(BirthError::System)
        .and_then(|umask| read_order().map(|order| (order, umask)))
        .and_then(|(order, umask)| birth(&order, umask));
    let last = match &born {
        Ok(_) => Report::Ready,
        Err(error) => Report::Failed { code: error.code(), message: error.to_string() },
    };
    // Whoever asked may be gone; the session lives all the same.
    let _ = report(&last);
    let _ = silence();
    match born {
        Ok(session) => {
            session.serve();
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Leaves the starter's session, group, signals and descriptors. Gives the starter's umask, which the program gets.
fn detach() -> io::Result<Mode> {
    let _ = rustix::process::setsid(); // fails only where this process leads a group of its own already
    let _ = rustix::thread::set_name(c"bowline-session");
    // Caught here, a signal has its default again in the program, also where the starter (`nohup`, a script's `&`)
    // ignored it. Somebody else's terminal does not end this one, and a file size limit is an error to report.
    for signal in [SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    // The one that listed the directory is closed by now and answers an error, which is fine.
    for fd in open {
        let _ = nix::unistd::close(fd);
    }
    // What loses its parent becomes this process's child, so that ending the session can find it.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(umask)
}

/// Lets go of the starter's pipes.
fn silence() -> io::Result<()> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// A line to whoever started this process.
fn report(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    io::stdout().write_all(&line)?;
    io::stdout().flush()
}

fn read_order() -> Result<Order, BirthError> {
    let mut order = Vec::new();
    io::stdin().lock().take(MAX_ORDER).read_until(b'\n', &mut order).map_err(BirthError::Order)?;
    serde_json::from_slice(&order).map_err(|error| BirthError::Order(error.into()))
}

/// Everything but the program is there: tells so, and waits for the word to start it. That comes when nothing of an
/// earlier session is in its way, or never.
fn wait_for_word() -> Result<(), BirthError> {
    report(&Report::Prepared)?;
    match io::stdin().lock().read_exact(&mut [0]) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(BirthError::TakenBack),
        read => Ok(read?),
    }
}

/// Makes the files and starts the program. On an error, what was made for a new session is removed again.
fn birth(order: &Order, umask: Mode) -> Result<Session, BirthError> {
    let home = Home::new(order.state.as_os(), order.runtime.as_os())?;
    let dir = home.session(&order.meta.id);
    let files = |source: io::Error| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            BirthError::NoSpace { path: dir.path().to_owned(), source }
        }
        _ => BirthError::Files { path: dir.path().to_owned(), source },
    };
    if order.restart {
        if !dir.path().exists() {
            return Err(BirthError::Forgotten);
        }
        let lock = Lock::take(&dir.lock()).map_err(files)?.ok_or(BirthError::Alive)?;
        return raise(&home, &dir, &order.meta, umask, lock, &files);
    }
    let lock = claim(&dir, &files)?;
    // Held here, too, so that nobody else makes a session in a folder that is being removed.
    raise(&home, &dir, &order.meta, umask, lock.try_clone()?, &files)
        .inspect_err(|_| drop(fs::remove_dir_all(dir.path())))
}

/// Makes the folder of a new session, or takes over one whose maker was killed before it was a session.
fn claim(dir: &SessionDir, files: &dyn Fn(io::Error) -> BirthError) -> Result<Lock, BirthError> {
    match fs::DirBuilder::new().mode(0o700).create(dir.path()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(files(error)),
        _ => {}
    }
    let lock = Lock::take(&dir.lock()).map_err(files)?.ok_or(BirthError::Alive)?;
    if dir.meta().try_exists().map_err(files)? {
        return Err(BirthError::Exists);
    }
    for stale in [dir.log(), dir.events(), dir.head(), dir.screen()] {
        match fs::remove_file(stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(files(error)),
            _ => {}
        }
    }
    Ok(lock)
}

/// Makes what is missing of the files, starts the program and binds the socket.
fn raise(
    home: &Home,
    dir: &SessionDir,
    meta: &Meta,
    umask: Mode,
    lock: Lock,
    files: &dyn Fn(io::Error) -> BirthError,
) -> Result<Session, BirthError> {
    let prepared = match (&meta.kind, &meta.terminal) {
        (Kind::Terminal, Some(terminal)) => terminal::Prepared::new(dir, terminal, files)?,
        _ => return Err(BirthError::Kind),
    };
    let mut random = [0; 4];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(io::Error::from)?;
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
        epoch: Epoch::from_random(random),
        offset: 0,
        degraded: false,
        version: VERSION.into(),
        terminal: None,
    };
    let pty = prepared.spawn(meta, umask, wait_for_word)?;
    let socket = Socket::bind(home, dir)?;
    let (journal, terminal) = prepared.start(dir, pty, &mut info, files)?;
    // Last: what has this file is a session, whole also after a power cut.
    journal.sync().and_then(|()| meta.write(&dir.meta())).map_err(files)?;
    let (dir, meta, body) = (dir.clone(), meta.clone(), Body::Terminal(Box::new(terminal)));
    Ok(Session::new(Parts { dir, meta, info, lock, journal, body, socket })?)
}
