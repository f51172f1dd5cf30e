//! `bowline attach`: a session in this terminal.

use std::io::IsTerminal;
use std::process::ExitCode;

use bowline_client::{Options, Outcome};
use bowline_host::signal;
use bowline_proto::close::Permanent;
use bowline_proto::control::ScreenFormat;
use bowline_proto::session::{ExitStatus, State};

use crate::args;
use crate::config::{self, Config};
use crate::failure::{Code, Failure, GET_TOKEN, MORE_SCOPE};
use crate::place::{Place, Session};

/// Lines of history that an attach brings into the terminal's own scrollback.
const HISTORY: u32 = 1000;

pub(crate) fn run(verb: &args::Attach, place: &dyn Place, config: &Config) -> anyhow::Result<ExitCode> {
    let session = match &verb.session {
        Some(session) => place.find(session)?,
        None => newest(place)?,
    };
    let prefix = match &verb.detach_key {
        Some(key) => config::parse_detach_key(key)
            .map_err(|why| Failure::new(Code::Usage, why, "for example --detach-key 'ctrl-a', or --detach-key none"))?,
        None => config.detach_key,
    };
    let options = Options { prefix, observe: verb.observe, claim: verb.claim_size, ..options(config) };
    attach(place, &session, &options)
}

/// The session that was started last, of those that run here and are not the one around us.
fn newest(place: &dyn Place) -> anyhow::Result<Session> {
    let around = std::env::var("BOWLINE_SESSION").unwrap_or_default();
    let runs = |session: &Session| session.info.host.is_none() && session.info.state == State::Running;
    let mut running = place.list()?;
    running.retain(runs);
    let others = running.iter().rfind(|session| session.info.id.as_str() != around);
    match (others, running.first()) {
        (Some(newest), _) => Ok(newest.clone()),
        (None, Some(own)) => {
            let message = format!("the only running session is {}, which this terminal is in", own.label());
            Err(Failure::new(Code::Unknown, message, "`bowline new --detach` starts another").into())
        }
        (None, None) => Err(Failure::new(Code::Unknown, "no session is running", "`bowline new` starts one").into()),
    }
}

/// Attaches to a session that was just started.
pub(crate) fn to(place: &dyn Place, session: &Session, config: &Config) -> anyhow::Result<ExitCode> {
    attach(place, session, &options(config))
}

/// An error for a session that is no terminal: what it is came with a later version.
pub(crate) fn require_terminal_kind(session: &Session) -> anyhow::Result<()> {
    if session.info.terminal.is_some() {
        return Ok(());
    }
    let message = format!("{} is of a kind that this version of bowline does not know", session.label());
    Err(Failure::new(Code::Other, message, "use the version that made it, or a newer one").into())
}

/// An error unless a person sits at this terminal.
pub(crate) fn require_terminal(hint: &str) -> anyhow::Result<()> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::new(Code::Usage, "standard input and output must be a terminal", hint).into())
}

fn options(config: &Config) -> Options {
    Options { prefix: config.detach_key, scrollback: HISTORY, backoff: config.backoff(), ..Options::default() }
}

fn attach(place: &dyn Place, session: &Session, options: &Options) -> anyhow::Result<ExitCode> {
    let label = session.label();
    if let Some(host) = &session.info.host {
        let message = format!("{label} belongs to the machine {host}");
        return Err(Failure::new(Code::Other, message, "run bowline on that machine").into());
    }
    require_terminal_kind(session)?;
    // Its output would be its own input, for ever.
    if std::env::var_os("BOWLINE_SESSION").is_some_and(|around| around == session.info.id.as_str()) {
        let hint = "attach from another terminal; `bowline ls` shows what else there is";
        return Err(Failure::new(Code::Usage, format!("this terminal is {label} itself"), hint).into());
    }
    require_terminal(&format!("`bowline screen {label}` prints what it shows"))?;
    if session.info.state == State::Lost {
        show_last_screen(place, session);
        return conclude(label, Outcome::Lost);
    }
    let outcome = bowline_client::attach(place.dial(session)?, options)?;
    conclude(label, outcome)
}

/// Prints what a lost session showed last. A crash may have cost it any of its other files, so that nothing else is needed.
fn show_last_screen(place: &dyn Place, session: &Session) {
    match place.screen(session, ScreenFormat::Ansi, 0) {
        Ok(screen) => println!("{}", screen.trim_end_matches('\n')),
        Err(error) => eprintln!("bowline: its last screen cannot be shown: {error:#}"),
    }
}

/// Says how it ended, and turns that into an exit code.
fn conclude(label: &str, outcome: Outcome) -> anyhow::Result<ExitCode> {
    match outcome {
        Outcome::Detached { unsent } => {
            if unsent > 0 {
                eprintln!("[the last {unsent} bytes typed may not have reached {label}, which did not read them]");
            }
            eprintln!("[detached from {label}; `bowline attach {label}` comes back]");
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Exited(status) => {
            eprintln!("[{label} {}]", exit_words(&status));
            Ok(ExitCode::from(exit_code(&status)))
        }
        Outcome::Lost => {
            let message = format!("{label} was lost: its process was killed, or the machine went down");
            Err(Failure::new(Code::Other, message, format!("`bowline restart {label}` starts it again")).into())
        }
        Outcome::Refused { why, reason } => {
            let message = if reason.is_empty() { format!("{label} cannot be attached to") } else { reason };
            let (code, hint) = match why {
                Permanent::Unknown | Permanent::Gone => (Code::Unknown, "`bowline ls` lists the sessions there are"),
                Permanent::NotAllowed => (Code::Other, MORE_SCOPE),
                Permanent::Version => (Code::Other, "run the same version of bowline here and there"),
                Permanent::Protocol | Permanent::Other => (Code::Other, "`bowline screen` still shows what it shows"),
            };
            Err(Failure::new(code, message, hint).into())
        }
        Outcome::NeedsLogin { reason } => {
            let message = if reason.is_empty() { "the server does not take the token".to_owned() } else { reason };
            Err(Failure::new(Code::Other, message, GET_TOKEN).into())
        }
        Outcome::Dropped => {
            let message = format!("the connection to {label} was taken over");
            Err(Failure::new(Code::Other, message, format!("`bowline attach {label}` comes back")).into())
        }
        Outcome::Signalled(signal) => Ok(ExitCode::from(signalled(signal))),
    }
}

fn exit_words(status: &ExitStatus) -> String {
    match (&status.signal, status.code) {
        (Some(signal), _) => format!("was ended by {signal}"),
        (None, Some(code)) => format!("exited with status {code}"),
        (None, None) => "ended".to_owned(),
    }
}

/// As a shell would say it.
fn exit_code(status: &ExitStatus) -> u8 {
    match (&status.signal, status.code) {
        (Some(name), _) => signalled(signal::number(name).unwrap_or(127)),
        (None, Some(code)) => code as u8,
        (None, None) => Code::Other as u8,
    }
}

/// The exit code of a shell whose program was ended by this signal.
fn signalled(signal: i32) -> u8 {
    128u8.saturating_add(u8::try_from(signal).unwrap_or(127))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r31_a_program_ends_with_its_own_code() {
        let code = |code, signal: Option<&str>| exit_code(&ExitStatus { code, signal: signal.map(Into::into) });
        assert_eq!(code(Some(0), None), 0);
        assert_eq!(code(Some(3), None), 3);
        assert_eq!(code(None, Some("SIGKILL")), 137);
        assert_eq!(code(None, Some("SIGTERM")), 143);
        assert_eq!(code(None, Some("SIG34")), 255);
    }
}
