//! What can go wrong with tokens and logins.

use std::io;
use std::path::PathBuf;

use bowline_host::home::HomeError;
use bowline_proto::ids::BadId;

use super::records::MAX_TOKENS;

/// Why something about tokens or logins could not be done.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// There is no usable state directory.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A file could not be read or written.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else is changing the file, and does not come to an end.
    #[error(
        "another process holds {path} and does not let go: it is stopped, or its disk hangs. Try again; `fuser {path}` \
         tells which it is"
    )]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// A file is not what was written to it.
    #[error(
        "{path} is damaged ({what}), so nobody can log in. Restore it from a backup, or remove it: all tokens and browser \
         logins end with it, and `bowline token create` and `bowline login-link` make new ones"
    )]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Where in it.
        what: String,
    },
    /// A file was written by a later Bowline.
    #[error("{path} was written by a newer Bowline; use that one")]
    Newer {
        /// Which.
        path: PathBuf,
    },
    /// The kernel gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    NoRandom(io::Error),
    /// Not a name for a token.
    #[error(transparent)]
    BadName(#[from] BadId),
    /// Not a lifetime for a token.
    #[error("a token lives for at least one second and at most 1,000 years")]
    BadTtl,
    /// There are as many tokens as there may be.
    #[error("there are {MAX_TOKENS} tokens, which is the most there can be; revoke one first")]
    TooManyTokens,
    /// Only a browser's login can log out.
    #[error("only a browser's login can log out; revoke a token instead")]
    NotALogin,
}

/// Why there is no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The code is unknown, was used, or is too old.
    #[error("this login link was already used, is too old or is mistyped; `bowline login-link` prints a new one")]
    BadCode,
    /// The login could not be kept.
    #[error(transparent)]
    Auth(#[from] AuthError),
}
