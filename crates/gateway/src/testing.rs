//! A gateway without sockets, for unit tests.

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bowline_host::home::Home;
use bowline_host::launch::Launcher;
use bowline_host::remove::Retention;
use http::Request;
use tower::ServiceExt;

use crate::app::App;
use crate::auth::Auth;
use crate::context::SocketAddrs;
use crate::settings::{SessionDefaults, Settings};

/// A home whose directories are inside `temp`.
pub(crate) fn home(temp: &Path) -> Home {
    Home::new(temp.join("s"), temp.join("r")).unwrap()
}

/// A gateway's state, after `change` has adjusted the settings. It cannot start sessions.
pub(crate) fn app(temp: &Path, change: impl FnOnce(&mut Settings)) -> App {
    let retention = Retention::KEEP_ALL;
    let sessions = SessionDefaults { shell: None, log_size: 1 << 20, scrollback: 0, retention };
    let mut settings = Settings::new(([127, 0, 0, 1], 7433).into(), sessions, Launcher::new("/nonexistent"));
    change(&mut settings);
    let home = home(temp);
    let auth = Auth::open(&home).unwrap();
    App::new(settings, home, auth, None).unwrap()
}

/// Sends a request as if it came from this machine.
pub(crate) async fn send(router: &Router, mut request: Request<Body>) -> Response {
    let (peer, local) = (([127, 0, 0, 1], 50_000).into(), ([127, 0, 0, 1], 7433).into());
    request.extensions_mut().insert(SocketAddrs { peer, local });
    router.clone().oneshot(request).await.unwrap()
}
