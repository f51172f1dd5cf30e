//! The gateway: a switchboard in front of the session processes. It holds nothing about a session, so it may die at any
//! time; whoever comes back goes on where they were.
//!
//! In the order that a request walks:
//!
//! - `server`, `tls`: sockets, and what holds before a request is read;
//! - `reach`, `guard`, [`auth`]: by which name it came, who is calling, what they may;
//! - `router`, `extract`, [`problem`]: which path leads where, what is read from a request, how one is refused;
//! - `sessions`, `history`: sessions over HTTP, what they printed and show;
//! - `ws`, `attach`, `relay`: WebSockets, and bytes between one and a session;
//! - `board`, `events`: which sessions there are, and telling it as it changes;
//! - `watcher`: waiting for changed files;
//! - `ask`: asking session processes;
//! - `assets`: the web app;
//! - `environment`: what the sessions started here see;
//! - [`running`]: how other processes find the gateway;
//! - `openapi`: all paths, described for programs;
//! - `metrics`, `rate`, [`descriptors`]: counting, and bounding;
//! - `prune`: forgetting what ended long ago.
//!
//! [`settings`] has everything that can be set, and all limits.

mod app;
mod ask;
mod assets;
mod attach;
pub mod auth;
mod board;
mod create;
pub mod descriptors;
mod environment;
mod events;
mod extract;
mod guard;
mod history;
mod metrics;
mod openapi;
pub mod problem;
mod prune;
mod rate;
mod reach;
mod relay;
mod router;
pub mod running;
mod server;
mod sessions;
pub mod settings;
#[cfg(test)]
mod testing;
mod tls;
mod watcher;
mod ws;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bowline_host::home::Home;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::app::App;
pub use crate::assets::WebApp;
use crate::auth::Auth;
pub use crate::environment::login_environment;
pub use crate::reach::is_path;
use crate::settings::Settings;
use crate::tls::Tls;
pub use crate::tls::TlsError;

/// Why a gateway does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Certificate or key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system gave no random number.
    #[error("cannot get a random number: {0}")]
    Random(io::Error),
    /// Counting could not be set up.
    #[error("cannot set the metrics up: {0}")]
    Metrics(String),
}

/// No more sockets than there are descriptors for.
fn within_open_files(mut settings: Settings) -> Settings {
    let open_files = descriptors::open_files();
    if let Some(few) = descriptors::too_few(open_files, &settings.limits) {
        tracing::warn!("{few}; {}", descriptors::MORE_OPEN_FILES);
    }
    settings.limits.sockets = settings.limits.sockets.min(descriptors::sockets(open_files));
    settings
}

/// A gateway that has its address, and serves nothing yet.
pub struct Gateway {
    app: App,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    reload: Arc<Notify>,
}

impl Gateway {
    /// Takes the address. `open_files` is the soft limit that sessions' programs get.
    pub async fn bind(
        settings: Settings,
        home: Home,
        auth: Auth,
        open_files: Option<u64>,
    ) -> Result<Gateway, ServeError> {
        let tls = settings.tls.clone().map(Tls::load).transpose()?;
        let settings = within_open_files(settings);
        let failed = |source| ServeError::Listen { address: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let app = App::new(settings, home, auth, open_files).map_err(ServeError::Random)?;
        Ok(Gateway { app, listener, address, tls, reload: Arc::default() })
    }

    /// Where it listens, also when any free port was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the gateway when cancelled: viewers are closed 1001, sessions are left alone.
    pub fn stop(&self) -> CancellationToken {
        self.app.stop.clone()
    }

    /// Reads the certificate again when notified; it is also looked at from time to time.
    pub fn reload(&self) -> Arc<Notify> {
        self.reload.clone()
    }

    /// Serves until it is stopped.
    pub async fn serve(self) -> Result<(), ServeError> {
        let counted = metrics::install().map_err(|error| ServeError::Metrics(error.to_string()))?;
        let router = router::router(self.app.clone(), counted.clone());
        let certificates = self.tls.clone();
        let follow = async {
            match certificates {
                Some(tls) => tls.follow(&self.reload).await,
                None => std::future::pending().await,
            }
        };
        let watch = self.app.auth.watch();
        tokio::select! {
            () = server::run(self.app.clone(), self.listener, router, self.tls) => {}
            () = follow => {}
            () = async { watch.await; std::future::pending().await } => {}
            () = metrics::add_up(&counted) => {}
            () = prune::run(&self.app) => {}
        }
        Ok(())
    }
}
