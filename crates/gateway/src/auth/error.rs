//! Errors of tokens and logins.

use std::io;
use std::path::PathBuf;

use bowline_host::home::HomeError;
use bowline_proto::ids::BadId;

use super::records::MAX_TOKENS;

/// Why an operation on tokens or logins failed.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// Another process holds the lock for too long.
    #[error(
        "another process holds the lock {path}; it may be stopped, or its disk may hang. Try again; `fuser {path}` shows \
         the process"
    )]
    Busy { path: PathBuf },
    #[error(
        "{path} is damaged ({what}), so logging in is not possible. Restore it from a backup, or remove it. Removing it \
         revokes all tokens and browser logins; create new ones with `bowline token create` and `bowline login-link`"
    )]
    Damaged {
        path: PathBuf,
        /// The position of the damage: its line and column, never the content.
        what: String,
    },
    #[error("{path} was written by a newer version of Bowline; use that version")]
    Newer { path: PathBuf },
    #[error("cannot get random bytes from the system: {0}")]
    NoRandom(io::Error),
    #[error(transparent)]
    BadName(#[from] BadId),
    #[error("a token's lifetime must be at least one second and at most 1,000 years")]
    BadTtl,
    #[error("the limit of {MAX_TOKENS} tokens is reached; revoke one first")]
    TooManyTokens,
    #[error("the token or login of this request was just revoked")]
    Revoked,
    #[error("only a browser login can log out; revoke the token instead")]
    NotALogin,
}

/// Why a browser could not log in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("this login link was already used, has expired or is mistyped; get a new one with `bowline login-link`")]
    BadCode,
    #[error(transparent)]
    Auth(#[from] AuthError),
}
