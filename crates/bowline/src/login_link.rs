//! `bowline login-link`: prints a link that logs in a browser.

use std::process::ExitCode;

use bowline_client::remote::api::ApiRequest;
use bowline_gateway::auth::{self, Auth, CODE_TTL, Maker};
use bowline_gateway::running::RunningGateway;
use bowline_host::home::Home;
use bowline_host::meta::makers_of_this_session;
use bowline_proto::api::{CodeReply, Secret};
use http::Method;
use serde_json::json;

use crate::failure::{Code, Failure, explain_admin_call};
use crate::{host, print, qr};

/// Print a link that logs in one browser; it works once and expires in ten minutes.
///
/// In a terminal, also prints the link as a QR code for a phone, unless it points to 127.0.0.1 or localhost, which a phone
/// cannot reach.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bowline login-link                               for the gateway of this machine
  bowline login-link --url https://box.example     with the URL at which the browser reaches it
  bowline --server https://box.example login-link  for another gateway; needs an admin token")]
pub(crate) struct LoginLink {
    /// URL at which the browser reaches the gateway [default: that of the running gateway, or --server]
    #[arg(long)]
    url: Option<String>,
}

pub(crate) fn run(verb: LoginLink, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let url = verb.url.map(check_url).transpose()?;
    let link = match server {
        Some(server) => auth::login_link(url.as_deref().unwrap_or(server), &request_code(server)?),
        None => {
            let home = Home::from_env()?;
            let url = url.map_or_else(|| running_url(&home), Ok)?;
            let maker = Maker::CommandLine(makers_of_this_session(&home));
            auth::login_link(&url, &Auth::open(&home)?.new_code_by(&maker)?.code)
        }
    };
    println!("{link}");
    if print::is_terminal() {
        match qr::draw(&link)? {
            Some(code) => println!("\n{code}"),
            None => {
                eprintln!("Only this machine can open the link. For a phone, use --url with a URL that it can reach.")
            }
        }
    }
    eprintln!("{}", lifetime_note());
    Ok(ExitCode::SUCCESS)
}

/// Says how often and how long a login link works.
pub(crate) fn lifetime_note() -> String {
    format!("The link works once and expires in {} minutes.", CODE_TTL.as_secs() / 60)
}

/// Requests a login code from the gateway of another machine.
fn request_code(server: &str) -> anyhow::Result<Secret> {
    let response = host::gateway_client(server)?.send(&ApiRequest::new(Method::POST, "/v1/codes").body(&json!({})));
    Ok(response.map_err(explain_admin_call)?.json::<CodeReply>()?.code)
}

/// The URL of the gateway that runs on this machine.
fn running_url(home: &Home) -> Result<String, Failure> {
    RunningGateway::find(home).map(|running| running.url).ok_or_else(|| {
        let hint = "start one with `bowline serve`, or give its URL with --url";
        Failure::new(Code::Other, "no gateway is running on this machine", hint)
    })
}

fn check_url(url: String) -> Result<String, Failure> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && !url.contains(['?', '#', ' '])) {
        return Ok(url);
    }
    let hint = "use http://HOST:PORT or https://HOST, optionally with a path";
    Err(Failure::new(Code::Usage, format!("{url:?} is not the URL of a gateway"), hint))
}
