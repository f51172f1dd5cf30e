//! `bowline kill`: end sessions, and everything they started.

use std::collections::HashSet;
use std::process::ExitCode;

use bowline_proto::ids::SessionId;
use serde_json::json;

use crate::args;
use crate::failure::Failure;
use crate::place::{Place, Session};

pub(crate) fn run(verb: &args::Kill, place: &dyn Place) -> anyhow::Result<ExitCode> {
    type Found<'a> = Result<Session, (&'a str, anyhow::Error)>;
    let mut found: Vec<Found<'_>> = if verb.all {
        place.list()?.into_iter().filter(|session| session.info.host.is_none()).map(Ok).collect()
    } else {
        verb.sessions.iter().map(|key| place.find_or_suggest(key).map_err(|why| (key.as_str(), why))).collect()
    };
    // One that was given twice, by its name and its id perhaps, is ended once.
    let mut seen = HashSet::new();
    found.retain(|found| found.as_ref().map_or(true, |session| seen.insert(session.info.id.clone())));
    // Side by side: each may take its whole grace. One that cannot be ended is in nobody's way.
    let ended: Vec<anyhow::Result<(SessionId, String)>> = std::thread::scope(|scope| {
        let end = |found: Found<'_>| match found {
            Ok(session) => place.end(&session, verb.grace, verb.keep).map(|()| {
                let said = format!("ended {}", session.full_label());
                (session.info.id, said)
            }),
            Err((_, why)) if verb.keep => Err(why),
            Err((key, why)) => place.forget_damaged(key, why).map(|id| {
                let said = format!("forgot {id} (its files are damaged)");
                (id, said)
            }),
        };
        let ending: Vec<_> = found.into_iter().map(|found| scope.spawn(move || end(found))).collect();
        ending.into_iter().map(|end| end.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let (ended, failed): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
    if verb.json {
        let ids: Vec<_> = ended.iter().flatten().map(|(id, _)| id).collect();
        println!("{}", json!({ "ended": ids }));
    } else {
        ended.iter().flatten().for_each(|(_, said)| println!("{said}"));
    }
    // The first one's code is the verb's.
    let codes: Vec<ExitCode> =
        failed.into_iter().filter_map(Result::err).map(|error| Failure::from(error).report()).collect();
    Ok(codes.into_iter().next().unwrap_or(ExitCode::SUCCESS))
}
