//! Close codes, and what the end of a connection means for reconnecting.

use std::time::Duration;

use crate::config::MAX_RETRY_AFTER;

/// The session exited, or the client closed the connection.
pub const NORMAL: u16 = 1000;
/// The server is shutting down.
pub const GOING_AWAY: u16 = 1001;
pub const PROTOCOL: u16 = 1002;
/// The connection ended without a close frame.
pub const ABNORMAL: u16 = 1006;
/// A text was not UTF-8.
pub const NOT_UTF8: u16 = 1007;
/// The client exceeded a limit.
pub const POLICY: u16 = 1008;
/// A message was too long.
pub const TOO_BIG: u16 = 1009;
/// The server failed.
pub const INTERNAL: u16 = 1011;
/// The server is overloaded; try again later.
pub const TRY_AGAIN_LATER: u16 = 1013;
/// A request, hello or name is malformed.
pub const MALFORMED: u16 = 4400;
/// Not authenticated, or the token was revoked.
pub const NOT_AUTHENTICATED: u16 = 4401;
pub const NOT_ALLOWED: u16 = 4403;
/// There is no such session.
pub const UNKNOWN: u16 = 4404;
/// No hello arrived in time, or the client was silent for too long.
pub const TIMED_OUT: u16 = 4408;
/// The same client attached again on a newer connection.
pub const SUPERSEDED: u16 = 4409;
/// The session was forgotten.
pub const FORGOTTEN: u16 = 4410;
/// The ticket was used already, has expired or is unknown.
pub const TICKET: u16 = 4425;
/// The client and the server have no protocol version in common.
pub const NO_VERSION: u16 = 4426;
/// Too many connections or attempts.
pub const TOO_MANY: u16 = 4429;

/// How a connection, or an attempt to make one, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// With a close code.
    Code {
        code: u16,
        /// May be empty.
        reason: String,
        /// `exit` was received, or the client itself closed the connection. Only then does 1000 end the link.
        done: bool,
    },
    /// With an HTTP status instead of an upgrade.
    Refused {
        status: u16,
        /// The response has a `Bowline-Code` header, so it comes from a gateway and not from a proxy.
        from_gateway: bool,
        /// From the `Retry-After` header.
        retry_after: Option<Duration>,
    },
    /// Without a close code or an HTTP status.
    Failed,
}

/// What the end of a connection means for reconnecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseClass {
    /// The link ended normally.
    Ended,
    /// Another attempt would fail in the same way.
    Permanent(PermanentFailure),
    /// Another attempt fails until the user logs in again.
    NeedsLogin,
    /// A newer connection of the same client took over.
    Superseded,
    /// Fetch a new ticket, then retry.
    FetchTicket,
    /// Retry.
    Transient {
        /// The shortest wait, at most [`MAX_RETRY_AFTER`].
        not_before: Option<Duration>,
    },
}

/// A failure that another attempt cannot fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermanentFailure {
    /// The client sent something malformed, or too much.
    Protocol,
    NotAllowed,
    /// There is no such session.
    Unknown,
    /// The session was forgotten.
    Gone,
    /// The client and the server have no protocol version in common.
    Version,
    /// Any other refusal by the gateway or the session.
    Other,
}

/// Classifies the end of a connection. The caller decides when to retry.
pub fn classify(closed: &ConnectionEnd) -> CloseClass {
    match closed {
        ConnectionEnd::Code { code: NORMAL, done: true, .. } => CloseClass::Ended,
        ConnectionEnd::Code { code, reason, .. } => match *code {
            PROTOCOL | 1003 | 1007 | POLICY | TOO_BIG => CloseClass::Permanent(PermanentFailure::Protocol),
            4400..=4499 => classify_status(*code - 4000, retry_after(reason)),
            _ => transient(None),
        },
        ConnectionEnd::Refused { status: status @ 400..=499, from_gateway: true, retry_after } => {
            classify_status(*status, *retry_after)
        }
        ConnectionEnd::Refused { retry_after, .. } => transient(*retry_after),
        ConnectionEnd::Failed => transient(None),
    }
}

fn classify_status(status: u16, not_before: Option<Duration>) -> CloseClass {
    match status {
        400 => CloseClass::Permanent(PermanentFailure::Protocol),
        401 => CloseClass::NeedsLogin,
        403 => CloseClass::Permanent(PermanentFailure::NotAllowed),
        404 => CloseClass::Permanent(PermanentFailure::Unknown),
        408 => transient(None),
        409 => CloseClass::Superseded,
        410 => CloseClass::Permanent(PermanentFailure::Gone),
        425 => CloseClass::FetchTicket,
        426 => CloseClass::Permanent(PermanentFailure::Version),
        429 => transient(not_before),
        _ => CloseClass::Permanent(PermanentFailure::Other),
    }
}

fn transient(not_before: Option<Duration>) -> CloseClass {
    CloseClass::Transient { not_before: not_before.map(|wait| wait.min(MAX_RETRY_AFTER)) }
}

/// Finds `retry_after=SECONDS` anywhere in a close reason.
fn retry_after(reason: &str) -> Option<Duration> {
    let (_, rest) = reason.split_once("retry_after=")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().map(|seconds: u32| Duration::from_secs(seconds.into()))
}
