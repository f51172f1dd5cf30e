//! Starts a terminal: its files first, then its program.

use std::io;
use std::sync::Arc;

use bowline_host::archive;
use bowline_host::events::Event;
use bowline_host::files::{is_damage, set_aside};
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
    /// Opens the session's log and journal, or creates them. Damaged ones are set aside.
    pub(in super::super) fn new(
        dir: &SessionDir,
        terminal: &'a TerminalMeta,
        files: &dyn Fn(io::Error) -> StartError,
    ) -> Result<PreparedTerminal<'a>, StartError> {
        let (journal, history) = match History::open(&dir.events()) {
            Err(error) if is_damage(&error) => set_aside(&dir.events()).and_then(|()| History::open(&dir.events())),
            opened => opened,
        }
        .map_err(files)?;
        let log = match archive::open_log(dir, &history.summary) {
            Ok(log) => log.reserve().map(|()| log),
            Err(error) if error.kind() == io::ErrorKind::NotFound => create_log(dir, terminal, &history),
            Err(error) if is_damage(&error) => set_aside(&dir.log()).and_then(|()| create_log(dir, terminal, &history)),
            Err(error) => Err(error),
        };
        Ok(PreparedTerminal { terminal, log: Arc::new(log.map_err(files)?), journal, history })
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
    ) -> Result<Terminal, StartError> {
        let TerminalMeta { size, scrollback, .. } = *self.terminal;
        let epoch = info.epoch.clone();
        let emulator = Emulator::start(self.log.clone(), epoch.clone(), size, scrollback as usize, dir.screen())?;
        info.offset = self.log.end();
        info.terminal = Some(TerminalInfo { argv: self.terminal.argv_lossy(), size });
        let (offset, pid, version) = (info.offset, std::process::id(), info.version.clone());
        let started = Event::Started { epoch, offset, size: Some(size), pid, version };
        self.history.record(&mut self.journal, started).map_err(files)?;
        self.journal.sync().map_err(files)?;
        let journal = (self.journal, self.history);
        Ok(Terminal::new(info, scrollback, random()?, self.log, journal, pty, emulator))
    }
}

/// Creates a log that continues where the output of earlier runs ended, as far as the other files say.
fn create_log(dir: &SessionDir, terminal: &TerminalMeta, history: &History) -> io::Result<Log> {
    let started = history.summary.started.as_ref().map(|started| started.offset);
    let exited = history.summary.exit.as_ref().map(|(_, end)| *end);
    let screen = archive::read_screen(dir).ok().map(|screen| screen.offset);
    let base = started.max(exited).max(screen).unwrap_or_default();
    Log::create(&dir.log(), terminal.log_size, base)
}
