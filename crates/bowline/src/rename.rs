//! `bowline rename`: another name for a session.

use std::process::ExitCode;

use crate::args;
use crate::place::Place;

pub(crate) fn run(verb: &args::Rename, place: &dyn Place) -> anyhow::Result<ExitCode> {
    let session = place.find(&verb.session)?;
    place.rename(&session, &verb.name)?;
    println!("renamed {} to {}", session.full_label(), verb.name);
    Ok(ExitCode::SUCCESS)
}
