//! 5,000 events a second from one session to twenty watchers: whether any is lost, and what it costs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{Timespec, epoll};

use super::{Bench, agent_prompt};
use crate::figure::{Budget, Figure, Row, quantile};
use crate::gateway::Gateway;
use crate::machine;
use crate::pty::SILENCE;
use crate::watcher::{Transport, Watcher};

/// Half of them over SSE, half over WebSockets.
const WATCHERS: usize = 20;
/// 5,000 lines a second, each of them an event.
const INTERVAL: Duration = Duration::from_micros(200);
/// How long buffers may grow to their size before the memory is first read.
const WARM_UP: Duration = Duration::from_secs(5);
/// How much the two processes may grow after that, in KiB, in a full run. That is 8 bytes for each of its 125,000 events: if
/// anything was kept of each event, even only its number, it would be more.
const MAX_GROWTH: f64 = 976.0;
/// Processor time of the two processes per second.
const MAX_CORES: f64 = 1.0;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let lines: u64 = bench.pick(150_000, 40_000);
    let gateway = Gateway::start(&bench.bowline)?;
    let session = bench.bowline.start_agent()?;
    let open = |n| Watcher::open(&gateway, &session, [Transport::Sse, Transport::WebSocket][n % 2]);
    let mut watchers = (0..WATCHERS).map(open).collect::<Result<Vec<Watcher>>>()?;
    let pids = [session.pid(), gateway.pid()];
    let memory = || pids.map(|pid| machine::rss(pid).map(|kib| kib as f64));
    let cpu = || pids.map(machine::cpu_of_all_threads);

    let before = cpu();
    let begun = Instant::now();
    agent_prompt::send(&mut gateway.client()?, &session, lines, INTERVAL)?;
    let reader = std::thread::spawn(move || read_all(&mut watchers, lines));
    std::thread::sleep(WARM_UP);
    let warm = memory();
    let delays = reader.join().ok().context("the reader panicked")??;
    let (lasted, after, end) = (begun.elapsed().as_secs_f64(), cpu(), memory());

    let mut cores = [0.0; 2];
    for (cores, (before, after)) in cores.iter_mut().zip(before.into_iter().zip(after)) {
        *cores = (after? - before?).as_secs_f64() / lasted;
    }
    let [session_cores, gateway_cores] = cores;
    let [session_end, gateway_end] = end;
    let [session_warm, gateway_warm] = warm;
    let (session_end, gateway_end) = (session_end?, gateway_end?);
    let grown = [session_end - session_warm?, gateway_end - gateway_warm?];
    let micros = |q: f64| Figure::new(quantile(&delays, q) * 1e6, "µs");
    Ok(vec![
        Row::new(format!("events to each of {WATCHERS} watchers, none lost"), Figure::new(lines as f64 / lasted, "/s")),
        Row::new("processor time of session and gateway", Figure::new(session_cores + gateway_cores, "cores"))
            .budget(Budget::AtMost(MAX_CORES)),
        Row::new("the session's part of it", Figure::new(session_cores, "cores")),
        Row::new("growth of session and gateway after 5 s", Figure::new(grown.iter().sum(), "KiB"))
            .budget(Budget::AtMost(MAX_GROWTH)),
        Row::new("the session's part of it", Figure::new(grown[0], "KiB")),
        Row::new("memory of the session at the end (RSS)", Figure::new(session_end, "KiB")),
        Row::new("memory of the gateway at the end (RSS)", Figure::new(gateway_end, "KiB")),
        Row::new("a line until a watcher has it, p50", micros(0.5)),
        Row::new("a line until a watcher has it, p99", micros(0.99)),
    ])
}

/// Reads all watchers until each has the end of the run. Each has to get every line once and in order. Returns the delays of
/// the lines for the first watcher, in seconds.
fn read_all(watchers: &mut [Watcher], lines: u64) -> Result<Vec<f64>> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (at, watcher) in watchers.iter().enumerate() {
        epoll::add(&set, watcher, epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN)?;
    }
    let (mut next, mut is_done) = (vec![0; watchers.len()], vec![false; watchers.len()]);
    let mut delays = Vec::with_capacity(lines as usize);
    let mut ready = Vec::with_capacity(watchers.len());
    let timeout = Timespec::try_from(SILENCE)?;
    while is_done.contains(&false) {
        ready.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut ready), Some(&timeout))?;
        ensure!(!ready.is_empty(), "no event for {SILENCE:?}");
        for event in &ready {
            let at = event.data.u64() as usize;
            let (next, is_done) = (&mut next[at], &mut is_done[at]);
            watchers[at].receive(|event| {
                *is_done |= event.is_complete();
                let Some(stamp) = event.stamp() else { return Ok(()) };
                ensure!(stamp.number == *next, "watcher {at} got line {} instead of {next}", stamp.number);
                *next += 1;
                if at == 0 {
                    delays.push(event.read_at.saturating_sub(stamp.at).as_secs_f64());
                }
                Ok(())
            })?;
        }
    }
    for (at, next) in next.iter().enumerate() {
        ensure!(*next == lines, "watcher {at} got {next} of {lines} lines");
    }
    Ok(delays)
}
