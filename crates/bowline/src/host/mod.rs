//! The host whose sessions a verb works on: this machine, or another one behind a gateway.

mod local;
mod prefix;
mod remote;
mod select;

use std::time::Duration;

use bowline_client::post::Deliver;
use bowline_client::transport::Dialer;
use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::api::{AgentList, ApprovalList, CommandAccepted, EventPage};
use bowline_proto::control::ScreenFormat;
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::SessionInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args;
use crate::config::Config;

pub(crate) use select::{gateway_client, select};

/// A session, as the HTTP API describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Session {
    pub(crate) info: SessionInfo,
}

impl Session {
    /// The name, or the id of a session without one.
    pub(crate) fn label(&self) -> &str {
        self.info.name.as_ref().map_or(self.info.id.as_str(), |name| name.as_str())
    }

    /// `NAME (ID)`, or the id of a session without a name.
    pub(crate) fn full_label(&self) -> String {
        let id = &self.info.id;
        self.info.name.as_ref().map_or_else(|| id.to_string(), |name| format!("{name} ({id})"))
    }
}

/// A machine with sessions.
pub(crate) trait Host: Send + Sync {
    /// Returns the same host, for a thread of its own.
    fn share(&self) -> Box<dyn Host>;
    /// Lists all sessions, oldest first.
    fn list(&self) -> anyhow::Result<Vec<Session>>;
    /// Finds the session with exactly this id or name.
    fn find_exact(&self, key: &str) -> anyhow::Result<Session>;
    /// Finds the session with this id or name, or else the only one whose id or name starts with `key`.
    fn find(&self, key: &str) -> anyhow::Result<Session> {
        self.find_exact(key).or_else(|error| prefix::find(self, key, error))
    }
    /// Finds the session with exactly this id or name. The error suggests sessions whose id or name starts with `key`.
    fn find_or_suggest(&self, key: &str) -> anyhow::Result<Session> {
        self.find_exact(key).map_err(|error| prefix::suggest(self, key, error))
    }
    fn start(&self, verb: args::New, config: &Config) -> anyhow::Result<Session>;
    /// Starts an ended session again.
    fn restart(&self, session: &Session) -> anyhow::Result<Session>;
    /// Ends a session and waits until it has ended. Removes its files unless `keep`.
    fn end(&self, session: &Session, grace: Option<Duration>, keep: bool) -> anyhow::Result<()>;
    /// Removes the files of an ended session that [`find_exact`](Host::find_exact) could not read because they are
    /// damaged, and returns its id. Returns `error`, from that call, if it has another cause.
    fn forget_damaged(&self, key: &str, error: anyhow::Error) -> anyhow::Result<SessionId>;
    fn rename(&self, session: &Session, name: &SessionName) -> anyhow::Result<()>;
    /// Runs a command. It takes effect at most once per id, so a call whose reply was lost can be repeated.
    fn command(&self, session: &Session, id: &str, command: &Value) -> anyhow::Result<CommandAccepted>;
    /// Reads the current screen, or the last one of an ended session.
    fn screen(&self, session: &Session, format: ScreenFormat, scrollback: u32) -> anyhow::Result<String>;
    fn log(&self, session: &Session, config: &Config) -> anyhow::Result<Box<dyn Log>>;
    /// Starts an agent session, with its first prompt if there is one.
    fn start_agent(&self, verb: &args::Agent, prompt: Option<FirstPrompt>, config: &Config) -> anyhow::Result<Session>;
    /// Lists the agents that sessions may run. Takes up to 12 s, if their programs are slow.
    fn agents(&self) -> anyhow::Result<AgentList>;
    /// Lists what the agents of all sessions wait for, with whole texts.
    fn approvals(&self) -> anyhow::Result<ApprovalList>;
    /// Returns how commands of agent sessions are delivered.
    fn delivery(&self) -> Box<dyn Deliver>;
    /// Reads a page of the events of an agent session.
    fn history(&self, session: &Session, range: HistoryRange) -> anyhow::Result<EventPage>;
    /// The URL of the gateway, if the sessions are reached through one.
    fn server(&self) -> Option<String> {
        None
    }
    /// Returns a dialer for the session.
    fn dial(&self, session: &Session) -> anyhow::Result<Box<dyn Dialer>>;
    /// Forgets ended sessions that are past the limits.
    fn prune(&self, verb: &args::Prune, config: &Config) -> anyhow::Result<PruneOutcome>;
}

/// Which events a page of history has, both bounds exclusive: with `after`, the first of them, otherwise the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryRange {
    pub(crate) before: Option<u64>,
    pub(crate) after: Option<u64>,
}

/// The sessions that a prune removed, or would remove in a dry run.
pub(crate) struct PruneOutcome {
    pub(crate) sessions: Vec<Session>,
    /// Ids of sessions whose `meta.json` was damaged.
    pub(crate) damaged: Vec<SessionId>,
    /// Disk space freed.
    pub(crate) bytes: u64,
    /// An error for each session that could not be removed.
    pub(crate) failed: Vec<anyhow::Error>,
}

pub(crate) trait Log {
    /// Offset of the oldest byte kept.
    fn start(&self) -> anyhow::Result<u64>;
    fn end(&self) -> anyhow::Result<LogEnd>;
    /// Reads bytes from `from` into `buf`.
    fn read(&self, from: u64, buf: &mut [u8]) -> anyhow::Result<LogRead>;
    /// Waits until there may be more to read. May return early.
    fn wait(&self) -> anyhow::Result<()>;
}

/// The end of a log.
pub(crate) struct LogEnd {
    /// One past the newest byte.
    pub(crate) offset: u64,
    /// The session has ended, so the log no longer grows.
    pub(crate) is_final: bool,
}

/// The outcome of a read from a log.
pub(crate) enum LogRead {
    /// The number of bytes read; 0 at the end of the log.
    Bytes(usize),
    /// The requested bytes are no longer kept; the oldest one kept is at this offset.
    Trimmed(u64),
}
