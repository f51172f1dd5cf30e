//! Five hundred viewers of one session that prints a megabyte a second.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bowline_proto::message::Lag;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use super::Bench;
use crate::figure::{Budget, Figure, Row, quantile};
use crate::gateway::Gateway;
use crate::machine;
use crate::pty::{SILENCE, Seen};
use crate::text::coloured;
use crate::viewer::Viewer;

/// Bytes in each [`TICK`].
const PIECE: usize = 100_000;
const TICK: Duration = Duration::from_millis(100);
/// After the program's last byte, the last viewer must have it within this.
const BEHIND: f64 = 1.0;
/// Memory that may come and go, in KiB, for each viewer: what the kernel's buffers do not count.
const GROWTH: f64 = 64.0;

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
    let way = gateway.to(&session);
    let attach = |_| Viewer::attach_at(&way, Lag::Skip, b"READY");
    let mut viewers = (0..count).map(attach).collect::<Result<Vec<Viewer>>>()?;
    // The clock, and the measure of being behind: a viewer at the session's own socket.
    let mut near = Viewer::attach_at(&session, Lag::Wait, b"READY")?;
    let memory = || Ok::<f64, anyhow::Error>((machine::rss(gateway.pid())? + machine::rss(session.pid())?) as f64);
    let before = memory()?;
    let begun = Instant::now();
    let half = count.div_ceil(2);
    let (ends, printed) = std::thread::scope(|scope| {
        let readers: Vec<_> =
            viewers.chunks_mut(half).map(|viewers| scope.spawn(move || read_all(viewers, begun))).collect();
        let printed = drive(&mut near, begun, pieces)?;
        let joined = readers.into_iter().map(|reader| reader.join().ok().context("a reader panicked")?);
        let ends: Vec<f64> = joined.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        Ok::<_, anyhow::Error>((ends, printed))
    })?;
    let after = memory()?;
    let skipped: u32 = viewers.iter().map(Viewer::skipped).sum();
    let rate = (PIECE * pieces) as f64 / 1e6 / printed.as_secs_f64();
    let behind = quantile(&ends, 1.0) - printed.as_secs_f64();
    Ok(vec![
        Row::new(format!("{count} viewers of one session, each"), Figure::new(rate, "MB/s")),
        Row::new("the last of them has the last byte, after the program printed it", Figure::new(behind.max(0.0), "s"))
            .budget(Budget::AtMost(BEHIND)),
        Row::new("snapshots in place of output", Figure::new(f64::from(skipped), "in all")).budget(Budget::AtMost(0.0)),
        Row::new("growth of gateway and session, for each viewer", Figure::new((after - before) / count as f64, "KiB"))
            .budget(Budget::AtMost(GROWTH)),
    ])
}

/// Has the program print a piece each tenth of a second; when all of it was printed.
fn drive(near: &mut Viewer, begun: Instant, pieces: usize) -> Result<Duration> {
    let (mut seen, mut asked) = (Seen::default(), 0);
    loop {
        let due = TICK * asked as u32;
        if asked < pieces && begun.elapsed() >= due {
            near.write(b"\n")?;
            asked += 1;
        }
        let wait = if asked < pieces { due.saturating_sub(begun.elapsed()) } else { SILENCE };
        let ready = poll(&mut [PollFd::new(near, PollFlags::IN)], Some(&Timespec::try_from(wait)?))?;
        anyhow::ensure!(ready > 0 || asked < pieces, "nothing came for {SILENCE:?}");
        let mut last = false;
        if ready > 0 {
            near.receive(|bytes| last |= seen.find(b"@LAST@", bytes))?;
        }
        if last {
            return Ok(begun.elapsed());
        }
    }
}

/// Reads from whichever viewer has something, until each has seen the last mark; when that was, for each.
fn read_all(viewers: &mut [Viewer], begun: Instant) -> Result<Vec<f64>> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (at, viewer) in viewers.iter().enumerate() {
        epoll::add(&set, viewer, epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN)?;
    }
    let mut seen: Vec<Seen> = viewers.iter().map(|_| Seen::default()).collect();
    let mut ends = vec![None; viewers.len()];
    let mut ready = Vec::with_capacity(viewers.len());
    let timeout = Timespec::try_from(SILENCE)?;
    while ends.iter().any(Option::is_none) {
        ready.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut ready), Some(&timeout))?;
        anyhow::ensure!(!ready.is_empty(), "nothing came for {SILENCE:?}");
        for event in &ready {
            let (mut found, at) = (false, event.data.u64() as usize);
            viewers[at].receive(|bytes| found |= seen[at].find(b"@LAST@", bytes))?;
            if found {
                ends[at] = Some(begun.elapsed().as_secs_f64());
            }
        }
    }
    Ok(ends.into_iter().flatten().collect())
}
