//! The `bowline` binary: one file per verb, and what all of them share.

mod args;
mod attach;
mod completions;
mod config;
mod failure;
mod kill;
mod log;
mod ls;
mod new;
mod prune;
mod rename;
mod restart;
mod screen;
mod send;
mod units;
mod welcome;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Verb};
use crate::config::Config;
use crate::failure::Failure;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(code) => code,
        Err(error) => Failure::from(error).report(),
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    // The session process reads no configuration: whoever started it did.
    if let Some(Verb::SessionProcess { .. }) = args.verb {
        return Ok(bowline_session::process::run());
    }
    let config = Config::load()?;
    match args.verb {
        None => welcome::run(&config),
        Some(Verb::New(verb)) => new::run(verb, &config),
        Some(Verb::Attach(verb)) => attach::run(&verb, &config),
        Some(Verb::Ls(verb)) => ls::run(&verb),
        Some(Verb::Kill(verb)) => kill::run(&verb),
        Some(Verb::Send(verb)) => send::run(&verb),
        Some(Verb::Screen(verb)) => screen::run(&verb),
        Some(Verb::Log(verb)) => log::run(&verb),
        Some(Verb::Rename(verb)) => rename::run(&verb),
        Some(Verb::Restart(verb)) => restart::run(&verb, &config),
        Some(Verb::Prune(verb)) => prune::run(&verb, &config),
        Some(Verb::Completions(verb)) => completions::run(&verb),
        Some(Verb::SessionProcess { .. }) => Ok(ExitCode::SUCCESS),
    }
}
