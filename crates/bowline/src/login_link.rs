//! `bowline login-link`: let one more browser in.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use bowline_client::remote::call::Call;
use bowline_gateway::auth::{self, Auth, CODE_LIFE};
use bowline_gateway::running::Running;
use bowline_host::home::Home;
use bowline_proto::api::{CodeReply, Secret};
use http::Method;
use serde_json::json;

use crate::failure::{Code, Failure, of_admin};
use crate::{place, qr, units};

/// Print a link that logs one browser in. It works once, for ten minutes.
///
/// In a terminal, a QR code of the link follows, for a phone. A link to 127.0.0.1 or localhost has none: no phone reaches it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline login-link                              for the gateway that runs here
  bowline login-link --url https://box.example    as the browser reaches it
  bowline --server https://box.example login-link for the gateway there; BOWLINE_TOKEN needs the scope admin")]
pub(crate) struct LoginLink {
    /// What the browser calls the gateway [default: what the running one says; with --server, that URL]
    #[arg(long)]
    url: Option<String>,
}

pub(crate) fn run(verb: LoginLink, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let url = verb.url.map(checked).transpose()?;
    let link = match server {
        Some(server) => auth::login_link(url.as_deref().unwrap_or(server), &code_there(server)?),
        None => {
            let home = Home::from_env()?;
            let url = url.map_or_else(|| running(&home), Ok)?;
            auth::login_link(&url, &Auth::open(&home)?.new_code()?.code)
        }
    };
    println!("{link}");
    if io::stdout().is_terminal() {
        match qr::draw(&link)? {
            Some(code) => println!("\n{code}"),
            None => eprintln!("Only this machine can open it; for a phone, give the address it uses with --url."),
        }
    }
    eprintln!("It works once, for {}.", units::show_duration(CODE_LIFE));
    Ok(ExitCode::SUCCESS)
}

/// A code of another machine's gateway.
fn code_there(server: &str) -> anyhow::Result<Secret> {
    let made = place::gateway(server)?.call(&Call::new(Method::POST, "/v1/codes").body(&json!({})));
    Ok(made.map_err(of_admin)?.json::<CodeReply>()?.code)
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
