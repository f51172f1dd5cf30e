//! The `bowline` binary: one file per verb, and what all of them share.

/// Every verb's `println!`: the one of the standard library panics when nobody reads any more, as after `| head -1`.
macro_rules! println {
    ($($words:tt)*) => { $crate::print_line(format_args!($($words)*)) };
}

mod args;
mod attach;
mod completions;
mod config;
mod doctor;
mod failure;
mod keys;
mod kill;
mod log;
mod login_link;
mod ls;
mod new;
mod place;
mod prune;
mod qr;
mod rename;
mod restart;
mod screen;
mod send;
mod serve;
mod service;
mod table;
mod token;
mod units;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};

use crate::args::{Args, LOCAL, Verb};
use crate::config::Config;
use crate::failure::{Code, Failure};

/// The exit code when nobody reads the output any more: what a shell says of a program that SIGPIPE ended.
const UNREAD: u8 = 128 + 13;

fn main() -> ExitCode {
    // Started by `new` and `restart`, which tell it what to run over a pipe; the id that follows is for `ps`. It does not
    // parse a command line that people type: the memory of that would stay with every session.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "session-process") {
        return bowline_session::process::run();
    }
    let matches = Args::parser().get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    refuse_server(&matches).and_then(|()| run(args)).unwrap_or_else(fail)
}

/// A flag that cannot be followed is a mistake; the environment variable speaks only of verbs that can be remote.
fn refuse_server(matches: &ArgMatches) -> anyhow::Result<()> {
    let verb = matches.subcommand_name().unwrap_or("serve");
    if matches.value_source("server") != Some(ValueSource::CommandLine) || !LOCAL.contains(&verb) {
        return Ok(());
    }
    let hint = "run it on that machine, for example over ssh, or leave --server out";
    Err(Failure::new(Code::Usage, format!("`bowline {verb}` cannot be done from another machine"), hint).into())
}

/// Says what went wrong. That the reader of the output left is no news to whoever made it leave.
fn fail(error: anyhow::Error) -> ExitCode {
    // Sockets have errors of their own types; one that comes bare is from standard output.
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(UNREAD),
        _ => Failure::from(error).report(),
    }
}

/// Prints a line, or ends the program if that cannot be done.
fn print_line(line: fmt::Arguments<'_>) {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(UNREAD.into()),
        Err(error) => {
            eprintln!("bowline: cannot print: {error}");
            std::process::exit(Code::Other as i32);
        }
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let server = args.server.as_deref().filter(|url| !url.is_empty());
    let place = || place::choose(server);
    match args.verb {
        None => serve::start(&Config::load()?),
        Some(Verb::New(verb)) => new::run(verb, &*place()?, &Config::load()?),
        Some(Verb::Attach(verb)) => attach::run(&verb, &*place()?, &Config::load_or_default()),
        Some(Verb::Ls(verb)) => ls::run(&verb, &*place()?),
        Some(Verb::Kill(verb)) => kill::run(&verb, &*place()?),
        Some(Verb::Send(verb)) => send::run(&verb, &*place()?),
        Some(Verb::Screen(verb)) => screen::run(&verb, &*place()?),
        Some(Verb::Log(verb)) => log::run(&verb, &*place()?, &Config::load_or_default()),
        Some(Verb::Rename(verb)) => rename::run(&verb, &*place()?),
        Some(Verb::Restart(verb)) => restart::run(&verb, &*place()?, &Config::load_or_default()),
        // What is removed is gone, so limits that nobody meant must not decide.
        Some(Verb::Prune(verb)) => prune::run(&verb, &*place()?, &Config::load()?),
        Some(Verb::Serve(verb)) => serve::run(&verb),
        Some(Verb::Token(verb)) => token::run(verb, server),
        Some(Verb::LoginLink(verb)) => login_link::run(verb, server),
        Some(Verb::Config(verb)) => config::show::run(verb),
        Some(Verb::Service(verb)) => service::run(&verb),
        Some(Verb::Doctor(verb)) => doctor::run(&verb, server),
        Some(Verb::Completions(verb)) => completions::run(&verb),
    }
}
