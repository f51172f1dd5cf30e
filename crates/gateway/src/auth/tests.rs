//! Two `Auth`s of one home stand for two processes: they share files and locks, but no memory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicI64, Ordering};

use bowline_host::lock::Lock;
use tempfile::TempDir;
use time::macros::datetime;

use super::records::{MAX_CODES, MAX_LOGINS};
use super::*;

mod files;
mod full_disk;
mod made;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A home, and a clock that only moves when told to.
struct World {
    temp: TempDir,
    passed: Arc<AtomicI64>,
    lock_timeout: Duration,
}

impl World {
    fn new() -> World {
        World { temp: tempfile::tempdir().unwrap(), passed: Arc::default(), lock_timeout: LOCK_TIMEOUT }
    }

    fn home(&self) -> Home {
        crate::testing::home(self.temp.path())
    }

    fn try_open(&self) -> Result<Auth, AuthError> {
        let passed = self.passed.clone();
        let clock = move || datetime!(2026-11-15 18:00 UTC) + time::Duration::seconds(passed.load(Ordering::SeqCst));
        Auth::open_with(&self.home(), Box::new(clock), self.lock_timeout)
    }

    fn open(&self) -> Auth {
        self.try_open().unwrap()
    }

    fn advance(&self, time: Duration) {
        self.passed.fetch_add(time.as_secs() as i64, Ordering::SeqCst);
    }

    fn file(&self) -> std::path::PathBuf {
        self.home().state().join("auth.json")
    }

    /// Holds the lock like a process that hangs while it changes the file.
    fn hold_lock(&self) -> Lock {
        self.home().ensure().unwrap();
        Lock::take(&self.home().state().join("auth.lock")).unwrap().unwrap()
    }
}

fn token(auth: &Auth, scope: TokenScope) -> TokenReply {
    auth.create_token("t", scope, None).unwrap()
}

fn login(auth: &Auth) -> Login {
    let code = auth.new_code().unwrap();
    auth.login(code.code.reveal(), "Firefox").unwrap()
}

fn authenticate(auth: &Auth, login: &Login) -> Option<Caller> {
    cookie(auth, login.cookie.reveal())?.with_key(login.key.reveal())
}

fn cookie(auth: &Auth, value: &str) -> Option<PendingLogin> {
    auth.cookies([value].into_iter())
}

/// The secret part of a token or cookie: the last 256 bits, after the id.
fn random(secret: &Secret) -> &str {
    &secret.reveal()[secret.reveal().len() - 43..]
}

#[test]
fn r48_a_token_created_by_another_process_works_at_once_with_its_scope() {
    let world = World::new();
    let (gateway, command) = (world.open(), world.open());
    let created = token(&command, TokenScope::Write);
    let caller = gateway.bearer(created.token.reveal()).unwrap();
    assert_eq!((caller.id(), caller.scope()), (created.id.as_str(), TokenScope::Write));
    assert!(caller.allows(TokenScope::Read) && caller.allows(TokenScope::Write) && !caller.allows(TokenScope::Admin));
    let other = token(&command, TokenScope::Read);
    let mixed = created.token.reveal().replace(&created.id, &other.id);
    let cut = &created.token.reveal()[..created.token.reveal().len() - 1];
    for wrong in ["", "bwl_", "bwl__", &created.id, &mixed, cut, &format!("{}x", created.token.reveal())] {
        assert!(gateway.bearer(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn r48_a_login_needs_its_cookie_and_its_own_key() {
    let world = World::new();
    let auth = world.open();
    let (one, two) = (login(&auth), login(&auth));
    let caller = authenticate(&auth, &one).unwrap();
    assert_eq!((caller.id(), caller.scope()), (one.id.as_str(), TokenScope::Admin));
    let pending = cookie(&auth, one.cookie.reveal()).unwrap();
    assert!(pending.with_key(two.key.reveal()).is_none() && pending.with_key("").is_none());
    assert!(cookie(&auth, one.key.reveal()).is_none() && cookie(&auth, &format!("{}.x", one.id)).is_none());
    assert!(auth.bearer(one.cookie.reveal()).is_none());
    auth.revoke(&one.id).unwrap();
    assert!(pending.with_key(one.key.reveal()).is_none(), "revoked after the cookie and before the key");
}

/// An attacker with a cookie can repeat it, and send any key.
#[test]
fn r49_a_cookie_without_its_key_causes_little_hashing() {
    let world = World::new();
    let auth = world.open();
    let login = login(&auth);
    let repeated = auth.cookies(std::iter::repeat_n(login.cookie.reveal(), MAX_COOKIES)).unwrap();
    assert_eq!(format!("{repeated:?}").matches("Digest").count(), 1, "one login to compare with: {repeated:?}");
    assert!(repeated.with_key(login.key.reveal()).is_some());
    let long = "x".repeat(250_000);
    auth.change(|records| {
        records.logins.get_mut(&login.id).unwrap().key = Digest::of(&long);
        records.codes.push(CodeRecord { digest: Digest::of(&long), expires: auth.now() + DAY, made: Made::default() });
        Ok::<_, AuthError>(())
    })
    .unwrap();
    // They are right, but too long to be hashed.
    assert!(cookie(&auth, login.cookie.reveal()).unwrap().with_key(&long).is_none());
    assert!(auth.check_code(&long).is_err());
}

/// Another port of the same host can set a cookie that the browser sends before ours.
#[test]
fn r48_a_planted_cookie_does_not_lock_a_login_out() {
    let world = World::new();
    let auth = world.open();
    let (ours, theirs) = (login(&auth), login(&auth));
    let made_up = format!("{}.x", ours.id);
    for planted in ["", "x", &made_up, theirs.cookie.reveal()] {
        for crowd in [1, MAX_COOKIES - 1] {
            let cookies = std::iter::repeat_n(planted, crowd).chain([ours.cookie.reveal()]);
            let pending = auth.cookies(cookies).unwrap();
            assert_eq!(pending.with_key(ours.key.reveal()).unwrap().id(), ours.id, "{planted}");
            assert!(pending.with_key("").is_none());
        }
    }
    let beyond = std::iter::repeat_n("x", MAX_COOKIES).chain([ours.cookie.reveal()]);
    assert!(auth.cookies(beyond).is_none(), "the number of cookies is bounded");
}

#[test]
fn r48_a_code_works_only_once_under_contention() {
    let world = World::new();
    let code = world.open().new_code().unwrap();
    let auths: Vec<Auth> = (0..4).map(|_| world.open()).collect();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let attempts: Vec<_> = (0..16)
            .map(|n| (&auths[n % 4], code.code.reveal()))
            .map(|(auth, code)| scope.spawn(move || auth.login(code, "")))
            .collect();
        attempts.into_iter().map(|attempt| attempt.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(
        outcomes.iter().flat_map(|outcome| outcome.as_ref().err()).all(|error| matches!(error, LoginError::BadCode))
    );
    let winner = outcomes.into_iter().find_map(Result::ok).unwrap();
    assert!(auths.iter().all(|auth| authenticate(auth, &winner).is_some()));
    assert!(authenticate(&world.open(), &winner).is_some(), "a gateway that starts later accepts it too");
}

#[test]
fn r48_a_code_is_valid_for_ten_minutes() {
    let world = World::new();
    let auth = world.open();
    let (early, late) = (auth.new_code().unwrap(), auth.new_code().unwrap());
    world.advance(CODE_TTL - Duration::from_secs(1));
    assert!(auth.login(early.code.reveal(), "").is_ok());
    world.advance(Duration::from_secs(1));
    assert!(matches!(auth.login(late.code.reveal(), ""), Err(LoginError::BadCode)));
}

#[test]
fn r48_revoking_a_token_revokes_its_callers_and_tickets_at_once() {
    let world = World::new();
    let auth = world.open();
    let (revoked, kept) = (token(&auth, TokenScope::Read), token(&auth, TokenScope::Read));
    let caller = auth.bearer(revoked.token.reveal()).unwrap();
    let copy = caller.clone();
    let other = auth.bearer(kept.token.reveal()).unwrap();
    let tickets: Vec<TicketReply> = (0..3).map(|_| auth.issue_ticket(&caller).unwrap()).collect();
    assert_eq!(auth.redeem_ticket(tickets[0].ticket.reveal()).unwrap().id(), revoked.id);
    assert!(auth.redeem_ticket(tickets[0].ticket.reveal()).is_none(), "used up");
    assert!(auth.revoke(&revoked.id).unwrap());
    assert!(caller.is_revoked() && copy.is_revoked() && !other.is_revoked());
    assert!(auth.redeem_ticket(tickets[1].ticket.reveal()).is_none());
    assert!(auth.bearer(revoked.token.reveal()).is_none() && auth.bearer(kept.token.reveal()).is_some());
    assert!(!auth.revoke(&revoked.id).unwrap());
}

#[tokio::test]
async fn r48_a_gateway_notices_a_revocation_by_the_command_line() {
    let world = World::new();
    let (gateway, command) = (world.open(), world.open());
    let caller = gateway.bearer(token(&command, TokenScope::Read).token.reveal()).unwrap();
    let watching = tokio::spawn(gateway.watch());
    command.revoke(caller.id()).unwrap();
    let revoked = tokio::time::timeout(Duration::from_secs(30), caller.revoked()).await;
    assert!(revoked.is_ok() && caller.is_revoked());
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn r48_an_expired_token_revokes_its_callers() {
    let (world, start) = (World::new(), tokio::time::Instant::now());
    let clock = move || datetime!(2026-11-15 18:00 UTC) + start.elapsed();
    let auth = Auth::open_with(&world.home(), Box::new(clock), LOCK_TIMEOUT).unwrap();
    let hour = Duration::from_secs(3600);
    let created = auth.create_token("short", TokenScope::Read, Some(hour)).unwrap();
    let caller = auth.bearer(created.token.reveal()).unwrap();
    let watching = tokio::spawn(auth.watch());
    caller.revoked().await;
    assert!(start.elapsed() >= hour);
    watching.abort();
    assert!(auth.bearer(created.token.reveal()).is_none() && auth.tokens().is_empty());
}

#[test]
fn r48_a_login_in_use_does_not_expire() {
    let world = World::new();
    let (auth, command) = (world.open(), world.open());
    let (used, connected, idle) = (login(&auth), login(&auth), login(&auth));
    let caller = authenticate(&auth, &connected).unwrap();
    for _ in 0..40 {
        world.advance(DAY);
        assert!(authenticate(&auth, &used).is_some());
        auth.tidy().unwrap();
        auth.revoke_expired();
    }
    assert!(!caller.is_revoked(), "a connected caller keeps its login in use");
    assert!(authenticate(&auth, &idle).is_none(), "unused for 30 days");
    command.new_code().unwrap(); // any change drops expired records
    let kept: Vec<String> = world.open().tokens().into_iter().map(|info| info.id).collect();
    assert!(kept.contains(&used.id) && kept.contains(&connected.id) && !kept.contains(&idle.id));
}

#[test]
fn last_use_is_written_once_a_day() {
    let world = World::new();
    let auth = world.open();
    let login = login(&auth);
    let inode = || fs::metadata(world.file()).unwrap().ino();
    // While it is open, the file's inode number is not reused.
    let (_held, before) = (fs::File::open(world.file()).unwrap(), inode());
    world.advance(DAY - Duration::from_secs(1));
    authenticate(&auth, &login).unwrap();
    auth.tidy().unwrap();
    assert_eq!(inode(), before);
    world.advance(Duration::from_secs(1));
    authenticate(&auth, &login).unwrap();
    auth.tidy().unwrap();
    assert_ne!(inode(), before);
}

#[test]
fn r48_logging_out_ends_only_this_login() {
    let world = World::new();
    let auth = world.open();
    let (one, two) = (login(&auth), login(&auth));
    let caller = authenticate(&auth, &one).unwrap();
    auth.logout_here(&caller).unwrap();
    assert!(caller.is_revoked() && authenticate(&auth, &one).is_none() && authenticate(&auth, &two).is_some());
    let program = auth.bearer(token(&auth, TokenScope::Admin).token.reveal()).unwrap();
    assert!(matches!(auth.logout_here(&program), Err(AuthError::NotALogin)));
    let user = Caller::user("ann", TokenScope::Admin);
    assert!(matches!(auth.logout_here(&user), Err(AuthError::NotALogin)));
    let ticket = auth.issue_ticket(&user).unwrap();
    assert_eq!(auth.redeem_ticket(ticket.ticket.reveal()).unwrap().id(), "user:ann");
}

#[test]
fn r48_listing_shows_no_secrets() {
    let world = World::new();
    let auth = world.open();
    let created = auth.create_token("ci", TokenScope::Read, Some(DAY)).unwrap();
    world.advance(Duration::from_secs(60));
    let login = login(&auth);
    let json = serde_json::to_value(auth.tokens()).unwrap();
    assert_eq!(json[0]["id"], created.id);
    assert_eq!(json[0]["kind"], "token");
    assert_eq!((&json[0]["name"], &json[0]["scope"]), (&"ci".into(), &"read".into()));
    assert_eq!(json[0]["created"], "2026-11-15T18:00:00Z");
    assert_eq!(json[0]["expires"], "2026-11-16T18:00:00Z");
    assert!(json[0]["used"].is_null());
    assert_eq!((&json[1]["kind"], &json[1]["name"]), (&"login".into(), &"Firefox".into()));
    auth.bearer(created.token.reveal()).unwrap();
    assert!(auth.tokens()[0].used.is_some());
    let text = json.to_string();
    assert!([&created.token, &login.cookie, &login.key].iter().all(|secret| !text.contains(secret.reveal())));
}

#[test]
fn r48_a_new_tokens_name_and_ttl_are_checked() {
    let world = World::new();
    let auth = world.open();
    for bad in ["", "a b", "é", &"x".repeat(65)] {
        assert!(matches!(auth.create_token(bad, TokenScope::Read, None), Err(AuthError::BadName(_))), "{bad}");
    }
    for bad in [Duration::ZERO, Duration::from_secs(u64::MAX)] {
        assert!(matches!(auth.create_token("t", TokenScope::Read, Some(bad)), Err(AuthError::BadTtl)));
    }
    assert!(auth.create_token("t", TokenScope::Read, Some(MAX_TTL)).is_ok());
}

#[test]
fn r48_codes_tokens_and_logins_are_limited() {
    let world = World::new();
    let auth = world.open();
    let first = auth.new_code().unwrap();
    let codes: Vec<CodeReply> = (0..MAX_CODES).map(|_| auth.new_code().unwrap()).collect();
    assert!(matches!(auth.login(first.code.reveal(), ""), Err(LoginError::BadCode)), "the oldest code was dropped");
    assert!(auth.login(codes[0].code.reveal(), "").is_ok());

    // In one change: a thousand durable writes would only test the disk.
    let (one, now) = (login(&auth), auth.now());
    auth.change(|records| {
        for n in 0..MAX_TOKENS {
            let digest = Digest::of(&n.to_string());
            let record = TokenRecord {
                name: "n".into(),
                scope: TokenScope::Read,
                digest,
                created: now,
                expires: None,
                used: None,
                made: Made::default(),
            };
            records.tokens.insert(format!("{n:012}"), record);
        }
        for n in 0..MAX_LOGINS {
            let digest = Digest::of(&n.to_string());
            let record = LoginRecord {
                label: String::new(),
                cookie: digest,
                key: digest,
                created: now,
                used: now,
                made: Made::default(),
            };
            records.add_login(format!("l{n:011}"), record, |id| (id == one.id).then_some(now + DAY));
        }
        Ok::<_, AuthError>(())
    })
    .unwrap();
    assert!(matches!(auth.create_token("t", TokenScope::Read, None), Err(AuthError::TooManyTokens)));
    assert_eq!(auth.0.cache.lock().unwrap().records.logins.len(), MAX_LOGINS);
    let connected = authenticate(&auth, &one).unwrap();
    world.advance(Duration::from_secs(60));
    let another = login(&auth);
    assert_eq!(auth.0.cache.lock().unwrap().records.logins.len(), MAX_LOGINS);
    assert!(!connected.is_revoked() && authenticate(&auth, &another).is_some(), "an idle one was dropped");
}

/// Writing last-use times waits for the lock; expiry must not wait with it.
#[test]
fn r48_a_token_expires_in_time_while_the_file_is_locked() {
    let mut world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    // Longer than this test: the wait ends only when the lock is released.
    world.lock_timeout = Duration::from_secs(24 * 3600);
    let auth = world.open();
    let (login, short) = (login(&auth), auth.create_token("short", TokenScope::Read, Some(2 * DAY)).unwrap());
    let caller = auth.bearer(short.token.reveal()).unwrap();
    let held = world.hold_lock();
    world.advance(DAY);
    authenticate(&auth, &login).unwrap(); // this use is to be written
    runtime.block_on(async {
        tokio::spawn(auth.watch());
        let minutes = async |count: u32| {
            for _ in 0..count * 60 {
                tokio::time::advance(Duration::from_secs(1)).await;
            }
        };
        minutes(2).await;
        assert!(!caller.is_revoked());
        world.advance(DAY);
        minutes(2).await;
        assert!(caller.is_revoked());
    });
    drop(held);
    // Waits for the pending write, so that it does not outlive the temporary directory.
    drop(runtime);
}

#[test]
fn r48_each_state_directory_has_its_own_cookie_name() {
    let (one, two) = (World::new(), World::new());
    let name = one.open().cookie_name().to_owned();
    assert_eq!(one.open().cookie_name(), name, "unchanged after a restart");
    assert_ne!(two.open().cookie_name(), name);
    fs::write(one.home().state().join("instance"), "../..").unwrap();
    assert!(one.try_open().unwrap_err().to_string().contains("instance"));
}

#[test]
fn r49_debug_and_error_output_contain_no_secret() {
    let world = World::new();
    let auth = world.open();
    let (created, login, code) = (token(&auth, TokenScope::Admin), login(&auth), auth.new_code().unwrap());
    let pending = cookie(&auth, login.cookie.reveal()).unwrap();
    let caller = auth.bearer(created.token.reveal()).unwrap();
    let ticket = auth.issue_ticket(&caller).unwrap();
    let error = auth.login("guess", "").unwrap_err();
    let cache = auth.0.cache.lock().unwrap();
    let printed = format!(
        "{created:?} {login:?} {code:?} {pending:?} {caller:?} {ticket:?} {auth:?} {error:?} {error} {cache:?} {:?}",
        auth.0.tickets.lock().unwrap()
    );
    for secret in [&created.token, &login.cookie, &login.key, &code.code, &ticket.ticket] {
        assert!(!printed.contains(random(secret)), "{printed}");
    }
    assert!(!printed.contains("guess"));
    assert_eq!(
        login_link("https://box.example/x/", &code.code),
        format!("https://box.example/x/#login={}", code.code.reveal())
    );
}

#[test]
fn a_caller_has_a_name_for_people() {
    let world = World::new();
    let auth = world.open();
    let created = auth.create_token("phone", TokenScope::Read, None).unwrap();
    let token = auth.bearer(created.token.reveal()).unwrap();
    assert_eq!(auth.display_name(&token), "phone");
    auth.revoke(&created.id).unwrap();
    assert_eq!(auth.display_name(&token), token.id(), "its name is gone");
    let login = auth.login(auth.new_code().unwrap().code.reveal(), "Firefox").unwrap();
    assert_eq!(auth.display_name(&authenticate(&auth, &login).unwrap()), "Firefox");
    let long = Caller::user(&format!("a\u{1b}b{}", "\u{fc}".repeat(200)), TokenScope::Read);
    assert_eq!(auth.display_name(&long), format!("ab{}", "\u{fc}".repeat(126)));
}
