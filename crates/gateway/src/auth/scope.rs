//! How much a caller may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much a caller may do; each scope includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Look: list sessions, read screens and logs, attach without typing.
    Read,
    /// Also type, start, change and end sessions.
    Write,
    /// Also make and revoke tokens.
    Admin,
}

/// Why a word is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope is read, write or admin")]
pub struct BadScope;

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        })
    }
}

impl FromStr for Scope {
    type Err = BadScope;
    fn from_str(word: &str) -> Result<Scope, BadScope> {
        match word {
            "read" => Ok(Scope::Read),
            "write" => Ok(Scope::Write),
            "admin" => Ok(Scope::Admin),
            _ => Err(BadScope),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r48_scopes_include_each_other_and_are_written_as_words() {
        assert!(Scope::Read < Scope::Write && Scope::Write < Scope::Admin);
        for scope in [Scope::Read, Scope::Write, Scope::Admin] {
            assert_eq!(scope.to_string().parse(), Ok(scope));
            assert_eq!(serde_json::to_string(&scope).unwrap(), format!("\"{scope}\""));
        }
        assert_eq!("root".parse::<Scope>(), Err(BadScope));
    }
}
