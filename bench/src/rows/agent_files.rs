//! Conversations with long transcripts: listing many of them, and reading the last page of a very long one.

use std::fs;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::memory::settled_memory;
use super::{Bench, millis};
use crate::figure::{Budget, Figure, Row, median};
use crate::gateway::Gateway;
use crate::session::{Bowline, Session};
use crate::transcript;

/// The size of each listed transcript, and of the one that is paged, in bytes.
const LISTED: usize = 20_000_000;
const PAGED: usize = 100_000_000;
/// How long a list or a page may take, in ms.
const MAX: f64 = 20.0;

pub(super) fn measure_list(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let count = bench.pick(200, 10);
    let bowline = bench.bowline.with_state_dir("agents");
    let needed = (count * LISTED) as u64 * 5 / 4;
    let space = rustix::fs::statvfs(bench.dir.path())?;
    let free = space.f_bavail * space.f_frsize;
    ensure!(
        free >= needed,
        "{} MB are free in {}, and {} MB are needed",
        free >> 20,
        bench.dir.path().display(),
        needed >> 20
    );
    let first = transcript::generate(&bowline, LISTED)?;
    let mut ids = vec![first.clone()];
    for n in 1..count {
        if n % 50 == 1 {
            eprintln!("writing {} MB of transcripts", (count - n) * LISTED / 1_000_000);
        }
        let id = format!("{n:012}");
        transcript::copy(&bowline.session_dir(&first), &bowline.session_dir(&id))?;
        ids.push(id);
    }
    let rows = list_ended_and_live(bench, &bowline, &ids);
    fs::remove_dir_all(bowline.state())?;
    rows
}

fn list_ended_and_live(bench: &Bench<'_>, bowline: &Bowline, ids: &[String]) -> Result<Vec<Row>> {
    // Otherwise the kernel would write the transcripts to disk meanwhile.
    rustix::fs::sync();
    let mut rows = list_rows(bench, bowline, ids.len(), "ended")?;
    let mut live = Vec::new();
    for id in ids {
        if live.len() % 50 == 0 {
            eprintln!("restarting {} sessions", ids.len() - live.len());
        }
        live.push(bowline.restart(id)?);
    }
    let (mean, _) = settled_memory(&live.iter().map(Session::pid).collect::<Vec<_>>(), live.len())?;
    rows.extend(list_rows(bench, bowline, ids.len(), "running")?);
    rows.push(Row::new("memory of one of these sessions", Figure::new(mean, "KiB")));
    Ok(rows)
}

/// The rows of one state of the sessions.
fn list_rows(bench: &Bench<'_>, bowline: &Bowline, count: usize, state: &str) -> Result<Vec<Row>> {
    let check = |listed: &str| {
        let listed: Value = serde_json::from_str(listed)?;
        let sessions = listed["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let state = if state == "ended" { "exited" } else { state };
        let found = sessions.iter().filter(|session| session["state"] == state).count();
        ensure!(found == count, "{found} of {count} sessions were listed as {state}");
        Ok(())
    };
    let gateway = Gateway::start(bowline)?;
    let mut client = gateway.client()?;
    let (mut calls, mut commands) = (Vec::new(), Vec::new());
    // The first of each is not counted.
    for _ in 0..1 + bench.pick(21, 5) {
        let begun = Instant::now();
        let (_, listed) = client.call("GET", "/v1/sessions", "")?;
        calls.push(millis(begun.elapsed()));
        check(&listed)?;
        let begun = Instant::now();
        let listed = bowline.run(&["ls", "--json"])?;
        commands.push(millis(begun.elapsed()));
        check(&listed)?;
    }
    let row = |what: &str, times: &[f64]| {
        let what = format!("{what} of {count} {state} conversations of {} MB", LISTED / 1_000_000);
        Row::new(what, Figure::new(median(&times[1..]), "ms")).budget(Budget::AtMost(MAX))
    };
    Ok(vec![row("`GET /v1/sessions`", &calls), row("`bowline ls`", &commands)])
}

pub(super) fn measure_page(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let bowline = bench.bowline.with_state_dir("pages");
    let id = transcript::generate(&bowline, bench.pick(PAGED, PAGED / 5))?;
    let mut rows = page_rows(bench, &bowline, &id, "ended")?;
    let session = bowline.restart(&id)?;
    rows.extend(page_rows(bench, &bowline, &id, "running")?);
    drop(session);
    fs::remove_dir_all(bowline.state())?;
    Ok(rows)
}

fn page_rows(bench: &Bench<'_>, bowline: &Bowline, id: &str, state: &str) -> Result<Vec<Row>> {
    let gateway = Gateway::start(bowline)?;
    let mut client = gateway.client()?;
    let path = format!("/v1/sessions/{id}/events");
    let mut time = |path: &str| -> Result<(f64, Value)> {
        let begun = Instant::now();
        let (status, page) = client.call("GET", path, "")?;
        let took = millis(begun.elapsed());
        ensure!(status == 200, "a page was answered with {status}: {page}");
        Ok((took, serde_json::from_str(&page)?))
    };
    let (mut last, mut middle) = (Vec::new(), Vec::new());
    // The first one is not counted.
    for _ in 0..1 + bench.pick(31, 5) {
        let (took, page) = time(&path)?;
        ensure!(page["events"].as_array().is_some_and(|events| events.len() == 200), "the page is not full");
        last.push(took);
        let half = page["next"].as_u64().unwrap_or_default() / 2;
        middle.push(time(&format!("{path}?before={half}"))?.0);
    }
    let size = fs::metadata(bowline.session_dir(id).join("events.jsonl"))?.len() / 1_000_000;
    let row = |what: &str, times: &[f64]| {
        let what = format!("{what} of {state} conversation of {size} MB");
        Row::new(
            what.replace("of ended", "of an ended").replace("of running", "of a running"),
            Figure::new(median(&times[1..]), "ms"),
        )
    };
    Ok(vec![
        row("the first page that is shown", &last).budget(Budget::AtMost(MAX)),
        row("a page in the middle", &middle),
    ])
}
