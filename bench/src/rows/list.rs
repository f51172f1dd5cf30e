//! Listing many ended sessions with long journals: without their checkpoints, and with them.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{Bench, millis};
use crate::figure::{Budget, Figure, Row, median};

/// The size of each journal in bytes: the most that a terminal keeps.
const JOURNAL: usize = 1 << 20;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let count = bench.pick(1000, 50);
    let bowline = bench.bowline.with_state_dir("list");
    let first = bowline.start(&["sh", "-c", "read x"])?.id;
    bowline.run(&["kill", "--keep", &first])?;
    let sessions = bowline.state().join("sessions");
    let events = long_journal(&sessions.join(&first).join("events.jsonl"))?;
    for n in 1..count {
        copy(&sessions.join(&first), &sessions.join(format!("{n:012}")), &events)?;
    }
    fs::write(sessions.join(&first).join("events.jsonl"), &events)?;
    let list = || {
        let begun = Instant::now();
        let listed = bowline.run(&["ls", "--json"])?;
        let took = millis(begun.elapsed());
        let listed: Value = serde_json::from_str(&listed)?;
        match listed["sessions"].as_array().map(Vec::len) {
            Some(found) if found == count => Ok(took),
            found => bail!("`bowline ls` listed {found:?} of {count} sessions"),
        }
    };
    let cold = list()?;
    let times = (0..bench.pick(21, 5)).map(|_| list()).collect::<Result<Vec<_>>>()?;
    let version = || {
        let begun = Instant::now();
        bowline.run(&["--version"]).map(|_| millis(begun.elapsed()))
    };
    let versions = (0..5).map(|_| version()).collect::<Result<Vec<_>>>()?;
    Ok(vec![
        Row::new(
            format!("`ls` of {count} ended sessions with 1 MiB of events each"),
            Figure::new(median(&times), "ms"),
        )
        .budget(Budget::AtMost(50.0)),
        Row::new("the first time, without their checkpoints", Figure::new(cold, "ms")),
        Row::new("`bowline --version`, which lists nothing", Figure::new(median(&versions), "ms")),
    ])
}

/// A journal of the largest size: titles between the start and the exit of a session.
fn long_journal(path: &Path) -> Result<String> {
    let lines = fs::read_to_string(path)?;
    let (start, end) = lines.trim_end().rsplit_once('\n').context("the session recorded no exit")?;
    let mut events = format!("{start}\n");
    for n in 1.. {
        if events.len() + end.len() >= JOURNAL {
            break;
        }
        let title = json!({"type": "title", "title": format!("building target {n} of many")});
        events += &format!("{}\n", json!({"seq": n, "at": "2026-01-01T00:00:00.000000Z", "event": title}));
    }
    Ok(format!("{events}{end}\n"))
}

/// Copies a session's files, with another id.
fn copy(from: &Path, to: &Path, events: &str) -> Result<()> {
    fs::create_dir(to)?;
    for file in ["log", "screen", "lock"] {
        fs::copy(from.join(file), to.join(file))?;
    }
    let mut meta: Value = serde_json::from_slice(&fs::read(from.join("meta.json"))?)?;
    meta["id"] = to.file_name().and_then(|name| name.to_str()).into();
    fs::write(to.join("events.jsonl"), events)?;
    Ok(fs::write(to.join("meta.json"), meta.to_string())?)
}
