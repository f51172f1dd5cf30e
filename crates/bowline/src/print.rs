//! Prints to standard output and standard error. No other file writes to them.
//!
//! Names, titles, commands, paths and the messages of a server may contain anything, also sequences that would
//! reprogram the terminal or hide text. So everything is escaped here, where it cannot be forgotten. Only the output of
//! a session, which a user asks for as it is, has rules of its own: [`SessionOutput`].

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    let mut stdout = stdout();
    match writeln!(stdout, "{}", escape(text, &['\n', '\t'])).and_then(|()| stdout.flush()) {
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

/// Escapes text that is part of a line, so that it cannot end that line and pretend to be another one.
pub(crate) fn one_line(text: impl fmt::Display) -> String {
    escape(text, &[])
}

/// Escapes the characters that a terminal acts on or that change the direction of text, except for those in `keep`. The
/// form `\u001b` is that of JSON, so escaping a JSON text does not change its meaning.
fn escape(text: impl fmt::Display, keep: &[char]) -> String {
    let text = text.to_string();
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        let hostile = c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if hostile && !keep.contains(&c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_terminal_acts_on_is_shown_escaped() {
        let hostile = "a\x1b[31m\u{9b}2J\x07\r\x7fb\u{202e}\u{2066}é✓🦀\\";
        let shown = r"a\u001b[31m\u009b2J\u0007\u000d\u007fb\u202e\u2066é✓🦀\";
        assert_eq!(escape(hostile, &['\n', '\t']), shown);
        assert_eq!(escape("two\nlines\t.", &['\n', '\t']), "two\nlines\t.");
        assert_eq!(one_line("two\nlines\t."), r"two\u000alines\u0009.");
    }

    #[test]
    fn escaping_does_not_change_the_meaning_of_json() {
        let value = serde_json::json!({ "title": "\\\u{9b}31m\\\\\x1b\x7f\u{202e}\n" });
        let printed = escape(&value, &['\n', '\t']);
        assert!(!printed.contains(|c: char| c.is_control() || c == '\u{202e}'), "{printed:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
    }
}
