//! The bodies of the HTTP API, as the gateway and its clients read and write them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::ids::Epoch;
use crate::session::SessionInfo;
use crate::size::Size;

/// A session to start.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum NewSession {
    /// A program on a terminal.
    Terminal(NewTerminal),
}

/// A program to start on a terminal.
// The gateway writes it again, to tell a repeat of a request from another one with the same key, also after an upgrade. So the
// order of the fields stays, new ones come last, and defaults are left out.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewTerminal {
    /// 1 to 64 of `A-Z a-z 0-9 . _ -`, and a letter or digit first.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// The program and its arguments; the login shell if empty.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<String>>"))]
    pub argv: Vec<String>,
    /// An absolute path; the home directory if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub cwd: Option<String>,
    /// Variables beside those of a login.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<BTreeMap<String, String>>))]
    #[cfg_attr(test, ts(optional, type = "Record<string, string>"))]
    pub env: BTreeMap<String, String>,
    /// The terminal's size; 80 columns and 24 rows if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Size>))]
    #[cfg_attr(test, ts(optional, as = "Option<Size>"))]
    pub size: Option<Checked<Size>>,
    /// What to do when a running session has the name; `fail` if absent.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<IfExists>))]
    #[cfg_attr(test, ts(optional, as = "Option<IfExists>"))]
    pub if_exists: IfExists,
    /// Seconds without a viewer after which it ends; 0 for never.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    #[cfg_attr(test, ts(optional, as = "Option<u64>"))]
    pub detached_ttl: u64,
    /// Bytes of output that it keeps; the server's setting if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub log_size: Option<u64>,
    /// Lines that it keeps above the screen; the server's setting if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub scrollback: Option<u32>,
}

/// What to do when a running session has the name already.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum IfExists {
    /// Refuse to start another one.
    #[default]
    Fail,
    /// Take that one if it was started with the same command and directory, refuse otherwise.
    Return,
    /// End that one and start afresh.
    Restart,
}

/// A field that can be read with any value in it, so that a bad one is refused with a code of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Checked<T> {
    /// A value as it should be.
    Good(T),
    /// A value that is not valid, as it came.
    Bad(Value),
}

impl<T: DeserializeOwned> Checked<T> {
    /// The value, or what is wrong with it.
    pub fn get(self) -> serde_json::Result<T> {
        match self {
            Checked::Good(value) => Ok(value),
            Checked::Bad(value) => T::deserialize(value),
        }
    }
}

/// All sessions of a machine.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SessionList {
    /// Oldest first.
    pub sessions: Vec<SessionInfo>,
}

/// What to change in a session.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SessionChange {
    /// A new name.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// Seconds without a viewer after which it ends; 0 for never.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub detached_ttl: Option<u64>,
}

/// Which life of a session to restart.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Restart {
    /// The life that ended. If it is not the last one any more, the session stays as it is.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub epoch: Option<Epoch>,
}

/// Something for a session to do once.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewCommand {
    /// Chosen by the caller, 1 to 64 bytes. A second command with the same id is a repeat.
    pub id: String,
    /// `{"type":"input","text"}` or `{"type":"signal","name"}`.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    #[cfg_attr(test, ts(type = "unknown"))]
    pub command: Value,
}

/// A command that a session accepted.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommandAccepted {
    /// The command's id.
    pub id: String,
    /// Its place in the session's events.
    pub seq: u64,
    /// Whether it is a repeat.
    pub status: CommandStatus,
}

impl CommandAccepted {
    /// A command that was accepted, or had been before.
    pub fn new(id: String, seq: u64, duplicate: bool) -> CommandAccepted {
        let status = if duplicate { CommandStatus::Duplicate } else { CommandStatus::Accepted };
        CommandAccepted { id, seq, status }
    }
}

/// Whether a command was accepted now or before.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum CommandStatus {
    /// It was accepted now.
    Accepted,
    /// It had been accepted before, so nothing was done.
    Duplicate,
    /// A status that a newer version knows.
    #[serde(other)]
    Unknown,
}

/// Text that opens something: a token, a code, a key.
// It shows itself only to `reveal`, so that no log line holds it by accident.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A secret of this text.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// A one-time code, from the fragment of a login link.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Login {
    /// It works once.
    pub code: Secret,
}

/// What a page keeps of its login; the cookie comes in a header.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LoginReply {
    /// To be sent as `Bowline-Key` with every call, and as `key` in the hello of a WebSocket.
    pub key: Secret,
}

/// How much a caller may do; each scope includes those before it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    /// Look: list sessions, read screens and logs, attach without typing.
    Read,
    /// Also type, start, change and end sessions.
    Write,
    /// Also make and revoke tokens.
    Admin,
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TokenScope::Read => "read",
            TokenScope::Write => "write",
            TokenScope::Admin => "admin",
        })
    }
}

impl FromStr for TokenScope {
    type Err = BadScope;
    fn from_str(name: &str) -> Result<TokenScope, BadScope> {
        match name {
            "read" => Ok(TokenScope::Read),
            "write" => Ok(TokenScope::Write),
            "admin" => Ok(TokenScope::Admin),
            _ => Err(BadScope),
        }
    }
}

/// The text is not the name of a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope is read, write or admin")]
pub struct BadScope;

/// A token to make.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewToken {
    /// What it is for: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// What it allows.
    pub scope: TokenScope,
    /// Seconds for which it works; until it is revoked if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub ttl: Option<u64>,
}

/// A token that was made.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenReply {
    /// By which it is listed and revoked.
    pub id: String,
    /// Shown this once.
    pub token: Secret,
}

/// Everything that can be revoked.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenList {
    /// Tokens and browser logins, the oldest first.
    pub tokens: Vec<TokenInfo>,
}

/// A token or a browser login, without its secret.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenInfo {
    /// By which it is revoked.
    pub id: String,
    /// A token or a login.
    pub kind: TokenKind,
    /// The token's name, or how the browser described itself.
    pub name: String,
    /// What it allows.
    pub scope: TokenScope,
    /// When it was made, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created: String,
    /// When it ends by itself.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires: Option<String>,
    /// When it was last used, to within a day.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub used: Option<String>,
}

/// What can be revoked.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// A token that was made for a program.
    Token,
    /// A browser that logged in.
    Login,
}

/// A code that logs one browser in.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CodeReply {
    /// For the fragment of a login link: `URL/#login=CODE`. It works once.
    pub code: Secret,
    /// Until when, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires: String,
}

/// A ticket for a WebSocket or event stream that can send neither cookie nor header.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TicketReply {
    /// To be sent as `?ticket=`, once.
    pub ticket: Secret,
    /// Until when, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires: String,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Null is as if the field were left out.
fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bad_field_is_read_and_says_what_is_wrong_when_it_is_used() {
        let terminal: NewTerminal = serde_json::from_value(json!({"size": "big"})).unwrap();
        assert!(terminal.size.unwrap().get().is_err());
        let size = json!({"cols": 100, "rows": 30});
        let terminal: NewTerminal = serde_json::from_value(json!({"size": size})).unwrap();
        assert_eq!(json!(terminal.size.unwrap().get().unwrap()), size);
    }

    #[test]
    fn a_new_terminal_is_written_without_its_defaults() {
        let written = |terminal: &NewTerminal| serde_json::to_value(terminal).unwrap();
        assert_eq!(written(&NewTerminal::default()), json!({}));
        let nulls = json!({
            "name": null, "argv": [], "cwd": null, "env": {}, "size": null, "if_exists": null, "detached_ttl": 0,
            "log_size": null, "scrollback": null,
        });
        assert_eq!(written(&serde_json::from_value(nulls).unwrap()), json!({}));
    }

    #[test]
    fn a_secret_stays_out_of_debug_output() {
        let login = Login { code: Secret::new("open sesame".into()) };
        assert!(!format!("{login:?}").contains("sesame"));
    }

    #[test]
    fn r48_scopes_include_each_other_and_are_written_as_words() {
        assert!(TokenScope::Read < TokenScope::Write && TokenScope::Write < TokenScope::Admin);
        for scope in [TokenScope::Read, TokenScope::Write, TokenScope::Admin] {
            assert_eq!(scope.to_string().parse(), Ok(scope));
            assert_eq!(serde_json::to_string(&scope).unwrap(), format!("\"{scope}\""));
        }
        assert_eq!("root".parse::<TokenScope>(), Err(BadScope));
    }
}
