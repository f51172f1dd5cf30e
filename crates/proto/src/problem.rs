//! Why something is refused: a code for programs, and the body that carries it over HTTP (RFC 9457).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Offset;

/// Each code with its name in JSON and the HTTP status that goes with it.
// The name is a `tt`: the derive of `ToSchema` does not see through a `literal`.
macro_rules! codes {
    ($($(#[$doc:meta])+ $code:ident = $name:tt, $status:literal;)+) => {
        /// A stable code for programs.
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        pub enum Code {
            $($(#[$doc])+ #[serde(rename = $name)] $code,)+
            /// A code that a newer version knows.
            #[serde(other, rename = "unknown")]
            Unknown,
        }

        impl Code {
            /// Every code but `Unknown`.
            pub const ALL: &[Code] = &[$(Code::$code),+];

            /// Its name, as it is in JSON and in the header `Bowline-Code`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$code => $name,)+
                    Code::Unknown => "unknown",
                }
            }

            /// The HTTP status of a refusal with this code.
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
    /// The request or message cannot be understood.
    BadRequest = "bad_request", 400;
    /// Not a valid name or id.
    BadName = "bad_name", 400;
    /// Not a size that a terminal can have.
    BadSize = "bad_size", 400;
    /// Input that does not follow on what came before it; only on an attach.
    InputHole = "input_hole", 400;
    /// No valid token or login.
    NotAuthenticated = "not_authenticated", 401;
    /// The token or login does not allow it, or another machine owns the session.
    NotAllowed = "not_allowed", 403;
    /// A browser's page of another origin.
    BadOrigin = "bad_origin", 403;
    /// A `Host` that is not the gateway's.
    BadHost = "bad_host", 403;
    /// No session has this id or name.
    UnknownSession = "unknown_session", 404;
    /// Nothing is at this path, or no token has this id.
    NotFound = "not_found", 404;
    /// The path has no such method.
    BadMethod = "bad_method", 405;
    /// The request took too long to arrive.
    TooSlow = "too_slow", 408;
    /// A running session has the name.
    NameTaken = "name_taken", 409;
    /// Another request or command had this id, or the session was started again.
    IdReused = "id_reused", 409;
    /// The session has ended.
    SessionGone = "session_gone", 410;
    /// More than fits.
    TooLarge = "too_large", 413;
    /// Bytes that the log does not keep.
    OutOfRange = "out_of_range", 416;
    /// Not a directory that can be entered.
    BadCwd = "bad_cwd", 422;
    /// Not a program that can be run.
    NoProgram = "no_program", 422;
    /// The ticket was used, or is too old.
    BadTicket = "bad_ticket", 425;
    /// A version or a kind of session that this end does not know.
    NoVersion = "no_version", 426;
    /// Too many of something; try again later.
    TooMany = "too_many", 429;
    /// Something of Bowline's failed.
    Internal = "internal", 500;
    /// The session or its files cannot be reached now.
    Unreachable = "unreachable", 503;
    /// The disk is full.
    NoSpace = "no_space", 507;
}

impl Code {
    /// The code of this name; [`Code::Unknown`] for one of a newer version.
    pub fn from_name(name: &str) -> Code {
        Code::ALL.iter().copied().find(|code| code.name() == name).unwrap_or(Code::Unknown)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The body of a refusal over HTTP. The code is also in the header `Bowline-Code`.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Problem {
    /// Always `about:blank`.
    pub r#type: String,
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// For programs.
    pub code: Code,
    /// For people.
    pub detail: String,
    /// With `out_of_range`: what the log keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub retained: Option<Retained>,
}

/// The part of a session's output that its log keeps.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Retained {
    /// The oldest byte.
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub from: Offset,
    /// One past the newest.
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub to: Offset,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_json_agree_and_a_newer_code_is_unknown() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
            assert_eq!(serde_json::from_value::<Code>(code.name().into()).unwrap(), *code);
            assert_eq!(Code::from_name(code.name()), *code);
        }
        assert_eq!(serde_json::from_value::<Code>("from_the_future".into()).unwrap(), Code::Unknown);
        assert_eq!(Code::from_name("from_the_future"), Code::Unknown);
    }
}
