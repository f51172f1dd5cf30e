//! Starts a terminal: its files first, then its program.

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

use super::super::{StartError, random};
use super::Terminal;
use crate::emulator::Emulator;
use crate::pty::Pty;

/// A terminal whose files are open, but whose program is not started yet.
pub(in super::super) struct PreparedTerminal<'a> {
    terminal: &'a TerminalMeta,
    log: Arc<Log>,
    journal: Journal,
    history: History,
}

impl<'a> PreparedTerminal<'a> {
    /// Opens the session's log and journal, or creates them.
    pub(in super::super) fn new(
        dir: &SessionDir,
        terminal: &'a TerminalMeta,
        files: &dyn Fn(io::Error) -> StartError,
    ) -> Result<PreparedTerminal<'a>, StartError> {
        let log = match Log::open(&dir.log()) {
            Ok(log) => log.reserve().map(|()| log),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Log::create(&dir.log(), terminal.log_size),
            Err(error) => Err(error),
        };
        let log = Arc::new(log.map_err(files)?);
        let (journal, history) = History::open(&dir.events()).map_err(files)?;
        Ok(PreparedTerminal { terminal, log, journal, history })
    }

    /// Starts the program once `wait` returns.
    pub(in super::super) fn spawn(
        &self,
        meta: &Meta,
        umask: Mode,
        wait: impl FnOnce() -> Result<(), StartError>,
    ) -> Result<Pty, StartError> {
        let spawned = || {
            Pty::check(meta, self.terminal)?;
            wait()?;
            Ok(Pty::spawn(meta, self.terminal, umask)?)
        };
        // `PreparedTerminal::new` reserved space in the log; a failed restart must not keep it.
        spawned().inspect_err(|_| drop(self.log.shrink()))
    }

    /// Starts the emulator, records the start, and completes `info`. On an error the PTY is dropped, which
    /// sends the program SIGHUP.
    pub(in super::super) fn start(
        mut self,
        dir: &SessionDir,
        pty: Pty,
        info: &mut SessionInfo,
        files: &dyn Fn(io::Error) -> StartError,
    ) -> Result<(Journal, Terminal), StartError> {
        let TerminalMeta { size, scrollback, .. } = *self.terminal;
        let epoch = info.epoch.clone();
        let emulator = Emulator::start(self.log.clone(), epoch.clone(), size, scrollback as usize, dir.screen())?;
        info.offset = self.log.end();
        info.terminal = Some(TerminalInfo { argv: self.terminal.argv_lossy(), size });
        let (offset, pid, version) = (info.offset, std::process::id(), info.version.clone());
        let started = Event::Started { epoch, offset, size: Some(size), pid, version };
        self.history.record(&mut self.journal, started).map_err(files)?;
        let terminal = Terminal::new(info, random()?, self.log, self.history, pty, emulator);
        Ok((self.journal, terminal))
    }
}
