//! `bowline doctor`: looks for what is wrong, and says what to do about it.
//!
//! `files` and `machine` look at this machine, `loopback` attaches through a gateway of its own, `reach` goes the way that a
//! browser goes. `probe` is the viewer of both; `report` is what was found.

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
use crate::serve::forward;

/// Look for what is wrong with Bowline on this machine, or on the way to it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline doctor
  bowline doctor --url https://box.example     also the way that a browser goes, with its proxies
  bowline --server https://box.example doctor  only the way to that gateway; BOWLINE_TOKEN opens it
  bowline doctor --json | jq '.checks[] | select(.grade != \"ok\")'

The exit code is 1 if something is broken. With --url or --server, it stays connected for 70 seconds to see whether a proxy cuts quiet \
connections; --quick leaves that out. If the URL is not that of this machine's gateway, BOWLINE_TOKEN opens it.")]
pub(crate) struct Doctor {
    /// What browsers call the gateway [default with --server: that URL]
    #[arg(long)]
    url: Option<String>,
    /// Do not wait for a proxy to lose its patience
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(verb: &Doctor, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(verb.json);
    match server {
        // Of another machine, the way to it is all that can be seen from here.
        Some(server) => reach::check(&mut report, None, verb.url.as_deref().unwrap_or(server), verb.quick),
        None => check_here(&mut report, verb),
    }
    Ok(report.finish())
}

fn check_here(report: &mut Report, verb: &Doctor) {
    let config = Config::load();
    match &config {
        Ok(_) => report.ok("configuration", "can be read"),
        Err(error) => report.fail("configuration", error, "correct it; `bowline config path` says where it is"),
    }
    let config = config.unwrap_or_default();
    let settings = config.settings(Launcher::this_program());
    if let Some(risk) = forward::risk(&settings) {
        report.warn("forward auth", risk, forward::REMEDY);
    }
    match Home::from_env() {
        Err(error) => {
            report.fail("state directory", &error, "set HOME, or BOWLINE_STATE_DIR to a directory of your own")
        }
        Ok(home) => {
            let usable = files::check(report, &home);
            machine::check(report, &settings.limits);
            machine::check_running(report, &home);
            match usable {
                true => loopback::check(report, &home, &config),
                false => report.fail("attach", "not tried: sessions have no place", "see to the state directory first"),
            }
            if let Some(url) = &verb.url {
                reach::check(report, Some(&home), url, verb.quick);
            }
        }
    }
}
