//! What is kept of tokens, browser logins and login codes: names, times and digests, never a secret.

use bowline_proto::api::TokenScope;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::serde::rfc3339;

use super::secret::Digest;

/// Tokens there can be; another one is refused.
pub(super) const MAX_TOKENS: usize = 1000;
/// Browser logins there can be; another one ends the one that was used longest ago.
pub(super) const MAX_LOGINS: usize = 256;
/// Login codes that wait to be used; another one ends the oldest.
pub(super) const MAX_CODES: usize = 16;
/// How long a browser stays logged in without being used.
pub const LOGIN_IDLE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a login code can be used.
pub const CODE_LIFE: Duration = Duration::from_secs(10 * 60);
/// How old the time of last use in the file grows before it is written again.
pub(super) const USED_GRAIN: Duration = Duration::from_secs(24 * 3600);
/// The form of the file.
pub(super) const VERSION: u32 = 1;

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Records {
    pub(super) version: u32,
    /// By id.
    pub(super) tokens: BTreeMap<String, TokenRecord>,
    /// By id.
    pub(super) logins: BTreeMap<String, LoginRecord>,
    /// Oldest first.
    pub(super) codes: Vec<CodeRecord>,
}

/// A token for programs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TokenRecord {
    pub(super) name: String,
    pub(super) scope: TokenScope,
    pub(super) digest: Digest,
    #[serde(with = "rfc3339")]
    pub(super) created: OffsetDateTime,
    #[serde(default, with = "rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<OffsetDateTime>,
    #[serde(default, with = "rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<OffsetDateTime>,
}

/// A browser that has logged in.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LoginRecord {
    pub(super) label: String,
    pub(super) cookie: Digest,
    pub(super) key: Digest,
    #[serde(with = "rfc3339")]
    pub(super) created: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(super) used: OffsetDateTime,
}

/// A code that waits to be used.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CodeRecord {
    pub(super) digest: Digest,
    #[serde(with = "rfc3339")]
    pub(super) expires: OffsetDateTime,
}

impl Default for Records {
    fn default() -> Records {
        Records { version: VERSION, tokens: BTreeMap::new(), logins: BTreeMap::new(), codes: Vec::new() }
    }
}

impl TokenRecord {
    pub(super) fn is_over(&self, now: OffsetDateTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl LoginRecord {
    pub(super) fn expires(&self) -> OffsetDateTime {
        self.used + LOGIN_IDLE
    }

    pub(super) fn is_over(&self, now: OffsetDateTime) -> bool {
        self.expires() <= now
    }
}

impl Records {
    /// Drops what is too old.
    pub(super) fn prune(&mut self, now: OffsetDateTime) {
        self.tokens.retain(|_, token| !token.is_over(now));
        self.logins.retain(|_, login| !login.is_over(now));
        self.codes.retain(|code| code.expires > now);
    }

    /// Where the code is that this text is.
    pub(super) fn find_code(&self, text: &str, now: OffsetDateTime) -> Option<usize> {
        self.codes.iter().position(|code| code.expires > now && code.digest.matches(text))
    }

    /// Adds a code; the oldest goes when there are too many.
    pub(super) fn add_code(&mut self, code: CodeRecord) {
        self.codes.push(code);
        let excess = self.codes.len().saturating_sub(MAX_CODES);
        self.codes.drain(..excess);
    }

    /// Adds a login; those used longest ago go when there are too many.
    pub(super) fn add_login(&mut self, id: String, login: LoginRecord, used: impl Fn(&str) -> Option<OffsetDateTime>) {
        while self.logins.len() >= MAX_LOGINS {
            let age = |(id, login): &(&String, &LoginRecord)| used(id).unwrap_or(login.used).max(login.used);
            let Some(idle) = self.logins.iter().min_by_key(age).map(|(id, _)| id.clone()) else { break };
            self.logins.remove(&idle);
        }
        self.logins.insert(id, login);
    }

    /// Removes a token or a login; whether there was one.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        self.tokens.remove(id).is_some() || self.logins.remove(id).is_some()
    }

    /// Whether a token or login is there and not too old.
    pub(super) fn is_good(&self, id: &str, now: OffsetDateTime) -> bool {
        self.tokens.get(id).is_some_and(|token| !token.is_over(now))
            || self.logins.get(id).is_some_and(|login| !login.is_over(now))
    }

    /// When, after now, the next token or login ends by itself.
    pub(super) fn next_end(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let tokens = self.tokens.values().filter_map(|token| token.expires);
        tokens.chain(self.logins.values().map(LoginRecord::expires)).filter(|end| *end > now).min()
    }

    /// Whether this use is so much newer than the written one that it is worth a write.
    pub(super) fn is_news(&self, id: &str, used: OffsetDateTime) -> bool {
        match (self.tokens.get(id), self.logins.get(id)) {
            (Some(token), _) => token.used.is_none_or(|written| used - written >= USED_GRAIN),
            (None, Some(login)) => used - login.used >= USED_GRAIN,
            (None, None) => false,
        }
    }

    /// Notes a use.
    pub(super) fn mark_used(&mut self, id: &str, used: OffsetDateTime) {
        if let Some(token) = self.tokens.get_mut(id) {
            token.used = token.used.max(Some(used));
        }
        if let Some(login) = self.logins.get_mut(id) {
            login.used = login.used.max(used);
        }
    }
}
