//! `bowline attach`: shows a session in this terminal.

use std::io::IsTerminal;
use std::process::ExitCode;

use bowline_client::{Options, Outcome};
use bowline_host::signal;
use bowline_proto::close::PermanentFailure;
use bowline_proto::control::ScreenFormat;
use bowline_proto::session::{ExitStatus, State};

use crate::args;
use crate::config::{self, Config};
use crate::conversation;
use crate::conversation_view;
use crate::failure::{Code, Failure, GET_TOKEN, LIST_SESSIONS, MORE_SCOPE};
use crate::host::{Host, Session};
use crate::print::{self, SessionOutput, one_line};

/// How many lines of scrollback an attach prints into the scrollback of this terminal.
const SCROLLBACK: u32 = 1000;

pub(crate) fn run(verb: &args::Attach, host: &dyn Host, config: &Config) -> anyhow::Result<ExitCode> {
    let session = match &verb.session {
        Some(session) => host.find(session)?,
        None => newest(host)?,
    };
    let detach_key = match &verb.detach_key {
        Some(key) => config::parse_detach_key(key)
            .map_err(|error| Failure::new(Code::Usage, error, "use --detach-key ctrl-a, for example, or none"))?,
        None => config.detach_key,
    };
    let options = Options { detach_key, observe: verb.observe, claim: verb.claim_size, ..options(config) };
    attach(host, &session, &options)
}

/// Finds the newest running session of this host, except the one that this terminal is in.
fn newest(host: &dyn Host) -> anyhow::Result<Session> {
    let current = std::env::var("BOWLINE_SESSION").unwrap_or_default();
    let runs = |session: &Session| session.info.host.is_none() && session.info.state == State::Running;
    let mut running = host.list()?;
    running.retain(runs);
    let newest = running.iter().rfind(|session| session.info.id.as_str() != current);
    match (newest, running.first()) {
        (Some(newest), _) => Ok(newest.clone()),
        (None, Some(own)) => {
            let message = format!("the only running session is {}, and this terminal is in it", own.label());
            Err(Failure::new(Code::NotFound, message, "`bowline new --detach` starts another").into())
        }
        (None, None) => Err(Failure::new(Code::NotFound, "no session is running", "`bowline new` starts one").into()),
    }
}

/// Attaches to a session that was just started.
pub(crate) fn attach_started(host: &dyn Host, session: &Session, config: &Config) -> anyhow::Result<ExitCode> {
    attach(host, session, &options(config))
}

/// Fails for an agent session, which has no screen.
pub(crate) fn refuse_agent_session(session: &Session) -> anyhow::Result<()> {
    if session.info.agent.is_none() {
        return Ok(());
    }
    let label = session.label();
    let message = format!("{label} is an agent session, which has no screen");
    let hint =
        format!("`bowline log {label} --follow` prints its conversation, `bowline send {label} TEXT` prompts it");
    Err(Failure::new(Code::Other, message, hint).into())
}

/// Fails for a session that is not a terminal.
pub(crate) fn require_terminal_session(session: &Session) -> anyhow::Result<()> {
    refuse_agent_session(session)?;
    if session.info.terminal.is_some() {
        return Ok(());
    }
    let message = format!("{} is a kind of session that this version of bowline does not support", session.label());
    Err(Failure::new(Code::Other, message, "use the version that created it, or a newer one").into())
}

/// Fails unless standard input and output are a terminal.
pub(crate) fn require_terminal(hint: &str) -> anyhow::Result<()> {
    if std::io::stdin().is_terminal() && print::is_terminal() {
        return Ok(());
    }
    Err(Failure::new(Code::Usage, "cannot attach: standard input and output are not a terminal", hint).into())
}

fn options(config: &Config) -> Options {
    Options { detach_key: config.detach_key, scrollback: SCROLLBACK, backoff: config.backoff(), ..Options::default() }
}

fn attach(host: &dyn Host, session: &Session, options: &Options) -> anyhow::Result<ExitCode> {
    let label = session.label();
    if let Some(hostname) = &session.info.host {
        let message = format!("{label} belongs to the machine {hostname}");
        return Err(Failure::new(Code::Other, message, "run bowline on that machine").into());
    }
    // A session that shows itself would feed its output back into itself forever.
    if std::env::var_os("BOWLINE_SESSION").is_some_and(|current| current == session.info.id.as_str()) {
        let hint = "attach from another terminal; `bowline ls` lists the other sessions";
        return Err(Failure::new(Code::Usage, format!("this terminal is already in {label}"), hint).into());
    }
    if session.info.agent.is_some() {
        require_terminal(&format!("`bowline log {label} --follow` prints the conversation without a terminal"))?;
        return conversation_view::run(host, session, options);
    }
    require_terminal_session(session)?;
    require_terminal(&format!("`bowline screen {label}` prints its screen without a terminal"))?;
    if session.info.state == State::Lost {
        show_last_screen(host, session);
        return conclude(host, label, Outcome::Lost);
    }
    let outcome = bowline_client::attach(host.dial(session)?, options)?;
    conclude(host, label, outcome)
}

/// Prints the last screen of a lost session. Needs no other file, since a crash may have damaged any of them.
fn show_last_screen(host: &dyn Host, session: &Session) {
    match host.screen(session, ScreenFormat::Ansi, 0) {
        Ok(screen) => {
            let text = format!("{}\n", screen.trim_end_matches('\n'));
            let _ = SessionOutput::new().and_then(|out| out.write(text.as_bytes()));
        }
        Err(error) => eprintln!("bowline: cannot show the last screen: {error:#}"),
    }
}

/// Prints how the attach ended and returns its exit code.
pub(crate) fn conclude(host: &dyn Host, label: &str, outcome: Outcome) -> anyhow::Result<ExitCode> {
    let command = |verb: &str| conversation::command(host, verb, label);
    match outcome {
        Outcome::Detached { unsent } => {
            if unsent > 0 {
                eprintln!("[{label} did not confirm the last {unsent} bytes that you typed; they may be lost]");
            }
            eprintln!("[detached from {label}; {} attaches again]", command("attach"));
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Exited(status) => {
            eprintln!("[{label} {}]", describe_exit(&status));
            Ok(ExitCode::from(exit_code(&status)))
        }
        Outcome::Lost => {
            let message = format!("{label} was lost: its process was killed, or the machine went down");
            Err(Failure::new(Code::Other, message, format!("{} starts it again", command("restart"))).into())
        }
        Outcome::Refused { why, reason } => {
            let message = if reason.is_empty() { format!("cannot attach to {label}") } else { reason };
            let (code, hint) = match why {
                PermanentFailure::Unknown | PermanentFailure::Gone => (Code::NotFound, LIST_SESSIONS),
                PermanentFailure::NotAllowed => (Code::Other, MORE_SCOPE),
                PermanentFailure::Version => (Code::Other, "use the same version of bowline on both machines"),
                PermanentFailure::Protocol | PermanentFailure::Other => {
                    (Code::Other, "`bowline screen` prints its screen")
                }
            };
            Err(Failure::new(code, message, hint).into())
        }
        Outcome::NeedsLogin { reason } => {
            let message = if reason.is_empty() { "the server does not accept the token".to_owned() } else { reason };
            Err(Failure::new(Code::Other, message, GET_TOKEN).into())
        }
        Outcome::Dropped => {
            let message = format!("another connection has replaced the one to {label}");
            Err(Failure::new(Code::Other, message, format!("{} attaches again", command("attach"))).into())
        }
        Outcome::Signalled(signal) => Ok(ExitCode::from(signal_exit_code(signal))),
    }
}

fn describe_exit(status: &ExitStatus) -> String {
    match (&status.signal, status.code) {
        (Some(signal), _) => format!("was ended by {}", one_line(signal)),
        (None, Some(code)) => format!("exited with status {code}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The exit code that a shell reports for this status.
fn exit_code(status: &ExitStatus) -> u8 {
    match (&status.signal, status.code) {
        (Some(name), _) => signal_exit_code(signal::number(name).unwrap_or(127)),
        (None, Some(code)) => code as u8,
        (None, None) => Code::Other as u8,
    }
}

/// The exit code that a shell reports for a program ended by this signal.
pub(crate) fn signal_exit_code(signal: i32) -> u8 {
    128u8.saturating_add(u8::try_from(signal).unwrap_or(127))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r31_attach_exits_with_the_exit_code_of_the_program() {
        let code = |code, signal: Option<&str>| exit_code(&ExitStatus { code, signal: signal.map(Into::into) });
        assert_eq!(code(Some(0), None), 0);
        assert_eq!(code(Some(3), None), 3);
        assert_eq!(code(None, Some("SIGKILL")), 137);
        assert_eq!(code(None, Some("SIGTERM")), 143);
        assert_eq!(code(None, Some("SIG34")), 255);
    }
}
