//! The sessions of this machine: their files and their processes.

mod agents;

use std::cell::Cell;
use std::time::Duration;

use bowline_client::local::LocalDialer;
use bowline_client::post::{Deliver, LocalDelivery};
use bowline_client::transport::Dialer;
use bowline_host::agents::AgentTable;
use bowline_host::archive::{self, ArchiveError, LogFile};
use bowline_host::control::{Control, ControlError, STATUS_TIMEOUT};
use bowline_host::home::{Home, SessionDir};
use bowline_host::launch::Launcher;
use bowline_host::meta::makers_of_this_session;
use bowline_host::registry::{self, Entry, RegistryError};
use bowline_host::remove::{self, Retention};
use bowline_host::rename;
use bowline_host::spec::Spec;
use bowline_host::start;
use bowline_host::watch::{WatchFlags, Watcher};
use bowline_proto::agent::command::FirstPrompt;
use bowline_proto::api::{AgentList, ApprovalList, CommandAccepted, EventPage};
use bowline_proto::control::{self, Reply, Request, ScreenFormat};
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::session::{Kind, State};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;

use super::{HistoryRange, Host, Log, LogEnd, LogRead, PruneOutcome, Session};
use crate::config::Config;
use crate::failure::{Code, Failure};
use crate::{args, new};

/// How long a session process may take to reply. Generous, because its program may be flooding it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often to check a watched log, in case the watch misses a change.
const POLL_WATCHED: Duration = Duration::from_secs(1);
/// How often to check a log that cannot be watched.
const POLL_UNWATCHED: Duration = Duration::from_millis(100);

/// This machine.
#[derive(Clone)]
pub(super) struct LocalHost {
    home: Home,
}

impl LocalHost {
    pub(super) fn new(home: Home) -> LocalHost {
        LocalHost { home }
    }

    fn entry(&self, session: &Session) -> Result<Entry, RegistryError> {
        registry::find(&self.home, session.info.id.as_str())
    }
}

impl From<Entry> for Session {
    fn from(entry: Entry) -> Session {
        Session { info: entry.info }
    }
}

impl Host for LocalHost {
    fn share(&self) -> Box<dyn Host> {
        Box::new(self.clone())
    }

    fn list(&self) -> anyhow::Result<Vec<Session>> {
        Ok(registry::list(&self.home)?.into_iter().map(Session::from).collect())
    }

    fn find_exact(&self, key: &str) -> anyhow::Result<Session> {
        Ok(registry::find(&self.home, key)?.into())
    }

    fn start(&self, verb: args::New, config: &Config) -> anyhow::Result<Session> {
        let spec = Spec { makers: makers_of_this_session(&self.home), ..new::spec(verb, config)? };
        Ok(start::start(&self.home, &Launcher::this_program(), spec, &config.retention())?.entry.into())
    }

    fn restart(&self, session: &Session) -> anyhow::Result<Session> {
        // A terminal can be restarted whatever the configuration says.
        let agents = match session.info.kind {
            Kind::Agent => Config::load()?.agent_table()?,
            Kind::Terminal | Kind::Unknown => AgentTable::builtin(),
        };
        let launcher = Launcher::this_program();
        Ok(start::restart(&self.home, &launcher, &self.entry(session)?, None, &agents)?.into())
    }

    fn end(&self, session: &Session, grace: Option<Duration>, keep: bool) -> anyhow::Result<()> {
        let entry = self.entry(session)?;
        let grace = grace.unwrap_or_else(|| remove::default_grace(entry.meta.kind));
        Ok(remove::end(&entry, grace, keep)?)
    }

    fn forget_damaged(&self, _key: &str, error: anyhow::Error) -> anyhow::Result<SessionId> {
        match error.downcast::<RegistryError>()? {
            RegistryError::Damaged { dir, .. } => Ok(remove::forget_damaged(&dir).map(|()| dir.id().clone())?),
            error => Err(error.into()),
        }
    }

    fn rename(&self, session: &Session, name: &SessionName) -> anyhow::Result<()> {
        Ok(rename::rename(&self.home, &self.entry(session)?, name, None)?)
    }

    fn command(&self, session: &Session, id: &str, command: &Value) -> anyhow::Result<CommandAccepted> {
        let dir = self.entry(session)?.dir;
        let by = Some(agents::CALLER.to_owned());
        let request = Request::Command { id: id.to_owned(), command: command.clone(), by };
        let send = || Control::connect(&dir)?.request(&request, TIMEOUT);
        let reply = match send() {
            Err(ControlError::TimedOut | ControlError::Unreachable(_)) => send()?,
            other => other?,
        };
        let Reply::Accepted { id, seq, run, duplicate } = reply else { return Err(ControlError::Unexpected.into()) };
        Ok(CommandAccepted::new(id, seq, run, duplicate))
    }

    fn screen(&self, session: &Session, format: ScreenFormat, scrollback: u32) -> anyhow::Result<String> {
        let dir = self.entry(session)?.dir;
        match Control::screen(&dir, format, scrollback, TIMEOUT) {
            // Its process has ended or is about to: the last screen is in the files.
            Err(ControlError::Unreachable(_)) => {
                if scrollback > 0 {
                    eprintln!(
                        "bowline: an ended session keeps only its visible screen; `bowline log` prints older output"
                    );
                }
                Ok(archive::last_screen(&dir)?.into_format(format))
            }
            other => Ok(other?),
        }
    }

    fn log(&self, session: &Session, _config: &Config) -> anyhow::Result<Box<dyn Log>> {
        let dir = self.entry(session)?.dir;
        let log = LogFile::open(&dir);
        let in_memory = match Control::status(&dir, TIMEOUT) {
            Ok(info) => info.degraded || log.is_err(),
            Err(ControlError::TimedOut) => {
                eprintln!("bowline: the session process does not answer; printing its log file, which may be behind");
                false
            }
            Err(_) => false,
        };
        Ok(Box::new(LocalLog {
            log: log.or_else(|error| if in_memory { Ok(LogFile::empty()) } else { Err(error) })?,
            watcher: watch(&dir).ok(),
            dir,
            last_end: Cell::new(None),
            in_memory: in_memory.into(),
        }))
    }

    fn start_agent(&self, verb: &args::Agent, prompt: Option<FirstPrompt>, config: &Config) -> anyhow::Result<Session> {
        Ok(agents::start(&self.home, verb, prompt, config)?.into())
    }

    fn agents(&self) -> anyhow::Result<AgentList> {
        agents::list(&self.home)
    }

    fn approvals(&self) -> anyhow::Result<ApprovalList> {
        Ok(agents::approvals(&self.home)?)
    }

    fn delivery(&self) -> Box<dyn Deliver> {
        Box::new(LocalDelivery::new(self.home.clone()))
    }

    fn history(&self, session: &Session, range: HistoryRange) -> anyhow::Result<EventPage> {
        agents::history(&self.entry(session)?, range)
    }

    fn dial(&self, session: &Session) -> anyhow::Result<Box<dyn Dialer>> {
        Ok(Box::new(LocalDialer::new(self.home.clone(), self.entry(session)?.dir)))
    }

    fn prune(&self, verb: &args::Prune, config: &Config) -> anyhow::Result<PruneOutcome> {
        let configured = config.retention();
        let retention = Retention {
            max_age: verb.older.unwrap_or(configured.max_age),
            max_bytes: verb.total_size.unwrap_or(configured.max_bytes),
            conversation_age: if verb.conversations { verb.older } else { configured.conversation_age },
        };
        let pruned = remove::prune(&self.home, &retention, verb.dry_run)?;
        Ok(PruneOutcome {
            sessions: pruned.sessions.into_iter().map(Session::from).collect(),
            damaged: pruned.damaged.iter().map(|dir| dir.id().clone()).collect(),
            bytes: pruned.bytes,
            failed: pruned.failed.into_iter().map(Into::into).collect(),
        })
    }
}

/// A session's log: its file or, after the file could not be written, the memory of the session process.
struct LocalLog {
    log: LogFile,
    dir: SessionDir,
    /// `None` if the user has no inotify watch left; every session process needs one, too.
    watcher: Option<Watcher>,
    /// Where the file ended when `end` was last called.
    last_end: Cell<Option<u64>>,
    in_memory: Cell<bool>,
}

fn watch(dir: &SessionDir) -> std::io::Result<Watcher> {
    let watcher = Watcher::new()?;
    for file in [dir.log(), dir.events()] {
        watcher.add(&file, WatchFlags::MODIFY)?;
    }
    Ok(watcher)
}

impl LocalLog {
    /// Reads the log in the process's memory: the offset of its oldest byte, that of its end, and at most `max` bytes.
    fn read_memory(&self, from: Option<u64>, max: usize) -> Result<(u64, u64, Vec<u8>), ControlError> {
        let request = Request::Log { from, max: u32::try_from(max).unwrap_or(u32::MAX) };
        let Reply::Log { start, end, bytes } = Control::connect(&self.dir)?.request(&request, TIMEOUT)? else {
            return Err(ControlError::Unexpected);
        };
        Ok((start, end, control::text_to_bytes(&bytes).ok_or(ControlError::Unexpected)?))
    }
}

impl Log for LocalLog {
    fn start(&self) -> anyhow::Result<u64> {
        Ok(if self.in_memory.get() { self.read_memory(None, 0)?.0 } else { self.log.range()?.0 })
    }

    fn end(&self) -> anyhow::Result<LogEnd> {
        // Read the state before the log: once the session has ended, all its output is in the log.
        let is_final = registry::read(self.dir.clone()).is_none_or(|now| now.info.state != State::Running);
        if !self.in_memory.get() {
            let offset = self.log.range()?.1;
            let has_grown = self.last_end.replace(Some(offset)) != Some(offset);
            if is_final || has_grown || !Control::status(&self.dir, STATUS_TIMEOUT).is_ok_and(|info| info.degraded) {
                return Ok(LogEnd { offset, is_final });
            }
            self.in_memory.set(true);
        }
        match self.read_memory(None, 0) {
            Err(ControlError::Unreachable(_)) if is_final => Err(Failure::new(
                Code::Unreachable,
                "the session has ended, and the end of its log is lost, because it was only in memory",
                "the disk was full or failed while the session ran; check it and free some space",
            )
            .into()),
            reply => Ok(LogEnd { offset: reply?.1, is_final }),
        }
    }

    fn read(&self, from: u64, buf: &mut [u8]) -> anyhow::Result<LogRead> {
        if self.in_memory.get() {
            let (start, _, bytes) = self.read_memory(Some(from), buf.len())?;
            if from < start {
                return Ok(LogRead::Trimmed(start));
            }
            buf[..bytes.len()].copy_from_slice(&bytes);
            return Ok(LogRead::Bytes(bytes.len()));
        }
        match self.log.read(from, buf) {
            Ok(n) => Ok(LogRead::Bytes(n)),
            Err(ArchiveError::Trimmed { start, .. }) if start > from => Ok(LogRead::Trimmed(start)),
            Err(error) => Err(error.into()),
        }
    }

    fn wait(&self) -> anyhow::Result<()> {
        let Some(watcher) = self.watcher.as_ref().filter(|_| !self.in_memory.get()) else {
            std::thread::sleep(POLL_UNWATCHED);
            return Ok(());
        };
        let mut fds = [PollFd::new(watcher, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&POLL_WATCHED.try_into()?));
        let _ = watcher.take(); // it does not matter which file changed
        Ok(())
    }
}
