//! `bowline new`: starts a session and attaches to it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bowline_host::spec::{BodySpec, Spec, TerminalSpec};
use bowline_host::start::OUTER_TERMINAL_VARIABLES;
use bowline_proto::size::Size;

use crate::config::Config;
use crate::host::{Host, Session};
use crate::{args, attach, units};

pub(crate) fn run(verb: args::New, host: &dyn Host, config: &Config) -> anyhow::Result<ExitCode> {
    if !verb.detach {
        attach::require_terminal("use --detach; `bowline screen` then prints its screen")?;
    }
    let (detach, json) = (verb.detach, verb.json);
    let started = host.start(verb, config)?;
    if detach {
        return report(&started, json);
    }
    attach::attach_started(host, &started, config)
}

/// Prints the id of a new session, or its description as JSON.
pub(crate) fn report(started: &Session, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        println!("{}", serde_json::to_string(started)?);
    } else {
        println!("{}", started.info.id);
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the specification of a session on this machine, with the current directory and environment as defaults.
pub(crate) fn spec(verb: args::New, config: &Config) -> anyhow::Result<Spec> {
    let cwd = directory(verb.cwd)?;
    let mut argv = verb.argv;
    if argv.is_empty() {
        argv.extend(config.shell.clone().map(OsString::from));
    }
    let mut env = environment();
    for (name, value) in verb.env {
        env.retain(|(existing, _)| *existing != name.as_str());
        env.push((name.into(), value.into()));
    }
    Ok(Spec {
        name: verb.name,
        cwd,
        detached_ttl: verb.ttl.map_or(0, units::round_up_to_seconds),
        if_exists: verb.if_exists.into(),
        id: None,
        request: None,
        makers: Default::default(),
        open_files: None,
        body: BodySpec::Terminal(TerminalSpec {
            argv,
            env,
            size: verb.size.or_else(terminal_size).unwrap_or_default(),
            log_size: verb.log_size.unwrap_or(config.log_size),
            scrollback: verb.scrollback.unwrap_or(config.scrollback),
        }),
    })
}

/// The environment of this process, without what describes its terminal.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !OUTER_TERMINAL_VARIABLES.iter().any(|outer| name == outer)).collect()
}

/// The directory for a session: the one that is given, or the current one.
pub(crate) fn directory(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    match given {
        Some(dir) => Ok(std::path::absolute(dir)?),
        None => std::env::current_dir().context("cannot use the current directory; choose another with --cwd"),
    }
}

/// The size of the terminal on standard output, if it is one.
pub(crate) fn terminal_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| Size::clamped(size.ws_col, size.ws_row))
}
