//! The `bowline` binary. Each verb has its own module; `host` abstracts over local and remote sessions.

#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod print;

mod agent;
mod agent_command;
mod agents;
mod answer;
mod approvals;
mod args;
mod attach;
mod completions;
mod config;
mod conversation;
mod conversation_view;
mod doctor;
mod failure;
mod host;
mod journal;
mod keys;
mod kill;
mod log;
mod login_link;
mod ls;
mod new;
mod prompts;
mod prune;
mod qr;
mod rename;
mod restart;
mod run_text;
mod screen;
mod send;
mod serve;
mod service;
mod stop;
mod table;
mod token;
mod units;

use std::io;
use std::process::ExitCode;

use clap::error::ContextValue;
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};

use crate::args::{Args, LOCAL_VERBS, Verb};
use crate::config::Config;
use crate::failure::Failure;
use crate::print::one_line;

fn main() -> ExitCode {
    // Started by `new` and `restart`, with the start request on a pipe; the id in the arguments is only for `ps`. This skips clap,
    // because its memory would stay allocated in every session process.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "session-process") {
        return bowline_session::process::run();
    }
    let parsed = Args::parser().try_get_matches().and_then(|matches| Ok((Args::from_arg_matches(&matches)?, matches)));
    match parsed {
        Ok((args, matches)) => refuse_server(&matches).and_then(|()| run(args)).unwrap_or_else(fail),
        Err(error) => explain_usage(error),
    }
}

/// Prints what clap says: the help, or an error that quotes the arguments.
fn explain_usage(mut error: clap::Error) -> ExitCode {
    // Rendering would remove escape sequences together with clap's own colours, and keep line breaks.
    let quoted: Vec<_> = error.context().map(|(kind, value)| (kind, value.clone())).collect();
    for (kind, value) in quoted {
        if let ContextValue::String(text) = value {
            error.insert(kind, ContextValue::String(one_line(text)));
        }
    }
    if error.use_stderr() {
        eprintln!("{}", error.render().to_string().trim_end());
    } else {
        println!("{}", error.render().to_string().trim_end());
    }
    ExitCode::from(error.exit_code() as u8)
}

/// Refuses `--server` for a verb that works on this machine only. Such verbs ignore `BOWLINE_SERVER`, except for `prune`,
/// which must not remove files of another machine than the user expects.
fn refuse_server(matches: &ArgMatches) -> anyhow::Result<()> {
    let verb = matches.subcommand_name().unwrap_or("serve");
    let is_refused = match matches.value_source("server") {
        Some(ValueSource::CommandLine) => LOCAL_VERBS.contains(&verb),
        Some(ValueSource::EnvVariable) => {
            verb == "prune" && matches.get_one::<String>("server").is_some_and(|url| !url.is_empty())
        }
        _ => false,
    };
    if is_refused { Err(Failure::local_only(verb).into()) } else { Ok(()) }
}

/// Reports the error and returns its exit code. A closed output pipe is not reported.
fn fail(error: anyhow::Error) -> ExitCode {
    // Socket errors are wrapped in other types, so a bare `io::Error` is from standard output.
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(print::BROKEN_PIPE),
        _ => Failure::from(error).report(),
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let server = args.server.as_deref().filter(|url| !url.is_empty());
    let host = || host::select(server);
    match args.verb {
        None => serve::start(&Config::load()?),
        Some(Verb::New(verb)) => new::run(verb, &*host()?, &Config::load()?),
        Some(Verb::Attach(verb)) => attach::run(&verb, &*host()?, &Config::load_or_default()),
        Some(Verb::Agent(verb)) => agent::run(&verb, &*host()?, &Config::load()?),
        Some(Verb::Agents(verb)) => agents::run(&verb, &*host()?),
        Some(Verb::Approvals(verb)) => approvals::run(&verb, &*host()?),
        Some(Verb::Approve(verb)) => answer::approve(&verb, &*host()?),
        Some(Verb::Deny(verb)) => answer::deny(&verb, &*host()?),
        Some(Verb::Stop(verb)) => stop::run(&verb, &*host()?),
        Some(Verb::Ls(verb)) => ls::run(&verb, &*host()?),
        Some(Verb::Kill(verb)) => kill::run(&verb, &*host()?),
        Some(Verb::Send(verb)) => send::run(&verb, &*host()?),
        Some(Verb::Screen(verb)) => screen::run(&verb, &*host()?),
        Some(Verb::Log(verb)) => log::run(&verb, &*host()?, &Config::load_or_default()),
        Some(Verb::Rename(verb)) => rename::run(&verb, &*host()?),
        Some(Verb::Restart(verb)) => restart::run(&verb, &*host()?, &Config::load_or_default()),
        // Pruning cannot be undone, so it must not fall back to default limits.
        Some(Verb::Prune(verb)) => prune::run(&verb, &*host()?, &Config::load()?),
        Some(Verb::Serve(verb)) => serve::run(&verb),
        Some(Verb::Token(verb)) => token::run(verb, server),
        Some(Verb::LoginLink(verb)) => login_link::run(verb, server),
        Some(Verb::Config(verb)) => config::show::run(verb),
        Some(Verb::Service(verb)) => service::run(&verb),
        Some(Verb::Doctor(verb)) => doctor::run(&verb, server),
        Some(Verb::Completions(verb)) => completions::run(&verb),
    }
}
