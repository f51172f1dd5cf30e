//! The request and response bodies of the HTTP API.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::agent::approval::Approval;
use crate::agent::command::FirstPrompt;
use crate::agent::event::RunId;
use crate::agent::state::ConversationState;
use crate::ids::{Epoch, SessionId};
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
    /// A conversation with a coding agent.
    Agent(NewAgent),
}

/// A program to start on a terminal.
// The gateway compares the serialised form to distinguish a repeated request from another one with the same
// idempotency key, also after an upgrade. So fields keep their order, new ones come last, and defaults are left out.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewTerminal {
    /// 1 to 64 characters from `A-Z a-z 0-9 . _ -`, starting with a letter or digit.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// The program and its arguments; the login shell if empty.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<String>>"))]
    pub argv: Vec<String>,
    /// An absolute path, or one that starts with `~`; the home directory if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub cwd: Option<String>,
    /// Variables to add to the environment of a login.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<BTreeMap<String, String>>))]
    #[cfg_attr(test, ts(optional, type = "Record<string, string>"))]
    pub env: BTreeMap<String, String>,
    /// 80 columns and 24 rows if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Size>))]
    #[cfg_attr(test, ts(optional, as = "Option<Size>"))]
    pub size: Option<Checked<Size>>,
    /// What to do if a running session has the name; `fail` if absent.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<IfExists>))]
    #[cfg_attr(test, ts(optional, as = "Option<IfExists>"))]
    pub if_exists: IfExists,
    /// End the session after this many seconds without a viewer; 0 for never.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    #[cfg_attr(test, ts(optional, as = "Option<u64>"))]
    pub detached_ttl: u64,
    /// Bytes of output to keep in the log; the server's setting if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub log_size: Option<u64>,
    /// Lines to keep above the screen; the server's setting if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub scrollback: Option<u32>,
}

/// A conversation with a coding agent to start. The agent's command and environment come from the server's table.
// As with `NewTerminal`, the serialised form is compared.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewAgent {
    /// The agent's name in the server's table, such as `gemini`.
    pub agent: String,
    /// The project's directory: an absolute path, or one that starts with `~`.
    pub cwd: String,
    /// 1 to 64 characters from `A-Z a-z 0-9 . _ -`, starting with a letter or digit.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// A conversation of this agent to continue: 1 to 128 characters from `A-Z a-z 0-9 . _ : -`, not starting with `-`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub resume: Option<String>,
    /// One of the modes that the server allows for this agent; the agent's own default if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub mode: Option<String>,
    /// The agent's name for a model: 1 to 128 bytes without spaces, not starting with `-`; the agent's own default if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub model: Option<String>,
    /// Starts the first run.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub prompt: Option<FirstPrompt>,
    #[serde(default, skip_serializing)]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    #[cfg_attr(test, ts(skip))]
    pub argv: Forbidden,
    #[serde(default, skip_serializing)]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    #[cfg_attr(test, ts(skip))]
    pub env: Forbidden,
}

/// A field that may not be there. Ignoring it would mislead the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forbidden;

impl<'de> Deserialize<'de> for Forbidden {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Forbidden, D::Error> {
        Err(serde::de::Error::custom("an agent session takes neither argv nor env: the server's table has them"))
    }
}

/// What to do if a running session already has the name.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum IfExists {
    /// Refuse to start a session.
    #[default]
    Fail,
    /// Return the running session if its command and directory are the same, otherwise refuse.
    Return,
    /// End the running session and start a new one.
    Restart,
}

/// A field that accepts any JSON value, so that an invalid one can be refused with a specific problem code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Checked<T> {
    Good(T),
    /// An invalid value, as received.
    Bad(Value),
}

impl<T: DeserializeOwned> Checked<T> {
    /// The value, or the error that explains why it is invalid.
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

/// The agents that sessions may run.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AgentList {
    /// By name, in alphabetical order.
    pub agents: Vec<AgentStatus>,
}

/// An agent of the server's table, and whether its program can be run.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AgentStatus {
    /// What a session is started with.
    pub name: String,
    /// The name that users see.
    pub label: String,
    pub protocol: AgentProtocol,
    /// False only if the program certainly cannot be run.
    pub available: bool,
    /// What the program says its version is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub version: Option<String>,
    /// What is wrong and what to do, for people. An available agent can have one, such as a missing login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub problem: Option<String>,
    /// A command that installs the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub install: Option<String>,
    /// The modes that a client may choose, as far as they are known.
    pub modes: Vec<String>,
    /// The models that the agent offered in its newest session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub models: Option<Vec<String>>,
}

/// What an agent's program speaks.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum AgentProtocol {
    /// The Agent Client Protocol.
    Acp,
    /// That of Claude Code.
    Claude,
    /// That of Codex.
    Codex,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// All approvals that wait for an answer.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ApprovalList {
    /// By session, oldest session first; each session's oldest first.
    pub approvals: Vec<WaitingApproval>,
}

/// An approval of a session.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WaitingApproval {
    /// The session's id.
    pub session: SessionId,
    pub approval: Approval,
}

/// A page of the history of an agent session.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EventPage {
    /// The current epoch: with `next`, the cursor of what follows.
    pub epoch: Epoch,
    /// The first number of the page.
    pub start: u64,
    /// The number after the last one of the page.
    pub next: u64,
    /// In ascending order.
    pub events: Vec<EventRecord>,
    /// There are more events in the direction of paging: newer ones with `after`, older ones otherwise.
    pub more: bool,
    /// The state of the conversation after the page. Only if the page ends where the journal does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub state: Option<ConversationState>,
}

/// An event of an agent session, as its journal has it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EventRecord {
    pub seq: u64,
    /// The first number that it stands for, if it stands for several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub from: Option<u64>,
    /// When it was recorded, RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// An object with a `type`.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    #[cfg_attr(test, ts(type = "unknown"))]
    pub event: Value,
}

/// Changes to a session; absent fields stay as they are.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SessionChange {
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<String>,
    /// End the session after this many seconds without a viewer; 0 for never.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub detached_ttl: Option<u64>,
}

/// A request to restart an exited or lost session.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Restart {
    /// The epoch to replace. If the session has a newer one already, nothing is restarted.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub epoch: Option<Epoch>,
}

/// A command for a session, to be run exactly once.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewCommand {
    /// 1 to 64 bytes, chosen by the caller. A second command with the same id is not run.
    pub id: String,
    /// For a terminal `{"type":"input","text"}` or `{"type":"signal","name"}`; for an agent session
    /// `{"type":"prompt","text","attachments"?}`, `{"type":"abort","run","queue"?}`, `{"type":"steer","run","text"}`,
    /// `{"type":"set","mode"?,"model"?,"option"?}`, `{"type":"approve","approval","option"?}`,
    /// `{"type":"deny","approval","option"?,"reason"?}` or `{"type":"answer","approval","answers"}`.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    #[cfg_attr(test, ts(type = "unknown"))]
    pub command: Value,
}

/// The response to an accepted command.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommandAccepted {
    /// The command's id.
    pub id: String,
    /// The number of the command in the session's journal.
    pub seq: u64,
    /// The run that a prompt started, or that the command is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[cfg_attr(test, ts(optional, type = "string"))]
    pub run: Option<RunId>,
    pub status: CommandStatus,
}

impl CommandAccepted {
    pub fn new(id: String, seq: u64, run: Option<RunId>, duplicate: bool) -> CommandAccepted {
        let status = if duplicate { CommandStatus::Duplicate } else { CommandStatus::Accepted };
        CommandAccepted { id, seq, run, status }
    }
}

/// Whether a command was accepted now or earlier.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum CommandStatus {
    Accepted,
    /// The command had been accepted before and was not run again.
    Duplicate,
    /// A value added by a newer version.
    #[serde(other)]
    Unknown,
}

/// The response to an upload: a file that prompts of the session can attach.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct UploadReply {
    /// What a prompt names it by. The same content under the same name has the same id.
    pub id: String,
    /// The name that it was given.
    pub name: String,
    /// The media type of the content, such as `image/png`.
    pub r#type: String,
    pub bytes: u64,
}

/// A secret, such as a token, a login code or a key.
// Only `reveal` returns the text, so that it cannot end up in a log by accident.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// A request to log a browser in.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Login {
    /// The one-time code from the fragment of a login link.
    pub code: Secret,
}

/// The response to a login. The cookie is in a header.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LoginReply {
    /// Send it as `Bowline-Key` with every HTTP request, and as `key` in the hello of a WebSocket.
    pub key: Secret,
}

/// What a caller may do. Each scope includes the ones before it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    /// List sessions, read screens and logs, and attach read-only.
    Read,
    /// Also type into sessions, and start, change and end them.
    Write,
    /// Also create and revoke tokens.
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

/// A text is not the name of a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a scope: use read, write or admin")]
pub struct BadScope;

/// A token to create.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NewToken {
    /// 1 to 64 characters from `A-Z a-z 0-9 . _ -`.
    pub name: String,
    pub scope: TokenScope,
    /// Seconds until the token expires; it never expires if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(test, ts(optional))]
    pub ttl: Option<u64>,
}

/// A new token.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenReply {
    /// The id to list and revoke the token by.
    pub id: String,
    /// The server keeps only a hash, so this is the only time the token is shown.
    pub token: Secret,
}

/// All tokens and browser logins.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenList {
    /// Oldest first.
    pub tokens: Vec<TokenInfo>,
}

/// A token or a browser login, without its secret.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenInfo {
    /// The id to revoke it by.
    pub id: String,
    pub kind: TokenKind,
    /// The token's name, or the browser's description of itself.
    pub name: String,
    pub scope: TokenScope,
    /// RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created: String,
    /// RFC 3339 UTC; null if it does not expire.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires: Option<String>,
    /// When it was last used, RFC 3339 UTC, accurate to a day.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub used: Option<String>,
    /// The token or login that made it, by its id, or `user:NAME` for a user of a proxy. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub made_by: Option<String>,
}

/// What a call that revokes a token or login did.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Revoked {
    /// The ids of the tokens and logins that were revoked.
    pub revoked: Vec<String>,
    /// The tokens and logins that were made under it, directly or not, and are still valid.
    pub made: Vec<TokenInfo>,
}

/// Whether an entry is a token or a browser login.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    Token,
    Login,
}

/// A code that logs one browser in.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CodeReply {
    /// Goes into the fragment of a login link: `URL/#login=CODE`. Works once.
    pub code: Secret,
    /// RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires: String,
}

/// A ticket for a WebSocket or event stream that can send neither cookie nor header.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TicketReply {
    /// Send it as `?ticket=`. Works once.
    pub ticket: Secret,
    /// RFC 3339 UTC.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires: String,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads null as if the field were absent.
fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bad_field_is_accepted_when_read_and_refused_when_used() {
        let terminal: NewTerminal = serde_json::from_value(json!({"size": "big"})).unwrap();
        assert!(terminal.size.unwrap().get().is_err());
        let size = json!({"cols": 100, "rows": 30});
        let terminal: NewTerminal = serde_json::from_value(json!({"size": size})).unwrap();
        assert_eq!(json!(terminal.size.unwrap().get().unwrap()), size);
    }

    #[test]
    fn a_new_terminal_is_serialised_without_its_defaults() {
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
    fn r48_scopes_are_ordered_and_keep_their_names_in_text_and_json() {
        assert!(TokenScope::Read < TokenScope::Write && TokenScope::Write < TokenScope::Admin);
        for scope in [TokenScope::Read, TokenScope::Write, TokenScope::Admin] {
            assert_eq!(scope.to_string().parse(), Ok(scope));
            assert_eq!(serde_json::to_string(&scope).unwrap(), format!("\"{scope}\""));
        }
        assert_eq!("root".parse::<TokenScope>(), Err(BadScope));
    }
}
