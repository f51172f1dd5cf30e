//! Memory: the average of an idle session among fifty of them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Bench, ECHO, against_others};
use crate::figure::{Budget, Figure, Row};
use crate::machine;
use crate::mux::Mux;
use crate::pty::ROWS;
use crate::text::short_lines;

/// Lines of scrollback in the row with a budget.
const HISTORY: usize = 1000;
/// A few more lines, because the emulator allocates memory for a thousand lines at a time.
const PAST_STEP: usize = 1100;
/// The interval between two readings of the memory.
const INTERVAL: Duration = Duration::from_millis(500);
/// After this many equal readings, the memory has settled.
const READINGS: usize = 4;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let scripts = [HISTORY, PAST_STEP].map(|history| scrolled(bench, history));
    let [full, past] = scripts;
    let (full, past) = (full?, past?);
    let states = [
        (ECHO[2], "nothing scrolled".to_owned(), Some(1024.0)),
        (full.as_str(), format!("{HISTORY} lines of history"), Some(4096.0)),
        (past.as_str(), format!("{PAST_STEP} lines of history"), None),
    ];
    let count = bench.pick(50, 10);
    let mut rows = Vec::new();
    for (script, state, budget) in states {
        let program = ["sh", "-c", script];
        let sessions = bench.start_mux(Mux::Bowline, &program, count)?;
        let (mean, most) = settled_memory(&sessions.pids(), sessions.count())?;
        let what = format!("memory of one of {count} idle sessions, {state}");
        let row = Row::new(&what, Figure::new(mean, "KiB"));
        rows.push(Row { budget: budget.map(Budget::AtMost), ..row });
        rows.push(Row::new(format!("the largest of these, {state}"), Figure::new(most, "KiB")));
        drop(sessions);
        let mut figures = vec![(Mux::Bowline, Figure::new(mean, "KiB"))];
        for mux in bench.muxes().into_iter().filter(|mux| *mux != Mux::Bowline) {
            let sessions = bench.start_mux(mux, &program, count)?;
            figures.push((mux, Figure::new(settled_memory(&sessions.pids(), sessions.count())?.0, "KiB")));
        }
        rows.extend(against_others(&what, &figures, bench));
    }
    Ok(rows)
}

/// A shell script that prints `history` lines more than the screen has, and then is idle.
fn scrolled(bench: &Bench<'_>, history: usize) -> Result<String> {
    let lines = bench.file(&format!("lines{history}"), &short_lines(history + usize::from(ROWS) - 1))?;
    Ok(format!("stty raw -echo opost; cat {}; exec cat", lines.display()))
}

/// Waits until the memory of these processes no longer changes. Returns KiB: the average for each of `count` sessions, and
/// the largest process.
pub(super) fn settled_memory(pids: &[u32], count: usize) -> Result<(f64, f64)> {
    let read = || pids.iter().map(|pid| machine::pss(*pid)).collect::<Result<Vec<u64>>>();
    let until = Instant::now() + Duration::from_secs(30);
    let (mut last, mut same) = (read()?, 0);
    while Instant::now() < until {
        std::thread::sleep(INTERVAL);
        let now = read()?;
        same = if now.iter().sum::<u64>().abs_diff(last.iter().sum()) <= pids.len() as u64 { same + 1 } else { 0 };
        if same == READINGS {
            let most = now.iter().max().copied().unwrap_or_default();
            return Ok((now.iter().sum::<u64>() as f64 / count as f64, most as f64));
        }
        last = now;
    }
    bail!("the memory of the sessions did not settle within 30 s")
}
