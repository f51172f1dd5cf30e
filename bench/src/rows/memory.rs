//! Memory: what an idle session costs where there are fifty.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::{Bench, ECHO, beside_others};
use crate::figure::{Budget, Figure, Row};
use crate::machine;
use crate::mux::{Kept, Mux};
use crate::pty::ROWS;
use crate::text::short_lines;

/// Lines above the visible ones, in the second measurement.
const HISTORY: usize = 1000;
/// How often memory is looked at, and for how long it must stay the same.
const LOOK: Duration = Duration::from_millis(500);
/// See [`LOOK`].
const LOOKS: usize = 4;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let lines = bench.file("lines", &short_lines(HISTORY + usize::from(ROWS) - 1))?;
    let script = format!("stty raw -echo opost; cat {}; exec cat", lines.display());
    let scrolled = ["sh", "-c", script.as_str()];
    let history = format!("{HISTORY} lines of history");
    let states = [(&ECHO, "nothing scrolled", 1024.0), (&scrolled, history.as_str(), 4096.0)];
    let count = bench.pick(50, 10);
    let mut rows = Vec::new();
    for (program, state, budget) in states {
        let kept = bench.keep(Mux::Bowline, program, count)?;
        let (mean, most) = settled(&kept)?;
        let what = format!("memory of one of {count} idle sessions, {state}");
        rows.push(Row::new(&what, Figure::new(mean, "KiB")).budget(Budget::AtMost(budget)));
        rows.push(Row::new(format!("the largest of these, {state}"), Figure::new(most, "KiB")));
        drop(kept);
        let mut figures = vec![(Mux::Bowline, Figure::new(mean, "KiB"))];
        for mux in bench.muxes().into_iter().filter(|mux| *mux != Mux::Bowline) {
            let kept = bench.keep(mux, program, count)?;
            figures.push((mux, Figure::new(settled(&kept)?.0, "KiB")));
        }
        rows.extend(beside_others(&what, &figures, bench));
    }
    Ok(rows)
}

/// Waits until memory no longer changes, and gives what a session costs: on average, and the largest holder.
fn settled(kept: &Kept) -> Result<(f64, f64)> {
    let pids = kept.pids();
    let read = || pids.iter().map(|pid| machine::pss(*pid)).collect::<Result<Vec<u64>>>();
    let until = Instant::now() + Duration::from_secs(30);
    let (mut last, mut same) = (read()?, 0);
    while Instant::now() < until {
        std::thread::sleep(LOOK);
        let now = read()?;
        same = if now.iter().sum::<u64>().abs_diff(last.iter().sum()) <= pids.len() as u64 { same + 1 } else { 0 };
        if same == LOOKS {
            let most = now.iter().max().copied().unwrap_or_default();
            return Ok((now.iter().sum::<u64>() as f64 / kept.count() as f64, most as f64));
        }
        last = now;
    }
    bail!("memory did not settle")
}
