//! `bowline prune`: forgets ended sessions.

use std::process::ExitCode;

use serde_json::json;

use crate::config::Config;
use crate::failure::Failure;
use crate::host::{Host, PruneOutcome};
use crate::print::one_line;
use crate::{args, units};

pub(crate) fn run(verb: &args::Prune, host: &dyn Host, config: &Config) -> anyhow::Result<ExitCode> {
    let pruned = host.prune(verb, config)?;
    if verb.json {
        let ids: Vec<_> = pruned.sessions.iter().map(|session| &session.info.id).chain(&pruned.damaged).collect();
        println!("{}", json!({"pruned": ids, "bytes": pruned.bytes, "dry_run": verb.dry_run}));
    } else {
        print_outcome(&pruned, verb.dry_run);
    }
    // Report every error; exit with the code of the first.
    let codes: Vec<ExitCode> = pruned.failed.into_iter().map(|error| Failure::from(error).report()).collect();
    Ok(codes.into_iter().next().unwrap_or(ExitCode::SUCCESS))
}

fn print_outcome(pruned: &PruneOutcome, dry_run: bool) {
    let action = if dry_run { "would forget" } else { "forgot" };
    for session in &pruned.sessions {
        println!("{action} {} ({})", session.label(), one_line(session.info.command_line()));
    }
    for id in &pruned.damaged {
        println!("{action} {id}, whose files are damaged");
    }
    if pruned.sessions.is_empty() && pruned.damaged.is_empty() {
        return println!("nothing to forget");
    }
    let count = pruned.sessions.len() + pruned.damaged.len();
    println!("{action} {count} session{} ({})", if count == 1 { "" } else { "s" }, units::format_bytes(pruned.bytes));
}
