//! Where the sessions are: on this machine, or behind a gateway. Verbs know no more of it than this.

mod choose;
mod here;
mod prefix;
mod there;

use std::time::Duration;

use bowline_client::transport::Dial;
use bowline_proto::api::CommandAccepted;
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::SessionInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args;
use crate::config::Config;

pub(crate) use choose::{choose, gateway};

/// A session, as the HTTP API would describe it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Session {
    pub(crate) info: SessionInfo,
}

impl Session {
    /// What a user calls it.
    pub(crate) fn label(&self) -> &str {
        self.info.name.as_ref().map_or(self.info.id.as_str(), |name| name.as_str())
    }

    /// Its name and id.
    pub(crate) fn full_label(&self) -> String {
        let id = &self.info.id;
        self.info.name.as_ref().map_or_else(|| id.to_string(), |name| format!("{name} ({id})"))
    }
}

/// A place with sessions.
pub(crate) trait Place: Sync {
    /// All sessions, oldest first.
    fn list(&self) -> anyhow::Result<Vec<Session>>;
    /// The session with exactly this id or name.
    fn find_exact(&self, key: &str) -> anyhow::Result<Session>;
    /// The session with this id or name, or else the only one whose id or name begins so.
    fn find(&self, key: &str) -> anyhow::Result<Session> {
        self.find_exact(key).or_else(|why| prefix::find(self, key, why))
    }
    /// The session with exactly this id or name; otherwise an error that says which may have been meant.
    fn find_or_suggest(&self, key: &str) -> anyhow::Result<Session> {
        self.find_exact(key).map_err(|why| prefix::suggest(self, key, why))
    }
    /// Starts one.
    fn start(&self, verb: args::New, config: &Config) -> anyhow::Result<Session>;
    /// Starts one that has ended again.
    fn restart(&self, session: &Session) -> anyhow::Result<Session>;
    /// Ends one and waits for it; unless `keep`, it is forgotten.
    fn end(&self, session: &Session, grace: Option<Duration>, keep: bool) -> anyhow::Result<()>;
    /// Forgets what is left of one that was not found because it has ended and its files are damaged; gives its id. Otherwise
    /// it is still not found, for the reason given.
    fn forget_damaged(&self, key: &str, why: anyhow::Error) -> anyhow::Result<SessionId>;
    /// Gives one another name.
    fn rename(&self, session: &Session, name: &SessionName) -> anyhow::Result<()>;
    /// Has something done once, however often the way to it fails, or this is called with the same id.
    fn command(&self, session: &Session, id: &str, command: &Value) -> anyhow::Result<CommandAccepted>;
    /// What one shows, or showed last.
    fn screen(&self, session: &Session, format: ScreenFormat, scrollback: u32) -> anyhow::Result<String>;
    /// What one has printed.
    fn log(&self, session: &Session, config: &Config) -> anyhow::Result<Box<dyn Log>>;
    /// The way to attach to one.
    fn dial(&self, session: &Session) -> anyhow::Result<Box<dyn Dial>>;
    /// Forgets ended sessions.
    fn prune(&self, verb: &args::Prune, config: &Config) -> anyhow::Result<Pruned>;
}

/// What a prune removed.
pub(crate) struct Pruned {
    pub(crate) sessions: Vec<Session>,
    /// Those of which nobody could say any more what they were.
    pub(crate) damaged: Vec<SessionId>,
    /// The space that they took.
    pub(crate) bytes: u64,
    /// Why others stay that should have gone.
    pub(crate) failed: Vec<anyhow::Error>,
}

/// A session's log, from where it is kept.
pub(crate) trait Log {
    /// The oldest byte kept.
    fn start(&self) -> anyhow::Result<u64>;
    /// How far it has come.
    fn end(&self) -> anyhow::Result<End>;
    /// Bytes from `from`, at most as many as `buf` takes.
    fn read(&self, from: u64, buf: &mut [u8]) -> anyhow::Result<Piece>;
    /// Waits until there may be more.
    fn wait(&self) -> anyhow::Result<()>;
}

/// How far a log has come.
pub(crate) struct End {
    /// One past the newest byte.
    pub(crate) offset: u64,
    /// There will be no more.
    pub(crate) is_last: bool,
}

/// What came of reading a log.
pub(crate) enum Piece {
    /// This many bytes; 0 at the end.
    Bytes(usize),
    /// They are no longer kept; the oldest is this one.
    Trimmed(u64),
}
