//! Finds sessions by the start of their id or name.

use bowline_proto::problem;
use std::collections::BTreeSet;

use bowline_client::remote::ApiError;
use bowline_host::registry::RegistryError;
use bowline_proto::ids::SessionName;

use super::{Host, Session};
use crate::failure::{Code, Failure};

/// Minimum length of an id prefix. Ids are random, so a shorter prefix would match sessions by chance.
const MIN_ID: usize = 4;

/// Finds the only session whose id or name starts with `key`, `error` is from the failed exact lookup. Returns
/// `error` if there is none, and an error that lists the candidates if there are several.
pub(super) fn find(host: &(impl Host + ?Sized), key: &str, error: anyhow::Error) -> anyhow::Result<Session> {
    // Every prefix of an id or a name is a valid name.
    if !is_unknown(&error) || key.parse::<SessionName>().is_err() {
        return Err(error);
    }
    match candidates(&host.list()?, key).as_slice() {
        [] => Err(error),
        // Several ended sessions may share a name; `find_exact` picks one, as it does for a full name.
        [only] => host.find_exact(only),
        several => {
            let message = format!("{key:?} matches several sessions: {}", several.join(", "));
            Err(Failure::new(Code::Usage, message, "give more of the name or id").into())
        }
    }
}

/// Adds to `error` the sessions whose id or name starts with `key`. For verbs that cannot be undone, which take no prefix:
/// a script that ends `job-1` twice must not end `job-10`.
pub(super) fn suggest(host: &(impl Host + ?Sized), key: &str, error: anyhow::Error) -> anyhow::Error {
    let sessions = if is_unknown(&error) { host.list().unwrap_or_default() } else { Vec::new() };
    match candidates(&sessions, key).as_slice() {
        [] => error,
        found => {
            let hint = format!("did you mean {}? Give the full name or id", found.join(" or "));
            Failure::new(Code::NotFound, format!("no session is called {key:?}"), hint).into()
        }
    }
}

/// The names that start with `key`, and the ids of sessions without such a name that do.
fn candidates(sessions: &[Session], key: &str) -> Vec<String> {
    let found = sessions.iter().filter_map(|session| {
        let name = session.info.name.as_ref().map(SessionName::as_str).filter(|name| name.starts_with(key));
        let id = Some(session.info.id.as_str()).filter(|id| key.len() >= MIN_ID && id.starts_with(key));
        name.or(id).map(str::to_owned)
    });
    found.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether the error says that no session has the id or name, rather than that the lookup failed.
fn is_unknown(error: &anyhow::Error) -> bool {
    let local = error.downcast_ref().is_some_and(|error| matches!(error, RegistryError::Unknown(_)));
    let remote = error.downcast_ref().and_then(ApiError::code) == Some(problem::Code::UnknownSession);
    local || remote
}
