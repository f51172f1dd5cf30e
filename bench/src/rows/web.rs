//! Through the gateway: output, echo, and the memory of idle viewers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bowline_proto::message::Lag;

use super::echo::{Typist, type_in_turn};
use super::output::{Pass, read_bare, read_viewer};
use super::{Bench, ECHO, printer_script};
use crate::figure::{Budget, Figure, Row, median, quantile};
use crate::gateway::Gateway;
use crate::machine;
use crate::pty::PtyChild;
use crate::text::{as_printed, coloured};
use crate::viewer::Viewer;

/// How long a flood goes on before the second measurement.
const FLOOD_BURST: Duration = Duration::from_secs(15);

pub(super) fn output(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let text = coloured(bench.pick(100_000_000, 20_000_000));
    let file = bench.file("text", &text)?;
    let printed = as_printed(&text);
    let script = printer_script(&file);
    let program = ["sh", "-c", script.as_str()];

    let gateway = Gateway::start(&bench.bowline)?;
    let bare = PtyChild::spawn(&program, &[])?;
    bare.read_until(b"READY")?;
    let session = bench.bowline.start(&program)?;
    let mut viewer = Viewer::attach_and_wait(&gateway.route_to(&session), Lag::Wait, b"READY")?;
    let pids = [session.pid(), gateway.pid()];
    read_bare(&bare, 1, Some(&printed))?;
    read_viewer(&mut viewer, &pids, 1, Some(&printed))?;
    let (mut bares, mut ours, mut gateways) = (Vec::new(), Vec::new(), Vec::new());
    for round in 2..2 + bench.pick(7, 3) {
        bares.push(read_bare(&bare, round, None)?);
        let before = machine::cpu(gateway.pid())?;
        ours.push(read_viewer(&mut viewer, &pids, round, None)?);
        gateways.push((machine::cpu(gateway.pid())? - before).as_secs_f64());
    }
    ensure!(viewer.skipped() == 0, "a viewer with lag `wait` got {} snapshots in place of output", viewer.skipped());

    let bytes = printed.len() as f64;
    let speed = |passes: &[Pass]| bytes / 1e6 / median(&passes.iter().map(|pass| pass.seconds).collect::<Vec<_>>());
    let per_gb = |seconds: &[f64]| median(seconds) / (bytes / 1e9);
    let ratios: Vec<f64> = bares.iter().zip(&ours).map(|(bare, ours)| bare.seconds / ours.seconds).collect();
    let cpu: Vec<f64> = ours.iter().map(|pass| pass.cpu).collect();
    Ok(vec![
        Row::new(
            format!("output of {} MB over a WebSocket", text.len() / 1_000_000),
            Figure::new(speed(&ours), "MB/s"),
        )
        .against("bare read loop", Figure::new(speed(&bares), "MB/s"))
        .ratio(median(&ratios))
        .budget(Budget::RatioAtLeast(0.6)),
        Row::new("processor time of session and gateway, per GB", Figure::new(per_gb(&cpu), "s"))
            .budget(Budget::AtMost(26.0)),
        Row::new("the gateway's part of it", Figure::new(per_gb(&gateways), "s")),
    ])
}

pub(super) fn echo(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let gateway = Gateway::start(&bench.bowline)?;
    let mut typists = [Typist::relay_over_tcp(bench)?, Typist::web(bench, &gateway)?, Typist::bare()?];
    let quiet = type_in_turn(&mut typists, bench.pick(7, 3), bench.pick(400, 60))?;
    // Another session prints endlessly, and its viewer reads as fast as possible.
    let session = bench.bowline.start(&["sh", "-c", "printf READY; read x; exec yes"])?;
    let mut flood_viewer = Viewer::attach_and_wait(&gateway.route_to(&session), Lag::Skip, b"READY")?;
    flood_viewer.write(b"\n")?;
    let (stop, stop_requested) = std::sync::mpsc::channel::<()>();
    let printed = Arc::new(AtomicU64::new(0));
    let reader = std::thread::spawn({
        let printed = printed.clone();
        move || -> Result<()> {
            while stop_requested.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                flood_viewer.receive(|_| {})?;
                printed.store(flood_viewer.offset(), Ordering::Relaxed);
            }
            Ok(())
        }
    });
    let begun = Instant::now();
    let burst = type_in_turn(&mut typists, 1, bench.pick(400, 60))?;
    // Now the terminals are full, and a session that prints too fast has used up its burst.
    std::thread::sleep(bench.pick(FLOOD_BURST, Duration::ZERO).saturating_sub(begun.elapsed()));
    let (from, since) = (printed.load(Ordering::Relaxed), Instant::now());
    let flooded = type_in_turn(&mut typists, bench.pick(3, 1), bench.pick(400, 60))?;
    let speed = (printed.load(Ordering::Relaxed) - from) as f64 / 1e6 / since.elapsed().as_secs_f64();
    drop(stop);
    reader.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;

    let of = |rounds: &[Vec<f64>], q: f64| rounds.iter().map(|samples| quantile(samples, q)).collect::<Vec<f64>>();
    let mut rows = Vec::new();
    for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
        let (relay, ours, bare) = (of(&quiet[0], q), of(&quiet[1], q), of(&quiet[2], q));
        let ratios: Vec<f64> = ours.iter().zip(&relay).map(|(ours, relay)| ours / relay).collect();
        rows.push(
            Row::new(format!("echo of a key over a WebSocket, {name}"), Figure::new(median(&ours), "µs"))
                .against("bare relay over TCP", Figure::new(median(&relay), "µs"))
                .ratio(median(&ratios))
                .budget(Budget::RatioAtMost(1.5)),
        );
        rows.push(
            Row::new(format!("echo of a key over a WebSocket, {name}"), Figure::new(median(&ours), "µs"))
                .against("bare PTY", Figure::new(median(&bare), "µs")),
        );
    }
    for (when, times) in
        [("in the first seconds of a neighbour's flood", &burst), ("while a neighbour floods", &flooded)]
    {
        for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
            let ours = Figure::new(median(&of(&times[1], q)), "µs");
            let relay = Figure::new(median(&of(&times[0], q)), "µs");
            let bare = Figure::new(median(&of(&times[2], q)), "µs");
            let what = format!("echo {when}, {name}");
            rows.push(Row::new(what.clone(), ours).against("bare relay over TCP, too", relay));
            rows.push(Row::new(what, ours).against("bare PTY, too", bare));
        }
    }
    let (flooded50, flooded99) = (median(&of(&flooded[1], 0.5)), median(&of(&flooded[1], 0.99)));
    let bare50 = median(&of(&quiet[2], 0.5));
    let (quiet50, quiet99) = (median(&of(&quiet[1], 0.5)), median(&of(&quiet[1], 0.99)));
    rows.push(
        Row::new("echo while a neighbour floods, p50", Figure::new(flooded50, "µs"))
            .against("bare PTY without a flood", Figure::new(bare50, "µs"))
            .budget(Budget::RatioAtMost(5.0)),
    );
    rows.push(
        Row::new("echo while a neighbour floods, p50", Figure::new(flooded50, "µs"))
            .against("itself without a flood", Figure::new(quiet50, "µs"))
            .budget(Budget::RatioAtMost(2.0)),
    );
    rows.push(
        Row::new("echo while a neighbour floods, p99", Figure::new(flooded99, "µs"))
            .against("itself without a flood", Figure::new(quiet99, "µs"))
            .budget(Budget::RatioAtMost(3.0)),
    );
    rows.push(Row::new("the flood meanwhile", Figure::new(speed, "MB/s")));
    Ok(rows)
}

pub(super) fn memory(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let gateway = Gateway::start(&bench.bowline)?;
    let count = bench.pick(200, 40);
    let sessions = (0..count).map(|_| bench.bowline.start(&ECHO)).collect::<Result<Vec<_>>>()?;
    let first = Viewer::attach_and_wait(&gateway.route_to(&sessions[0]), Lag::Skip, b"READY")?;
    let before = settled_memory(gateway.pid())?;
    let attach = |session| Viewer::attach_and_wait(&gateway.route_to(session), Lag::Skip, b"READY");
    let viewers = sessions.iter().skip(1).map(attach).collect::<Result<Vec<_>>>()?;
    let after = settled_memory(gateway.pid())?;
    let each = (after - before) / viewers.len() as f64;
    drop((first, viewers));
    Ok(vec![
        Row::new(format!("the gateway's memory for one of {count} idle viewers"), Figure::new(each, "KiB"))
            .budget(Budget::AtMost(40.0)),
        Row::new("the gateway's memory with one viewer", Figure::new(before, "KiB")),
    ])
}

/// Waits until the memory of a process no longer changes. Returns it in KiB.
fn settled_memory(pid: u32) -> Result<f64> {
    let mut last = machine::pss(pid)?;
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = machine::pss(pid)?;
        if now.abs_diff(last) <= 8 {
            return Ok(now as f64);
        }
        last = now;
    }
}
