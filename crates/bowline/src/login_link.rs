//! `bowline login-link`: let one more browser in.

use std::process::ExitCode;

use bowline_gateway::auth::{self, Auth, CODE_LIFE};
use bowline_gateway::running::Running;
use bowline_session::home::Home;

use crate::failure::{Code, Failure};
use crate::units;

/// Print a link that logs one browser in. It works once, for ten minutes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline login-link                              for the gateway that runs here
  bowline login-link --url https://box.example    as the browser reaches it")]
pub(crate) struct LoginLink {
    /// What the browser calls the gateway [default: what the running one says]
    #[arg(long)]
    url: Option<String>,
}

pub(crate) fn run(verb: LoginLink) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let url = match verb.url {
        Some(url) => checked(url)?,
        None => running(&home)?,
    };
    let code = Auth::open(&home)?.new_code()?;
    println!("{}", auth::login_link(&url, &code));
    eprintln!("It works once, for {}.", units::show_duration(CODE_LIFE));
    Ok(ExitCode::SUCCESS)
}

fn running(home: &Home) -> Result<String, Failure> {
    Running::find(home).map(|running| running.url).ok_or_else(|| {
        let hint = "start one with `bowline serve`, or say what the browser calls it with --url";
        Failure::new(Code::Other, "no gateway runs here", hint)
    })
}

fn checked(url: String) -> Result<String, Failure> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && !url.contains(['?', '#', ' '])) {
        return Ok(url);
    }
    let hint = "write it as http://HOST:PORT or https://HOST, with a path if there is one";
    Err(Failure::new(Code::Usage, format!("{url:?} is no address of a gateway"), hint))
}
