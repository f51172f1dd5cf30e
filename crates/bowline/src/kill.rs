//! `bowline kill`: end sessions, and everything they started.

use std::process::ExitCode;

use bowline_session::home::Home;
use bowline_session::registry::{self, Entry};
use bowline_session::remove;
use serde_json::json;

use crate::args;

pub(crate) fn run(verb: &args::Kill) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let entries: Vec<Entry> = if verb.all {
        registry::list_files(&home)?.into_iter().filter(|entry| entry.here).collect()
    } else {
        verb.sessions.iter().map(|key| registry::find(&home, key)).collect::<Result<_, _>>()?
    };
    // Side by side: each may take its whole grace.
    let results: Vec<Result<(), remove::EndError>> = std::thread::scope(|scope| {
        let ending: Vec<_> =
            entries.iter().map(|entry| scope.spawn(|| remove::end(entry, verb.grace, verb.keep))).collect();
        ending.into_iter().map(|end| end.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    if verb.json {
        let ended: Vec<_> = entries.iter().zip(&results).filter(|(_, result)| result.is_ok()).collect();
        println!("{}", json!({ "ended": ended.iter().map(|(entry, _)| &entry.info.id).collect::<Vec<_>>() }));
    }
    results.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(ExitCode::SUCCESS)
}
