//! `bowline prune`: forget ended sessions.

use std::process::ExitCode;

use serde_json::json;

use crate::config::Config;
use crate::place::Place;
use crate::{args, units};

pub(crate) fn run(verb: &args::Prune, place: &dyn Place, config: &Config) -> anyhow::Result<ExitCode> {
    let pruned = place.prune(verb, config)?;
    if verb.json {
        let ids: Vec<_> = pruned.sessions.iter().map(|session| &session.info.id).collect();
        println!("{}", json!({"pruned": ids, "bytes": pruned.bytes, "dry_run": verb.dry_run}));
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if verb.dry_run { "would forget" } else { "forgot" };
    for session in &pruned.sessions {
        println!("{verb} {} ({})", session.label(), session.info.argv.join(" "));
    }
    let count = pruned.sessions.len();
    println!("{verb} {count} session{}, {}", if count == 1 { "" } else { "s" }, units::show_bytes(pruned.bytes));
    Ok(ExitCode::SUCCESS)
}
