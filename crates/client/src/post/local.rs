//! Delivers commands to sessions of this machine, with the same responses as a gateway.

use std::time::Duration;

use bowline_host::control::{Control, ControlError};
use bowline_host::home::Home;
use bowline_host::registry::{self, Entry, RegistryError};
use bowline_host::{files, transcript};
use bowline_proto::agent::approval::Answered;
use bowline_proto::api::CommandAccepted;
use bowline_proto::control::{Reply, Request};
use bowline_proto::post::Response;
use bowline_proto::problem::Code;
use bowline_proto::session::State;
use serde_json::{Value, json};

use super::Deliver;

/// The sessions of this machine.
pub struct LocalDelivery {
    home: Home,
}

impl LocalDelivery {
    pub fn new(home: Home) -> LocalDelivery {
        LocalDelivery { home }
    }
}

impl Deliver for LocalDelivery {
    fn deliver(&self, session: &str, id: &str, command: &Value, within: Duration) -> Response {
        let entry = match registry::find(&self.home, session) {
            Ok(entry) => entry,
            Err(error) => return refused(code_of(&error), &error.to_string(), None),
        };
        if !entry.is_local {
            return refused(Code::NotAllowed, "the session belongs to another machine", None);
        }
        if entry.info.state != State::Running {
            return from_files(&entry, id, command);
        }
        let request = Request::Command { id: id.to_owned(), command: command.clone(), by: Some("local".to_owned()) };
        match Control::connect(&entry.dir).and_then(|mut control| control.request(&request, within)) {
            Ok(Reply::Accepted { id, seq, run, duplicate }) => accepted(CommandAccepted::new(id, seq, run, duplicate)),
            Ok(_) => Response::Missing { why: ControlError::Unexpected.to_string() },
            Err(ControlError::Refused { code, message, answered }) => refused(code, &message, answered.as_ref()),
            Err(error @ ControlError::Unreachable(_)) => match registry::try_read(entry.dir) {
                Ok(Some(entry)) if entry.info.state != State::Running => from_files(&entry, id, command),
                Ok(None) => refused(Code::SessionGone, "the session was forgotten", None),
                Ok(Some(_)) | Err(_) => Response::Missing { why: error.to_string() },
            },
            Err(error) => Response::Missing { why: error.to_string() },
        }
    }
}

fn code_of(error: &RegistryError) -> Code {
    match error {
        RegistryError::Unknown(_) => Code::UnknownSession,
        RegistryError::Damaged { .. } => Code::SessionGone,
        RegistryError::Io { source, .. } => files::code(source),
    }
}

/// The response for a session that has ended: it may have accepted the command before.
fn from_files(entry: &Entry, id: &str, command: &Value) -> Response {
    match transcript::find_accepted(entry, id.to_owned(), command) {
        Ok(found) => accepted(found),
        Err(ControlError::Refused { code, message, answered }) => refused(code, &message, answered.as_ref()),
        Err(error) => Response::Missing { why: error.to_string() },
    }
}

fn accepted(accepted: CommandAccepted) -> Response {
    Response::Http { status: 202, code: None, retry_after: None, body: json!(accepted).to_string() }
}

/// The response of a gateway that refuses the command.
pub(super) fn refused(code: Code, detail: &str, answered: Option<&Answered>) -> Response {
    let mut body = json!({"detail": detail});
    if let Some(Answered { outcome, by }) = answered {
        (body["outcome"], body["by"]) = (json!(outcome), json!(by));
    }
    let (status, code) = (code.status(), Some(code.name().to_owned()));
    Response::Http { status, code, retry_after: None, body: body.to_string() }
}

#[cfg(test)]
mod tests {
    use bowline_proto::agent::approval::Outcome;
    use bowline_proto::post::{Delivery, Failure, FailureReason, ResponseClass, classify_response};

    use super::*;

    #[test]
    fn refusals_mean_the_same_as_those_of_a_gateway() {
        let answered = Answered { outcome: Outcome::Denied, by: Some("phone".to_owned()) };
        let response = refused(Code::AlreadyAnswered, "it was denied", Some(&answered));
        let delivery = Delivery::AlreadyAnswered { outcome: Some(Outcome::Denied), by: Some("phone".to_owned()) };
        assert_eq!(classify_response("c1", &response), ResponseClass::Delivered(delivery));
        let response = accepted(CommandAccepted::new("c1".to_owned(), 7, None, false));
        let delivery = Delivery::Accepted { seq: 7, run: None };
        assert_eq!(classify_response("c1", &response), ResponseClass::Delivered(delivery));
        let response = refused(Code::SessionGone, "the session has ended", None);
        let failure = Failure { reason: FailureReason::SessionGone, message: "the session has ended".to_owned() };
        assert_eq!(classify_response("c1", &response), ResponseClass::Failed(failure));
    }

    #[test]
    fn an_unknown_session_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("state"), dir.path().join("run")).unwrap();
        home.ensure().unwrap();
        let command = json!({"type": "prompt", "text": "hi"});
        let response = LocalDelivery::new(home).deliver("k3v9x0q2m7aa", "c1", &command, Duration::from_secs(15));
        let ResponseClass::Failed(failure) = classify_response("c1", &response) else { panic!("{response:?}") };
        assert_eq!(failure.reason, FailureReason::Refused { code: "unknown_session".to_owned() });
    }
}
