//! Sessions by the beginning of their id or name.

use bowline_proto::problem;
use std::collections::BTreeSet;

use bowline_client::remote::CallError;
use bowline_host::registry::RegistryError;
use bowline_proto::ids::SessionName;

use super::{Place, Session};
use crate::failure::{Code, Failure};

/// The least of an id: it is random, so less would stand for a session by chance.
const MIN_ID: usize = 4;

/// The only session whose id or name begins with `key`, where no session is called exactly that. Otherwise `why`, or an
/// error that lists the candidates.
pub(super) fn find(place: &(impl Place + ?Sized), key: &str, why: anyhow::Error) -> anyhow::Result<Session> {
    // The beginning of a name is a name; ids look like names.
    if !is_unknown(&why) || key.parse::<SessionName>().is_err() {
        return Err(why);
    }
    match candidates(&place.list()?, key).as_slice() {
        [] => Err(why),
        // Several ended sessions may share a name; which one it means is decided as for the whole name.
        [only] => place.find_exact(only),
        several => {
            let message = format!("{key:?} could be any of these sessions: {}", several.join(", "));
            Err(Failure::new(Code::Usage, message, "give more of the name or id").into())
        }
    }
}

/// Where no session is called exactly that: `why`, with the sessions that may have been meant. For what cannot be undone, a
/// beginning is not enough: a script that ends `job-1` twice must not end `job-10`.
pub(super) fn suggest(place: &(impl Place + ?Sized), key: &str, why: anyhow::Error) -> anyhow::Error {
    let sessions = if is_unknown(&why) { place.list().unwrap_or_default() } else { Vec::new() };
    match candidates(&sessions, key).as_slice() {
        [] => why,
        found => {
            let hint = format!("did you mean {}? Give the whole name or id", found.join(" or "));
            Failure::new(Code::Unknown, format!("no session is called {key:?}"), hint).into()
        }
    }
}

/// The names that begin so, and the ids of other sessions that do.
fn candidates(sessions: &[Session], key: &str) -> Vec<String> {
    let found = sessions.iter().filter_map(|session| {
        let name = session.info.name.as_ref().map(SessionName::as_str).filter(|name| name.starts_with(key));
        let id = Some(session.info.id.as_str()).filter(|id| key.len() >= MIN_ID && id.starts_with(key));
        name.or(id).map(str::to_owned)
    });
    found.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether it is known that no session has this id or name.
fn is_unknown(why: &anyhow::Error) -> bool {
    let local = why.downcast_ref().is_some_and(|why| matches!(why, RegistryError::Unknown(_)));
    let remote = why.downcast_ref().and_then(CallError::code) == Some(problem::Code::UnknownSession);
    local || remote
}
