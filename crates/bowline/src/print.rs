//! Prints to standard output and standard error. No other file writes to them.
//!
//! Names, titles, commands, paths and the messages of a server may contain anything, also sequences that would
//! reprogram the terminal or hide text. So everything is escaped here, where it cannot be forgotten. Only the output of
//! a session, which a user asks for as it is, has rules of its own: [`SessionOutput`].

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_client::escape::escape;
pub(crate) use bowline_client::escape::one_line;
use bowline_client::filter::Filter;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::failure::Code;
use crate::new;

/// The exit code when the reader of standard output closes the pipe: that of a program ended by SIGPIPE.
pub(crate) const BROKEN_PIPE: u8 = 128 + 13;

/// Replaces the standard `println!`, which panics when the reader closes the pipe, as in `bowline ls | head -1`.
macro_rules! println {
    ($($arg:tt)*) => { $crate::print::print_line(format_args!($($arg)*)) };
}

/// Replaces the standard `eprintln!`, which panics when nothing reads standard error, and escapes nothing.
macro_rules! eprintln {
    ($($arg:tt)*) => { $crate::print::print_error(format_args!($($arg)*)) };
}

/// Prints text and a newline to standard output. Exits if that fails.
pub(crate) fn print_line(text: fmt::Arguments<'_>) {
    write_out(&format!("{}\n", escape(text, &['\n', '\t'])));
}

/// Prints text to standard output, without a newline. Exits if that fails.
pub(crate) fn print_text(text: &str) {
    write_out(&escape(text, &['\n', '\t']));
}

fn write_out(text: &str) {
    let mut stdout = stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(BROKEN_PIPE.into()),
        Err(error) => {
            print_error(format_args!("bowline: cannot write to standard output: {error}"));
            std::process::exit(Code::Other as i32);
        }
    }
}

/// Prints text and a newline to standard error, if that is open.
pub(crate) fn print_error(text: fmt::Arguments<'_>) {
    let _ = writeln!(stderr(), "{}", escape(text, &['\n', '\t']));
}

/// Shows text in place of the last such text, or nothing for an empty one, if standard error is a terminal.
pub(crate) fn print_progress(text: &str) {
    if stderr().is_terminal() {
        let _ = write!(stderr(), "\r{}\x1b[K", one_line(text));
    }
}

/// Prints a line of a conversation to standard output. The renderer has escaped what the agent wrote, and added colours.
pub(crate) fn print_rendered(line: &str) {
    write_out(&format!("{line}\n"));
}

/// Whether standard output shows colours. `NO_COLOR` turns them off.
pub(crate) fn has_color() -> bool {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal() && !is_off && !is_dumb
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// Prints the output of a session to standard output. A file or a pipe gets the exact bytes. A terminal gets them as in an
/// attach: without what would make it answer or take it over. What the output changed on the terminal is undone when this
/// is dropped, and before a signal ends the process.
pub(crate) struct SessionOutput(Option<Arc<Mutex<TerminalOutput>>>);

impl SessionOutput {
    pub(crate) fn new() -> io::Result<SessionOutput> {
        let terminal = is_terminal().then(Arc::<Mutex<TerminalOutput>>::default);
        if let Some(terminal) = &terminal {
            finish_on_signal(Arc::clone(terminal))?;
        }
        Ok(SessionOutput(terminal))
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(terminal) = &self.0 else {
            let mut stdout = stdout();
            stdout.write_all(bytes)?;
            return stdout.flush();
        };
        lock(terminal).write(|filter, out| filter.filter(bytes, out))
    }

    /// The next bytes do not continue the last ones.
    pub(crate) fn skip(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |terminal| lock(terminal).write(Filter::reset))
    }
}

impl Drop for SessionOutput {
    fn drop(&mut self) {
        if let Some(terminal) = &self.0 {
            lock(terminal).finish();
        }
    }
}

/// The filter in front of a terminal.
#[derive(Default)]
struct TerminalOutput {
    filter: Filter,
    filtered: Vec<u8>,
}

impl TerminalOutput {
    fn write(&mut self, filter: impl FnOnce(&mut Filter, &mut Vec<u8>)) -> io::Result<()> {
        self.filtered.clear();
        filter(&mut self.filter, &mut self.filtered);
        let mut stdout = stdout();
        stdout.write_all(&self.filtered)?;
        stdout.flush()
    }

    /// Undoes what the output changed, unless the terminal is gone.
    fn finish(&mut self) {
        let cols = new::terminal_size().unwrap_or_default().cols();
        let _ = self.write(|filter, out| filter.finish(cols, out));
    }
}

fn lock(terminal: &Mutex<TerminalOutput>) -> MutexGuard<'_, TerminalOutput> {
    terminal.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process at the first signal, after the terminal is restored; at the second one at once, even if the terminal
/// accepts nothing.
fn finish_on_signal(terminal: Arc<Mutex<TerminalOutput>>) -> io::Result<()> {
    let received = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&received))?;
        flag::register(signal, Arc::clone(&received))?;
    }
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            // Keeps the lock, so that nothing is written after this.
            let mut terminal = lock(&terminal);
            terminal.finish();
            std::process::exit(128 + signal);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait)?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the only place that writes to it")]
fn stdout() -> io::StdoutLock<'static> {
    io::stdout().lock()
}

#[expect(clippy::disallowed_methods, reason = "the only place that writes to it, with the log of `serve`")]
pub(crate) fn stderr() -> io::Stderr {
    io::stderr()
}
