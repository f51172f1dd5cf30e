//! Five hundred viewers of one session that prints a megabyte a second.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bowline_proto::message::Lag;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use super::Bench;
use crate::figure::{Budget, Figure, Row, quantile};
use crate::gateway::Gateway;
use crate::machine;
use crate::pty::{MarkFinder, SILENCE};
use crate::text::coloured;
use crate::viewer::Viewer;

/// Bytes that are printed in each [`TICK`].
const PIECE: usize = 100_000;
const TICK: Duration = Duration::from_millis(100);
/// The last viewer must receive the last byte within this many seconds after it was printed.
const MAX_DELAY: f64 = 1.0;
/// How much memory the gateway and the session may take for each viewer, in KiB, not counting the kernel's buffers.
const MAX_GROWTH: f64 = 64.0;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let (count, seconds): (usize, usize) = (bench.pick(500, 50), bench.pick(10, 3));
    let piece = bench.file("piece", &coloured(PIECE))?;
    let pieces = seconds * 10;
    let script = format!(
        "stty -echo; printf READY; n=0; while [ $n -lt {pieces} ]; do read x; cat {}; n=$((n+1)); done; printf @LAST@; read x",
        piece.display()
    );
    let gateway = Gateway::start(&bench.bowline)?;
    let session = bench.bowline.start(&["sh", "-c", &script])?;
    let route = gateway.route_to(&session);
    let attach = |_| Viewer::attach_and_wait(&route, Lag::Skip, b"READY");
    let mut viewers = (0..count).map(attach).collect::<Result<Vec<Viewer>>>()?;
    // A viewer on the session's socket: it triggers the output, and measures when it was printed.
    let mut local = Viewer::attach_and_wait(&session, Lag::Wait, b"READY")?;
    let memory = || Ok::<f64, anyhow::Error>((machine::rss(gateway.pid())? + machine::rss(session.pid())?) as f64);
    let before = memory()?;
    let begun = Instant::now();
    let half = count.div_ceil(2);
    let (ends, printed) = std::thread::scope(|scope| {
        let readers: Vec<_> =
            viewers.chunks_mut(half).map(|viewers| scope.spawn(move || read_all(viewers, begun))).collect();
        let printed = print_pieces(&mut local, begun, pieces)?;
        let joined = readers.into_iter().map(|reader| reader.join().ok().context("a reader panicked")?);
        let ends: Vec<f64> = joined.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        Ok::<_, anyhow::Error>((ends, printed))
    })?;
    let after = memory()?;
    let skipped: u32 = viewers.iter().map(Viewer::skipped).sum();
    let rate = (PIECE * pieces) as f64 / 1e6 / printed.as_secs_f64();
    let delay = quantile(&ends, 1.0) - printed.as_secs_f64();
    Ok(vec![
        Row::new(format!("{count} viewers of one session, each"), Figure::new(rate, "MB/s")),
        Row::new("the last of them has the last byte, after the program printed it", Figure::new(delay.max(0.0), "s"))
            .budget(Budget::AtMost(MAX_DELAY)),
        Row::new("snapshots in place of output", Figure::new(f64::from(skipped), "in all")).budget(Budget::AtMost(0.0)),
        Row::new("growth of gateway and session, for each viewer", Figure::new((after - before) / count as f64, "KiB"))
            .budget(Budget::AtMost(MAX_GROWTH)),
    ])
}

/// Makes the program print a piece in each [`TICK`]. Returns when the last one was printed.
fn print_pieces(local: &mut Viewer, begun: Instant, pieces: usize) -> Result<Duration> {
    let (mut finder, mut requested) = (MarkFinder::default(), 0);
    loop {
        let due = TICK * requested as u32;
        if requested < pieces && begun.elapsed() >= due {
            local.write(b"\n")?;
            requested += 1;
        }
        let wait = if requested < pieces { due.saturating_sub(begun.elapsed()) } else { SILENCE };
        let ready = poll(&mut [PollFd::new(local, PollFlags::IN)], Some(&Timespec::try_from(wait)?))?;
        anyhow::ensure!(ready > 0 || requested < pieces, "no output for {SILENCE:?}");
        let mut last = false;
        if ready > 0 {
            local.receive(|bytes| last |= finder.find(b"@LAST@", bytes))?;
        }
        if last {
            return Ok(begun.elapsed());
        }
    }
}

/// Reads all viewers until each has received the last mark. Returns when that was, in seconds, for each viewer.
fn read_all(viewers: &mut [Viewer], begun: Instant) -> Result<Vec<f64>> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (at, viewer) in viewers.iter().enumerate() {
        epoll::add(&set, viewer, epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN)?;
    }
    let mut finders: Vec<MarkFinder> = viewers.iter().map(|_| MarkFinder::default()).collect();
    let mut ends = vec![None; viewers.len()];
    let mut ready = Vec::with_capacity(viewers.len());
    let timeout = Timespec::try_from(SILENCE)?;
    while ends.iter().any(Option::is_none) {
        ready.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut ready), Some(&timeout))?;
        anyhow::ensure!(!ready.is_empty(), "no output for {SILENCE:?}");
        for event in &ready {
            let (mut found, at) = (false, event.data.u64() as usize);
            viewers[at].receive(|bytes| found |= finders[at].find(b"@LAST@", bytes))?;
            if found {
                ends[at] = Some(begun.elapsed().as_secs_f64());
            }
        }
    }
    Ok(ends.into_iter().flatten().collect())
}
