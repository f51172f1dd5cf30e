//! Revoking while `auth.json` cannot be written. An attacker with a leaked token can fill the disk.

use std::path::PathBuf;

use super::*;

impl World {
    /// Lets every attempt to replace this file fail, as on a full disk.
    pub(super) fn block(&self, file: &str) -> PathBuf {
        let temporary = self.home().state().join(format!("{file}.new"));
        fs::create_dir(&temporary).unwrap();
        temporary
    }

    fn revoked(&self) -> String {
        fs::read_to_string(self.home().state().join("auth.revoked")).unwrap()
    }
}

#[test]
fn r52_a_token_can_be_revoked_on_a_full_disk() {
    let world = World::new();
    let (gateway, command) = (world.open(), world.open());
    let (one, two, kept) =
        (token(&gateway, TokenScope::Admin), token(&gateway, TokenScope::Admin), token(&gateway, TokenScope::Read));
    let short = gateway.create_token("short", TokenScope::Read, Some(DAY)).unwrap();
    let login = login(&gateway);
    let callers = [one.token.reveal(), two.token.reveal()].map(|token| gateway.bearer(token).unwrap()).into_iter();
    let callers: Vec<Caller> = callers.chain([authenticate(&gateway, &login).unwrap()]).collect();
    let full = world.block("auth.json");
    assert!(gateway.create_token("more", TokenScope::Read, None).is_err(), "the disk is full");

    assert!(gateway.revoke(&one.id).unwrap(), "by the gateway");
    assert!(command.revoke(&two.id).unwrap(), "by another process");
    assert!(gateway.revoke(&login.id).unwrap());
    let check = |auth: &Auth| {
        assert!(auth.bearer(one.token.reveal()).is_none() && auth.bearer(two.token.reveal()).is_none());
        assert!(authenticate(auth, &login).is_none() && auth.bearer(kept.token.reveal()).is_some());
        assert!(!auth.tokens().iter().any(|info| [&one.id, &two.id, &login.id].contains(&&info.id)));
        assert!(!auth.revoke(&one.id).unwrap(), "it is gone");
    };
    [&gateway, &command, &world.open()].into_iter().for_each(check);
    assert!(callers.iter().all(Caller::is_revoked));
    world.advance(DAY);
    assert!(gateway.bearer(short.token.reveal()).is_none(), "expiry needs no disk");
    assert!(gateway.tidy().is_err(), "the disk is still full");

    fs::remove_dir(full).unwrap();
    gateway.tidy().unwrap();
    let written = fs::read_to_string(world.file()).unwrap();
    assert!(!written.contains(&one.id) && !written.contains(&two.id) && written.contains(&kept.id));
    assert!(!world.revoked().contains(|c| c != '-' && c != '\n'), "all slots are free again");
    [&gateway, &command, &world.open()].into_iter().for_each(check);
}

#[tokio::test]
async fn r52_a_gateway_notices_a_revocation_by_the_command_line_on_a_full_disk() {
    let world = World::new();
    let (gateway, command) = (world.open(), world.open());
    let callers = [(); 2].map(|()| gateway.bearer(token(&command, TokenScope::Read).token.reveal()).unwrap());
    let watching = tokio::spawn(gateway.watch());
    world.block("auth.json");
    for caller in callers {
        command.revoke(caller.id()).unwrap();
        tokio::time::timeout(Duration::from_secs(30), caller.revoked()).await.unwrap();
    }
    watching.abort();
}

/// Without the reserved space, a revocation holds in memory, and recording it is tried again.
#[test]
fn r52_a_revocation_that_cannot_be_recorded_holds_at_once_and_is_tried_again() {
    let world = World::new();
    let gateway = world.open();
    let created = token(&gateway, TokenScope::Admin);
    let caller = gateway.bearer(created.token.reveal()).unwrap();
    fs::remove_file(world.home().state().join("auth.revoked")).unwrap();
    let full = [world.block("auth.json"), world.block("auth.revoked")];
    for _ in 0..2 {
        assert!(matches!(gateway.revoke(&created.id), Err(AuthError::Io { .. })));
        assert!(caller.is_revoked() && gateway.bearer(created.token.reveal()).is_none());
        assert!(gateway.tidy().is_err());
    }
    // A change by another process does not bring it back.
    fs::remove_dir(&full[0]).unwrap();
    world.open().new_code().unwrap();
    assert!(gateway.bearer(created.token.reveal()).is_none());
    fs::remove_dir(&full[1]).unwrap();
    gateway.tidy().unwrap();
    assert!(world.open().bearer(created.token.reveal()).is_none());
    assert!(!gateway.revoke(&created.id).unwrap());
}

#[test]
fn r52_a_revocation_holds_while_another_process_holds_the_lock() {
    let mut world = World::new();
    world.lock_timeout = Duration::ZERO;
    let gateway = world.open();
    let created = token(&gateway, TokenScope::Admin);
    let held = world.hold_lock();
    assert!(matches!(gateway.revoke(&created.id), Err(AuthError::Busy { .. })));
    assert!(gateway.bearer(created.token.reveal()).is_none());
    drop(held);
    gateway.tidy().unwrap();
    assert!(world.open().bearer(created.token.reveal()).is_none());
}

#[test]
fn r52_a_token_can_be_revoked_while_the_file_is_damaged() {
    let world = World::new();
    let gateway = world.open();
    let created = token(&gateway, TokenScope::Admin);
    let good = fs::read(world.file()).unwrap();
    fs::write(world.file(), "{").unwrap();
    assert!(gateway.revoke(&created.id).unwrap());
    assert_eq!(fs::read(world.file()).unwrap(), b"{", "the damaged file is left alone");
    fs::write(world.file(), good).unwrap();
    assert!(world.open().bearer(created.token.reveal()).is_none(), "a restored backup does not bring it back");
}
