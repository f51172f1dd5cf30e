//! `bowline kill`: ends sessions and everything they started.

use std::collections::HashSet;
use std::process::ExitCode;

use bowline_proto::ids::SessionId;
use bowline_proto::session::State;
use serde_json::json;

use crate::args;
use crate::failure::Failure;
use crate::host::{Host, Session};

/// A session to end, or the id or name that was not found, with the reason.
type Target<'a> = Result<Session, (&'a str, anyhow::Error)>;

pub(crate) fn run(verb: &args::Kill, host: &dyn Host) -> anyhow::Result<ExitCode> {
    let mut targets: Vec<Target<'_>> = if verb.all {
        host.list()?.into_iter().filter(|session| session.info.host.is_none()).map(Ok).collect()
    } else {
        verb.sessions.iter().map(|key| host.find_or_suggest(key).map_err(|error| (key.as_str(), error))).collect()
    };
    // A session given twice, perhaps by name and by id, is ended once.
    let mut seen = HashSet::new();
    targets.retain(|target| target.as_ref().map_or(true, |session| seen.insert(session.info.id.clone())));
    // In parallel, since each session may take its whole grace period.
    let results: Vec<anyhow::Result<(SessionId, String)>> = std::thread::scope(|scope| {
        let end = |target: Target<'_>| match target {
            Ok(session) => host.end(&session, verb.grace, verb.keep).map(|()| {
                let label = session.full_label();
                let message = match (session.info.state, verb.keep) {
                    (State::Running | State::Unknown, _) => format!("ended {label}"),
                    (State::Exited | State::Lost, true) => format!("{label} had already ended"),
                    (State::Exited | State::Lost, false) => format!("forgot {label}"),
                };
                (session.info.id, message)
            }),
            Err((_, error)) if verb.keep => Err(error),
            Err((key, error)) => host.forget_damaged(key, error).map(|id| {
                let message = format!("forgot {id}, whose files were damaged");
                (id, message)
            }),
        };
        let threads: Vec<_> = targets.into_iter().map(|target| scope.spawn(move || end(target))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let (ended, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    if verb.json {
        let ids: Vec<_> = ended.iter().flatten().map(|(id, _)| id).collect();
        println!("{}", json!({ "ended": ids }));
    } else {
        ended.iter().flatten().for_each(|(_, message)| println!("{message}"));
    }
    // Report every error; exit with the code of the first.
    let codes: Vec<ExitCode> =
        failed.into_iter().filter_map(Result::err).map(|error| Failure::from(error).report()).collect();
    Ok(codes.into_iter().next().unwrap_or(ExitCode::SUCCESS))
}
