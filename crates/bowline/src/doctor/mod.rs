//! `bowline doctor`: checks the installation, and says how to fix what is wrong.
//!
//! `files` and `machine` check this machine, `loopback` attaches through a temporary gateway, `reach` connects to a URL as
//! a browser does. `probe` is the viewer that both use; `report` collects the results.

mod files;
mod loopback;
mod machine;
mod probe;
mod reach;
mod report;

use std::process::ExitCode;

use bowline_host::home::Home;
use bowline_host::launch::Launcher;

use self::report::Report;
use crate::config::Config;
use crate::failure::Failure;
use crate::serve::forward;

/// Check Bowline on this machine, and the connection to it, for problems.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline doctor                               check this machine
  bowline doctor --url https://box.example     also check that URL, as a browser reaches it
  bowline --server https://box.example doctor  check only the connection to that gateway
  bowline doctor --json | jq '.checks[] | select(.grade != \"ok\")'

The exit code is 1 if a check fails. With --url or --server, doctor stays connected for 70 seconds to see whether a proxy closes \
idle connections; --quick skips that. If the URL does not belong to the gateway of this machine, it needs a token in \
BOWLINE_TOKEN.")]
pub(crate) struct Doctor {
    /// URL at which browsers reach the gateway [default with --server: that URL]
    #[arg(long)]
    url: Option<String>,
    /// Skip the check for proxies that close idle connections
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(verb: &Doctor, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(verb.json);
    match server {
        // Only the connection to another machine can be checked from here.
        Some(server) => reach::check(&mut report, None, verb.url.as_deref().unwrap_or(server), verb.quick),
        None => check_local(&mut report, verb),
    }
    Ok(report.finish())
}

fn check_local(report: &mut Report, verb: &Doctor) {
    let config = Config::load().map_err(Failure::from);
    match &config {
        Ok(_) => report.ok("configuration", "valid"),
        Err(error) => {
            let remedy = error.hint().unwrap_or("correct it; `bowline config path` prints its path");
            report.fail("configuration", error.message(), remedy);
        }
    }
    let config = config.unwrap_or_default();
    match config.settings(Launcher::this_program()) {
        Ok(settings) => {
            if let Some(risk) = forward::risk(&settings) {
                report.warn("forward auth", risk, forward::REMEDY);
            }
        }
        Err(error) => report.fail("forward auth", error.message(), error.hint().unwrap_or_default()),
    }
    match Home::from_env() {
        Err(error) => {
            report.fail("state directory", &error, "set HOME, or BOWLINE_STATE_DIR to a directory of your own")
        }
        Ok(home) => {
            let usable = files::check(report, &home);
            machine::check(report, &config.gateway.limits);
            machine::check_running(report, &home);
            match usable {
                true => loopback::check(report, &home, &config),
                false => report.fail("attach", "not tried: no usable state directory", "fix the state directory first"),
            }
            if let Some(url) = &verb.url {
                reach::check(report, Some(&home), url, verb.quick);
            }
        }
    }
}
