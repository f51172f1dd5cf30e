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
    #[serde(flatten)]
    pub(super) made: Made,
}

/// Which caller made a token or login.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    /// The id of the token or login, which may be gone by now, or `user:NAME`. `None` if it is not known.
    #[serde(rename = "made_by", default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
    /// If that token or login is gone: the one under which it was itself made. Otherwise a maker that removes itself, or
    /// expires, would cut what it made off from its own maker.
    #[serde(rename = "made_under", default, skip_serializing_if = "Option::is_none")]
    pub(super) under: Option<String>,
}

impl Made {
    fn parent(&self) -> Option<&String> {
        self.under.as_ref().or(self.by.as_ref())
    }

    /// Whether this was made by, or under, one of these.
    fn is_under(&self, ids: &BTreeSet<String>) -> bool {
        [&self.by, &self.under].into_iter().flatten().any(|maker| ids.contains(maker))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LoginRecord {
    /// What browser it is, as [`browser_name`](super::browser::browser_name) says.
    pub(super) label: String,
    pub(super) cookie: Digest,
    pub(super) key: Digest,
    #[serde(with = "rfc3339")]
    pub(super) created: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(super) used: OffsetDateTime,
    #[serde(flatten)]
    pub(super) made: Made,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CodeRecord {
    pub(super) digest: Digest,
    #[serde(with = "rfc3339")]
    pub(super) expires: OffsetDateTime,
    #[serde(flatten)]
    pub(super) made: Made,
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
        let tokens = self.tokens.iter().filter(|(_, token)| token.is_expired(now)).map(|(id, _)| id.clone());
        let logins = self.logins.iter().filter(|(_, login)| login.is_expired(now)).map(|(id, _)| id.clone());
        self.remove_all(&tokens.chain(logins).collect());
        self.codes.retain(|code| code.expires > now);
    }

    /// The index of the valid code with this text.
    pub(super) fn find_code(&self, text: &str, now: OffsetDateTime) -> Option<usize> {
        let sent = Digest::of_sent(text)?;
        self.codes.iter().position(|code| code.expires > now && code.digest.equals(&sent))
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
            self.remove_all(&BTreeSet::from([idle]));
        }
        self.logins.insert(id, login);
    }

    /// Removes tokens and logins, and the unused login codes that they made.
    pub(super) fn remove_all(&mut self, ids: &BTreeSet<String>) {
        let gone = self.made().filter(|(id, _)| ids.contains(*id));
        let parents: BTreeMap<String, String> =
            gone.filter_map(|(id, made)| Some((id.clone(), made.parent()?.clone()))).collect();
        self.tokens.retain(|id, _| !ids.contains(id));
        self.logins.retain(|id, _| !ids.contains(id));
        self.codes.retain(|code| !code.made.is_under(ids));
        let tokens = self.tokens.values_mut().map(|token| &mut token.made);
        for made in tokens.chain(self.logins.values_mut().map(|login| &mut login.made)) {
            // As many steps as there are parents: a file that was tampered with could have a circle.
            for _ in 0..parents.len() {
                let Some(next) = made.parent().and_then(|parent| parents.get(parent)) else { break };
                made.under = Some(next.clone());
            }
        }
    }

    /// The tokens and logins that were made under these, directly or not.
    pub(super) fn made_under(&self, ids: &BTreeSet<String>) -> BTreeSet<String> {
        let mut all = ids.clone();
        loop {
            let more = self.made().filter(|(id, made)| !all.contains(*id) && made.is_under(&all));
            let more: Vec<String> = more.map(|(id, _)| id.clone()).collect();
            if more.is_empty() {
                return &all - ids;
            }
            all.extend(more);
        }
    }

    /// Who made this token or login, who made that one, and so on, as far as they are known.
    pub(super) fn makers(&self, id: &str) -> Vec<String> {
        let parent = |id: &str| {
            let token = self.tokens.get(id).map(|token| &token.made);
            token.or_else(|| self.logins.get(id).map(|login| &login.made)).and_then(Made::parent)
        };
        let mut makers: Vec<String> = Vec::new();
        // Ends in a circle, too, which a file that was tampered with could have.
        while let Some(maker) = parent(makers.last().map_or(id, |last| last)).filter(|maker| !makers.contains(maker)) {
            makers.push(maker.clone());
        }
        makers
    }

    /// Whether there is a token or login with this id.
    pub(super) fn exists(&self, id: &str) -> bool {
        self.tokens.contains_key(id) || self.logins.contains_key(id)
    }

    /// Who made each token and login.
    fn made(&self) -> impl Iterator<Item = (&String, &Made)> {
        let tokens = self.tokens.iter().map(|(id, token)| (id, &token.made));
        tokens.chain(self.logins.iter().map(|(id, login)| (id, &login.made)))
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
