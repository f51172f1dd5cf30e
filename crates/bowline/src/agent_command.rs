//! Sends one command to an agent session, again and again until it is settled.

use std::time::Duration;

use bowline_client::post::{DeliveryError, send_and_wait};
use bowline_client::remote::ApiError;
use bowline_proto::agent::approval::{Answered, Outcome};
use bowline_proto::api::CommandAccepted;
use bowline_proto::post::{Delivery, FailureReason, State};
use bowline_proto::problem;
use serde_json::{Value, from_value};

use crate::conversation::command as command_line;
use crate::failure::{Code, Failure};
use crate::host::{Host, Session};
use crate::{send, units};

/// How long a command may take where the user cannot say.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);

/// Sends a command, for at most `within`. All tries have the same id, so it takes effect once even if a reply is lost. A
/// refusal is an [`ApiError::Refused`], for a session of this machine, too.
pub(crate) fn send(
    host: &dyn Host,
    session: &Session,
    command: Value,
    within: Duration,
) -> anyhow::Result<CommandAccepted> {
    let id = send::new_command_id()?;
    let mut is_told = false;
    let sent = send_and_wait(host.delivery(), session.info.id.as_str(), &id, command, within, |entry| {
        if let State::Retrying { message, .. } = &entry.state
            && !std::mem::replace(&mut is_told, true)
        {
            eprintln!("[not delivered yet ({message}); trying again]");
        }
    });
    match sent {
        Ok(Delivery::Accepted { seq, run }) => {
            let run = run.and_then(|run| run.parse().ok());
            Ok(CommandAccepted::new(id, seq, run, false))
        }
        Ok(Delivery::AlreadyAnswered { outcome, by }) => {
            let answered = Answered { outcome: outcome.unwrap_or(Outcome::Unknown), by };
            Err(refused(problem::Code::AlreadyAnswered, "it was already answered", Some(answered)))
        }
        Ok(Delivery::NotRunning) => Err(refused(problem::Code::NotRunning, "the run has ended", None)),
        Err(DeliveryError::NeedsLogin) => {
            Err(refused(problem::Code::NotAuthenticated, "the server does not accept the token", None))
        }
        Err(DeliveryError::Failed(failure)) => {
            let code = match failure.reason {
                FailureReason::Refused { code } => from_value(code.into()).unwrap_or(problem::Code::Unknown),
                FailureReason::SessionGone => problem::Code::SessionGone,
                FailureReason::NoSpace => problem::Code::NoSpace,
                FailureReason::Expired | FailureReason::Old | FailureReason::Unreadable => problem::Code::Unreachable,
            };
            Err(refused(code, &failure.message, None))
        }
        Err(DeliveryError::TimedOut { within, last_error }) => {
            let within = units::format_duration_exact(within);
            let last_error = if last_error.is_empty() { "no response".to_owned() } else { last_error };
            let message = format!("{} did not accept it within {within}: {last_error}", session.label());
            let hint =
                format!("{} shows whether it was received after all", command_line(host, "log", session.label()));
            Err(Failure::new(Code::Unreachable, message, hint).into())
        }
        Err(error @ (DeliveryError::Refused(_) | DeliveryError::Io(_))) => Err(error.into()),
    }
}

fn refused(code: problem::Code, detail: &str, answered: Option<Answered>) -> anyhow::Error {
    ApiError::Refused { code, detail: detail.to_owned(), oldest: None, answered }.into()
}
