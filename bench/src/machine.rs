//! The machine, and what its processes cost: all from /proc.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// The processor, its cores and the kernel, in a line.
pub(crate) fn describe() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, m)| m);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = field("/proc/meminfo", "MemTotal:").map_or(0, |kib| kib >> 20);
    format!("{model}, {cores} cores, {memory} GiB, Linux {}", kernel.trim())
}

/// Share of the machine that others may use while something is measured.
pub(crate) const QUIET: f64 = 0.05;
/// How long to wait for a machine that is busier.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until the machine is quiet, for a while, and says how busy it is then, as a share of all its cores.
pub(crate) fn wait_until_quiet() -> f64 {
    let until = Instant::now() + PATIENCE;
    loop {
        let busy = busy();
        if busy <= QUIET || Instant::now() >= until {
            return busy;
        }
    }
}

fn busy() -> f64 {
    let ticks = || -> (u64, u64) {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
        (ticks.iter().take(8).sum(), ticks.iter().skip(3).take(2).sum())
    };
    let before = ticks();
    std::thread::sleep(Duration::from_millis(500));
    let after = ticks();
    1.0 - (after.1 - before.1) as f64 / (after.0 - before.0).max(1) as f64
}

/// Processor time that a process has used, over all its threads.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let stat = fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += stat.split(' ').next().and_then(|n| n.parse::<u64>().ok()).context("no schedstat in this kernel")?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// Processor time that this thread has used.
pub(crate) fn own_cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// A process's share of the memory it uses, in KiB: its own, and its part of what it shares.
pub(crate) fn pss(pid: u32) -> Result<u64> {
    field(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

/// All memory that a process uses, in KiB.
pub(crate) fn rss(pid: u32) -> Result<u64> {
    field(&format!("/proc/{pid}/smaps_rollup"), "Rss:")
}

fn field(path: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).with_context(|| format!("no {name} in {path}"))
}
