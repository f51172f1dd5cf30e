//! `bowline screen`: prints the screen of a session.

use std::io::Write;
use std::process::ExitCode;

use crate::args;
use crate::host::Host;

pub(crate) fn run(verb: &args::Screen, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let mut text = host.screen(&host.find(&verb.session)?, verb.format.into(), verb.scrollback)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
