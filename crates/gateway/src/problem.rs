//! Error responses: RFC 9457 `application/problem+json`, with a stable code that is also in the `Bowline-Code`
//! header.

use axum::response::{IntoResponse, Response};
use bowline_host::change_lock::ChangeLockError;
use bowline_host::control::ControlError;
use bowline_host::files;
use bowline_host::registry::RegistryError;
use bowline_host::remove::EndError;
use bowline_host::rename::RenameError;
use bowline_host::start::StartError;
use bowline_proto::agent::approval::Answered;
use bowline_proto::problem::{Code, Problem as Body, Retained};
use http::{HeaderName, HeaderValue, StatusCode, header};

use crate::extract::Json;

/// Carries the problem code. A response without it comes from a proxy, not from the gateway.
pub const CODE_HEADER: HeaderName = HeaderName::from_static("bowline-code");

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    code: Code,
    detail: String,
    retry_after: Option<u64>,
    retained: Option<Retained>,
    /// How an approval was answered.
    answered: Option<Box<Answered>>,
    /// Whether the detail must not be logged.
    private: bool,
}

impl Problem {
    /// [`Code::Unknown`], which a newer session process may cause, becomes [`Code::Internal`].
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        let code = if code == Code::Unknown { Code::Internal } else { code };
        Problem { code, detail: detail.into(), retry_after: None, retained: None, answered: None, private: false }
    }

    /// Adds a `Retry-After` header.
    pub fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after = Some(seconds);
        self
    }

    /// Adds the range of bytes that the log retains.
    pub fn retained(mut self, retained: Retained) -> Problem {
        self.retained = Some(retained);
        self
    }

    /// Keeps the detail out of the log: it may quote a secret, something typed or a command line.
    pub(crate) fn private(mut self) -> Problem {
        self.private = true;
        self
    }

    /// The detail, unless it is private.
    pub(crate) fn loggable_detail(&self) -> &str {
        if self.private { "" } else { &self.detail }
    }

    pub fn not_authenticated() -> Problem {
        let detail = "not authenticated: log in, or send the header `Authorization: Bearer TOKEN`";
        Problem::new(Code::NotAuthenticated, detail)
    }

    /// For a browser's WebSocket that lost its place before it sent the login's key.
    pub(crate) fn without_key_displaced() -> Problem {
        let detail = "too many connections from this address wait to send their key; try again later";
        Problem::new(Code::TooMany, detail).retry_after(1)
    }

    pub fn code(&self) -> Code {
        self.code
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The close code and reason for a WebSocket that was accepted only to report this problem.
    pub fn close(&self) -> (u16, String) {
        let code = match self.code.status() {
            status @ 400..=499 => 4000 + status,
            503 | 507 => bowline_proto::close::TRY_AGAIN_LATER,
            _ => bowline_proto::close::INTERNAL,
        };
        let retry = self.retry_after.map_or_else(String::new, |seconds| format!("retry_after={seconds} "));
        (code, format!("{retry}{}: {}", self.code, self.detail))
    }

    /// The problem that a WebSocket is closed for. `None` if the close is normal.
    pub(crate) fn from_close(code: u16, reason: &str) -> Option<Problem> {
        use bowline_proto::close;
        let code = match code {
            close::NORMAL | close::GOING_AWAY | close::SUPERSEDED => return None,
            close::PROTOCOL | close::NOT_UTF8 => Code::BadRequest,
            close::POLICY => Code::TooMany,
            close::TOO_BIG => Code::TooLarge,
            close::TRY_AGAIN_LATER => Code::Unreachable,
            code => {
                let status = code.wrapping_sub(4000);
                Code::ALL.iter().copied().find(|code| code.status() == status).unwrap_or(Code::Internal)
            }
        };
        Some(Problem::new(code, reason))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = Body {
            r#type: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: self.code,
            detail: self.detail.clone(),
            retained: self.retained,
            outcome: self.answered.as_ref().map(|answered| answered.outcome),
            by: self.answered.as_ref().and_then(|answered| answered.by.clone()),
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(CODE_HEADER, HeaderValue::from_static(self.code.name()));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // For `guard::check`, which reports it.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Problem {
        match error {
            RegistryError::Unknown(_) => Problem::new(Code::UnknownSession, error.to_string()),
            // A failed read does not prove that the session does not exist.
            RegistryError::Io { .. } | RegistryError::Damaged { .. } => {
                tracing::error!(%error, "cannot read the sessions");
                Problem::new(Code::Unreachable, error.to_string()).retry_after(1)
            }
        }
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Problem {
        match error {
            // The program may read its input at any moment.
            ControlError::Refused { code: Code::TooMany, message, .. } => {
                Problem::new(Code::TooMany, message).retry_after(1)
            }
            ControlError::Refused { code, message, answered } => {
                Problem { answered: answered.map(Box::new), ..Problem::new(code, message) }.private()
            }
            ControlError::Unreachable(_) | ControlError::TimedOut | ControlError::Unexpected => {
                Problem::new(Code::Unreachable, error.to_string()).retry_after(1)
            }
        }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Problem {
        match error.code() {
            Code::Internal => internal(&error),
            code @ (Code::Unreachable | Code::NoSpace) => unwritable(code, &error),
            code => Problem::new(code, error.to_string()).private(),
        }
    }
}

impl From<EndError> for Problem {
    fn from(error: EndError) -> Problem {
        match error {
            EndError::OtherMachine(_) => Problem::new(Code::NotAllowed, error.to_string()),
            EndError::Stuck(_) => Problem::new(Code::Unreachable, error.to_string()).retry_after(1),
            EndError::Restarted => Problem::new(Code::IdReused, error.to_string()),
            EndError::Files { ref source, .. } => unwritable(files::code(source), &error),
        }
    }
}

impl From<RenameError> for Problem {
    fn from(error: RenameError) -> Problem {
        match error {
            RenameError::Taken { .. } => Problem::new(Code::NameTaken, error.to_string()).private(),
            RenameError::OtherMachine(_) => Problem::new(Code::NotAllowed, error.to_string()),
            RenameError::Ended => Problem::new(Code::SessionGone, error.to_string()),
            RenameError::Registry(error) => error.into(),
            RenameError::Control(error) => error.into(),
            RenameError::Locked(ChangeLockError::Busy(_)) => {
                Problem::new(Code::Unreachable, error.to_string()).retry_after(1)
            }
            RenameError::Locked(ChangeLockError::Io { ref source, .. }) | RenameError::Files(ref source) => {
                unwritable(files::code(source), &error)
            }
            RenameError::Home(ref home) => unwritable(home.code(), &error),
        }
    }
}

/// A file that cannot be read or written, which may be temporary.
pub(crate) fn unwritable(code: Code, error: &dyn std::error::Error) -> Problem {
    let problem = Problem::new(code, error.to_string());
    if code == Code::Unreachable { problem.retry_after(1) } else { problem }
}

/// An internal failure. The reason is logged and also returned, because every caller acts for the owner.
pub(crate) fn internal(error: &dyn std::error::Error) -> Problem {
    tracing::error!(%error, "a request failed");
    Problem::new(Code::Internal, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary failure gets the same status from every endpoint, so that clients retry.
    #[test]
    fn r1_a_failed_start_has_the_same_status_as_other_failed_requests() {
        let io = || std::io::Error::from(std::io::ErrorKind::Other);
        let unreadable = || RegistryError::Io { path: "sessions".into(), source: io() };
        for (error, status, retry) in [
            (StartError::End(EndError::Stuck(ControlError::TimedOut)), 503, Some(1)),
            (StartError::End(EndError::OtherMachine("far".into())), 403, None),
            (StartError::Registry(unreadable()), 503, Some(1)),
            (StartError::Registry(RegistryError::Unknown("x".into())), 404, None),
            (StartError::Locked(ChangeLockError::Busy("the name x".into())), 503, Some(1)),
            (StartError::TimedOut(std::time::Duration::ZERO), 503, Some(1)),
            (StartError::Process(io()), 500, None),
        ] {
            let message = error.to_string();
            let problem = Problem::from(error);
            assert_eq!((problem.code.status(), problem.retry_after), (status, retry), "{message}");
        }
    }
}
