//! `bowline attach`: a session in this terminal.

use std::io::IsTerminal;
use std::process::ExitCode;

use bowline_session::home::Home;

use crate::args;
use crate::config::Config;
use crate::failure::{Code, Failure};

pub(crate) fn run(_verb: &args::Attach, _config: &Config) -> anyhow::Result<ExitCode> {
    Err(Failure::new(Code::Other, "attaching is not built in yet", "use `bowline screen`").into())
}

/// Attaches to a session that was just started.
pub(crate) fn to(_home: &Home, _session: &str, _config: &Config) -> anyhow::Result<ExitCode> {
    Err(Failure::new(Code::Other, "attaching is not built in yet", "use `bowline screen`").into())
}

/// An error unless a person sits at this terminal.
pub(crate) fn require_terminal(hint: &str) -> anyhow::Result<()> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::new(Code::Usage, "standard input and output must be a terminal", hint).into())
}
