//! `bowline kill`: end sessions, and everything they started.

use std::process::ExitCode;

use serde_json::json;

use crate::args;
use crate::failure::Failure;
use crate::place::{Place, Session};

pub(crate) fn run(verb: &args::Kill, place: &dyn Place) -> anyhow::Result<ExitCode> {
    let found: Vec<anyhow::Result<Session>> = if verb.all {
        place.list()?.into_iter().filter(|session| session.info.host.is_none()).map(Ok).collect()
    } else {
        verb.sessions.iter().map(|key| place.find(key)).collect()
    };
    // Side by side: each may take its whole grace. One that cannot be ended is in nobody's way.
    let ended: Vec<anyhow::Result<Session>> = std::thread::scope(|scope| {
        let end = |session: Session| place.end(&session, verb.grace, verb.keep).map(|()| session);
        let ending: Vec<_> = found.into_iter().map(|found| scope.spawn(move || found.and_then(end))).collect();
        ending.into_iter().map(|end| end.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let (ended, failed): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
    if verb.json {
        let ids: Vec<_> = ended.iter().flatten().map(|session| &session.info.id).collect();
        println!("{}", json!({ "ended": ids }));
    }
    // The first one's code is the verb's.
    let codes: Vec<ExitCode> =
        failed.into_iter().filter_map(Result::err).map(|error| Failure::from(error).report()).collect();
    Ok(codes.into_iter().next().unwrap_or(ExitCode::SUCCESS))
}
