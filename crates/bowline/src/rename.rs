//! `bowline rename`: another name for a session.

use std::process::ExitCode;

use crate::args;
use crate::place::Place;

pub(crate) fn run(verb: &args::Rename, place: &dyn Place) -> anyhow::Result<ExitCode> {
    place.rename(&place.find(&verb.session)?, &verb.name)?;
    Ok(ExitCode::SUCCESS)
}
