//! A gateway in this process, with a temporary state directory.

use std::net::SocketAddr;
use std::time::Duration;

use bowline_gateway::Gateway;
use bowline_gateway::auth::Auth;
use bowline_gateway::settings::{Limits, SessionDefaults, Settings};
use bowline_host::events::Event;
use bowline_host::history::History;
use bowline_host::home::{Home, SessionDir};
use bowline_host::launch::Launcher;
use bowline_host::machine::{this_boot, this_host};
use bowline_host::meta::Meta;
use bowline_host::remove::Retention;
use bowline_proto::api::TokenScope;
use bowline_proto::ids::{Epoch, SessionId};
use bowline_proto::size::Size;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// No condition takes this long to become true, even on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct World {
    _temp: TempDir,
    pub(crate) home: Home,
    pub(crate) auth: Auth,
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    gateway: Option<std::thread::JoinHandle<()>>,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Limits)) -> World {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::new(temp.path().join("s"), temp.path().join("r")).unwrap();
        let auth = Auth::open(&home).unwrap();
        let retention = Retention::KEEP_ALL;
        let sessions = SessionDefaults { shell: None, log_size: 1 << 20, scrollback: 0, retention };
        let mut settings = Settings::new(([127, 0, 0, 1], 0).into(), sessions, Launcher::new("/nonexistent"));
        change(&mut settings.limits);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let gateway = runtime.block_on(Gateway::bind(settings, home.clone(), auth.clone(), None)).unwrap();
        let (address, stop) = (gateway.address(), gateway.stop());
        let gateway = std::thread::spawn(move || runtime.block_on(gateway.serve()).unwrap());
        World { _temp: temp, home, auth, address, stop, gateway: Some(gateway) }
    }

    /// Creates a token. Returns it and its id.
    pub(crate) fn token(&self, scope: TokenScope) -> (String, String) {
        let created = self.auth.create_token("test", scope, None).unwrap();
        (created.token.reveal().to_owned(), created.id)
    }

    /// Creates an ended session.
    pub(crate) fn ended(&self, n: u16) -> EndedSession {
        self.ended_of(n, "sh")
    }

    /// Creates an ended session that ran this program.
    pub(crate) fn ended_of(&self, n: u16, program: &str) -> EndedSession {
        let mut random = [0; 12];
        random[..2].copy_from_slice(&[(n / 36) as u8, (n % 36) as u8]);
        let dir = self.home.session(&SessionId::from_random(random));
        std::fs::create_dir(dir.path()).unwrap();
        let (mut journal, mut history) = History::open(&dir.events()).unwrap();
        let mut record = |event| history.record(&mut journal, event).unwrap();
        let (epoch, size) = (Epoch::from_random([0; 4]), Size::default());
        record(Event::Started { epoch, offset: 0, size: Some(size), pid: 1, version: "0.1.0".to_owned() });
        record(Event::Exit { code: Some(0), signal: None, offset: 0 });
        let meta = serde_json::json!({
            "id": dir.id(), "name": format!("s{n}"), "kind": "terminal", "argv": [program], "cwd": "/", "env": [],
            "size": size, "log_size": 1 << 20, "history": 0, "created": format!("2026-01-01T00:00:00.{n:06}Z"),
            "host": this_host(), "boot": this_boot(),
        });
        let ended = EndedSession { meta: serde_json::from_value(meta).unwrap(), dir };
        ended.meta.write(&ended.dir.meta()).unwrap();
        ended
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(gateway) = self.gateway.take() {
            let _ = gateway.join();
        }
    }
}

/// The files of an ended session.
pub(crate) struct EndedSession {
    pub(crate) dir: SessionDir,
    meta: Meta,
}

impl EndedSession {
    pub(crate) fn rename(&mut self, name: &str) {
        self.meta.name = Some(name.parse().unwrap());
        self.meta.write(&self.dir.meta()).unwrap();
    }

    pub(crate) fn forget(&self) {
        bowline_host::remove::forget(&bowline_host::registry::read(self.dir.clone()).unwrap()).unwrap();
    }
}
