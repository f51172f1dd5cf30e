//! `bowline serve`: runs the gateway until a signal stops it.

mod announce;
mod flags;
pub(crate) mod forward;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_gateway::auth::Auth;
use bowline_gateway::running::RunningGateway;
use bowline_gateway::{Gateway, ServeError};
use bowline_host::files;
use bowline_host::home::Home;
use bowline_host::lock::Lock;
use bowline_host::timestamp::timestamp;
use bowline_proto::problem;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

pub(crate) use self::flags::Flags;
use crate::config::{Config, Loaded};
use crate::failure::{Code, Failure};
use crate::print::{self, one_line};
use crate::service;

/// How often a gateway tries again to write `gateway.json`.
const CLAIM_INTERVAL: Duration = Duration::from_secs(5);

/// Serve the sessions of this machine to browsers, phones and other machines.
///
/// Prints a link that logs in one browser, once. Sessions do not depend on this gateway: you can stop or kill it at any
/// time and start it again, and every viewer resumes where it was.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline serve                                        for browsers on this machine
  bowline serve --public-url https://box.example       behind a proxy with that name
  bowline serve --listen 0.0.0.0:7433 --tls-cert cert.pem --tls-key key.pem
  bowline login-link                                   log in another browser
  bowline service install                              start the gateway at boot

Signals:
  TERM, INT   disconnect the viewers, which reconnect automatically, and stop; twice: stop at once
  HUP         reload the certificate; in a terminal: stop")]
pub(crate) struct Serve {
    #[command(flatten)]
    flags: Box<Flags>,
}

pub(crate) fn run(verb: &Serve) -> anyhow::Result<ExitCode> {
    start(&Loaded::new(&verb.flags.to_layer()?)?.config)
}

/// Runs the gateway with this configuration.
pub(crate) fn start(config: &Config) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    home.ensure()?;
    log_to_stderr(config.gateway.checked_log_filter()?);
    let open_files = raise_open_files();
    let auth = Auth::open(&home)?;
    let settings = config.settings(service::launcher(config.gateway.scopes))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = settings.listen;
        // Before the address is published: other processes may send a signal from then on.
        let signals = Signals::new()?;
        let gateway = Gateway::bind(settings.clone(), home.clone(), auth.clone(), open_files).await;
        let gateway = gateway.map_err(|error| explain(error, &home))?;
        tracing::debug!(%listen, address = %gateway.address(), "bound");
        let urls = announce::Urls::new(&settings, gateway.address());
        let registration = Registration::new(&home, &urls);
        let is_registered = registration.claim_or_retry();
        match announce::announce(&urls, &settings, &home, &auth, is_registered) {
            // Standard output is a file on a full disk.
            Err(error) if error.downcast_ref().is_some_and(|error| files::code(error) == problem::Code::NoSpace) => {
                tracing::warn!(%error, "cannot print the address");
            }
            announced => announced?,
        }
        let (stop, reload) = (gateway.stop(), gateway.reload());
        tokio::spawn({
            let registration = registration.clone();
            async move {
                signals.handle(stop, &reload).await;
                // The second signal: stop at once.
                registration.remove();
                std::process::exit(0);
            }
        });
        let result = gateway.serve().await;
        registration.remove();
        result?;
        Ok::<_, anyhow::Error>(())
    })?;
    // Do not wait for a login shell or a disk that hangs.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

fn log_to_stderr(filter: EnvFilter) {
    use std::io::IsTerminal;
    use tracing_subscriber::field::MakeExt;
    use tracing_subscriber::fmt::format;
    // The default format escapes neither newlines nor the direction of text, so a value could pretend to be another line.
    let fields = format::debug_fn(|out, field, value| match field.name() {
        "message" => write!(out, "{}", one_line(format_args!("{value:?}"))),
        name => write!(out, "{name}={}", one_line(format_args!("{value:?}"))),
    });
    tracing_subscriber::fmt()
        .fmt_fields(fields.delimited(" "))
        .with_env_filter(filter)
        .with_writer(print::stderr)
        .with_ansi(print::stderr().is_terminal())
        // It would be reported on the same standard error, with a panic if that is on a full disk.
        .log_internal_errors(false)
        .init();
}

/// Raises the open-file limit to its maximum, since every viewer takes two descriptors. Returns the old limit, for the
/// programs in sessions.
fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the open-file limit, so fewer viewers can connect");
    }
    limit.current
}

/// The entry in `gateway.json` by which other verbs find the gateway, with its lock.
#[derive(Clone)]
struct Registration {
    home: Home,
    running: RunningGateway,
    /// `None` for a second gateway, and while the entry cannot be written.
    lock: Arc<Mutex<Option<Lock>>>,
}

impl Registration {
    fn new(home: &Home, urls: &announce::Urls) -> Registration {
        let running = RunningGateway {
            pid: std::process::id(),
            url: urls.link_base.clone(),
            listen: urls.address.to_string(),
            started: timestamp(),
        };
        Registration { home: home.clone(), running, lock: Arc::default() }
    }

    /// Writes the entry, unless another gateway has one. If it cannot be written, tries again in the background. Returns
    /// whether it is written.
    fn claim_or_retry(&self) -> bool {
        match self.claim() {
            Ok(true) => true,
            Ok(false) => {
                let details = RunningGateway::find(&self.home)
                    .map_or_else(String::new, |other| format!(" (process {}, {})", other.pid, other.url));
                eprintln!(
                    "Note: another gateway{details} is already serving these sessions. Both work; `bowline login-link` and \
                     `bowline doctor` use that one."
                );
                false
            }
            Err(error) => {
                tracing::warn!(%error, "cannot write gateway.json, so other commands do not find this gateway; trying again");
                let registration = self.clone();
                tokio::spawn(async move {
                    while registration.claim().is_err() {
                        tokio::time::sleep(CLAIM_INTERVAL).await;
                    }
                });
                false
            }
        }
    }

    /// Returns `false` if another gateway has an entry.
    fn claim(&self) -> std::io::Result<bool> {
        let Some(lock) = RunningGateway::claim(&self.home)? else { return Ok(false) };
        self.running.write(&self.home)?;
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(true)
    }

    fn remove(&self) {
        if self.lock.lock().unwrap_or_else(PoisonError::into_inner).is_some()
            && let Err(error) = RunningGateway::remove(&self.home)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot remove gateway.json; it is harmless");
        }
    }
}

/// The signals that a gateway handles.
struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Cancels `stop` at the first signal to stop, and returns at the second.
    async fn handle(mut self, stop: tokio_util::sync::CancellationToken, reload: &tokio::sync::Notify) {
        use std::io::IsTerminal;
        let in_terminal = std::io::stdin().is_terminal();
        loop {
            let name = tokio::select! {
                _ = self.term.recv() => "SIGTERM",
                _ = self.int.recv() => "SIGINT",
                _ = self.hup.recv() => {
                    if !in_terminal {
                        reload.notify_one();
                        continue;
                    }
                    "SIGHUP"
                }
            };
            if stop.is_cancelled() {
                return;
            }
            tracing::info!("{name}: stopping; sessions keep running");
            stop.cancel();
        }
    }
}

/// Adds a hint to an error about the listening address or the TLS files.
fn explain(error: ServeError, home: &Home) -> anyhow::Error {
    use std::io::ErrorKind;
    if let ServeError::Tls(error) = &error {
        let hint = "correct --tls-cert and --tls-key (tls.cert and tls.key): the certificate with its chain, and its key, in PEM format";
        return Failure::new(Code::Usage, error.to_string(), hint).into();
    }
    let ServeError::Listen { address, source } = &error else { return error.into() };
    let other = RunningGateway::find(home).filter(|other| other.listen == address.to_string());
    let hint = match (source.kind(), other) {
        (ErrorKind::AddrInUse, Some(other)) => format!(
            "a bowline gateway is already running there (process {}); `bowline login-link` prints a link for it, and \
             --listen 127.0.0.1:0 starts another gateway on a free port",
            other.pid
        ),
        (ErrorKind::AddrInUse, None) => format!(
            "another program uses it, perhaps the gateway of another user or state directory (`ss -ltnp 'sport = :{}'` \
             shows which); choose another with --listen, such as --listen 127.0.0.1:0 for any free port",
            address.port()
        ),
        (ErrorKind::AddrNotAvailable, _) => {
            "this machine has no such address; choose another with --listen, such as --listen 127.0.0.1:7433".into()
        }
        (ErrorKind::PermissionDenied, _) => {
            "ports below 1024 are reserved; choose a higher one with --listen, and run a proxy on the low one".into()
        }
        _ => return error.into(),
    };
    Failure::new(Code::CannotStart, error.to_string(), hint).into()
}
