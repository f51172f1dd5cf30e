//! `bowline serve`: the gateway, until somebody stops it.

mod announce;
mod flags;
pub(crate) mod forward;

use std::process::ExitCode;

use bowline_gateway::auth::Auth;
use bowline_gateway::running::Running;
use bowline_gateway::{Gateway, ServeError};
use bowline_host::home::Home;
use bowline_host::timestamp::timestamp;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

pub(crate) use self::flags::Flags;
use crate::config::{Config, Loaded};
use crate::failure::{Code, Failure};
use crate::service;

/// Let browsers, phones and other machines reach the sessions of this machine.
///
/// It prints a link that logs one browser in, once. Sessions do not need it: stop or kill it at any time, start it again,
/// and every viewer goes on where it was.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline serve                                        for browsers of this machine
  bowline serve --public-url https://box.example       behind a proxy of that name
  bowline serve --listen 0.0.0.0:7433 --tls-cert cert.pem --tls-key key.pem
  bowline login-link                                   one more browser
  bowline service install                              start it with the machine

Signals:
  TERM, INT   close viewers, who come back by themselves, and stop; twice: at once
  HUP         read the certificate again; in a terminal: stop")]
pub(crate) struct Serve {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(verb: &Serve) -> anyhow::Result<ExitCode> {
    start(&Loaded::new(&verb.flags.layer()?)?.config)
}

/// The gateway, as configured.
pub(crate) fn start(config: &Config) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    home.ensure()?;
    log_to_stderr(&config.gateway.log_level)?;
    let open_files = raise_open_files();
    let auth = Auth::open(&home)?;
    let settings = config.settings(service::launcher(config.gateway.scopes));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = settings.listen;
        // Before anybody is told of it: from then on they may stop it.
        let signals = Signals::new()?;
        let gateway = Gateway::bind(settings.clone(), home.clone(), auth.clone(), open_files).await;
        let gateway = gateway.map_err(|error| explain(error, &home))?;
        tracing::debug!(%listen, address = %gateway.address(), "bound");
        let urls = announce::Urls::new(&settings, gateway.address());
        let place = Place::take(&home, &urls)?;
        announce::announce(&urls, &settings, &auth)?;
        let handles = (gateway.stop(), gateway.reload());
        let quit = place.clone();
        tokio::spawn(async move {
            signals.follow(handles.0, &handles.1).await;
            // Asked twice: at once.
            quit.leave();
            std::process::exit(0);
        });
        let served = gateway.serve().await;
        place.leave();
        served?;
        Ok::<_, anyhow::Error>(())
    })?;
    // A login shell or a disk that hangs must not keep us.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

fn log_to_stderr(filter: &str) -> anyhow::Result<()> {
    use std::io::IsTerminal;
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(filter)?)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}

/// Every viewer takes two descriptors. Raises the limit as far as it goes; what it was, for the programs in sessions.
fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files, so fewer viewers fit");
    }
    limit.current
}

/// The place of this home's gateway, which other verbs look at; none for a second one.
#[derive(Clone)]
struct Place(Option<std::sync::Arc<(bowline_host::lock::Lock, Home)>>);

impl Place {
    fn take(home: &Home, urls: &announce::Urls) -> anyhow::Result<Place> {
        let Some(lock) = Running::claim(home)? else {
            let who = Running::find(home)
                .map_or_else(String::new, |other| format!(" (process {}, {})", other.pid, other.url));
            eprintln!("Another gateway{who} serves the same sessions. Both work; other verbs speak of that one.");
            return Ok(Place(None));
        };
        let running = Running {
            pid: std::process::id(),
            url: urls.link_base.clone(),
            listen: urls.address.to_string(),
            started: timestamp(),
        };
        running.write(home)?;
        Ok(Place(Some(std::sync::Arc::new((lock, home.clone())))))
    }

    fn leave(&self) {
        if let Some(place) = &self.0
            && let Err(error) = Running::remove(&place.1)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "gateway.json stays behind; it does no harm");
        }
    }
}

/// The signals that a gateway listens to.
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

    /// Stops at the first, and returns at the second.
    async fn follow(mut self, stop: tokio_util::sync::CancellationToken, reload: &tokio::sync::Notify) {
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
            tracing::info!("{name}: stopping; sessions go on");
            stop.cancel();
        }
    }
}

/// Says who has the address, and what to do.
fn explain(error: ServeError, home: &Home) -> anyhow::Error {
    use std::io::ErrorKind;
    let ServeError::Listen { address, source } = &error else { return error.into() };
    let other = Running::find(home).filter(|other| other.listen == address.to_string());
    let hint = match (source.kind(), other) {
        (ErrorKind::AddrInUse, Some(other)) => format!(
            "bowline serves there already (process {}); `bowline login-link` lets a browser in, and --listen 127.0.0.1:0 \
             starts another one on a free port",
            other.pid
        ),
        (ErrorKind::AddrInUse, None) => format!(
            "another program has it, perhaps the bowline of another user or state directory (`ss -ltnp 'sport = :{}'` \
             says which); choose another with --listen, such as --listen 127.0.0.1:0 for any free port",
            address.port()
        ),
        (ErrorKind::AddrNotAvailable, _) => {
            "this machine has no such address; choose another with --listen, such as 127.0.0.1:7433".into()
        }
        (ErrorKind::PermissionDenied, _) => {
            "ports below 1024 are the system's; choose another with --listen, and let a proxy have the low one".into()
        }
        _ => return error.into(),
    };
    Failure::new(Code::CannotStart, error.to_string(), hint).into()
}
