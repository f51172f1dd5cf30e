//! `auth.json` on disk: its secrets, damage, and changes by several processes.

use super::*;

#[test]
fn r48_r51_files_contain_no_secret_and_are_private_to_the_owner() {
    let world = World::new();
    let auth = world.open();
    let (created, login, code) = (token(&auth, TokenScope::Admin), login(&auth), auth.new_code().unwrap());
    let secrets = [random(&created.token), random(&login.cookie), random(&login.key), random(&code.code)];
    let mut files = 0;
    for entry in fs::read_dir(world.home().state()).unwrap().map(Result::unwrap) {
        let found = entry.metadata().unwrap();
        assert_eq!(found.mode() & 0o077, 0, "{:?}", entry.path());
        if found.is_file() {
            let content = fs::read_to_string(entry.path()).unwrap();
            assert!(secrets.iter().all(|secret| !content.contains(secret)), "{:?}", entry.path());
            files += 1;
        }
    }
    assert_eq!(files, 4, "auth.json, auth.lock, auth.revoked, instance");
}

#[test]
fn r48_a_damaged_file_is_reported_and_left_alone() {
    let world = World::new();
    let auth = world.open();
    let created = token(&auth, TokenScope::Admin);
    let good = fs::read(world.file()).unwrap();
    for damage in [&b""[..], b"{", b"{\"version\":1}", &good[..good.len() / 2], b"[]"] {
        fs::write(world.file(), damage).unwrap();
        let error = world.try_open().unwrap_err().to_string();
        assert!(error.contains("auth.json is damaged") && error.contains("remove it"), "{error}");
        assert!(matches!(auth.new_code(), Err(AuthError::Damaged { .. })));
        assert_eq!(fs::read(world.file()).unwrap(), damage);
        assert!(auth.bearer(created.token.reveal()).is_some(), "the last known content stays in use");
    }
    fs::write(world.file(), "{\"version\":99,\"more\":[]}").unwrap();
    assert!(matches!(world.try_open(), Err(AuthError::Newer { .. })));
    fs::write(world.file(), &good).unwrap();
    assert!(world.open().bearer(created.token.reveal()).is_some());
    let caller = auth.bearer(created.token.reveal()).unwrap();
    fs::remove_file(world.file()).unwrap();
    assert!(
        auth.bearer(created.token.reveal()).is_none() && caller.is_revoked(),
        "removing the file revokes everything"
    );
    assert!(auth.new_code().is_ok());
}

#[test]
fn concurrent_changes_are_all_kept() {
    let world = World::new();
    let gateway = world.open();
    let created: Vec<TokenReply> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| [token(&world.open(), TokenScope::Read), token(&gateway, TokenScope::Write)]))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(gateway.tokens().len(), 16);
    assert!(created.iter().all(|reply| gateway.bearer(reply.token.reveal()).is_some()));
}

#[test]
fn r52_waiting_for_the_lock_times_out() {
    let mut world = World::new();
    world.lock_timeout = Duration::ZERO;
    let held = world.hold_lock();
    let cookie_name = world.open().cookie_name().to_owned();
    drop(held);
    let auth = world.open();
    assert_eq!(auth.cookie_name(), cookie_name, "the same id, although it could not be written at first");
    let (code, created) = (auth.new_code().unwrap(), token(&auth, TokenScope::Read));
    let held = world.hold_lock();
    let auth = world.open();
    assert!(auth.bearer(created.token.reveal()).is_some(), "reading needs no lock");
    let refused = auth.login(code.code.reveal(), "").unwrap_err();
    assert!(matches!(refused, LoginError::Auth(AuthError::Busy { .. })), "{refused}");
    assert!(matches!(auth.revoke(&created.id), Err(AuthError::Busy { .. })));
    assert_eq!(crate::problem::Problem::from(refused).status(), 503);
    drop(held);
    assert!(auth.login(code.code.reveal(), "").is_ok(), "the code was not used up");
    assert!(auth.revoke(&created.id).unwrap());
}

/// Only `auth.json` is needed. What is in the place of the other file blocks nothing, and is replaced.
#[test]
fn r52_an_auth_revoked_that_is_not_a_file_or_too_long_keeps_no_gateway_from_starting() {
    let world = World::new();
    let auth = world.open();
    let path = world.home().state().join("auth.revoked");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = || rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let link = || std::os::unix::fs::symlink(world.file(), &path).unwrap();
    let long = || {
        let id = token(&auth, TokenScope::Read).id;
        fs::write(&path, format!("{id}\n{}", "-".repeat(1 << 20))).unwrap();
        assert!(!auth.tokens().iter().any(|info| info.id == id), "its first ids count");
    };
    let directory = || fs::create_dir(&path).unwrap();
    for (n, put) in [&fifo as &dyn Fn(), &link, &long, &directory].into_iter().enumerate() {
        for full in [false, true] {
            let _ = fs::remove_file(&path);
            put();
            let (kept, created) = (token(&auth, TokenScope::Read), token(&auth, TokenScope::Read));
            assert!(auth.bearer(kept.token.reveal()).is_some(), "{n}: a running gateway goes on");
            let (cache, _) = auth.cache();
            assert!(auth.0.store.is_current(&cache.stamp), "{n}: and does not read it again at each request");
            drop(cache);
            // The one that opens the files again repairs them, unless the disk is full.
            let full = full.then(|| [world.block("auth.json"), world.block("auth.revoked")]);
            let opened = world.open();
            assert!(opened.bearer(kept.token.reveal()).is_some(), "{n}");
            full.iter().flatten().for_each(|blocked| fs::remove_dir(blocked).unwrap());
            assert!(opened.revoke(&created.id).unwrap() && auth.bearer(created.token.reveal()).is_none(), "{n}");
            let blocked = world.block("auth.json");
            assert!(opened.revoke(&kept.id).unwrap() && auth.bearer(kept.token.reveal()).is_none(), "{n}");
            fs::remove_dir(blocked).unwrap();
            auth.tidy().unwrap();
            assert_eq!(fs::symlink_metadata(&path).unwrap().len(), super::super::revoked::SIZE as u64, "{n}");
        }
    }
}

/// A FIFO would block a careless reader, and a huge file exhaust its memory.
#[test]
fn r52_an_auth_json_that_is_not_a_file_is_an_error_at_once() {
    let world = World::new();
    let auth = world.open();
    let created = token(&auth, TokenScope::Read);
    let path = world.home().state().join("auth.json");
    std::fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(auth.bearer(created.token.reveal()).is_some(), "what was read before is still valid");
    assert!(matches!(world.try_open(), Err(AuthError::Io { .. })));
    std::fs::remove_file(&path).unwrap();
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(world.try_open(), Err(AuthError::Io { .. })));
}
