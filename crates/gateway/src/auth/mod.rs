//! Authentication: tokens for programs, logins for browsers, and tickets for streams that can send no header.
//!
//! Tokens, logins and login codes (`records`) are in one file that the gateway and the command line share
//! (`store`, and `revoked` for a full disk). It holds digests, never secrets (`secret`). Each process caches the file, together with its current
//! callers (`cache`). It notices changes of the file at the next request, and in the background (`watch`).

mod browser;
mod cache;
mod caller;
pub(crate) mod endpoints;
mod error;
mod rate;
mod records;
mod revoked;
mod secret;
mod store;
mod ticket;
mod watch;

#[cfg(test)]
mod endpoints_tests;
#[cfg(test)]
mod tests;

pub use caller::{Caller, Maker, PendingLogin};
pub use error::{AuthError, LoginError};
pub use rate::LoginRate;
pub(crate) use rate::{network, site};
pub use records::{CODE_TTL, LOGIN_IDLE};
pub use ticket::TICKET_TTL;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bowline_host::files::{self, write_durable};
use bowline_host::home::Home;
use bowline_host::machine::this_host;
use bowline_host::meta::Makers;
use bowline_proto::api::{CodeReply, Secret, TicketReply, TokenInfo, TokenKind, TokenReply, TokenScope};
use bowline_proto::ids::{SessionId, SessionName};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use cache::AuthCache;
use caller::Kind;
use records::{CodeRecord, LoginRecord, MAX_TOKENS, Made, TokenRecord};
use secret::{Digest, random_id, random_secret};
use store::Store;
use ticket::Tickets;

/// The prefix of every token, by which people and secret scanners recognise one.
pub(crate) const TOKEN_PREFIX: &str = "bwl_";
/// The longest label of a browser login, in characters; the rest is cut off.
const MAX_LABEL: usize = 64;
/// The most cookies of one request that are looked up; the rest is ignored. Browsers keep fewer for a host.
const MAX_COOKIES: usize = 256;
/// The longest name of a caller for people, in characters; the rest is cut off.
const MAX_DISPLAY_NAME: usize = 128;
/// How long to wait for another process that changes the file. After that the change fails.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest lifetime of a token.
const MAX_TTL: Duration = Duration::from_secs(1000 * 366 * 24 * 3600);

/// All tokens, logins, login codes and tickets of a home. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    store: Store,
    cookie_name: String,
    clock: Clock,
    cache: Mutex<AuthCache>,
    tickets: Mutex<Tickets>,
}

type Clock = Box<dyn Fn() -> OffsetDateTime + Send + Sync>;

/// What a browser gets for a login code: a cookie, and a key that the page keeps in its origin's storage.
#[derive(Clone, Debug)]
pub struct Login {
    pub id: String,
    pub cookie: Secret,
    pub key: Secret,
}

/// The link that logs a browser in. The code is in the fragment, which browsers never send, so it appears in no
/// server's log.
pub fn login_link(base: &str, code: &Secret) -> String {
    format!("{}/#login={}", base.trim_end_matches('/'), code.reveal())
}

impl Auth {
    /// Opens the tokens and logins of this home.
    pub fn open(home: &Home) -> Result<Auth, AuthError> {
        Auth::open_with(home, Box::new(OffsetDateTime::now_utc), LOCK_TIMEOUT)
    }

    fn open_with(home: &Home, clock: Clock, lock_timeout: Duration) -> Result<Auth, AuthError> {
        home.ensure()?;
        let store = Store::new(home, lock_timeout);
        let cache = Mutex::new(AuthCache::new(store.read()?)?);
        let cookie_name = format!("bowline_{}", instance(home, &store)?);
        if let Err(error) = store.reserve() {
            tracing::warn!("{error}; until this works, a token cannot be revoked durably while the disk is full");
        }
        Ok(Auth(Arc::new(Inner { store, cookie_name, clock, cache, tickets: Mutex::default() })))
    }

    /// The caller with this token, if it is valid.
    pub fn bearer(&self, token: &str) -> Option<Caller> {
        let (id, _) = token.strip_prefix(TOKEN_PREFIX)?.split_once('_')?;
        let (mut cache, now) = self.cache();
        let record = cache.records.tokens.get(id).filter(|record| !record.is_expired(now))?;
        let scope = record.digest.matches(token).then_some(record.scope)?;
        Some(cache.caller(id, scope, Kind::Token, now))
    }

    /// The name of the cookie. It differs between state directories, because a browser shares its cookies between
    /// all ports of a host.
    pub fn cookie_name(&self) -> &str {
        &self.0.cookie_name
    }

    /// Looks up the logins of a request's cookies. The caller also needs the key of one of them.
    ///
    /// A request may have several cookies of this name, because a program on another port of the host can set one.
    pub fn cookies<'a>(&self, values: impl Iterator<Item = &'a str>) -> Option<PendingLogin> {
        let (cache, now) = self.cache();
        let login = |value: &str| {
            let (id, _) = value.split_once('.')?;
            let record = cache.records.logins.get(id).filter(|record| !record.is_expired(now))?;
            record.cookie.matches(value).then(|| (id.to_owned(), record.key))
        };
        let logins: BTreeMap<_, _> = values.take(MAX_COOKIES).filter_map(login).collect();
        (!logins.is_empty()).then(|| PendingLogin::new(self.clone(), logins))
    }

    /// The caller with this login, after its cookie and key have been checked.
    fn login_caller(&self, id: &str) -> Option<Caller> {
        let (mut cache, now) = self.cache();
        cache.records.logins.get(id).filter(|record| !record.is_expired(now))?;
        Some(cache.caller(id, TokenScope::Admin, Kind::Login, now))
    }

    /// Issues a ticket with which this caller can open one stream without a cookie or header.
    pub fn issue_ticket(&self, caller: &Caller) -> Result<TicketReply, AuthError> {
        let ticket = random_secret()?;
        self.tickets().add(&ticket, caller, Instant::now());
        Ok(TicketReply { ticket, expires: rfc3339(self.now() + TICKET_TTL) })
    }

    /// Uses up a ticket. Returns the caller that it was issued to.
    pub fn redeem_ticket(&self, ticket: &str) -> Option<Caller> {
        let caller = self.tickets().take(ticket, Instant::now())?;
        let (cache, now) = self.cache();
        let valid = caller.kind() == Kind::User || cache.records.is_valid(caller.id(), now);
        (valid && !caller.is_revoked()).then_some(caller)
    }

    /// Creates a login code, which works once and for ten minutes. Any process of the owner can create one for
    /// the running gateway.
    pub fn new_code(&self) -> Result<CodeReply, AuthError> {
        self.new_code_by(&Maker::CommandLine(Makers::default()))
    }

    /// Like [`Auth::new_code`], and records who makes it.
    pub fn new_code_by(&self, maker: &Maker) -> Result<CodeReply, AuthError> {
        let (code, expires) = (random_secret()?, self.now() + CODE_TTL);
        let digest = Digest::of(code.reveal());
        self.change(|records| {
            maker.check()?;
            records.add_code(CodeRecord { digest, expires, made: maker.made(records) });
            Ok::<_, AuthError>(())
        })?;
        Ok(CodeReply { code, expires: rfc3339(expires) })
    }

    /// Rejects a wrong code, without waiting for anything.
    fn check_code(&self, code: &str) -> Result<(), LoginError> {
        let (cache, now) = self.cache();
        cache.records.find_code(code, now).map(drop).ok_or(LoginError::BadCode)
    }

    /// Uses up a code and logs a browser in. Both are one write to the disk, so the code works only once even if
    /// a process is killed meanwhile.
    pub fn login(&self, code: &str, label: &str) -> Result<Login, LoginError> {
        let (last_used, now) = {
            let (cache, now) = self.cache();
            (cache.all_used(now), now)
        };
        let (id, key) = (random_id()?, random_secret()?);
        let cookie = Secret::new(format!("{id}.{}", random_secret()?.reveal()));
        let mut record = LoginRecord {
            label: label.chars().filter(|c| !c.is_control()).take(MAX_LABEL).collect(),
            cookie: Digest::of(cookie.reveal()),
            key: Digest::of(key.reveal()),
            created: now,
            used: now,
            made: Made::default(),
        };
        self.change(|records| {
            let found = records.find_code(code, now).ok_or(LoginError::BadCode)?;
            record.made = records.codes.remove(found).made;
            records.add_login(id.clone(), record, |id| last_used.get(id).copied());
            Ok::<_, LoginError>(())
        })?;
        Ok(Login { id, cookie, key })
    }

    /// Ends the caller's login like [`Auth::revoke_here`].
    fn logout_here(&self, caller: &Caller) -> Result<(), AuthError> {
        if caller.kind() != Kind::Login {
            return Err(AuthError::NotALogin);
        }
        self.revoke_here(caller.id(), false);
        Ok(())
    }

    /// Creates a token, which expires after `ttl` if given.
    pub fn create_token(&self, name: &str, scope: TokenScope, ttl: Option<Duration>) -> Result<TokenReply, AuthError> {
        self.create_token_by(&Maker::CommandLine(Makers::default()), name, scope, ttl)
    }

    /// Like [`Auth::create_token`], and records who makes it.
    pub fn create_token_by(
        &self,
        maker: &Maker,
        name: &str,
        scope: TokenScope,
        ttl: Option<Duration>,
    ) -> Result<TokenReply, AuthError> {
        let name = name.parse::<SessionName>()?.to_string();
        if ttl.is_some_and(|ttl| ttl < Duration::from_secs(1) || ttl > MAX_TTL) {
            return Err(AuthError::BadTtl);
        }
        let (id, created) = (random_id()?, self.now());
        let token = Secret::new(format!("{TOKEN_PREFIX}{id}_{}", random_secret()?.reveal()));
        let (digest, expires) = (Digest::of(token.reveal()), ttl.map(|ttl| created + ttl));
        self.change(|records| {
            maker.check()?;
            if records.tokens.len() >= MAX_TOKENS {
                return Err(AuthError::TooManyTokens);
            }
            let made = maker.made(records);
            let record = TokenRecord { name, scope, digest, created, expires, used: None, made };
            records.tokens.insert(id.clone(), record);
            Ok(())
        })?;
        Ok(TokenReply { id, token })
    }

    /// All valid tokens and logins, oldest first.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        let (cache, now) = self.cache();
        let valid = |id: &&String| cache.records.is_valid(id, now);
        let tokens = cache.records.tokens.iter().filter(|(id, _)| valid(id)).map(|(id, token)| {
            let info = TokenInfo {
                id: id.clone(),
                kind: TokenKind::Token,
                name: token.name.clone(),
                scope: token.scope,
                created: rfc3339(token.created),
                expires: token.expires.map(rfc3339),
                used: cache.used(id, now).max(token.used).map(rfc3339),
                made_by: token.made.by.clone(),
            };
            (token.created, info)
        });
        let logins = cache.records.logins.iter().filter(|(id, _)| valid(id)).map(|(id, login)| {
            let info = TokenInfo {
                id: id.clone(),
                kind: TokenKind::Login,
                name: login.label.clone(),
                scope: TokenScope::Admin,
                created: rfc3339(login.created),
                expires: Some(rfc3339(login.expires())),
                used: cache.used(id, now).max(Some(login.used)).map(rfc3339),
                made_by: login.made.by.clone(),
            };
            (login.created, info)
        });
        let mut all: Vec<(OffsetDateTime, TokenInfo)> = tokens.chain(logins).collect();
        all.sort_by_key(|(created, _)| *created);
        all.into_iter().map(|(_, info)| info).collect()
    }

    /// Revokes a token or a login, which disconnects its callers and invalidates their tickets. Returns whether
    /// it existed.
    ///
    /// In this process it takes effect at once, even on `Err`: then it could not be recorded, and [`Auth::watch`] tries
    /// again.
    pub fn revoke(&self, id: &str) -> Result<bool, AuthError> {
        let found = self.revoke_here(id, false);
        if !found.is_empty() {
            self.record_revocations()?;
        }
        Ok(!found.is_empty())
    }

    /// Revokes a token or login like [`Auth::revoke`], and all that was made under it. Returns what was revoked. It may be
    /// gone already: what it made is revoked nevertheless.
    pub fn revoke_with_made(&self, id: &str) -> Result<BTreeSet<String>, AuthError> {
        let mut revoked = BTreeSet::new();
        loop {
            let found = self.revoke_here(id, true);
            // Again, because a request of a revoked caller may have made another one just before.
            if found.is_empty() {
                return Ok(revoked);
            }
            self.record_revocations()?;
            revoked.extend(found);
        }
    }

    /// Revokes a token or login in this process, without waiting for anything. Returns what is not yet recorded of it.
    fn revoke_here(&self, id: &str, with_made: bool) -> BTreeSet<String> {
        let (mut cache, now) = self.cache();
        let mut ids = BTreeSet::from([id.to_owned()]);
        if with_made {
            ids.extend(cache.records.made_under(&ids));
        }
        cache.revoke(ids, now)
    }

    /// The valid tokens and logins that were made under this one, directly or not. It may be gone already.
    pub fn made_under(&self, id: &str) -> Vec<TokenInfo> {
        let made = self.cache().0.records.made_under(&BTreeSet::from([id.to_owned()]));
        self.tokens().into_iter().filter(|info| made.contains(&info.id)).collect()
    }

    /// The callers that make a session which this one starts.
    pub(crate) fn makers(&self, caller: &Caller) -> Makers {
        let made_under = self.cache().0.records.makers(caller.id());
        Makers { made_by: Some(caller.id().to_owned()), made_under }
    }

    /// The caller's name for people: that of the token, login or user, or else the id. Without control characters, and
    /// at most 128 characters long.
    pub fn display_name(&self, caller: &Caller) -> String {
        let (cache, _) = self.cache();
        let name = match caller.kind() {
            Kind::Token => cache.records.tokens.get(caller.id()).map(|token| token.name.as_str()),
            Kind::Login => cache.records.logins.get(caller.id()).map(|login| login.label.as_str()),
            Kind::User => caller.id().strip_prefix("user:"),
        };
        let shorten =
            |text: &str| -> String { text.chars().filter(|c| !c.is_control()).take(MAX_DISPLAY_NAME).collect() };
        // Only a client on this machine is called `local`.
        let name = name.map(shorten).filter(|name| !name.trim().is_empty() && name != "local");
        name.unwrap_or_else(|| shorten(caller.id()))
    }

    /// Records on the disk what was revoked in this process.
    fn record_revocations(&self) -> Result<(), AuthError> {
        let ids = self.cache().0.unrecorded.clone();
        if !ids.is_empty() {
            self.0.store.revoke(self.now(), &ids)?;
            self.cache().0.unrecorded.retain(|id| !ids.contains(id));
        }
        Ok(())
    }

    fn now(&self) -> OffsetDateTime {
        let now = (self.0.clock)();
        // Milliseconds are precise enough, and shorter in the file.
        now.replace_nanosecond(now.nanosecond() / 1_000_000 * 1_000_000).unwrap_or(now)
    }

    /// Changes the file, and updates the cache before returning.
    fn change<T, E: From<AuthError>>(
        &self,
        change: impl FnOnce(&mut records::Records) -> Result<T, E>,
    ) -> Result<T, E> {
        let outcome = self.0.store.change(self.now(), change)?;
        drop(self.cache());
        Ok(outcome)
    }

    /// The current content of the file. If the file cannot be read, its last known content: damage neither admits
    /// nor disconnects any caller.
    fn cache(&self) -> (MutexGuard<'_, AuthCache>, OffsetDateTime) {
        let now = self.now();
        let mut cache = self.0.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.store.is_current(&cache.stamp) {
            let read = self.0.store.read().and_then(|content| cache.install(content, now));
            if let Err(error) = read {
                tracing::error!("{error}");
            }
        }
        (cache, now)
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

/// A unique id of this state directory. It distinguishes the gateways of several machines that are all reached
/// through `localhost`. If it cannot be written, the gateway works without the file, and the next one tries again.
fn instance(home: &Home, store: &Store) -> Result<SessionId, AuthError> {
    let path = home.state().join("instance");
    let io = |source| AuthError::Io { path: path.clone(), source };
    let read = || match files::read(&path, 64) {
        Ok(text) => String::from_utf8_lossy(&text).trim().parse().map(Some).map_err(|_| {
            let why = "it must contain 12 characters of a-z and 0-9; if you remove it, all browsers must log in again";
            io(io::Error::other(why))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(error)),
    };
    // The file is written only once, and atomically, so reading it needs no lock.
    if let Some(id) = read()? {
        return Ok(id);
    }
    let write = |id: &SessionId| {
        let _lock = store.lock()?;
        match read()? {
            Some(written) => Ok(written),
            None => write_durable(&path, id.as_str().as_bytes()).map(|()| id.clone()).map_err(io),
        }
    };
    // Derived, not random, so that it is the same again if it can be written only by a later gateway.
    let id = derive_instance(home).map_err(io)?;
    Ok(write(&id).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot write the id of this state directory");
        id
    }))
}

fn derive_instance(home: &Home) -> io::Result<SessionId> {
    let found = std::fs::metadata(home.state())?;
    let text = format!("{} {} {} {:?}", this_host(), found.dev(), found.ino(), home.state());
    let mut bytes = [0; 12];
    bytes.copy_from_slice(&Sha256::digest(text)[..12]);
    Ok(SessionId::from_random(bytes))
}

fn rfc3339(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}
