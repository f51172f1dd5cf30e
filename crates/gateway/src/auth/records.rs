//! The content of `auth.json`: names, times and digests of tokens, browser logins and login codes, never a secret.

use bowline_proto::api::TokenScope;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::serde::rfc3339;

use super::secret::Digest;

/// The most tokens; one more is refused.
pub(super) const MAX_TOKENS: usize = 1000;
/// The most browser logins; one more ends the login that was used longest ago.
pub(super) const MAX_LOGINS: usize = 256;
/// The most unused login codes; one more drops the oldest.
pub(super) const MAX_CODES: usize = 16;
/// How long an unused browser login stays valid.
pub const LOGIN_IDLE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a login code is valid.
pub const CODE_TTL: Duration = Duration::from_secs(10 * 60);
/// How much newer a last-use time must be than the one in the file to be written.
pub(super) const USE_WRITE_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// The version of the file format.
pub(super) const VERSION: u32 = 1;

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

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LoginRecord {
    /// The start of the browser's `User-Agent`.
    pub(super) label: String,
    pub(super) cookie: Digest,
    pub(super) key: Digest,
    #[serde(with = "rfc3339")]
    pub(super) created: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(super) used: OffsetDateTime,
}

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
    pub(super) fn is_expired(&self, now: OffsetDateTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl LoginRecord {
    pub(super) fn expires(&self) -> OffsetDateTime {
        self.used + LOGIN_IDLE
    }

    pub(super) fn is_expired(&self, now: OffsetDateTime) -> bool {
        self.expires() <= now
    }
}

impl Records {
    /// Drops expired records.
    pub(super) fn prune(&mut self, now: OffsetDateTime) {
        self.tokens.retain(|_, token| !token.is_expired(now));
        self.logins.retain(|_, login| !login.is_expired(now));
        self.codes.retain(|code| code.expires > now);
    }

    /// The index of the valid code with this text.
    pub(super) fn find_code(&self, text: &str, now: OffsetDateTime) -> Option<usize> {
        self.codes.iter().position(|code| code.expires > now && code.digest.matches(text))
    }

    /// Adds a code, and drops the oldest ones beyond [`MAX_CODES`].
    pub(super) fn add_code(&mut self, code: CodeRecord) {
        self.codes.push(code);
        let excess = self.codes.len().saturating_sub(MAX_CODES);
        self.codes.drain(..excess);
    }

    /// Adds a login, and drops those used longest ago beyond [`MAX_LOGINS`]. `used` has last-use times that may
    /// be newer than the file's.
    pub(super) fn add_login(&mut self, id: String, login: LoginRecord, used: impl Fn(&str) -> Option<OffsetDateTime>) {
        while self.logins.len() >= MAX_LOGINS {
            let age = |(id, login): &(&String, &LoginRecord)| used(id).unwrap_or(login.used).max(login.used);
            let Some(idle) = self.logins.iter().min_by_key(age).map(|(id, _)| id.clone()) else { break };
            self.logins.remove(&idle);
        }
        self.logins.insert(id, login);
    }

    /// Removes tokens and logins.
    pub(super) fn remove_all(&mut self, ids: &BTreeSet<String>) {
        self.tokens.retain(|id, _| !ids.contains(id));
        self.logins.retain(|id, _| !ids.contains(id));
    }

    /// Whether a token or login exists and has not expired.
    pub(super) fn is_valid(&self, id: &str, now: OffsetDateTime) -> bool {
        self.tokens.get(id).is_some_and(|token| !token.is_expired(now))
            || self.logins.get(id).is_some_and(|login| !login.is_expired(now))
    }

    /// When the next token or login expires, after `now`.
    pub(super) fn next_expiry(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let tokens = self.tokens.values().filter_map(|token| token.expires);
        tokens.chain(self.logins.values().map(LoginRecord::expires)).filter(|end| *end > now).min()
    }

    /// Whether this last-use time is enough newer than the one in the file to be worth a write.
    pub(super) fn should_write_use(&self, id: &str, used: OffsetDateTime) -> bool {
        match (self.tokens.get(id), self.logins.get(id)) {
            (Some(token), _) => token.used.is_none_or(|written| used - written >= USE_WRITE_INTERVAL),
            (None, Some(login)) => used - login.used >= USE_WRITE_INTERVAL,
            (None, None) => false,
        }
    }

    pub(super) fn mark_used(&mut self, id: &str, used: OffsetDateTime) {
        if let Some(token) = self.tokens.get_mut(id) {
            token.used = token.used.max(Some(used));
        }
        if let Some(login) = self.logins.get_mut(id) {
            login.used = login.used.max(used);
        }
    }
}
