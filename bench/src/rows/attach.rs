//! A cold attach to a session whose log is full: how long, and how many bytes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bowline_proto::message::Lag;

use super::{Bench, beside_others, printer};
use crate::figure::{Budget, Figure, Row, median};
use crate::pty::ROWS;
use crate::text::{coloured, mark, need};
use crate::viewer::Viewer;

/// Scrollback that is asked for.
const SCROLLBACK: u32 = 1000;
/// Until every program in the comparison has noticed that its last client is gone: an early one is kept waiting.
const NOTICED: Duration = Duration::from_millis(1500);
/// More than a log keeps by default.
const PRINTED: usize = 9 << 20;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let text = coloured(PRINTED);
    let file = bench.file("full", &text)?;
    let script = printer(&file);
    let program = ["sh", "-c", script.as_str()];
    let session = bench.bowline.start(&program)?;
    let mut first = Viewer::attach_at(&session, Lag::Wait, b"READY")?;
    first.write(b"\n")?;
    first.read_until(mark(1).as_bytes())?;
    drop(first);

    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..bench.pick(31, 7) {
        std::thread::sleep(Duration::from_millis(50));
        let (_, attach) = Viewer::attach(&session, Lag::Skip, SCROLLBACK)?;
        times.push(attach.took.as_secs_f64() * 1e3);
        bytes = attach.bytes;
    }
    drop(session);
    let shown = [text.as_slice(), mark(1).as_bytes()].concat();
    let needed = need(&shown, usize::from(ROWS) + SCROLLBACK as usize);
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let mut rows = vec![
        Row::new("cold attach to a full log, 1,000 lines", Figure::new(median(&times), "ms"))
            .budget(Budget::AtMost(30.0)),
        Row::new(format!("the slowest of {}", times.len()), Figure::new(slowest, "ms")),
        Row::new("bytes sent for it", Figure::new(bytes as f64 / 1024.0, "KiB"))
            .beside("plain text with its colours", Figure::new(needed as f64 / 1024.0, "KiB"))
            .budget(Budget::RatioAtMost(3.0)),
    ];
    rows.extend(in_a_window(bench, &program)?);
    Ok(rows)
}

/// From the start of a client to the screen's last line, in a terminal window.
fn in_a_window(bench: &Bench<'_>, program: &[&str]) -> Result<Vec<Row>> {
    let mut shown = Vec::new();
    for mux in bench.muxes().into_iter().filter(|mux| mux.has_screen()) {
        let kept = bench.keep(mux, program, 1)?;
        let client = kept.attach_at(b"READY").with_context(|| bench.name(mux).to_owned())?;
        client.write(b"\r")?;
        client.read_until(mark(1).as_bytes())?;
        drop(client);
        let mut times = Vec::new();
        for _ in 0..bench.pick(9, 3) {
            std::thread::sleep(NOTICED);
            let begun = Instant::now();
            let client = kept.attach()?;
            client.read_until(mark(1).as_bytes())?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        shown.push((mux, Figure::new(median(&times), "ms")));
    }
    Ok(beside_others("from starting a client to the whole screen", &shown, bench))
}
