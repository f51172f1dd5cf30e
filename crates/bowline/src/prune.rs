//! `bowline prune`: forget ended sessions.

use std::process::ExitCode;

use bowline_session::home::Home;
use bowline_session::remove::{self, Retention};
use serde_json::json;

use crate::config::Config;
use crate::{args, units};

pub(crate) fn run(verb: &args::Prune, config: &Config) -> anyhow::Result<ExitCode> {
    let configured = config.retention();
    let retention = Retention {
        max_age: verb.older.unwrap_or(configured.max_age),
        max_bytes: verb.total_size.unwrap_or(configured.max_bytes),
    };
    let pruned = remove::prune(&Home::from_env()?, &retention, verb.dry_run)?;
    if verb.json {
        let ids: Vec<_> = pruned.sessions.iter().map(|entry| &entry.info.id).collect();
        println!("{}", json!({"pruned": ids, "bytes": pruned.bytes, "dry_run": verb.dry_run}));
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if verb.dry_run { "would forget" } else { "forgot" };
    for entry in &pruned.sessions {
        let name = entry.info.name.as_ref().map_or(entry.info.id.as_str(), |name| name.as_str());
        println!("{verb} {name} ({})", entry.info.argv.join(" "));
    }
    let count = pruned.sessions.len();
    println!("{verb} {count} session{}, {}", if count == 1 { "" } else { "s" }, units::show_bytes(pruned.bytes));
    Ok(ExitCode::SUCCESS)
}
