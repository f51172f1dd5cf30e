//! Asking a gateway something over HTTP, and its answers.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use bowline_proto::problem::{Code, Retained};
use http::{HeaderMap, Method, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ureq::Body;

use super::gateway::Gateway;

/// The longest answer that is taken whole; a longer one is an error.
const MAX_ANSWER: u64 = 64 << 20;
/// The longest refusal that is read.
const MAX_PROBLEM: u64 = 64 << 10;

/// Why a call did not do what it was to do.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer came, or only part of one: whether the call was heard is not known.
    #[error("{address} cannot be reached: {why}")]
    Unreachable {
        /// The gateway.
        address: String,
        /// In the words of whoever noticed.
        why: String,
    },
    /// Whoever answers is not known to be it: nothing was said to them.
    #[error("{address} cannot be trusted: {why}")]
    Untrusted {
        /// The gateway.
        address: String,
        /// What is wrong with the certificate.
        why: String,
    },
    /// The gateway refused.
    #[error("{detail}")]
    Refused {
        /// A problem code of the protocol.
        code: Code,
        /// For people.
        detail: String,
        /// The oldest byte that the log keeps, where others were asked for.
        oldest: Option<u64>,
    },
    /// Something else answered: a proxy, or another program.
    #[error("what answers at {address} is not Bowline, or cannot reach it (HTTP status {status})")]
    NotOurs {
        /// The gateway's address.
        address: String,
        /// The status.
        status: u16,
    },
}

impl CallError {
    /// Whether the same call may do better a moment later.
    pub fn is_passing(&self) -> bool {
        match self {
            CallError::Unreachable { .. } => true,
            CallError::Refused { code, .. } => matches!(code, Code::Unreachable | Code::TooMany),
            CallError::Untrusted { .. } => false,
            CallError::NotOurs { status, .. } => matches!(status, 408 | 425 | 429 | 502..=504),
        }
    }

    /// The problem code, if the gateway itself refused.
    pub fn code(&self) -> Option<Code> {
        match self {
            CallError::Refused { code, .. } => Some(*code),
            CallError::Unreachable { .. } | CallError::Untrusted { .. } | CallError::NotOurs { .. } => None,
        }
    }
}

/// What is to be asked.
#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    path: String,
    body: Option<Value>,
    key: Option<String>,
    within: Option<Duration>,
}

impl Call {
    /// Reads a path.
    pub fn get(path: impl Into<String>) -> Call {
        Call { method: Method::GET, path: path.into(), body: None, key: None, within: None }
    }

    /// Does something at a path.
    pub fn new(method: Method, path: impl Into<String>) -> Call {
        Call { method, ..Call::get(path) }
    }

    /// With this JSON.
    pub fn body(self, body: &impl Serialize) -> Call {
        Call { body: Some(json!(body)), ..self }
    }

    /// With an `Idempotency-Key`.
    pub fn key(self, key: &str) -> Call {
        Call { key: Some(key.to_owned()), ..self }
    }

    /// All of it within this time.
    pub fn within(self, within: Duration) -> Call {
        Call { within: Some(within), ..self }
    }
}

/// An answer that is no refusal.
#[derive(Debug)]
pub struct Answer {
    address: String,
    status: u16,
    headers: HeaderMap,
    body: Body,
}

/// What is of use here of a problem's body. A proxy in between may have sent its own, with other fields.
#[derive(Deserialize)]
struct Problem {
    detail: Option<String>,
    title: Option<String>,
    retained: Option<Retained>,
}

impl Problem {
    fn words(self) -> Option<String> {
        self.detail.or(self.title)
    }
}

impl Gateway {
    /// Asks, and waits for the answer's beginning. A refusal is an error.
    pub fn call(&self, call: &Call) -> Result<Answer, CallError> {
        let unreachable = |error: ureq::Error| self.unreachable(&error);
        let mut request = Request::builder()
            .method(&call.method)
            .uri(self.address.http(&call.path))
            .header("Authorization", &self.bearer);
        if let Some(key) = &call.key {
            request = request.header("Idempotency-Key", key);
        }
        let asked = match &call.body {
            Some(body) => {
                let request = request.header("Content-Type", "application/json").body(body.to_string());
                let request = request.map_err(|error| unreachable(error.into()))?;
                self.agent.run(self.agent.configure_request(request).timeout_global(call.within).build())
            }
            None => {
                let request = request.body(()).map_err(|error| unreachable(error.into()))?;
                self.agent.run(self.agent.configure_request(request).timeout_global(call.within).build())
            }
        };
        let (parts, body) = asked.map_err(unreachable)?.into_parts();
        let (address, status) = (self.address.to_string(), parts.status.as_u16());
        let answer = Answer { address, status, headers: parts.headers, body };
        if parts.status.is_success() { Ok(answer) } else { Err(answer.into_refusal()) }
    }

    fn unreachable(&self, error: &ureq::Error) -> CallError {
        let (address, why) = (self.address.to_string(), words(error));
        match tls(error) {
            Some(rustls::Error::InvalidCertificate(_)) => CallError::Untrusted { address, why },
            _ => CallError::Unreachable { address, why },
        }
    }
}

/// What went wrong with TLS, if that is what did.
fn tls(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// What went wrong on the way, without the library's own prefixes.
fn words(error: &ureq::Error) -> String {
    if let Some(error) = tls(error) {
        return format!("TLS: {error}");
    }
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::HostNotFound => "no such host".to_owned(),
        ureq::Error::ConnectionFailed => "connection refused".to_owned(),
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        other => other.to_string(),
    }
}

impl Answer {
    /// A header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The answer as JSON of this shape.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, CallError> {
        let (address, status) = (self.address.clone(), self.status);
        serde_json::from_slice(&self.bytes()?).map_err(|_| CallError::NotOurs { address, status })
    }

    /// The answer as it is.
    pub fn bytes(self) -> Result<Vec<u8>, CallError> {
        let address = self.address.clone();
        let mut bytes = Vec::new();
        match self.reader().take(MAX_ANSWER).read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(CallError::Unreachable { address, why: error.to_string() }),
        }
    }

    /// The beginning of the answer, as much as `buf` takes. Of one that is cut short, what came before the cut.
    pub fn read(self, buf: &mut [u8]) -> Result<usize, CallError> {
        let address = self.address.clone();
        let (mut body, mut read) = (self.reader(), 0);
        while read < buf.len() {
            match body.read(&mut buf[read..]) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) if read > 0 => break,
                Err(error) => return Err(CallError::Unreachable { address, why: error.to_string() }),
            }
        }
        Ok(read)
    }

    /// A body that is cut short is an error, not an end.
    fn reader(self) -> impl Read {
        self.body.into_with_config().limit(u64::MAX).reader()
    }

    fn into_refusal(self) -> CallError {
        let (address, status) = (self.address.clone(), self.status);
        // Success without our header is ours by its shape; a refusal is ours by this header alone.
        let Some(name) = self.header("Bowline-Code").map(str::to_owned) else {
            return CallError::NotOurs { address, status };
        };
        let mut body = Vec::new();
        let read = self.reader().take(MAX_PROBLEM).read_to_end(&mut body);
        let problem = read.ok().and_then(|_| serde_json::from_slice::<Problem>(&body).ok());
        let oldest = problem.as_ref().and_then(|problem| problem.retained).map(|retained| retained.from);
        let words = problem.and_then(Problem::words);
        let detail = words.unwrap_or_else(|| format!("the server refused: {name}"));
        CallError::Refused { code: Code::from_name(&name), detail, oldest }
    }
}

/// The words for people in a problem's body.
pub(super) fn problem_words(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<Problem>(body).ok()?.words()
}
