//! Identifies this machine and its current boot.

use std::fs;

/// The machine's host name.
pub fn this_host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The kernel's boot id; empty if it cannot be read.
pub fn this_boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
