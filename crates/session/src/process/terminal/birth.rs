//! How a terminal comes to life: its files first, then its program.

use std::io;
use std::sync::Arc;

use bowline_host::events::Event;
use bowline_host::history::History;
use bowline_host::home::SessionDir;
use bowline_host::journal::Journal;
use bowline_host::log::Log;
use bowline_host::meta::{Meta, TerminalMeta};
use bowline_proto::session::{SessionInfo, TerminalInfo};
use rustix::fs::Mode;

use super::super::BirthError;
use super::Terminal;
use crate::emulator::Emulator;
use crate::pty::Pty;

/// A terminal whose files are there, and whose program is not yet.
pub(in super::super) struct Prepared<'a> {
    terminal: &'a TerminalMeta,
    log: Arc<Log>,
    journal: Journal,
    history: History,
}

impl<'a> Prepared<'a> {
    /// Makes the log and the journal, or opens those of an earlier life.
    pub(in super::super) fn new(
        dir: &SessionDir,
        terminal: &'a TerminalMeta,
        files: &dyn Fn(io::Error) -> BirthError,
    ) -> Result<Prepared<'a>, BirthError> {
        let log = match Log::open(&dir.log()) {
            Ok(log) => log.reserve().map(|()| log),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Log::create(&dir.log(), terminal.log_size),
            Err(error) => Err(error),
        };
        let log = Arc::new(log.map_err(files)?);
        let (journal, history) = History::open(&dir.events()).map_err(files)?;
        Ok(Prepared { terminal, log, journal, history })
    }

    /// Starts the program once `wait` says so.
    pub(in super::super) fn spawn(
        &self,
        meta: &Meta,
        umask: Mode,
        wait: impl FnOnce() -> Result<(), BirthError>,
    ) -> Result<Pty, BirthError> {
        let spawned = || {
            Pty::check(meta, self.terminal)?;
            wait()?;
            Ok(Pty::spawn(meta, self.terminal, umask)?)
        };
        // A restart that fails leaves the log as small as it was.
        spawned().inspect_err(|_| drop(self.log.shrink()))
    }

    /// Starts the screen, records the start, and completes the description. If that fails, dropping the PTY hangs the
    /// program up.
    pub(in super::super) fn start(
        mut self,
        dir: &SessionDir,
        pty: Pty,
        info: &mut SessionInfo,
        files: &dyn Fn(io::Error) -> BirthError,
    ) -> Result<(Journal, Terminal), BirthError> {
        let TerminalMeta { size, history, .. } = *self.terminal;
        let epoch = info.epoch.clone();
        let emulator = Emulator::start(self.log.clone(), epoch.clone(), size, history as usize, dir.screen())?;
        info.offset = self.log.end();
        info.terminal = Some(TerminalInfo { argv: self.terminal.argv_lossy(), size });
        let (offset, pid, version) = (info.offset, std::process::id(), info.version.clone());
        let started = Event::Started { epoch, offset, size: Some(size), pid, version };
        self.history.record(&mut self.journal, started).map_err(files)?;
        let terminal = Terminal::new(info, self.log, self.history, pty, emulator);
        Ok((self.journal, terminal))
    }
}
