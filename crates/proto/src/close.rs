//! Why a connection ended, and what that means for the next one: the close codes and the classifier.

use std::time::Duration;

use crate::config::LONGEST_PATIENCE;

/// The session exited, or the client asked.
pub const NORMAL: u16 = 1000;
/// The server is going away.
pub const GOING: u16 = 1001;
/// Protocol error.
pub const PROTOCOL: u16 = 1002;
/// No close frame came: the network, or a crash.
pub const ABNORMAL: u16 = 1006;
/// Policy: more than was allowed.
pub const POLICY: u16 = 1008;
/// Too big.
pub const TOO_BIG: u16 = 1009;
/// Something failed inside.
pub const INTERNAL: u16 = 1011;
/// Overload: later.
pub const LATER: u16 = 1013;
/// Malformed request, hello or name.
pub const MALFORMED: u16 = 4400;
/// Not authenticated, or the token was revoked.
pub const NOT_AUTHENTICATED: u16 = 4401;
/// Not allowed.
pub const NOT_ALLOWED: u16 = 4403;
/// No such session.
pub const UNKNOWN: u16 = 4404;
/// No hello in time, or silence.
pub const SILENT: u16 = 4408;
/// The same client attached again on a newer connection.
pub const SUPERSEDED: u16 = 4409;
/// The session was forgotten.
pub const FORGOTTEN: u16 = 4410;
/// The ticket is spent, expired or unknown.
pub const TICKET: u16 = 4425;
/// No common protocol version.
pub const NO_VERSION: u16 = 4426;
/// Too many connections or attempts.
pub const TOO_MANY: u16 = 4429;

/// How a connection, or the attempt to make one, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// A close code, with its reason.
    Code {
        /// The code.
        code: u16,
        /// The reason, possibly empty.
        reason: String,
        /// `exit` had come, or the client itself asked for the close: what makes 1000 an end.
        done: bool,
    },
    /// The upgrade was refused with an HTTP status.
    Refused {
        /// The status.
        status: u16,
        /// It carried `Bowline-Code`: the refusal is ours, not some proxy's.
        ours: bool,
        /// `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The transport failed without either.
    Failed,
}

/// What the end of a connection means for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Over, and well.
    Ended,
    /// A resend would fail again.
    Permanent(Permanent),
    /// Permanent until a new login.
    NeedsLogin,
    /// A newer connection of the same client took over; this one ends quietly.
    Superseded,
    /// Fetch another ticket, then retry.
    FetchTicket,
    /// Retry.
    Transient {
        /// Not sooner than this, at most [`LONGEST_PATIENCE`].
        not_before: Option<Duration>,
    },
}

/// Which permanent failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permanent {
    /// What was sent is wrong, or too much.
    Protocol,
    /// Not allowed.
    NotAllowed,
    /// There is no such session.
    Unknown,
    /// The session was forgotten.
    Gone,
    /// No common protocol version.
    Version,
    /// Another refusal of ours.
    Other,
}

/// Sorts the end of a connection. Pure; the retry policy is the caller's.
pub fn classify(closed: &Closed) -> Class {
    match closed {
        Closed::Code { code: NORMAL, done: true, .. } => Class::Ended,
        Closed::Code { code, reason, .. } => match *code {
            PROTOCOL | 1003 | 1007 | POLICY | TOO_BIG => Class::Permanent(Permanent::Protocol),
            4400..=4499 => of_status(*code - 4000, retry_after(reason)),
            _ => transient(None),
        },
        Closed::Refused { status: status @ 400..=499, ours: true, retry_after } => of_status(*status, *retry_after),
        Closed::Refused { retry_after, .. } => transient(*retry_after),
        Closed::Failed => transient(None),
    }
}

fn of_status(status: u16, not_before: Option<Duration>) -> Class {
    match status {
        400 => Class::Permanent(Permanent::Protocol),
        401 => Class::NeedsLogin,
        403 => Class::Permanent(Permanent::NotAllowed),
        404 => Class::Permanent(Permanent::Unknown),
        408 => transient(None),
        409 => Class::Superseded,
        410 => Class::Permanent(Permanent::Gone),
        425 => Class::FetchTicket,
        426 => Class::Permanent(Permanent::Version),
        429 => transient(not_before),
        _ => Class::Permanent(Permanent::Other),
    }
}

/// Whoever answers may ask for patience, but not for any amount of it.
fn transient(not_before: Option<Duration>) -> Class {
    Class::Transient { not_before: not_before.map(|wait| wait.min(LONGEST_PATIENCE)) }
}

/// `retry_after=SECONDS`, anywhere in a close reason.
fn retry_after(reason: &str) -> Option<Duration> {
    let (_, rest) = reason.split_once("retry_after=")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().map(|seconds: u32| Duration::from_secs(seconds.into()))
}
