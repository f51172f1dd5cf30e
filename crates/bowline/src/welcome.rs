//! `bowline` alone: says what it is, and opens a session.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Args, Verb};
use crate::config::Config;
use crate::new;
use crate::place::Place;

const WELCOME: &str = "\
Bowline keeps this terminal alive when you leave it.
  Ctrl-\\ then d   detach; the program goes on
  bowline ls      see what runs
  bowline attach  come back to exactly where you were
  bowline --help  everything else
";

pub(crate) fn run(place: impl FnOnce() -> anyhow::Result<Box<dyn Place>>, config: &Config) -> anyhow::Result<ExitCode> {
    // In a session already, another one around it would only be in the way.
    let inside = std::env::var_os("BOWLINE_SESSION").is_some();
    if inside || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        Args::command().print_help()?;
        return Ok(ExitCode::SUCCESS);
    }
    eprint!("{WELCOME}");
    let Some(Verb::New(verb)) = Args::parse_from(["bowline", "new"]).verb else { return Ok(ExitCode::SUCCESS) };
    new::run(verb, &*place()?, config)
}
