//! Who made a token or login, and revoking what was made under one.

use super::*;

fn caller(auth: &Auth, token: &TokenReply) -> Caller {
    auth.bearer(token.token.reveal()).unwrap()
}

/// Makes a token with another one.
fn made_with(auth: &Auth, maker: &TokenReply, ttl: Option<Duration>) -> TokenReply {
    auth.create_token_by(&Maker::Caller(caller(auth, maker)), "made", TokenScope::Admin, ttl).unwrap()
}

/// Makes a token in a session that these made.
fn made_in_session(auth: &Auth, makers: Makers) -> TokenReply {
    auth.create_token_by(&Maker::CommandLine(makers), "made", TokenScope::Admin, None).unwrap()
}

fn ids(tokens: &[TokenInfo]) -> BTreeSet<&str> {
    tokens.iter().map(|info| info.id.as_str()).collect()
}

#[test]
fn r48_what_was_made_under_a_token_is_known_and_can_be_revoked_with_it() {
    let world = World::new();
    let auth = world.open();
    let (leaked, other) = (token(&auth, TokenScope::Write), token(&auth, TokenScope::Write));
    let one = made_in_session(&auth, auth.makers(&caller(&auth, &leaked)));
    let two = made_with(&auth, &one, None);
    let code = auth.new_code_by(&Maker::Caller(caller(&auth, &two))).unwrap();
    let login = auth.login(code.code.reveal(), "Firefox").unwrap();
    let by_other = made_with(&auth, &other, None);
    let made_by = |id: &str| auth.tokens().into_iter().find(|info| info.id == id).unwrap().made_by;
    assert_eq!((made_by(&leaked.id), made_by(&one.id)), (None, Some(leaked.id.clone())));
    assert_eq!((made_by(&two.id), made_by(&login.id)), (Some(one.id.clone()), Some(two.id.clone())));
    let expected = BTreeSet::from([one.id.as_str(), &two.id, &login.id]);
    assert_eq!(ids(&auth.made_under(&leaked.id)), expected);

    assert!(auth.revoke(&leaked.id).unwrap());
    assert!(auth.bearer(one.token.reveal()).is_some(), "only the token itself was to be revoked");
    assert_eq!(ids(&auth.made_under(&leaked.id)), expected, "although the token itself is gone");
    let revoked = world.open().revoke_with_made(&leaked.id).unwrap();
    assert_eq!(revoked.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
    assert!(auth.bearer(one.token.reveal()).is_none() && auth.bearer(two.token.reveal()).is_none());
    assert!(authenticate(&auth, &login).is_none());
    assert!(auth.bearer(other.token.reveal()).is_some() && auth.bearer(by_other.token.reveal()).is_some());
    assert!(auth.revoke_with_made(&leaked.id).unwrap().is_empty() && auth.made_under(&leaked.id).is_empty());
}

/// A short-lived or revoked token in between must not hide what it made.
#[test]
fn r48_what_was_made_by_a_token_that_is_gone_still_counts_as_made_under_its_maker() {
    let world = World::new();
    let auth = world.open();
    let leaked = token(&auth, TokenScope::Admin);
    let short = made_with(&auth, &leaked, Some(DAY));
    let revoked = made_with(&auth, &short, None);
    let last = made_with(&auth, &revoked, None);
    world.advance(DAY);
    auth.new_code().unwrap(); // any change drops expired records
    auth.revoke(&revoked.id).unwrap();
    assert!(!fs::read_to_string(world.file()).unwrap().contains(&short.id), "it is forgotten");
    let info = auth.tokens().into_iter().find(|info| info.id == last.id).unwrap();
    assert_eq!(info.made_by.as_ref(), Some(&revoked.id), "the direct maker stays visible");
    for id in [&leaked.id, &revoked.id] {
        assert_eq!(ids(&auth.made_under(id)), BTreeSet::from([last.id.as_str()]));
    }
    assert_eq!(auth.revoke_with_made(&leaked.id).unwrap(), BTreeSet::from([leaked.id, last.id]));
    assert!(auth.tokens().is_empty());
}

/// A session may outlive the token that made it, and make tokens later.
#[test]
fn r48_what_a_session_makes_after_its_maker_is_gone_counts_as_made_under_those_before() {
    let world = World::new();
    let auth = world.open();
    let first = token(&auth, TokenScope::Admin);
    let leaked = made_with(&auth, &first, None);
    let between = made_with(&auth, &leaked, None);
    let makers = auth.makers(&caller(&auth, &between));
    auth.revoke(&between.id).unwrap();
    let one = made_in_session(&auth, makers.clone());
    let code = auth.new_code_by(&Maker::CommandLine(makers.clone())).unwrap();
    let login = auth.login(code.code.reveal(), "Firefox").unwrap();
    let expected = BTreeSet::from([one.id.clone(), login.id]);
    let under = |id: &str| auth.made_under(id).into_iter().map(|info| info.id).collect::<BTreeSet<_>>();
    assert_eq!((under(&between.id), under(&leaked.id)), (expected.clone(), expected.clone()));
    assert_eq!(auth.revoke_with_made(&leaked.id).unwrap(), &expected | &BTreeSet::from([leaked.id]));

    let two = made_in_session(&auth, makers.clone());
    assert_eq!(under(&first.id), BTreeSet::from([two.id.clone()]), "both in between are gone");
    assert_eq!(auth.revoke_with_made(&first.id).unwrap(), BTreeSet::from([first.id.clone(), two.id]));
    let three = made_in_session(&auth, makers);
    assert_eq!(auth.revoke_with_made(&first.id).unwrap(), BTreeSet::from([three.id]), "all are gone");
}

#[test]
fn r48_an_unused_login_code_ends_with_its_maker() {
    let world = World::new();
    let auth = world.open();
    let (leaked, kept) = (token(&auth, TokenScope::Admin), auth.new_code().unwrap());
    let code = auth.new_code_by(&Maker::Caller(caller(&auth, &leaked))).unwrap();
    world.block("auth.json");
    auth.revoke(&leaked.id).unwrap();
    for auth in [&auth, &world.open()] {
        assert!(matches!(auth.login(code.code.reveal(), ""), Err(LoginError::BadCode)), "even on a full disk");
        assert!(matches!(auth.login(kept.code.reveal(), ""), Err(LoginError::Auth(_))), "it waits for space");
    }
}

/// A request may be authenticated and then wait for the lock while its caller is revoked.
#[test]
fn r48_a_caller_that_was_just_revoked_makes_nothing() {
    let world = World::new();
    let auth = world.open();
    let leaked = token(&auth, TokenScope::Admin);
    let maker = Maker::Caller(caller(&auth, &leaked));
    auth.revoke_with_made(&leaked.id).unwrap();
    assert!(matches!(auth.create_token_by(&maker, "t", TokenScope::Admin, None), Err(AuthError::Revoked)));
    assert!(matches!(auth.new_code_by(&maker), Err(AuthError::Revoked)));
}

#[test]
fn r52_all_that_was_made_under_a_token_is_revoked_on_a_full_disk() {
    let world = World::new();
    let auth = world.open();
    let leaked = token(&auth, TokenScope::Admin);
    let (one, kept) = (made_with(&auth, &leaked, None), token(&auth, TokenScope::Read));
    let two = made_with(&auth, &one, None);
    world.block("auth.json");
    assert_eq!(auth.revoke_with_made(&leaked.id).unwrap().len(), 3);
    let left = world.open().tokens();
    assert_eq!(ids(&left), BTreeSet::from([kept.id.as_str()]));
    assert!(auth.bearer(two.token.reveal()).is_none());
}

#[test]
fn r52_makers_in_a_circle_end() {
    let world = World::new();
    let auth = world.open();
    let (one, two, three) =
        (token(&auth, TokenScope::Read), token(&auth, TokenScope::Read), token(&auth, TokenScope::Read));
    auth.change(|records| {
        for (id, by) in [(&one.id, &two.id), (&two.id, &one.id), (&three.id, &two.id)] {
            records.tokens.get_mut(id).unwrap().made.by = Some(by.clone());
        }
        Ok::<_, AuthError>(())
    })
    .unwrap();
    assert_eq!(auth.made_under(&one.id).len(), 2);
    assert_eq!(auth.makers(&caller(&auth, &three)).made_under, [two.id.clone(), one.id.clone()]);
    assert_eq!(auth.revoke_with_made(&two.id).unwrap().len(), 3);
}
