//! Who may do what: tokens for programs, logins for browsers, tickets for what can send no header.
//!
//! Everything lasting is in one file that the gateway and the command line share (`store`); it holds digests (`secret`) of
//! what was given out (`records`). Each process keeps what it last read, with everybody who is here by it (`known`), and notices when
//! the file changes: at the next call, and while waiting (`watch`).

mod caller;
pub(crate) mod endpoints;
mod error;
mod known;
mod rate;
mod records;
mod scope;
mod secret;
mod store;
mod ticket;
mod watch;

#[cfg(test)]
mod endpoints_tests;
#[cfg(test)]
mod tests;

pub use caller::{Caller, HalfLogin};
pub use error::{AuthError, LoginError};
pub use rate::LoginRate;
pub(crate) use rate::network;
pub use records::{CODE_LIFE, LOGIN_IDLE};
pub use scope::{BadScope, Scope};
pub use secret::Secret;
pub use ticket::{TICKET_LIFE, Ticket};

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bowline_host::files::write_durable;
use bowline_host::home::Home;
use bowline_proto::ids::{SessionId, SessionName};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::serde::rfc3339;
use utoipa::ToSchema;

use caller::Kind;
use known::Known;
use records::{CodeRecord, LoginRecord, MAX_TOKENS, TokenRecord};
use secret::{Digest, random_id};
use store::Store;
use ticket::Tickets;

/// What every token begins with, so that people and secret scanners recognise one.
pub(crate) const TOKEN_PREFIX: &str = "bwl_";
/// Letters that are kept of how a browser describes itself.
const MAX_LABEL: usize = 64;
/// How long to wait for another process that changes the file; past it the call fails, and nothing has changed.
const LOCK_WITHIN: Duration = Duration::from_secs(10);
/// The longest lifetime of a token.
const MAX_TTL: Duration = Duration::from_secs(1000 * 366 * 24 * 3600);

/// Everybody's tokens, logins, codes and tickets. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    store: Store,
    cookie_name: String,
    clock: Clock,
    known: Mutex<Known>,
    tickets: Mutex<Tickets>,
}

/// Tells the time.
type Clock = Box<dyn Fn() -> OffsetDateTime + Send + Sync>;

/// A one-time code for a browser's first visit.
#[derive(Clone, Debug)]
pub struct Code {
    /// The code.
    pub code: Secret,
    /// Until when it can be used.
    pub expires: OffsetDateTime,
}

/// What a browser gets for a code: a cookie, and a key that it keeps in the page's own origin.
#[derive(Clone, Debug)]
pub struct Login {
    /// The login's id.
    pub id: String,
    /// The cookie's value.
    pub cookie: Secret,
    /// The key that goes with it.
    pub key: Secret,
}

/// A token that was just made. This is the only time that it can be seen.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its id, by which it is listed and revoked.
    pub id: String,
    /// The token.
    pub token: Secret,
}

/// A token or a browser's login, as far as it is nobody's secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenInfo {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: TokenKind,
    /// The token's name, or how the browser described itself.
    pub name: String,
    /// How much it allows.
    pub scope: Scope,
    /// When it was made.
    #[serde(with = "rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created: OffsetDateTime,
    /// When it ends by itself.
    #[serde(with = "rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires: Option<OffsetDateTime>,
    /// When it was last used, to within a day.
    #[serde(with = "rfc3339::option")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub used: Option<OffsetDateTime>,
}

/// What can be revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// A token for a program.
    Token,
    /// A browser that has logged in.
    Login,
}

/// The link that logs a browser in. The code is in the fragment, which a browser sends to no server, so it is in no log.
pub fn login_link(base: &str, code: &Secret) -> String {
    format!("{}/#login={}", base.trim_end_matches('/'), code.reveal())
}

impl Auth {
    /// The tokens and logins of this home.
    pub fn open(home: &Home) -> Result<Auth, AuthError> {
        Auth::open_with(home, Box::new(OffsetDateTime::now_utc), LOCK_WITHIN)
    }

    fn open_with(home: &Home, clock: Clock, lock_within: Duration) -> Result<Auth, AuthError> {
        home.ensure()?;
        let store = Store::new(home, lock_within);
        let (stamp, records) = store.read()?;
        let known = Mutex::new(Known::new(stamp, records?));
        let cookie_name = format!("bowline_{}", instance(home, &store)?);
        Ok(Auth(Arc::new(Inner { store, cookie_name, clock, known, tickets: Mutex::default() })))
    }

    /// The caller by this token.
    pub fn bearer(&self, token: &str) -> Option<Caller> {
        let (id, _) = token.strip_prefix(TOKEN_PREFIX)?.split_once('_')?;
        let (mut known, now) = self.known();
        let record = known.records.tokens.get(id).filter(|record| !record.is_over(now))?;
        let scope = record.digest.matches(token).then_some(record.scope)?;
        Some(known.caller(id, scope, Kind::Token, now))
    }

    /// The name of the cookie. Gateways on several ports of one host share the browser's cookies, so each has its own name.
    pub fn cookie_name(&self) -> &str {
        &self.0.cookie_name
    }

    /// Recognises the value of a cookie. Only with its key it makes a caller.
    pub fn cookie(&self, value: &str) -> Option<HalfLogin> {
        let (id, _) = value.split_once('.')?;
        let (known, now) = self.known();
        let record = known.records.logins.get(id).filter(|record| !record.is_over(now))?;
        record.cookie.matches(value).then(|| HalfLogin::new(self.clone(), id, record.key))
    }

    /// The caller by this login, whose cookie and key were both right.
    fn login_caller(&self, id: &str) -> Option<Caller> {
        let (mut known, now) = self.known();
        known.records.logins.get(id).filter(|record| !record.is_over(now))?;
        Some(known.caller(id, Scope::Admin, Kind::Login, now))
    }

    /// A ticket with which this caller can come once more, without cookie or header.
    pub fn issue_ticket(&self, caller: &Caller) -> Result<Ticket, AuthError> {
        let ticket = Secret::random()?;
        self.tickets().add(&ticket, caller, Instant::now());
        Ok(Ticket { ticket, expires: self.now() + TICKET_LIFE })
    }

    /// The caller who got this ticket. It is spent by this.
    pub fn redeem_ticket(&self, ticket: &str) -> Option<Caller> {
        let caller = self.tickets().take(ticket, Instant::now())?;
        let (known, now) = self.known();
        let good = caller.kind() == Kind::User || known.records.is_good(caller.id(), now);
        (good && !caller.is_revoked()).then_some(caller)
    }

    /// A one-time code, for ten minutes. Any process can make one for a gateway that runs.
    pub fn new_code(&self) -> Result<Code, AuthError> {
        let (code, expires) = (Secret::random()?, self.now() + CODE_LIFE);
        let record = CodeRecord { digest: Digest::of(code.reveal()), expires };
        self.change(|records| {
            records.add_code(record);
            Ok::<_, AuthError>(())
        })?;
        Ok(Code { code, expires })
    }

    /// Uses a code up and logs a browser in, in one step on the disk: the code works once, whatever dies meanwhile.
    pub fn login(&self, code: &str, label: &str) -> Result<Login, LoginError> {
        let (seen, now) = {
            let (known, now) = self.known();
            // Guesses stop here and cost no write.
            known.records.find_code(code, now).ok_or(LoginError::BadCode)?;
            (known.all_used(now), now)
        };
        let (id, key) = (random_id()?, Secret::random()?);
        let cookie = Secret::new(format!("{id}.{}", Secret::random()?.reveal()));
        let record = LoginRecord {
            label: label.chars().filter(|c| !c.is_control()).take(MAX_LABEL).collect(),
            cookie: Digest::of(cookie.reveal()),
            key: Digest::of(key.reveal()),
            created: now,
            used: now,
        };
        self.change(|records| {
            let found = records.find_code(code, now).ok_or(LoginError::BadCode)?;
            records.codes.remove(found);
            records.add_login(id.clone(), record, |id| seen.get(id).copied());
            Ok::<_, LoginError>(())
        })?;
        Ok(Login { id, cookie, key })
    }

    /// Ends the login of this caller.
    pub fn logout(&self, caller: &Caller) -> Result<(), AuthError> {
        if caller.kind() != Kind::Login {
            return Err(AuthError::NotALogin);
        }
        self.revoke(caller.id()).map(drop)
    }

    /// Makes a token, for ever or for as long as `ttl`.
    pub fn create_token(&self, name: &str, scope: Scope, ttl: Option<Duration>) -> Result<NewToken, AuthError> {
        let name = name.parse::<SessionName>()?.to_string();
        if ttl.is_some_and(|ttl| ttl < Duration::from_secs(1) || ttl > MAX_TTL) {
            return Err(AuthError::BadTtl);
        }
        let (id, created) = (random_id()?, self.now());
        let token = Secret::new(format!("{TOKEN_PREFIX}{id}_{}", Secret::random()?.reveal()));
        let (digest, expires) = (Digest::of(token.reveal()), ttl.map(|ttl| created + ttl));
        let record = TokenRecord { name, scope, digest, created, expires, used: None };
        self.change(|records| {
            if records.tokens.len() >= MAX_TOKENS {
                return Err(AuthError::TooManyTokens);
            }
            records.tokens.insert(id.clone(), record);
            Ok(())
        })?;
        Ok(NewToken { id, token })
    }

    /// All tokens and logins, the oldest first.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        let (known, now) = self.known();
        let good = |id: &&String| known.records.is_good(id, now);
        let tokens = known.records.tokens.iter().filter(|(id, _)| good(id)).map(|(id, token)| TokenInfo {
            id: id.clone(),
            kind: TokenKind::Token,
            name: token.name.clone(),
            scope: token.scope,
            created: token.created,
            expires: token.expires,
            used: known.used(id, now).max(token.used),
        });
        let logins = known.records.logins.iter().filter(|(id, _)| good(id)).map(|(id, login)| TokenInfo {
            id: id.clone(),
            kind: TokenKind::Login,
            name: login.label.clone(),
            scope: Scope::Admin,
            created: login.created,
            expires: Some(login.expires()),
            used: known.used(id, now).max(Some(login.used)),
        });
        let mut all: Vec<TokenInfo> = tokens.chain(logins).collect();
        all.sort_by_key(|info| info.created);
        all
    }

    /// Ends a token or a login, its callers and their tickets; whether there was one.
    pub fn revoke(&self, id: &str) -> Result<bool, AuthError> {
        self.change(|records| Ok(records.remove(id)))
    }

    fn now(&self) -> OffsetDateTime {
        let now = (self.0.clock)();
        // Milliseconds are enough, and shorter to read.
        now.replace_nanosecond(now.nanosecond() / 1_000_000 * 1_000_000).unwrap_or(now)
    }

    /// Changes the file, and acts on the change before it returns.
    fn change<T, E: From<AuthError>>(
        &self,
        change: impl FnOnce(&mut records::Records) -> Result<T, E>,
    ) -> Result<T, E> {
        let outcome = self.0.store.change(self.now(), change)?;
        drop(self.known());
        Ok(outcome)
    }

    /// What the file says right now. While it cannot be read, what it said last: damage locks nobody in or out.
    fn known(&self) -> (MutexGuard<'_, Known>, OffsetDateTime) {
        let now = self.now();
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.store.is_current(&known.stamp) {
            match self.0.store.read() {
                Ok((stamp, records)) => {
                    known.stamp = stamp;
                    match records {
                        Ok(records) => known.install(records, now),
                        Err(error) => tracing::error!("{error}"),
                    }
                }
                Err(error) => tracing::error!("{error}"),
            }
        }
        (known, now)
    }

    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.0.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("store", &self.0.store).finish_non_exhaustive()
    }
}

/// A name for this state directory that no other has, also on another machine whose gateway is reached through `localhost`.
fn instance(home: &Home, store: &Store) -> Result<SessionId, AuthError> {
    let path = home.state().join("instance");
    let io = |source| AuthError::Io { path: path.clone(), source };
    let read = || match std::fs::read_to_string(&path) {
        Ok(text) => text.trim().parse().map(Some).map_err(|_| {
            io(io::Error::other("it should hold 12 of a-z and 0-9; remove it, and browsers log in again"))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(error)),
    };
    // It is written once, whole: whoever finds it waits for nobody.
    if let Some(id) = read()? {
        return Ok(id);
    }
    let _alone = store.lock()?;
    if let Some(id) = read()? {
        return Ok(id);
    }
    let id = random_id()?;
    write_durable(&path, id.as_bytes()).map_err(io)?;
    Ok(id.parse()?)
}
