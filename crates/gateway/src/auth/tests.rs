//! Two `Auth`s of one home stand for two processes: they share files and locks, and nothing in memory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicI64, Ordering};

use bowline_host::lock::Lock;
use tempfile::TempDir;
use time::macros::datetime;

use super::records::{MAX_CODES, MAX_LOGINS};
use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A home, and a clock that stands still unless it is moved.
struct World {
    temp: TempDir,
    passed: Arc<AtomicI64>,
    lock_within: Duration,
}

impl World {
    fn new() -> World {
        World { temp: tempfile::tempdir().unwrap(), passed: Arc::default(), lock_within: LOCK_WITHIN }
    }

    fn home(&self) -> Home {
        crate::testing::home(self.temp.path())
    }

    fn try_open(&self) -> Result<Auth, AuthError> {
        let passed = self.passed.clone();
        let clock = move || datetime!(2026-11-15 18:00 UTC) + time::Duration::seconds(passed.load(Ordering::SeqCst));
        Auth::open_with(&self.home(), Box::new(clock), self.lock_within)
    }

    fn open(&self) -> Auth {
        self.try_open().unwrap()
    }

    fn pass(&self, time: Duration) {
        self.passed.fetch_add(time.as_secs() as i64, Ordering::SeqCst);
    }

    fn file(&self) -> std::path::PathBuf {
        self.home().state().join("auth.json")
    }

    /// A process that is stopped while it changes the file.
    fn stuck(&self) -> Lock {
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

fn enter(auth: &Auth, login: &Login) -> Option<Caller> {
    auth.cookie(login.cookie.reveal())?.with_key(login.key.reveal())
}

/// The part of a secret that is one: the last 256 bits, behind any id.
fn random(secret: &Secret) -> &str {
    &secret.reveal()[secret.reveal().len() - 43..]
}

#[test]
fn r48_a_token_made_elsewhere_works_at_once_and_allows_what_its_scope_does() {
    let world = World::new();
    let (gateway, command) = (world.open(), world.open());
    let made = token(&command, TokenScope::Write);
    let caller = gateway.bearer(made.token.reveal()).unwrap();
    assert_eq!((caller.id(), caller.scope()), (made.id.as_str(), TokenScope::Write));
    assert!(caller.allows(TokenScope::Read) && caller.allows(TokenScope::Write) && !caller.allows(TokenScope::Admin));
    let other = token(&command, TokenScope::Read);
    let mixed = made.token.reveal().replace(&made.id, &other.id);
    let cut = &made.token.reveal()[..made.token.reveal().len() - 1];
    for wrong in ["", "bwl_", "bwl__", &made.id, &mixed, cut, &format!("{}x", made.token.reveal())] {
        assert!(gateway.bearer(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn r48_a_login_needs_its_cookie_and_its_own_key() {
    let world = World::new();
    let auth = world.open();
    let (one, two) = (login(&auth), login(&auth));
    let caller = enter(&auth, &one).unwrap();
    assert_eq!((caller.id(), caller.scope()), (one.id.as_str(), TokenScope::Admin));
    let half = auth.cookie(one.cookie.reveal()).unwrap();
    assert!(half.with_key(two.key.reveal()).is_none() && half.with_key("").is_none());
    assert!(auth.cookie(one.key.reveal()).is_none() && auth.cookie(&format!("{}.x", one.id)).is_none());
    assert!(auth.bearer(one.cookie.reveal()).is_none());
    auth.revoke(&one.id).unwrap();
    assert!(half.with_key(one.key.reveal()).is_none(), "it was revoked between cookie and key");
}

#[test]
fn r48_a_code_works_once_however_many_try_it() {
    let world = World::new();
    let code = world.open().new_code().unwrap();
    let auths: Vec<Auth> = (0..4).map(|_| world.open()).collect();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..16)
            .map(|n| (&auths[n % 4], code.code.reveal()))
            .map(|(auth, code)| scope.spawn(move || auth.login(code, "")))
            .collect();
        tries.into_iter().map(|tried| tried.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(
        outcomes.iter().flat_map(|outcome| outcome.as_ref().err()).all(|error| matches!(error, LoginError::BadCode))
    );
    let winner = outcomes.into_iter().find_map(Result::ok).unwrap();
    assert!(auths.iter().all(|auth| enter(auth, &winner).is_some()));
    assert!(enter(&world.open(), &winner).is_some(), "a gateway that starts later knows it, too");
}

#[test]
fn r48_a_code_lives_for_ten_minutes() {
    let world = World::new();
    let auth = world.open();
    let (early, late) = (auth.new_code().unwrap(), auth.new_code().unwrap());
    world.pass(CODE_LIFE - Duration::from_secs(1));
    assert!(auth.login(early.code.reveal(), "").is_ok());
    world.pass(Duration::from_secs(1));
    assert!(matches!(auth.login(late.code.reveal(), ""), Err(LoginError::BadCode)));
}

#[test]
fn r48_revoking_ends_callers_and_their_tickets_at_once() {
    let world = World::new();
    let auth = world.open();
    let (gone, kept) = (token(&auth, TokenScope::Read), token(&auth, TokenScope::Read));
    let caller = auth.bearer(gone.token.reveal()).unwrap();
    let copy = caller.clone();
    let other = auth.bearer(kept.token.reveal()).unwrap();
    let tickets: Vec<TicketReply> = (0..3).map(|_| auth.issue_ticket(&caller).unwrap()).collect();
    assert_eq!(auth.redeem_ticket(tickets[0].ticket.reveal()).unwrap().id(), gone.id);
    assert!(auth.redeem_ticket(tickets[0].ticket.reveal()).is_none(), "it is spent");
    assert!(auth.revoke(&gone.id).unwrap());
    assert!(caller.is_revoked() && copy.is_revoked() && !other.is_revoked());
    assert!(auth.redeem_ticket(tickets[1].ticket.reveal()).is_none());
    assert!(auth.bearer(gone.token.reveal()).is_none() && auth.bearer(kept.token.reveal()).is_some());
    assert!(!auth.revoke(&gone.id).unwrap());
}

#[tokio::test]
async fn r48_a_watching_gateway_notices_a_revocation_by_the_command_line() {
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
async fn r48_a_token_that_expires_ends_who_is_connected_by_it() {
    let (world, start) = (World::new(), tokio::time::Instant::now());
    let clock = move || datetime!(2026-11-15 18:00 UTC) + start.elapsed();
    let auth = Auth::open_with(&world.home(), Box::new(clock), LOCK_WITHIN).unwrap();
    let hour = Duration::from_secs(3600);
    let made = auth.create_token("short", TokenScope::Read, Some(hour)).unwrap();
    let caller = auth.bearer(made.token.reveal()).unwrap();
    let watching = tokio::spawn(auth.watch());
    caller.revoked().await;
    assert!(start.elapsed() >= hour);
    watching.abort();
    assert!(auth.bearer(made.token.reveal()).is_none() && auth.tokens().is_empty());
}

#[test]
fn r48_a_login_lives_while_it_is_used() {
    let world = World::new();
    let (auth, command) = (world.open(), world.open());
    let (used, here, idle) = (login(&auth), login(&auth), login(&auth));
    let connected = enter(&auth, &here).unwrap();
    for _ in 0..40 {
        world.pass(DAY);
        assert!(enter(&auth, &used).is_some());
        auth.tidy().unwrap();
        auth.end_expired();
    }
    assert!(!connected.is_revoked(), "who is connected uses the login");
    assert!(enter(&auth, &idle).is_none(), "30 days without use");
    command.new_code().unwrap(); // any change drops what is too old
    let kept: Vec<String> = world.open().tokens().into_iter().map(|info| info.id).collect();
    assert!(kept.contains(&used.id) && kept.contains(&here.id) && !kept.contains(&idle.id));
}

#[test]
fn a_use_is_written_once_a_day() {
    let world = World::new();
    let auth = world.open();
    let login = login(&auth);
    let inode = || fs::metadata(world.file()).unwrap().ino();
    // A file that is held open keeps its number to itself.
    let (_held, before) = (fs::File::open(world.file()).unwrap(), inode());
    world.pass(DAY - Duration::from_secs(1));
    enter(&auth, &login).unwrap();
    auth.tidy().unwrap();
    assert_eq!(inode(), before);
    world.pass(Duration::from_secs(1));
    enter(&auth, &login).unwrap();
    auth.tidy().unwrap();
    assert_ne!(inode(), before);
}

#[test]
fn r48_logging_out_ends_the_login_and_nothing_else() {
    let world = World::new();
    let auth = world.open();
    let (one, two) = (login(&auth), login(&auth));
    let caller = enter(&auth, &one).unwrap();
    auth.logout(&caller).unwrap();
    assert!(caller.is_revoked() && enter(&auth, &one).is_none() && enter(&auth, &two).is_some());
    let program = auth.bearer(token(&auth, TokenScope::Admin).token.reveal()).unwrap();
    assert!(matches!(auth.logout(&program), Err(AuthError::NotALogin)));
    let user = Caller::user("ann", TokenScope::Admin);
    assert!(matches!(auth.logout(&user), Err(AuthError::NotALogin)));
    let ticket = auth.issue_ticket(&user).unwrap();
    assert_eq!(auth.redeem_ticket(ticket.ticket.reveal()).unwrap().id(), "user:ann");
}

#[test]
fn r48_what_there_is_is_listed_without_its_secrets() {
    let world = World::new();
    let auth = world.open();
    let made = auth.create_token("ci", TokenScope::Read, Some(DAY)).unwrap();
    world.pass(Duration::from_secs(60));
    let login = login(&auth);
    let json = serde_json::to_value(auth.tokens()).unwrap();
    assert_eq!(json[0]["id"], made.id);
    assert_eq!(json[0]["kind"], "token");
    assert_eq!((&json[0]["name"], &json[0]["scope"]), (&"ci".into(), &"read".into()));
    assert_eq!(json[0]["created"], "2026-11-15T18:00:00Z");
    assert_eq!(json[0]["expires"], "2026-11-16T18:00:00Z");
    assert!(json[0]["used"].is_null());
    assert_eq!((&json[1]["kind"], &json[1]["name"]), (&"login".into(), &"Firefox".into()));
    auth.bearer(made.token.reveal()).unwrap();
    assert!(auth.tokens()[0].used.is_some());
    let text = json.to_string();
    assert!([&made.token, &login.cookie, &login.key].iter().all(|secret| !text.contains(secret.reveal())));
}

#[test]
fn r48_what_is_asked_of_a_token_is_checked() {
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
fn r48_numbers_are_bounded() {
    let world = World::new();
    let auth = world.open();
    let first = auth.new_code().unwrap();
    let codes: Vec<CodeReply> = (0..MAX_CODES).map(|_| auth.new_code().unwrap()).collect();
    assert!(matches!(auth.login(first.code.reveal(), ""), Err(LoginError::BadCode)), "the oldest code went");
    assert!(auth.login(codes[0].code.reveal(), "").is_ok());

    // Written by hand: a thousand durable writes would only test the disk.
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
            };
            records.tokens.insert(format!("{n:012}"), record);
        }
        for n in 0..MAX_LOGINS {
            let digest = Digest::of(&n.to_string());
            let record = LoginRecord { label: String::new(), cookie: digest, key: digest, created: now, used: now };
            records.add_login(format!("{n:012}"), record, |id| (id == one.id).then_some(now + DAY));
        }
        Ok::<_, AuthError>(())
    })
    .unwrap();
    assert!(matches!(auth.create_token("t", TokenScope::Read, None), Err(AuthError::TooManyTokens)));
    assert_eq!(auth.0.known.lock().unwrap().records.logins.len(), MAX_LOGINS);
    let connected = enter(&auth, &one).unwrap();
    world.pass(Duration::from_secs(60));
    let another = login(&auth);
    assert_eq!(auth.0.known.lock().unwrap().records.logins.len(), MAX_LOGINS);
    assert!(!connected.is_revoked() && enter(&auth, &another).is_some(), "an idle one went");
}

#[test]
fn r48_r51_files_hold_no_secret_and_are_the_owners_alone() {
    let world = World::new();
    let auth = world.open();
    let (made, login, code) = (token(&auth, TokenScope::Admin), login(&auth), auth.new_code().unwrap());
    let secrets = [random(&made.token), random(&login.cookie), random(&login.key), random(&code.code)];
    let mut seen = 0;
    for entry in fs::read_dir(world.home().state()).unwrap().map(Result::unwrap) {
        let found = entry.metadata().unwrap();
        assert_eq!(found.mode() & 0o077, 0, "{:?}", entry.path());
        if found.is_file() {
            let content = fs::read_to_string(entry.path()).unwrap();
            assert!(secrets.iter().all(|secret| !content.contains(secret)), "{:?}", entry.path());
            seen += 1;
        }
    }
    assert_eq!(seen, 3, "auth.json, auth.lock, instance");
}

#[test]
fn r48_a_damaged_file_is_named_and_left_alone() {
    let world = World::new();
    let auth = world.open();
    let made = token(&auth, TokenScope::Admin);
    let good = fs::read(world.file()).unwrap();
    for damage in [&b""[..], b"{", b"{\"version\":1}", &good[..good.len() / 2], b"[]"] {
        fs::write(world.file(), damage).unwrap();
        let error = world.try_open().unwrap_err().to_string();
        assert!(error.contains("auth.json is damaged") && error.contains("remove it"), "{error}");
        assert!(matches!(auth.new_code(), Err(AuthError::Damaged { .. })));
        assert_eq!(fs::read(world.file()).unwrap(), damage);
        assert!(auth.bearer(made.token.reveal()).is_some(), "who is in stays in");
    }
    fs::write(world.file(), "{\"version\":99,\"more\":[]}").unwrap();
    assert!(matches!(world.try_open(), Err(AuthError::Newer { .. })));
    fs::write(world.file(), &good).unwrap();
    assert!(world.open().bearer(made.token.reveal()).is_some());
    let caller = auth.bearer(made.token.reveal()).unwrap();
    fs::remove_file(world.file()).unwrap();
    assert!(auth.bearer(made.token.reveal()).is_none() && caller.is_revoked(), "removing it ends everything");
    assert!(auth.new_code().is_ok());
}

#[test]
fn many_processes_change_the_file_and_none_loses_anything() {
    let world = World::new();
    let gateway = world.open();
    let made: Vec<TokenReply> = std::thread::scope(|scope| {
        let making: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| [token(&world.open(), TokenScope::Read), token(&gateway, TokenScope::Write)]))
            .collect();
        making.into_iter().flat_map(|made| made.join().unwrap()).collect()
    });
    assert_eq!(gateway.tokens().len(), 16);
    assert!(made.iter().all(|made| gateway.bearer(made.token.reveal()).is_some()));
}

#[test]
fn r52_who_never_lets_go_of_the_lock_is_not_waited_for_without_end() {
    let mut world = World::new();
    world.lock_within = Duration::ZERO;
    let stuck = world.stuck();
    assert!(matches!(world.try_open(), Err(AuthError::Busy { .. })), "the first one has to write");
    drop(stuck);
    let auth = world.open();
    let (code, made) = (auth.new_code().unwrap(), token(&auth, TokenScope::Read));
    let stuck = world.stuck();
    let auth = world.open();
    assert!(auth.bearer(made.token.reveal()).is_some(), "whoever only reads waits for nobody");
    let refused = auth.login(code.code.reveal(), "").unwrap_err();
    assert!(matches!(refused, LoginError::Auth(AuthError::Busy { .. })), "{refused}");
    assert!(matches!(auth.revoke(&made.id), Err(AuthError::Busy { .. })));
    assert_eq!(crate::problem::Problem::from(refused).status(), 503);
    drop(stuck);
    assert!(auth.login(code.code.reveal(), "").is_ok(), "the code was not spent");
    assert!(auth.revoke(&made.id).unwrap());
}

/// Times of use are written now and then, under the lock; whoever has expired is told meanwhile.
#[test]
fn r48_a_token_ends_in_time_also_while_nothing_can_be_written() {
    let mut world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    // Longer than anything here: only that the lock is let go ends the wait.
    world.lock_within = Duration::from_secs(24 * 3600);
    let auth = world.open();
    let (login, short) = (login(&auth), auth.create_token("short", TokenScope::Read, Some(2 * DAY)).unwrap());
    let caller = auth.bearer(short.token.reveal()).unwrap();
    let stuck = world.stuck();
    world.pass(DAY);
    enter(&auth, &login).unwrap(); // which is to be written
    runtime.block_on(async {
        tokio::spawn(auth.watch());
        let minutes = async |count: u32| {
            for _ in 0..count * 60 {
                tokio::time::advance(Duration::from_secs(1)).await;
            }
        };
        minutes(2).await;
        assert!(!caller.is_revoked());
        world.pass(DAY);
        minutes(2).await;
        assert!(caller.is_revoked());
    });
    drop(stuck);
    // Waits for what is written now, so that nothing is when the world goes.
    drop(runtime);
}

#[test]
fn r48_each_state_directory_has_its_own_cookie() {
    let (one, two) = (World::new(), World::new());
    let name = one.open().cookie_name().to_owned();
    assert_eq!(one.open().cookie_name(), name, "also after a restart");
    assert_ne!(two.open().cookie_name(), name);
    fs::write(one.home().state().join("instance"), "../..").unwrap();
    assert!(one.try_open().unwrap_err().to_string().contains("instance"));
}

#[test]
fn r49_nothing_shows_a_secret_when_it_is_printed() {
    let world = World::new();
    let auth = world.open();
    let (made, login, code) = (token(&auth, TokenScope::Admin), login(&auth), auth.new_code().unwrap());
    let half = auth.cookie(login.cookie.reveal()).unwrap();
    let caller = auth.bearer(made.token.reveal()).unwrap();
    let ticket = auth.issue_ticket(&caller).unwrap();
    let error = auth.login("guess", "").unwrap_err();
    let known = auth.0.known.lock().unwrap();
    let printed = format!(
        "{made:?} {login:?} {code:?} {half:?} {caller:?} {ticket:?} {auth:?} {error:?} {error} {known:?} {:?}",
        auth.0.tickets.lock().unwrap()
    );
    for secret in [&made.token, &login.cookie, &login.key, &code.code, &ticket.ticket] {
        assert!(!printed.contains(random(secret)), "{printed}");
    }
    assert!(!printed.contains("guess"));
    assert_eq!(
        login_link("https://box.example/x/", &code.code),
        format!("https://box.example/x/#login={}", code.code.reveal())
    );
}
