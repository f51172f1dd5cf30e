//! Problem codes, and the body of an HTTP error (RFC 9457).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Offset;
use crate::agent::approval::Outcome;

/// Declares each code with its JSON name and its HTTP status.
// The name is a `tt` because the derive of `ToSchema` cannot read a `literal`.
macro_rules! codes {
    ($($(#[$doc:meta])+ $code:ident = $name:tt, $status:literal;)+) => {
        /// Why something was refused: a stable code for programs.
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        pub enum Code {
            $($(#[$doc])+ #[serde(rename = $name)] $code,)+
            /// A code added by a newer version.
            #[serde(other, rename = "unknown")]
            Unknown,
        }

        impl Code {
            /// Every code except `Unknown`.
            pub const ALL: &[Code] = &[$(Code::$code),+];

            /// The name used in JSON and in the `Bowline-Code` header.
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$code => $name,)+
                    Code::Unknown => "unknown",
                }
            }

            /// The HTTP status of a response with this code.
            pub fn status(self) -> u16 {
                match self {
                    $(Code::$code => $status,)+
                    Code::Unknown => 500,
                }
            }
        }
    };
}

codes! {
    /// The request or message is malformed.
    BadRequest = "bad_request", 400;
    /// The name or id is invalid.
    BadName = "bad_name", 400;
    /// The terminal size is out of range.
    BadSize = "bad_size", 400;
    /// Input does not continue where the earlier input ended; only on an attach.
    InputHole = "input_hole", 400;
    /// The request has no valid token or login.
    NotAuthenticated = "not_authenticated", 401;
    /// The token or login does not allow it, or another machine owns the session.
    NotAllowed = "not_allowed", 403;
    /// The request comes from a page of another origin.
    BadOrigin = "bad_origin", 403;
    /// The `Host` header does not name this gateway.
    BadHost = "bad_host", 403;
    /// No session has this id or name.
    UnknownSession = "unknown_session", 404;
    /// There is nothing at this path, or no token has this id.
    NotFound = "not_found", 404;
    /// The path does not support this method.
    BadMethod = "bad_method", 405;
    /// The request took too long to arrive.
    TooSlow = "too_slow", 408;
    /// A running session has this name.
    NameTaken = "name_taken", 409;
    /// The id was used for another request or command, or the session has been restarted.
    IdReused = "id_reused", 409;
    /// Another client, or the agent itself, has closed the approval; `outcome` and `by` say how.
    AlreadyAnswered = "already_answered", 409;
    /// The run that the command is about is not open.
    NotRunning = "not_running", 409;
    /// The session has ended.
    SessionGone = "session_gone", 410;
    /// The request or message is too large.
    TooLarge = "too_large", 413;
    /// The content is of a type that is not accepted.
    BadType = "bad_type", 415;
    /// The log does not have the requested bytes.
    OutOfRange = "out_of_range", 416;
    /// The working directory does not exist or cannot be entered.
    BadCwd = "bad_cwd", 422;
    /// The program does not exist or cannot be run.
    NoProgram = "no_program", 422;
    /// The server does not allow this mode of the agent.
    NotAllowedMode = "not_allowed_mode", 422;
    /// The ticket was used already, has expired or is unknown.
    BadTicket = "bad_ticket", 425;
    /// The protocol version or the kind of session is not supported.
    NoVersion = "no_version", 426;
    /// A limit on connections, attempts or queued work was reached; try again later.
    TooMany = "too_many", 429;
    /// Bowline itself failed.
    Internal = "internal", 500;
    /// The session or its files cannot be reached at the moment.
    Unreachable = "unreachable", 503;
    /// The disk is full.
    NoSpace = "no_space", 507;
}

impl Code {
    /// The code with this name, or [`Code::Unknown`].
    pub fn from_name(name: &str) -> Code {
        Code::ALL.iter().copied().find(|code| code.name() == name).unwrap_or(Code::Unknown)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The body of an HTTP error. The code is also in the `Bowline-Code` header.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Problem {
    /// Always `about:blank`.
    pub r#type: String,
    /// The name of the HTTP status.
    pub title: String,
    pub status: u16,
    pub code: Code,
    /// An explanation for people.
    pub detail: String,
    /// Only with `out_of_range`: the bytes that the log has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub retained: Option<Retained>,
    /// Only with `already_answered`: how the approval was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub outcome: Option<Outcome>,
    /// Only with `already_answered`, if a client answered it: the name of its token or login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub by: Option<String>,
}

/// The part of a session's output that is still in its log.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Retained {
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub from: Offset,
    /// Exclusive.
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub to: Offset,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_json_and_a_newer_code_is_unknown() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
            assert_eq!(serde_json::from_value::<Code>(code.name().into()).unwrap(), *code);
            assert_eq!(Code::from_name(code.name()), *code);
        }
        assert_eq!(serde_json::from_value::<Code>("from_the_future".into()).unwrap(), Code::Unknown);
        assert_eq!(Code::from_name("from_the_future"), Code::Unknown);
    }
}
