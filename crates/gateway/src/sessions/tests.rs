//! Calls of a caller that is revoked while they wait for a turn, and searches by name.

use bowline_host::events::Event;
use bowline_host::history::History;
use bowline_host::machine::{this_boot, this_host};
use bowline_host::meta::Meta;
use bowline_host::timestamp::timestamp;
use bowline_proto::api::{NewSession, TokenScope};
use bowline_proto::ids::Epoch;
use bowline_proto::size::Size;
use http::HeaderMap;
use serde_json::{from_value, json};

use super::*;
use crate::auth::Caller;
use crate::turns::MAX_SEARCHES;
use crate::{create, testing};

/// A lost session.
fn session(app: &App) -> SessionId {
    let dir = app.home.session(&SessionId::from_random([1; 12]));
    std::fs::create_dir(dir.path()).unwrap();
    let (mut journal, mut history) = History::open(&dir.events()).unwrap();
    let (size, version, epoch) = (Size::default(), "0.1.0".to_owned(), Epoch::from_random([0; 4]));
    history.record(&mut journal, Event::Started { epoch, offset: 0, size: Some(size), pid: 1, version }).unwrap();
    let meta = json!({
        "id": dir.id(), "name": "old", "kind": "terminal", "argv": ["sh"], "cwd": "/", "env": [], "size": size,
        "log_size": 1 << 20, "history": 0, "created": timestamp(), "host": this_host(), "boot": this_boot(),
    });
    from_value::<Meta>(meta).unwrap().write(&dir.meta()).unwrap();
    dir.id().clone()
}

/// A caller whose request was accepted, and that was revoked before the request got its turns.
fn revoked(app: &App) -> Caller {
    let token = app.auth.create_token("t", TokenScope::Write, None).unwrap();
    let caller = app.auth.bearer(token.token.reveal()).unwrap();
    app.auth.revoke(&token.id).unwrap();
    caller
}

#[tokio::test]
async fn r48_a_call_of_a_revoked_caller_changes_no_session() {
    let temp = tempfile::tempdir().unwrap();
    let app = testing::app(temp.path(), |_| {});
    let (id, damaged) = (session(&app), app.home.session(&SessionId::from_random([2; 12])));
    std::fs::create_dir(damaged.path()).unwrap();
    std::fs::write(damaged.meta(), "{").unwrap();
    let writer = || (State(app.clone()), Writer(revoked(&app)));
    let key = || Key(id.to_string());
    let new = |body| Json(from_value::<NewSession>(body).unwrap());

    let mut answers = Vec::new();
    for body in [json!({ "kind": "terminal" }), json!({ "kind": "terminal", "name": "new" })] {
        let (app, caller) = writer();
        answers.push(create::create(app, caller, HeaderMap::new(), new(body)).await);
    }
    let (state, caller) = writer();
    answers.push(restart(state, caller, key(), OptionalJson(Restart::default())).await);
    for body in [json!({ "name": "new" }), json!({ "detached_ttl": 1 })] {
        let (state, caller) = writer();
        answers.push(change(state, caller, key(), Json(from_value(body).unwrap())).await);
    }
    let (state, caller) = writer();
    let line = json!({ "id": "c1", "command": { "type": "signal", "signal": "HUP" } });
    answers.push(command(state, caller, key(), Json(from_value(line).unwrap())).await);
    for key in [key(), Key(damaged.id().to_string())] {
        let (state, caller) = writer();
        answers.push(end(state, caller, key, Query(EndQuery::default())).await);
    }

    let statuses: Vec<u16> = answers.into_iter().map(|answer| answer.unwrap_err().status().as_u16()).collect();
    assert_eq!(statuses, [401; 8]);
    let left: Vec<_> =
        std::fs::read_dir(app.home.sessions()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    let reader = Caller::user("reader", TokenScope::Read);
    assert_eq!(find(&app, &reader, "old").await.ok().unwrap().info.id, id);
}

#[tokio::test(start_paused = true)]
async fn r52_searches_of_one_caller_leave_work_on_files_for_others() {
    let temp = tempfile::tempdir().unwrap();
    let app = testing::app(temp.path(), |_| {});
    let [busy, other] = ["busy", "other"].map(|name| Caller::user(name, TokenScope::Read));
    let mut turns = Vec::new();
    for _ in 0..MAX_SEARCHES {
        turns.push(app.turns.search(&busy).await.ok().unwrap());
    }
    let code = async |caller| find(&app, caller, "build").await.err().map(|refused| refused.code());
    assert_eq!(code(&busy).await, Some(Code::Unreachable));
    assert_eq!(code(&other).await, Some(Code::UnknownSession));
    drop(turns);
    assert_eq!(code(&busy).await, Some(Code::UnknownSession));
}
