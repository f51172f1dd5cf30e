//! The gateway: serves the sessions of one machine over HTTP and WebSocket.
//!
//! It holds no session state, so it may be killed at any time; viewers reconnect and resume.
//!
//! Modules, in the order that a request passes them:
//!
//! - `server`, `heads`, `tls`: sockets, and the limits before a request is read;
//! - `context`, `guard`, [`auth`]: where the request comes from, who calls, and with which scope;
//! - `router`, `ready`, `extract`, [`problem`], `refusals`: routes, parsing of requests, error responses and their log;
//! - `sessions`, `list`, `create`, `log`, `screen`: session endpoints, logs and screens;
//! - `files`, `folders`, `tilde`: names of files below a session's directory, and folders to start sessions in;
//! - `changes`, `turns`: renaming and ending sessions; which changes run, and which wait;
//! - `ws`, `attach`, `relay`, `ended`: WebSockets, and relaying between one and a session, or its files;
//! - `board`, `events`: the list of sessions, and streams of its changes;
//! - `control`: control requests to session processes;
//! - `watcher`: waiting for file changes;
//! - `assets`: the web app;
//! - `environment`: the environment of sessions started here;
//! - [`running`]: how other processes find the gateway;
//! - `openapi`: the API description;
//! - `metrics`, `rate`, `places`, [`descriptors`]: counters, and limits;
//! - `prune`, `memory`: removing old ended sessions, and giving memory back.
//!
//! [`settings`] has all settings and limits; `app` is the state that handlers share.

mod agents;
mod app;
mod approvals;
mod assets;
mod attach;
pub mod auth;
mod blobs;
mod board;
mod changes;
mod context;
mod control;
mod create;
pub mod descriptors;
mod ended;
mod environment;
mod events;
mod extract;
mod file_stream;
mod files;
mod folders;
mod guard;
mod heads;
mod history;
mod list;
mod log;
mod memory;
mod metrics;
mod openapi;
mod places;
pub mod problem;
mod prune;
mod rate;
mod ready;
mod refusals;
mod relay;
mod router;
pub mod running;
mod screen;
mod server;
mod sessions;
pub mod settings;
#[cfg(test)]
mod testing;
mod text_stream;
mod tilde;
mod tls;
mod turns;
mod uploads;
mod watcher;
mod ws;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bowline_host::home::Home;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use crate::agents::list_agents;
use crate::app::App;
pub use crate::assets::WebApp;
use crate::auth::Auth;
pub use crate::context::is_url_path;
pub use crate::environment::login_environment;
#[doc(hidden)]
pub use crate::events::sse_cursor;
use crate::settings::Settings;
use crate::tls::Tls;
pub use crate::tls::TlsError;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot get random bytes from the system: {0}")]
    Random(io::Error),
    #[error("cannot set up metrics: {0}")]
    Metrics(String),
}

/// Lowers the socket limit to what the open-file limit allows, and warns if that is low.
fn within_open_files(mut settings: Settings) -> Settings {
    let open_files = descriptors::open_files();
    if let Some(warning) = descriptors::open_files_warning(open_files, &settings.limits) {
        tracing::warn!("{warning}; {}", descriptors::OPEN_FILES_REMEDY);
    }
    settings.limits.sockets = settings.limits.sockets.min(descriptors::sockets(open_files));
    settings
}

/// A gateway that is bound to its address but does not serve yet.
pub struct Gateway {
    app: App,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    reload: Arc<Notify>,
}

impl Gateway {
    /// Binds the address. `open_files` is the soft limit on open files that sessions' programs get.
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

    /// The bound address, with the actual port if the settings have port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the gateway when cancelled. Viewers are closed with 1001; sessions keep running.
    pub fn stop(&self) -> CancellationToken {
        self.app.stop.clone()
    }

    /// Reloads the certificate when notified. Its files are also checked periodically.
    pub fn reload(&self) -> Arc<Notify> {
        self.reload.clone()
    }

    /// Serves until the gateway is stopped.
    pub async fn serve(self) -> Result<(), ServeError> {
        let metrics_handle = metrics::install().map_err(|error| ServeError::Metrics(error.to_string()))?;
        let router = router::router(self.app.clone(), metrics_handle.clone());
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
            () = metrics::run_upkeep(&metrics_handle) => {}
            () = prune::run(&self.app) => {}
            () = async { memory::run(&self.app).await; std::future::pending().await } => {}
        }
        Ok(())
    }
}
