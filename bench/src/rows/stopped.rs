//! Viewers that never read while a program prints endlessly: the memory they cost, and the delay for other viewers.

use std::time::{Duration, Instant};

use anyhow::Result;
use bowline_proto::message::Lag;

use super::Bench;
use super::echo::{Typist, type_in_turn};
use crate::figure::{Budget, Figure, Row, median, quantile};
use crate::machine;
use crate::viewer::Viewer;

/// A shell script with a prompt that runs `yes` until Ctrl-C.
const SHELL: [&str; 3] =
    ["sh", "-c", "stty -echo; trap : INT; n=0; while :; do n=$((n+1)); printf \"@PROMPT$n@\"; read x; yes; done"];
/// Time for the flood to fill the scrollback, the buffers and the sockets.
const FILL: Duration = Duration::from_secs(2);
/// How much the memory of a process that does not grow may vary, in KiB.
const TOLERANCE: f64 = 256.0;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut typists = [Typist::relay(bench)?, Typist::viewer(bench)?];
    let session = bench.bowline.start(&SHELL)?;
    let mut viewer = Viewer::attach_and_wait(&session, Lag::Skip, b"@PROMPT1@")?;
    // One viewer for each setting of `lag`; neither reads again.
    let _stopped = [Viewer::attach(&session, Lag::Skip, 1000)?, Viewer::attach(&session, Lag::Wait, 1000)?];
    let rss = || machine::rss(session.pid()).map(|kib| kib as f64);

    let idle = rss()?;
    viewer.write(b"\n")?;
    read_for(&mut viewer, FILL)?;
    let (begun, flood) = (Instant::now(), Duration::from_secs(bench.pick(10, 3)));
    let before = rss()?;
    // Keys are typed in other sessions while the flood goes on and a viewer reads it.
    let flooded = std::thread::spawn(move || read_for(&mut viewer, flood).map(|()| viewer));
    let keys = bench.pick(400, 100);
    let times = type_in_turn(&mut typists, 1, keys)?;
    let mut viewer = flooded.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;
    let (after, lasted) = (rss()?, begun.elapsed());

    let mut stops = Vec::new();
    for n in 2..2 + bench.pick(9, 3) {
        let sent = Instant::now();
        viewer.write(b"\x03")?;
        viewer.read_until(format!("@PROMPT{n}@").as_bytes())?;
        stops.push(sent.elapsed().as_secs_f64() * 1e3);
        viewer.write(b"\n")?;
        read_for(&mut viewer, Duration::from_millis(500))?;
    }
    let slowest = stops.iter().copied().fold(0.0, f64::max);
    let [relay, ours] = [&times[0][0], &times[1][0]];
    let mut rows = vec![
        Row::new(
            format!("growth in {} s of `yes`, two viewers stopped", lasted.as_secs()),
            Figure::new(after - before, "KiB"),
        )
        .budget(Budget::AtMost(TOLERANCE)),
        Row::new("memory after it", Figure::new(after, "KiB")).against("at its start", Figure::new(before, "KiB")),
        Row::new("memory before `yes` began", Figure::new(idle, "KiB")),
        Row::new("Ctrl-C of another viewer until the prompt", Figure::new(median(&stops), "ms")),
        Row::new(format!("the slowest of {}", stops.len()), Figure::new(slowest, "ms")),
    ];
    for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
        rows.push(
            Row::new(format!("echo in a neighbour meanwhile, {name}"), Figure::new(quantile(ours, q), "µs"))
                .against("bare relay", Figure::new(quantile(relay, q), "µs")),
        );
    }
    Ok(rows)
}

fn read_for(viewer: &mut Viewer, time: Duration) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        viewer.receive(|_| {})?;
    }
    Ok(())
}
