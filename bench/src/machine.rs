//! The machine, and the processor time and memory of its processes, from /proc.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// One line with the processor, cores, memory and kernel.
pub(crate) fn describe() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, m)| m);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = field("/proc/meminfo", "MemTotal:").map_or(0, |kib| kib >> 20);
    format!("{model}, {cores} cores, {memory} GiB, Linux {}", kernel.trim())
}

/// The machine counts as idle if other processes use at most this share of it.
pub(crate) const IDLE: f64 = 0.05;
/// How long to wait for an idle machine.
const IDLE_WITHIN: Duration = Duration::from_secs(30);

/// Waits until the machine is idle, for at most 30 s. Returns the share of all cores that is in use then.
pub(crate) fn wait_until_idle() -> f64 {
    let until = Instant::now() + IDLE_WITHIN;
    loop {
        let busy = busy();
        if busy <= IDLE || Instant::now() >= until {
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

/// The processor time of a process, over all its threads.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let stat = fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += stat.split(' ').next().and_then(|n| n.parse::<u64>().ok()).context("no schedstat in this kernel")?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// The processor time of a process, rounded to 10 ms, also of threads that have ended.
pub(crate) fn cpu_of_all_threads(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program comes before, in parentheses, and may contain anything.
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).context("no fields in /proc/PID/stat")?;
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The processor time of this thread.
pub(crate) fn own_cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// The proportional set size of a process, in KiB: its private memory, and its share of shared memory.
pub(crate) fn pss(pid: u32) -> Result<u64> {
    field(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

/// The resident set size of a process, in KiB.
pub(crate) fn rss(pid: u32) -> Result<u64> {
    field(&format!("/proc/{pid}/smaps_rollup"), "Rss:")
}

fn field(path: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).with_context(|| format!("no {name} in {path}"))
}
