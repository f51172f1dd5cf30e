//! Finds processes by what /proc says about them.

use std::sync::atomic::{AtomicU32, Ordering};

/// The processes that have this entry, such as `NAME=value`, in their environment.
pub(crate) fn with_variable(entry: &str) -> Vec<i32> {
    find(|pid| has_item(&format!("/proc/{pid}/environ"), entry))
}

/// The processes that have this argument.
pub(crate) fn with_argument(argument: &str) -> Vec<i32> {
    find(|pid| has_item(&format!("/proc/{pid}/cmdline"), argument))
}

/// The direct children of a process.
pub(crate) fn children_of(parent: u32) -> Vec<i32> {
    find(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|id| id.trim() == parent.to_string()))
    })
}

/// An argument of `sleep` that no other process has. The process ends by itself, should a test leave it behind.
pub(crate) fn unique_sleep() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("300.{:07}{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn find(mut holds: impl FnMut(i32) -> bool) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| holds(*pid)).collect()
}

/// Whether a file of items that end with NUL has this one. A process that has ended has none.
fn has_item(file: &str, item: &str) -> bool {
    std::fs::read(file).is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|found| found == item.as_bytes()))
}
