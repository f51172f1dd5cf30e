//! `bowline screen`: what a session shows, or showed last.

use std::io::Write;
use std::process::ExitCode;

use crate::args;
use crate::place::Place;

pub(crate) fn run(verb: &args::Screen, place: &dyn Place) -> anyhow::Result<ExitCode> {
    let mut text = place.screen(&place.find(&verb.session)?, verb.format.into(), verb.scrollback)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
