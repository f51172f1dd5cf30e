//! `bowline screen`: prints the screen of a session.

use std::process::ExitCode;

use bowline_proto::control::ScreenFormat;

use crate::args;
use crate::attach;
use crate::host::Host;
use crate::print::SessionOutput;

pub(crate) fn run(verb: &args::Screen, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let format = verb.format.into();
    let session = host.find(&verb.session)?;
    attach::refuse_agent_session(&session)?;
    let text = host.screen(&session, format, verb.scrollback)?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    match format {
        ScreenFormat::Ansi => SessionOutput::new()?.write(format!("{text}\n").as_bytes())?,
        ScreenFormat::Text | ScreenFormat::Json => println!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}
