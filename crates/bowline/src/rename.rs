//! `bowline rename`: another name for a session.

use std::process::ExitCode;

use bowline_session::home::Home;
use bowline_session::registry;
use bowline_session::rename;

use crate::args;

pub(crate) fn run(verb: &args::Rename) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let entry = registry::find(&home, &verb.session)?;
    rename::rename(&home, &entry, &verb.name)?;
    Ok(ExitCode::SUCCESS)
}
