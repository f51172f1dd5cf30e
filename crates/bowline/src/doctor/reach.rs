//! Checks a URL as a browser reaches it: name, TLS, WebSocket, and whether proxies close idle connections.

use bowline_proto::problem;
use std::time::{Duration, Instant};

use bowline_client::remote::api::{ApiError, ApiRequest, ApiResponse};
use bowline_client::remote::{Address, Gateway};
use bowline_gateway::running::RunningGateway;
use bowline_host::home::Home;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::loopback::Token;
use super::probe::{Attachment, TestSession};
use super::report::Report;
use crate::failure::{Failure, GET_TOKEN, TRUST_CERTIFICATE};
use crate::print::print_progress;

/// How long to keep an idle connection open: a little longer than the 60 s after which many proxies close one.
const IDLE: Duration = Duration::from_secs(70);
/// How far the clocks may be apart. Login links expire after ten minutes.
const MAX_SKEW: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(15);

/// Checks the gateway at `url`. If it is the one that runs from `home`, it needs no token in `BOWLINE_TOKEN`.
pub(super) fn check(report: &mut Report, home: Option<&Home>, url: &str, quick: bool) {
    let address: Address = match url.parse() {
        Ok(address) => address,
        Err(error) => {
            return report.fail("url", error, "use the URL in the browser's address bar, without the part from # on");
        }
    };
    if address.is_unencrypted() {
        let message = format!("{address} is not encrypted; others on the network can read everything you type");
        report.warn("encryption", message, "use ssh -L, Tailscale, Caddy or nginx; docs/REACHING.md has recipes");
    }
    if !check_health(report, &address) {
        return;
    }
    let is_own = |home: &&Home| {
        RunningGateway::find(home).is_some_and(|running| running.url.trim_end_matches('/') == address.to_string())
    };
    let env_token = std::env::var("BOWLINE_TOKEN").ok().filter(|token| !token.is_empty());
    // A token of this machine is sent only to the gateway of this machine.
    let token = match (env_token, home.filter(is_own)) {
        (Some(token), _) => Ok((token, None)),
        (None, Some(home)) => Token::new(home).map(|token| (token.reveal().to_owned(), Some(token))),
        (None, None) => {
            // With --server, even the gateway of this machine needs a token.
            let message = match home {
                Some(_) => {
                    format!("not tried: {address} is not the gateway of this machine, and BOWLINE_TOKEN is not set")
                }
                None => "not tried: BOWLINE_TOKEN is not set".to_owned(),
            };
            return report.warn("WebSocket", message, GET_TOKEN);
        }
    };
    let started = token.and_then(|(token, guard)| {
        let gateway = Gateway::new(address.clone(), token.trim())?;
        Ok((guard, TestSession::start(&gateway)?))
    });
    let (_token, session) = match started {
        Ok(started) => started,
        Err(error) => {
            let failure = Failure::from(error);
            let remedy = failure.hint().unwrap_or("try again; the log of `bowline serve` says more");
            return report.fail("WebSocket", format_args!("not tried: {}", failure.message()), remedy);
        }
    };
    match session.attach() {
        Err(cause) => {
            let remedy = "the proxy must forward the headers `Upgrade` and `Connection` (see docs/REACHING.md)";
            report.fail("WebSocket", cause, remedy);
        }
        Ok(attachment) => {
            report.ok("WebSocket", "works");
            if !quick {
                check_idle(report, attachment);
            }
        }
    }
}

/// Checks that a gateway answers at the address, and compares its clock. Returns whether it answers.
fn check_health(report: &mut Report, address: &Address) -> bool {
    const NAME: &str = "url";
    // `/healthz` needs no valid token.
    let gateway = Gateway::new(address.clone(), "none").map_err(anyhow::Error::from);
    match gateway.and_then(|gateway| Ok(gateway.send(&ApiRequest::get("/healthz").within(TIMEOUT))?)) {
        Ok(answer) => {
            report.ok(NAME, format_args!("{address} answers"));
            check_skew(report, &answer);
            return true;
        }
        Err(error) => {
            let remedy = match error.downcast_ref::<ApiError>() {
                Some(ApiError::Refused { code: problem::Code::BadHost, .. }) => {
                    "start the gateway with --public-url, or let the proxy forward the Host header and add it to `hosts`"
                }
                Some(ApiError::Untrusted { .. }) => TRUST_CERTIFICATE,
                Some(ApiError::NotBowline { status: 502..=504, .. }) => {
                    "the proxy cannot reach the gateway: check that the gateway runs and that the proxy connects to its \
                     `listen` address"
                }
                Some(ApiError::NotBowline { .. }) => {
                    "another program answers: check the host, port and path of the URL"
                }
                _ => "check the name, the port, the firewall, and that `bowline serve` is running there",
            };
            report.fail(NAME, format_args!("{error:#}"), remedy);
        }
    }
    false
}

/// Compares the clock of the gateway with that of this machine.
fn check_skew(report: &mut Report, answer: &ApiResponse) {
    let Some(remote) = answer.header("Date").and_then(|date| OffsetDateTime::parse(date, &Rfc2822).ok()) else {
        return report.warn("clocks", "the response has no Date header", "let the proxy forward the Date header");
    };
    let skew = (OffsetDateTime::now_utc() - remote).abs();
    if skew.unsigned_abs() < MAX_SKEW {
        return report.ok("clocks", "this machine and the server agree");
    }
    let message = format!("the clocks of the gateway and this machine differ by {} seconds", skew.whole_seconds());
    report.warn("clocks", message, "set both clocks; otherwise links and tokens expire too early or too late");
}

/// Checks that an idle connection stays open. Both ends send a message every 20 seconds, so a proxy whose idle timeout is
/// a little longer is fine.
fn check_idle(report: &mut Report, mut attachment: Attachment) {
    let start = Instant::now();
    while start.elapsed() < IDLE {
        print_progress(&format!("idle for {} of {} s ", start.elapsed().as_secs(), IDLE.as_secs()));
        if let Err(cause) = attachment.step(Duration::from_secs(1)) {
            let message = format!("{cause}, after {} idle seconds", start.elapsed().as_secs());
            let remedy = "raise the proxy's timeout for idle connections above 60 s (nginx: proxy_read_timeout)";
            return report.fail("quiet connection", message, remedy);
        }
    }
    print_progress("");
    report.ok("quiet connection", format_args!("still open after {} s", IDLE.as_secs()));
}
