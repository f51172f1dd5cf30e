//! `bowline kill`: end sessions, and everything they started.

use std::process::ExitCode;

use serde_json::json;

use crate::args;
use crate::failure::Failure;
use crate::place::{Place, Session};

pub(crate) fn run(verb: &args::Kill, place: &dyn Place) -> anyhow::Result<ExitCode> {
    let sessions: Vec<Session> = if verb.all {
        place.list()?.into_iter().filter(|session| session.info.host.is_none()).collect()
    } else {
        verb.sessions.iter().map(|key| place.find(key)).collect::<Result<_, _>>()?
    };
    // Side by side: each may take its whole grace.
    let results: Vec<anyhow::Result<()>> = std::thread::scope(|scope| {
        let ending: Vec<_> =
            sessions.iter().map(|session| scope.spawn(|| place.end(session, verb.grace, verb.keep))).collect();
        ending.into_iter().map(|end| end.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    if verb.json {
        let ended: Vec<_> = sessions.iter().zip(&results).filter(|(_, result)| result.is_ok()).collect();
        println!("{}", json!({ "ended": ended.iter().map(|(session, _)| &session.info.id).collect::<Vec<_>>() }));
    }
    // Each is told of; the first one's code is the exit code.
    let mut failures = results.into_iter().filter_map(Result::err).map(Failure::from);
    let Some(first) = failures.next() else { return Ok(ExitCode::SUCCESS) };
    let code = first.report();
    for failure in failures {
        failure.report();
    }
    Ok(code)
}
