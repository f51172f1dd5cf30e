//! A cold attach to a session with a full log: time and bytes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bowline_proto::message::Lag;

use super::{Bench, against_others, printer_script};
use crate::figure::{Budget, Figure, Row, median};
use crate::pty::ROWS;
use crate::text::{coloured, mark, rendered_len};
use crate::viewer::Viewer;

/// The scrollback that the viewer requests, in lines.
const SCROLLBACK: u32 = 1000;
/// Time for a multiplexer to notice that its last client is gone; before that, some delay the next client.
const DETACH_PAUSE: Duration = Duration::from_millis(1500);
/// More than the default size of a log.
const PRINTED: usize = 9 << 20;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let text = coloured(PRINTED);
    let file = bench.file("full", &text)?;
    let script = printer_script(&file);
    let program = ["sh", "-c", script.as_str()];
    let session = bench.bowline.start(&program)?;
    let mut first = Viewer::attach_and_wait(&session, Lag::Wait, b"READY")?;
    first.write(b"\n")?;
    first.read_until(mark(1).as_bytes())?;
    drop(first);

    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..bench.pick(31, 7) {
        std::thread::sleep(Duration::from_millis(50));
        let (_, cost) = Viewer::attach(&session, Lag::Skip, SCROLLBACK)?;
        times.push(cost.took.as_secs_f64() * 1e3);
        bytes = cost.bytes;
    }
    drop(session);
    let shown = [text.as_slice(), mark(1).as_bytes()].concat();
    let needed = rendered_len(&shown, usize::from(ROWS) + SCROLLBACK as usize);
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let mut rows = vec![
        Row::new("cold attach to a full log, 1,000 lines", Figure::new(median(&times), "ms"))
            .budget(Budget::AtMost(30.0)),
        Row::new(format!("the slowest of {}", times.len()), Figure::new(slowest, "ms")),
        Row::new("bytes sent for it", Figure::new(bytes as f64 / 1024.0, "KiB"))
            .against("plain text with its colours", Figure::new(needed as f64 / 1024.0, "KiB"))
            .budget(Budget::RatioAtMost(3.0)),
    ];
    rows.extend(in_a_window(bench, &program)?);
    Ok(rows)
}

/// The time from the start of a client to the last line of the screen, for each multiplexer.
fn in_a_window(bench: &Bench<'_>, program: &[&str]) -> Result<Vec<Row>> {
    let mut figures = Vec::new();
    for mux in bench.muxes().into_iter().filter(|mux| mux.has_screen()) {
        let sessions = bench.start_mux(mux, program, 1)?;
        let client = sessions.attach_and_wait(b"READY").with_context(|| bench.name(mux).to_owned())?;
        client.write(b"\r")?;
        client.read_until(mark(1).as_bytes())?;
        drop(client);
        let mut times = Vec::new();
        for _ in 0..bench.pick(9, 3) {
            std::thread::sleep(DETACH_PAUSE);
            let begun = Instant::now();
            let client = sessions.attach()?;
            client.read_until(mark(1).as_bytes())?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        figures.push((mux, Figure::new(median(&times), "ms")));
    }
    Ok(against_others("from starting a client to the whole screen", &figures, bench))
}
