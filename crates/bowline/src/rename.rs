//! `bowline rename`: renames a session.

use std::process::ExitCode;

use crate::args;
use crate::host::Host;

pub(crate) fn run(verb: &args::Rename, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let session = host.find(&verb.session)?;
    host.rename(&session, &verb.name)?;
    println!("renamed {} to {}", session.full_label(), verb.name);
    Ok(ExitCode::SUCCESS)
}
