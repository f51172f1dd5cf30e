//! The sessions of this machine: their files and their processes.

use std::time::Duration;

use bowline_client::local::Local;
use bowline_client::transport::Dial;
use bowline_proto::control::{self, Reply, Request, ScreenFormat};
use bowline_proto::ids::{SessionId, SessionName};
use bowline_proto::message::State;
use bowline_session::archive::{self, ArchiveError, LogFile};
use bowline_session::control::{Control, ControlError};
use bowline_session::home::{Home, SessionDir};
use bowline_session::launch::Launcher;
use bowline_session::registry::{self, Entry, RegistryError};
use bowline_session::remove::{self, Retention};
use bowline_session::rename;
use bowline_session::start::{self, Started};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify;
use serde_json::Value;

use super::{Accepted, End, Log, Piece, Place, Pruned, Session};
use crate::config::Config;
use crate::{args, new, send};

/// How long a session process may take to answer, under a flood too.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long to wait for a change of a log before looking all the same.
const LOOK: Duration = Duration::from_secs(1);
/// How often to look where nothing tells of a change.
const LOOK_UNWATCHED: Duration = Duration::from_millis(100);

/// This machine.
pub(super) struct Here {
    home: Home,
}

impl Here {
    pub(super) fn new(home: Home) -> Here {
        Here { home }
    }

    fn entry(&self, session: &Session) -> Result<Entry, RegistryError> {
        registry::find(&self.home, session.info.id.as_str())
    }

    fn started(&self, started: &Started) -> anyhow::Result<Session> {
        self.find(started.id.as_str())
    }
}

impl From<Entry> for Session {
    fn from(entry: Entry) -> Session {
        Session { info: entry.info }
    }
}

impl Place for Here {
    fn list(&self) -> anyhow::Result<Vec<Session>> {
        Ok(registry::list(&self.home)?.into_iter().map(Session::from).collect())
    }

    fn find(&self, key: &str) -> anyhow::Result<Session> {
        Ok(registry::find(&self.home, key)?.into())
    }

    fn start(&self, verb: args::New, config: &Config) -> anyhow::Result<Session> {
        let started = start::start(&self.home, &Launcher::this_program(), new::spec(verb, config)?)?;
        // Housekeeping must not get in the way of what was asked for.
        let _ = remove::prune(&self.home, &config.retention(), false);
        self.started(&started)
    }

    fn restart(&self, session: &Session) -> anyhow::Result<Session> {
        self.started(&start::restart(&self.home, &Launcher::this_program(), &self.entry(session)?, None)?)
    }

    fn end(&self, session: &Session, grace: Option<Duration>, keep: bool) -> anyhow::Result<()> {
        Ok(remove::end(&self.entry(session)?, grace.unwrap_or(remove::DEFAULT_GRACE), keep)?)
    }

    fn forget_damaged(&self, _key: &str, why: anyhow::Error) -> anyhow::Result<SessionId> {
        match why.downcast::<RegistryError>()? {
            RegistryError::Damaged { dir, .. } => Ok(remove::forget_damaged(&dir).map(|()| dir.id().clone())?),
            why => Err(why.into()),
        }
    }

    fn rename(&self, session: &Session, name: &SessionName) -> anyhow::Result<()> {
        Ok(rename::rename(&self.home, &self.entry(session)?, name, None)?)
    }

    fn command(&self, session: &Session, command: &Value) -> anyhow::Result<Accepted> {
        let dir = self.entry(session)?.dir;
        // One id for all tries: a second one after a lost answer types nothing twice.
        let request = Request::Command { id: send::fresh_id()?, command: command.clone() };
        let ask = || Control::connect(&dir)?.request(&request, DEADLINE);
        let reply = match ask() {
            Err(ControlError::Silent | ControlError::Unreachable(_)) => ask()?,
            other => other?,
        };
        let Reply::Accepted { id, seq, duplicate } = reply else { return Err(ControlError::Unexpected.into()) };
        Ok(Accepted { id, seq, status: if duplicate { "duplicate" } else { "accepted" }.to_owned() })
    }

    fn screen(&self, session: &Session, format: ScreenFormat, scrollback: u32) -> anyhow::Result<String> {
        let dir = self.entry(session)?.dir;
        let screen = match live_screen(&dir, format, scrollback) {
            // Its process is gone, or goes right now: the files have its last screen.
            Err(ControlError::Unreachable(_)) => {
                if scrollback > 0 {
                    eprintln!(
                        "bowline: of an ended session only the visible screen is kept; `bowline log` has its output"
                    );
                }
                saved_screen(&dir, format)?
            }
            other => other?,
        };
        Ok(match screen {
            Value::String(text) => text,
            json => serde_json::to_string(&json)?,
        })
    }

    fn log(&self, session: &Session, _config: &Config) -> anyhow::Result<Box<dyn Log>> {
        let dir = self.entry(session)?.dir;
        if Control::status(&dir).is_ok_and(|info| info.degraded) {
            return Ok(Box::new(LogInMemory { dir }));
        }
        Ok(Box::new(LogHere { log: LogFile::open(&dir)?, watch: watch(&dir).ok(), dir }))
    }

    fn dial(&self, session: &Session) -> anyhow::Result<Box<dyn Dial>> {
        Ok(Box::new(Local::new(self.entry(session)?.dir)))
    }

    fn prune(&self, verb: &args::Prune, config: &Config) -> anyhow::Result<Pruned> {
        let configured = config.retention();
        let retention = Retention {
            max_age: verb.older.unwrap_or(configured.max_age),
            max_bytes: verb.total_size.unwrap_or(configured.max_bytes),
        };
        let pruned = remove::prune(&self.home, &retention, verb.dry_run)?;
        Ok(Pruned {
            sessions: pruned.sessions.into_iter().map(Session::from).collect(),
            damaged: pruned.damaged.iter().map(|dir| dir.id().clone()).collect(),
            bytes: pruned.bytes,
            failed: pruned.failed.into_iter().map(Into::into).collect(),
        })
    }
}

fn live_screen(dir: &SessionDir, format: ScreenFormat, scrollback: u32) -> Result<Value, ControlError> {
    match Control::connect(dir)?.request(&Request::Screen { format, scrollback }, DEADLINE)? {
        Reply::Screen { screen } => Ok(screen),
        _ => Err(ControlError::Unexpected),
    }
}

/// From the files. They have the visible screen only; what scrolled off is in the log.
fn saved_screen(dir: &SessionDir, format: ScreenFormat) -> Result<Value, ArchiveError> {
    let saved = archive::read_screen(dir)?;
    Ok(match format {
        ScreenFormat::Text => saved.text.into(),
        ScreenFormat::Ansi => saved.ansi.into(),
        ScreenFormat::Json => saved.json,
    })
}

/// The log of a session whose file could not be written any more: its process has it.
struct LogInMemory {
    dir: SessionDir,
}

impl LogInMemory {
    /// The oldest byte, the end, and a part.
    fn ask(&self, from: Option<u64>, max: usize) -> Result<(u64, u64, Vec<u8>), ControlError> {
        let request = Request::Log { from, max: u32::try_from(max).unwrap_or(u32::MAX) };
        let Reply::Log { start, end, bytes } = Control::connect(&self.dir)?.request(&request, DEADLINE)? else {
            return Err(ControlError::Unexpected);
        };
        Ok((start, end, control::text_to_bytes(&bytes).ok_or(ControlError::Unexpected)?))
    }
}

impl Log for LogInMemory {
    fn start(&self) -> anyhow::Result<u64> {
        Ok(self.ask(None, 0)?.0)
    }

    fn end(&self) -> anyhow::Result<End> {
        let is_last = registry::read(self.dir.clone()).is_none_or(|now| now.info.state != State::Running);
        Ok(End { offset: self.ask(None, 0)?.1, is_last })
    }

    fn read(&self, from: u64, buf: &mut [u8]) -> anyhow::Result<Piece> {
        let (start, _, bytes) = self.ask(Some(from), buf.len())?;
        if from < start {
            return Ok(Piece::Trimmed(start));
        }
        buf[..bytes.len()].copy_from_slice(&bytes);
        Ok(Piece::Bytes(bytes.len()))
    }

    fn wait(&self) -> anyhow::Result<()> {
        std::thread::sleep(LOOK_UNWATCHED);
        Ok(())
    }
}

/// A log file, and a watch on it where the kernel has one to spare: a user has few, and every session takes one.
struct LogHere {
    log: LogFile,
    dir: SessionDir,
    watch: Option<OwnedFd>,
}

fn watch(dir: &SessionDir) -> std::io::Result<OwnedFd> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    for file in [dir.log(), dir.events()] {
        inotify::add_watch(&watch, &file, inotify::WatchFlags::MODIFY)?;
    }
    Ok(watch)
}

impl Log for LogHere {
    fn start(&self) -> anyhow::Result<u64> {
        Ok(self.log.range()?.0)
    }

    fn end(&self) -> anyhow::Result<End> {
        // The state first: what was written before it ended is in the log by then.
        let is_last = registry::read(self.dir.clone()).is_none_or(|now| now.info.state != State::Running);
        Ok(End { offset: self.log.range()?.1, is_last })
    }

    fn read(&self, from: u64, buf: &mut [u8]) -> anyhow::Result<Piece> {
        match self.log.read(from, buf) {
            Ok(n) => Ok(Piece::Bytes(n)),
            Err(ArchiveError::Trimmed { start, .. }) if start > from => Ok(Piece::Trimmed(start)),
            Err(error) => Err(error.into()),
        }
    }

    fn wait(&self) -> anyhow::Result<()> {
        let Some(watch) = &self.watch else {
            std::thread::sleep(LOOK_UNWATCHED);
            return Ok(());
        };
        let mut fds = [PollFd::new(watch, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&LOOK.try_into()?));
        let mut drain = [0; 4096];
        while rustix::io::read(watch, &mut drain).is_ok_and(|n| n > 0) {}
        Ok(())
    }
}
