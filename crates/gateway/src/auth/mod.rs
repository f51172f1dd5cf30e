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
pub use ticket::TICKET_LIFE;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bowline_host::files::write_durable;
use bowline_host::home::Home;
use bowline_proto::api::{CodeReply, Secret, TicketReply, TokenInfo, TokenKind, TokenReply, TokenScope};
use bowline_proto::ids::{SessionId, SessionName};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use caller::Kind;
use known::Known;
use records::{CodeRecord, LoginRecord, MAX_TOKENS, TokenRecord};
use secret::{Digest, random_id, random_secret};
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
        Some(known.caller(id, TokenScope::Admin, Kind::Login, now))
    }

    /// A ticket with which this caller can come once more, without cookie or header.
    pub fn issue_ticket(&self, caller: &Caller) -> Result<TicketReply, AuthError> {
        let ticket = random_secret()?;
        self.tickets().add(&ticket, caller, Instant::now());
        Ok(TicketReply { ticket, expires: rfc3339(self.now() + TICKET_LIFE) })
    }

    /// The caller who got this ticket. It is spent by this.
    pub fn redeem_ticket(&self, ticket: &str) -> Option<Caller> {
        let caller = self.tickets().take(ticket, Instant::now())?;
        let (known, now) = self.known();
        let good = caller.kind() == Kind::User || known.records.is_good(caller.id(), now);
        (good && !caller.is_revoked()).then_some(caller)
    }

    /// A one-time code, for ten minutes. Any process can make one for a gateway that runs.
    pub fn new_code(&self) -> Result<CodeReply, AuthError> {
        let (code, expires) = (random_secret()?, self.now() + CODE_LIFE);
        let record = CodeRecord { digest: Digest::of(code.reveal()), expires };
        self.change(|records| {
            records.add_code(record);
            Ok::<_, AuthError>(())
        })?;
        Ok(CodeReply { code, expires: rfc3339(expires) })
    }

    /// Uses a code up and logs a browser in, in one step on the disk: the code works once, whatever dies meanwhile.
    pub fn login(&self, code: &str, label: &str) -> Result<Login, LoginError> {
        let (seen, now) = {
            let (known, now) = self.known();
            // Guesses stop here and cost no write.
            known.records.find_code(code, now).ok_or(LoginError::BadCode)?;
            (known.all_used(now), now)
        };
        let (id, key) = (random_id()?, random_secret()?);
        let cookie = Secret::new(format!("{id}.{}", random_secret()?.reveal()));
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
    pub fn create_token(&self, name: &str, scope: TokenScope, ttl: Option<Duration>) -> Result<TokenReply, AuthError> {
        let name = name.parse::<SessionName>()?.to_string();
        if ttl.is_some_and(|ttl| ttl < Duration::from_secs(1) || ttl > MAX_TTL) {
            return Err(AuthError::BadTtl);
        }
        let (id, created) = (random_id()?, self.now());
        let token = Secret::new(format!("{TOKEN_PREFIX}{id}_{}", random_secret()?.reveal()));
        let (digest, expires) = (Digest::of(token.reveal()), ttl.map(|ttl| created + ttl));
        let record = TokenRecord { name, scope, digest, created, expires, used: None };
        self.change(|records| {
            if records.tokens.len() >= MAX_TOKENS {
                return Err(AuthError::TooManyTokens);
            }
            records.tokens.insert(id.clone(), record);
            Ok(())
        })?;
        Ok(TokenReply { id, token })
    }

    /// All tokens and logins, the oldest first.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        let (known, now) = self.known();
        let good = |id: &&String| known.records.is_good(id, now);
        let tokens = known.records.tokens.iter().filter(|(id, _)| good(id)).map(|(id, token)| {
            let info = TokenInfo {
                id: id.clone(),
                kind: TokenKind::Token,
                name: token.name.clone(),
                scope: token.scope,
                created: rfc3339(token.created),
                expires: token.expires.map(rfc3339),
                used: known.used(id, now).max(token.used).map(rfc3339),
            };
            (token.created, info)
        });
        let logins = known.records.logins.iter().filter(|(id, _)| good(id)).map(|(id, login)| {
            let info = TokenInfo {
                id: id.clone(),
                kind: TokenKind::Login,
                name: login.label.clone(),
                scope: TokenScope::Admin,
                created: rfc3339(login.created),
                expires: Some(rfc3339(login.expires())),
                used: known.used(id, now).max(Some(login.used)).map(rfc3339),
            };
            (login.created, info)
        });
        let mut all: Vec<(OffsetDateTime, TokenInfo)> = tokens.chain(logins).collect();
        all.sort_by_key(|(created, _)| *created);
        all.into_iter().map(|(_, info)| info).collect()
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

/// A moment as the API shows it.
fn rfc3339(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}
