//! The way that a browser goes: name, TLS, proxies, and how long those let a quiet connection be.

use bowline_proto::problem;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use bowline_client::remote::call::{Answer, Call, CallError};
use bowline_client::remote::{Address, Gateway};
use bowline_gateway::running::Running;
use bowline_host::home::Home;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::loopback::Token;
use super::probe::{Attachment, Trial};
use super::report::Report;
use crate::failure::TRUST;

/// How long a quiet connection is watched: some more than the usual minute of a proxy.
const QUIET: Duration = Duration::from_secs(70);
/// How far the clocks may be apart: links live for ten minutes.
const SKEW: Duration = Duration::from_secs(60);
const WITHIN: Duration = Duration::from_secs(15);

/// `home` has the gateway that may be meant, where it is this machine's.
pub(super) fn check(report: &mut Report, home: Option<&Home>, url: &str, quick: bool) {
    let address: Address = match url.parse() {
        Ok(address) => address,
        Err(error) => {
            return report.fail("url", error, "give what the browser's address bar shows, without what follows #");
        }
    };
    if address.is_clear() {
        let words = format!("{address} is not encrypted: whoever is on the way reads what you type");
        report.warn("encryption", words, "see \"Reaching it\" in the README: ssh -L, Tailscale, Caddy or nginx");
    }
    if !answers(report, &address) {
        return;
    }
    let is_own = |home: &&Home| {
        Running::find(home).is_some_and(|running| running.url.trim_end_matches('/') == address.to_string())
    };
    let given = std::env::var("BOWLINE_TOKEN").ok().filter(|token| !token.is_empty());
    // A token of this machine goes nowhere but to its own gateway.
    let token = match (given, home.filter(is_own)) {
        (Some(token), _) => Ok((token, None)),
        (None, Some(home)) => Token::new(home).map(|token| (token.reveal().to_owned(), Some(token))),
        (None, None) => {
            let remedy =
                "make a token there (`bowline token create --name doctor --scope write`) and put it into BOWLINE_TOKEN";
            return report.warn(
                "WebSocket",
                format_args!("not tried: {address} is not the gateway that runs here"),
                remedy,
            );
        }
    };
    let attached = token.and_then(|(token, kept)| {
        let gateway = Gateway::new(address.clone(), token.trim())?;
        let trial = Trial::start(&gateway).map_err(anyhow::Error::msg)?;
        let attachment = trial.attach().map_err(anyhow::Error::msg)?;
        Ok((kept, trial, attachment))
    });
    match attached {
        Err(error) => {
            let remedy = "the proxy must pass `Upgrade` and `Connection` on (\"Reaching it\" in the README), and the token allow \
                          writing";
            report.fail("WebSocket", format_args!("{error:#}"), remedy);
        }
        Ok((_token, _trial, attachment)) => {
            report.ok("WebSocket", "passes");
            if !quick {
                quiet(report, attachment);
            }
        }
    }
}

/// Whether a gateway answers there, and what time it is for it.
fn answers(report: &mut Report, address: &Address) -> bool {
    const NAME: &str = "url";
    // Whether a gateway is well, it tells anybody; no real token is needed.
    let asked = Gateway::new(address.clone(), "nobody").map_err(anyhow::Error::from);
    match asked.and_then(|gateway| Ok(gateway.call(&Call::get("/healthz").within(WITHIN))?)) {
        Ok(answer) => {
            report.ok(NAME, format_args!("{address} answers"));
            skew(report, &answer);
            return true;
        }
        Err(error) => {
            let remedy = match error.downcast_ref::<CallError>() {
                Some(CallError::Refused { code: problem::Code::BadHost, .. }) => {
                    "start the gateway with --public-url, or let the proxy pass the Host header on and list it in `hosts`"
                }
                Some(CallError::Untrusted { .. }) => TRUST,
                Some(CallError::NotOurs { status: 502..=504, .. }) => {
                    "the proxy does not reach the gateway: is it running, and is the proxy's upstream its `listen`?"
                }
                Some(CallError::NotOurs { .. }) => "another program answers: check host, port and path of the URL",
                _ => "check the name, the port and the firewall, and whether `bowline serve` runs there",
            };
            report.fail(NAME, format_args!("{error:#}"), remedy);
        }
    }
    false
}

fn skew(report: &mut Report, answer: &Answer) {
    let Some(there) = answer.header("Date").and_then(|date| OffsetDateTime::parse(date, &Rfc2822).ok()) else {
        return report.warn("clocks", "it does not say what time it is", "let the proxy pass the Date header on");
    };
    let apart = (OffsetDateTime::now_utc() - there).abs();
    if apart.unsigned_abs() < SKEW {
        return report.ok("clocks", "there and here agree");
    }
    let words = format!("there and here are {} seconds apart", apart.whole_seconds());
    report.warn("clocks", words, "links and tokens end too early or too late: set both clocks right");
}

/// Stays connected without typing. Both sides say a word every 20 seconds, so a proxy needs a little more patience than that.
fn quiet(report: &mut Report, mut attachment: Attachment) {
    let (began, shown) = (Instant::now(), std::io::stderr().is_terminal());
    while began.elapsed() < QUIET {
        if shown {
            eprint!("\rquiet for {} of {} s ", began.elapsed().as_secs(), QUIET.as_secs());
        }
        if let Err(why) = attachment.step(Duration::from_secs(1)) {
            let words = format!("{why}, after {} quiet seconds", began.elapsed().as_secs());
            let remedy = "raise the proxy's time-out for quiet connections over 60 s (nginx: proxy_read_timeout)";
            return report.fail("quiet connection", words, remedy);
        }
    }
    if shown {
        eprint!("\r\x1b[K");
    }
    report.ok("quiet connection", format_args!("still there after {} s", QUIET.as_secs()));
}
