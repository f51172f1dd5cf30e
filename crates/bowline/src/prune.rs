//! `bowline prune`: forget ended sessions.

use std::process::ExitCode;

use serde_json::json;

use crate::config::Config;
use crate::failure::Failure;
use crate::place::{Place, Pruned};
use crate::{args, units};

pub(crate) fn run(verb: &args::Prune, place: &dyn Place, config: &Config) -> anyhow::Result<ExitCode> {
    let pruned = place.prune(verb, config)?;
    if verb.json {
        let ids: Vec<_> = pruned.sessions.iter().map(|session| &session.info.id).chain(&pruned.damaged).collect();
        println!("{}", json!({"pruned": ids, "bytes": pruned.bytes, "dry_run": verb.dry_run}));
    } else {
        show(&pruned, verb.dry_run);
    }
    // The first one's code is the verb's.
    let codes: Vec<ExitCode> = pruned.failed.into_iter().map(|error| Failure::from(error).report()).collect();
    Ok(codes.into_iter().next().unwrap_or(ExitCode::SUCCESS))
}

fn show(pruned: &Pruned, dry_run: bool) {
    let verb = if dry_run { "would forget" } else { "forgot" };
    for session in &pruned.sessions {
        println!("{verb} {} ({})", session.label(), session.info.command_line());
    }
    for id in &pruned.damaged {
        println!("{verb} {id} (its files are damaged)");
    }
    let count = pruned.sessions.len() + pruned.damaged.len();
    println!("{verb} {count} session{}, {}", if count == 1 { "" } else { "s" }, units::show_bytes(pruned.bytes));
}
