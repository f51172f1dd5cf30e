//! Refusals: RFC 9457 `application/problem+json` with a stable code, which is also in the header `Bowline-Code`.

use axum::response::{IntoResponse, Response};
use bowline_host::control::ControlError;
use bowline_host::hold::HoldError;
use bowline_host::registry::RegistryError;
use bowline_host::remove::EndError;
use bowline_host::rename::RenameError;
use bowline_host::start::StartError;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

/// The header that says that a refusal is ours, and which.
pub const CODE_HEADER: HeaderName = HeaderName::from_static("bowline-code");

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    retry_after: Option<u64>,
    more: Map<String, Value>,
}

/// Every code, with the status that goes with it.
pub(crate) const CODES: [(&str, u16); 23] = [
    ("bad_request", 400),
    ("bad_name", 400),
    ("bad_size", 400),
    ("not_authenticated", 401),
    ("not_allowed", 403),
    ("bad_origin", 403),
    ("bad_host", 403),
    ("unknown_session", 404),
    ("not_found", 404),
    ("bad_method", 405),
    ("too_slow", 408),
    ("name_taken", 409),
    ("id_reused", 409),
    ("session_gone", 410),
    ("too_large", 413),
    ("out_of_range", 416),
    ("bad_cwd", 422),
    ("no_program", 422),
    ("bad_ticket", 425),
    ("no_version", 426),
    ("too_many", 429),
    ("unreachable", 503),
    ("no_space", 507),
];

impl Problem {
    /// A problem of the table; a code that is not in it is an `internal` one.
    pub fn new(code: &str, detail: impl Into<String>) -> Problem {
        let known = CODES.iter().find(|(known, _)| *known == code);
        let (code, status) = known.copied().unwrap_or(("internal", 500));
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Problem { status, code, detail: detail.into(), retry_after: None, more: Map::new() }
    }

    /// Try again, not sooner than in so many seconds.
    pub fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after = Some(seconds);
        self
    }

    /// Something more for programs.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Whoever calls is not known.
    pub fn not_authenticated() -> Problem {
        Problem::new("not_authenticated", "log in, or send a token: Authorization: Bearer TOKEN")
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What a WebSocket that was accepted only to say this is closed with.
    pub fn close(&self) -> (u16, String) {
        let code = match self.status.as_u16() {
            status @ 400..=499 => 4000 + status,
            503 | 507 => bowline_proto::close::LATER,
            _ => bowline_proto::close::INTERNAL,
        };
        let retry = self.retry_after.map_or_else(String::new, |seconds| format!("retry_after={seconds} "));
        (code, format!("{retry}{}: {}", self.code, self.detail))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let mut body = json!({
            "type": "about:blank", "title": title, "status": self.status.as_u16(), "code": self.code, "detail": self.detail,
        });
        if let Value::Object(body) = &mut body {
            body.extend(self.more);
        }
        crate::metrics::refused(self.code);
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(CODE_HEADER, HeaderValue::from_static(self.code));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Problem {
        match error {
            RegistryError::Unknown(_) => Problem::new("unknown_session", error.to_string()),
            // That it cannot be read now does not prove that it is not there.
            RegistryError::Io { .. } | RegistryError::Damaged { .. } => {
                tracing::error!(%error, "sessions cannot be read");
                Problem::new("unreachable", error.to_string()).retry_after(1)
            }
        }
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Problem {
        match error {
            // The program may read on at any moment.
            ControlError::Refused { code, message } if code == "too_many" => {
                Problem::new("too_many", message).retry_after(1)
            }
            ControlError::Refused { code, message } => Problem::new(&code, message),
            ControlError::Unreachable(_) | ControlError::Silent | ControlError::Unexpected => {
                Problem::new("unreachable", error.to_string()).retry_after(1)
            }
        }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Problem {
        match error.code() {
            "internal" => internal(&error),
            "unreachable" => Problem::new("unreachable", error.to_string()).retry_after(1),
            code => Problem::new(code, error.to_string()),
        }
    }
}

impl From<EndError> for Problem {
    fn from(error: EndError) -> Problem {
        match error {
            EndError::Elsewhere(_) => Problem::new("not_allowed", error.to_string()),
            EndError::Stuck(_) => Problem::new("unreachable", error.to_string()).retry_after(1),
            EndError::Alive => Problem::new("id_reused", error.to_string()),
            EndError::Files { .. } => internal(&error),
        }
    }
}

impl From<RenameError> for Problem {
    fn from(error: RenameError) -> Problem {
        match error {
            RenameError::Taken { .. } => Problem::new("name_taken", error.to_string()),
            RenameError::Elsewhere(_) => Problem::new("not_allowed", error.to_string()),
            RenameError::Ended => Problem::new("session_gone", error.to_string()),
            RenameError::Registry(error) => error.into(),
            RenameError::Control(error) => error.into(),
            RenameError::Hold(HoldError::Busy(_)) => Problem::new("unreachable", error.to_string()).retry_after(1),
            RenameError::Hold(HoldError::Io { .. }) | RenameError::Home(_) | RenameError::Files(_) => internal(&error),
        }
    }
}

/// Something of ours failed: the log has the reason, and so has the answer, since the caller is the owner.
pub(crate) fn internal(error: &dyn std::error::Error) -> Problem {
    tracing::error!(%error, "a call failed");
    Problem::new("internal", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may pass is answered in a way that clients try again, whichever call met it.
    #[test]
    fn r1_a_start_fails_with_the_status_that_other_calls_have() {
        let io = || std::io::Error::from(std::io::ErrorKind::Other);
        let unread = || RegistryError::Io { path: "sessions".into(), source: io() };
        for (error, status, retry) in [
            (StartError::End(EndError::Stuck(ControlError::Silent)), 503, Some(1)),
            (StartError::End(EndError::Elsewhere("far".into())), 403, None),
            (StartError::Registry(unread()), 503, Some(1)),
            (StartError::Registry(RegistryError::Unknown("x".into())), 404, None),
            (StartError::Hold(HoldError::Busy("the name x".into())), 503, Some(1)),
            (StartError::Silent(std::time::Duration::ZERO), 503, Some(1)),
            (StartError::Process(io()), 500, None),
        ] {
            let said = error.to_string();
            let problem = Problem::from(error);
            assert_eq!((problem.status.as_u16(), problem.retry_after), (status, retry), "{said}");
        }
    }
}
