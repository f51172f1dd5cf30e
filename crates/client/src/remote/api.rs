//! HTTP requests to a gateway, and its responses.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use bowline_proto::agent::approval::Answered;
use bowline_proto::post::Response;
use bowline_proto::problem::{Code, Retained};
use http::{HeaderMap, Method, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ureq::Body;

use super::gateway::Gateway;

/// The longest response body that [`ApiResponse::bytes`] reads; a longer one is an error.
pub(super) const MAX_RESPONSE: u64 = 64 << 20;
/// The most bytes read of an error response, or of the response to a command.
const MAX_PROBLEM: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No response arrived, or only a part of one. The gateway may have handled the request.
    #[error("cannot reach {address}: {why}")]
    Unreachable { address: String, why: String },
    /// The server's certificate is not trusted. Nothing was sent.
    #[error("{address} cannot be trusted: {why}")]
    Untrusted { address: String, why: String },
    #[error("{detail}")]
    Refused {
        code: Code,
        detail: String,
        /// The offset of the oldest byte in the log, if the requested range is no longer kept.
        oldest: Option<u64>,
        /// How an approval was answered, if that is why.
        answered: Option<Answered>,
    },
    /// A proxy or another program responded.
    #[error("the server at {address} is not Bowline, or is a proxy that cannot reach it (HTTP status {status})")]
    NotBowline { address: String, status: u16 },
    #[error("the response of {address} is longer than {} MiB", MAX_RESPONSE >> 20)]
    TooLong { address: String },
}

impl ApiError {
    /// Whether the same request may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            ApiError::Unreachable { .. } => true,
            ApiError::Refused { code, .. } => matches!(code, Code::Unreachable | Code::TooMany),
            ApiError::Untrusted { .. } | ApiError::TooLong { .. } => false,
            ApiError::NotBowline { status, .. } => matches!(status, 408 | 425 | 429 | 502..=504),
        }
    }

    /// The problem code, if the gateway itself refused the request.
    pub fn code(&self) -> Option<Code> {
        match self {
            ApiError::Refused { code, .. } => Some(*code),
            ApiError::Unreachable { .. }
            | ApiError::Untrusted { .. }
            | ApiError::NotBowline { .. }
            | ApiError::TooLong { .. } => None,
        }
    }
}

/// An HTTP request to a gateway.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    method: Method,
    path: String,
    body: Option<Value>,
    key: Option<String>,
    within: Option<Duration>,
}

impl ApiRequest {
    pub fn get(path: impl Into<String>) -> ApiRequest {
        ApiRequest { method: Method::GET, path: path.into(), body: None, key: None, within: None }
    }

    pub fn new(method: Method, path: impl Into<String>) -> ApiRequest {
        ApiRequest { method, ..ApiRequest::get(path) }
    }

    /// Sets the body, as JSON.
    pub fn body(self, body: &impl Serialize) -> ApiRequest {
        ApiRequest { body: Some(json!(body)), ..self }
    }

    /// Sets the `Idempotency-Key` header.
    pub fn key(self, key: &str) -> ApiRequest {
        ApiRequest { key: Some(key.to_owned()), ..self }
    }

    /// Limits the time for the whole request.
    pub fn within(self, within: Duration) -> ApiRequest {
        ApiRequest { within: Some(within), ..self }
    }
}

#[derive(Debug)]
pub struct ApiResponse {
    address: String,
    status: u16,
    headers: HeaderMap,
    body: Body,
}

/// The used fields of a problem body. A proxy may have sent its own body, so each may be missing.
#[derive(Deserialize)]
struct Problem {
    detail: Option<String>,
    title: Option<String>,
    retained: Option<Retained>,
    #[serde(flatten)]
    answered: Option<Answered>,
}

impl Problem {
    fn message(self) -> Option<String> {
        self.detail.or(self.title)
    }
}

impl Gateway {
    /// Sends a request, and waits for the start of the response. An error status is an error.
    pub fn send(&self, request: &ApiRequest) -> Result<ApiResponse, ApiError> {
        let response = self.start(request)?;
        if (200..=299).contains(&response.status) { Ok(response) } else { Err(response.into_refusal()) }
    }

    /// Sends a request that has a command, and reads the whole response. No status is an error, since the caller decides
    /// what it means.
    pub fn exchange(&self, request: &ApiRequest) -> Result<Response, ApiError> {
        let response = self.start(request)?;
        let retry_after = response.header("Retry-After").and_then(|seconds| seconds.parse().ok());
        let (address, status) = (response.address.clone(), response.status);
        let code = response.header("Bowline-Code").map(str::to_owned);
        let mut body = Vec::new();
        match response.reader().take(MAX_PROBLEM).read_to_end(&mut body) {
            Ok(_) => {
                let (retry_after, body) = (retry_after.map(Duration::from_secs), String::from_utf8_lossy(&body));
                Ok(Response::Http { status, code, retry_after, body: body.into_owned() })
            }
            Err(error) => Err(ApiError::Unreachable { address, why: error.to_string() }),
        }
    }

    /// Sends a request, and waits for the start of the response, whatever its status.
    fn start(&self, request: &ApiRequest) -> Result<ApiResponse, ApiError> {
        let unreachable = |error: ureq::Error| self.unreachable(&error);
        let mut builder = Request::builder()
            .method(&request.method)
            .uri(self.address.http(&request.path))
            .header("Authorization", &self.bearer);
        if let Some(key) = &request.key {
            builder = builder.header("Idempotency-Key", key);
        }
        let result = match &request.body {
            Some(body) => {
                let http = builder.header("Content-Type", "application/json").body(body.to_string());
                let http = http.map_err(|error| unreachable(error.into()))?;
                self.agent.run(self.agent.configure_request(http).timeout_global(request.within).build())
            }
            None => {
                let http = builder.body(()).map_err(|error| unreachable(error.into()))?;
                self.agent.run(self.agent.configure_request(http).timeout_global(request.within).build())
            }
        };
        let (parts, body) = result.map_err(unreachable)?.into_parts();
        let (address, status) = (self.address.to_string(), parts.status.as_u16());
        Ok(ApiResponse { address, status, headers: parts.headers, body })
    }

    fn unreachable(&self, error: &ureq::Error) -> ApiError {
        let (address, why) = (self.address.to_string(), describe(error));
        match tls_error(error) {
            Some(rustls::Error::InvalidCertificate(_)) => ApiError::Untrusted { address, why },
            _ => ApiError::Unreachable { address, why },
        }
    }
}

/// The TLS error behind an error, if any.
fn tls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// An error message without the library's own prefixes.
fn describe(error: &ureq::Error) -> String {
    if let Some(error) = tls_error(error) {
        return describe_tls(error);
    }
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::HostNotFound => "host not found".to_owned(),
        ureq::Error::ConnectionFailed => "connection refused".to_owned(),
        ureq::Error::Timeout(_) => "timed out".to_owned(),
        other => other.to_string(),
    }
}

/// A TLS error in words.
fn describe_tls(error: &rustls::Error) -> String {
    use rustls::{CertificateError as Bad, InvalidMessage};
    let bad = match error {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            return "the server does not use TLS on this port; use http://".to_owned();
        }
        rustls::Error::InvalidCertificate(bad) => bad,
        other => return format!("TLS: {other}"),
    };
    let reason = match bad {
        Bad::UnknownIssuer => "its certificate has an unknown issuer",
        Bad::Expired | Bad::ExpiredContext { .. } => "its certificate has expired",
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => "its certificate is not valid yet",
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => "its certificate is not valid for this host name",
        Bad::Revoked => "its certificate has been revoked",
        // The type of this error belongs to a library that this crate does not use directly.
        Bad::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of a certificate authority, not of a server"
        }
        _ => "its certificate is not valid",
    };
    reason.to_owned()
}

impl ApiResponse {
    /// The value of a header, if it is present and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Reads the whole body and parses it as JSON.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        let (address, status) = (self.address.clone(), self.status);
        serde_json::from_slice(&self.bytes()?).map_err(|_| ApiError::NotBowline { address, status })
    }

    /// Reads the whole body.
    pub fn bytes(self) -> Result<Vec<u8>, ApiError> {
        let address = self.address.clone();
        let mut bytes = Vec::new();
        match self.reader().take(MAX_RESPONSE + 1).read_to_end(&mut bytes) {
            Ok(len) if len as u64 > MAX_RESPONSE => Err(ApiError::TooLong { address }),
            Ok(_) => Ok(bytes),
            Err(error) => Err(ApiError::Unreachable { address, why: error.to_string() }),
        }
    }

    /// Reads the start of the body into `buf`. If the connection breaks, returns what arrived before.
    pub fn read(self, buf: &mut [u8]) -> Result<usize, ApiError> {
        let address = self.address.clone();
        let (mut body, mut read) = (self.reader(), 0);
        while read < buf.len() {
            match body.read(&mut buf[read..]) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) if read > 0 => break,
                Err(error) => return Err(ApiError::Unreachable { address, why: error.to_string() }),
            }
        }
        Ok(read)
    }

    /// A body that is cut short reads as an error, not as an end.
    fn reader(self) -> impl Read {
        self.body.into_with_config().limit(u64::MAX).reader()
    }

    fn into_refusal(self) -> ApiError {
        let (address, status) = (self.address.clone(), self.status);
        // Only this header marks an error as the gateway's own. (A success is recognised by the shape of its body.)
        let Some(name) = self.header("Bowline-Code").map(str::to_owned) else {
            return ApiError::NotBowline { address, status };
        };
        let mut body = Vec::new();
        let read = self.reader().take(MAX_PROBLEM).read_to_end(&mut body);
        let problem = read.ok().and_then(|_| serde_json::from_slice::<Problem>(&body).ok());
        let oldest = problem.as_ref().and_then(|problem| problem.retained).map(|retained| retained.from);
        let answered = problem.as_ref().and_then(|problem| problem.answered.clone());
        let message = problem.and_then(Problem::message);
        let detail = message.unwrap_or_else(|| format!("the server refused the request: {name}"));
        ApiError::Refused { code: Code::from_name(&name), detail, oldest, answered }
    }
}

/// The human-readable message of a problem body.
pub(super) fn problem_message(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<Problem>(body).ok()?.message()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_errors_are_described_in_words() {
        use rustls::CertificateError as Bad;
        let untrusted = |bad| describe_tls(&rustls::Error::InvalidCertificate(bad));
        assert_eq!(untrusted(Bad::UnknownIssuer), "its certificate has an unknown issuer");
        assert_eq!(untrusted(Bad::Expired), "its certificate has expired");
        assert_eq!(untrusted(Bad::NotValidForName), "its certificate is not valid for this host name");
        assert_eq!(untrusted(Bad::BadEncoding), "its certificate is not valid");
        let plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        assert_eq!(describe_tls(&plain), "the server does not use TLS on this port; use http://");
    }
}
